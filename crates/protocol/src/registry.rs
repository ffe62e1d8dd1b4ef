//! The list of all protocols; no other file lists them all.
//!
//! The input is a setup with the parameters of one protocol. The output is its machine, its report and the most that a run can cost. To add
//! a protocol, add a line to each `enum`, to `each` and to `defaults`, and write its two conversions.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::contract::{
    Action, AgentSetup, CallId, Event, Executions, Override, Protocol, ProtocolParams, Report, Setup, Task,
    Unexpected, WorstCase,
};
use super::council::{CouncilParams, CouncilSection, Member};
use super::map_reduce::{self, MapReduce, MapReduceSection};
use super::pair::{PairParams, PairSection};
use super::panel::{PanelParams, PanelSection};
use super::review::{ApprovalParams, ApprovalSection};
use super::sampling::VoteSection;
use super::turn::ExecutingMachine;
use super::vote::VoteParams;
use crate::text::{CanonicalRule, Constraint};

/// One run of any protocol.
pub type RunSetup = Setup<Params>;

/// A protocol and its parameters.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "protocol", rename_all = "snake_case")]
pub enum Params {
    /// Two agents work until both declare the same text final.
    Pair(PairParams),
    /// One agent states the intent, one answers and one verifies; a weighted confidence decides.
    Council(CouncilParams),
    /// Every member answers and judges the others' answers; the mean score decides.
    Panel(PanelParams),
    /// Reviewers judge a change; a quorum decides.
    Approval(ApprovalParams),
    /// Blind samples are drawn until one answer leads clearly.
    Vote(VoteParams),
}

impl Params {
    /// Returns true if the run is a vote that waits for permits, because it shares a budget of tokens.
    pub fn is_paced(&self) -> bool {
        match self {
            Self::Vote(vote) => vote.paced,
            Self::Pair(_) | Self::Council(_) | Self::Panel(_) | Self::Approval(_) => false,
        }
    }

    /// Returns the default parameters of every protocol.
    pub fn defaults() -> [Self; 5] {
        [
            Self::Pair(PairParams::default()),
            Self::Council(CouncilParams::default()),
            Self::Panel(PanelParams::default()),
            Self::Approval(ApprovalParams::default()),
            Self::Vote(VoteParams::default()),
        ]
    }
}

impl RunSetup {
    /// Returns true if a call draws a blind sample that the run counts. A run that reads a document in pieces counts none itself.
    pub fn is_sample(&self, call: CallId) -> bool {
        if call.part > 0 {
            return false;
        }
        match &self.params {
            Params::Vote(_) => true,
            // The round after the answers is that of the declarations, or of a talk.
            Params::Pair(pair) => !pair.talk.is_always() && call.round == 1,
            Params::Council(council) => council.counts(&self.task) && call.agent == Member::Logos.index(),
            Params::Panel(panel) => !panel.talk.is_always(),
            Params::Approval(_) => false,
        }
    }
}

/// The part of a report that only one protocol has, under the protocol's name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    Pair(Box<PairSection>),
    Council(Box<CouncilSection>),
    Panel(Box<PanelSection>),
    Approval(Box<ApprovalSection>),
    Vote(Box<VoteSection>),
    /// The part of a run that reads a document in pieces.
    MapReduce(Box<MapReduceSection<Section>>),
}

impl Section {
    /// Returns the counted samples, if the run has any.
    pub fn votes(&self) -> Option<&VoteSection> {
        match self {
            Self::Vote(vote) => Some(vote),
            Self::Pair(pair) => pair.vote.as_ref(),
            Self::Panel(panel) => panel.vote.as_ref(),
            Self::Council(council) => council.vote.as_ref(),
            Self::Approval(_) | Self::MapReduce(_) => None,
        }
    }

    /// Returns the counted samples, if the run has any, so that the caller fills in what only it knows.
    pub fn votes_mut(&mut self) -> Option<&mut VoteSection> {
        match self {
            Self::Vote(vote) => Some(vote),
            Self::Pair(pair) => pair.vote.as_mut(),
            Self::Panel(panel) => panel.vote.as_mut(),
            Self::Council(council) => council.vote.as_mut(),
            Self::Approval(_) | Self::MapReduce(_) => None,
        }
    }
}

/// The machine of any run.
pub type Machine = Box<dyn Protocol<Section = Section>>;

/// A protocol's machine, with the report type of any run.
struct SectionAdapter<M>(M);

impl<M: Protocol<Section: Into<Section>>> Protocol for SectionAdapter<M> {
    type Section = Section;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        self.0.step(event)
    }

    fn report(&self) -> Report<Section> {
        self.0.report().map_section(Into::into)
    }

    fn remark(&self) -> Option<&'static str> {
        self.0.remark()
    }
}

/// Makes the machine of a protocol whose replies may need an execution.
fn make_executing<M>(machine: M) -> Machine
where
    M: Protocol<Section: Into<Section>> + AsMut<Executions> + Clone + 'static,
{
    Box::new(SectionAdapter(ExecutingMachine::new(machine)))
}

