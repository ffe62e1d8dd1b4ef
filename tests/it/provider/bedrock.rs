//! Amazon Bedrock as people use it: signed requests, streams of events, credentials where AWS tools find them.
//!
//! The signatures themselves are checked by AWS's own library in `tests/experiments/bedrock.py`.

use std::process::Command;

use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use serde_json::{Value, json};

use crate::support::{
    Act, Finished, Folder, Request, SENSIBLE, Server, TALK, chunked, consensus, http, trust,
};

const MODEL: &str = "bedrock:vendor.tiny-v1:0";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

/// One frame of an event stream.
fn frame(kind: &str, name: &str, payload: &Value) -> Vec<u8> {
    let header =
        |name: &'static str, value: &str| Header::new(name, HeaderValue::String(value.to_owned().into()));
    let type_name = if kind == "event" { ":event-type" } else { ":exception-type" };
    let message = Message::new(payload.to_string())
        .add_header(header(":message-type", kind))
        .add_header(header(type_name, name));
    let mut bytes = Vec::new();
    write_message_to(&message, &mut bytes).unwrap();
    bytes
}

/// A streamed reply with this text, or with this input of a tool, in pieces.
fn events(text: &str, is_tool: bool) -> Vec<u8> {
    let mut frames = frame("event", "messageStart", &json!({"role": "assistant"}));
    let characters: Vec<char> = text.chars().collect();
    for part in characters.chunks(40) {
        let part: String = part.iter().collect();
        let delta = if is_tool { json!({"toolUse": {"input": part}}) } else { json!({"text": part}) };
        frames.extend(frame(
            "event",
            "contentBlockDelta",
            &json!({"contentBlockIndex": 0, "delta": delta, "p": "abc"}),
        ));
    }
    frames.extend(frame("event", "contentBlockStop", &json!({"contentBlockIndex": 0})));
    let reason = if is_tool { "tool_use" } else { "end_turn" };
    frames.extend(frame("event", "messageStop", &json!({"stopReason": reason})));
    let usage =
        json!({"inputTokens": 40, "outputTokens": 20, "totalTokens": 120, "cacheReadInputTokens": 60});
    frames.extend(frame("event", "metadata", &json!({"usage": usage, "metrics": {"latencyMs": 7}})));
    frames
}

/// Answers as Converse does, whole or streamed as it was asked.
pub fn answer(request: &Request) -> Vec<u8> {
    let body = request.json();
    let tool = &body["toolConfig"]["tools"][0]["toolSpec"];
    let text = SENSIBLE(&as_chat(&body));
    if request.path.ends_with("/converse-stream") {
        return chunked("application/vnd.amazon.eventstream", &events(&text, !tool.is_null()));
    }
    let content = if tool.is_null() {
        json!([{"text": text}])
    } else {
        json!([{"toolUse": {"toolUseId": "t1", "name": tool["name"], "input": serde_json::from_str::<Value>(&text).unwrap()}}])
    };
    let usage =
        json!({"inputTokens": 40, "outputTokens": 20, "totalTokens": 120, "cacheReadInputTokens": 60});
    let whole = json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 7}});
    http("200 OK", "", whole.to_string().as_bytes())
}

/// The same request as other servers get it.
fn as_chat(body: &Value) -> Value {
    let turns = body["system"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|part| json!({"role": "system", "content": part["text"]}));
    let said = body["messages"].as_array().into_iter().flatten();
    let said = said.map(|turn| json!({"role": turn["role"], "content": turn["content"][0]["text"]}));
    let messages: Vec<Value> = turns.chain(said).collect();
    let form = &body["outputConfig"]["textFormat"]["structure"]["jsonSchema"];
    let tool = &body["toolConfig"]["tools"][0]["toolSpec"];
    let named = match (form["schema"].as_str(), tool["name"].as_str()) {
        (Some(schema), _) => {
            json!({"name": form["name"], "schema": serde_json::from_str::<Value>(schema).unwrap()})
        }
        (None, Some(name)) => json!({"name": name, "schema": tool["inputSchema"]["json"]}),
        (None, None) => return json!({"messages": messages}),
    };
    json!({"messages": messages, "response_format": {"json_schema": named}})
}

