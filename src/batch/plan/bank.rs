//! The samples of a bank: those that are to be drawn of each task, and those that were.
//!
//! The input is the number of samples that a person wants of each kind, or the folder of a bank. The output is one arm of the batch for
//! each kind, or the refusal of a vote that the bank has too few samples for. No sample is drawn or given here: a batch draws them, and a
//! provider gives them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::{ConfigError, Roleset};
use crate::journal::{Record, RunSpec, read_shared};
use crate::provider::Bank;
use crate::run::{RunError, require_flag};
use crypto::Digest;
use protocol::core::Endpoint;
use protocol::{Method, Outcome, Override, Params, ProtocolParams as _, RunSetup, VoteStop};

/// The arm of a bank that has the samples in words.
pub const WORDS_ARM: &str = "words";

/// The arms of a bank, and the method of the samples in each.
pub(in crate::batch) const BANK_ARMS: [(&str, Method); 2] =
    [(WORDS_ARM, Method::Words), ("programs", Method::Program)];

/// The samples that a bank has of each task. Those in words and those by programs are arms of their own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draws {
    /// The number of samples in words.
    pub words: u32,
    /// The number of programs.
    pub programs: u32,
}

impl Draws {
    /// Returns the samples that a vote with this setup may need of each task. Another protocol needs no samples.
    pub fn for_vote(setup: &RunSetup) -> Self {
        let mut draws = Self::default();
        for needed in needs(setup, &[]) {
            let most = match needed.method {
                Method::Words => &mut draws.words,
                Method::Program => &mut draws.programs,
            };
            *most = needed.samples.max(*most);
        }
        draws
    }

    /// Returns as many samples of each kind as either has.
    pub fn max(self, other: Self) -> Self {
        Self { words: self.words.max(other.words), programs: self.programs.max(other.programs) }
    }

    /// Returns a roleset once for each arm of the bank, with the name of the arm.
    ///
    /// Returns [`RunError::Usage`] if the roleset cannot draw these samples.
    pub(super) fn arms(self, roleset: &Roleset) -> Result<Vec<(String, Roleset)>, RunError> {
        require_flag(roleset, "--bank", |params| matches!(params, Params::Vote(_)))?;
        let mut arms = Vec::new();
        for ((arm, method), count) in BANK_ARMS.into_iter().zip([self.words, self.programs]) {
            if count == 0 {
                continue;
            }
            if !roleset.agents.iter().any(|agent| agent.method == method) {
                return Err(RunError::Usage(format!("--{arm}: the roleset has no voter of that kind")));
            }
            let mut drawing = roleset.clone();
            for change in
                [Override::Stop(VoteStop::None), Override::Modes(vec![method]), Override::SamplesMax(count)]
            {
                drawing.params.apply(&change);
            }
            arms.push((arm.to_owned(), drawing));
        }
        Ok(arms)
    }
}

/// The samples that a bank has of each question by each voter, counted over runs that have ended.
#[derive(Debug)]
pub(super) struct DrawnSamples {
    folder: PathBuf,
    /// The number of samples of each question, by voter.
    questions: HashMap<Digest, BTreeMap<Digest, u32>>,
    /// The names of the models that the bank has samples of.
    models: BTreeSet<String>,
}

/// The records that begin, resume and end a run, and none of the others.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Boundary {
    Opened(Box<RunSpec>),
    Resumed {
        #[serde(default)]
        endpoints: Option<Vec<Endpoint>>,
    },
    Stopped {
        outcome: Outcome,
    },
    #[serde(other)]
    Within,
}

impl DrawnSamples {
    /// Reads the journals of a bank.
    ///
    /// Returns [`RunError`] if there is no such bank or its journals are damaged.
    pub(super) fn read(folder: &Path) -> Result<Self, RunError> {
        let mut drawn =
            Self { folder: folder.to_owned(), questions: HashMap::new(), models: BTreeSet::new() };
        for path in Bank::journals(folder).map_err(ConfigError::from)? {
            let mut open = HashMap::new();
            read_shared(&path, |record: Record<Boundary>, _| {
                match record.event {
                    Boundary::Opened(run) => {
                        open.insert(record.run, run);
                    }
                    Boundary::Stopped { outcome } if outcome.is_final() => {
                        if let Some(run) = open.remove(&record.run) {
                            drawn.count(&run);
                        }
                    }
                    Boundary::Resumed { .. } | Boundary::Stopped { .. } | Boundary::Within => {}
                }
                Ok(())
            })?;
        }
        Ok(drawn)
    }

    /// Counts the samples of a run that has ended. A vote that stops early draws a part of its samples.
    fn count(&mut self, run: &RunSpec) {
        if !matches!(&run.setup.params, Params::Vote(vote) if vote.stop == VoteStop::None) {
            return;
        }
        let of_question = self.questions.entry(question(&run.setup)).or_default();
        for drawn in needs(&run.setup, &run.endpoints) {
            of_question.insert(drawn.voter, drawn.samples);
            self.models.insert(drawn.model);
        }
    }

