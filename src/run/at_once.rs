//! The usage of a run whose agents agree at once: the least that a run can use, beside the most.
//!
//! The usage is found by playing the protocol with agents that all know one answer. No model is asked. A reply is assumed to have a
//! quarter of its limit: with the built-in limits, a model of 1.5 billion parameters used 0.27 of the limit on 21 tasks of GSM8K.

use std::collections::VecDeque;

use crate::engine::CallUsage;
use crate::journal::Limits;
use crate::provider::agreeing;
use crypto::Digest;
use protocol::core::CommandEnd;
use protocol::sampling::first_option;
use protocol::text::CanonicalKind;
use protocol::{
    Action, Ask, Event, Execution, ExecutionResult, Outcome, Protocol as _, RunSetup, stated_trials,
    zero_results,
};

/// A number of calls that no protocol reaches if its agents agree at once.
const CALLS_MAX: u64 = 2_000;

/// The number of bytes in a prompt token, for English text.
const BYTES_A_TOKEN: u64 = 4;

/// The divisor of a reply's limit that gives its assumed length.
const REPLY_PART: u64 = 4;

/// Returns the usage of a run whose agents agree at once; `None` if no known answer passes the rules of this task.
pub fn at_once(setup: &RunSetup) -> Option<CallUsage> {
    let answer = plausible_answer(setup);
    let mut machine = setup.clone().machine();
    let mut usage = CallUsage::default();
    let mut asks: VecDeque<Ask> = VecDeque::new();
    let mut events = VecDeque::from([Event::Started]);
    while usage.calls < CALLS_MAX {
        let event = match events.pop_front() {
            Some(event) => event,
            None => answer_ask(&asks.pop_front()?, &answer, &mut usage),
        };
        for action in machine.step(&event).ok()? {
            match action {
                Action::Ask(ask) => asks.push_back(ask),
                Action::Search(search) => {
                    events.push_back(Event::Found { round: search.round, passages: Vec::new() });
                }
                Action::Execute(execution) => {
                    // A program prints the answer, and a check passes it.
                    let output = match &execution {
                        Execution::Trial { source } => zero_results(source),
                        Execution::Check { .. } | Execution::Program { .. } => answer.clone(),
                    };
                    let (end, output_sha256) = (CommandEnd::Exit(0), Digest::ZERO);
                    let result = ExecutionResult { end, output, tail: String::new(), output_sha256 };
                    events.push_back(Event::Executed { key: execution.key(), result });
                }
                Action::Cancel(call) => asks.retain(|ask| ask.call != call),
                // The least that such a run takes is what it draws before it waits.
                Action::AwaitPermit | Action::Finish(Outcome::Agreed { .. }) => return Some(usage),
                Action::Finish(_) => return None,
            }
        }
    }
    None
}

fn answer_ask(ask: &Ask, answer: &str, usage: &mut CallUsage) -> Event {
    let bytes: u64 = ask.messages.iter().map(|message| message.content.len() as u64).sum();
    usage.calls += 1;
    usage.prompt += bytes / BYTES_A_TOKEN;
    usage.completion += u64::from(ask.max_tokens) / REPLY_PART;
    Event::Replied { call: ask.call, reply: agreeing(ask, answer) }
}

fn plausible_answer(setup: &RunSetup) -> String {
    match setup.canonical.kind {
        CanonicalKind::Number => "17".to_owned(),
        CanonicalKind::Json => r#"{"answer": 17}"#.to_owned(),
        CanonicalKind::Choice => {
            let choices = &setup.canonical.choices;
            let text = first_option(&setup.task.prompt, choices);
            text.or_else(|| choices.first().cloned()).unwrap_or_default()
        }
        CanonicalKind::Behaviour => {
            let function =
                stated_trials(&setup.task.prompt).map(|stated| stated.function).unwrap_or_default();
            format!("def {function}(*values):\n    return 0")
        }
        CanonicalKind::Text | CanonicalKind::Lines | CanonicalKind::Verbatim => {
            "Water boils at a lower temperature where the pressure of the air is lower.".to_owned()
        }
    }
}

/// Returns the reason why runs that agree at once, for so many tokens and this cost, would still reach their limits, if they would.
pub fn find_shortage(limits: &Limits, tokens: u64, cost: Option<u64>) -> Option<&'static str> {
    let is_short = limits.tokens_total_max.is_some_and(|limit| tokens > limit)
        || cost.zip(limits.cost_micro_usd_max).is_some_and(|(cost, limit)| cost > limit);
    if !is_short {
        return None;
    }
    Some("agents that agree at once need more than the limit of a run, so that most runs will end at it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{find_roleset, load_roleset};
    use protocol::Task;

    /// Agents of five built-in rolesets can agree at once, with fewer calls and tokens than the most.
    #[test]
    fn agreement_at_once_stays_below_worst_case() {
        for name in
            ["solver_checker", "generalist_critic", "writer_physicist", "council_tripartite", "panel_models"]
        {
            let (roleset, packs) = load_roleset(&find_roleset(name, &[]).unwrap()).unwrap();
            let task = Task { prompt: "How much is 8 + 9?".to_owned(), ..Task::default() };
            let setup = roleset.setup(name, &packs, task, 1);
            let least = at_once(&setup).unwrap_or_else(|| panic!("{name} does not agree"));
            let most = setup.worst_case();
            assert!(0 < least.calls && least.calls < most.calls, "{name}: {least:?}");
            assert!(least.prompt < most.prompt_tokens, "{name}: {least:?}");
            assert!(least.completion < most.completion_tokens, "{name}: {least:?}");
        }
    }

    /// The letters of options change their places between samples, so voters that agree name an option by its text.
    #[test]
    fn lettered_options_can_be_agreed_at_once() {
        let (mut roleset, packs) = load_roleset(&find_roleset("vote_choice", &[]).unwrap()).unwrap();
        roleset.canonical.choices = ["A", "B", "C"].map(str::to_owned).to_vec();
        let prompt = "Which is a fruit?\nA) Brick\nB) Apple\nC) Stone".to_owned();
        let setup = roleset.setup("vote_choice", &packs, Task { prompt, ..Task::default() }, 1);
        assert!(at_once(&setup).is_some());
    }
}
