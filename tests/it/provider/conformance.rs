//! What runs rely on, tried on a real server.
//!
//! Ignored without one: `tests/experiments/run.sh conformance` starts llama.cpp's server and runs these, and
//! `CONSENSUS_TEST_SERVER=http://127.0.0.1:8000/v1 cargo test conformance -- --ignored` takes any other.

use std::collections::BTreeSet;
use std::sync::Arc;

use consensus::config::{EMBEDDED_ROLESETS, find_roleset, load_roleset};
use consensus::provider::{Completion, OpenAi, ProviderError};
use crypto::Digest;
use protocol::core::{OpenAiEndpoint, Structured};
use protocol::{
    Action, Ask, CallId, Conversation, Event, Finish, Message, Params, Reply, ReplyShape, Role, Step, Task,
    Thinking,
};
use serde_json::json;

use crate::support::Tiny;

const WHERE: &str = "needs a server: tests/experiments/run.sh conformance";

fn endpoint() -> OpenAiEndpoint {
    let url = std::env::var("CONSENSUS_TEST_SERVER").expect(WHERE);
    OpenAiEndpoint::bare(&url)
}

/// Runs asks on the server in turn, with its own name of its first model.
fn on_server<T>(stream: bool, work: impl AsyncFnOnce(&OpenAi) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut endpoint = OpenAiEndpoint { stream, ..endpoint() };
        let info = OpenAi::new(endpoint.clone()).unwrap().info().await.unwrap();
        endpoint.model = info.models.first().expect("the server lists its model").clone();
        work(&OpenAi::new(endpoint).unwrap()).await
    })
}

async fn call(server: &OpenAi, ask: &Ask) -> Result<Completion, ProviderError> {
    server.ask(ask, &|_| {}).await
}

fn ask(prompt: &str, shape: ReplyShape, max_tokens: u32) -> Ask {
    let mut conversation = Conversation::new("You answer in short sentences.".to_owned());
    conversation.push(Role::User, prompt.to_owned());
    let call = CallId { part: 0, round: 1, agent: 0, draft: 0, step: Step::Envelope, attempt: 0 };
    let messages: Vec<Arc<Message>> = conversation.messages().to_vec();
    Ask { call, messages, shape, max_tokens, temperature: 0.0, seed: 1, digest: Digest::ZERO, refused: None }
}

#[test]
#[ignore = "needs a model server: tests/experiments/run.sh conformance"]
fn replies_come_whole_and_streamed_with_their_usage() {
    for stream in [false, true] {
        let answer = on_server(stream, async |server| {
            call(server, &ask("What is the capital of France?", ReplyShape::Free, 40)).await.unwrap()
        });
        assert_eq!(answer.reply.finish, Finish::Stop, "{answer:?}");
        assert!(answer.reply.text.contains("Paris"), "{answer:?}");
        assert!(!answer.usage.estimated && answer.usage.completion > 0, "{answer:?}");
    }
}

#[test]
#[ignore = "needs a model server: tests/experiments/run.sh conformance"]
fn a_reply_cut_at_its_limit_says_so() {
    let answer = on_server(true, async |server| {
        call(server, &ask("Count from one to a hundred in words.", ReplyShape::Free, 8)).await.unwrap()
    });
    assert_eq!(answer.reply.finish, Finish::Length, "{answer:?}");
}

#[test]
#[ignore = "needs a model server: tests/experiments/run.sh conformance"]
fn prompt_beyond_context_reports_overflow() {
    let error = on_server(true, async |server| {
        let tokens = server.info().await.unwrap().context_tokens.expect("the server tells its context");
        let long = "word ".repeat(usize::try_from(tokens).unwrap() * 2);
        call(server, &ask(&long, ReplyShape::Free, 8)).await.unwrap_err()
    });
    assert!(matches!(error, ProviderError::Overflow { .. }), "{error}");
}

