//! The samples of a bank: those that are to be drawn of each task, and those that were.
//!
//! The input is the number of samples that a person wants of each kind, or the folder of a bank. The output is one arm of the batch for each
//! kind, or the number of samples that votes can have. No sample is drawn or given here: a batch draws them, and a provider gives them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::config::{ConfigError, Roleset};
use crate::core::Endpoint;
use crate::journal::{Record, RunSpec, read_shared};
use crate::protocol::vote::VoteParams;
use crate::protocol::{Method, Params, ProtocolParams as _, RulesVersion, RunSetup, StopRule, VoteOverride};
use crate::provider::Bank;
use crate::run::{RunError, refuse};

/// The arms of a bank, and the method of the samples in each.
pub(super) const BANK_ARMS: [(&str, Method); 2] = [("words", Method::Words), ("programs", Method::Program)];

/// The samples that a bank has of each task. Those in words and those by programs are arms of their own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draws {
    /// The number of samples in words.
    pub words: u32,
    /// The number of programs.
    pub programs: u32,
}

impl Draws {
    /// Returns a roleset once for each arm of the bank, with the name of the arm.
    ///
    /// # Errors
    ///
    /// Returns [`RunError::Usage`] if the roleset cannot draw these samples.
    pub(super) fn arms(self, roleset: &Roleset) -> Result<Vec<(String, Roleset)>, RunError> {
        refuse(roleset, "--bank", |params| matches!(params, Params::Vote(_)))?;
        let mut arms = Vec::new();
        for ((arm, method), count) in BANK_ARMS.into_iter().zip([self.words, self.programs]) {
            if count == 0 {
                continue;
            }
            if !roleset.agents.iter().any(|agent| agent.method == method) {
                return Err(RunError::Usage(format!("--{arm}: the roleset has no voter of that kind")));
            }
            let mut drawing = roleset.clone();
            for change in [
                VoteOverride::Stop(StopRule::None),
                VoteOverride::Modes(vec![method]),
                VoteOverride::SamplesMax(count),
            ] {
                drawing.params.apply(&change.into());
            }
            arms.push((arm.to_owned(), drawing));
        }
        Ok(arms)
    }
}

/// The samples of each task that a bank has of each voter.
#[derive(Debug)]
pub(super) struct DrawnSamples {
    folder: PathBuf,
    /// The number of samples, by the voter's method and model.
    samples: BTreeMap<(Method, String), u32>,
    /// The version of the rules by which the samples were asked for.
    rules_version: RulesVersion,
}

/// The first record of a run, and none of the others.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Opening {
    Opened(Box<RunSpec>),
    #[serde(other)]
    Later,
}

impl DrawnSamples {
    /// Reads from the journals of a bank the number of samples that its runs were to draw.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] if there is no such bank or its journals are damaged.
    pub(super) fn read(folder: &Path) -> Result<Self, RunError> {
        let rules_version = RulesVersion::NEWEST;
        let mut drawn = Self { folder: folder.to_owned(), samples: BTreeMap::new(), rules_version };
        for path in Bank::journals(folder).map_err(ConfigError::from)? {
            read_shared(&path, |record: Record<Opening>, _| {
                if let Opening::Opened(run) = &record.event {
                    drawn.count(run);
                }
                Ok(())
            })?;
        }
        Ok(drawn)
    }

    fn count(&mut self, run: &RunSpec) {
        let Params::Vote(vote) = &run.setup.params else { return };
        // A vote that stops early draws a part of its samples.
        if vote.stop != StopRule::None {
            return;
        }
        self.rules_version = run.setup.rules_version;
        let voters = vote.voters(&run.setup.agents);
        for voter in &voters {
            let model = run.endpoints.get(*voter).map(Endpoint::model).unwrap_or_default();
            let samples = (run.setup.agents[*voter].method, model.to_owned());
            let most = self.samples.entry(samples).or_insert(0);
            *most = (vote.most() / turns(&voters)).max(*most);
        }
    }

    /// Returns the version of the rules of a vote that asks as the bank has asked. Another version may ask in other words.
    pub(super) fn rules_version(&self) -> RulesVersion {
        self.rules_version
    }

    /// Refuses a vote that may need more samples than there are of each task. It would fail where votes are hardest to settle, so that
    /// the rest looks better than the whole.
    pub(super) fn require(
        &self,
        vote: &VoteParams,
        setup: &RunSetup,
        endpoints: &[Endpoint],
    ) -> Result<(), RunError> {
        let voters = vote.voters(&setup.agents);
        let needed = vote.most().div_ceil(turns(&voters));
        for voter in &voters {
            let model = endpoints.get(*voter).map(Endpoint::model).unwrap_or_default();
            let method = setup.agents[*voter].method;
            let has = self.samples.get(&(method, model.to_owned())).copied().unwrap_or_default();
            if needed <= has {
                continue;
            }
            let kind = match method {
                Method::Words => "in words",
                Method::Program => "by programs",
            };
            let remedy = match has.saturating_mul(turns(&voters)) {
                0 => String::new(),
                most => format!("give --samples-max {most} at most, or "),
            };
            return Err(RunError::Usage(format!(
                "the bank `{}` has {has} samples {kind} of each task by `{model}`, and this vote may need {needed}; {remedy}draw a larger \
                 bank",
                self.folder.display(),
            )));
        }
        Ok(())
    }
}

/// Returns the number of voters that take turns, at least 1.
fn turns(voters: &[usize]) -> u32 {
    u32::try_from(voters.len()).unwrap_or(u32::MAX).max(1)
}
