//! The planning of an evaluation, from the arms that a person names.
//!
//! The input is the request, the data and the configuration. The output is the plan: which arms count the samples of a bank, which samples
//! the banks need, and with which curve each arm is compared. No server is asked.

use super::arm_spec::{ArmSpec, Way};
use super::data::{EvalData, require_clusters};
use super::error::EvalError;
use super::folder::digest;
use super::plan::{EvalPlan, PlannedArm, PlannedBank};
use super::request::{EvalRequest, ReplySource};
use crate::batch::{Draws, Variant, planned_variants};
use crate::config::{Chosen, FileConfig, vote_roleset};
use crate::run::{named_models, read_named};
use crypto::Digest;
use protocol::text::{CanonicalKind, escape};
use protocol::{Params, ProtocolParams as _};

/// Plans the evaluation of this data. Nothing is written.
pub(super) fn plan_evaluation(
    request: &EvalRequest,
    data: &EvalData,
    file: &FileConfig,
) -> Result<EvalPlan, EvalError> {
    if let Some(label) = &request.cluster {
        require_clusters(&data.tasks, label)?;
    }
    let vote = vote_roleset(data.kind == CanonicalKind::Choice, Some(data.kind));
    // Banks that are there stay as they are, so that a further arm may need another one.
    let known = EvalPlan::load(&request.folder).ok();
    let mut banks = known.map(|known| known.banks).unwrap_or_default();
    let drawn = banks.len();
    let mut arms: Vec<PlannedArm> = Vec::new();
    let mut ways: Vec<(Digest, String, Option<&str>)> = Vec::new();
    for spec in &request.arms {
        if arms.iter().any(|arm| arm.name == spec.name) {
            let name = escape::excerpt(&spec.name);
            return Err(EvalError::Usage(format!("the arm `{name}` is named twice")));
        }
        let own = spec.model.as_ref().or(request.settings.servers.model.as_ref());
        let model = own.cloned().unwrap_or_default();
        let roleset = match &spec.way {
            Way::Majority(_) | Way::Vote => vote,
            Way::Roleset { name, .. } => name.as_str(),
        };
        let variant = read_arm(request, spec, roleset, &model, file)?;
        let way = (variant.sha256, model.clone(), spec.budget());
        if let Some(twin) = ways.iter().position(|known| *known == way) {
            let [one, other] = [&arms[twin].name, &spec.name].map(|name| escape::excerpt(name));
            let why = format!("the arms `{one}` and `{other}` are the same way of answering");
            return Err(EvalError::Usage(why));
        }
        ways.push(way);
        let samples = Draws { words: request.samples, programs: 0 };
        let curve = find_or_add_bank(&mut banks, drawn, vote, &model, &[], samples);
        banks[curve].is_curve = true;
        let mut bank = None;
        if let Params::Vote(_) = variant.setup.params {
            let needed = Draws::for_vote(&variant.setup);
            bank = Some(find_or_add_bank(&mut banks, drawn, roleset, &model, &spec.drawing(), needed));
        }
        arms.push(PlannedArm {
            name: spec.name.clone(),
            roleset: roleset.to_owned(),
            protocol: variant.setup.params.protocol().to_owned(),
            model,
            settings: spec.all_settings(),
            is_on_curve: matches!(spec.way, Way::Majority(_)) && bank == Some(curve),
            bank,
            curve,
        });
    }
    Ok(EvalPlan {
        v: EvalPlan::VERSION,
        data: data.note.name.clone(),
        data_sha256: data.note.sha256,
        tasks_sha256: digest(&data.tasks),
        kind: data.kind,
        items: data.tasks.len(),
        parts: request.shard.count,
        cluster: request.cluster.clone(),
        seed: request.seed,
        samples: request.samples,
        primary: primary(request.primary.as_ref(), &arms)?,
        effect: request.effect,
        pilot: request.is_pilot,
        limits: request.settings.limits.on_resources(),
        arms,
        banks,
    })
}

