//! The parameters that a person gives in place of those of a roleset.
//!
//! The input is a roleset, and each parameter with its flag. The output is the roleset with these parameters, or the flag that the
//! roleset's protocol does not take. The code that reads flags, not this module, maps each flag to its parameter.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::RunError;
use super::task::read;
use crate::config::{CHECK_TIMEOUT_MS, ConfigError, PathSetting, Roleset, check_meaning, set};
use protocol::council::Weights;
use protocol::text::{CanonicalKind, CanonicalRule, Constraint, Demand, find_demands};
use protocol::{CheckCommand, Interpreter, Override, Params, ProtocolParams, TalkForm};

/// A parameter of the protocol, and the flag that gave it.
#[derive(Clone, Debug)]
pub struct FlagOverride {
    /// The flag, as it is typed.
    pub flag: &'static str,
    pub change: Override,
}

/// All parameters that replace those of a roleset.
#[derive(Clone, Debug, Default)]
pub struct ParamChanges {
    /// The parameters of the protocol.
    pub overrides: Vec<FlagOverride>,
    /// The settings that name a field of the roleset by its path. They are applied before the separate flags.
    pub path_settings: Vec<PathSetting>,
    /// A JSON file with the weights of a council's members.
    pub weights_from: Option<PathBuf>,
    /// The most tokens of one reply, for every agent.
    pub max_tokens: Option<u32>,
    /// The sampling temperature of every agent.
    pub temperature: Option<f64>,
    /// The canonical form of a text. Texts that differ only in what this form leaves out count as equal.
    pub canonical: Option<CanonicalKind>,
    /// The possible answers, for the canonical form `choice`.
    pub choices: Vec<String>,
    /// The command that checks final texts, in place of the roleset's.
    pub check: Option<String>,
    /// The longest time that the check may take, in milliseconds.
    pub check_timeout_ms: Option<u64>,
    /// Whether there is no check, whatever the roleset and the configuration say.
    pub no_check: bool,
    pub interpreter: Option<Interpreter>,
}

impl ParamChanges {
    /// Returns whether the answer must have a form that code checks.
    pub fn has_constraints(&self) -> bool {
        self.overrides.iter().any(|given| matches!(given.change, Override::Constraints(_)))
    }

    /// Replaces the roleset's parameters with these.
    ///
    /// Returns [`RunError::Usage`] with the flag that this protocol does not take or whose value is impossible, or
    /// [`RunError::Config`] with every mistake in the resulting roleset.
    pub fn apply(&self, roleset: &mut Roleset) -> Result<(), RunError> {
        self.require_taken(roleset)?;
        self.apply_taken(roleset)
    }

    /// Replaces the roleset's parameters, which must have passed [`Self::require_taken`].
    fn apply_taken(&self, roleset: &mut Roleset) -> Result<(), RunError> {
        if !self.path_settings.is_empty() {
            *roleset = set(roleset, &self.path_settings)?;
        }
        override_params(roleset, self)?;
        let problems = check_meaning(roleset);
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::Roleset(problems).into()) }
    }

    /// Refuses parameters that the roleset's protocol does not take.
    pub(super) fn require_taken(&self, roleset: &Roleset) -> Result<(), RunError> {
        // A setting or a flag may decide which other flags have an effect.
        let mut changed = roleset.clone();
        if !self.path_settings.is_empty()
            && let Ok(set) = set(roleset, &self.path_settings)
        {
            changed = set;
        }
        for FlagOverride { flag, change } in &self.overrides {
            require_flag(&changed, flag, |params| params.clone().apply(change))?;
            changed.params.apply(change);
        }
        if let Some(command) = &self.check {
            if command.trim().is_empty() {
                return Err(RunError::Usage("--check names no command".to_owned()));
            }
            require_flag(roleset, "--check", takes_check)?;
        }
        if self.weights_from.is_some() {
            // A protocol without weights is refused before the file of weights is read.
            let defaults = Override::Weights(list_weights(Weights::default()));
            require_flag(roleset, "--weights-from", |params| params.clone().apply(&defaults))?;
        }
        Ok(())
    }
}

