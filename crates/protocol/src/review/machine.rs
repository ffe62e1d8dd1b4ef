//! The machine of a review: events in, actions out. The module documentation has the diagram.

use std::ops::ControlFlow;

use super::confirmation::{CONFIRMATION, claims, confirmation_schema, read_confirmation};
use super::diff::DiffLine;
use super::form::{self, Finding};
use super::prompt;
use super::report::ApprovalSection;
use super::state::{APPROVED, Review};
use crate::contract::{
    Action, CallId, Conversation, Event, How, NoAgreement, Outcome, Protocol, Reply, ReplyShape, Report,
    Step, Unexpected,
};
use crate::text::Violation;
use crate::turn::{Draft, TurnProgress, Valid};
use crypto::Digest;
use quorum::{Opinion, Severity, Vote};

impl Review {
    // ===== Asking =====

    /// Asks a reviewer for its next form. Each reviewer reads one part after the other; all reviewers read at the same time.
    fn ask_next(&mut self, reviewer: usize) -> Option<Action> {
        let part = self.waiting[reviewer].pop_front()?;
        let round = u32::try_from(part + 1).unwrap_or(u32::MAX);
        let draft = if self.is_confirming { CONFIRMATION } else { 0 };
        let call = CallId { part: 0, round, agent: reviewer, draft, step: Step::Think, attempt: 0 };
        let lines = &self.parts[part];
        let (prompt, name, schema) = if self.is_confirming {
            let claims = claims(&self.forms, reviewer, part);
            let prompt = prompt::confirm(&self.setup, call, lines, &claims);
            (prompt, "confirmation", confirmation_schema(claims.len()))
        } else {
            (prompt::review(&self.setup, call, lines, self.parts.len()), "review", form::schema(lines))
        };
        let shape = ReplyShape::Json { name, schema: (&schema).into(), measured: None };
        let alone = Conversation::new(self.setup.system(reviewer));
        let draft = Draft::start(self.setup.params.thinking, call, alone, prompt, shape);
        let ask = draft.ask(&self.setup.agents[reviewer], self.setup.seed);
        self.open.insert(draft.call(), draft);
        Some(Action::Ask(ask))
    }

    // ===== Taking =====

    fn replied(&mut self, call: CallId, reply: &Reply) -> Result<Vec<Action>, Unexpected> {
        let Some(draft) = self.open.remove(&call) else { return Err(Unexpected::NotAsked(call)) };
        let (reviewer, part) = (call.agent, call.round as usize - 1);
        if self.is_confirming {
            let count = claims(&self.forms, reviewer, part).len();
            let answers = match self.take(draft, reply, |text, _| read_confirmation(text, count)) {
                ControlFlow::Break(ask) => return Ok(vec![ask]),
                ControlFlow::Continue(answers) => answers,
            };
            if answers.is_none() {
                self.remark = Some("it judged the findings of others in no valid form, and confirms none");
            }
            self.confirmations[reviewer].insert(part, answers);
        } else {
            let form = match self.take(draft, reply, |text, parts| form::read(text, &parts[part])) {
                ControlFlow::Break(ask) => return Ok(vec![ask]),
                ControlFlow::Continue(form) => form,
            };
            if form.is_none() {
                self.remark = Some("it wrote no valid review, and abstains");
            }
            self.forms[reviewer].insert(part, form);
        }
        Ok(self.go_on(reviewer))
    }

    /// Takes the reply to a form. Returns the request for another attempt, or the form; `None` for one that stays invalid. `read` gets the
    /// reply and all parts.
    fn take<T>(
        &mut self,
        mut draft: Draft,
        reply: &Reply,
        read: impl FnOnce(&str, &[Vec<DiffLine>]) -> Result<Valid<T>, Violation>,
    ) -> ControlFlow<Action, Option<T>> {
        let reviewer = draft.call().agent;
        let (agent, max_repairs) = (&self.setup.agents[reviewer], self.setup.params.max_repairs);
        let progress =
            draft.reply(agent, self.setup.seed, max_repairs, reply, |text, _| read(text, &self.parts));
        let form = match progress {
            TurnProgress::Ask(ask) => {
                self.open.insert(draft.call(), draft);
                return ControlFlow::Break(Action::Ask(ask));
            }
            TurnProgress::Valid(form) => Some(form),
            TurnProgress::Failed => None,
        };
        self.repairs[reviewer] += draft.repairs;
        ControlFlow::Continue(form)
    }

