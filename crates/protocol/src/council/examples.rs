//! Worked examples of a verification, shown to Ethos as earlier turns of its own conversation.
//!
//! The input is the setup. The output is the conversation that Ethos begins with. The examples are about other tasks and are the same for
//! every run. They have the words and the form of a real turn. With instructions in prose, whatever their words, a model of 1.5 billion
//! parameters found nearly every wrong answer right, or every answer wrong.

use serde_json::json;

use super::evidence::Sources;
use super::params::{ConfidenceFrom, CouncilParams};
use super::prompt;
use super::verdict::Member;
use crate::contract::{CallId, Conversation, Passage, Role, Setup, Step, Task, Thinking};
use crate::turn::mark;

struct Example {
    passage: Option<(&'static str, &'static str)>,
    answer: &'static str,
    task: &'static str,
    thoughts: &'static str,
    /// The claim, its source, the words of the source, and whether the claim agrees with them.
    checks: &'static [(&'static str, &'static str, &'static str, bool)],
    reasoning: &'static str,
}

/// Examples of wrong and right answers. Without sources there are as many of each, so that neither is expected.
const EXAMPLES: [Example; 5] = [
    Example {
        passage: None,
        answer: "Cherries.",
        task: "Name a fruit that is not red. It must cost less than 3 euros. Cherries cost 2 euros, plums 4.",
        thoughts: "Demand: \"a fruit\". The answer says \"Cherries\"; cherries are fruit: kept.\n\
                   Demand: \"not red\". The answer says \"Cherries\"; cherries are red: broken.\n\
                   Demand: \"less than 3 euros\". The answer says \"Cherries\"; 2 euros is less than 3: kept.\n\
                   Verdict: broken",
        checks: &[
            ("Cherries are fruit.", "task", "Name a fruit that is not red.", true),
            ("Cherries are red.", "task", "Name a fruit that is not red.", false),
            ("Cherries cost 2 euros.", "task", "It must cost less than 3 euros.", true),
        ],
        reasoning: "Cherries are red, and the fruit must not be.",
    },
    Example {
        passage: None,
        answer: "We have passed your letter on to the kitchen.",
        task: "Reply to the guest in one sentence. Promise nothing.",
        thoughts: "Demand: \"in one sentence\". The answer says \"We have passed your letter on to the kitchen.\"; that is \
                   one sentence: kept.\n\
                   Demand: \"promise nothing\". The answer says \"have passed your letter on\"; that is done, and no \
                   promise: kept.\n\
                   Verdict: kept",
        checks: &[
            ("The reply is one sentence.", "task", "Reply to the guest in one sentence.", true),
            ("What the reply says is done already.", "task", "Promise nothing.", true),
        ],
        reasoning: "It is one sentence without a promise.",
    },
    Example {
        passage: None,
        answer: "We can invite 95 guests.",
        task: "The hall holds at most 80 guests. How many may we invite?",
        thoughts: "Demand: \"at most 80 guests\". The answer says \"95 guests\"; 95 is more than 80: broken.\n\
                   Demand: \"How many\". The answer says \"95 guests\"; that is a number: kept.\n\
                   Verdict: broken",
        checks: &[
            ("95 guests are more than 80.", "task", "The hall holds at most 80 guests.", false),
            ("95 guests is a number.", "task", "How many may we invite?", true),
        ],
        reasoning: "95 guests are more than the hall holds.",
    },
    Example {
        passage: Some((
            "mills.txt",
            "The old mill stood by the river. It burned down in March 1911, on a Sunday.",
        )),
        answer: "It burned down in May 1911, on a Sunday.",
        task: "When did the old mill burn down?",
        thoughts: "Claim: \"in May 1911\". S1 says \"in March 1911\"; May is not March: broken.\n\
                   Claim: \"on a Sunday\". S1 says \"on a Sunday\"; that is the same: kept.\n\
                   Verdict: broken",
        checks: &[
            ("The mill burned down in May 1911.", "S1", "It burned down in March 1911, on a Sunday.", false),
            ("It was a Sunday.", "S1", "It burned down in March 1911, on a Sunday.", true),
        ],
        reasoning: "It was in March, not in May.",
    },
    Example {
        passage: None,
        answer: "11:30.",
        task: "The shop is open from 9:00 to 17:00. Propose an hour for a visit.",
        thoughts: "Demand: \"from 9:00 to 17:00\". The answer says \"11:30\"; 11:30 is after 9:00 and before 17:00: kept.\n\
                   Demand: \"an hour for a visit\". The answer says \"11:30\"; that is an hour: kept.\n\
                   Verdict: kept",
        checks: &[
            ("11:30 is after 9:00 and before 17:00.", "task", "The shop is open from 9:00 to 17:00.", true),
            ("11:30 is an hour.", "task", "Propose an hour for a visit.", true),
        ],
        reasoning: "The shop is open at 11:30.",
    },
];

