//! A machine whose replies may need an execution before they can be judged.
//!
//! The input is events in any order that the engine allows. The output is the machine's own actions, or an execution that must be made
//! first. While one is awaited, events wait in their order, so that the actions are the same whenever its result comes.

use std::collections::VecDeque;

use crate::contract::{Action, Event, Execution, Executions, Protocol, Report, Unexpected};

/// A machine that has its executions, with the events that wait until one is made.
pub(crate) struct ExecutingMachine<M> {
    machine: M,
    /// The events that the machine has not taken, in their order.
    events: VecDeque<Event>,
    /// The execution that the first of them needs.
    waits_for: Option<Execution>,
}

impl<M: Protocol + Clone + AsMut<Executions>> ExecutingMachine<M> {
    pub(crate) fn new(machine: M) -> Self {
        Self { machine, events: VecDeque::new(), waits_for: None }
    }

    /// Lets the machine take events until one of them needs an execution.
    fn take_events(&mut self) -> Result<Vec<Action>, Unexpected> {
        let mut actions = Vec::new();
        while let Some(event) = self.events.front() {
            let mut trial = self.machine.clone();
            let followed = trial.step(event)?;
            if let Some(execution) = trial.as_mut().take_missing() {
                actions.push(Action::Execute(execution.clone()));
                self.waits_for = Some(execution);
                return Ok(actions);
            }
            self.machine = trial;
            self.events.pop_front();
            for action in &followed {
                match action {
                    // The reply to a call that is cancelled now, or its loss, may have come in the meantime.
                    Action::Cancel(call) => self.events.retain(|event| !event.is_end_of(*call)),
                    Action::Finish(_) => self.events.clear(),
                    Action::Ask(_) | Action::Search(_) | Action::Execute(_) | Action::AwaitPermit => {}
                }
            }
            actions.extend(followed);
        }
        Ok(actions)
    }
}

impl<M: Protocol + Clone + AsMut<Executions>> Protocol for ExecutingMachine<M> {
    type Section = M::Section;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        if let Event::Executed { key, result } = event {
            if self.waits_for.as_ref().is_none_or(|execution| execution.key() != *key) {
                return Err(Unexpected::NotExecuted(*key));
            }
            self.waits_for = None;
            self.machine.as_mut().learn(*key, result.clone());
            return self.take_events();
        }
        if !self.machine.as_mut().are_possible() {
            return self.machine.step(event);
        }
        self.events.push_back(event.clone());
        if self.waits_for.is_some() { Ok(Vec::new()) } else { self.take_events() }
    }

    fn report(&self) -> Report<M::Section> {
        self.machine.report()
    }

    fn remark(&self) -> Option<&'static str> {
        self.machine.remark()
    }
}
