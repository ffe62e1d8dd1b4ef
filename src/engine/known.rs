//! The known state of a run: everything that others may ask of it. Nothing here changes the state.

use std::collections::BTreeMap;
use std::time::Duration;

use super::budget::{CallUsage, Totals};
use super::run_state::RunState;
use crate::calibration::Confidence;
use crate::journal::{Library, Limits, Replied, RunSpec};
use protocol::core::{Endpoint, MOCK, OptionalParameter, Usage};
use protocol::text::redact;
use protocol::{
    Ask, CallId, CallPhase, Degraded, DegradedKind, Outcome, Protocol as _, Report, Search, Section,
};

impl RunState {
    /// Returns the calls that are owed and not in the air, in order.
    pub fn to_ask(&self) -> impl Iterator<Item = &Ask> {
        self.owed.values().filter(|(_, reserve)| reserve.is_none()).map(|(ask, _)| ask)
    }

    /// Returns true if the protocol still waits for a reply to this call.
    pub fn is_owed(&self, call: CallId) -> bool {
        self.owed.contains_key(&call)
    }

    /// Returns a call that was made and is still owed.
    pub(super) fn find_made_call(&self, call: CallId) -> Option<&Ask> {
        self.owed.get(&call).map(|(ask, _)| ask)
    }

    /// Returns true if it is on record that an agent's server refused this parameter.
    pub(super) fn has_left_out(&self, agent: usize, parameter: OptionalParameter) -> bool {
        self.left_out.contains(&(agent, parameter))
    }

    /// Returns the search that is owed, if one is.
    pub fn to_search(&self) -> Option<&Search> {
        self.search.as_ref()
    }

    /// Refuses a call that the budget does not allow.
    ///
    /// The limit that forbids the call.
    pub fn require_budget(&self, ask: &Ask) -> Result<(), super::Exceeded> {
        let (prompt, completion) = (ask.prompt_tokens_estimate(), u64::from(ask.max_tokens));
        self.budget.clone().reserve(prompt, completion, self.price(ask.call.agent)).map(drop)
    }

    /// Returns the charge for a reply to an open call: the server's counts, or an estimate if those are impossible.
    pub fn charge(&self, replied: &Replied) -> Usage {
        let Some((ask, _)) = self.owed.get(&replied.call) else { return replied.usage };
        self.estimate_instead(ask, replied).unwrap_or(replied.usage)
    }

    /// Returns the model of an agent: the one that has answered last, or else the one that is to be called.
    pub fn model(&self, agent: usize) -> &str {
        if let Some(model) = self.models.get(&agent) {
            return model;
        }
        match self.endpoints.get(agent) {
            Some(endpoint) => endpoint.answering(None).unwrap_or(MOCK),
            None => "",
        }
    }

    /// Returns the tokens of each reply, by its call.
    pub fn completions(&self) -> &BTreeMap<CallId, u64> {
        &self.completions
    }

    /// Returns the usage of each phase.
    pub fn phases(&self) -> &BTreeMap<CallPhase, CallUsage> {
        &self.phases
    }

    pub fn run(&self) -> &str {
        &self.run
    }

    /// Returns the specification that the run started from.
    pub fn opened(&self) -> &RunSpec {
        &self.opened
    }

    /// Returns the current endpoint of each agent's model, the arbiter's last.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Returns the documents that may be searched now.
    pub fn library(&self) -> Option<&Library> {
        self.library.as_ref()
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns a remark on the turn that the last reply ended, if its envelope alone does not say how it ended.
    pub fn remark(&self) -> Option<&'static str> {
        self.machine.remark()
    }

    /// Returns the protocol's verdict, if there is one.
    pub fn verdict(&self) -> Option<&Outcome> {
        self.verdict.as_ref()
    }

    /// Returns the confidence in the answer, if a calibration gives one.
    pub fn confidence(&self) -> Option<&Confidence> {
        self.confidence.as_ref()
    }

    /// Returns the outcome with which the run was put down, or `None` if it is under way.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.stopped.as_ref()
    }

    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the total duration of each agent's calls, the arbiter's last.
    pub fn busy(&self) -> &[Duration] {
        &self.busy
    }

    /// Returns the protocol's report, completed by the losses of the run.
    pub fn report(&self) -> Report<Section> {
        let mut report = self.machine.report();
        // The losses are sorted, because it does not matter which of two servers answered first.
        let mut lost = self.degraded.clone();
        lost.extend(self.lost_members());
        lost.sort_by(|a, b| (a.kind.name(), &a.detail).cmp(&(b.kind.name(), &b.detail)));
        report.degraded.extend(lost);
        // An answer that is withheld was settled by nothing.
        if matches!(self.verdict, Some(Outcome::Abstained { .. })) {
            report.degraded.retain(|loss| loss.kind != DegradedKind::Unsettled);
        }
        if let Some(Outcome::Agreed { text, .. }) = &self.verdict
            && self.opened.redacted
        {
            for token in redact::bent_tokens(&self.tokens, text) {
                let detail = format!("`{token}` in the answer stands for nothing that could be put back");
                report.degraded.push(Degraded { kind: DegradedKind::BentToken, detail });
            }
        }
        report
    }

    /// Returns the name of an agent by its index; the arbiter comes last.
    pub fn agent_name(&self, agent: usize) -> &str {
        self.opened.setup.everybody().nth(agent).map_or("", |a| &a.name)
    }
}
