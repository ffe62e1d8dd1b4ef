//! One sample: a voter answers once, blind.
//!
//! ```text
//!  words     free text ─► its answer by rule ─────────────────────► a vote
//!                          └─ none found ─► the answer in a form ─► a vote, or none
//!  whole     free text, which is the answer ──────────────────────► a vote, or none
//!  program   a program ─► it is run ─► the printed value ─────────► a vote, or none
//!  behaviour a program, which is tried before it counts ──────────► a vote, or none
//! ```
//!
//! The input is the setup, the call of the sample, and its replies. The output is requests, and at last an answer, or the reason why the
//! sample has no answer. A whole reply that breaks a rule of the task goes back once with the reason. No other sample is repaired: a further
//! one costs as much, and is independent.

use std::ops::ControlFlow;

use super::found::{self, AskedQuestion};
use super::mentions::FoundBy;
use super::options::LetteredOptions;
use super::prompt::{self, AnswerExtent, SampleForm};
use crate::behaviour::find_program;
use crate::contract::{
    Answer, Ask, CallId, Conversation, Executions, Finish, Method, ProtocolParams, Reply, ReplyShape, Setup,
    Step, Thinking, with_text,
};
use crate::text::decoding::answer_schema;
use crate::text::vacuity::PromptEcho;
use crate::text::{AnswerForm, CanonicalKind, Canonicalizer, Violation, closed, extract, program, read_one};
use crate::turn::{Draft, TurnProgress, Valid, program_answer};

use serde_json::json;

/// The parts of a run that every sample is checked with.
pub(super) struct SampleCheck<'a, P> {
    pub(super) setup: &'a Setup<P>,
    pub(super) canonicalizer: &'a Canonicalizer,
    pub(super) options: Option<&'a LetteredOptions>,
    pub(super) prompt_echo: &'a PromptEcho,
    pub(super) executions: &'a Executions,
    pub(super) form: SampleForm,
    /// The function that a program must have, where programs are compared by what they do.
    pub(super) function: Option<&'a str>,
}

/// A sample that waits for a reply.
#[derive(Clone, Debug)]
pub(super) struct OpenSample {
    draft: Draft,
    method: Method,
    /// The order of the options that the voter sees, for a question with options.
    order: Option<Vec<usize>>,
}

/// A sample that is complete.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SampleResult {
    /// It is a vote for this answer, which this rule found.
    Vote(Answer, FoundBy),
    /// It is no vote, for this reason.
    NoVote(String),
    /// It is no vote, because the server of its voter has failed. The cause is `None` for a sample after the one that failed.
    Lost(Option<String>),
}

impl SampleResult {
    /// Returns why it is no vote, if it is not one.
    pub(super) fn no_vote(&self) -> Option<String> {
        match self {
            Self::Vote(..) => None,
            Self::NoVote(why) => Some(why.clone()),
            Self::Lost(Some(cause)) => Some(format!("its server failed: {cause}")),
            Self::Lost(None) => Some("its server failed before".to_owned()),
        }
    }
}

impl OpenSample {
    /// Starts a sample.
    pub(super) fn start<P: ProtocolParams>(check: &SampleCheck<'_, P>, call: CallId) -> Self {
        let setup = check.setup;
        let alone = Conversation::new(check.form.introduction.system(setup, call.agent));
        let method = setup.agents[call.agent].method;
        if method == Method::Program {
            let prompt = prompt::program(setup);
            let draft = Draft::start(Thinking::None, call, alone, prompt, ReplyShape::Free);
            return Self { draft, method, order: None };
        }
        if check.form.answer == AnswerExtent::Whole {
            let draft = Draft::start(Thinking::Free, call, alone, prompt::whole(setup), ReplyShape::Free);
            return Self { draft, method, order: None };
        }
        let order = check.options.map(|options| options.draw(setup.seed, call));
        let shown = check.options.zip(order.as_ref()).map(|(options, order)| options.arrange(order));
        let prompt = prompt::words(setup, shown.as_deref().unwrap_or(&setup.task.prompt));
        let chars_max = setup.agents[call.agent].text_chars_max();
        let response = answer_schema(check.canonicalizer, setup.params.constraints(), chars_max);
        let schema = closed(&json!({"response": response}));
        let shape = ReplyShape::Json { name: "answer", schema: (&schema).into(), measured: None };
        Self { draft: Draft::start(Thinking::Free, call, alone, prompt, shape), method, order }
    }

    /// Returns the call that the sample waits for.
    pub(super) fn call(&self) -> CallId {
        self.draft.call()
    }

    /// Returns the request for the reply that the sample waits for.
    pub(super) fn ask<P>(&self, setup: &Setup<P>) -> Ask {
        self.draft.ask(&setup.agents[self.call().agent], setup.seed)
    }

