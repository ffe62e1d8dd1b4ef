//! `consensus doctor`: examines each provider with real calls, and prints what to change.
//!
//! It tests whether the server really enforces JSON schemas: the server is asked for prose under a schema that only a fixed and
//! unlikely string satisfies. A model would not write that string by chance.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::{Value, json};

use crate::cli::args::{DoctorArgs, Format};
use crate::cli::output::Output;
use crate::cli::run_to_end::block_on;
use crate::cli::table::cell;
use crate::config::{
    BetterVote, Chosen, FileConfig, Origin, QuestionHints, Roleset, Sourced, better_vote, default_roleset,
    explain,
};
use crate::provider::{Clients, Completion, Provider, ProviderError, ServerInfo};
use crate::run::{NamedRoleset, SERVER_LOG, open_endpoints, read_named, runs_folder};
use protocol::core::{Endpoint, ExitCode, OptionalParameter, Structured};
use protocol::text::escape;
use protocol::{Ask, CallId, Conversation, ReplyShape, Role, Step};

/// A string that no model writes unless a grammar forces it to.
const UNLIKELY: &str = "vq7-kestrel-0419";

/// The context, in tokens, below which the built-in rolesets run out of room.
const CONTEXT_WANTED: u64 = 8192;

pub(crate) fn doctor(args: &DoctorArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let file = FileConfig::load()?;
    // A run without a named roleset uses this one, unless its flags say more about the question.
    let usual = default_roleset(QuestionHints::default()).name;
    let reference = args.roleset.as_deref().or(file.roleset.as_deref()).unwrap_or(usual);
    let folder = args.rolesets.rolesets_dir.as_ref();
    let NamedRoleset { name, roleset, .. } = read_named(Some(reference), folder, &file)?;
    block_on(async {
        let mut chosen = args.server.chosen();
        let log = runs_folder(None, &file).join("doctor").join(SERVER_LOG);
        let (server, endpoints) = open_endpoints(&mut chosen, &file, &roleset, &log, output).await?;
        let mut endpoints = explain_endpoints(&chosen, &file, &roleset, endpoints)?;
        endpoints.dedup_by(|(a, _), (b, _)| a.label() == b.label());
        let named = explain_roleset(args, &file, name);
        let mut reports = Vec::new();
        for (endpoint, values) in endpoints {
            if !matches!(endpoint, Endpoint::Mock { .. }) {
                output.status(&escape::terminal(&format!("examining {} …", endpoint.label())));
                let mut report = examine(endpoint).await;
                report["settings"] = [&named].into_iter().chain(&values).map(source_row).collect();
                if let (Some(vote), Some(advice)) =
                    (better_vote(&named.value), report["advice"].as_array_mut())
                {
                    advice.push(advice_of_vote(&named.value, &vote).into());
                }
                reports.push(report);
            }
        }
        if let Some(server) = server {
            server.end().await;
        }
        let healthy = reports.iter().all(|r| r["usable"] == true);
        if output.format == Format::Text {
            for report in &reports {
                print_report(report, output)?;
            }
        } else {
            output.json(&json!(reports))?;
        }
        Ok(if healthy { ExitCode::Success } else { ExitCode::Provider })
    })?
}

/// Returns the endpoint of each agent, with the values by which it is called and their origins.
fn explain_endpoints(
    chosen: &Chosen,
    file: &FileConfig,
    roleset: &Roleset,
    endpoints: Vec<Endpoint>,
) -> anyhow::Result<Vec<(Endpoint, Vec<Sourced>)>> {
    let mut explained = Vec::new();
    for (agent, endpoint) in roleset.agents.iter().chain(&roleset.arbiter).zip(endpoints) {
        let values = explain(chosen, file, agent.model.as_deref(), &endpoint)?;
        explained.push((endpoint, values));
    }
    Ok(explained)
}

/// Returns the roleset's name with its origin.
fn explain_roleset(args: &DoctorArgs, file: &FileConfig, name: String) -> Sourced {
    let given = args.roleset.as_ref().map(|name| Origin::given("--roleset", "CONSENSUS_ROLESET", name));
    let origin = given.unwrap_or_else(|| Origin::of_setting(file, ["roleset"]));
    Sourced { name: "roleset".to_owned(), value: name, origin }
}

