//! Replies that a protocol waits for: a ballot, a review, a verification.
//!
//! In: the text of a reply. A recorded run is played again, and the text answers each request for the form. All other
//! replies are those of the record. Out: whether the text was taken at the first attempt. The rules of each form are checked
//! in the report, since a person sees no more of a reply. No model is called.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use consensus::journal::{Entry, Record};
use protocol::panel::Evaluation;
use protocol::text;
use protocol::{
    Action, Ask, CallId, Event, Finish, Outcome, Protocol as _, Reply, ReplyShape, Report, RunSetup, Section,
};
use quorum::{Opinion, Severity};
use serde_json::Value;

/// A longer run would be one that does not end.
const REPLIES_MAX: usize = 200;

/// A run as its journal has it: its setup and its replies.
pub(super) struct Scene {
    pub(super) setup: RunSetup,
    said: BTreeMap<CallId, Reply>,
}

/// The end of a run.
struct Played {
    report: Report<Section>,
    outcome: Option<Outcome>,
    /// Whether the first reply of the stranger was taken.
    is_taken: bool,
}

impl Scene {
    pub(super) fn new(journal: &str) -> Self {
        let lines = journal.lines().map(|line| serde_json::from_str::<Record>(line).expect("a saved record"));
        let (mut setup, mut said) = (None, BTreeMap::new());
        for record in lines {
            match record.event {
                Entry::Opened(spec) => setup = Some(spec.setup),
                Entry::Replied(replied) => drop(said.insert(replied.call, replied.reply)),
                Entry::Asked(_)
                | Entry::Lost(_)
                | Entry::Found(_)
                | Entry::Executed(_)
                | Entry::LeftOut(_)
                | Entry::Permitted(_)
                | Entry::Closed(_)
                | Entry::Stopped { .. }
                | Entry::Resumed { .. } => {}
            }
        }
        Self { setup: setup.expect("a journal begins with its setup"), said }
    }

    /// Plays the run, with this text as the answer to each request for the form of this name.
    fn play(&self, form: &str, text: &str) -> Played {
        let mut machine = self.setup.clone().machine();
        let (mut open, mut outcome) = (BTreeMap::<CallId, Ask>::new(), None);
        let (mut event, mut is_taken, mut first) = (Event::Started, true, None);
        for count in 0.. {
            assert!(count < REPLIES_MAX, "the run does not end");
            for action in machine.step(&event).expect("it was asked for") {
                match action {
                    Action::Ask(ask) => {
                        is_taken &= !first.is_some_and(|first| is_asked_again(first, ask.call));
                        open.insert(ask.call, ask);
                    }
                    Action::Cancel(call) => drop(open.remove(&call)),
                    Action::Finish(how) => outcome = Some(how),
                    Action::Search(_) | Action::Execute(_) | Action::AwaitPermit => {}
                }
            }
            if outcome.is_some() {
                break;
            }
            let Some((call, ask)) = open.pop_first() else { break };
            let is_stranger = matches!(ask.shape, ReplyShape::Json { name, .. } if name == form);
            if is_stranger {
                first = first.or(Some(call));
            }
            // The record has no reply beyond its own end.
            let Some(reply) = (if is_stranger { Some(said(text)) } else { self.said.get(&call).cloned() })
            else {
                break;
            };
            event = Event::Replied { call, reply };
        }
        Played { report: machine.report(), outcome, is_taken: is_taken && first.is_some() }
    }
}

/// Whether a call repeats another one, whose reply was refused.
fn is_asked_again(first: CallId, call: CallId) -> bool {
    CallId { attempt: first.attempt, ..call } == first && call.attempt > first.attempt
}

/// A whole reply with this text.
pub(super) fn said(text: &str) -> Reply {
    Reply { text: text.to_owned(), reasoning: None, finish: Finish::Stop, yes: None, model: None }
}

/// Returns the object that the stranger wrote.
fn written(text: &str) -> Value {
    let object = text::extract(text).expect("it was taken").object;
    serde_json::from_str(object).expect("it was taken")
}

