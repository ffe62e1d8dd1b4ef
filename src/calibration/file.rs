//! The calibration as a file holds it, from runs whose right answers are known.
//!
//! The input is the way of the runs and, for each, its features and whether it is right; or the text of a file. The output is the
//! calibration: one half of the runs is fitted, and the other certifies. Which run is in which half follows from the digest of its task, so
//! the same runs give the same calibration.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::applied::{AppliedCalibration, CalibratedOn};
use super::certified::{RiskStep, steps, threshold};
use super::counts::{ANSWERS_MIN, ItemsNote, are_possible};
use super::error::CalibrationError;
use super::features::Features;
use super::fit::Fit;
use super::way::{CalibratedWay, KnownParts, RunLimits};
use crate::program::PROGRAM;
use crypto::{Digest, Hasher};
use protocol::RunSetup;
use protocol::core::Endpoint;
use protocol::text::escape;

/// The most runs of a calibration.
const RUNS_MAX: usize = 1_000_000;

/// A run whose right answer is known, while a calibration is made of it.
#[derive(Clone, Debug)]
pub struct KnownRun {
    /// The digest of its task, roleset and parameters.
    pub fingerprint: Digest,
    /// The digest of its task and its kind of answers, as its models see them.
    pub question: Digest,
    /// The features of its answer; `None` without an answer.
    pub features: Option<Features>,
    /// Whether the answer is right.
    pub is_right: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The version of the format.
    pub v: u32,
    /// The program that made it.
    pub program: String,
    /// The time at which it was made.
    pub made_at: String,
    /// The way of its runs.
    pub way: CalibratedWay,
    /// The choices among the runs of a folder, as `--only` takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    pub items: ItemsNote,
    /// The fit of the first half.
    pub fit: Fit,
    /// The errors among the surest answers of the second half, as more of them are taken.
    pub steps: Vec<RiskStep>,
    /// A mark of each question, in order: the first 16 digits of its digest.
    pub questions: Vec<String>,
}

/// The part of a file that names its writer.
#[derive(Deserialize)]
struct CalibrationWriter {
    program: String,
}

impl Calibration {
    /// The version of the format.
    pub const VERSION: u32 = 1;

    /// Makes a calibration of runs, one of each task, that were all made in this way.
    pub fn new(
        way: CalibratedWay,
        mut runs: Vec<KnownRun>,
        program: &str,
        made_at: String,
    ) -> Result<Self, CalibrationError> {
        runs.sort_by_key(|run| run.fingerprint.to_string());
        // The same question twice, under two ids, is one question.
        let mut questions = HashSet::new();
        runs.retain(|run| questions.insert(run.question));
        let (mut tasks, mut answered, mut right) = (Hasher::default(), 0, 0);
        let mut fitted: Vec<(&Features, bool)> = Vec::new();
        let mut certifying: Vec<(&Features, bool)> = Vec::new();
        for (at, run) in runs.iter().enumerate() {
            tasks.part(run.fingerprint.as_bytes());
            let Some(features) = &run.features else { continue };
            answered += 1;
            right += usize::from(run.is_right);
            let half = if at % 2 == 0 { &mut fitted } else { &mut certifying };
            half.push((features, run.is_right));
        }
        if answered < ANSWERS_MIN {
            return Err(CalibrationError::TooFew { answered, needed: ANSWERS_MIN });
        }
        let fit = Fit::new(&fitted);
        let certifying =
            certifying.into_iter().filter_map(|(features, is_right)| Some((fit.value(features)?, is_right)));
        let items = ItemsNote {
            sha256: tasks.finish(),
            runs: runs.len(),
            answered,
            right,
            fitted: fitted.len(),
            fitted_right: fitted.iter().filter(|(_, is_right)| *is_right).count(),
            certifying: runs.len() / 2,
        };
        let steps = steps(certifying.collect());
        let (program, only) = (program.to_owned(), Vec::new());
        let mut questions: Vec<String> = runs.iter().map(|run| mark(run.question)).collect();
        questions.sort();
        Ok(Self { v: Self::VERSION, program, made_at, way, only, items, fit, steps, questions })
    }