fn refused(why: &str) -> Vec<Act> {
    vec![Act::Send(http("400 Bad Request", "", json!({"message": why}).to_string().as_bytes()))]
}

/// A run on this server, with nothing set but the server and the Region.
pub fn run(folder: &Folder, server: &Server) -> Command {
    let mut command = consensus(folder);
    command.args(["run", "--model", MODEL, "--prompt", "2+2?"]).args(TALK).envs([
        ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", format!("http://127.0.0.1:{}", server.port)),
        ("AWS_REGION", "eu-central-1".to_owned()),
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
    ]);
    command
}

pub fn with_keys(command: &mut Command) -> &mut Command {
    command.envs([("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", SECRET)])
}

#[test]
fn agents_agree_over_converse_streamed_and_whole() {
    for words in [&[][..], &["--no-stream"]] {
        let (folder, server) = (Folder::new(), Server::start(|request| vec![Act::Send(answer(request))]));
        folder.write(
            "consensus.toml",
            "[prices]\n\"bedrock:vendor.tiny-v1:0\" = { prompt = 1.0, cached = 0.5, completion = 2.0 }\n",
        );
        Finished::of(with_keys(&mut run(&folder, &server)).args(words)).exits(0);
        let result = folder.result();
        // 40 fresh tokens at 1, 60 cached ones at 0.5 and 20 written ones at 2 dollars a million.
        let calls = server.requests().len();
        assert_eq!(result["usage"]["cost_micro_usd"], 110 * calls);
        let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
        assert!(!journal.contains(SECRET) && !journal.contains("AKIDEXAMPLE"), "a secret is in the journal");
        for request in server.requests() {
            let action = if words.is_empty() { "converse-stream" } else { "converse" };
            assert_eq!(request.path, format!("/model/vendor.tiny-v1%3A0/{action}"));
            let signature = request.header("authorization").unwrap();
            assert!(signature.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"), "{signature}");
            assert!(signature.contains("/eu-central-1/bedrock/aws4_request"), "{signature}");
            let body = request.json();
            let roles: Vec<&Value> =
                body["messages"].as_array().unwrap().iter().map(|turn| &turn["role"]).collect();
            assert_eq!(roles[0], "user", "a conversation begins with the user");
            assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "sides take turns: {roles:?}");
        }
        Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    }
}

/// A model that refuses forms is held by a tool, and one that refuses tools too by the prompt.
#[test]
fn refused_form_becomes_tool_or_prompt() {
    for (refuses_tools, hold) in [(false, "json_object"), (true, "prompt")] {
        let folder = Folder::new();
        let server = Server::start(move |request| {
            let body = request.json();
            if !body["outputConfig"].is_null() {
                return refused("outputConfig.textFormat is not supported by this model");
            }
            if refuses_tools && !body["toolConfig"].is_null() {
                return refused("This model doesn't support tool use.");
            }
            vec![Act::Send(answer(request))]
        });
        let finished = Finished::of(with_keys(&mut run(&folder, &server)).args([
            "--thinking",
            "none",
            "--max-rounds",
            "1",
        ]));
        let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
        assert!(journal.contains(&format!("\"structured\":\"{hold}\"")), "{}", finished.stderr);
        assert!(finished.stderr.contains("weaker structured output"), "{}", finished.stderr);
    }
}

#[test]
fn throttled_stream_is_repeated_and_counted() {
    let folder = Folder::new();
    let server = Server::start(|request| {
        if request.index == 0 {
            let frames = frame("exception", "throttlingException", &json!({"message": "slow down"}));
            return vec![Act::Send(chunked("application/vnd.amazon.eventstream", &frames))];
        }
        vec![Act::Send(answer(request))]
    });
    let finished = Finished::of(with_keys(&mut run(&folder, &server))).exits(0);
    assert!(finished.stderr.contains("429: slow down"), "{}", finished.stderr);
    let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
    assert!(journal.contains("\"attempts\":2"), "{journal}");
}