    /// Asks for what comes next, after a reviewer has written a form. When all reviews are written, the findings of others come.
    fn go_on(&mut self, reviewer: usize) -> Vec<Action> {
        if let Some(action) = self.ask_next(reviewer) {
            return vec![action];
        }
        if !self.open.is_empty() {
            return Vec::new();
        }
        if self.setup.params.confirm && !std::mem::replace(&mut self.is_confirming, true) {
            let reviewers = self.setup.agents.len();
            for reviewer in 0..reviewers {
                let parts = 0..self.parts.len();
                let judged = parts.filter(|part| !claims(&self.forms, reviewer, *part).is_empty());
                self.waiting[reviewer] = judged.collect();
            }
            let actions: Vec<Action> =
                (0..reviewers).filter_map(|reviewer| self.ask_next(reviewer)).collect();
            if !actions.is_empty() {
                return actions;
            }
        }
        let outcome = self.verdict();
        self.outcome = Some(outcome.clone());
        vec![Action::Finish(outcome)]
    }

    // ===== Deciding =====

    fn verdict(&self) -> Outcome {
        let opinions: Vec<Option<Opinion>> =
            (0..self.setup.agents.len()).map(|at| self.opinion(at)).collect();
        for (at, opinion) in opinions.iter().enumerate() {
            if !self.setup.params.veto || !matches!(opinion, Some(Opinion::Reject { .. })) {
                continue;
            }
            let critical = self.findings(at).find(|finding| finding.severity == Severity::Critical);
            if let Some(Finding { path, problem, quote, .. }) = critical {
                let reason = format!("{}: {problem}", self.setup.agents[at].name);
                return Outcome::Vetoed { reason, source: path.clone(), quote: quote.clone() };
            }
        }
        let approving = opinions.iter().flatten().filter(|opinion| opinion.vote() == Vote::Approve).count();
        if self.quorum().is_some_and(|quorum| approving >= quorum.size()) {
            let text = APPROVED.to_owned();
            let sha256 = Digest::new(text.as_bytes());
            return Outcome::Agreed { how: How::Independent, text, sha256 };
        }
        Outcome::NoAgreement { reason: NoAgreement::NoQuorum }
    }
}

impl Protocol for Review {
    type Section = ApprovalSection;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        self.remark = None;
        match event {
            Event::Started if !self.has_started => {
                self.has_started = true;
                Ok((0..self.setup.agents.len()).filter_map(|reviewer| self.ask_next(reviewer)).collect())
            }
            Event::Replied { call, reply } => self.replied(*call, reply),
            Event::Started
            | Event::Lost { .. }
            | Event::Found { .. }
            | Event::Executed { .. }
            | Event::Permitted
            | Event::Closed => Err(event.into()),
        }
    }

    fn report(&self) -> Report<ApprovalSection> {
        self.make_report()
    }

    fn remark(&self) -> Option<&'static str> {
        self.remark
    }
}

#[cfg(test)]
mod tests {
    use super::super::ApprovalParams;
    use super::super::prompt::RULES;
    use super::*;
    use crate::contract::{AgentSetup, Ask, Document, Finish, Interpreter, Method, Setup, Task, Thinking};
    use crate::text::CanonicalRule;
    use crate::text::TextMemos;
    use serde_json::json;

    const DIFF: &str = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a = 1\n+a = 2\n";

    fn review(reviewers: usize, veto: bool) -> Review {
        let agent = |at: usize| AgentSetup {
            name: format!("R{at}"),
            domain: "quality".to_owned(),
            pack: "Read.".to_owned(),
            comparing: String::new(),
            temperature: 0.5,
            max_tokens: 500,
            method: Method::Words,
        };
        let document = Document { name: "change".to_owned(), text: DIFF.into(), redacted: false };
        let task =
            Task { prompt: "May it be applied?".to_owned(), documents: vec![document], is_searched: false };
        Review::new(Setup {
            roleset: "reviewers".to_owned(),
            task,
            seed: 7,
            agents: (0..reviewers).map(agent).collect(),
            arbiter: None,
            canonical: CanonicalRule::default(),
            params: ApprovalParams { veto, thinking: Thinking::None, ..ApprovalParams::default() },
            rules: RULES.to_owned(),
            check_command: None,
            interpreter: Interpreter::default(),
            chunk_plan: None,
            memos: TextMemos::default(),
        })
    }

