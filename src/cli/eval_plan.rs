//! The plan of an evaluation, from the arms that a person names.
//!
//! The input is the flags, the data and the configuration. The output is the plan: which arms count the samples of a bank, which samples
//! the banks need, and with which curve each arm is compared. No server is asked.

use std::path::Path;

use super::args::{EvalArgs, Replies};
use super::error::UsageError;
use crate::batch::{Column, Draws, planned_columns};
use crate::config::{Chosen, FileConfig, vote_roleset};
use crate::eval::{ArmSpec, EvalData, EvalPlan, PlannedArm, PlannedBank, Way, digest, require_clusters};
use crate::run::{named_models, read_named};
use crypto::Digest;
use protocol::text::{CanonicalKind, escape};
use protocol::{Params, ProtocolParams as _};

/// Returns the plan of an evaluation in the folder `out`.
///
/// # Errors
///
/// Returns [`UsageError`] with the arm that cannot be, or any error of reading a roleset.
pub(super) fn planned(
    args: &EvalArgs,
    data: &EvalData,
    out: &Path,
    file: &FileConfig,
) -> anyhow::Result<EvalPlan> {
    if let Some(label) = &args.cluster {
        require_clusters(&data.tasks, label)?;
    }
    let vote = vote_roleset(data.kind == CanonicalKind::Choice, Some(data.kind));
    // Banks that are there stay as they are, so that a further arm may need another one.
    let known = EvalPlan::load(out).ok();
    let mut banks = known.map(|known| known.banks).unwrap_or_default();
    let drawn = banks.len();
    let mut arms: Vec<PlannedArm> = Vec::new();
    let mut ways: Vec<(Digest, String)> = Vec::new();
    for spec in &args.arms {
        if arms.iter().any(|arm| arm.name == spec.name) {
            return Err(
                UsageError(format!("the arm `{}` is named twice", escape::excerpt(&spec.name))).into()
            );
        }
        let model = spec.model.clone().or_else(|| args.server.model.clone()).unwrap_or_default();
        let arm = arm(args, spec, (vote, &model), out, file)?;
        let settings = spec.all_settings();
        let way = (arm.sha256, model.clone());
        if let Some(twin) = ways.iter().position(|known| *known == way) {
            let [one, other] = [&arms[twin].name, &spec.name].map(|name| escape::excerpt(name));
            return Err(
                UsageError(format!("the arms `{one}` and `{other}` are the same way of answering")).into()
            );
        }
        ways.push(way);
        let curve =
            bank_with(&mut banks, drawn, (vote, &model, &[]), Draws { words: args.samples, programs: 0 });
        banks[curve].is_curve = true;
        let bank = arm
            .needed
            .map(|needed| bank_with(&mut banks, drawn, (&arm.roleset, &model, &spec.drawing()), needed));
        arms.push(PlannedArm {
            name: spec.name.clone(),
            roleset: arm.roleset,
            protocol: arm.protocol.to_owned(),
            model,
            settings,
            is_on_curve: matches!(spec.way, Way::Majority(_)) && bank == Some(curve),
            bank,
            curve,
        });
    }
    let primary = primary(args, &arms)?;
    Ok(EvalPlan {
        v: EvalPlan::VERSION,
        data: data.note.name.clone(),
        data_sha256: data.note.sha256,
        tasks_sha256: digest(&data.tasks),
        kind: data.kind,
        items: data.tasks.len(),
        parts: args.shard.count,
        cluster: args.cluster.clone(),
        seed: args.seed,
        samples: args.samples,
        primary,
        effect: args.effect,
        pilot: args.pilot.is_some(),
        limits: args.limits.limits().on_resources(),
        arms,
        banks,
    })
}

/// An arm whose roleset was read.
struct ReadArm {
    roleset: String,
    protocol: &'static str,
    /// The digest of its setup.
    sha256: Digest,
    /// The samples that it counts of each task, if it is a vote.
    needed: Option<Draws>,
}

