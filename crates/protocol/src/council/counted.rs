//! The form `differing` without documents: blind answers of Logos are counted, and what Pathos and Ethos write is shown.
//!
//! ```text
//!  answers       Logos answers, each time alone and without its pack ([`Counting`])
//!     │          beside them, Pathos states the intent (the framing)
//!     ├─ the first answers are equal ───► agreed (independent)
//!     ├─ no answer is valid ────────────► no agreement
//!     ▼
//!  objections    Ethos says once what speaks against the leading answer
//!     └─ whatever it says ──────────────► what the count has decided
//! ```
//!
//! The count alone decides. A veto of a small model fell on right answers as often as on wrong ones, and let most wrong ones pass. No
//! form of Pathos or Ethos is repaired: one that fails is absent. The run ends once all that was asked for is there, so that the order of
//! replies changes nothing.

use super::evidence::Sources;
use super::forms::{self, Framing, Verification};
use super::manifest::Manifest;
use super::params::{ConfidenceFrom, CouncilParams};
use super::prompt;
use super::report::objection;
use super::section::{CouncilRound, CouncilSection};
use super::verdict::{ConsensusResult, Member};
use crate::contract::{
    Action, CallId, Conversation, Event, Executions, How, Outcome, Protocol, Reply, ReplyShape, Report,
    Setup, Step, Thinking, Unexpected, WorstCase, tokens,
};
use crate::sampling::{
    AnswerExtent, CountDecision, CountProgress, CountRule, Counting, LongTexts, SampleForm, VotedAnswer,
    VoterIntroduction,
};
use crate::text::Violation;
use crate::turn::{Draft, TurnProgress, TurnPrompt, Valid};

/// The first answers, which are enough if they are equal.
const FIRST: usize = 2;
/// The most answers that are drawn for a lead that is certain, as in a vote.
const MOST: usize = 8;
/// The number of drafts of a long text that are compared, and the most that are drawn for that.
const DRAFTS: (usize, usize) = (4, 6);
/// The tokens of the controller's own words in one form: an upper bound of the texts in `prompt`.
const FORM_WORDS: u64 = 400;
/// The same bound for what Ethos sees besides the task and the answer: the framing, and an excerpt of each other answer.
const BESIDES_WORDS: u64 = 2800;
/// The only round.
const ROUND: u32 = 1;

/// The state of a council whose blind answers are counted.
#[derive(Clone, Debug)]
pub struct CountedCouncil {
    setup: Setup<CouncilParams>,
    counting: Counting,
    /// What the count has decided, once it has.
    decision: Option<CountDecision>,
    /// The task alone, which is what Ethos may quote.
    sources: Sources,
    /// The framing and the verification, which are shown.
    manifest: Manifest,
    /// The form of Pathos or Ethos that is awaited.
    open: Option<Draft>,
    /// Whether Ethos was asked.
    is_checked: bool,
    failed_turns: [u32; 3],
    outcome: Option<Outcome>,
    remark: Option<&'static str>,
}

/// A valid form that is shown.
enum BriefForm {
    Framing(Framing),
    Verification(Verification),
}

fn rule(setup: &Setup<CouncilParams>) -> CountRule {
    CountRule {
        first: FIRST,
        most: MOST,
        ahead: FIRST,
        needs_certainty: false,
        on_disagreement: setup.params.on_disagreement,
        long_texts: LongTexts::Medoid { least: DRAFTS.0, most: DRAFTS.1 },
    }
}

/// The solution comes before the answer, in texts too: without it, a small model is right less often.
const FORM: SampleForm = SampleForm { introduction: VoterIntroduction::Line, answer: AnswerExtent::Line };

/// Returns the most that such a run can cost.
pub(super) fn worst_case(setup: &Setup<CouncilParams>) -> WorstCase {
    let logos = Member::Logos.index();
    let mut total = rule(setup).worst_case(setup, &[logos], FORM);
    let task = tokens(&prompt::brief_framing(setup).situation);
    // A character has at most six bytes as JSON, which are two tokens.
    let answer = 2 * setup.agents[logos].text_chars_max() as u64;
    for (member, besides) in [(Member::Pathos, 0), (Member::Ethos, answer + BESIDES_WORDS)] {
        let own = &setup.agents[member.index()];
        let mut conversation = tokens(&own.name_and_field()) + task + FORM_WORDS + besides;
        total.add_form(&mut conversation, Thinking::None, 0, u64::from(own.max_tokens));
    }
    total
}

