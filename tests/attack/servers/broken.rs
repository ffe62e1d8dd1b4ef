//! Faults below the body: statuses, connections, framing, sizes and disconnects.
//!
//! In: an honest reply. Out: what the server sends in its place. The bodies themselves are well formed where there are any.

use std::time::Duration;

use super::answers::{body, chunk, events, head, head_of_chunks, ok, sse, stream, typed, whole, written};
use super::faults::{Acts, Fault};
use crate::support::{Act, http};

/// Longer than any run may take.
const MINUTE: Act = Act::Pause(Duration::from_mins(1));

/// Says something, waits a little, and says the next.
fn slowly(parts: impl Iterator<Item = Vec<u8>>) -> Vec<Act> {
    parts.flat_map(|part| [Act::Send(part), Act::Pause(Duration::from_millis(100))]).collect()
}

pub(super) fn statuses() -> Vec<Fault> {
    const ERROR: &[u8] = b"{\"error\":{\"message\":\"not now\"}}";
    let codes = [400, 401, 403, 404, 408, 413, 418, 422, 429, 500, 502, 503, 504, 599, 600, 999];
    let plain =
        codes.map(|code| Fault::new(format!("status {code}"), move |_| body(&format!("{code} Odd"), ERROR)));
    let waits = ["0", "1", "-5", "0.5", "", "soon", "Wed, 21 Oct 2020 07:28:00 GMT"];
    let waiting = waits.map(|wait| {
        let send = move |_: &str| {
            let header = format!("retry-after: {wait}\r\n");
            vec![Act::Send(http("429 Too Many Requests", &header, ERROR))]
        };
        Fault::new(format!("status 429 with Retry-After {wait:?}"), send)
    });
    let redirects = [301, 302, 303, 307, 308].map(|code| {
        let send = move |_: &str| {
            let header = "location: http://127.0.0.1:1/v1/chat/completions\r\n";
            vec![Act::Send(http(&format!("{code} Elsewhere"), header, b""))]
        };
        Fault::new(format!("redirect {code}"), send)
    });
    let around = vec![
        Fault::new("no content", |_| vec![Act::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())]),
        Fault::around("partial content", |reply| body("206 Partial", whole(reply).to_string().as_bytes())),
        Fault::around("created", |reply| body("201 Created", whole(reply).to_string().as_bytes())),
    ];
    plain.into_iter().chain(waiting).chain(redirects).chain(around).collect()
}

