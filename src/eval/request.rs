//! A request for an evaluation, and the request that it makes for each of its batches.

use std::path::PathBuf;

use super::arm_spec::ArmSpec;
use super::bars::Bars;
use super::error::EvalError;
use crate::batch::{BatchRequest, Draws, Retry, ShardOf, TaskForm, VariantRequest, WorkLoad};
use crate::files::is_same_place;
use crate::journal::Limits;
use crate::run::{CalibrationRequest, MockChoice, ParamChanges, RolesetSettings};
use crate::sandbox::Access;
use protocol::text::CanonicalKind;

/// A request for an evaluation.
pub struct EvalRequest {
    /// The file of tasks with their right answers.
    pub data: PathBuf,
    /// The form in which the file holds the tasks.
    pub form: TaskForm,
    /// The way in which answers are compared, for tasks that do not name one.
    pub canonical: Option<CanonicalKind>,
    /// The most tasks that are used.
    pub items_max: Option<usize>,
    /// Whether this is a pilot, whose items only show how many items a verdict would need.
    pub is_pilot: bool,
    /// The folder of the evaluation.
    pub folder: PathBuf,
    pub arms: Vec<ArmSpec>,
    /// The arm of the primary comparison, if one is named.
    pub primary: Option<String>,
    /// The smallest difference of interest, as a share.
    pub effect: f64,
    /// The number of samples of each task in the curves.
    pub samples: u32,
    /// The name of a label. Tasks with the same value of it are drawn together for the intervals.
    pub cluster: Option<String>,
    pub seed: u64,
    /// The part of the tasks that this process evaluates.
    pub shard: ShardOf,
    pub bars: Bars,
    /// The servers, the scripted agents, and the limits of each run of an arm. An arm adds its parameters.
    pub settings: RolesetSettings,
    /// The kinds of ends after which a run is tried again.
    pub retry: Retry,
    pub work: WorkLoad,
    /// The words of the command line, without secrets, as manifests record them.
    pub words: Vec<String>,
    /// Reads the settings of an arm, which are flags of `consensus batch`.
    pub read_settings: ReadSettings,
}

/// Reads the names and values of an arm's settings.
pub(super) type ReadSettings = fn(&[(String, String)]) -> Result<ArmSettings, String>;

/// The settings of an arm.
pub struct ArmSettings {
    pub params: ParamChanges,
    /// Whether rules that tasks say in plain words are ignored.
    pub no_demands: bool,
    pub calibration: Option<CalibrationRequest>,
    /// The tokens that the votes of all tasks share, if they share a budget.
    pub budget_tokens: Option<u64>,
    /// The rights of commands in the sandbox; `None` if they have all rights of their user.
    pub access: Option<Access>,
}

/// The source of a batch's replies.
pub(super) enum ReplySource {
    /// The model.
    Model,
    /// The model, whose replies become a bank of this many samples.
    Drawn(Draws),
    /// A bank in this folder.
    Bank(PathBuf),
}

impl EvalRequest {
    /// Returns the request for the batch of an arm or a bank, whose runs go into `folder`.
    pub(super) fn batch(
        &self,
        roleset: &str,
        model: &str,
        settings: &[(String, String)],
        arm: Option<&str>,
        folder: PathBuf,
        replies: ReplySource,
    ) -> Result<BatchRequest, EvalError> {
        let read = (self.read_settings)(settings).map_err(EvalError::Usage)?;
        let ArmSettings { params, no_demands, calibration, budget_tokens, access } = read;
        let mut settings = RolesetSettings { params, no_demands, calibration, ..self.settings.clone() };
        settings.servers.model = if model.is_empty() { None } else { Some(model.to_owned()) };
        let mut limits = Limits { deadline_ms: None, ..self.settings.limits };
        let mut draws = None;
        match replies {
            ReplySource::Model => {}
            // A bank is of use only with all its samples, so it has no other limit than their number.
            ReplySource::Drawn(samples) => (draws, limits) = (Some(samples), Limits::default()),
            ReplySource::Bank(bank) => {
                let RolesetSettings { servers, mock, .. } = &mut settings;
                (servers.base_url, servers.launch, servers.bank) = (None, None, Some(bank));
                // The bank holds the samples of scripted agents under no model's name.
                if mock.is_wanted || mock.script.is_some() {
                    servers.model = None;
                }
                *mock = MockChoice::default();
            }
        }
        Ok(BatchRequest {
            variants: VariantRequest {
                rolesets: vec![roleset.to_owned()],
                settings,
                arm: arm.map(str::to_owned),
                draws,
                is_paced: budget_tokens.is_some(),
            },
            tasks: PathBuf::new(),
            form: TaskForm::default(),
            folder,
            shard: ShardOf::default(),
            seeds: self.seed..self.seed + 1,
            limits,
            // Each part of the evaluation is a batch of its own, with an equal part of the tokens.
            budget_tokens: budget_tokens.map(|tokens| tokens / self.shard.count.max(1)),
            retry: self.retry,
            keep_old: false,
            regrade: false,
            work: self.work,
            access,
            words: self.words.clone(),
            collector: Ok(None),
        })
    }

    /// Refuses a folder for the evaluation if its files would replace the data or the baseline.
    pub(super) fn require_apart(&self) -> Result<(), EvalError> {
        if let Ok(data) = self.data.canonicalize()
            && let Some(folder) = data.parent()
            && is_same_place(folder, &self.folder)
        {
            let why = "the data is in the folder of the evaluation; give another --out";
            return Err(EvalError::Usage(why.to_owned()));
        }
        self.bars.require_other(&self.folder)
    }
}