impl Example {
    fn is_right(&self) -> bool {
        self.checks.iter().all(|(_, _, _, holds)| *holds)
    }

    fn sources(&self) -> Sources {
        let task = Task { prompt: self.task.to_owned(), ..Task::default() };
        let mut sources = Sources::of_task(&task);
        if let Some((document, text)) = self.passage {
            let (document, text) = (document.to_owned(), text.to_owned());
            sources.add(&[Passage { document, start: 0, text, redacted: false }]);
        }
        sources
    }

    /// Returns the form that follows the thoughts.
    fn form(&self, from: ConfidenceFrom) -> String {
        let checks: Vec<_> = self
            .checks
            .iter()
            .map(|(claim, source, quote, holds)| {
                let verdict = if *holds { "holds" } else { "fails" };
                json!({"claim": claim, "source": source, "quote": quote, "verdict": verdict})
            })
            .collect();
        let confidence = if self.is_right() { 0.95 } else { 0.05 };
        let veto = !self.is_right();
        let mut form =
            json!({"checks": checks, "reasoning": self.reasoning, "veto": veto, "confidence": confidence});
        if from == ConfidenceFrom::Logprob {
            form["sound"] = if self.is_right() { "yes" } else { "no" }.into();
        }
        form.to_string()
    }
}

/// Returns the conversation that Ethos begins with.
///
/// An example with a source is shown only where there are sources. No example is shown where agents do not think aloud.
pub(super) fn conversation(setup: &Setup<CouncilParams>) -> Conversation {
    let mut conversation = Conversation::new(setup.system(Member::Ethos.index()));
    if setup.params.thinking != Thinking::Free {
        return conversation;
    }
    let has_sources = setup.searches() || !setup.task.documents.is_empty();
    for (draft, example) in (0..).zip(EXAMPLES.iter().filter(|e| has_sources || e.passage.is_none())) {
        let (round, agent) = (0, Member::Ethos.index());
        let mark = mark(setup.seed, CallId { part: 0, round, agent, draft, step: Step::Think, attempt: 0 });
        let sources = example.sources();
        let documents = prompt::documents(&sources, 0, &mark);
        let task = format!("Task: {}", example.task);
        let situation = prompt::to_verify(&documents, &mark, example.answer, &[], &task);
        conversation.push(Role::User, format!("{situation}\n\n{}", prompt::VERIFY));
        conversation.push(Role::Assistant, example.thoughts.to_owned());
        conversation.push(Role::User, prompt::write_verification(setup, &sources));
        conversation.push(Role::Assistant, example.form(setup.params.confidence));
    }
    conversation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::council::findings::Findings;
    use crate::council::forms::read_verification;

    #[test]
    fn every_example_is_one_that_would_be_taken() {
        for example in &EXAMPLES {
            for from in [ConfidenceFrom::Verbalised, ConfidenceFrom::Logprob] {
                let taken = read_verification(&example.form(from), &example.sources(), false);
                let taken = taken.unwrap_or_else(|why| panic!("{}: {why}", example.task)).content;
                assert_eq!(taken.veto, taken.defects().next().is_some(), "{}", example.task);
            }
            let form =
                read_verification(&example.form(ConfidenceFrom::Verbalised), &example.sources(), false);
            let form = form.expect(example.task);
            let found = Findings::read(example.thoughts).expect(example.task);
            let all_kept = example.is_right();
            assert_eq!(found, Findings { count: example.checks.len(), all_kept }, "{}", example.task);
            assert!(form.content.require_agreement_with(found).is_ok(), "{}", example.task);
        }
        let plain = || EXAMPLES.iter().filter(|example| example.passage.is_none());
        assert_eq!(plain().filter(|example| example.is_right()).count() * 2, plain().count());
    }
}