pub(super) fn connections() -> Vec<Fault> {
    let line = |text: &str| text.as_bytes().to_vec();
    vec![
        Fault::new("closed at once", |_| vec![Act::Close]),
        Fault::new("another protocol", move |_| vec![Act::Send(line("SSH-2.0-OpenSSH_9.0\r\n")), Act::Close]),
        Fault::new("zeros", |_| vec![Act::Send(vec![0; 4096]), Act::Close]),
        Fault::new("another version", move |_| vec![Act::Send(line("HTTP/2.0 200 OK\r\n\r\n")), Act::Close]),
        Fault::new("half a status line", move |_| vec![Act::Send(line("HTTP/1.1 20")), Act::Close]),
        Fault::new("a status that is no number", move |_| {
            vec![Act::Send(line("HTTP/1.1 abc OK\r\n\r\n")), Act::Close]
        }),
        Fault::new("a head without an end", move |_| {
            vec![Act::Send(line("HTTP/1.1 200 OK\r\nx: y\r\n")), Act::Close]
        }),
        Fault::new("other protocol by upgrade", move |_| {
            let text = "HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n";
            vec![Act::Send(line(text)), Act::Close]
        }),
        Fault::around("many interim answers", |reply| {
            let interim = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(50);
            std::iter::once(Act::Send(interim)).chain(ok(&whole(reply))).collect()
        }),
        Fault::new("silence", |_| vec![MINUTE]),
        Fault::new("silence after the head", |_| vec![Act::Send(head_of_chunks()), MINUTE]),
        Fault::new("silence in mid-stream", |reply| {
            vec![
                Act::Send(head_of_chunks()),
                Act::Send(chunk(written(&events(reply)[..2]).as_bytes())),
                MINUTE,
            ]
        }),
        Fault::new("silence in mid-body", |reply| {
            let answer = http("200 OK", "", whole(reply).to_string().as_bytes());
            vec![Act::Send(answer[..answer.len() / 2].to_vec()), MINUTE]
        }),
        Fault::new("a head byte by byte", |_| {
            slowly(head_of_chunks().into_iter().cycle().take(600).map(|byte| vec![byte]))
        }),
        Fault::new("a head that never ends", |_| {
            let lines = (0..600).map(|at| format!("x-{at}: y\r\n").into_bytes());
            slowly(std::iter::once(b"HTTP/1.1 200 OK\r\n".to_vec()).chain(lines))
        }),
        Fault::new("a body byte by byte", |reply| {
            let answer = http("200 OK", "", whole(reply).to_string().repeat(4).as_bytes());
            slowly(answer.into_iter().take(600).map(|byte| vec![byte]))
        }),
        Fault::new("comments without an end", |_| {
            let comments = std::iter::repeat_n(chunk(b": still here\n\n"), 600);
            slowly(std::iter::once(head_of_chunks()).chain(comments))
        }),
        Fault::new("events without an end", |_| {
            let events =
                std::iter::repeat_n(chunk(b"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"), 600);
            slowly(std::iter::once(head_of_chunks()).chain(events))
        }),
    ]
}

pub(super) fn framing() -> Vec<Fault> {
    let raw = |text: &str| [head_of_chunks().as_slice(), text.as_bytes()].concat();
    let broken = [
        ("a chunk of no size", "zz\r\nhello\r\n0\r\n\r\n"),
        ("a chunk of the greatest size", "ffffffffffffffff\r\nhello"),
        ("a chunk of a greater size", "fffffffffffffffff\r\nhello"),
        ("a chunk of a negative size", "-5\r\nhello"),
        ("a chunk that is longer than it says", "2\r\nhello\r\n0\r\n\r\n"),
        ("no last chunk", "5\r\nhello\r\n"),
        ("nothing in chunks", "0\r\n\r\n"),
    ];
    let chunks = broken.map(|(name, text)| Fault::new(name, move |_| vec![Act::Send(raw(text)), Act::Close]));
    let length = |reply: &str, more: i64, lines: &str| {
        let body = whole(reply).to_string();
        let length = i64::try_from(body.len()).unwrap() + more;
        let head = head(&format!("content-type: application/json\r\ncontent-length: {length}\r\n{lines}"));
        vec![Act::Send([head.as_slice(), body.as_bytes()].concat()), Act::Close]
    };
    let lengths = vec![
        Fault::new("a length that is too short", move |reply| length(reply, -20, "")),
        Fault::around("a length that is too long", move |reply| length(reply, 20, "")),
        Fault::around("two lengths", move |reply| length(reply, 0, "content-length: 5\r\n")),
        Fault::around("a length and chunks", move |reply| length(reply, 0, "transfer-encoding: chunked\r\n")),
        Fault::around("an unknown coding", move |reply| length(reply, 0, "transfer-encoding: magic\r\n")),
        Fault::around("a compression that it is not in", move |reply| {
            length(reply, 0, "content-encoding: gzip\r\n")
        }),
        Fault::new("compressed", |_| {
            typed(
                "application/json\r\ncontent-encoding: gzip",
                b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xab\xae\x05\0\x43\xbf\xa6\xa3\x02\0\0\0",
            )
        }),
        Fault::new("a negative length", |_| {
            vec![Act::Send(head("content-type: application/json\r\ncontent-length: -1\r\n")), Act::Close]
        }),
        Fault::around("an old version", |reply| {
            let body = whole(reply).to_string();
            vec![
                Act::Send(format!("HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{body}").into()),
                Act::Close,
            ]
        }),
    ];
    chunks.into_iter().chain(lengths).collect()
}

