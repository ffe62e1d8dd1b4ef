//! The columns of a batch: rolesets on models, read and resolved when they are needed.
//!
//! The input is a person's choice of rolesets and servers, and the configuration. The output is columns that are ready to run: those
//! of the batch, and those of rolesets that single tasks name. No other file of this module reads configuration.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::bank::{DrawnSamples, Draws};
use super::manifest::{ColumnNote, ServerNote};
use super::matrix::Column;
use super::scheduler::Columns;
use crate::calibration::KnownParts;
use crate::config::{
    Chosen, FileConfig, Roleset, RolesetSource, differences, launch_command, resolve_endpoints,
};
use crate::journal::Limits;
use crate::provider::OpenAi;
use crate::provider::launch::Launched;
use crate::run::{
    BY_PILOT, CalibrationRequest, MockChoice, NamedRoleset, Notices, ParamChanges, ReadCalibration,
    RedactRequest, RunError, SeatRequest, add_configured_check, check_prices, find_servers, launch,
    mock_script, modes_of_pilot, of_its_kind, planned_modes, read_named, require_trusted,
    require_unlike_voters, sought,
};
use crypto::Digest;
use protocol::core::Endpoint;
use protocol::{ProtocolParams as _, Task, VoteOverride};

/// The most rolesets of single tasks that are kept ready.
const NAMED_MAX: usize = 256;

/// The most servers that are asked to describe themselves, and the most models of one server that are noted.
const SERVERS_MAX: usize = 16;
const MODELS_MAX: usize = 16;

/// The time that a server has to describe itself.
const SERVER_PATIENCE: Duration = Duration::from_secs(2);

/// Columns, or the reason why they cannot be had.
type Found = Result<Arc<[Column]>, String>;

/// A person's choice of the rolesets and models of a batch.
#[derive(Clone, Debug, Default)]
pub struct ColumnRequest {
    /// The rolesets; if empty, that of the configuration or the default.
    pub rolesets: Vec<String>,
    /// A folder of rolesets that is searched first.
    pub rolesets_dir: Option<PathBuf>,
    /// The server and the model; several model names are separated by commas.
    pub servers: Chosen,
    /// The scripted agents, if they are wanted.
    pub mock: MockChoice,
    /// The text that must not leave the machine, besides what the rolesets say.
    pub redaction: RedactRequest,
    /// The name of the columns' arm, if one tells them from others.
    pub arm: Option<String>,
    /// The samples that are drawn for each task, if the batch is to be a bank.
    pub draws: Option<Draws>,
    /// The parameters that replace those of the rolesets.
    pub params: ParamChanges,
    /// Whether to ignore rules that tasks say in plain words.
    pub no_spoken_rules: bool,
    /// The members of panels.
    pub seats: SeatRequest,
    /// The calibration that gives answers a confidence, if there is one.
    pub calibration: Option<CalibrationRequest>,
    /// The limits of each run.
    pub limits: Limits,
}

/// Rolesets and models, ready to run.
#[derive(Debug)]
pub struct OpenColumns {
    request: ColumnRequest,
    file: FileConfig,
    chosen: Chosen,
    models: Vec<Option<String>>,
    /// The calibration of all columns.
    calibration: Option<Arc<ReadCalibration>>,
    /// The samples of the bank that the replies come from.
    drawn: Option<Arc<DrawnSamples>>,
    /// The columns of the batch.
    all: Arc<[Column]>,
    /// The manifest's notes of the same columns.
    notes: Vec<ColumnNote>,
    /// The columns of rolesets that single tasks have named.
    named: RefCell<HashMap<String, Found>>,
}

