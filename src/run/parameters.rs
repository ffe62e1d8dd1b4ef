//! Parameters that a person gives in place of a roleset's.
//!
//! In: a roleset, and each parameter with the flag that gave it. Out: the roleset with these parameters, or the flag
//! that its protocol does not take. Which flag is which parameter is said where flags are read.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::RunError;
use super::task::read;
use crate::config::{ConfigError, PathSetting, Roleset, check_meaning, set};
use crate::protocol::council::Weights;
use crate::protocol::{Override, Params, ProtocolParams};
use crate::text::{CanonicalKind, CanonicalRule};

/// One parameter of the protocol, and the flag that gave it.
#[derive(Clone, Debug)]
pub struct FlagOverride {
    /// The flag, as it is typed.
    pub flag: &'static str,
    /// The parameter.
    pub change: Override,
}

/// Everything that is given in place of what a roleset says.
#[derive(Clone, Debug, Default)]
pub struct ParamChanges {
    /// Parameters of the protocol.
    pub overrides: Vec<FlagOverride>,
    /// Settings of the roleset by their paths; the flags of their own come after them.
    pub set: Vec<PathSetting>,
    /// A JSON file with the weights of a council's members.
    pub weights_from: Option<PathBuf>,
    /// Tokens of one reply at most, for every agent.
    pub max_tokens: Option<u32>,
    /// The sampling temperature of every agent.
    pub temperature: Option<f64>,
    /// Which differences between texts do not count.
    pub canonical: Option<CanonicalKind>,
    /// The allowed answers.
    pub choices: Vec<String>,
}

impl ParamChanges {
    /// Whether the answer is to have a form that code checks.
    #[must_use]
    pub fn is_formed(&self) -> bool {
        self.overrides.iter().any(|given| matches!(given.change, Override::Constraints(_)))
    }

    /// Puts them in place of the roleset's.
    ///
    /// # Errors
    ///
    /// [`RunError::Usage`] with the flag that this protocol does not take or that cannot be,
    /// [`RunError::Config`] with every mistake in what comes of it.
    pub fn apply(&self, roleset: &mut Roleset) -> Result<(), RunError> {
        self.check(roleset)?;
        self.put(roleset)
    }

    /// Puts them in place of the roleset's, which takes them.
    pub(super) fn put(&self, roleset: &mut Roleset) -> Result<(), RunError> {
        if !self.set.is_empty() {
            *roleset = set(roleset, &self.set)?;
        }
        override_params(roleset, self)?;
        let problems = check_meaning(roleset);
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::Roleset(problems).into()) }
    }

    /// Refuses parameters that this kind of roleset has not.
    pub(super) fn check(&self, roleset: &Roleset) -> Result<(), RunError> {
        for FlagOverride { flag, change } in &self.overrides {
            refuse(roleset, flag, |params| params.clone().apply(change))?;
        }
        if self.weights_from.is_some() {
            // Whether there may be weights is known before they are read.
            let any = Override::Weights(in_order(Weights::default()));
            refuse(roleset, "--weights-from", |params| params.clone().apply(&any))?;
        }
        Ok(())
    }
}

/// Refuses a flag that the roleset's protocol does not take, and names those that do.
///
/// # Errors
///
/// [`RunError::Usage`].
pub(super) fn refuse(roleset: &Roleset, flag: &str, takes: impl Fn(&Params) -> bool) -> Result<(), RunError> {
    if takes(&roleset.params) {
        return Ok(());
    }
    let of: Vec<&str> =
        Params::defaults().iter().filter(|params| takes(params)).map(Params::protocol).collect();
    let (of, protocol) = (of.join("` or `"), roleset.params.protocol());
    let why = format!("{flag} goes with rolesets of `{of}` only; this one is of `{protocol}`");
    Err(RunError::Usage(why))
}

fn override_params(roleset: &mut Roleset, given: &ParamChanges) -> Result<(), RunError> {
    for FlagOverride { change, .. } in &given.overrides {
        // What the protocol does not have has been refused.
        roleset.params.apply(change);
    }
    if let Some(path) = &given.weights_from {
        roleset.params.apply(&Override::Weights(in_order(weights(path)?)));
    }
    for agent in roleset.agents.iter_mut().chain(&mut roleset.arbiter) {
        agent.max_tokens = given.max_tokens.unwrap_or(agent.max_tokens);
        agent.temperature = given.temperature.unwrap_or(agent.temperature);
    }
    override_canonical(&mut roleset.canonical, given)
}

fn override_canonical(rule: &mut CanonicalRule, given: &ParamChanges) -> Result<(), RunError> {
    let kind = given.canonical;
    if !given.choices.is_empty() {
        if kind.is_some_and(|kind| kind != CanonicalKind::Choice) {
            return Err(RunError::Usage("--choices goes with --canonical choice only".to_owned()));
        }
        *rule = CanonicalRule { choices: given.choices.clone(), ..CanonicalKind::Choice.into() };
    } else if let Some(kind) = kind {
        if kind == CanonicalKind::Choice && rule.choices.is_empty() {
            return Err(RunError::Usage("--canonical choice needs --choices A,B,…".to_owned()));
        }
        // The choices and the decimal sign of the roleset stay, where they are of this kind.
        if kind != rule.kind || rule.decimal.is_none() {
            let choices = std::mem::take(&mut rule.choices);
            *rule = kind.into();
            if kind == CanonicalKind::Choice {
                rule.choices = choices;
            }
        }
    }
    Ok(())
}

fn in_order(Weights { pathos, logos, ethos }: Weights) -> [crate::core::BasisPoints; 3] {
    [pathos, logos, ethos]
}

/// Reads what each member of a council counts.
fn weights(path: &Path) -> Result<Weights, RunError> {
    let why = |why: String| RunError::Usage(format!("`{}` holds no weights: {why}", path.display()));
    let text = read(path)?;
    // Some programs begin every file with this mark.
    let value: serde_json::Value =
        serde_json::from_str(text.trim_start_matches('\u{FEFF}')).map_err(|e| why(e.to_string()))?;
    // A bare list would be read by its order.
    let named = value.is_object().then_some(value).ok_or_else(|| why("they are not named".to_owned()))?;
    let exact: ExactWeights = serde_json::from_value(named).map_err(|e| why(e.to_string()))?;
    let sum_to_one = || why("the three weights must sum to 1".to_owned());
    Weights::nearest([exact.pathos, exact.logos, exact.ethos]).ok_or_else(sum_to_one)
}

/// Weights as a fit gives them, with all their digits.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExactWeights {
    pathos: f64,
    logos: f64,
    ethos: f64,
}
