//! The variants of a batch: rolesets on models, read and resolved when they are needed.
//!
//! The input is a person's choice of rolesets and servers, and the configuration. The output is variants that are ready to run: those
//! of the batch, and those of rolesets that single tasks name. No other file of this module reads configuration.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::bank::{DrawnSamples, Draws};
use super::matrix::Variant;
use crate::batch::folder::{ServerNote, VariantNote};
use crate::calibration::KnownParts;
use crate::config::{Chosen, FileConfig, RolesetSource, differences, launch_command, resolve_endpoints};
use crate::provider::OpenAi;
use crate::provider::launch::LaunchedServer;
use crate::run::{
    BY_PILOT, CalibrationRequest, NamedRoleset, ReadCalibration, Reporter, RolesetSettings, RunError,
    check_prices, find_servers, launch, mock_script, modes_of_pilot, plan_modes, read_named,
    redaction_policy, require_flag, require_trusted, require_unlike_voters, resolve, resolve_vote_name,
};
use crypto::Digest;
use protocol::core::Endpoint;
use protocol::{Params, ProtocolParams as _, RunSetup, Task};

/// The most rolesets of single tasks that are kept ready.
const NAMED_MAX: usize = 256;

/// The most servers that are asked to describe themselves, and the most models of one server that are noted.
const SERVERS_MAX: usize = 16;
const MODELS_MAX: usize = 16;

/// The time that a server has to describe itself.
const SERVER_PATIENCE: Duration = Duration::from_secs(2);

/// A person's choice of the rolesets and models of a batch.
#[derive(Clone, Debug, Default)]
pub struct VariantRequest {
    /// The rolesets; if empty, that of the configuration or the default.
    pub rolesets: Vec<String>,
    pub settings: RolesetSettings,
    /// The name of the variants' arm, if one tells them from others.
    pub arm: Option<String>,
    /// The samples that are drawn for each task, if the batch is to be a bank.
    pub draws: Option<Draws>,
    /// Whether the votes share a budget of tokens, so that each sample after the first two needs a permit.
    pub is_paced: bool,
}

/// Rolesets and models, ready to run.
#[derive(Debug)]
pub struct VariantSet {
    request: VariantRequest,
    file: FileConfig,
    chosen: Chosen,
    models: Vec<Option<String>>,
    /// The calibration of all variants.
    calibration: Option<Arc<ReadCalibration>>,
    /// The samples of the bank that the replies come from.
    drawn: Option<Arc<DrawnSamples>>,
    /// The variants of the batch.
    all: Arc<[Variant]>,
    /// The manifest's notes of the same variants.
    notes: Vec<VariantNote>,
    /// The variants of rolesets that single tasks have named.
    named: RefCell<HashMap<String, NamedVariants>>,
}

/// The variants of a roleset that a task names, or the reason why it gives no variant.
type NamedVariants = Result<Arc<[Variant]>, String>;

/// Makes the variants of a batch without their servers, for planning only.
///
/// Returns [`RunError`]; nothing was started or sent.
pub fn planned_variants(
    request: &VariantRequest,
    file: &FileConfig,
) -> Result<Vec<(Variant, VariantNote)>, RunError> {
    let mut variants = Vec::new();
    let settings = &request.settings;
    let calibration = request.read_calibration()?;
    for roleset in request.rolesets() {
        let named = read_named(roleset, settings.rolesets_dir.as_ref(), file)?;
        let resolved = resolve(&named, settings, file)?;
        for (arm, of_arm) in request.arms(&resolved)? {
            for model in split_models(settings.servers.model.as_deref()) {
                let chosen = Chosen { model: model.clone(), ..settings.servers.clone() };
                let of_model = of_arm.with_modes(plan_modes(&chosen, file, &of_arm.roleset)?);
                let setup = of_model.setup(Task::default(), 0);
                if let Some(calibration) = &calibration {
                    calibration.require(&setup, &[], settings.limits, KnownParts::Setup)?;
                }
                let variant = request.make_variant(model, &arm, setup, Vec::new(), calibration.as_ref());
                let note = describe(&variant, &named, &of_model);
                variants.push((variant, note));
            }
        }
    }
    Ok(variants)
}