/// Makes the columns of a batch without their servers, for planning only.
///
/// # Errors
///
/// Returns [`RunError`]; nothing was started or sent.
pub fn planned_columns(
    request: &ColumnRequest,
    file: &FileConfig,
) -> Result<Vec<(Column, ColumnNote)>, RunError> {
    let mut columns = Vec::new();
    let calibration = request.read_calibration()?;
    for roleset in request.rolesets() {
        let named = read_named(roleset, request.rolesets_dir.as_ref(), file)?;
        let NamedRoleset { name, mut roleset, mut packs, source, .. } = named;
        let as_found = roleset.clone();
        request.seats.take(&mut roleset, &mut packs, &request.redaction)?;
        request.params.apply(&mut roleset)?;
        add_configured_check(&mut roleset, &request.params.check, file);
        for (arm, roleset) in request.arms(roleset)? {
            for model in models(request.servers.model.as_deref()) {
                let mut roleset = roleset.clone();
                let as_asked = roleset.setup(&name, &packs, Task::default(), 0);
                let chosen = Chosen { model: model.clone(), ..request.servers.clone() };
                if let Some(modes) = planned_modes(&as_asked, &chosen, file, &roleset)? {
                    roleset.params.apply(&VoteOverride::Modes(modes).into());
                }
                let setup = roleset.setup(&name, &packs, Task::default(), 0);
                let column = Column::new(model.unwrap_or_default(), setup, Vec::new());
                let column = request.named(column, &arm);
                let column = match &calibration {
                    Some(calibration) => {
                        calibration.require(&column.setup, &[], request.limits, KnownParts::Setup)?;
                        column.calibrated(Arc::clone(calibration))
                    }
                    None => column,
                };
                let note = noted(&column, &as_found, &roleset, &source);
                columns.push((column, note));
            }
        }
    }
    Ok(columns)
}

/// Returns the manifest's note of a column.
fn noted(column: &Column, as_found: &Roleset, roleset: &Roleset, source: &RolesetSource) -> ColumnNote {
    ColumnNote {
        roleset: column.roleset.clone(),
        model: column.model.clone(),
        arm: column.arm.clone(),
        source: source.to_string(),
        sha256: vec![column.sha256],
        settings: vec![settings(as_found, roleset, source, column)],
        endpoints: column.endpoints.iter().map(Endpoint::label).collect(),
    }
}

impl ColumnRequest {
    /// Returns a roleset once for each arm of the batch, with the name of the arm.
    ///
    /// # Errors
    ///
    /// Returns [`RunError::Usage`] if a bank is wanted and the roleset cannot draw its samples.
    fn arms(&self, roleset: Roleset) -> Result<Vec<(String, Roleset)>, RunError> {
        match self.draws {
            Some(draws) => draws.arms(&roleset),
            None => Ok(vec![(self.arm.clone().unwrap_or_default(), roleset)]),
        }
    }

    /// Reads the calibration of all columns, if there is one.
    fn read_calibration(&self) -> Result<Option<Arc<ReadCalibration>>, RunError> {
        Ok(self.calibration.as_ref().map(CalibrationRequest::read).transpose()?.map(Arc::new))
    }

    /// Returns a column in its arm, with or without the rules that tasks say.
    fn named(&self, column: Column, arm: &str) -> Column {
        let column = column.in_arm(arm);
        if self.no_spoken_rules { column.without_spoken_rules() } else { column }
    }

    /// Returns the named rolesets, or a single `None` if no roleset is named.
    fn rolesets(&self) -> Vec<Option<&str>> {
        let named = self.rolesets.iter().map(|name| Some(of_its_kind(name, &self.params)));
        let named: Vec<Option<&str>> = named.collect();
        if named.is_empty() { vec![None] } else { named }
    }
}

impl OpenColumns {
    /// Reads the rolesets of a batch, starts the requested server with its log in `log`, unless `running` is that server, and finds the
    /// models.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`]; no model was called.
    pub async fn open(
        request: ColumnRequest,
        file: FileConfig,
        running: Option<Launched>,
        log: &Path,
        notices: &dyn Notices,
    ) -> Result<(Self, Option<Launched>), RunError> {
        let usage = |why: &str| RunError::Usage(why.to_owned());
        let mock = &request.mock;
        mock.has_answers()?;
        let script = mock_script(mock.script.as_deref(), mock.answer.as_deref())?;
        let mut chosen = Chosen { mock_script: script, ..request.servers.clone() };
        let models = models(chosen.model.as_deref());
        if models.is_empty() {
            return Err(usage("--model names no model"));
        }
        if chosen.launch.is_some() && models.len() > 1 {
            return Err(usage("--launch starts a server for one model; give one --model"));
        }
        let calibration = request.read_calibration()?;
        let command = launch_command(&chosen, &file, None)?;
        let server = match (&command, running) {
            (Some(_), Some(server)) => {
                chosen.launched = Some(server.base_url().to_owned());
                Some(server)
            }
            (Some(_), None) => launch(command.as_ref(), &mut chosen, &file, log, notices).await?,
            (None, running) => running,
        };
        let drawn = chosen.bank.as_deref().map(DrawnSamples::read).transpose()?.map(Arc::new);
        let named = RefCell::default();
        let (all, notes) = (Arc::default(), Vec::new());
        let mut columns = Self { request, file, chosen, models, calibration, drawn, all, notes, named };
        let (all, notes) = columns.of_the_batch(notices).await?.into_iter().unzip::<_, _, Vec<_>, _>();
        (columns.all, columns.notes) = (all.into(), notes);
        Ok((columns, server))
    }