fn source_row(value: &Sourced) -> Value {
    json!({"name": value.name, "value": value.value, "by": value.origin.to_string()})
}

async fn examine(mut endpoint: Endpoint) -> Value {
    let label = endpoint.label();
    if let Endpoint::OpenAi(endpoint) = &mut endpoint {
        // A server that is still loading its model is a finding here, so it is not awaited.
        endpoint.timeouts.ready_ms = 0;
    }
    let server = match Provider::new(&endpoint, "doctor", &Clients::default()) {
        Ok(server) => server,
        Err(why) => return failure_row(&label, &why),
    };
    let info = match &server {
        // Some servers list no models and still work.
        Provider::OpenAi(server) => server.info().await.unwrap_or_default(),
        Provider::Bedrock(_) | Provider::Mock(_) | Provider::Bank { .. } | Provider::Reusing { .. } => {
            ServerInfo::default()
        }
    };
    let began = Instant::now();
    let mut left_out = BTreeSet::new();
    let first = match ask_without(&server, &prose(0), &mut left_out).await {
        Ok(answer) => answer,
        Err(why) => return failure_row(&label, &why),
    };
    let seconds = began.elapsed().as_secs_f64();
    let second = ask_without(&server, &prose(1), &mut left_out).await;
    let cached = second.as_ref().map_or(0, |a| a.usage.cached);
    let schema = schema_enforcement(&server, &mut left_out).await;
    let speed = first.usage.completion as f64 / seconds.max(0.001);
    let mut advice = advice(&endpoint, &info.models, info.context_tokens, &first, cached, &schema);
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.iter().map(|parameter| format!("\"{parameter}\"")).collect();
        advice.push(format!("the server refuses parameters; set `leave_out = [{}]`", names.join(", ")));
    }
    json!({
        "provider": label,
        "usable": true,
        "models": info.models,
        "context_tokens": info.context_tokens,
        "schema": schema,
        "usage_reported": !first.usage.estimated,
        "cached_tokens_reported": cached > 0,
        "tokens_per_second": (speed * 10.0).round() / 10.0,
        "advice": advice,
    })
}

fn failure_row(label: &str, why: &ProviderError) -> Value {
    json!({"provider": label, "usable": false, "problem": why.to_string(), "advice": []})
}

/// Calls the model without each parameter that its server refuses, and collects these.
async fn ask_without(
    server: &Provider,
    ask: &Ask,
    left_out: &mut BTreeSet<OptionalParameter>,
) -> Result<Completion, ProviderError> {
    loop {
        match server.ask(ask, &|_| {}).await {
            Err(ProviderError::Parameter { parameter, .. }) => {
                server.leave_out(parameter);
                left_out.insert(parameter);
            }
            other => return other,
        }
    }
}

/// Returns `enforced`, `ignored`, `json_object`, `refused`, or the error.
async fn schema_enforcement(server: &Provider, left_out: &mut BTreeSet<OptionalParameter>) -> String {
    match ask_without(server, &under_schema(), left_out).await {
        Ok(Completion { structured: Some(Structured::JsonSchema), reply, .. }) => {
            let value: Value = serde_json::from_str(reply.text.trim()).unwrap_or_default();
            if value["word"] == UNLIKELY { "enforced".to_owned() } else { "ignored".to_owned() }
        }
        Ok(Completion { structured: Some(Structured::JsonObject), .. }) => "json_object".to_owned(),
        Ok(_) => "refused".to_owned(),
        Err(why) => why.to_string(),
    }
}

fn advice_of_vote(roleset: &str, vote: &BetterVote) -> String {
    let BetterVote { name, tasks, times } = vote;
    format!(
        "on {tasks}, a model of 1.5B was right less often with `{roleset}` than with `{name}` and `--on-disagreement leader`, for {times} times the tokens; `consensus eval` compares them on your tasks"
    )
}