/// Adds the rules that a task says in plain words to the parameters of its run, and returns them. A rule that a flag or a roleset gives is
/// never changed.
pub fn add_demands(task: &str, params: &mut Params, canonical: &CanonicalRule) -> Vec<Demand> {
    let by_line = matches!(canonical.kind, CanonicalKind::Lines | CanonicalKind::Verbatim);
    if canonical.kind != CanonicalKind::Text && !by_line {
        return Vec::new();
    }
    let Some(constraints) = params.constraints_mut() else { return Vec::new() };
    let mut found = find_demands(task);
    found.retain(|demand| {
        let kind = std::mem::discriminant(&demand.rule);
        // Lines cannot be counted if line breaks do not matter.
        let is_countable = by_line || !matches!(demand.rule, Constraint::Lines(_));
        is_countable && !constraints.iter().any(|given| std::mem::discriminant(given) == kind)
    });
    constraints.extend(found.iter().map(|demand| demand.rule.clone()));
    found
}

/// Returns true if a run with these parameters ends with a text that a command can check.
pub(super) fn takes_check(params: &Params) -> bool {
    !matches!(params, Params::Approval(_))
}

/// Refuses a flag that the roleset's protocol does not take, and names the protocols that do.
pub fn require_flag(roleset: &Roleset, flag: &str, takes: impl Fn(&Params) -> bool) -> Result<(), RunError> {
    if takes(&roleset.params) {
        return Ok(());
    }
    let protocols: Vec<&str> =
        Params::defaults().iter().filter(|params| takes(params)).map(Params::protocol).collect();
    let protocol = roleset.params.protocol();
    // `talk` alone decides which flags of a protocol have an effect.
    let mut counting = roleset.params.clone();
    if counting.apply(&Override::Talk(TalkForm::Differing)) && takes(&counting) {
        return Err(RunError::Usage(format!("{flag} needs answers that are counted; add --talk differing")));
    }
    if protocols.contains(&protocol) {
        let why = format!(
            "{flag} has no effect where answers are counted (`talk: differing`); leave it out, or add --talk always"
        );
        return Err(RunError::Usage(why));
    }
    let protocols = protocols.join("` or `");
    let why = format!(
        "{flag} goes with rolesets of `{protocols}` only; this one is of `{protocol}`, so choose another roleset"
    );
    Err(RunError::Usage(why))
}

fn override_params(roleset: &mut Roleset, given: &ParamChanges) -> Result<(), RunError> {
    for FlagOverride { change, .. } in &given.overrides {
        // The caller has already refused parameters that the protocol does not take.
        roleset.params.apply(change);
    }
    if let Some(path) = &given.weights_from {
        roleset.params.apply(&Override::Weights(list_weights(read_weights(path)?)));
    }
    for agent in roleset.agents.iter_mut().chain(&mut roleset.arbiter) {
        agent.max_tokens = given.max_tokens.unwrap_or(agent.max_tokens);
        agent.temperature = given.temperature.unwrap_or(agent.temperature);
    }
    if given.no_check {
        roleset.check = None;
    }
    if let Some(command) = given.check.clone() {
        roleset.check = Some(CheckCommand { command, timeout_ms: CHECK_TIMEOUT_MS });
    }
    if let (Some(check), Some(timeout_ms)) = (&mut roleset.check, given.check_timeout_ms) {
        check.timeout_ms = timeout_ms;
    }
    roleset.interpreter = given.interpreter.unwrap_or(roleset.interpreter);
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
        // The choices and the decimal sign of the roleset remain if they belong to this kind.
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

fn list_weights(Weights { pathos, logos, ethos }: Weights) -> [protocol::core::BasisPoints; 3] {
    [pathos, logos, ethos]
}

/// Reads the weight of each member of a council.
fn read_weights(path: &Path) -> Result<Weights, RunError> {
    let text = read(path)?;
    parse_weights(&text)
        .map_err(|why| RunError::Usage(format!("`{}` is not a file of weights: {why}", path.display())))
}

fn parse_weights(text: &str) -> Result<Weights, String> {
    // Some programs begin every file with a byte order mark.
    let text = text.trim_start_matches('\u{FEFF}');
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    // Serde would read a bare list by the order of its numbers.
    if !value.is_object() {
        return Err("each weight needs its name".to_owned());
    }
    let exact: ExactWeights = serde_json::from_value(value).map_err(|e| e.to_string())?;
    Weights::nearest([exact.pathos, exact.logos, exact.ethos])
        .ok_or_else(|| "the three weights must sum to 1".to_owned())
}

/// The weights of a file with all their digits, before they are rounded to ten-thousandths.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExactWeights {
    pathos: f64,
    logos: f64,
    ethos: f64,
}