#[test]
#[ignore = "needs a model server: tests/experiments/run.sh conformance"]
fn a_schema_is_enforced_and_not_only_accepted() {
    let schema = json!({"type": "object", "properties": {"word": {"type": "string", "enum": ["vq7-kestrel"]}},
        "required": ["word"], "additionalProperties": false});
    let shape = ReplyShape::Json { name: "probe", schema: (&schema).into(), measured: None };
    let answer = on_server(true, async |server| {
        call(server, &ask("What is the capital of France?", shape, 60)).await.unwrap()
    });
    assert_eq!(answer.structured, Some(Structured::JsonSchema));
    assert_eq!(answer.reply.text.replace(char::is_whitespace, ""), "{\"word\":\"vq7-kestrel\"}");
}

/// Every form that an agent may be asked for, of every roleset that comes with the program.
#[test]
#[ignore = "needs a model server: tests/experiments/run.sh conformance"]
fn every_schema_of_every_roleset_holds_the_reply() {
    let mut forms = BTreeSet::new();
    for (file, _) in EMBEDDED_ROLESETS {
        let name = file.trim_end_matches(".json");
        let (mut roleset, packs) = load_roleset(&find_roleset(name, &[]).unwrap()).unwrap();
        // Two of a panel come to their ballots, and no member has a form that another has not.
        if let Params::Panel(_) = roleset.params {
            roleset.agents.truncate(2);
        }
        for agent in &mut roleset.agents {
            agent.max_tokens = agent.max_tokens.min(300);
        }
        match &mut roleset.params {
            Params::Pair(params) => params.thinking = Thinking::None,
            Params::Council(params) => params.thinking = Thinking::None,
            Params::Panel(params) => params.thinking = Thinking::None,
            Params::Approval(params) => params.thinking = Thinking::None,
            // A voter writes its form only after words without an answer.
            Params::Vote(_) => continue,
        }
        // The forms of two rolesets with the same rules and parameters differ in names alone.
        if !forms.insert(format!("{:?} {:?}", roleset.canonical, roleset.params)) {
            continue;
        }
        let mut task = Task { prompt: "Say something short that fits.".to_owned(), ..Task::default() };
        if let Params::Approval(_) = roleset.params {
            task.documents.push(Tiny::diff());
        }
        let mut machine = roleset.setup(name, &packs, task, 1).machine();
        let mut asks: Vec<Ask> = asked(machine.step(&Event::Started).unwrap());
        let mut seen = 0;
        on_server(true, async |server| {
            // The two drafts, and the turn or two that follow from what the model makes of them.
            while seen < 4
                && let Some(ask) = asks.pop()
            {
                seen += 1;
                let answer = call(server, &ask).await.unwrap();
                // A comparison of two texts is asked for in free text.
                if let ReplyShape::Json { schema, .. } = &ask.shape {
                    assert_eq!(answer.structured, Some(Structured::JsonSchema), "{name}");
                    let Reply { text, finish, .. } = &answer.reply;
                    assert!(*finish == Finish::Length || schema.admits(text), "{name}: {text}");
                }
                let event = Event::Replied { call: ask.call, reply: answer.reply };
                asks.extend(asked(machine.step(&event).unwrap()));
            }
        });
    }
}

fn asked(actions: Vec<Action>) -> Vec<Ask> {
    let ask = |action| match action {
        Action::Ask(ask) => Some(ask),
        Action::Search(_)
        | Action::Execute(_)
        | Action::Cancel(_)
        | Action::AwaitPermit
        | Action::Finish(_) => None,
    };
    actions.into_iter().filter_map(ask).collect()
}

#[test]
#[ignore = "needs a model server: tests/experiments/run.sh conformance"]
fn what_was_sent_before_is_reused_and_reported() {
    let answer = on_server(true, async |server| {
        let long = "The weather report said rain. ".repeat(60);
        call(server, &ask(&format!("{long}What did it say?"), ReplyShape::Free, 16)).await.unwrap();
        call(server, &ask(&format!("{long}Who said so?"), ReplyShape::Free, 16)).await.unwrap()
    });
    assert!(answer.usage.cached * 2 > answer.usage.prompt, "{:?}", answer.usage);
}