pub(super) fn sizes() -> Vec<Fault> {
    // More than one reply may have, in parts of a megabyte.
    let huge = |kind: &str, start: &[u8], part: &[u8]| {
        let head = head(&format!("content-type: {kind}\r\nconnection: close\r\n"));
        let parts = (0..12).map(|_| Act::Send(part.repeat((1 << 20) / part.len())));
        std::iter::once(Act::Send([&head, start].concat()))
            .chain(parts)
            .chain([Act::Close])
            .collect::<Vec<_>>()
    };
    let lines = |count: usize, size: usize| format!("x: {}\r\n", "y".repeat(size)).repeat(count);
    vec![
        Fault::new("a huge body", move |_| huge("application/json", b"{\"x\":\"", b"x")),
        Fault::new("a huge line", move |_| huge("text/event-stream", b"data: ", b"x")),
        Fault::new("events of a huge size together", move |_| {
            huge("text/event-stream", b"", b"data: {\"choices\":[]}\n\n")
        }),
        Fault::new("a reply of two megabytes", |_| ok(&whole(&"x".repeat(2 << 20)))),
        Fault::new("huge headers", move |_| vec![Act::Send(head(&lines(40, 50_000))), Act::Close]),
        Fault::new("a thousand headers", move |_| vec![Act::Send(head(&lines(1000, 1))), Act::Close]),
    ]
}

/// Returns the lines of each event of a stream that says this.
fn parts(reply: &str) -> Vec<String> {
    let mut all: Vec<String> =
        events(reply).iter().map(|event| written(std::slice::from_ref(event))).collect();
    all.push("data: [DONE]\n\n".to_owned());
    all
}

/// Disconnects after each number of events, between chunks, in the middle of one, and without any.
pub(super) fn disconnects() -> Vec<Fault> {
    let after = |count: usize| {
        let chunks = move |reply: &str| {
            parts(reply).iter().take(count).map(|part| chunk(part.as_bytes())).collect::<Vec<_>>()
        };
        // The text is whole after its fourth part.
        let make = if count >= 4 { Fault::around } else { Fault::new };
        let [between, within, unframed]: [Acts; 3] = [
            Box::new(move |reply| {
                vec![Act::Send([head_of_chunks(), chunks(reply).concat()].concat()), Act::Close]
            }),
            Box::new(move |reply| {
                let torn = b"ffff\r\ndata: {\"choi".to_vec();
                vec![Act::Send([head_of_chunks(), chunks(reply).concat(), torn].concat()), Act::Close]
            }),
            Box::new(move |reply| {
                let head = head("content-type: text/event-stream\r\nconnection: close\r\n");
                let text: String = parts(reply).into_iter().take(count).collect();
                vec![Act::Send([head, text.into_bytes()].concat()), Act::Close]
            }),
        ];
        [
            make(format!("gone after {count} events"), between),
            make(format!("gone within the chunk after {count} events"), within),
            make(format!("gone after {count} events without chunks"), unframed),
        ]
    };
    let streams = (0..8).flat_map(after);
    let bodies = [1, 30, 90].map(|bytes| {
        Fault::new(format!("gone after {bytes} bytes of a body"), move |reply| {
            let text = whole(reply).to_string();
            let head = head(&format!("content-type: application/json\r\ncontent-length: {}\r\n", text.len()));
            vec![Act::Send([&head, &text.as_bytes()[..bytes]].concat()), Act::Close]
        })
    });
    let ended = Fault::around("a stream that ends by itself, and goes on", |reply| {
        sse(stream(reply).repeat(2).as_bytes()).into_iter().chain([Act::Close]).collect()
    });
    streams.chain(bodies).chain([ended]).collect()
}