impl CountedCouncil {
    /// Makes the machine for a run that has not started. `setup` must pass its check.
    pub(super) fn new(setup: Setup<CouncilParams>) -> Self {
        Self {
            counting: Counting::new(&setup, vec![Member::Logos.index()], FORM, rule(&setup)),
            decision: None,
            sources: Sources::of_task(&setup.task),
            manifest: Manifest::new(),
            open: None,
            is_checked: false,
            failed_turns: [0; 3],
            outcome: None,
            remark: None,
            setup,
        }
    }

    fn ask_for_framing(&mut self) -> Action {
        let schema = forms::brief_framing_schema();
        let shape = ReplyShape::Json { name: "framing", schema: (&schema).into(), measured: None };
        self.ask(call_of(Member::Pathos), prompt::brief_framing(&self.setup), shape)
    }

    /// Asks for a form without thoughts.
    fn ask(&mut self, call: CallId, words: TurnPrompt, shape: ReplyShape) -> Action {
        let agent = &self.setup.agents[call.agent];
        let alone = Conversation::new(agent.name_and_field());
        let draft = Draft::start(Thinking::None, call, alone, words, shape);
        let ask = draft.ask(agent, self.setup.seed);
        self.open = Some(draft);
        Action::Ask(ask)
    }

    /// Takes an event of the count.
    fn step_count(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        if self.decision.is_some() {
            return Err(event.into());
        }
        match self.counting.step(&self.setup, event)? {
            CountProgress::Ask(actions) => Ok(actions),
            CountProgress::Decided(decision, mut actions) => {
                self.decision = Some(decision);
                actions.extend(self.follow_decision());
                Ok(actions)
            }
        }
    }

    fn take_form(&mut self, call: CallId, reply: &Reply) -> Result<Vec<Action>, Unexpected> {
        let mut draft = self.open.take_if(|draft| draft.call() == call).ok_or(Unexpected::NotAsked(call))?;
        let own = &self.setup.agents[call.agent];
        match draft.reply(own, self.setup.seed, 0, reply, |text, _| self.check(call, text)) {
            TurnProgress::Ask(ask) => {
                self.open = Some(draft);
                return Ok(vec![Action::Ask(ask)]);
            }
            TurnProgress::Valid(BriefForm::Framing(framing)) => self.manifest.framing = Some(framing),
            TurnProgress::Valid(BriefForm::Verification(found)) => self.manifest.verification = Some(found),
            TurnProgress::Failed => {
                self.remark = Some("no valid form came in this turn");
                self.failed_turns[call.agent] += 1;
            }
        }
        Ok(self.follow_decision())
    }

    fn check(&self, call: CallId, text: &str) -> Result<Valid<BriefForm>, Violation> {
        if call.agent == Member::Pathos.index() {
            let Valid { content, object } = forms::read_framing(text)?;
            forms::check_sound(ConfidenceFrom::Verbalised, content.sound)?;
            return Ok(Valid { content: BriefForm::Framing(content), object });
        }
        // The attempt is the only one, so a false quote voids its check and nothing else.
        let Valid { content, object } = forms::read_verification(text, &self.sources, true)?;
        forms::check_sound(ConfidenceFrom::Verbalised, content.sound)?;
        Ok(Valid { content: BriefForm::Verification(content), object })
    }

    /// Asks Ethos or ends the run, once the count has decided and no form is awaited.
    fn follow_decision(&mut self) -> Vec<Action> {
        let Some(decision) = &self.decision else { return Vec::new() };
        if self.open.is_some() {
            return Vec::new();
        }
        let is_unanimous = matches!(decision, CountDecision::Answer { how: How::Independent, .. });
        let outcome = decision.clone().into_outcome();
        let votes = self.counting.section(&self.setup).answers;
        if !self.is_checked
            && !is_unanimous
            && let Some(answer) = self.leading(&votes)
        {
            self.is_checked = true;
            return vec![self.ask_for_objections(&answer, &votes)];
        }
        self.outcome = Some(outcome.clone());
        vec![Action::Finish(outcome)]
    }

    fn ask_for_objections(&mut self, answer: &VotedAnswer, votes: &[VotedAnswer]) -> Action {
        let call = call_of(Member::Ethos);
        let framing = self.manifest.framing.as_ref();
        let words = prompt::brief_verification(&self.setup, framing, answer, votes, call);
        let schema = forms::brief_verification_schema(&self.sources);
        let shape = ReplyShape::Json { name: "verification", schema: (&schema).into(), measured: None };
        self.ask(call, words, shape)
    }

