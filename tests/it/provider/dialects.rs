//! No reply of ten kinds of servers becomes another one by being cut at some byte, or by an error between two of its events.

use std::sync::Arc;

use consensus::provider::OpenAi;
use crypto::Digest;
use protocol::core::OpenAiEndpoint;
use protocol::{Ask, CallId, Conversation, Finish, Message, ReplyShape, Role, Step};

use crate::support::{Act, Request, Server};

/// The text of every reply. Its beginning has an answer of its own.
const WHOLE: &str = "6*8 is 48.\nAnswer: 148";

/// The events of one reply as each kind of server writes them. Only the fields by which they differ are kept.
const DIALECTS: [(&str, &[&str]); 10] = [
    (
        "OpenAI",
        &[
            r#"data: {"id":"c","object":"chat.completion.chunk","model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"6*8 is 48.\nAnswer: 14"},"finish_reason":null}],"usage":null}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"8"},"finish_reason":null}],"usage":null}"#,
            r#"data: {"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}"#,
            r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16}}"#,
            "data: [DONE]",
        ],
    ),
    (
        "Azure",
        &[
            r#"data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}"#,
            r#"data: {"choices":[{"content_filter_results":{},"delta":{"content":"6*8 is 48.\nAnswer: 14"},"finish_reason":null,"index":0}],"model":"gpt-4o"}"#,
            r#"data: {"choices":[{"content_filter_results":{},"delta":{"content":"8"},"finish_reason":null,"index":0}]}"#,
            r#"data: {"choices":[{"content_filter_results":{},"delta":{},"finish_reason":"stop","index":0}]}"#,
            "data: [DONE]",
        ],
    ),
    (
        "vLLM",
        &[
            r#"data: {"id":"chatcmpl-1","model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":null},"finish_reason":null,"stop_reason":null,"token_ids":null}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"reasoning_content":"six times eight"},"finish_reason":null}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"6*8 is 48.\nAnswer: 14"},"finish_reason":null}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"8"},"finish_reason":"stop","stop_reason":null}]}"#,
            r#"data: {"choices":[],"usage":{"prompt_tokens":9,"total_tokens":16,"completion_tokens":7,"prompt_tokens_details":null}}"#,
            "data: [DONE]",
        ],
    ),
    (
        "llama.cpp",
        &[
            r#"data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1,"id":"x","model":"qwen.gguf","system_fingerprint":"b6000","object":"chat.completion.chunk"}"#,
            r#"data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"6*8 is 48.\nAnswer: 14"}}]}"#,
            r#"data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"8"}}]}"#,
            r#"data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}]}"#,
            r#"data: {"choices":[],"usage":{"completion_tokens":7,"prompt_tokens":9,"total_tokens":16},"timings":{"prompt_n":9,"predicted_per_second":12.5}}"#,
            "data: [DONE]",
        ],
    ),
    (
        "Ollama",
        &[
            r#"data: {"id":"chatcmpl-7","object":"chat.completion.chunk","created":1,"model":"llama3.1","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"6*8 is 48.\nAnswer: 14"},"finish_reason":null}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"8"},"finish_reason":null}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}"#,
            "data: [DONE]",
        ],
    ),
    (
        "SGLang",
        &[
            r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"","matched_stop":null}],"model":"default"}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"6*8 is 48.\nAnswer: 14"},"finish_reason":""}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"8"},"finish_reason":""}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop","matched_stop":151645}]}"#,
            "data: [DONE]",
        ],
    ),
    (
        "TGI",
        &[
            r#"data: {"object":"chat.completion.chunk","id":"","created":1,"model":"m","system_fingerprint":"3.0.1-native","choices":[{"index":0,"delta":{"role":"assistant","content":"6*8 is 48.\nAnswer: 14"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
            r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"8"},"finish_reason":"eos_token"}],"usage":null}"#,
            r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16}}"#,
            "data: [DONE]",
        ],
    ),
    (
        "OpenRouter",
        &[
            ": OPENROUTER PROCESSING",
            r#"data: {"id":"gen-1","provider":"Together","model":"qwen/qwen3-8b","choices":[{"index":0,"delta":{"role":"assistant","content":"6*8 is 48.\nAnswer: 14"},"finish_reason":null,"native_finish_reason":null}]}"#,
            ": OPENROUTER PROCESSING",
            r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"8"},"finish_reason":"stop","native_finish_reason":"STOP"}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":7,"cost":0.0001}}"#,
            "data: [DONE]",
        ],
    ),
    (
        "Gemini",
        &[
            r#"data: {"choices":[{"delta":{"content":"6*8 is 48.\nAnswer: 14","role":"assistant"},"index":0}],"created":1,"id":"x","model":"gemini-2.5-flash","object":"chat.completion.chunk"}"#,
            r#"data: {"choices":[{"delta":{"content":"8","role":"assistant"},"finish_reason":"stop","index":0}],"usage":{"completion_tokens":7,"prompt_tokens":9,"total_tokens":16}}"#,
            "data: [DONE]",
        ],
    ),
    (
        "DeepSeek",
        &[
            ": keep-alive",
            r#"data: {"id":"d","model":"deepseek-reasoner","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"48, and 100"},"logprobs":null,"finish_reason":null}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"6*8 is 48.\nAnswer: 14","reasoning_content":null},"finish_reason":null}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"8","reasoning_content":null},"finish_reason":null}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"","reasoning_content":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":7,"prompt_cache_hit_tokens":0}}"#,
            "data: [DONE]",
        ],
    ),
];

