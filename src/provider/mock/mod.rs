//! The `mock` provider: scripted agents that reach every branch of a protocol without a network.
//!
//! A script is JSON lines. Each line is a rule, and the first rule that matches a call answers it. A rule matches by
//! `agent`, `round`, `step`, `draft` and `attempt`, each of which is optional. It then does exactly one thing:
//!
//! - `reply` is sent word for word.
//! - `envelope` is sent with the fields it gives, and neutral ones for the rest.
//! - `policy` is followed.
//! - `status` is sent as an HTTP status.
//! - `garbage` is sent.
//!
//! The field `delay_ms` waits first, and `truncate` cuts the reply as a token limit would. The field `yes` is the
//! probability of that word where it is measured, in ten-thousandths.
//!
//! A comparison of two texts for which there is no rule ends in a tie.
//!
//! A script knows nothing that a model would not know, because it sees the request alone.

mod policy;
mod script;

pub use script::MockScript;

use std::time::Duration;

use policy::{Policy, PolicyKind};
use script::RuleAction;

use super::ProviderError;
use super::completion::Completion;
use protocol::core::Usage;
use protocol::{Ask, Finish, Reply, Step};

/// A scripted agent.
#[derive(Debug)]
pub struct Mock {
    agent: String,
    script: MockScript,
}

impl Mock {
    /// Reads an endpoint's script on behalf of `agent`.
    ///
    /// Returns [`ProviderError::Setup`] with the script's line.
    pub fn new(script: &str, agent: &str) -> Result<Self, ProviderError> {
        let script = script.parse::<MockScript>().map_err(ProviderError::Setup)?;
        Ok(Self { agent: agent.to_owned(), script })
    }

    /// Answers one call as the script says.
    ///
    /// Returns [`ProviderError::Status`] if the script says so, and [`ProviderError::Setup`] if no rule matches.
    pub async fn ask(&self, ask: &Ask) -> Result<Completion, ProviderError> {
        let Some(rule) = self.script.rules.iter().find(|rule| rule.matches(&self.agent, ask.call)) else {
            if ask.call.step == Step::Weigh && self.script.plays(&self.agent) {
                return Ok(answer(ask, policy::NO_OPINION.to_owned(), None, None));
            }
            let why = format!("the mock script has no rule for agent `{}`, call {}", self.agent, ask.call);
            return Err(ProviderError::Setup(why));
        };
        if rule.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(rule.delay_ms)).await;
        }
        let text = match &rule.act {
            RuleAction::Reply(text) => text.clone(),
            RuleAction::Envelope(fields) => policy::envelope(ask, fields),
            RuleAction::Policy(policy) => policy.reply(ask),
            RuleAction::Garbage => garbage(ask),
            RuleAction::Status(status) => return Err(fault(*status)),
        };
        Ok(answer(ask, text, rule.truncate, rule.yes))
    }
}

/// Returns the reply of an agent that gives this answer to every question.
pub fn agreeing(ask: &Ask, answer: &str) -> Reply {
    let policy = Policy { kind: PolicyKind::Honest, answer: answer.to_owned(), draft_answer: None };
    Reply { text: policy.reply(ask), reasoning: None, finish: Finish::Stop, yes: None, model: None }
}

fn answer(ask: &Ask, mut text: String, truncate: Option<usize>, yes: Option<u16>) -> Completion {
    let mut finish = Finish::Stop;
    if let Some(bytes) = truncate {
        text.truncate(text.floor_char_boundary(bytes));
        finish = Finish::Length;
    }
    let usage = Usage {
        prompt: ask.prompt_tokens_estimate(),
        cached: 0,
        completion: (text.len() as u64).div_ceil(3),
        estimated: false,
        cost_micro_usd: None,
    };
    let yes = ask.shape.measured().and(yes);
    let reply = Reply { text, reasoning: None, finish, yes, model: None };
    Completion { reply, usage, structured: None, attempts: 1, receipt: None, key_removed: false }
}

fn fault(status: u16) -> ProviderError {
    ProviderError::Status {
        url: "mock".to_owned(),
        status,
        message: "as the script says".to_owned(),
        hint: "",
        retry_after: None,
    }
}

/// Returns text that is not an envelope, different for each call and the same in each run.
fn garbage(ask: &Ask) -> String {
    let digest = ask.digest.to_string();
    format!("{{\"role\": \"{}\u{0} ]]}} \u{202e}{}", &digest[..8], &digest[8..40])
}