    /// Returns whether a question is one of those that the calibration was made of. Its answer is no test of the calibration.
    pub fn has_question(&self, question: Digest) -> bool {
        self.questions.binary_search(&mark(question)).is_ok()
    }

    /// Reads the text of a file.
    ///
    /// Returns [`CalibrationError::OtherBuild`], [`CalibrationError::Format`] or [`CalibrationError::Version`].
    pub fn parse(text: &str) -> Result<Self, CalibrationError> {
        // The file of another build may have other fields.
        if let Ok(CalibrationWriter { program }) = serde_json::from_str(text)
            && program != PROGRAM
        {
            return Err(CalibrationError::OtherBuild(escape::terminal(&program)));
        }
        let calibration: Self =
            serde_json::from_str(text).map_err(|why| CalibrationError::Format(why.to_string()))?;
        if calibration.v != Self::VERSION {
            return Err(CalibrationError::Version(calibration.v));
        }
        match calibration.fault() {
            Some(fault) => Err(CalibrationError::Format(fault.to_owned())),
            None => Ok(calibration),
        }
    }

    /// Returns what is impossible about the figures of a file, if anything is.
    fn fault(&self) -> Option<&'static str> {
        if self.items.runs > RUNS_MAX {
            return Some("it has too many runs");
        }
        if !self.items.are_possible() {
            return Some("its numbers of runs contradict each other");
        }
        if !are_possible(&self.steps, &self.fit) || self.certified_count() > self.items.certifying {
            return Some("its steps contradict each other");
        }
        if !self.has_possible_errors() {
            return Some("its steps contradict its numbers of runs");
        }
        if self.questions.len() != self.items.runs || !self.questions.is_sorted() {
            return Some("its questions are not one for each of its runs, in order");
        }
        if !self.items.are_halves() {
            return Some("its numbers of runs contradict each other");
        }
        if humantime::parse_rfc3339(&self.made_at).is_err() {
            return Some("its `made_at` is no time");
        }
        if self.way.extras.len() != self.way.models.len() {
            return Some("its `extras` are not one for each of its models");
        }
        self.fit.fault(self.items.fitted, self.items.fitted_right)
    }

    /// Returns the number of answers of the half that certifies, without those of a class that was not fitted.
    fn certified_count(&self) -> usize {
        self.steps.last().map_or(0, |step| step.answered as usize)
    }

    /// Returns whether the errors of the last step can be those of the half that certifies.
    fn has_possible_errors(&self) -> bool {
        let ItemsNote { answered, right, fitted, fitted_right, .. } = self.items;
        let wrong = self.steps.last().map_or(0, |step| step.errors as usize);
        let (of_steps, right_of_steps) = (self.certified_count(), self.certified_count() - wrong);
        // The answers that are in no step are those of a class that was not fitted, right or wrong.
        let (Some(answers), Some(right)) =
            ((answered - fitted).checked_sub(of_steps), right.checked_sub(fitted_right))
        else {
            return false;
        };
        (right_of_steps..=right_of_steps + answers).contains(&right)
    }

    /// Returns the part in which a calibration that was made again of the same runs differs, if any does. The time is no such part.
    pub fn difference(&self, again: &Self) -> Option<&'static str> {
        let parts = [
            ("program", self.program == again.program),
            ("way", self.way == again.way),
            ("items", self.items == again.items),
            ("fit", self.fit.is_like(&again.fit)),
            ("steps", self.steps == again.steps),
            ("questions", self.questions == again.questions),
        ];
        parts.into_iter().find(|(_, is_same)| !is_same).map(|(name, _)| name)
    }

    /// Returns the text of the file.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Returns the share of wrong answers if every answer is given.
    pub fn base_risk(&self) -> f64 {
        let ItemsNote { answered, right, .. } = self.items;
        (answered - right.min(answered)) as f64 / answered.max(1) as f64
    }

    /// Returns the least share of answers that must be withheld to hold a risk: so many if every answer that is withheld is wrong.
    pub fn least_withheld(&self, risk: f64) -> f64 {
        ((self.base_risk() - risk) / (1.0 - risk)).max(0.0)
    }

    /// Returns the threshold at a risk, which is above 0 and below 1.
    pub fn threshold(&self, risk: f64) -> Result<RiskStep, CalibrationError> {
        threshold(&self.steps, risk).map_err(|why| CalibrationError::NotCertifiable { risk, why })
    }

    /// Refuses a run that is made in another way, as far as that is known.
    ///
    /// Returns [`CalibrationError::OtherWay`] with the difference.
    pub fn require(
        &self,
        setup: &RunSetup,
        endpoints: &[Endpoint],
        limits: RunLimits,
        known: KnownParts,
    ) -> Result<(), CalibrationError> {
        if setup.chunk_plan.is_some() {
            let why = "it reads its documents in pieces, which no calibration covers".to_owned();
            return Err(CalibrationError::OtherWay(why));
        }
        match self.way.difference(&CalibratedWay::new(setup, endpoints, limits), known) {
            Some(why) => Err(CalibrationError::OtherWay(why)),
            None => Ok(()),
        }
    }

    /// Returns the calibration as it is applied to runs. `sha256` is that of its file; without a risk no answer is withheld.
    pub fn apply(&self, sha256: Digest, risk: Option<f64>) -> Result<AppliedCalibration, CalibrationError> {
        let threshold = risk.map(|risk| self.threshold(risk)).transpose()?.map(|step| step.from);
        let on = CalibratedOn { runs: self.items.runs, made_at: self.made_at.clone(), sha256 };
        Ok(AppliedCalibration { on, fit: self.fit.clone(), risk, threshold, has_question: false })
    }
}