    /// Returns the answer that the count has decided on, or else the first one of those with the most votes.
    fn leading(&self, votes: &[VotedAnswer]) -> Option<VotedAnswer> {
        let Some(CountDecision::Answer { answer, .. }) = &self.decision else {
            return votes.first().cloned();
        };
        let sha256 = answer.canonical.digest;
        let known = votes.iter().find(|one| one.sha256 == sha256).cloned();
        // A short text counts for another that says the same, and may be the nearest to all others all the same.
        known.or_else(|| {
            Some(VotedAnswer { text: answer.shown.clone(), sha256, votes: 1, voters: Vec::new() })
        })
    }

    fn section(&self) -> CouncilSection {
        let vote = self.counting.section(&self.setup);
        let leading = self.leading(&vote.answers);
        let votes = self.manifest.confidences();
        let result = self.outcome.as_ref().map(|outcome| match outcome {
            Outcome::Agreed { .. } => {
                ConsensusResult::Reached { aggregate_confidence: None, rounds: ROUND, votes }
            }
            Outcome::NoAgreement { .. }
            | Outcome::Abstained { .. }
            | Outcome::Vetoed { .. }
            | Outcome::Budget { .. }
            | Outcome::Failed { .. }
            | Outcome::Interrupted => ConsensusResult::NotReached { final_confidence: None, attempts: ROUND },
        });
        let mut rounds = Vec::new();
        if let Some(result) = &result {
            rounds.push(CouncilRound {
                round: ROUND,
                framing: self.manifest.framing.clone(),
                response: None,
                sha256: leading.as_ref().map(|answer| answer.sha256),
                verification: self.manifest.verification.clone(),
                confidences: votes,
                result: result.clone(),
            });
        }
        CouncilSection {
            result,
            content: leading.map(|answer| answer.text),
            reasoning: None,
            citations: Vec::new(),
            changed: None,
            threshold: self.setup.params.threshold,
            weights: self.setup.params.weights,
            rounds,
            arbiter: None,
            vote: Some(vote),
        }
    }
}

/// Returns the call for a member's form.
fn call_of(member: Member) -> CallId {
    CallId { part: 0, round: ROUND, agent: member.index(), draft: 0, step: Step::Envelope, attempt: 0 }
}

impl AsMut<Executions> for CountedCouncil {
    fn as_mut(&mut self) -> &mut Executions {
        self.counting.as_mut()
    }
}

