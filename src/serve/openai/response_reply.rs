//! The answer to a request for a response: whole, or in the events of a stream.
//!
//! The input is the answer of a run. The output is JSON in the newer of OpenAI's two forms. The story of a run is the summary of an item of
//! reasoning, and the text is an item of its own behind it.

use axum::response::sse::Event;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::chat_reply::ReasoningTokens;
use crate::serve::http::ApiError;
use crate::serve::runs::{ReplyForm, RunReply, TokenUse};

/// A response.
#[derive(Serialize, ToSchema)]
#[schema(as = Response)]
pub(super) struct WholeResponse {
    /// The id of the run, behind `resp_`.
    id: String,
    object: &'static str,
    /// The time of the request, in seconds since 1970.
    created_at: u64,
    /// `in_progress`, `completed`, `failed`, or `incomplete` if a limit of the run was reached.
    status: &'static str,
    background: bool,
    #[schema(value_type = Option<Object>)]
    error: Option<Value>,
    #[schema(value_type = Option<Object>)]
    incomplete_details: Option<Value>,
    instructions: Option<String>,
    max_output_tokens: Option<u32>,
    #[schema(value_type = Object)]
    metadata: Value,
    model: String,
    /// The items of the answer: the story of the run if the answer is streamed, and the message.
    #[schema(value_type = Vec<Object>)]
    output: Vec<Value>,
    parallel_tool_calls: bool,
    previous_response_id: Option<String>,
    store: bool,
    temperature: Option<f64>,
    #[schema(value_type = Object)]
    text: Value,
    tool_choice: &'static str,
    #[schema(value_type = Vec<Object>)]
    tools: Vec<Value>,
    top_p: Option<f64>,
    truncation: &'static str,
    usage: Option<ResponseUsage>,
    /// What the result of the run says about the answer; null before its end.
    #[schema(value_type = Option<Object>)]
    consensus: Option<Value>,
}

/// The tokens of all calls of the run.
#[derive(Serialize, ToSchema)]
struct ResponseUsage {
    input_tokens: u64,
    input_tokens_details: InputTokens,
    output_tokens: u64,
    output_tokens_details: ReasoningTokens,
    total_tokens: u64,
}

/// The tokens of prompts that were in a cache, or were put into one.
#[derive(Serialize, ToSchema)]
struct InputTokens {
    cached_tokens: u64,
    /// Servers do not tell it apart, so it is 0.
    cache_write_tokens: u64,
}

impl From<TokenUse> for ResponseUsage {
    fn from(usage: TokenUse) -> Self {
        Self {
            input_tokens: usage.prompt,
            input_tokens_details: InputTokens { cached_tokens: usage.cached, cache_write_tokens: 0 },
            output_tokens: usage.completion,
            output_tokens_details: ReasoningTokens { reasoning_tokens: usage.reasoning },
            total_tokens: usage.prompt + usage.completion,
        }
    }
}

/// The form of a response.
#[derive(Debug)]
pub(super) struct ResponseForm {
    pub(super) run: String,
    pub(super) model: String,
    /// The time of the request, in seconds since 1970.
    pub(super) created: u64,
    pub(super) instructions: Option<String>,
    pub(super) max_output_tokens: Option<u32>,
    pub(super) metadata: Value,
    /// The format of the answer.
    pub(super) format: Value,
    /// The number of events sent.
    pub(super) sent: u64,
    /// The story of the run, as it was streamed.
    pub(super) story: String,
}