#[test]
fn a_damaged_or_unfinished_stream_is_no_reply() {
    let ends = |words: &str, spoil: fn(Vec<u8>) -> Vec<u8>| {
        let folder = Folder::new();
        folder.write("consensus.toml", "retries = 0\n");
        let server = Server::start(move |_| {
            let frames = spoil(events("2 and 2 makes 4.", false));
            vec![Act::Send(chunked("application/vnd.amazon.eventstream", &frames))]
        });
        let finished = Finished::of(with_keys(&mut run(&folder, &server))).exits(6);
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
    };
    ends("a frame of its stream is damaged", |mut frames| {
        let middle = frames.len() / 2;
        frames[middle] ^= 1;
        frames
    });
    ends("ended in the middle of a reply", |frames| frames[..frames.len() / 2].to_vec());
    ends("cannot be read", |_| frame("event", "contentBlockDelta", &json!("no object")));
    ends("is longer than the context", |_| {
        frame(
            "exception",
            "validationException",
            &json!({"message": "Input is too long for requested model."}),
        )
    });
}

#[test]
fn bedrock_key_replaces_signature() {
    let (folder, server) = (Folder::new(), Server::start(|request| vec![Act::Send(answer(request))]));
    Finished::of(run(&folder, &server).env("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key-1")).exits(0);
    assert_eq!(server.requests()[0].header("authorization").unwrap(), "Bearer bedrock-key-1");
}

#[test]
fn credentials_are_found_where_aws_tools_find_them() {
    let (folder, server) = (
        Folder::new(),
        Server::start(|request| {
            let given = |key: &str| {
                json!({"Code": "Success", "AccessKeyId": key, "SecretAccessKey": SECRET, "Token": "session-1", "Expiration": "2999-01-01T00:00:00Z"}).to_string()
            };
            let role = "/latest/meta-data/iam/security-credentials/";
            let text = match request.path.as_str() {
                "/credentials" => given("AKIDCONTAINER"),
                "/latest/api/token" => "a-token".to_owned(),
                path if path == role => "the-role".to_owned(),
                path if path.strip_prefix(role) == Some("the-role") => given("AKIDMACHINE"),
                _ => return vec![Act::Send(answer(request))],
            };
            vec![Act::Send(http("200 OK", "", text.as_bytes()))]
        }),
    );
    let signed_by = |command: &mut Command| {
        Finished::of(command.args(["--runs-dir", "elsewhere"])).exits(0);
        let last = server.requests().pop().unwrap();
        (last.header("authorization").unwrap(), last.header("x-amz-security-token"))
    };
    folder.write(
        ".aws/credentials",
        &format!("[default]\naws_access_key_id = AKIDFILE\naws_secret_access_key = {SECRET}\n"),
    );
    let process =
        format!("{{\"Version\": 1, \"AccessKeyId\": \"AKIDPROCESS\", \"SecretAccessKey\": \"{SECRET}\"}}");
    let printed = folder.write("printed.json", &process);
    folder.write(".aws/config", &format!("[default]\nregion = sa-east-1\n[profile lab]\nregion = ap-south-1\ncredential_process = cat {}\n", printed.display()));
    let (authorization, _) = signed_by(run(&folder, &server).env_remove("AWS_REGION"));
    assert!(authorization.contains("AKIDFILE") && authorization.contains("/sa-east-1/"), "{authorization}");
    let (authorization, _) =
        signed_by(run(&folder, &server).env_remove("AWS_REGION").env("AWS_PROFILE", "lab"));
    assert!(
        authorization.contains("AKIDPROCESS") && authorization.contains("/ap-south-1/"),
        "{authorization}"
    );
    let elsewhere = folder.path().join("nothing");
    let container = format!("http://127.0.0.1:{}/credentials", server.port);
    let (authorization, token) = signed_by(
        run(&folder, &server)
            .envs([("AWS_SHARED_CREDENTIALS_FILE", &elsewhere), ("AWS_CONFIG_FILE", &elsewhere)])
            .env("AWS_CONTAINER_CREDENTIALS_FULL_URI", container),
    );
    assert!(authorization.contains("AKIDCONTAINER"), "{authorization}");
    assert!(authorization.contains("x-amz-security-token"), "the token is signed: {authorization}");
    assert_eq!(token.as_deref(), Some("session-1"));
    let (authorization, _) = signed_by(
        run(&folder, &server)
            .envs([("AWS_SHARED_CREDENTIALS_FILE", &elsewhere), ("AWS_CONFIG_FILE", &elsewhere)])
            .env_remove("AWS_EC2_METADATA_DISABLED")
            .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", format!("http://127.0.0.1:{}", server.port)),
    );
    assert!(authorization.contains("AKIDMACHINE"), "{authorization}");
}