    /// Returns the manifest's notes of the columns.
    pub fn notes(&self) -> &[ColumnNote] {
        &self.notes
    }

    /// Returns the columns of the batch.
    pub fn all(&self) -> &[Column] {
        &self.all
    }

    async fn of_the_batch(&self, notices: &dyn Notices) -> Result<Vec<(Column, ColumnNote)>, RunError> {
        let mut all: Vec<(Column, ColumnNote)> = Vec::new();
        for roleset in self.request.rolesets() {
            all.extend(self.of_roleset(roleset, &self.models, Some(notices)).await?);
        }
        // Runs are distinguished by the names of their task, roleset and model, and by their seed.
        for (at, (column, _)) in all.iter().enumerate() {
            let Column { roleset, model, arm, .. } = column;
            let is_same =
                |other: &Column| other.roleset == *roleset && other.model == *model && other.arm == *arm;
            if all[..at].iter().any(|(other, _)| is_same(other)) {
                let model = if model.is_empty() { String::new() } else { format!(" on `{model}`") };
                return Err(RunError::Usage(format!(
                    "the roleset `{roleset}`{model} is named twice; give the copy another name, or leave it out"
                )));
            }
        }
        Ok(all)
    }

    /// Returns a roleset on a model, or on the model of the batch.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] if there is no such roleset, or its models cannot be found.
    pub async fn one(&self, roleset: &str, model: Option<&str>) -> Result<Column, RunError> {
        let roleset = of_its_kind(roleset, &self.request.params);
        let models = match model {
            Some(model) => vec![Some(model.to_owned())],
            None => self.models.clone(),
        };
        let found = self.of_roleset(Some(roleset), &models, None).await?;
        let first = found.into_iter().next().map(|(column, _)| column);
        first.ok_or_else(|| RunError::Usage("there is no model".to_owned()))
    }

    /// Returns a roleset on each of the models.
    async fn of_roleset(
        &self,
        roleset: Option<&str>,
        models: &[Option<String>],
        notices: Option<&dyn Notices>,
    ) -> Result<Vec<(Column, ColumnNote)>, RunError> {
        let folder = self.request.rolesets_dir.as_ref();
        let named = read_named(roleset, folder, &self.file)?;
        if let (Some(notices), Some(shadows)) = (notices, named.shadows()) {
            notices.status(&shadows);
        }
        require_trusted(&named, &self.request.params.check, &self.file)?;
        let NamedRoleset { name, mut roleset, mut packs, source, .. } = named;
        let as_found = roleset.clone();
        self.request.seats.take(&mut roleset, &mut packs, &self.request.redaction)?;
        self.request.params.apply(&mut roleset)?;
        add_configured_check(&mut roleset, &self.request.params.check, &self.file);
        let sought = sought(&self.request.redaction, &roleset)?;
        let arms = self.request.arms(roleset.clone())?;
        let mut columns = Vec::new();
        for model in models {
            let chosen = Chosen { model: model.clone(), ..self.chosen.clone() };
            let endpoints = match notices {
                Some(notices) => find_servers(&chosen, &self.file, &roleset, notices).await?,
                // A single task line does not wait for a server.
                None => resolve_endpoints(&chosen, &self.file, &roleset).await?,
            };
            check_prices(self.request.limits, &endpoints)?;
            for (arm, roleset) in &arms {
                let mut roleset = roleset.clone();
                let as_asked = roleset.setup(&name, &packs, Task::default(), 0);
                if let Some(modes) = modes_of_pilot(&as_asked, &endpoints)? {
                    roleset.params.apply(&VoteOverride::Modes(modes).into());
                    if let Some(notices) = notices {
                        notices.status(BY_PILOT);
                    }
                }
                let setup = roleset.setup(&name, &packs, Task::default(), 0);
                require_unlike_voters(&setup, &endpoints)?;
                if let Some(drawn) = &self.drawn {
                    drawn.require(&setup, &endpoints)?;
                }
                let column = Column::new(model.clone().unwrap_or_default(), setup, endpoints.clone());
                let column = self.request.named(column, arm);
                let column = match &self.calibration {
                    Some(calibration) => {
                        if sought.is_none() {
                            let limits = self.request.limits;
                            calibration.require(&column.setup, &endpoints, limits, KnownParts::Models)?;
                        }
                        column.calibrated(calibration.clone())
                    }
                    None => column,
                };
                let column = Column { drawn: self.drawn.clone(), ..column };
                let note = noted(&column, &as_found, &roleset, &source);
                let column = match &sought {
                    Some(sought) => column.redacted(sought.clone()),
                    None => column,
                };
                columns.push((column, note));
            }
        }
        Ok(columns)
    }

