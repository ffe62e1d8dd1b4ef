//! Reads a mock script.

use std::str::FromStr;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::policy::{Policy, PolicyKind};
use protocol::{CallId, Step};

/// The rules of a script, in order.
#[derive(Clone, Debug)]
pub struct MockScript {
    pub(super) rules: Vec<Rule>,
}

/// A checked rule. Its first five fields say which calls it is for.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    agent: Option<String>,
    round: Option<u32>,
    step: Option<Step>,
    draft: Option<u32>,
    attempt: Option<u32>,
    pub(super) delay_ms: u64,
    pub(super) truncate: Option<usize>,
    pub(super) yes: Option<u16>,
    pub(super) act: RuleAction,
}

/// The action of a rule.
#[derive(Clone, Debug)]
pub(super) enum RuleAction {
    Reply(String),
    Envelope(Map<String, Value>),
    Policy(Policy),
    Garbage,
    Status(u16),
}

/// One line, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "Line")]
struct ScriptLine {
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
        self.rules.iter().filter_map(|rule| rule.agent.as_deref())
    }

    /// Returns true if some rule may answer calls of the agent named `agent`.
    pub fn plays(&self, agent: &str) -> bool {
        self.rules.iter().any(|rule| rule.agent.as_ref().is_none_or(|name| name == agent))
    }
}

impl FromStr for MockScript {
    /// The number of a line that cannot be used, with the reason.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut rules = Vec::new();
        for (line, text) in (1_usize..).zip(text.lines()) {
            if text.trim().is_empty() {
                continue;
            }
            let rule = serde_json::from_str(text).map_err(|why| why.to_string()).and_then(ScriptLine::check);
            rules.push(rule.map_err(|why| format!("mock script line {line}: {why}"))?);
        }
        if rules.is_empty() {
            return Err("mock script line 1: the script has no rules".to_owned());
        }
        Ok(Self { rules })
    }
}

impl ScriptLine {
    fn check(self) -> Result<Rule, String> {
        let policy = match (self.policy, self.answer) {
            (Some(kind), Some(answer)) => {
                Some(RuleAction::Policy(Policy { kind, answer, draft_answer: self.draft_answer }))
            }
            (None, None) => None,
            (Some(_), None) => return Err("`policy` needs an `answer`".to_owned()),
            (None, Some(_)) => return Err("`answer` goes with a `policy`".to_owned()),
        };
        let acts = [
            self.reply.map(RuleAction::Reply),
            self.envelope.map(RuleAction::Envelope),
            policy,
            self.garbage.then_some(RuleAction::Garbage),
            self.status.map(RuleAction::Status),
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
        Ok(Rule {
            agent: self.agent,
            round: self.round,
            step,
            draft: self.draft,
            attempt: self.attempt,
            delay_ms: self.delay_ms,
            truncate: self.truncate,
            yes: self.yes,
            act,
        })
    }
}

impl Rule {
    /// Returns true if this rule answers the call of the agent named `agent`.
    pub(super) fn matches(&self, agent: &str, call: CallId) -> bool {
        // A scripted envelope says nothing about private thoughts, unless the rule asks for them.
        let thinks = matches!(call.step, Step::Think | Step::Sample | Step::Weigh) && self.step.is_none();
        let fits_step = match self.act {
            RuleAction::Envelope(_) | RuleAction::Garbage => !thinks,
            RuleAction::Reply(_) | RuleAction::Policy(_) | RuleAction::Status(_) => true,
        };
        fits_step
            && self.agent.as_ref().is_none_or(|name| name == agent)
            && self.round.is_none_or(|round| round == call.round)
            && self.step.is_none_or(|step| step == call.step)
            && self.draft.is_none_or(|draft| draft == call.draft)
            && self.attempt.is_none_or(|attempt| attempt == call.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_refused(script: &str, part: &str) {
        let message = script.parse::<MockScript>().unwrap_err();
        assert!(message.contains(part), "{message}");
    }

    #[test]
    fn mistakes_name_their_line() {
        assert_refused("", "line 1: the script has no rules");
        assert_refused("{\"garbage\":true}\n{\"reply\":\"x\",\"status\":500}", "line 2: a rule must have");
        assert_refused("{\"polcy\":\"honest\"}", "unknown field `polcy`");
        assert_refused("{\"policy\":\"honest\"}", "needs an `answer`");
    }
}