#[test]
fn what_is_missing_for_bedrock_is_named() {
    let (folder, server) = (Folder::new(), Server::start(|_| vec![Act::Close]));
    let finished = Finished::of(&mut run(&folder, &server)).exits(6);
    assert!(finished.stderr.contains("no usable AWS credentials"), "{}", finished.stderr);
    let finished = Finished::of(run(&folder, &server).env_remove("AWS_REGION")).exits(2);
    assert!(finished.stderr.contains("AWS_REGION"), "{}", finished.stderr);
    let mut wrong = run(&folder, &server);
    let finished =
        Finished::of(wrong.env_remove("AWS_ENDPOINT_URL_BEDROCK_RUNTIME").env("AWS_REGION", "x.evil.org/"))
            .exits(2);
    assert!(finished.stderr.contains("is not an AWS Region"), "{}", finished.stderr);
    assert!(server.requests().is_empty(), "nothing was sent");
}

/// Credentials in the service's error are removed, and a token count of the largest integer does not fail the run.
#[test]
fn hides_echoed_credentials_and_survives_huge_counts() {
    let folder = Folder::new();
    let server = Server::start(|_| {
        let why = json!({"message": "The token session-secret of AKIDEXAMPLE is invalid"});
        vec![Act::Send(http("403 Forbidden", "", why.to_string().as_bytes()))]
    });
    let finished =
        Finished::of(with_keys(&mut run(&folder, &server)).env("AWS_SESSION_TOKEN", "session-secret"))
            .exits(6);
    let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
    for text in [&finished.stderr, &journal] {
        assert!(text.contains("The token [key removed] of [key removed] is invalid"), "{text}");
        assert!(!text.contains("session-secret") && !text.contains("AKIDEXAMPLE"), "{text}");
    }
    let folder = Folder::new();
    let server = Server::start(|request| {
        let whole = String::from_utf8(answer(request)).unwrap();
        let body = whole.split("\r\n\r\n").nth(1).unwrap().replace("40", "18446744073709551615");
        vec![Act::Send(http("200 OK", "", body.as_bytes()))]
    });
    Finished::of(with_keys(&mut run(&folder, &server)).arg("--no-stream")).exits(0);
}

#[test]
fn a_profile_that_is_named_is_meant() {
    let (folder, server) = (Folder::new(), Server::start(|request| vec![Act::Send(answer(request))]));
    folder.write("consensus.toml", "[bedrock]\nprofile = \"lab\"\n");
    trust(&folder);
    let finished = Finished::of(with_keys(&mut run(&folder, &server))).exits(2);
    assert!(finished.stderr.contains("no AWS profile `lab`"), "{}", finished.stderr);
    let keys = format!("[lab]\naws_access_key_id = AKIDLAB\naws_secret_access_key = {SECRET}\n");
    folder.write(".aws/credentials", &keys);
    Finished::of(with_keys(&mut run(&folder, &server))).exits(0);
    assert!(server.requests()[0].header("authorization").unwrap().contains("AKIDLAB"));
}

/// A resume refuses to send signed requests to an address that only the journal names.
#[test]
fn journal_address_gets_no_signed_request() {
    let folder = Folder::new();
    let server =
        Server::start(|_| vec![Act::Send(http("403 Forbidden", "", b"{\"message\":\"no access\"}"))]);
    let finished = Finished::of(with_keys(&mut run(&folder, &server))).exits(6);
    assert!(finished.stderr.contains("check the AWS credentials"), "{}", finished.stderr);
    let count = server.requests().len();
    let mut resume = consensus(&folder);
    resume.args(["resume", "--last"]).env("AWS_REGION", "eu-central-1");
    let finished = Finished::of(with_keys(&mut resume)).exits(2);
    assert!(finished.stderr.contains("the journal calls Bedrock at"), "{}", finished.stderr);
    assert_eq!(server.requests().len(), count, "nothing was sent");
}
