//! The state of a `council` run.

use std::collections::BTreeMap;

use super::evidence::{Evidence, Sources};
use super::manifest::Manifest;
use super::params::CouncilParams;
use super::section::CouncilRound;
use super::verdict::Member;
use super::{examples, prompt};
use crate::contract::{Answer, CallId, Conversation, Executions, Outcome, Setup};
use crate::text::Canonicalizer;
use crate::text::vacuity::PromptEcho;
use crate::turn::{ArbiterChoice, Arbitration, Draft};

/// The state of one `council` run.
#[derive(Clone, Debug)]
pub struct Council {
    pub(super) setup: Setup<CouncilParams>,
    pub(super) executions: Executions,
    pub(super) canonicalizer: Canonicalizer,
    pub(super) prompt_echo: PromptEcho,
    pub(super) sources: Sources,
    pub(super) manifest: Manifest,
    pub(super) conversations: [Conversation; 3],
    /// The number of sources that each agent knows.
    pub(super) known_sources: [usize; 3],
    /// The forms in the making, by the call that each waits for.
    pub(super) open: BTreeMap<CallId, Draft>,
    pub(super) phase: CouncilPhase,
    /// The answer that Logos's model gave alone, once the reply is there; `None` in it for a reply that came to nothing.
    pub(super) blind: Vec<Option<Answer>>,
    /// The answer of the round, in its canonical form.
    pub(super) answer: Option<Answer>,
    pub(super) rounds: Vec<CouncilRound>,
    /// The evidence that vetoes rested on.
    pub(super) defects: Vec<Evidence>,
    pub(super) repairs: [u32; 3],
    pub(super) failed_turns: [u32; 3],
    /// Whether an agent's confidence was to be measured and could not be.
    pub(super) unmeasured: [bool; 3],
    /// The open question to the arbiter, and the answers that it may choose from.
    pub(super) arbitration: Option<(Arbitration, Vec<Answer>)>,
    pub(super) arbiter_choice: Option<ArbiterChoice>,
    pub(super) arbiter_failed: bool,
    pub(super) outcome: Option<Outcome>,
    pub(super) remark: Option<&'static str>,
}

/// The step that the run waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CouncilPhase {
    New,
    /// The blind answer, the first framing, or both.
    Opening,
    /// Passages of the documents.
    Searching,
    /// A form of this member.
    Of(Member),
    Done,
}

impl Council {
    /// Makes the machine for a run that has not started. `setup` must pass its check.
    pub fn new(setup: Setup<CouncilParams>) -> Self {
        let sources = Sources::of_task(&setup.task);
        let own = prompt::own(&setup, &sources);
        let user_words = setup.user_words(&setup.params.constraints);
        Self {
            executions: Executions::new(&setup),
            canonicalizer: Canonicalizer::new(&setup.canonical),
            prompt_echo: setup.prompt_echo(&user_words, &own.each_ref().map(String::as_str)),
            sources,
            manifest: Manifest::new(),
            conversations: Member::ALL.map(|member| match member {
                Member::Pathos | Member::Logos => Conversation::new(setup.system(member.index())),
                Member::Ethos => examples::conversation(&setup),
            }),
            known_sources: [0; 3],
            open: BTreeMap::new(),
            phase: CouncilPhase::New,
            blind: Vec::new(),
            answer: None,
            rounds: Vec::new(),
            defects: Vec::new(),
            repairs: [0; 3],
            failed_turns: [0; 3],
            unmeasured: [false; 3],
            arbitration: None,
            arbiter_choice: None,
            arbiter_failed: false,
            outcome: None,
            remark: None,
            setup,
        }
    }
}
