//! Reads a mock script.

use std::str::FromStr;

use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use super::policy::{Policy, PolicyKind};
use protocol::{CallId, Step};

/// The rules of a script, in order.
#[derive(Clone, Debug)]
pub struct MockScript {
    pub(super) rules: Vec<Rule>,
}

/// A line of a script that cannot be used.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error("mock script line {line}: {why}")]
pub struct ScriptError {
    line: usize,
    why: String,
}

/// One rule, checked.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    when: When,
    pub(super) delay_ms: u64,
    pub(super) truncate: Option<usize>,
    pub(super) yes: Option<u16>,
    pub(super) act: Act,
}

/// The calls that a rule is for.
#[derive(Clone, Debug)]
struct When {
    agent: Option<String>,
    round: Option<u32>,
    step: Option<Step>,
    draft: Option<u32>,
    attempt: Option<u32>,
}

/// The action of a rule.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Reply(String),
    Envelope(Map<String, Value>),
    Policy(Policy),
    Garbage,
    Status(u16),
}

/// One line, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    agent: Option<String>,
    round: Option<u32>,
    step: Option<StepName>,
    draft: Option<u32>,
    attempt: Option<u32>,
    #[serde(default)]
    delay_ms: u64,
    truncate: Option<usize>,
    yes: Option<u16>,
    reply: Option<String>,
    envelope: Option<Map<String, Value>>,
    policy: Option<PolicyKind>,
    answer: Option<String>,
    draft_answer: Option<String>,
    #[serde(default)]
    garbage: bool,
    status: Option<u16>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StepName {
    Think,
    Sample,
    Envelope,
    Choose,
    Weigh,
}

impl MockScript {
    /// Returns the names of the agents that have rules of their own.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(|rule| rule.when.agent.as_deref())
    }

    /// Returns true if some rule may answer calls of the agent named `agent`.
    pub fn plays(&self, agent: &str) -> bool {
        self.rules.iter().any(|rule| rule.when.agent.as_ref().is_none_or(|name| name == agent))
    }
}

impl FromStr for MockScript {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let rule = |(index, line): (usize, &str)| {
            let at = |why| ScriptError { line: index + 1, why };
            let line: Line = serde_json::from_str(line).map_err(|e| at(e.to_string()))?;
            line.check().map_err(at)
        };
        let rules: Vec<Rule> = lines.map(rule).collect::<Result<_, _>>()?;
        if rules.is_empty() {
            return Err(ScriptError { line: 1, why: "the script has no rules".to_owned() });
        }
        Ok(Self { rules })
    }
}

impl Line {
    fn check(self) -> Result<Rule, String> {
        let policy = match (self.policy, self.answer) {
            (Some(kind), Some(answer)) => {
                Some(Act::Policy(Policy { kind, answer, draft_answer: self.draft_answer }))
            }
            (None, None) => None,
            (Some(_), None) => return Err("`policy` needs an `answer`".to_owned()),
            (None, Some(_)) => return Err("`answer` goes with a `policy`".to_owned()),
        };
        let acts = [
            self.reply.map(Act::Reply),
            self.envelope.map(Act::Envelope),
            policy,
            self.garbage.then_some(Act::Garbage),
            self.status.map(Act::Status),
        ];
        let mut acts = acts.into_iter().flatten();
        let (Some(act), None) = (acts.next(), acts.next()) else {
            return Err("a rule must have exactly one of reply, envelope, policy, garbage, status".to_owned());
        };
        let step = self.step.map(|name| match name {
            StepName::Think => Step::Think,
            StepName::Sample => Step::Sample,
            StepName::Envelope => Step::Envelope,
            StepName::Choose => Step::Choose,
            StepName::Weigh => Step::Weigh,
        });
        let (agent, round, draft, attempt) = (self.agent, self.round, self.draft, self.attempt);
        let when = When { agent, round, step, draft, attempt };
        Ok(Rule { when, delay_ms: self.delay_ms, truncate: self.truncate, yes: self.yes, act })
    }
}

impl Rule {
    /// Returns true if this rule answers the call of the agent named `agent`.
    pub(super) fn matches(&self, agent: &str, call: CallId) -> bool {
        let When { agent: name, round, step, draft, attempt } = &self.when;
        // A scripted envelope says nothing about private thoughts, unless the rule asks for them.
        let thinks = matches!(call.step, Step::Think | Step::Sample | Step::Weigh) && step.is_none();
        let fits_step = match self.act {
            Act::Envelope(_) | Act::Garbage => !thinks,
            Act::Reply(_) | Act::Policy(_) | Act::Status(_) => true,
        };
        fits_step
            && name.as_ref().is_none_or(|n| n == agent)
            && round.is_none_or(|r| r == call.round)
            && step.is_none_or(|s| s == call.step)
            && draft.is_none_or(|d| d == call.draft)
            && attempt.is_none_or(|a| a == call.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(script: &str, part: &str) {
        let message = script.parse::<MockScript>().unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }

    #[test]
    fn mistakes_name_their_line() {
        refused("", "line 1: the script has no rules");
        refused("{\"garbage\":true}\n{\"reply\":\"x\",\"status\":500}", "line 2: a rule must have");
        refused("{\"polcy\":\"honest\"}", "unknown field `polcy`");
        refused("{\"policy\":\"honest\"}", "needs an `answer`");
    }
}