impl ResponseForm {
    /// Returns the next event of a stream.
    fn next(&mut self, kind: &str, fields: Value) -> Value {
        let mut event = json!({"type": kind, "sequence_number": self.sent});
        self.sent += 1;
        if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
            event.extend(fields);
        }
        event
    }

    /// Returns the response in a state before or at its end.
    fn response(&self, status: &'static str, output: Vec<Value>) -> WholeResponse {
        WholeResponse {
            id: format!("resp_{}", self.run),
            object: "response",
            created_at: self.created,
            status,
            background: false,
            error: None,
            incomplete_details: None,
            instructions: self.instructions.clone(),
            max_output_tokens: self.max_output_tokens,
            metadata: self.metadata.clone(),
            model: self.model.clone(),
            output,
            parallel_tool_calls: false,
            previous_response_id: None,
            store: false,
            temperature: None,
            text: json!({"format": self.format}),
            tool_choice: "none",
            tools: Vec::new(),
            top_p: None,
            truncation: "disabled",
            usage: None,
            consensus: None,
        }
    }

    /// Returns the response at its end.
    fn response_at_end(&self, reply: &RunReply, output: Vec<Value>) -> Value {
        let RunReply { is_cut, usage, findings, .. } = reply;
        let status = if *is_cut { "incomplete" } else { "completed" };
        json!(WholeResponse {
            incomplete_details: is_cut.then(|| json!({"reason": "max_output_tokens"})),
            usage: Some((*usage).into()),
            consensus: Some(findings.clone()),
            ..self.response(status, output)
        })
    }

    fn reasoning(&self) -> Value {
        let summary = if self.story.is_empty() { Vec::new() } else { vec![self.summary()] };
        json!({"id": format!("rs_{}", self.run), "type": "reasoning", "summary": summary})
    }

    fn summary(&self) -> Value {
        json!({"type": "summary_text", "text": self.story})
    }

    /// Returns the message of the answer.
    fn message(&self, reply: &RunReply, status: &str, content: &[Value]) -> Value {
        let status = if reply.is_cut && status == "completed" { "incomplete" } else { status };
        let id = format!("msg_{}", self.run);
        json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": content})
    }

    /// Returns the events that end the item of reasoning.
    fn end_of_story(&mut self) -> Vec<Value> {
        let (item, story) = (self.reasoning(), self.story.clone());
        let (id, part) = (item["id"].clone(), self.summary());
        let at = json!({"item_id": id, "output_index": 0, "summary_index": 0});
        vec![
            self.next("response.reasoning_summary_text.done", with_field(&at, "text", json!(story))),
            self.next("response.reasoning_summary_part.done", with_field(&at, "part", part)),
            self.next("response.output_item.done", json!({"output_index": 0, "item": item})),
        ]
    }

    /// Returns the events of a part of the message.
    fn part(&mut self, number: usize, part: &Value) -> Vec<Value> {
        let (kind, field) = match part["type"].as_str() {
            Some("refusal") => ("response.refusal", "refusal"),
            _ => ("response.output_text", "text"),
        };
        let text = part[field].clone();
        let mut empty = part.clone();
        empty[field] = json!("");
        let at = json!({"item_id": format!("msg_{}", self.run), "output_index": 1, "content_index": number});
        let mut delta = with_field(&at, "delta", text.clone());
        let mut done = with_field(&at, field, text);
        if field == "text" {
            delta["logprobs"] = json!([]);
            done["logprobs"] = json!([]);
        }
        vec![
            self.next("response.content_part.added", with_field(&at, "part", empty)),
            self.next(&format!("{kind}.delta"), delta),
            self.next(&format!("{kind}.done"), done),
            self.next("response.content_part.done", with_field(&at, "part", part.clone())),
        ]
    }
}

/// Returns an object with one more field.
fn with_field(object: &Value, name: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[name] = value;
    object
}

/// Returns the parts of the message of an answer.
fn message_parts(reply: &RunReply) -> Vec<Value> {
    let mut parts = Vec::new();
    if let Some(text) = &reply.content {
        parts.push(json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}));
    }
    if let Some(refusal) = &reply.refusal {
        parts.push(json!({"type": "refusal", "refusal": refusal}));
    }
    parts
}

impl ReplyForm for ResponseForm {
    fn whole(&self, reply: &RunReply) -> Value {
        self.response_at_end(reply, vec![self.message(reply, "completed", &message_parts(reply))])
    }

    fn begin(&mut self) -> Vec<Value> {
        let response = json!({"response": self.response("in_progress", Vec::new())});
        let item = self.reasoning();
        let part =
            json!({"item_id": item["id"], "output_index": 0, "summary_index": 0, "part": self.summary()});
        vec![
            self.next("response.created", response.clone()),
            self.next("response.in_progress", response),
            self.next("response.output_item.added", json!({"output_index": 0, "item": item})),
            self.next("response.reasoning_summary_part.added", part),
        ]
    }

