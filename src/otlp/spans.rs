//! The spans of a run, by the conventions of OpenTelemetry for generative AI.
//!
//! The input is the records of a run. The output is the request that a collector takes: a span for the run, one for each agent in it, and
//! one for each reply in that. The ids are digests of the run and of the record, so the same records always give the same spans. A call
//! without a reply has none. The texts of prompts and replies are in them only if they are wanted.
//!
//! The names of attributes are those of `open-telemetry/semantic-conventions-genai` v0.1.0, in which a workflow has the name of an agent.
//! The constants for them in Rust are deprecated, since the conventions have moved there.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as OneValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event as SpanEvent, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use serde_json::json;

use crate::engine::{Mismatch, ReplayError, RunState};
use crate::journal::{Entry, Executor, LostCall, Record, Replied};
use crate::program::VERSION;
use crate::report::RunResult;
use crypto::{Digest, Hasher};
use protocol::core::Endpoint;
use protocol::{Ask, CallId, Finish, Message, Outcome, ProtocolParams as _};

/// Returns the spans of a run.
///
/// Returns [`ReplayError`] if the records do not fit together.
pub fn spans(records: &[Record], has_content: bool) -> Result<ExportTraceServiceRequest, ReplayError> {
    let first = records.first().ok_or(ReplayError { line: 1, why: Mismatch::NotOpened })?;
    let mut state = RunState::open(first).map_err(|why| ReplayError { line: 1, why })?;
    let mut trace = SpanBuilder::new(&first.run, has_content);
    for record in &records[1..] {
        if let Entry::Asked(asked) = &record.event {
            // The prompt of a call is known until the call is on record.
            let ask = state.to_ask().find(|ask| ask.call == asked.call).cloned();
            trace.asked.insert(asked.call.to_string(), (nanos(&record.at), ask));
        }
        state.apply(record).map_err(|why| ReplayError { line: record.seq + 1, why })?;
        trace.take(&state, record);
    }
    let last = records.last().unwrap_or(first);
    // No span has the head of the journal.
    let result = RunResult::new(&state, Digest::ZERO);
    let run = trace.run_span(&state, &result, nanos(&first.at), nanos(&last.at));
    let agents = trace.agent_spans(&state);
    let spans: Vec<Span> = [run].into_iter().chain(agents).chain(trace.calls).collect();
    Ok(request(spans))
}

fn request(spans: Vec<Span>) -> ExportTraceServiceRequest {
    let scope = InstrumentationScope {
        name: "consensus".to_owned(),
        version: VERSION.to_owned(),
        ..InstrumentationScope::default()
    };
    let resource = Resource {
        attributes: vec![text("service.name", "consensus"), text("service.version", VERSION)],
        ..Resource::default()
    };
    let spans = ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() };
    let spans =
        ResourceSpans { resource: Some(resource), scope_spans: vec![spans], ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![spans] }
}

/// The spans of a run up to the last record that was added.
struct SpanBuilder<'a> {
    run: &'a str,
    has_content: bool,
    calls: Vec<Span>,
    /// The time at which each open call was made last, and its prompt.
    asked: BTreeMap<String, (u64, Option<Ask>)>,
    /// The first and the last moment of each agent.
    agents: BTreeMap<usize, (u64, u64)>,
    events: Vec<SpanEvent>,
}