/// Errors as servers send them in the middle of a stream.
const ERRORS: [&str; 4] = [
    r#"data: {"error":{"message":"the worker died","type":"server_error","code":500}}"#,
    r#"data: {"object":"error","message":"CUDA out of memory","code":50001}"#,
    r#"data: {"choices":[{"index":0,"delta":{"content":""},"error":{"code":502,"message":"bad gateway"},"finish_reason":"error"}]}"#,
    "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
];

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// Returns a reply with an error after so many of its events.
fn with_error(events: &[&str], error: &str, place: usize) -> Vec<u8> {
    let (before, after) = events.split_at(place);
    (HEAD.to_owned() + &[before, &[error], after].concat().join("\n\n") + "\n\n").into_bytes()
}

fn ask(number: usize) -> Ask {
    let mut conversation = Conversation::new("You count.".to_owned());
    conversation.push(Role::User, format!("Reply {number}."));
    let call = CallId { part: 0, round: 1, agent: 0, draft: 0, step: Step::Sample, attempt: 0 };
    let messages: Vec<Arc<Message>> = conversation.messages().to_vec();
    let shape = ReplyShape::Free;
    Ask {
        call,
        messages,
        shape,
        max_tokens: 9,
        temperature: 0.0,
        seed: 1,
        digest: Digest::ZERO,
        refused: None,
    }
}

#[test]
fn no_damage_makes_another_reply() {
    let mut replies: Vec<(&str, Vec<u8>)> = Vec::new();
    for (name, events) in DIALECTS {
        let whole = (HEAD.to_owned() + &events.join("\n\n") + "\n\n").into_bytes();
        replies.extend((HEAD.len()..=whole.len()).map(|end| (name, whole[..end].to_vec())));
        for error in ERRORS {
            replies.extend((0..events.len()).map(|place| (name, with_error(events, error, place))));
        }
    }
    let bytes: Vec<Vec<u8>> = replies.iter().map(|(_, bytes)| bytes.clone()).collect();
    let server = Server::start(move |request: &Request| {
        let (_, number) = request.body.split_once("Reply ").unwrap();
        let number: usize = number.split_once('.').unwrap().0.parse().unwrap();
        vec![Act::Send(bytes[number].clone()), Act::Close]
    });
    let endpoint = OpenAiEndpoint { model: "m".to_owned(), ..OpenAiEndpoint::bare(&server.url()) };
    let client = OpenAi::new(endpoint).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut whole = std::collections::BTreeSet::new();
    for (number, (name, bytes)) in replies.iter().enumerate() {
        let Ok(answer) = runtime.block_on(client.ask(&ask(number), &|_| {})) else { continue };
        let sent = String::from_utf8_lossy(bytes);
        assert_eq!(
            (answer.reply.text.as_str(), answer.reply.finish),
            (WHOLE, Finish::Stop),
            "{name}: {sent}"
        );
        assert!(ERRORS.iter().all(|error| !sent.contains(error)), "{name}: {sent}");
        whole.insert(*name);
    }
    assert_eq!(whole.len(), DIALECTS.len(), "each whole reply is taken: {whole:?}");
}