    fn asks(actions: Vec<Action>) -> Vec<Ask> {
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

    /// Lets each reviewer write its replies in order, until the review is over.
    fn play(mut review: Review, replies: &[&[&str]]) -> Review {
        let mut open = asks(review.step(&Event::Started).unwrap());
        while let Some(Ask { call, .. }) = open.pop() {
            let text = replies[call.agent][(call.attempt as usize).min(replies[call.agent].len() - 1)];
            let reply = Reply {
                text: text.to_owned(),
                reasoning: None,
                finish: Finish::Stop,
                yes: None,
                model: None,
            };
            open.extend(asks(review.step(&Event::Replied { call, reply }).unwrap()));
        }
        review
    }

    fn form(verdict: &str, severity: Option<&str>) -> String {
        let finding =
            severity.map(|severity| json!({"line": "+a = 2", "problem": "it is 2", "severity": severity}));
        let findings: Vec<_> = finding.into_iter().collect();
        json!({"findings": findings, "summary": "Sets it to 2.", "verdict": verdict, "confidence": 90})
            .to_string()
    }

    /// The quorum is of all reviewers, whether they answer or not.
    #[test]
    fn approval_needs_quorum_of_all_reviewers() {
        let (yes, no, dunno) = (form("approve", None), form("reject", Some("high")), form("abstain", None));
        let (yes, no, dunno): (&[&str], &[&str], &[&str]) = (&[&yes], &[&no], &[&dunno]);
        let broken: &[&str] = &["I approve!"];
        let name = |replies: &[&[&str]]| play(review(4, false), replies).outcome.unwrap().name();
        assert_eq!(name(&[yes, yes, yes, yes]), "agreed");
        assert_eq!(name(&[no, yes, yes, yes]), "agreed", "one of four may be wrong");
        assert_eq!(name(&[yes, yes, broken, yes]), "agreed");
        assert_eq!(name(&[yes, yes, no, no]), "no_agreement");
        assert_eq!(name(&[yes, yes, dunno, dunno]), "no_agreement", "abstention never helps");
        assert_eq!(name(&[yes, yes, broken, dunno]), "no_agreement", "nor does silence");
    }

    #[test]
    fn critical_finding_vetoes_if_roleset_says_so() {
        let (yes, no) = (form("approve", None), form("reject", Some("critical")));
        let replies: [&[&str]; 4] = [&[&yes], &[&yes], &[&no], &[&yes]];
        let vetoed = play(review(4, true), &replies).outcome.unwrap();
        let Outcome::Vetoed { reason, source, quote } = vetoed else { panic!("{vetoed:?}") };
        assert_eq!((reason.as_str(), source.as_str(), quote.as_str()), ("R2: it is 2", "x", "+a = 2"));
        assert_eq!(play(review(4, false), &replies).outcome.unwrap().name(), "agreed");
    }

    /// The author of a form that stays refused abstains in the end.
    #[test]
    fn refused_form_is_asked_for_again() {
        let (yes, bad) = (form("approve", None), form("reject", None));
        let done = play(review(4, false), &[&[&bad, &yes], &[&bad], &[&yes], &[&yes]]);
        assert_eq!(done.opinion(0).unwrap().vote(), Vote::Approve);
        let Some(Opinion::Abstain { reason }) = done.opinion(1) else { panic!() };
        assert_eq!(reason, "it wrote no valid review of part 1 of 1");
        assert_eq!(done.repairs, [1, 3, 0, 0]);
        let report = done.make_report();
        assert_eq!(report.agents[1].failed_turns, 1);
    }

    /// The findings of others are judged once all reviews are written, without the names of their authors, and change no opinion.
    #[test]
    fn findings_are_confirmed_by_others() {
        let (yes, no) = (form("approve", None), form("reject", Some("high")));
        let forms = [&no, &yes, &no];
        let judged =
            [r#"{"claim_1": "no"}"#, r#"{"claim_1": "yes", "claim_2": "no"}"#, "I agree with all of them."];
        let mut review = review(3, false);
        review.setup.params.confirm = true;
        let mut open = asks(review.step(&Event::Started).unwrap());
        let mut prompts = Vec::new();
        while let Some(Ask { call, messages, .. }) = open.pop() {
            let is_judging = call.draft == CONFIRMATION;
            if is_judging {
                assert!(review.forms.iter().all(|forms| forms.len() == 1), "every review is written");
                prompts.extend(messages.last().map(|message| message.content.clone()));
            }
            let text = if is_judging { judged[call.agent] } else { forms[call.agent].as_str() };
            let (reasoning, yes, model) = (None, None, None);
            let reply = Reply { text: text.to_owned(), reasoning, finish: Finish::Stop, yes, model };
            open.extend(asks(review.step(&Event::Replied { call, reply }).unwrap()));
        }
        assert!(
            prompts.iter().all(|prompt| !prompt.contains("R0") && !prompt.contains("reject")),
            "{prompts:?}"
        );
        let report = review.make_report();
        let found: Vec<(&str, Vec<&str>)> = report
            .section
            .findings
            .iter()
            .flatten()
            .map(|found| (found.reviewer.as_str(), found.confirmed_by.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(found, [("R0", vec!["R1"]), ("R2", vec![])]);
        assert_eq!(report.degraded.len(), 1, "one judged in no valid form: {:?}", report.degraded);
        assert_eq!(review.outcome.unwrap().name(), "no_agreement", "two of three reject");
    }

    /// No one can confirm what a single reviewer has found, so nothing says that it is not confirmed.
    #[test]
    fn single_reviewer_has_nothing_to_confirm() {
        let mut alone = review(1, false);
        alone.setup.params.confirm = true;
        let done = play(alone, &[&[&form("reject", Some("high"))]]);
        let section = done.make_report().section;
        assert_eq!((section.findings.is_none(), section.all_findings().len()), (true, 1));
    }
}