/// Makes the manifest's note of a variant; `found` is its roleset before a person's settings.
fn describe(variant: &Variant, found: &NamedRoleset, resolved: &NamedRoleset) -> VariantNote {
    VariantNote {
        roleset: variant.roleset.clone(),
        model: variant.model.clone(),
        arm: variant.arm.clone(),
        source: found.source.to_string(),
        sha256: vec![variant.sha256],
        settings: vec![digest_settings(variant, found, resolved)],
        endpoints: variant.endpoints.iter().map(Endpoint::label).collect(),
    }
}

impl VariantRequest {
    /// Returns a roleset once for each arm of the batch, with the name of the arm.
    ///
    /// Returns [`RunError::Usage`] if a bank is wanted and the roleset cannot draw its samples, or if it cannot share a budget of tokens.
    fn arms(&self, resolved: &NamedRoleset) -> Result<Vec<(String, NamedRoleset)>, RunError> {
        let Some(draws) = self.draws else {
            let resolved = if self.is_paced { pace(resolved)? } else { resolved.clone() };
            return Ok(vec![(self.arm.clone().unwrap_or_default(), resolved)]);
        };
        let mut arms = Vec::new();
        for (arm, roleset) in draws.arms(&resolved.roleset)? {
            arms.push((arm, NamedRoleset { roleset, ..resolved.clone() }));
        }
        Ok(arms)
    }

    /// Reads the calibration of all variants, if there is one.
    fn read_calibration(&self) -> Result<Option<Arc<ReadCalibration>>, RunError> {
        Ok(self.settings.calibration.as_ref().map(CalibrationRequest::read).transpose()?.map(Arc::new))
    }

    /// Makes a variant in an arm, with or without the rules that tasks say, and with the calibration of the batch.
    fn make_variant(
        &self,
        model: Option<String>,
        arm: &str,
        setup: RunSetup,
        endpoints: Vec<Endpoint>,
        calibration: Option<&Arc<ReadCalibration>>,
    ) -> Variant {
        let mut variant = Variant::new(model.unwrap_or_default(), setup, endpoints).in_arm(arm);
        if self.settings.no_demands {
            variant = variant.without_demands();
        }
        if let Some(calibration) = calibration {
            variant = variant.with_calibration(Arc::clone(calibration));
        }
        variant
    }

    /// Returns the named rolesets, or a single `None` if no roleset is named.
    fn rolesets(&self) -> Vec<Option<&str>> {
        let named = self.rolesets.iter().map(|name| Some(resolve_vote_name(name, &self.settings.params)));
        let named: Vec<Option<&str>> = named.collect();
        if named.is_empty() { vec![None] } else { named }
    }
}

impl VariantSet {
    /// Reads the rolesets of a batch, starts the requested server with its log in `log`, unless `running` is that server, and finds the
    /// models.
    ///
    /// Returns [`RunError`]; no model was called.
    pub async fn open(
        request: VariantRequest,
        file: FileConfig,
        running: Option<LaunchedServer>,
        log: &Path,
        reporter: &dyn Reporter,
    ) -> Result<(Self, Option<LaunchedServer>), RunError> {
        let mock = &request.settings.mock;
        mock.require_answers()?;
        let script = mock_script(mock.script.as_deref(), mock.answer.as_deref())?;
        let mut chosen = Chosen { mock_script: script, ..request.settings.servers.clone() };
        let models = split_models(chosen.model.as_deref());
        if models.is_empty() {
            return Err(RunError::Usage("--model names no model".to_owned()));
        }
        if chosen.launch.is_some() && models.len() > 1 {
            let why = "--launch starts a server for one model; give one --model";
            return Err(RunError::Usage(why.to_owned()));
        }
        let calibration = request.read_calibration()?;
        let command = launch_command(&chosen, &file, None)?;
        let server = match (&command, running) {
            (Some(_), Some(server)) => {
                chosen.launched = Some(server.base_url().to_owned());
                Some(server)
            }
            (Some(_), None) => launch(command.as_ref(), &mut chosen, &file, log, reporter).await?,
            (None, running) => running,
        };
        let drawn = chosen.bank.as_deref().map(DrawnSamples::read).transpose()?.map(Arc::new);
        let named = RefCell::default();
        let (all, notes) = (Arc::default(), Vec::new());
        let mut variants = Self { request, file, chosen, models, calibration, drawn, all, notes, named };
        let (all, notes) = variants.open_all(reporter).await?.into_iter().unzip::<_, _, Vec<_>, _>();
        (variants.all, variants.notes) = (all.into(), notes);
        Ok((variants, server))
    }