    /// Returns what the servers of all columns say about themselves. Leaves out servers that say nothing.
    pub async fn servers(&self) -> Vec<ServerNote> {
        let mut servers: Vec<ServerNote> = Vec::new();
        for endpoint in self.all.iter().flat_map(|column| &column.endpoints) {
            let Endpoint::OpenAi(endpoint) = endpoint else { continue };
            if servers.len() < SERVERS_MAX
                && servers.iter().all(|known| known.base_url != endpoint.base_url)
                && let Ok(server) = OpenAi::new((**endpoint).clone())
                && let Ok(Ok(mut info)) = tokio::time::timeout(SERVER_PATIENCE, server.described()).await
            {
                // A provider with thousands of models needs to be noted only for the model in use.
                if info.models.len() > MODELS_MAX {
                    info.models.retain(|model| *model == endpoint.model);
                }
                servers.push(ServerNote { base_url: endpoint.base_url.clone(), info });
            }
        }
        servers
    }
}

/// Returns the SHA-256 of a person's choices: for a built-in roleset only the differences from it, for any other roleset all of it.
/// Redaction is not part of the digest, since runs that would send more than others are refused separately.
fn settings(as_found: &Roleset, roleset: &Roleset, source: &RolesetSource, column: &Column) -> Digest {
    let packs: Vec<&str> = column.setup.everybody().map(|agent| agent.pack.as_str()).collect();
    let chosen = match source {
        RolesetSource::Embedded(name) => json!([name, differences(as_found, roleset)]),
        RolesetSource::File(_) => json!([roleset, packs]),
    };
    let chosen = if column.has_spoken_rules { chosen } else { json!([chosen, "without spoken rules"]) };
    let chosen = match &column.calibration {
        Some(calibration) => json!([chosen, calibration.rule_sha256()]),
        None => chosen,
    };
    Digest::new(chosen.to_string().as_bytes())
}

fn models(named: Option<&str>) -> Vec<Option<String>> {
    match named {
        Some(models) => {
            let named = models.split(',').map(str::trim).filter(|model| !model.is_empty());
            named.map(|model| Some(model.to_owned())).collect()
        }
        None => vec![None],
    }
}

impl Columns for OpenColumns {
    async fn of(&self, roleset: Option<&str>) -> Found {
        let Some(name) = roleset else { return Ok(Arc::clone(&self.all)) };
        let name = of_its_kind(name, &self.request.params);
        if let Some(known) = self.named.borrow().get(name) {
            return known.clone();
        }
        let columns = self.of_roleset(Some(name), &self.models, None).await;
        let columns = columns.map(|columns| columns.into_iter().map(|(column, _)| column).collect());
        let columns = columns.map_err(|why| format!("{:#}", anyhow::Error::from(why)));
        let mut named = self.named.borrow_mut();
        // A task file may name any number of rolesets that do not exist.
        if named.len() < NAMED_MAX {
            named.insert(name.to_owned(), columns.clone());
        }
        columns
    }
}