    /// Takes a reply. Returns the next request, or the result of the sample.
    pub(super) fn reply<P: ProtocolParams>(
        &mut self,
        check: &SampleCheck<'_, P>,
        reply: &Reply,
    ) -> ControlFlow<SampleResult, Ask> {
        let (call, setup) = (self.call(), check.setup);
        let agent = &setup.agents[call.agent];
        match reply.finish {
            Finish::Stop => {}
            Finish::Length => {
                return no_vote(format!(
                    "it was cut off at {} tokens, which `--max-tokens` raises",
                    agent.max_tokens
                ));
            }
            Finish::Refused => return no_vote("the model or its server declined to answer".to_owned()),
        }
        if check.form.answer == AnswerExtent::Whole && self.method == Method::Words {
            let Some(answer) = found::whole_answer(&reply.text) else {
                return no_vote("it has thoughts and no answer".to_owned());
            };
            return match check.take_whole(call, answer) {
                Ok(answer) => ControlFlow::Break(SampleResult::Vote(answer, FoundBy::Whole)),
                Err(why @ Violation::Constraint(_)) if call.attempt == 0 => {
                    ControlFlow::Continue(self.draft.send_back(agent, setup.seed, &reply.text, &why))
                }
                Err(why) => no_vote(why.to_string()),
            };
        }
        if call.step == Step::Sample
            && let Some((answer, found_by)) = self.find_answer(check, &reply.text)
        {
            return ControlFlow::Break(match check.take(call, &answer) {
                Ok(answer) => SampleResult::Vote(answer, found_by),
                Err(why) => SampleResult::NoVote(why.to_string()),
            });
        }
        let found_by = match self.method {
            Method::Words => FoundBy::Form,
            Method::Program => FoundBy::Program,
        };
        let mut why = None;
        let progress = self.draft.reply(agent, setup.seed, 0, reply, |text, _| {
            let checked = match self.method {
                Method::Program => check.check_program(call, text),
                Method::Words => check.check_form(call, text, self.order.as_deref()),
            };
            checked.inspect_err(|violation| why = Some(violation.to_string()))
        });
        match progress {
            TurnProgress::Ask(ask) => ControlFlow::Continue(ask),
            TurnProgress::Valid(answer) => ControlFlow::Break(SampleResult::Vote(answer, found_by)),
            TurnProgress::Failed => no_vote(why.unwrap_or_default()),
        }
    }

    /// Returns the answer that the rule finds in a free text.
    fn find_answer<P: ProtocolParams>(
        &self,
        check: &SampleCheck<'_, P>,
        reply: &str,
    ) -> Option<(String, FoundBy)> {
        let question = AskedQuestion {
            prompt: &check.setup.task.prompt,
            canonicalizer: check.canonicalizer,
            choice: |text: &str| check.choice(self.order.as_deref(), text),
        };
        found::answer(reply, &question)
    }
}

fn no_vote(why: String) -> ControlFlow<SampleResult, Ask> {
    ControlFlow::Break(SampleResult::NoVote(why))
}

impl<P: ProtocolParams> SampleCheck<'_, P> {
    /// Returns the choice of the task behind the words of a voter.
    fn choice(&self, order: Option<&[usize]>, text: &str) -> Option<String> {
        if let Some((options, order)) = self.options.zip(order) {
            return options.choice(order, text).map(str::to_owned);
        }
        self.canonicalizer.canonicalize(text).ok().map(|_| self.canonicalizer.shown(text))
    }

    /// Accepts a whole reply as an answer. Of a reply with a program, the answer is the program.
    fn take_whole(&self, call: CallId, reply: &str) -> Result<Answer, Violation> {
        match self.function {
            Some(function) => self.take(call, &find_program(reply, function)?),
            None => self.take(call, reply),
        }
    }

    /// Accepts an answer that follows every rule.
    fn take(&self, call: CallId, text: &str) -> Result<Answer, Violation> {
        // A reply that is cut off is no vote, so a program, which has few characters in a token, may be as long as its reply.
        let chars_max = match self.function {
            Some(_) => usize::MAX,
            None => self.setup.agents[call.agent].text_chars_max(),
        };
        let rules = self.setup.params.constraints();
        Answer::take(text, chars_max, self.canonicalizer, self.prompt_echo, rules, self.executions)
    }

    fn check_form(
        &self,
        call: CallId,
        text: &str,
        order: Option<&[usize]>,
    ) -> Result<Valid<Answer>, Violation> {
        let object = extract(text)?.object;
        let AnswerForm { response } = read_one(&with_text(object, self.setup.canonical.kind))?;
        let choice = if self.setup.canonical.kind == CanonicalKind::Choice {
            self.choice(order, &response)
        } else {
            None
        };
        // A letter that names no option that the voter saw is no choice, however it could be read.
        let unread = if order.is_some() { "" } else { response.as_str() };
        let content = self.take(call, choice.as_deref().unwrap_or(unread))?;
        Ok(Valid { content, object: object.to_owned() })
    }

    fn check_program(&self, call: CallId, reply: &str) -> Result<Valid<Answer>, Violation> {
        let source = program::runnable_source(reply)?;
        let text = program_answer(&source, &self.setup.canonical, self.executions)?;
        let content = self.take(call, &text)?;
        Ok(Valid { content, object: reply.to_owned() })
    }
}