/// Returns the digest of a run's question: its task, and the rule by which its answers are compared.
pub fn question_of(setup: &RunSetup) -> Digest {
    Digest::new(json!([setup.task, setup.canonical]).to_string().as_bytes())
}

/// Returns the mark of a question in a file: enough to find it, and little to keep.
fn mark(question: Digest) -> String {
    question.to_string()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::calibration::Confidence;
    use protocol::core::BasisPoints;
    use protocol::text::{CanonicalKind, CanonicalRule, Constraint, TextMemos};
    use protocol::vote::VoteParams;
    use protocol::{AgentSetup, How, Interpreter, Method, Outcome, Params, ProtocolParams as _, Task};

    fn setup() -> RunSetup {
        let agent = AgentSetup {
            name: "voter".to_owned(),
            domain: "sums".to_owned(),
            pack: "Work the task out.".to_owned(),
            comparing: String::new(),
            temperature: 0.7,
            max_tokens: 800,
            method: Method::Words,
        };
        RunSetup {
            roleset: "mine".to_owned(),
            task: Task::default(),
            seed: 1,
            agents: vec![agent],
            arbiter: None,
            canonical: CanonicalRule::default(),
            params: Params::Vote(VoteParams::default()),
            rules: String::new(),
            check_command: None,
            interpreter: Interpreter::Embedded,
            chunk_plan: None,
            memos: TextMemos::default(),
        }
    }

    fn endpoints() -> Vec<Endpoint> {
        vec![Endpoint::Mock { script: String::new() }]
    }

    fn run(number: usize, is_right: bool) -> KnownRun {
        let (class, support) = if number % 4 < 3 { ("A", 4) } else { ("D", 2) };
        let class = class.to_owned();
        let features = Features { class, support, drafts: 4, clusters: 2, methods: 1, has_program: false };
        let fingerprint = Digest::new(&number.to_be_bytes());
        KnownRun { fingerprint, question: fingerprint, features: Some(features), is_right }
    }

    fn calibrate(count: usize, is_right: impl Fn(usize) -> bool) -> Calibration {
        let runs = (0..count).map(|number| run(number, is_right(number))).collect();
        let at = "2026-01-01T00:00:00Z".to_owned();
        Calibration::new(CalibratedWay::new(&setup(), &endpoints(), RunLimits::default()), runs, PROGRAM, at)
            .unwrap()
    }

    #[test]
    fn one_half_is_fitted_and_the_other_certifies() {
        let calibration = calibrate(400, |number| number % 4 < 3 || number % 8 == 3);
        let ItemsNote { runs, answered, right, fitted, certifying, .. } = calibration.items;
        assert_eq!((runs, answered, right, fitted, certifying), (400, 400, 350, 200, 200));
        assert_eq!(calibration.steps.last().map(|step| step.answered), Some(200));
        let step = calibration.threshold(0.05).unwrap();
        assert_eq!(step.errors, 0, "answers of class D are half wrong: {:?}", calibration.steps);
        assert!((calibration.base_risk() - 0.125).abs() < 1e-9);
        assert!((calibration.least_withheld(0.05) - 0.075 / 0.95).abs() < 1e-9);
        let why = calibration.threshold(0.001).unwrap_err().to_string();
        assert!(why.starts_with("a risk of 0.1 % is not certifiable: at least 2,995 answers"), "{why}");
        assert_eq!(Calibration::parse(&calibration.to_json()), Ok(calibration));
    }

    #[test]
    fn a_file_that_is_no_calibration_is_refused() {
        let why = Calibration::parse("{}").unwrap_err().to_string();
        assert!(why.starts_with("it is no calibration: missing field"), "{why}");
        let later = Calibration { v: 2, ..calibrate(40, |_| true) };
        assert_eq!(Calibration::parse(&later.to_json()), Err(CalibrationError::Version(2)));
        let other = calibrate(40, |_| true).to_json().replace(PROGRAM, "consensus 0.0.7+abc");
        let more = other.replacen('{', "{\"more\": 1,", 1);
        let refused = Err(CalibrationError::OtherBuild("consensus 0.0.7+abc".to_owned()));
        assert_eq!((Calibration::parse(&other), Calibration::parse(&more)), (refused.clone(), refused));
        let few = Calibration::new(
            CalibratedWay::new(&setup(), &endpoints(), RunLimits::default()),
            vec![run(0, true)],
            PROGRAM,
            String::new(),
        );
        assert_eq!(few, Err(CalibrationError::TooFew { answered: 1, needed: 20 }));
    }

    #[test]
    fn run_made_differently_is_refused() {
        let calibration = calibrate(40, |_| true);
        let why = |setup: &RunSetup, endpoints: &[Endpoint]| {
            calibration
                .require(setup, endpoints, RunLimits::default(), KnownParts::All)
                .map_err(|why| why.to_string())
        };
        assert_eq!(why(&setup(), &endpoints()), Ok(()));
        let mut same = RunSetup { seed: 7, ..setup() };
        same.task.prompt = "another task".to_owned();
        if let Some(constraints) = same.params.constraints_mut() {
            constraints.push(Constraint::Contains { text: "4".to_owned() });
        }
        assert_eq!(why(&same, &endpoints()), Ok(()), "a task says rules of its own");
        let other = RunSetup { roleset: "other".to_owned(), ..setup() };
        assert_eq!(
            why(&other, &endpoints()).unwrap_err(),
            "it does not fit this run: the roleset is `other` and not `mine`"
        );
        let vote = VoteParams { samples_max: Some(9), ..VoteParams::default() };
        let other = RunSetup { params: Params::Vote(vote), ..setup() };
        assert_eq!(
            why(&other, &endpoints()).unwrap_err(),
            "it does not fit this run: the parameter `samples_max` is `9` and not the default"
        );
        let mut other = setup();
        other.canonical.kind = CanonicalKind::Number;
        assert!(why(&other, &endpoints()).unwrap_err().contains("the kind of answers is `number`"));
        assert_eq!(
            calibration.require(&other, &endpoints(), RunLimits::default(), KnownParts::Models),
            Ok(())
        );
        let mut other = setup();
        other.agents[0].temperature = 0.3;
        assert!(
            why(&other, &endpoints())
                .unwrap_err()
                .contains("other instructions, temperatures, lengths of replies or checks")
        );
        assert!(why(&setup(), &[]).unwrap_err().contains("the model is `` and not `mock`"));
        let named = RunSetup { roleset: "a\nerror: b".to_owned(), ..setup() };
        assert!(!why(&named, &endpoints()).unwrap_err().contains('\n'), "no name makes a line of its own");
    }

    #[test]
    fn an_answer_below_the_threshold_is_withheld() {
        let calibration = calibrate(400, |number| number % 4 < 3 || number % 8 == 3);
        let applied = calibration.apply(Digest::ZERO, Some(0.05)).unwrap();
        let threshold = applied.threshold.unwrap();
        let agreed = Outcome::Agreed { how: How::Voted, text: "4".to_owned(), sha256: Digest::ZERO };
        let confidence =
            |value| Confidence { value, class: "A".to_owned(), calibrated_on: applied.on.clone() };
        assert_eq!(applied.judge(agreed.clone(), Some(&confidence(threshold))), agreed);
        let below = BasisPoints::of_ten_thousand(threshold.ten_thousandths() - 1);
        let withheld = Outcome::Abstained { confidence: Some(below), threshold };
        assert_eq!(applied.judge(agreed.clone(), Some(&confidence(below))), withheld);
        let unseen = Outcome::Abstained { confidence: None, threshold };
        assert_eq!(applied.judge(agreed.clone(), None), unseen, "an answer of a class that was never seen");
        assert_eq!(applied.judge(Outcome::Interrupted, None), Outcome::Interrupted);
        let stricter = BasisPoints::of_ten_thousand(threshold.ten_thousandths() + 1);
        let raised = applied.clone().at_least(stricter);
        assert_eq!(
            (raised.threshold, raised.risk),
            (Some(stricter), None),
            "the risk is of its own threshold"
        );
        assert_eq!(applied.clone().at_least(below), applied, "a lower wish changes nothing");
        let without_risk = calibration.apply(Digest::ZERO, None).unwrap();
        assert_eq!(without_risk.judge(agreed.clone(), None), agreed);
    }

    /// Each count can be derived from the others, or is bounded by them.
    #[test]
    fn contradicting_counts_are_refused() {
        let (few, many) = (
            calibrate(40, |number| number % 4 < 3),
            calibrate(400, |number| number % 4 < 3 || number % 8 == 3),
        );
        for (made, at, value) in [
            (&few, "/fit/classes/A/right", json!(14)),
            (&few, "/fit/classes/A/all", json!(1)),
            (&few, "/fit/classes/A/right", json!(u32::MAX)),
            (&few, "/items/fitted", json!(0)),
            (&few, "/items/fitted_right", json!(0)),
            (&few, "/items/answered", json!(39)),
            (&few, "/items/answered", json!(47)),
            (&few, "/items/right", json!(29)),
            (&few, "/items/certifying", json!(19)),
            (&few, "/items/runs", json!(39)),
            (&few, "/steps/1/from", json!(0.1)),
            (&few, "/steps/1/errors", json!(0)),
            (&few, "/steps/1/answered", json!(19)),
            (&few, "/steps/1/expected", json!(0)),
            (&many, "/items/fitted", json!(0)),
            (&many, "/items/fitted", json!(99)),
            (&many, "/steps/0/from", json!(1.0)),
            (&many, "/steps/1/errors", json!(0)),
        ] {
            let mut changed: Value = serde_json::from_str(&made.to_json()).unwrap();
            let leaf = changed.pointer_mut(at).unwrap();
            assert_ne!(*leaf, value, "{at}: {}", made.to_json());
            *leaf = value;
            let why = Calibration::parse(&changed.to_string());
            assert!(matches!(why, Err(CalibrationError::Format(_))), "{at}: {why:?}");
        }
    }

    #[test]
    fn same_runs_make_the_same_calibration() {
        let calibration = calibrate(400, |number| number % 4 < 3);
        let later = Calibration { made_at: "2027-01-01T00:00:00Z".to_owned(), ..calibration.clone() };
        assert_eq!(calibration.difference(&later), None);
        let other = calibrate(400, |number| number % 4 < 2);
        assert_eq!(calibration.difference(&other), Some("items"));
        let steps = Vec::new();
        assert_eq!(calibration.difference(&Calibration { steps, ..calibration.clone() }), Some("steps"));
    }
}