fn advice(
    endpoint: &Endpoint,
    models: &[String],
    context: Option<u64>,
    first: &Completion,
    cached: u64,
    schema: &str,
) -> Vec<String> {
    let mut advice = Vec::new();
    let model = endpoint.model();
    if !models.is_empty() && !models.iter().any(|listed| listed == model) {
        advice.push(format!("the server does not list `{model}`; it lists {}", models.join(", ")));
    }
    if let Some(tokens) = context.filter(|t| *t < CONTEXT_WANTED) {
        advice.push(format!("a context of {tokens} tokens is short for several rounds; raise it to {CONTEXT_WANTED} (llama.cpp: -c, per slot; vLLM: --max-model-len; Ollama: OLLAMA_CONTEXT_LENGTH)"));
    }
    match schema {
        "enforced" => {}
        "ignored" => advice.push("the server ignores JSON schemas; replies are still validated here, but small models will need repairs".to_owned()),
        _ => advice.push("the server enforces no schema; use one that does (vLLM, llama.cpp, a recent Ollama) for small models".to_owned()),
    }
    if first.usage.estimated {
        advice.push("the server reports no token usage; budgets use estimates".to_owned());
    }
    if cached == 0 && !matches!(endpoint, Endpoint::Bedrock(_)) {
        advice.push("the server reports no reused prompt tokens (vLLM: --enable-prefix-caching --enable-prompt-tokens-details); long conversations take more time".to_owned());
    }
    advice
}

fn print_report(report: &Value, output: &Output) -> anyhow::Result<()> {
    output.line(&cell(report, "provider"))?;
    for setting in report["settings"].as_array().into_iter().flatten() {
        let [name, value, by] = ["name", "value", "by"].map(|name| cell(setting, name));
        output.line(&format!("  set              {name} = {value}, by {by}"))?;
    }
    if report["usable"] != true {
        output.line(&format!("  not usable  {}", cell(report, "problem")))?;
        return Ok(());
    }
    let models: Vec<&str> =
        report["models"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let context =
        report["context_tokens"].as_u64().map_or("not reported".to_owned(), |t| format!("{t} tokens"));
    output.line(&format!(
        "  models           {}",
        if models.is_empty() { "not reported".to_owned() } else { escape::terminal(&models.join(", ")) }
    ))?;
    output.line(&format!("  context          {context}"))?;
    output.line(&format!("  schema           {}", cell(report, "schema")))?;
    output.line(&format!("  usage reported   {}", yes_or_no(report, "usage_reported")))?;
    output.line(&format!("  cached reported  {}", yes_or_no(report, "cached_tokens_reported")))?;
    output.line(&format!("  speed            {} tokens/s", report["tokens_per_second"]))?;
    for advice in report["advice"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        output.line(&format!("  change           {}", escape::terminal(advice)))?;
    }
    Ok(())
}

fn yes_or_no(report: &Value, name: &str) -> &'static str {
    if report[name] == true { "yes" } else { "no" }
}

/// Returns a short question. Both attempts begin with the same words, which are long enough for any cache block.
fn prose(attempt: u32) -> Ask {
    let system = "You answer questions about the weather in one short sentence. ".repeat(24);
    let question = if attempt == 0 { "How does rain form?" } else { "How does snow form?" };
    ask(attempt, system, question, ReplyShape::Free, 48)
}

fn under_schema() -> Ask {
    let schema = json!({
        "type": "object",
        "properties": {"word": {"type": "string", "enum": [UNLIKELY]}},
        "required": ["word"],
        "additionalProperties": false,
    });
    let shape = ReplyShape::Json { name: "probe", schema: (&schema).into(), measured: None };
    ask(
        2,
        "You write plain prose.".to_owned(),
        "Which city is the capital of France? Answer with a JSON object.",
        shape,
        64,
    )
}

fn ask(attempt: u32, system: String, question: &str, shape: ReplyShape, max_tokens: u32) -> Ask {
    let mut conversation = Conversation::new(system);
    conversation.push(Role::User, question.to_owned());
    let call = CallId { part: 0, round: 0, agent: 0, draft: 0, step: Step::Think, attempt };
    let digest = Ask::digest_of(conversation.digest(), &shape, max_tokens, 0.0, 1);
    let messages = conversation.messages().to_vec();
    Ask { call, messages, shape, max_tokens, temperature: 0.0, seed: 1, digest, refused: None }
}
