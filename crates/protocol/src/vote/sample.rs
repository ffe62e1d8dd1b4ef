//! One sample: a voter answers once, blind.
//!
//! ```text
//!  words     free text ─► its answer by rule ─────────────────────► a vote
//!                          └─ none found ─► the answer in a form ─► a vote, or none
//!  program   a program ─► it is run ─► the printed value ─────────► a vote, or none
//! ```
//!
//! The input is the setup, the call of the sample, and its replies. The output is requests, and at last an answer, or the reason why the
//! sample has no answer. No sample is repaired: a further one costs as much, and is independent.

use super::found::{self, AskedQuestion};
use super::mentions::FoundBy;
use super::options::{Arrangement, LetteredOptions};
use super::params::VoteSetup;
use super::prompt;
use crate::contract::{
    Answer, Ask, CallId, Conversation, Executions, Finish, Method, Reply, ReplyShape, Step, Thinking,
    with_text,
};
use crate::text::decoding::answer_schema;
use crate::text::vacuity::PromptEcho;
use crate::text::{CanonicalKind, Canonicalizer, Violation, extract, read_one};
use crate::turn::{Draft, ProgramAnswer, TurnProgress, Valid, program_answer};

use serde::Deserialize;
use serde_json::json;

/// The parts of a run that every sample is judged with.
pub(super) struct Judge<'a> {
    pub(super) setup: &'a VoteSetup,
    pub(super) canonicalizer: &'a Canonicalizer,
    pub(super) options: Option<&'a LetteredOptions>,
    pub(super) told: &'a PromptEcho,
    pub(super) executions: &'a Executions,
}

/// A sample in the making.
#[derive(Clone, Debug)]
pub(super) struct Drawing {
    draft: Draft,
    method: Method,
    /// The order of the options that the voter sees, for a question with options.
    arrangement: Option<Arrangement>,
}

/// A sample that is complete.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Drawn {
    /// It is a vote for this answer, which this rule found.
    Vote(Answer, FoundBy),
    /// It is no vote, for this reason.
    NoVote(String),
}

/// The consequence of a reply.
pub(super) enum SampleProgress {
    Ask(Ask),
    Drawn(Drawn),
}

/// The form in which a voter gives its answer if the rule has found none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Response {
    response: String,
}

impl Drawing {
    /// Starts a sample.
    pub(super) fn start(judge: &Judge<'_>, call: CallId) -> Self {
        let setup = judge.setup;
        let alone = Conversation::new(setup.system_alone(call.agent));
        let method = setup.agents[call.agent].method;
        if method == Method::Program {
            let told = prompt::program(setup);
            let draft = Draft::start(Thinking::None, call, alone, told, ReplyShape::Free);
            return Self { draft, method, arrangement: None };
        }
        let arrangement = judge.options.map(|options| options.draw(setup.seed, call));
        let shown = judge.options.zip(arrangement.as_ref()).map(|(options, order)| options.arranged(order));
        let told = prompt::words(setup, shown.as_deref().unwrap_or(&setup.task.prompt));
        let chars_max = setup.agents[call.agent].text_chars_max();
        let schema = json!({
            "type": "object",
            "properties": {"response": answer_schema(judge.canonicalizer, &setup.params.constraints, chars_max)},
            "required": ["response"],
            "additionalProperties": false,
        });
        let shape = ReplyShape::Json { name: "answer", schema: (&schema).into(), measured: None };
        Self { draft: Draft::start(Thinking::Free, call, alone, told, shape), method, arrangement }
    }

    /// Returns the call that the sample waits for.
    pub(super) fn call(&self) -> CallId {
        self.draft.call()
    }

    /// Returns the request for the reply that the sample waits for.
    pub(super) fn ask(&self, setup: &VoteSetup) -> Ask {
        self.draft.ask(&setup.agents[self.call().agent], setup.seed)
    }

    /// Takes a reply.
    pub(super) fn reply(&mut self, judge: &Judge<'_>, reply: &Reply) -> SampleProgress {
        let (call, setup) = (self.call(), judge.setup);
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
        if call.step == Step::Sample
            && let Some((answer, found_by)) = self.found(judge, &reply.text)
        {
            return SampleProgress::Drawn(match judge.take(call, &answer) {
                Ok(answer) => Drawn::Vote(answer, found_by),
                Err(why) => Drawn::NoVote(why.to_string()),
            });
        }
        let found_by = match self.method {
            Method::Words => FoundBy::Form,
            Method::Program => FoundBy::Program,
        };
        let mut why = None;
        let check = |text: &str, _: Option<&str>| {
            let checked = match self.method {
                Method::Program => judge.check_program(call, text),
                Method::Words => judge.check_form(call, text, self.arrangement.as_ref()),
            };
            checked.inspect_err(|violation| why = Some(violation.to_string()))
        };
        match self.draft.reply(agent, setup.seed, 0, reply, check) {
            TurnProgress::Ask(ask) => SampleProgress::Ask(ask),
            TurnProgress::Valid(answer) => SampleProgress::Drawn(Drawn::Vote(answer, found_by)),
            TurnProgress::Failed => no_vote(why.unwrap_or_default()),
        }
    }

    /// Returns the answer that the rule finds in a free text.
    fn found(&self, judge: &Judge<'_>, said: &str) -> Option<(String, FoundBy)> {
        let choice = |text: &str| judge.choice(self.arrangement.as_ref(), text);
        found::answer(
            said,
            &AskedQuestion { prompt: &judge.setup.task.prompt, canonicalizer: judge.canonicalizer, choice },
        )
    }
}

fn no_vote(why: String) -> SampleProgress {
    SampleProgress::Drawn(Drawn::NoVote(why))
}

impl Judge<'_> {
    /// Returns the choice of the task behind the words of a voter.
    fn choice(&self, arrangement: Option<&Arrangement>, text: &str) -> Option<String> {
        if let Some((options, order)) = self.options.zip(arrangement) {
            return options.choice(order, text).map(str::to_owned);
        }
        self.canonicalizer.canonicalize(text).ok().map(|_| self.canonicalizer.shown(text))
    }

    /// Accepts an answer that follows every rule.
    fn take(&self, call: CallId, text: &str) -> Result<Answer, Violation> {
        let (chars_max, rules) =
            (self.setup.agents[call.agent].text_chars_max(), &self.setup.params.constraints);
        Answer::take(text, chars_max, self.canonicalizer, self.told, rules, self.executions)
    }

    fn check_form(
        &self,
        call: CallId,
        text: &str,
        arrangement: Option<&Arrangement>,
    ) -> Result<Valid<Answer>, Violation> {
        let object = extract(text)?.object;
        let Response { response } = read_one(&with_text(object, self.setup.canonical.kind))?;
        let is_choice = self.setup.canonical.kind == CanonicalKind::Choice;
        let meant = is_choice.then(|| self.choice(arrangement, &response)).flatten();
        // A letter that names no option that the voter saw is no choice, however it could be read.
        let unread = if arrangement.is_some() { "" } else { response.as_str() };
        let content = self.take(call, meant.as_deref().unwrap_or(unread))?;
        Ok(Valid { content, object: object.to_owned() })
    }

    fn check_program(&self, call: CallId, reply: &str) -> Result<Valid<Answer>, Violation> {
        let ProgramAnswer { text, .. } = program_answer(reply, &self.setup.canonical, self.executions)?;
        let content = self.take(call, &text)?;
        Ok(Valid { content, object: reply.to_owned() })
    }
}