    fn progress(&mut self, line: &str) -> Vec<Value> {
        let delta = format!("{line}\n");
        self.story += &delta;
        let id = format!("rs_{}", self.run);
        let fields = json!({"item_id": id, "output_index": 0, "summary_index": 0, "delta": delta});
        vec![self.next("response.reasoning_summary_text.delta", fields)]
    }

    fn end(&mut self, reply: &RunReply) -> Vec<Value> {
        let mut events = self.end_of_story();
        let parts = message_parts(reply);
        let begun = self.message(reply, "in_progress", &[]);
        events.push(self.next("response.output_item.added", json!({"output_index": 1, "item": begun})));
        for (number, part) in parts.iter().enumerate() {
            events.extend(self.part(number, part));
        }
        let message = self.message(reply, "completed", &parts);
        events.push(self.next("response.output_item.done", json!({"output_index": 1, "item": message})));
        let response = self.response_at_end(reply, vec![self.reasoning(), message]);
        let kind = if reply.is_cut { "response.incomplete" } else { "response.completed" };
        events.push(self.next(kind, json!({"response": response})));
        events
    }

    fn fail(&mut self, why: &ApiError) -> Vec<Value> {
        let mut events = self.end_of_story();
        let error = json!({"code": "server_error", "message": why.to_string()});
        let output = vec![self.reasoning()];
        let response = WholeResponse { error: Some(error), ..self.response("failed", output) };
        events.push(self.next("response.failed", json!({"response": response})));
        events
    }

    fn event(&self, value: &Value) -> Event {
        Event::default().event(value["type"].as_str().unwrap_or_default()).data(value.to_string())
    }

    fn last(&self) -> Option<Event> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> ResponseForm {
        ResponseForm {
            run: "r".to_owned(),
            model: "consensus/x".to_owned(),
            created: 1,
            instructions: None,
            max_output_tokens: None,
            metadata: json!({}),
            format: json!({"type": "text"}),
            sent: 0,
            story: String::new(),
        }
    }

    fn reply(content: Option<&str>, refusal: Option<&str>) -> RunReply {
        RunReply {
            content: content.map(str::to_owned),
            refusal: refusal.map(str::to_owned),
            is_cut: false,
            usage: TokenUse { prompt: 70, cached: 30, completion: 20, reasoning: 18 },
            findings: json!({"journal_head": "h"}),
        }
    }

    /// The usage counts the tokens of all calls.
    #[test]
    fn whole_response_has_text_refusal_and_usage() {
        let whole = form().whole(&reply(Some("four"), Some("why")));
        assert_eq!((&whole["id"], &whole["status"]), (&json!("resp_r"), &json!("completed")));
        let content = &whole["output"][0]["content"];
        assert_eq!((&content[0]["text"], &content[1]["refusal"]), (&json!("four"), &json!("why")));
        assert_eq!(whole["usage"]["total_tokens"], 90);
        let cut = form().whole(&RunReply { is_cut: true, ..reply(None, Some("why")) });
        assert_eq!(
            (&cut["status"], &cut["output"][0]["status"]),
            (&json!("incomplete"), &json!("incomplete"))
        );
    }

    /// The events are numbered in a row, and the last one holds the whole response.
    #[test]
    fn stream_ends_with_response_it_made() {
        let mut form = form();
        let mut events = form.begin();
        events.extend(form.progress("Solver wrote a draft"));
        events.extend(form.end(&reply(Some("four"), None)));
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], number, "{event}");
        }
        let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
        assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("response.created", "response.completed"));
        let delta = events.iter().find(|event| event["type"] == "response.output_text.delta").unwrap();
        assert_eq!(delta["delta"], "four");
        let response = &events[events.len() - 1]["response"];
        assert_eq!(response["output"][0]["summary"][0]["text"], "Solver wrote a draft\n");
        assert_eq!(response["output"][1]["content"][0]["text"], "four");
    }
}
