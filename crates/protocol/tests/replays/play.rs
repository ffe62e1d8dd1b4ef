//! One run of a machine, whose samples are those of a bank.
//!
//! The input is a roleset of the program with its packs, and samples in an order. The output is whether the answer of the run is right, and
//! the tokens that it has taken. Every request is the machine's own. No reply comes from a model: a sample answers as the bank has it, and a
//! form is filled in by its schema.

use std::collections::VecDeque;

use protocol::text::{CanonicalRule, TextMemos};
use protocol::{
    Action, AgentSetup, Ask, Event, Finish, Interpreter, Method, Outcome, Params, Protocol as _,
    ProtocolParams as _, Reply, ReplyShape, RunSetup, Setup, Step, Task,
};
use serde_json::{Map, Value};

use crate::bank::{BankSample, SampleBank, repository};

/// The text of a field that a model writes freely. It is as long as those of small models.
const SENTENCES: &str = "The question asks for one answer that follows from what it states. A good answer gives it alone, in the \
                         form that is asked for.";
/// The bytes of a reply for one of its tokens.
const REPLY_BYTES: u64 = 4;

/// The tokens and the result of one run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlayedRun {
    pub(crate) is_right: bool,
    /// The number of samples that were asked for.
    pub(crate) samples: u64,
    /// The tokens of these samples, with their prompts.
    pub(crate) sample_tokens: u64,
    /// The tokens of all other calls, with their prompts, by estimate.
    pub(crate) other_tokens: u64,
    /// The bytes of the longest prompt of a sample.
    pub(crate) prompt_bytes: u64,
}

/// The tokens of a text of so many bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenRate {
    pub(crate) tokens: u64,
    pub(crate) bytes: u64,
}

impl TokenRate {
    /// Returns an estimate of the tokens of a prompt, rounded up.
    pub(crate) fn estimate(self, bytes: u64) -> u64 {
        (bytes * self.tokens).div_ceil(self.bytes)
    }
}

/// Makes the setup of a roleset of the program, with these parameters in place of its own. Voters that write programs are left out, because
/// their samples take other prompts.
pub(crate) fn setup(roleset: &str, changes: &[(&str, &str)], rule: &CanonicalRule, prompt: &str) -> RunSetup {
    let file = std::fs::read_to_string(repository(&format!("rolesets/{roleset}.json"))).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let mut params = file["params"].clone();
    params["protocol"] = file["protocol"].clone();
    for (name, value) in changes {
        params[name] = (*value).into();
    }
    let params: Params = serde_json::from_value(params).unwrap();
    let agents = file["agents"].as_array().unwrap().iter().filter(|agent| agent["method"] != "program");
    Setup {
        roleset: roleset.to_owned(),
        task: Task { prompt: prompt.to_owned(), ..Task::default() },
        seed: 1,
        agents: agents.map(agent_setup).collect(),
        arbiter: None,
        canonical: rule.clone(),
        rules: params.rules().to_owned(),
        params,
        check_command: None,
        interpreter: Interpreter::default(),
        chunk_plan: None,
        memos: TextMemos::default(),
    }
}

fn agent_setup(written: &Value) -> AgentSetup {
    let text = |name: &str| written[name].as_str().unwrap().to_owned();
    let pack = std::fs::read_to_string(repository("rolesets/packs").join(text("pack"))).unwrap();
    let (pack, comparing) = pack.split_once("## Comparing").unwrap_or((&pack, ""));
    AgentSetup {
        name: text("name"),
        domain: text("domain"),
        pack: pack.trim().to_owned(),
        comparing: comparing.trim().to_owned(),
        temperature: 0.7,
        max_tokens: 700,
        method: Method::Words,
    }
}

/// Plays a run to its end. The samples are those of the bank in this order, as the machine asks for them.
pub(crate) fn play(setup: &RunSetup, bank: &SampleBank, order: &[&BankSample], rate: TokenRate) -> PlayedRun {
    let mut machine = setup.clone().machine();
    let (mut run, mut samples) = (PlayedRun::default(), order.iter());
    let (mut open, mut event) = (VecDeque::new(), Event::Started);
    loop {
        for action in machine.step(&event).unwrap() {
            // A request that is cancelled later has cost its tokens.
            if let Action::Ask(ask) = &action {
                let reply = answer(ask, &mut samples, bank, rate, &mut run);
                open.push_back((ask.call, reply));
            }
            if let Action::Cancel(call) = &action {
                open.retain(|(other, _)| other != call);
            }
            if let Action::Finish(outcome) = &action {
                run.is_right = is_right(outcome, order);
                return run;
            }
        }
        let (call, reply) = open.pop_front().expect("a run that has not ended waits for a reply");
        event = Event::Replied { call, reply };
    }
}

/// Returns the reply to a request, and adds its tokens.
fn answer<'a>(
    ask: &Ask,
    samples: &mut impl Iterator<Item = &'a &'a BankSample>,
    bank: &SampleBank,
    rate: TokenRate,
    run: &mut PlayedRun,
) -> Reply {
    let bytes = ask.messages.iter().map(|message| message.content.len() as u64).sum();
    let (text, finish) = match &ask.shape {
        ReplyShape::Free => {
            assert_eq!((ask.call.step, ask.call.attempt), (Step::Sample, 0), "{}", ask.call);
            let sample = samples.next().expect("a bank has the samples that a run may ask for");
            run.samples += 1;
            run.sample_tokens += bank.tokens(sample);
            run.prompt_bytes = run.prompt_bytes.max(bytes);
            match &sample.answer {
                Some(answer) => (format!("Step by step.\nAnswer: {answer}"), Finish::Stop),
                // Such a sample was cut off.
                None => ("Step by step".to_owned(), Finish::Length),
            }
        }
        ReplyShape::Json { schema, .. } => {
            let text = filled_in(&schema.to_value()).to_string();
            run.other_tokens += rate.estimate(bytes) + (text.len() as u64).div_ceil(REPLY_BYTES);
            (text, Finish::Stop)
        }
    };
    Reply { text, reasoning: None, finish, yes: None, model: None }
}

/// Returns a value that follows a schema: the first of several choices, two sentences for a text, and one item for a list that may have one.
fn filled_in(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    if let Some(first) = schema["anyOf"].get(0) {
        return filled_in(first);
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let filled = fields.map(|name| (name.to_owned(), filled_in(&schema["properties"][name])));
            Value::Object(filled.collect::<Map<_, _>>())
        }
        Some("array") if schema["maxItems"] == 0 => Value::Array(Vec::new()),
        Some("array") => Value::Array(vec![filled_in(&schema["items"])]),
        Some("number") => 0.8.into(),
        Some("boolean") => false.into(),
        _ => {
            let longest = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
            SENTENCES.chars().take(usize::try_from(longest).unwrap()).collect::<String>().into()
        }
    }
}

/// Returns whether an outcome is an answer that the bank knows as right. Every answer of a run is that of a sample, in its words.
fn is_right(outcome: &Outcome, order: &[&BankSample]) -> bool {
    let Outcome::Agreed { text, .. } = outcome else { return false };
    let sample = order.iter().find(|sample| sample.answer.as_ref() == Some(text));
    sample.expect("an agreed answer is that of a sample").is_right
}