    /// Refuses a vote that may need more samples of each question than there are of any.
    ///
    /// Returns [`RunError::Usage`] with the number that there is.
    pub(super) fn require(&self, setup: &RunSetup, endpoints: &[Endpoint]) -> Result<(), RunError> {
        for needed in needs(setup, endpoints) {
            let has = self.questions.values().filter_map(|drawn| drawn.get(&needed.voter));
            let has = has.max().copied().unwrap_or_default();
            if needed.samples > has {
                return Err(RunError::Usage(self.describe_lack(&needed, has)));
            }
        }
        Ok(())
    }

    /// Refuses a question of which there are fewer samples than its vote may need. Such a vote would fail where votes are hardest to
    /// settle, so that the rest looks better than the whole.
    ///
    /// Returns the reason.
    pub(super) fn require_of(&self, setup: &RunSetup, endpoints: &[Endpoint]) -> Result<(), String> {
        let drawn = self.questions.get(&question(setup));
        for needed in needs(setup, endpoints) {
            let has = drawn.and_then(|drawn| drawn.get(&needed.voter)).copied().unwrap_or_default();
            if needed.samples > has {
                return Err(format!(
                    "the bank `{}` has {has} samples of it {} by `{}` with this seed, and its vote may need {}; continue the bank",
                    self.folder.display(),
                    name_kind(needed.method),
                    needed.model,
                    needed.samples,
                ));
            }
        }
        Ok(())
    }

    /// Says why a vote needs more samples than there are, and what helps.
    fn describe_lack(&self, needed: &NeededSamples, has: u32) -> String {
        let (folder, model, of) = (self.folder.display(), &needed.model, name_kind(needed.method));
        if self.models.is_empty() {
            return format!("no run of the bank `{folder}` has ended; continue the bank");
        }
        if !self.models.contains(model) {
            let models: Vec<String> = self.models.iter().map(|model| format!("`{model}`")).collect();
            return format!(
                "the bank `{folder}` has no samples by `{model}`; it has some by {}",
                models.join(", ")
            );
        }
        let remedy = match has.saturating_mul(needed.turns) {
            0 => "give the roleset, packs and temperature that it was drawn with, or ".to_owned(),
            most => format!("give --samples-max {most} at most, or "),
        };
        format!(
            "the bank `{folder}` has {has} samples {of} of each task by `{model}`, and this vote may need {}; {remedy}draw a larger bank",
            needed.samples
        )
    }
}

/// Returns the fields that were added to the requests of a bank to this model. They are not known if they were not the same in all of them.
pub(in crate::batch) fn drawn_with(bank: &Path, model: &str) -> Option<Map<String, Value>> {
    let mut found: Vec<Option<Map<String, Value>>> = Vec::new();
    for journal in Bank::journals(bank).ok()? {
        let read = read_shared(&journal, |record: Record<Boundary>, _| {
            let endpoints = match record.event {
                Boundary::Opened(run) => run.endpoints,
                Boundary::Resumed { endpoints } => endpoints.unwrap_or_default(),
                Boundary::Stopped { .. } | Boundary::Within => Vec::new(),
            };
            let of_model = endpoints.iter().filter(|endpoint| endpoint.model() == model);
            found.extend(of_model.map(Endpoint::extra_fields));
            found.dedup();
            Ok(())
        });
        read.ok()?;
    }
    if found.len() == 1 { found.remove(0) } else { None }
}

/// The samples that a vote may need of one voter.
struct NeededSamples {
    voter: Digest,
    method: Method,
    model: String,
    samples: u32,
    turns: u32,
}

/// Returns the number of samples that a run may need of each of its voters. Only a vote has voters.
fn needs(setup: &RunSetup, endpoints: &[Endpoint]) -> Vec<NeededSamples> {
    let Params::Vote(vote) = &setup.params else { return Vec::new() };
    let voters = vote.voters(&setup.agents);
    let turns = u32::try_from(voters.len()).unwrap_or(u32::MAX).max(1);
    let mut needs = Vec::new();
    for (place, at) in (0_u32..).zip(voters) {
        let agent = &setup.agents[at];
        let model = endpoints.get(at).map(Endpoint::model).unwrap_or_default().to_owned();
        let voter = digest_of(&(agent, &model));
        // The first voters have one turn more if the samples do not divide evenly.
        let samples = vote.most().saturating_sub(place).div_ceil(turns);
        needs.push(NeededSamples { voter, method: agent.method, model, samples, turns });
    }
    needs
}

/// Returns the digest of a question with its seed. Samples of another question or seed are not its samples.
fn question(setup: &RunSetup) -> Digest {
    digest_of(&(&setup.task, setup.seed))
}

/// Returns the digest of a value, written as JSON.
pub(super) fn digest_of(value: &impl Serialize) -> Digest {
    // Everything in a setup can be written as JSON.
    Digest::new(serde_json::to_string(value).unwrap_or_default().as_bytes())
}

fn name_kind(method: Method) -> &'static str {
    match method {
        Method::Words => "in words",
        Method::Program => "by programs",
    }
}