    /// Returns the manifest's notes of the variants.
    pub fn notes(&self) -> &[VariantNote] {
        &self.notes
    }

    /// Returns the variants of the batch.
    pub fn all(&self) -> &[Variant] {
        &self.all
    }

    async fn open_all(&self, reporter: &dyn Reporter) -> Result<Vec<(Variant, VariantNote)>, RunError> {
        let mut all: Vec<(Variant, VariantNote)> = Vec::new();
        for roleset in self.request.rolesets() {
            all.extend(self.of_roleset(roleset, &self.models, Some(reporter)).await?);
        }
        // Runs are distinguished by the names of their task, roleset and model, and by their seed.
        for (at, (variant, _)) in all.iter().enumerate() {
            let Variant { roleset, model, arm, .. } = variant;
            let is_named_twice = all[..at]
                .iter()
                .any(|(other, _)| other.roleset == *roleset && other.model == *model && other.arm == *arm);
            if is_named_twice {
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
    /// Returns [`RunError`] if there is no such roleset, or its models cannot be found.
    pub async fn one(&self, roleset: &str, model: Option<&str>) -> Result<Variant, RunError> {
        let roleset = resolve_vote_name(roleset, &self.request.settings.params);
        let models = match model {
            Some(model) => vec![Some(model.to_owned())],
            None => self.models.clone(),
        };
        let found = self.of_roleset(Some(roleset), &models, None).await?;
        let first = found.into_iter().next().map(|(variant, _)| variant);
        first.ok_or_else(|| RunError::Usage("there is no model".to_owned()))
    }

    /// Returns the variants of a task: those of the batch, or those of the roleset that the task names.
    ///
    /// Returns the reason why the roleset cannot be run.
    pub(in crate::batch) async fn find(&self, roleset: Option<&str>) -> Result<Arc<[Variant]>, String> {
        let Some(name) = roleset else { return Ok(Arc::clone(&self.all)) };
        let name = resolve_vote_name(name, &self.request.settings.params);
        if let Some(known) = self.named.borrow().get(name) {
            return known.clone();
        }
        let found = match self.of_roleset(Some(name), &self.models, None).await {
            Ok(variants) => Ok(variants.into_iter().map(|(variant, _)| variant).collect()),
            Err(why) => Err(format!("{:#}", anyhow::Error::from(why))),
        };
        let mut named = self.named.borrow_mut();
        // A task file may name any number of rolesets that do not exist.
        if named.len() < NAMED_MAX {
            named.insert(name.to_owned(), found.clone());
        }
        found
    }

    /// Returns a roleset on each of the models.
    async fn of_roleset(
        &self,
        roleset: Option<&str>,
        models: &[Option<String>],
        reporter: Option<&dyn Reporter>,
    ) -> Result<Vec<(Variant, VariantNote)>, RunError> {
        let settings = &self.request.settings;
        let named = read_named(roleset, settings.rolesets_dir.as_ref(), &self.file)?;
        if let (Some(reporter), Some(shadows)) = (reporter, named.shadow_message()) {
            reporter.status(&shadows);
        }
        require_trusted(&named, &settings.params, &self.file)?;
        let resolved = resolve(&named, settings, &self.file)?;
        let sought = redaction_policy(&settings.redaction, &resolved.roleset)?;
        let arms = self.request.arms(&resolved)?;
        let mut variants = Vec::new();
        for model in models {
            let chosen = Chosen { model: model.clone(), ..self.chosen.clone() };
            let endpoints = match reporter {
                Some(reporter) => find_servers(&chosen, &self.file, &resolved.roleset, reporter).await?,
                // A single task line does not wait for a server.
                None => resolve_endpoints(&chosen, &self.file, &resolved.roleset).await?,
            };
            check_prices(settings.limits, &endpoints)?;
            for (arm, of_arm) in &arms {
                let by_pilot = modes_of_pilot(&of_arm.roleset, &endpoints)?;
                if let (Some(reporter), Some(_)) = (reporter, &by_pilot) {
                    reporter.status(BY_PILOT);
                }
                let of_model = of_arm.with_modes(by_pilot);
                let setup = of_model.setup(Task::default(), 0);
                require_unlike_voters(&setup, &endpoints)?;
                if let Some(drawn) = &self.drawn {
                    drawn.require(&setup, &endpoints)?;
                }
                if let (Some(calibration), None) = (&self.calibration, &sought) {
                    calibration.require(&setup, &endpoints, settings.limits, KnownParts::Models)?;
                }
                let (model, calibration) = (model.clone(), self.calibration.as_ref());
                let mut variant =
                    self.request.make_variant(model, arm, setup, endpoints.clone(), calibration);
                variant.drawn.clone_from(&self.drawn);
                let note = describe(&variant, &named, &of_model);
                if let Some(sought) = &sought {
                    variant = variant.with_redaction(sought.clone());
                }
                variants.push((variant, note));
            }
        }
        Ok(variants)
    }

    /// Returns what the servers of all variants say about themselves. Leaves out servers that say nothing.
    pub async fn servers(&self) -> Vec<ServerNote> {
        let mut servers: Vec<ServerNote> = Vec::new();
        for endpoint in self.all.iter().flat_map(|variant| &variant.endpoints) {
            let Endpoint::OpenAi(endpoint) = endpoint else { continue };
            if servers.len() < SERVERS_MAX
                && servers.iter().all(|known| known.base_url != endpoint.base_url)
                && let Ok(server) = OpenAi::new((**endpoint).clone())
                && let Ok(Ok(mut info)) = tokio::time::timeout(SERVER_PATIENCE, server.describe()).await
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

/// Returns the same roleset as a vote that waits for permits.
///
/// Returns [`RunError::Usage`] if its protocol or its parameters cannot wait.
fn pace(resolved: &NamedRoleset) -> Result<NamedRoleset, RunError> {
    require_flag(&resolved.roleset, "--budget-tokens", |params| matches!(params, Params::Vote(_)))?;
    let mut resolved = resolved.clone();
    if let Params::Vote(vote) = &mut resolved.roleset.params {
        vote.paced = true;
    }
    match resolved.roleset.params.out_of_range() {
        Some(why) => Err(RunError::Usage(format!("--budget-tokens: {why}"))),
        None => Ok(resolved),
    }
}

/// Returns the SHA-256 of a person's choices: for a built-in roleset only the differences from it, for any other roleset all of it.
/// Redaction is not part of the digest, since runs that would send more than others are refused separately.
fn digest_settings(variant: &Variant, found: &NamedRoleset, resolved: &NamedRoleset) -> Digest {
    let packs: Vec<&str> = variant.setup.everybody().map(|agent| agent.pack.as_str()).collect();
    let chosen = match &found.source {
        RolesetSource::Embedded(name) => json!([name, differences(&found.roleset, &resolved.roleset)]),
        RolesetSource::File(_) => json!([resolved.roleset, packs]),
    };
    let chosen = if variant.has_demands { chosen } else { json!([chosen, "without demands"]) };
    let chosen = match &variant.calibration {
        Some(calibration) => json!([chosen, calibration.rule_sha256()]),
        None => chosen,
    };
    Digest::new(chosen.to_string().as_bytes())
}

fn split_models(named: Option<&str>) -> Vec<Option<String>> {
    match named {
        Some(models) => {
            let named = models.split(',').map(str::trim).filter(|model| !model.is_empty());
            named.map(|model| Some(model.to_owned())).collect()
        }
        None => vec![None],
    }
}