/// Reads a ballot of a panel.
pub(crate) fn ballot(bytes: &[u8]) -> bool {
    static SCENE: LazyLock<Scene> = LazyLock::new(|| Scene::new(include_str!("../scenes/panel.jsonl")));
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Played { report, is_taken, .. } = SCENE.play("ballot", text);
    let Section::Panel(section) = report.section else { panic!("it is a panel") };
    for Evaluation { scores, feedback, total_score, .. } in &section.evaluations {
        let all = [scores.accuracy, scores.relevance, scores.completeness, scores.clarity];
        assert!(all.iter().all(|score| (1..=10).contains(score)), "{all:?}");
        assert_eq!(all.into_iter().map(u32::from).sum::<u32>(), *total_score);
        assert!(feedback.chars().count() <= 400, "feedback is bounded");
    }
    assert_eq!(is_taken, !section.evaluations.is_empty(), "a ballot counts whole or not at all");
    if is_taken {
        let labels: Vec<String> =
            written(text).as_object().expect("a ballot is one").keys().cloned().collect();
        let shown = section.evaluations.iter().map(|evaluated| evaluated.label.to_string());
        assert!(labels.len() == 2 && shown.into_iter().all(|label| labels.contains(&label)), "{labels:?}");
    }
    is_taken
}

/// Reads a review of a change.
pub(crate) fn review(bytes: &[u8]) -> bool {
    static SCENE: LazyLock<Scene> = LazyLock::new(|| Scene::new(include_str!("../scenes/review.jsonl")));
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Played { report, outcome, is_taken } = SCENE.play("review", text);
    assert!(outcome.is_some(), "every review ends");
    let Section::Approval(section) = report.section else { panic!("it is a review") };
    let diff = &SCENE.setup.task.documents[0].text;
    for review in &section.reviews {
        let worst = review.findings.iter().map(|finding| finding.severity).max();
        match &review.opinion {
            Opinion::Approve { confidence, .. } => {
                assert!(*confidence <= 10_000 && worst < Some(Severity::High), "{review:?}");
            }
            Opinion::Reject { .. } => assert!(worst.is_some(), "a rejection names a line: {review:?}"),
            Opinion::Abstain { .. } => {}
        }
        for finding in &review.findings {
            assert!(diff.lines().any(|line| line == finding.quote), "the line is in the change: {finding}");
            assert!(finding.path == "price.py" && finding.problem.chars().count() <= 300, "{finding}");
        }
    }
    if matches!(outcome, Some(Outcome::Agreed { .. })) {
        assert_eq!(written(text)["verdict"], "approve", "an agreement needs an approval");
    }
    is_taken
}

/// Reads the verification of a council.
pub(crate) fn verification(bytes: &[u8]) -> bool {
    static SCENE: LazyLock<Scene> = LazyLock::new(|| Scene::new(include_str!("../scenes/council.jsonl")));
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Played { report, outcome, is_taken } = SCENE.play("verification", text);
    let Section::Council(section) = report.section else { panic!("it is a council") };
    let prompt = &SCENE.setup.task.prompt;
    let verified = section.rounds.iter().filter_map(|round| round.verification.as_ref());
    for verification in verified.clone() {
        assert!((1..=8).contains(&verification.checks.len()), "there is a check, and not too many");
        let evidence = verification.checks.iter().filter_map(|check| check.evidence.as_ref());
        for evidence in evidence.filter(|evidence| evidence.source == "task") {
            assert!(prompt.contains(&evidence.quote), "`{}` stands in the task", evidence.quote);
        }
    }
    match outcome {
        Some(Outcome::Vetoed { quote, .. }) => {
            assert!(verified.clone().any(|v| v.veto && v.defects().next().is_some()), "a veto has evidence");
            assert!(prompt.contains(&quote), "and quotes it: {quote}");
        }
        Some(Outcome::Agreed { .. }) => {
            assert!(verified.clone().all(|v| !v.veto || v.defects().next().is_none()), "no defect stands");
        }
        Some(_) | None => {}
    }
    is_taken
}