/// Evaluates the same expression for every protocol.
macro_rules! each {
    ($params:expr, $name:ident => $do:expr) => {
        match $params {
            Params::Pair($name) => $do,
            Params::Council($name) => $do,
            Params::Panel($name) => $do,
            Params::Approval($name) => $do,
            Params::Vote($name) => $do,
        }
    };
}

impl ProtocolParams for Params {
    type Machine = Machine;

    fn protocol(&self) -> &'static str {
        each!(self, params => params.protocol())
    }

    fn rules(&self) -> &'static str {
        each!(self, params => params.rules())
    }

    fn agents(&self) -> RangeInclusive<usize> {
        each!(self, params => params.agents())
    }

    fn constraints(&self) -> &[Constraint] {
        each!(self, params => params.constraints())
    }

    fn constraints_mut(&mut self) -> Option<&mut Vec<Constraint>> {
        each!(self, params => params.constraints_mut())
    }

    fn apply(&mut self, change: &Override) -> bool {
        each!(self, params => params.apply(change))
    }

    fn has_members(&self) -> bool {
        each!(self, params => params.has_members())
    }

    fn reads_pieces(&self) -> bool {
        each!(self, params => params.reads_pieces())
    }

    fn runs_programs(&self) -> bool {
        each!(self, params => params.runs_programs())
    }

    fn out_of_range(&self) -> Option<&'static str> {
        each!(self, params => params.out_of_range())
    }

    fn unfit(&self, agents: &[AgentSetup]) -> Option<&'static str> {
        each!(self, params => params.unfit(agents))
    }

    fn unreadable(&self, task: &Task, canonical: &CanonicalRule) -> Option<&'static str> {
        each!(self, params => params.unreadable(task, canonical))
    }

    fn compares_behaviour(&self) -> bool {
        each!(self, params => params.compares_behaviour())
    }

    fn bears_loss_of(&self, agents: &[AgentSetup], lost: &BTreeSet<usize>) -> bool {
        each!(self, params => params.bears_loss_of(agents, lost))
    }

    fn machine(mut setup: Setup<Self>) -> Machine {
        // From here on the seed is that of the draws; a record keeps the one that a person has given.
        setup.seed = setup.drawing_seed();
        if let Some(chunk_plan) = setup.chunk_plan.clone() {
            return Box::new(SectionAdapter(MapReduce::new(setup, chunk_plan)));
        }
        match setup.params.clone() {
            Params::Pair(params) => make_executing(setup.with_params(params).machine()),
            Params::Council(params) => make_executing(setup.with_params(params).machine()),
            Params::Panel(params) => make_executing(setup.with_params(params).machine()),
            Params::Vote(params) => make_executing(setup.with_params(params).machine()),
            // Reviewers write no final text.
            Params::Approval(params) => Box::new(SectionAdapter(setup.with_params(params).machine())),
        }
    }

    fn worst_case(setup: &Setup<Self>) -> WorstCase {
        if setup.chunk_plan.is_some() {
            return map_reduce::worst_case(setup);
        }
        each!(setup.params.clone(), params => setup.clone().with_params(params).worst_case())
    }
}

impl From<PairSection> for Section {
    fn from(section: PairSection) -> Self {
        Self::Pair(Box::new(section))
    }
}

impl From<CouncilSection> for Section {
    fn from(section: CouncilSection) -> Self {
        Self::Council(Box::new(section))
    }
}

impl From<PanelSection> for Section {
    fn from(section: PanelSection) -> Self {
        Self::Panel(Box::new(section))
    }
}

impl From<ApprovalSection> for Section {
    fn from(section: ApprovalSection) -> Self {
        Self::Approval(Box::new(section))
    }
}

impl From<VoteSection> for Section {
    fn from(section: VoteSection) -> Self {
        Self::Vote(Box::new(section))
    }
}

impl From<MapReduceSection<Section>> for Section {
    fn from(section: MapReduceSection<Section>) -> Self {
        Self::MapReduce(Box::new(section))
    }
}

impl From<Setup<PairParams>> for RunSetup {
    fn from(setup: Setup<PairParams>) -> Self {
        let params = Params::Pair(setup.params.clone());
        setup.with_params(params)
    }
}

impl From<Setup<CouncilParams>> for RunSetup {
    fn from(setup: Setup<CouncilParams>) -> Self {
        let params = Params::Council(setup.params.clone());
        setup.with_params(params)
    }
}

impl From<Setup<PanelParams>> for RunSetup {
    fn from(setup: Setup<PanelParams>) -> Self {
        let params = Params::Panel(setup.params.clone());
        setup.with_params(params)
    }
}

impl From<Setup<ApprovalParams>> for RunSetup {
    fn from(setup: Setup<ApprovalParams>) -> Self {
        let params = Params::Approval(setup.params.clone());
        setup.with_params(params)
    }
}

impl From<Setup<VoteParams>> for RunSetup {
    fn from(setup: Setup<VoteParams>) -> Self {
        let params = Params::Vote(setup.params.clone());
        setup.with_params(params)
    }
}