fn arm(
    args: &EvalArgs,
    spec: &ArmSpec,
    (vote, model): (&str, &str),
    out: &Path,
    file: &FileConfig,
) -> anyhow::Result<ReadArm> {
    let (roleset, protocol) = match &spec.way {
        Way::Majority(_) | Way::Vote => (vote, Some("vote")),
        Way::Roleset { name, protocol } => (name.as_str(), protocol.as_deref()),
    };
    let named = |why: String| UsageError(format!("the arm `{}`: {why}", escape::excerpt(&spec.name)));
    if model.contains(',') {
        return Err(named("it names several models; make an arm of each".to_owned()).into());
    }
    // A vote from a bank does not depend on the findings of a pilot.
    let replies = Replies::Bank(out);
    let batch =
        args.batch((roleset, model, &spec.all_settings()), Some(&spec.name), out.to_owned(), &replies);
    let request = batch.map_err(|why| named(why.to_string()))?.columns();
    let columns =
        planned_columns(&request, file).map_err(|why| named(format!("{:#}", anyhow::Error::from(why))))?;
    let Some((Column { setup, sha256, .. }, _)) = columns.first() else {
        return Err(named("it has no roleset".to_owned()).into());
    };
    let found = setup.params.protocol();
    if let Some(wanted) = protocol.filter(|wanted| *wanted != found) {
        return Err(named(format!(
            "its roleset `{roleset}` is of the protocol `{found}`, and not `{wanted}`"
        ))
        .into());
    }
    if let Params::Approval(_) = setup.params {
        return Err(named("reviews have no right answer to be counted".to_owned()).into());
    }
    let is_new =
        || !EvalPlan::load(out).is_ok_and(|known| known.arms.iter().any(|arm| arm.name == spec.name));
    if let Some(other) = model_of_arbiter(args, roleset, model, file)?.filter(|_| is_new()) {
        let other = escape::excerpt(&other);
        return Err(named(format!(
            "its arbiter has the model `{other}` of its own, which results do not tell; name one model for all agents with `model=`"
        ))
        .into());
    }
    let needed = matches!(setup.params, Params::Vote(_)).then(|| Draws::needed(setup));
    Ok(ReadArm { roleset: roleset.to_owned(), protocol: found, sha256: *sha256, needed })
}

/// Returns the model of a roleset's arbiter, if it is another one than that of the agents. Results tell only the models of agents.
fn model_of_arbiter(
    args: &EvalArgs,
    roleset: &str,
    model: &str,
    file: &FileConfig,
) -> anyhow::Result<Option<String>> {
    let own = Some(model).filter(|model| !model.is_empty()).map(str::to_owned);
    let chosen = Chosen { model: own, ..args.server.chosen() };
    let roleset = read_named(Some(roleset), args.rolesets.rolesets_dir.as_ref(), file)?.roleset;
    let mut models = named_models(&chosen, file, &roleset);
    let last = models.pop().filter(|_| roleset.arbiter.is_some());
    Ok(last.filter(|last| !models.contains(last)))
}

/// Returns the place of the bank whose samples are drawn in this way, and raises its numbers to those that are needed. Where no bank fits,
/// one is added.
///
/// The first `drawn` banks are on disk: a number of theirs can only rise from zero.
fn bank_with(
    banks: &mut Vec<PlannedBank>,
    drawn: usize,
    (roleset, model, settings): (&str, &str, &[(String, String)]),
    needed: Draws,
) -> usize {
    let can_have = |has: u32, needed: u32| has == 0 || needed <= has;
    let is_it = |(at, bank): (usize, &PlannedBank)| {
        let is_open =
            at >= drawn || can_have(bank.words, needed.words) && can_have(bank.programs, needed.programs);
        is_open
            && (bank.roleset.as_str(), bank.model.as_str(), &bank.settings[..]) == (roleset, model, settings)
    };
    let at = banks.iter().enumerate().position(is_it).unwrap_or_else(|| {
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
        banks.len() - 1
    });
    let Draws { words, programs } =
        needed.max(Draws { words: banks[at].words, programs: banks[at].programs });
    (banks[at].words, banks[at].programs) = (words, programs);
    at
}

/// Returns the name of the arm of the primary comparison.
fn primary(args: &EvalArgs, arms: &[PlannedArm]) -> Result<String, UsageError> {
    if let Some(name) = &args.primary {
        let is_there = arms.iter().any(|arm| arm.name == *name);
        let why = || UsageError(format!("--primary names `{}`, which is no arm", escape::excerpt(name)));
        return is_there.then(|| name.clone()).ok_or_else(why);
    }
    let first = arms.iter().find(|arm| !arm.is_on_curve).or(arms.first());
    Ok(first.map(|arm| arm.name.clone()).unwrap_or_default())
}
