//! The interface to a protocol before a run begins, without knowing which protocol it is.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::cost::WorstCase;
use super::machine::Protocol;
use super::overrides::Override;
use super::setup::{AgentSetup, BadSetup, Setup};
use super::task::Task;
use crate::text::{CanonicalKind, CanonicalRule, Constraint};

/// The parameters of a protocol, and everything that a caller can ask of it before a run.
pub trait ProtocolParams: Clone {
    /// The machine that runs the protocol.
    type Machine: Protocol;

    /// Returns the protocol's name in files and on the command line.
    fn protocol(&self) -> &'static str;

    /// Returns the protocol's own rules for its agents, in addition to their packs.
    fn rules(&self) -> &'static str;

    /// Returns the number of agents that the protocol allows, without the arbiter.
    fn agents(&self) -> RangeInclusive<usize>;

    /// Returns the rules of the task that code checks.
    fn constraints(&self) -> &[Constraint];

    /// Returns the same rules for changes; `None` if the protocol has no such rules.
    fn constraints_mut(&mut self) -> Option<&mut Vec<Constraint>>;

    /// Replaces the roleset's value. Returns whether the protocol has that parameter.
    fn apply(&mut self, change: &Override) -> bool;

    /// Returns whether the members can be named for each run.
    fn has_members(&self) -> bool {
        false
    }

    /// Returns whether the protocol can read a long document in pieces.
    fn reads_pieces(&self) -> bool {
        true
    }

    /// Returns whether its agents may answer by programs.
    fn runs_programs(&self) -> bool {
        false
    }

    /// Returns the range of the first parameter that is out of range, in words, if there is one.
    fn out_of_range(&self) -> Option<&'static str>;

    /// Returns why the protocol cannot work with these agents, if it cannot.
    fn unfit(&self, _agents: &[AgentSetup]) -> Option<&'static str> {
        None
    }

    /// Returns why the protocol cannot work on a task, if it cannot.
    fn unreadable(&self, _task: &Task, _canonical: &CanonicalRule) -> Option<&'static str> {
        None
    }

    /// Returns true if the protocol compares programs by what they do.
    fn compares_behaviour(&self) -> bool {
        false
    }

    /// Returns true if a run of these agents continues without those of them that were lost, because their servers have failed for good.
    fn bears_loss_of(&self, _agents: &[AgentSetup], _lost: &BTreeSet<usize>) -> bool {
        false
    }

    /// Makes the machine of a run. The setup must pass [`Setup::check`].
    fn machine(setup: Setup<Self>) -> Self::Machine;

    /// Returns the most that a run can use.
    fn worst_case(setup: &Setup<Self>) -> WorstCase;

    /// Checks the number of agents, without the arbiter.
    ///
    /// # Errors
    ///
    /// [`BadSetup::Agents`] names the number that the protocol allows.
    fn check_agents(&self, found: usize) -> Result<(), BadSetup> {
        let range = self.agents();
        if range.contains(&found) {
            return Ok(());
        }
        let (min, max) = range.into_inner();
        let wanted = if min == max { min.to_string() } else { format!("{min} to {max}") };
        Err(BadSetup::Agents { protocol: self.protocol(), wanted, found })
    }
}

impl<P: ProtocolParams> Setup<P> {
    /// Makes the machine of this run. The setup must pass [`Setup::check`].
    pub fn machine(self) -> P::Machine {
        P::machine(self)
    }

    /// Returns the most that this run can use.
    pub fn worst_case(&self) -> WorstCase {
        P::worst_case(self)
    }

    /// Returns true if this run continues without these agents, whose servers have failed for good. It follows from the setup alone, so a
    /// record of the loss can be checked without the machine.
    pub fn bears_loss_of(&self, lost: &BTreeSet<usize>) -> bool {
        // The runs that read a document in pieces are many, and each needs all of its agents.
        self.chunk_plan.is_none() && self.params.bears_loss_of(&self.agents, lost)
    }

    /// Returns the same run with `change` applied to every text that a person wrote for it.
    pub fn map_texts(mut self, mut change: impl FnMut(&str) -> String) -> Self {
        self.task.prompt = change(&self.task.prompt);
        for document in &mut self.task.documents {
            document.name = change(&document.name);
            document.text = change(&document.text).into();
        }
        let agents = self.agents.iter_mut().chain(&mut self.arbiter);
        let agents = agents.flat_map(|agent| [&mut agent.domain, &mut agent.pack, &mut agent.comparing]);
        let command = self.check_command.iter_mut().map(|check| &mut check.command);
        let constraints = self.params.constraints_mut().into_iter().flatten().flat_map(Constraint::texts);
        for text in agents.chain(&mut self.canonical.choices).chain(command).chain(constraints) {
            *text = change(text);
        }
        self
    }

    /// Checks the properties that a machine relies on. Rolesets already have them. A journal is checked again, because no one vouches for
    /// it.
    ///
    /// # Errors
    ///
    /// [`BadSetup`] names the first fault.
    pub fn check(&self) -> Result<(), BadSetup> {
        self.params.check_agents(self.agents.len())?;
        for agent in self.everybody() {
            let is_plain = agent.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
            if !is_plain || !(1..=40).contains(&agent.name.len()) {
                return Err(BadSetup::Name);
            }
        }
        if self.has_programs() && (self.chunk_plan.is_some() || !self.params.runs_programs()) {
            let why = "an agent with the method `program` works in a `pair` or a `vote` only, and on whole documents";
            return Err(BadSetup::Unreadable(why));
        }
        if let Some(name) = self.params.out_of_range() {
            return Err(BadSetup::OutOfRange(name));
        }
        if let Some(why) = self.params.unfit(&self.agents) {
            return Err(BadSetup::Unreadable(why));
        }
        if self.canonical.kind == CanonicalKind::Behaviour && !self.params.compares_behaviour() {
            return Err(BadSetup::Unreadable(
                "programs are compared by what they do in a `vote` alone, such as the roleset `vote_code`",
            ));
        }
        if self.chunk_plan.is_some() && !self.params.reads_pieces() {
            return Err(BadSetup::Unreadable("this protocol reads its documents whole, and not in pieces"));
        }
        if let Some(why) = self.params.unreadable(&self.task, &self.canonical) {
            return Err(BadSetup::Unreadable(why));
        }
        if let Some(name) = self.chunk_plan.as_ref().and_then(|plan| plan.out_of_range(&self.task)) {
            return Err(BadSetup::OutOfRange(name));
        }
        Ok(())
    }
}