/// Reads the roleset of an arm, with its settings.
fn read_arm(
    request: &EvalRequest,
    spec: &ArmSpec,
    roleset: &str,
    model: &str,
    file: &FileConfig,
) -> Result<Variant, EvalError> {
    if model.contains(',') {
        return Err(arm_error(spec, "it names several models; make an arm of each"));
    }
    let protocol = match &spec.way {
        Way::Majority(_) | Way::Vote => Some("vote"),
        Way::Roleset { protocol, .. } => protocol.as_deref(),
    };
    // A vote from a bank does not depend on the findings of a pilot.
    let folder = &request.folder;
    let (settings, replies) = (spec.all_settings(), ReplySource::Bank(folder.clone()));
    let batch = request.batch(roleset, model, &settings, Some(&spec.name), folder.clone(), replies);
    let batch = batch.map_err(|why| arm_error(spec, &why.to_string()))?;
    let variants = planned_variants(&batch.variants, file)
        .map_err(|why| arm_error(spec, &format!("{:#}", anyhow::Error::from(why))))?;
    let Some((variant, _)) = variants.into_iter().next() else {
        return Err(arm_error(spec, "it has no roleset"));
    };
    let found = variant.setup.params.protocol();
    if let Some(protocol) = protocol
        && protocol != found
    {
        let why = format!("its roleset `{roleset}` is of the protocol `{found}`, and not `{protocol}`");
        return Err(arm_error(spec, &why));
    }
    if let Params::Approval(_) = variant.setup.params {
        return Err(arm_error(spec, "reviews have no right answer to be counted"));
    }
    if let Some(other) = model_of_arbiter(request, roleset, model, file)?
        && !is_planned(request, spec)
    {
        let why = format!(
            "its arbiter has the model `{}` of its own, which results do not tell; name one model for all agents with `model=`",
            escape::excerpt(&other)
        );
        return Err(arm_error(spec, &why));
    }
    Ok(variant)
}

fn arm_error(spec: &ArmSpec, why: &str) -> EvalError {
    EvalError::Usage(format!("the arm `{}`: {why}", escape::excerpt(&spec.name)))
}

/// Returns whether the plan on disk has an arm of this name.
fn is_planned(request: &EvalRequest, spec: &ArmSpec) -> bool {
    let known = EvalPlan::load(&request.folder);
    known.is_ok_and(|plan| plan.arms.iter().any(|arm| arm.name == spec.name))
}

/// Returns the model of a roleset's arbiter, if it is another one than that of the agents. Results tell only the models of agents.
fn model_of_arbiter(
    request: &EvalRequest,
    roleset: &str,
    model: &str,
    file: &FileConfig,
) -> Result<Option<String>, EvalError> {
    let settings = &request.settings;
    let own = if model.is_empty() { None } else { Some(model.to_owned()) };
    let chosen = Chosen { model: own, ..settings.servers.clone() };
    let roleset = read_named(Some(roleset), settings.rolesets_dir.as_ref(), file)?.roleset;
    if roleset.arbiter.is_none() {
        return Ok(None);
    }
    let mut models = named_models(&chosen, file, &roleset);
    let last = models.pop();
    Ok(last.filter(|last| !models.contains(last)))
}

/// Returns the place of the bank whose samples are drawn in this way, and raises its numbers to those that are needed. Where no bank fits,
/// one is added.
///
/// The first `drawn` banks are on disk: a number of theirs can only rise from zero.
fn find_or_add_bank(
    banks: &mut Vec<PlannedBank>,
    drawn: usize,
    roleset: &str,
    model: &str,
    settings: &[(String, String)],
    needed: Draws,
) -> usize {
    let mut at = 0;
    while let Some(bank) = banks.get(at) {
        let is_same = bank.roleset == roleset && bank.model == model && bank.settings == settings;
        let has_words = bank.words == 0 || needed.words <= bank.words;
        let has_programs = bank.programs == 0 || needed.programs <= bank.programs;
        if is_same && (at >= drawn || has_words && has_programs) {
            break;
        }
        at += 1;
    }
    if at == banks.len() {
        let folder = if banks.is_empty() { "bank".to_owned() } else { format!("bank-{}", banks.len() + 1) };
        banks.push(PlannedBank {
            folder,
            roleset: roleset.to_owned(),
            model: model.to_owned(),
            settings: settings.to_vec(),
            words: 0,
            programs: 0,
            is_curve: false,
        });
    }
    let Draws { words, programs } =
        needed.max(Draws { words: banks[at].words, programs: banks[at].programs });
    (banks[at].words, banks[at].programs) = (words, programs);
    at
}

/// Returns the name of the arm of the primary comparison; `named` is the one that a person names.
fn primary(named: Option<&String>, arms: &[PlannedArm]) -> Result<String, EvalError> {
    if let Some(name) = named {
        if !arms.iter().any(|arm| arm.name == *name) {
            let name = escape::excerpt(name);
            return Err(EvalError::Usage(format!("--primary names `{name}`, which is no arm")));
        }
        return Ok(name.clone());
    }
    let first = arms.iter().find(|arm| !arm.is_on_curve).or(arms.first());
    Ok(first.map(|arm| arm.name.clone()).unwrap_or_default())
}