impl<'a> SpanBuilder<'a> {
    fn new(run: &'a str, has_content: bool) -> Self {
        Self {
            run,
            has_content,
            calls: Vec::new(),
            asked: BTreeMap::new(),
            agents: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    fn trace_id(&self) -> Vec<u8> {
        Digest::new(self.run.as_bytes()).as_bytes()[..16].to_vec()
    }

    /// Returns the id of a span, which is that of its step in this run.
    fn span_id(&self, step: &str) -> Vec<u8> {
        let digest = Hasher::default().part(self.run.as_bytes()).part(step.as_bytes()).finish();
        digest.as_bytes()[..8].to_vec()
    }

    fn agent_id(&self, agent: usize) -> Vec<u8> {
        self.span_id(&format!("agent {agent}"))
    }

    fn take(&mut self, state: &RunState, record: &Record) {
        let at = nanos(&record.at);
        match &record.event {
            Entry::Replied(replied) => self.add_reply(state, record, replied),
            Entry::Executed(executed) => {
                let is_check = matches!(executed.by, Executor::Command(_));
                let what = if is_check { "check" } else { "program" };
                let end = executed.result.end;
                let attributes = vec![
                    text("consensus.execution", what),
                    text("consensus.end", &end.to_string()),
                    boolean("consensus.success", end.is_success()),
                ];
                self.add_event(at, "consensus.execution", attributes);
            }
            Entry::Lost(LostCall { call, cause }) => {
                let attributes = vec![
                    text("gen_ai.agent.name", state.agent_name(call.agent)),
                    text("consensus.call", &call.to_string()),
                    text("consensus.cause", cause),
                ];
                self.add_event(at, "consensus.lost", attributes);
            }
            Entry::Resumed { program, .. } => {
                self.add_event(at, "consensus.resumed", vec![text("consensus.program", program)]);
            }
            Entry::Opened(_)
            | Entry::Asked(_)
            | Entry::Found(_)
            | Entry::LeftOut(_)
            | Entry::Permitted(_)
            | Entry::Closed(_)
            | Entry::Stopped { .. } => {}
        }
    }

    fn add_event(&mut self, at: u64, name: &str, attributes: Vec<KeyValue>) {
        let event =
            SpanEvent { time_unix_nano: at, name: name.to_owned(), attributes, ..SpanEvent::default() };
        self.events.push(event);
    }

    fn add_reply(&mut self, state: &RunState, record: &Record, replied: &Replied) {
        let (call, end) = (replied.call, nanos(&record.at));
        let (begin, prompt) = self.asked.remove(&call.to_string()).unwrap_or((end, None));
        let endpoint = state.endpoints().get(call.agent);
        let mut attributes = call_attributes(state, endpoint, call, replied);
        if let Some(ask) = &prompt {
            attributes.push(integer("gen_ai.request.max_tokens", ask.max_tokens.into()));
        }
        if self.has_content {
            let messages = prompt.map(|ask| ask.messages.iter().map(|one| message(one)).collect::<Vec<_>>());
            attributes.extend(messages.map(|all| text("gen_ai.input.messages", &json!(all).to_string())));
            let reply =
                json!([{"role": "assistant", "parts": [{"type": "text", "content": replied.reply.text}]}]);
            attributes.push(text("gen_ai.output.messages", &reply.to_string()));
        }
        let moments = self.agents.entry(call.agent).or_insert((begin, end));
        *moments = (moments.0.min(begin), moments.1.max(end));
        let model = endpoint.map(Endpoint::model).unwrap_or_default();
        self.calls.push(Span {
            trace_id: self.trace_id(),
            span_id: self.span_id(&format!("record {}", record.seq)),
            parent_span_id: self.agent_id(call.agent),
            name: format!("chat {model}").trim_end().to_owned(),
            kind: SpanKind::Client.into(),
            start_time_unix_nano: begin,
            end_time_unix_nano: end,
            attributes,
            ..Span::default()
        });
    }

    fn agent_spans(&self, state: &RunState) -> Vec<Span> {
        let mut spans = Vec::new();
        for (&agent, &(begin, end)) in &self.agents {
            let name = state.agent_name(agent);
            spans.push(Span {
                trace_id: self.trace_id(),
                span_id: self.agent_id(agent),
                parent_span_id: self.span_id("run"),
                name: format!("invoke_agent {name}"),
                kind: SpanKind::Internal.into(),
                start_time_unix_nano: begin,
                end_time_unix_nano: end,
                attributes: vec![
                    text("gen_ai.operation.name", "invoke_agent"),
                    text("gen_ai.agent.name", name),
                ],
                ..Span::default()
            });
        }
        spans
    }

    fn run_span(&mut self, state: &RunState, result: &RunResult, begin: u64, end: u64) -> Span {
        let setup = &state.opened().setup;
        let mut attributes = vec![
            text("gen_ai.operation.name", "invoke_workflow"),
            text("gen_ai.agent.name", &setup.roleset),
            text("gen_ai.conversation.id", conversation(state)),
            text("consensus.run", self.run),
            text("consensus.protocol", setup.params.protocol()),
            text("consensus.outcome", result.outcome.name()),
            integer("consensus.rounds", result.rounds.into()),
            integer("consensus.seed", setup.seed),
        ];
        attributes.extend(result.how.map(|how| text("consensus.how", how.name())));
        let mut evaluation = vec![
            text("gen_ai.evaluation.name", "agreement"),
            text("gen_ai.evaluation.score.label", result.outcome.name()),
        ];
        if let Some(known) = &result.confidence {
            evaluation.push(number("gen_ai.evaluation.score.value", known.value.value()));
        }
        if let Some(why) = &result.reason {
            evaluation.push(text("gen_ai.evaluation.explanation", why));
        }
        self.add_event(end, "gen_ai.evaluation.result", evaluation);
        let status = match state.outcome() {
            Some(Outcome::Failed { cause }) => {
                attributes.push(text("error.type", "failed"));
                Status { code: StatusCode::Error.into(), message: cause.clone() }
            }
            _ => Status::default(),
        };
        Span {
            trace_id: self.trace_id(),
            span_id: self.span_id("run"),
            name: format!("invoke_workflow {}", setup.roleset),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: begin,
            end_time_unix_nano: end,
            attributes,
            events: std::mem::take(&mut self.events),
            status: Some(status),
            ..Span::default()
        }
    }
}

/// Returns the session of a run, or else its own id.
fn conversation(state: &RunState) -> &str {
    state.opened().session.as_ref().map_or_else(|| state.run(), |place| &place.name)
}

fn call_attributes(
    state: &RunState,
    endpoint: Option<&Endpoint>,
    call: CallId,
    replied: &Replied,
) -> Vec<KeyValue> {
    let usage = &replied.usage;
    let mut attributes = vec![
        text("gen_ai.operation.name", "chat"),
        text("gen_ai.agent.name", state.agent_name(call.agent)),
        text("consensus.call", &call.to_string()),
        integer("gen_ai.usage.input_tokens", usage.prompt),
        integer("gen_ai.usage.output_tokens", usage.completion),
        integer("gen_ai.usage.cache_read.input_tokens", usage.cached),
        list("gen_ai.response.finish_reasons", &[finish(replied.reply.finish)]),
        integer("consensus.attempts", replied.attempts.into()),
    ];
    if let Some(endpoint) = endpoint {
        attributes.push(text("gen_ai.provider.name", provider(endpoint)));
        attributes.push(text("gen_ai.request.model", endpoint.model()));
        if let Some((host, port)) = server(endpoint) {
            attributes.push(text("server.address", &host));
            attributes.extend(port.map(|port| integer("server.port", port.into())));
        }
    }
    if let Some(agent) = state.opened().setup.everybody().nth(call.agent) {
        attributes.push(number("gen_ai.request.temperature", agent.temperature));
    }
    attributes
}

/// Returns the name of the provider as the conventions have it.
fn provider(endpoint: &Endpoint) -> &str {
    match endpoint {
        Endpoint::Bedrock(_) => "aws.bedrock",
        Endpoint::Mock { .. } => "mock",
        Endpoint::Bank { .. } => "bank",
        // Whatever serves the interface of OpenAI.
        Endpoint::OpenAi(known) if known.provider().is_empty() => "openai",
        Endpoint::OpenAi(known) => known.provider(),
    }
}

/// Returns the host and the port of a server.
fn server(endpoint: &Endpoint) -> Option<(String, Option<u16>)> {
    let url: reqwest::Url = endpoint.place().split(',').next()?.parse().ok()?;
    Some((url.host_str()?.to_owned(), url.port_or_known_default()))
}

/// Returns the reason for the end of a reply as the conventions have it.
fn finish(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Refused => "content_filter",
    }
}

fn message(message: &Message) -> serde_json::Value {
    json!({"role": message.role, "parts": [{"type": "text", "content": message.content}]})
}

/// Returns a time stamp in nanoseconds since 1970; 0 for one that cannot be read.
fn nanos(at: &str) -> u64 {
    let time = humantime::parse_rfc3339(at).unwrap_or(SystemTime::UNIX_EPOCH);
    let since: Duration = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn attribute(key: &str, value: OneValue) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, OneValue::StringValue(value.to_owned()))
}

fn integer(key: &str, value: u64) -> KeyValue {
    attribute(key, OneValue::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn number(key: &str, value: f64) -> KeyValue {
    attribute(key, OneValue::DoubleValue(value))
}

fn boolean(key: &str, value: bool) -> KeyValue {
    attribute(key, OneValue::BoolValue(value))
}

fn list(key: &str, values: &[&str]) -> KeyValue {
    let values = values.iter().map(|value| OneValue::StringValue((*value).to_owned()));
    let values = values.map(|value| AnyValue { value: Some(value) }).collect();
    attribute(key, OneValue::ArrayValue(ArrayValue { values }))
}