impl Protocol for CountedCouncil {
    type Section = CouncilSection;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        self.remark = None;
        if let Event::Replied { call, reply } = event
            && call.agent != Member::Logos.index()
        {
            return self.take_form(*call, reply);
        }
        let mut actions = self.step_count(event)?;
        if *event == Event::Started {
            actions.push(self.ask_for_framing());
        }
        Ok(actions)
    }

    fn report(&self) -> Report<CouncilSection> {
        let outcome = self.outcome.as_ref();
        let mut report = self.counting.report(&self.setup, outcome, self.section());
        if let (Some(Outcome::Agreed { .. }), Some(verification)) = (outcome, &self.manifest.verification) {
            report.degraded.extend(objection(verification, &self.setup.agents[Member::Ethos.index()].name));
        }
        for (agent, failed) in report.agents.iter_mut().zip(self.failed_turns) {
            agent.failed_turns += failed;
        }
        report
    }

    fn remark(&self) -> Option<&'static str> {
        self.remark
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{DegradedKind, Finish, NoAgreement};

    use serde_json::{Value, json};

    fn machine() -> CountedCouncil {
        let agent =
            |name| json!({"name": name, "domain": "d", "pack": "p", "temperature": 0.0, "max_tokens": 400});
        let agents = ["Pathos", "Logos", "Ethos"].map(agent);
        let setup = json!({
            "roleset": "tiny",
            "task": {"prompt": "How much is 2+2? Write a number."},
            "seed": 7,
            "agents": agents,
            "canonical": {"kind": "number"},
            "params": {"talk": "differing"},
            "rules": "",
        });
        let setup: Setup<CouncilParams> = serde_json::from_value(setup).unwrap();
        setup.check().unwrap();
        CountedCouncil::new(setup)
    }

    /// Takes a reply to a call, and returns what follows: calls by their agents, and the end.
    fn take(council: &mut CountedCouncil, call: CallId, text: &str) -> Vec<Action> {
        let reply =
            Reply { text: text.to_owned(), reasoning: None, finish: Finish::Stop, yes: None, model: None };
        council.step(&Event::Replied { call, reply }).unwrap()
    }

    fn sample(draft: u32) -> CallId {
        let agent = Member::Logos.index();
        CallId { part: 0, round: ROUND, agent, draft, step: Step::Sample, attempt: 0 }
    }

    fn framing() -> String {
        json!({"framing": "The sum.", "search": "", "reasoning": "", "confidence": 0.9}).to_string()
    }

    fn objections(veto: bool) -> String {
        let check = json!({"claim": "it is no sum", "source": "task", "quote": "How much is 2+2?", "verdict": "fails"});
        json!({"checks": [check], "reasoning": "It is wrong.", "veto": veto, "confidence": 0.1}).to_string()
    }

    fn asked(actions: &[Action]) -> Vec<CallId> {
        let calls = actions.iter().map(|action| match action {
            Action::Ask(ask) => Some(ask.call),
            Action::Search(_)
            | Action::Execute(_)
            | Action::Cancel(_)
            | Action::AwaitPermit
            | Action::Finish(_) => None,
        });
        calls.flatten().collect()
    }

    fn agreed(actions: &[Action]) -> Option<(How, String)> {
        match actions {
            [.., Action::Finish(Outcome::Agreed { how, text, .. })] => Some((*how, text.clone())),
            _ => None,
        }
    }

    #[test]
    fn equal_first_answers_need_no_objections() {
        let mut council = machine();
        let first = council.step(&Event::Started).unwrap();
        assert_eq!(asked(&first), [sample(0), sample(1), call_of(Member::Pathos)]);
        assert!(take(&mut council, sample(0), "Answer: 4").is_empty());
        // The run waits for the framing that it has asked for.
        assert!(take(&mut council, sample(1), "Answer: 4").is_empty());
        let end = take(&mut council, call_of(Member::Pathos), &framing());
        assert_eq!(agreed(&end), Some((How::Independent, "4".to_owned())));
        let section = serde_json::to_value(council.report().section).unwrap();
        assert_eq!(section["result"]["aggregate_confidence"], Value::Null);
        assert_eq!(
            (&section["rounds"][0]["framing"]["framing"], &section["content"]),
            (&json!("The sum."), &json!("4"))
        );
    }

    /// Ethos sees every answer with its votes, and its veto is shown and stops nothing.
    #[test]
    fn objections_are_shown_and_decide_nothing() {
        let mut council = machine();
        let _ = council.step(&Event::Started).unwrap();
        let _ = take(&mut council, call_of(Member::Pathos), &framing());
        let _ = take(&mut council, sample(0), "Answer: 5");
        let mut asks = Vec::new();
        for draft in 1..6 {
            asks = take(&mut council, sample(draft), "Answer: 4");
        }
        let [Action::Ask(ask)] = &asks[..] else { panic!("{asks:?}") };
        let prompt = &ask.messages[1].content;
        for part in [
            "\"4\" (5 of 6 votes)",
            "Another answer: \"5\" (1 of 6 votes)",
            "What is meant: \"The sum.\"",
            "2+2",
        ] {
            assert!(prompt.contains(part), "{part}: {prompt}");
        }
        let end = take(&mut council, ask.call, &objections(true));
        assert_eq!(agreed(&end), Some((How::Voted, "4".to_owned())));
        let report = council.report();
        assert_eq!(report.degraded[0].kind, DegradedKind::Objection);
        assert!(report.section.rounds[0].verification.as_ref().is_some_and(|found| found.veto));
    }

    #[test]
    fn lost_forms_are_absent() {
        let mut council = machine();
        let _ = council.step(&Event::Started).unwrap();
        assert!(take(&mut council, call_of(Member::Pathos), "no form").is_empty());
        for draft in 0..8 {
            let asks = take(&mut council, sample(draft), "I do not know.");
            let form = asked(&asks)[0];
            let end = take(&mut council, form, "nor now");
            if draft == 7 {
                let reason = NoAgreement::NoDrafts;
                assert_eq!(end, [Action::Finish(Outcome::NoAgreement { reason })]);
            }
        }
        let report = council.report();
        assert_eq!((report.agents[0].failed_turns, report.degraded.len()), (1, 0));
        assert_eq!(report.section.rounds[0].framing, None);
    }

    #[test]
    fn plan_has_every_sample_and_form() {
        // Eleven samples and a form each, and two forms.
        assert_eq!(worst_case(&machine().setup).calls, 24);
    }
}
