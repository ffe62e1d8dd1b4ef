//! From flags, environment and files to a run that is ready to start.

use std::fs::DirBuilder;
use std::io::{IsTerminal, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use serde::Deserialize;

use super::error::UsageError;
use super::output::Output;
use super::run_args::{
    ConfidenceArg, LimitArgs, ParamArgs, RedactArgs, RunArgs, SeatArgs, ServerArgs, WhenArg,
};
use super::{docs, launch, spread};
use crate::api::{SESSION_DOCUMENT, Session};
use crate::config::{
    Chosen, ConfigError, DEFAULT_RUNS_DIR, FileConfig, Hints, Roleset, Seats, check_meaning, config_folder,
    default_roleset, find_roleset, launch_command, load_roleset, resolve_endpoints, seat,
};
use crate::core::{Endpoint, PROGRAM};
use crate::engine::Redaction;
use crate::journal::{Limits, RunSpec};
use crate::protocol::council::Weights;
use crate::protocol::{Document, Override, Params, ProtocolParams, RunSetup, Task};
use crate::provider::MockScript;
use crate::provider::launch::Launched;
use crate::retrieval::Corpus;
use crate::text::{CanonicalKind, CanonicalRule};

/// The roleset of a batch that names none; that of a single run depends on its question.
const DEFAULT_ROLESET: &str = "writer_physicist";

/// What is said when nothing is asked.
const NO_TASK: &str =
    "there is no task; give it as an argument, with --prompt TEXT, with --prompt-file FILE, or on stdin";

/// The largest document, in bytes.
const DOCUMENT_BYTES_MAX: u64 = 16 << 20;

/// Returns the folders that rolesets are looked for in, first one first.
pub(super) fn roleset_folders(flag: Option<&PathBuf>, file: &FileConfig) -> Vec<PathBuf> {
    let configured = flag.or(file.rolesets_dir.as_ref()).cloned();
    let user = config_folder().map(|folder| folder.join("rolesets"));
    configured.into_iter().chain([PathBuf::from("rolesets")]).chain(user).collect()
}

/// Returns the folder of run folders.
pub(super) fn runs_dir(flag: Option<&PathBuf>, file: &FileConfig) -> PathBuf {
    flag.or(file.runs_dir.as_ref()).cloned().unwrap_or_else(|| PathBuf::from(DEFAULT_RUNS_DIR))
}

/// Reads the roleset that flags and files name.
pub(super) fn roleset(
    flag: Option<&String>,
    folder: Option<&PathBuf>,
    file: &FileConfig,
) -> anyhow::Result<(String, Roleset, crate::config::Packs)> {
    let name = flag.or(file.roleset.as_ref()).map_or(DEFAULT_ROLESET, String::as_str);
    read_roleset(name, folder, &roleset_folders(folder, file))
}

/// Reads a roleset of this name in these folders, one of which a flag may have named.
fn read_roleset(
    name: &str,
    flag: Option<&PathBuf>,
    folders: &[PathBuf],
) -> anyhow::Result<(String, Roleset, crate::config::Packs)> {
    // A folder that was named and is not there would silently give way to a built-in roleset of that name.
    if let Some(missing) = flag.filter(|folder| !folder.is_dir()) {
        let why = format!("there is no folder `{}`, which --rolesets-dir names", missing.display());
        return Err(UsageError(why).into());
    }
    let found = find_roleset(name, folders)?;
    let (roleset, packs) = load_roleset(&found)?;
    Ok((found.name, roleset, packs))
}

/// The roleset of a single run by its name, and why it is that one, unless a flag or the environment names it.
pub(super) struct Named {
    pub(super) roleset: String,
    pub(super) why: Option<&'static str>,
    /// Whether the question has chosen it. Then no roleset of that name in the working folder takes its place: a folder that came from
    /// elsewhere could send a question to another server by it.
    is_chosen: bool,
}

/// Returns the roleset that a run names, or else the one that suits its question; `script` is its mock script.
pub(super) fn named(args: &RunArgs, file: &FileConfig, script: Option<&str>) -> anyhow::Result<Named> {
    if let Some(roleset) = &args.roleset {
        return Ok(Named { roleset: roleset.clone(), why: None, is_chosen: false });
    }
    if let Some(roleset) = &file.roleset {
        return Ok(Named {
            roleset: roleset.clone(),
            why: Some("from the configuration file"),
            is_chosen: false,
        });
    }
    let script = script.map(str::parse::<MockScript>).transpose();
    let script = script.map_err(|why| UsageError(why.to_string()))?;
    let script_agents: Vec<&str> = script.iter().flat_map(MockScript::agents).collect();
    let chosen = default_roleset(&Hints {
        script_agents: &script_agents,
        has_choices: !args.params.choices.is_empty(),
        canonical: args.params.canonical.map(CanonicalKind::from),
    });
    Ok(Named { roleset: chosen.name.to_owned(), why: Some(chosen.why), is_chosen: true })
}

/// Makes the setup of a run of the roleset `named`, and asks no server.
pub(super) fn setup(
    args: &RunArgs,
    file: &FileConfig,
    seed: u64,
    named: &Named,
    session: Option<&Session>,
) -> anyhow::Result<(RunSetup, Roleset)> {
    let folder = args.rolesets.rolesets_dir.as_ref();
    let folders = if named.is_chosen {
        folder.cloned().into_iter().chain(config_folder().map(|own| own.join("rolesets"))).collect()
    } else {
        roleset_folders(folder, file)
    };
    let (name, mut roleset, mut packs) = read_roleset(&named.roleset, folder, &folders)?;
    check_flags(&roleset, args)?;
    let SeatArgs { members, models, self_panel, persona } = &args.seats;
    // A few at most: the flag is held to its range.
    let copies = self_panel.map(|copies| copies as usize);
    let is_redacted = redacts(args, &roleset);
    seat(&mut roleset, &mut packs, &Seats { members, models, copies, personas: persona, is_redacted })?;
    override_params(&mut roleset, &args.params)?;
    let problems = check_meaning(&roleset);
    if !problems.is_empty() {
        return Err(ConfigError::Roleset(problems).into());
    }
    let mut task = task(args)?;
    if args.session.is_some() && redacts(args, &roleset) {
        let why = "--session does not go with redaction: its tokens mean something else in every run";
        return Err(UsageError(why.to_owned()).into());
    }
    if let Some(session) = session {
        if task.documents.iter().any(|document| document.name == SESSION_DOCUMENT) {
            let why = format!(
                "a file of the name `{SESSION_DOCUMENT}` would be taken for what --session holds; give it another name"
            );
            return Err(UsageError(why).into());
        }
        task.documents.extend(session.document());
    }
    task.is_searched = !args.docs.is_empty();
    if task.is_searched && !matches!(roleset.params, Params::Council(_)) {
        let why = "--docs goes with rolesets of `council`; a file is given to any run with -f FILE";
        return Err(UsageError(why.to_owned()).into());
    }
    let setup = roleset.setup(&name, &packs, task, seed);
    setup.check().map_err(|why| UsageError(format!("this run cannot be made: {why}")))?;
    Ok((setup, roleset))
}

/// Opens the session that a run belongs to, if it belongs to one.
pub(super) fn session(args: &RunArgs, file: &FileConfig) -> anyhow::Result<Option<Session>> {
    let open = |name: &String| Session::open(&runs_dir(args.runs_dir.as_ref(), file), name);
    let session = args.session.as_ref().map(open).transpose();
    session.map_err(|why| UsageError(why.to_string()).into())
}

/// What a run starts from, and what is there for it.
pub(super) struct PreparedRun {
    pub(super) opened: RunSpec,
    pub(super) server: Option<Launched>,
    pub(super) corpus: Option<Corpus>,
    pub(super) redaction: Option<Redaction>,
    /// Why the run has its roleset, unless it names one.
    pub(super) why: Option<&'static str>,
}

/// Makes everything that a run starts from; may ask a server which model it serves.
///
/// A server that has to be started first is started with its log in `dir`.
pub(super) async fn opened(
    args: &RunArgs,
    file: &FileConfig,
    seed: u64,
    dir: &Path,
    output: &Output,
) -> anyhow::Result<PreparedRun> {
    // Read once: a script may come from a pipe.
    let script = mock_script(args.mock.mock_script.as_deref(), args.answer.as_deref())?;
    let named = named(args, file, script.as_deref())?;
    let session = session(args, file)?;
    let (mut setup, roleset) = setup(args, file, seed, &named, session.as_ref())?;
    let mut redaction = redaction(args, &roleset, dir)?;
    let (corpus, mut library) = docs::open_beside(&args.docs, output).await?.unzip();
    if let Some(redaction) = &mut redaction {
        setup = redaction.setup(setup);
        library = library.map(|library| redaction.library(library));
    }
    if args.mock.mock && args.answer.is_none() && args.mock.mock_script.is_none() {
        let why = "--mock needs --answer TEXT, or a script with --mock-script FILE";
        return Err(UsageError(why.to_owned()).into());
    }
    let mut chosen = chosen(&args.server, script);
    let command = launch_command(&chosen, file, Some(&roleset))?;
    let server = launch::launch(command.as_ref(), &mut chosen, file, &dir.join(launch::LOG), output).await?;
    let endpoints = resolve_endpoints(&chosen, file, &roleset).await?;
    spread::spread(args, &mut setup, &endpoints, redaction.is_some(), output).await?;
    let limits = limits(&args.limits);
    check_prices(limits, &endpoints)?;
    let (program, redacted) = (PROGRAM.to_owned(), redaction.is_some());
    let session = session.as_ref().map(Session::place);
    let opened = RunSpec { program, setup, endpoints, limits, library, redacted, session, cell: None };
    Ok(PreparedRun { opened, server, corpus, redaction, why: named.why })
}

/// Whether anything is to be left out of what leaves this machine.
pub(super) fn redacts(args: &RunArgs, roleset: &Roleset) -> bool {
    let RedactArgs { redact, redact_pattern } = &args.redaction;
    *redact || !redact_pattern.is_empty() || roleset.redact || !roleset.redact_patterns.is_empty()
}

/// What is to be left out, if anything is.
fn redaction(args: &RunArgs, roleset: &Roleset, dir: &Path) -> anyhow::Result<Option<Redaction>> {
    let given = &args.redaction;
    if !redacts(args, roleset) {
        return Ok(None);
    }
    let patterns = roleset.redact_patterns.iter().chain(&given.redact_pattern).cloned().collect();
    let redaction = Redaction::new(dir, patterns).map_err(UsageError)?;
    // By its name an agent is told who it is, and whom it talks to.
    for agent in roleset.agents.iter().chain(&roleset.arbiter) {
        if redaction.would_change(&agent.name) {
            let why = format!(
                "a pattern of --redact-pattern or `redact_patterns` finds the agent's name `{}`",
                agent.name
            );
            return Err(UsageError(why).into());
        }
    }
    Ok(Some(redaction))
}

/// Refuses a cost limit that could never bind because a price is missing.
pub(super) fn check_prices(limits: Limits, endpoints: &[Endpoint]) -> anyhow::Result<()> {
    let unpriced = endpoints.iter().find(|e| e.price().is_none());
    match unpriced.filter(|_| limits.cost_micro_usd_max.is_some()) {
        None => Ok(()),
        Some(endpoint) => {
            let label = endpoint.label();
            let why = format!(
                "--max-cost needs the price of {label}; add it to consensus.toml, such as\n\n  [prices.\"MODEL\"]\n  prompt = 0.15      # US dollars per million tokens\n  completion = 0.60"
            );
            Err(UsageError(why).into())
        }
    }
}

pub(super) fn chosen(server: &ServerArgs, mock_script: Option<String>) -> Chosen {
    Chosen {
        model: server.model.clone(),
        base_url: server.base_url.clone(),
        launch: server.launch.clone(),
        launched: None,
        no_stream: server.no_stream,
        allow_http: server.allow_http,
        timeout: server.timeout,
        mock_script,
    }
}

pub(super) fn limits(args: &LimitArgs) -> Limits {
    Limits {
        tokens_total_max: args.max_tokens_total,
        cost_micro_usd_max: args.max_cost,
        deadline_ms: args.deadline.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
    }
}

/// Resolves when the deadline that was given passes; never without one.
pub(super) async fn deadline(args: &LimitArgs, began: Instant) {
    match args.deadline {
        Some(after) => tokio::time::sleep_until((began + after).into()).await,
        None => std::future::pending().await,
    }
}

/// Refuses flags that say nothing about this kind of roleset.
fn check_flags(roleset: &Roleset, args: &RunArgs) -> anyhow::Result<()> {
    let seats = &args.seats;
    let is_seated = !seats.members.is_empty()
        || !seats.models.is_empty()
        || seats.self_panel.is_some()
        || !seats.persona.is_empty();
    if is_seated {
        refuse(roleset, "--members, --models, --self-panel or --persona", Params::has_members)?;
    }
    if args.spread.map_reduce == WhenArg::Always {
        refuse(roleset, "--map-reduce", Params::reads_pieces)?;
    }
    check_params(roleset, &args.params)
}

/// Refuses parameters that this kind of roleset has not.
pub(super) fn check_params(roleset: &Roleset, params: &ParamArgs) -> anyhow::Result<()> {
    // Whether there may be weights is known before they are read.
    let weights = params.weights_from.as_ref().map(|_| Weights::default());
    for (flag, change) in overrides(params, weights) {
        refuse(roleset, flag, |params| params.clone().apply(&change))?;
    }
    Ok(())
}

/// Refuses a flag that the roleset's protocol does not take, and names those that do.
fn refuse(roleset: &Roleset, flag: &str, takes: impl Fn(&Params) -> bool) -> anyhow::Result<()> {
    if takes(&roleset.params) {
        return Ok(());
    }
    let of: Vec<&str> =
        Params::defaults().iter().filter(|params| takes(params)).map(Params::protocol).collect();
    let (of, protocol) = (of.join("` or `"), roleset.params.protocol());
    let why = format!("{flag} goes with rolesets of `{of}` only; this one is of `{protocol}`");
    Err(UsageError(why).into())
}

/// Returns each parameter that was given in place of the roleset's, with the flag that gave it.
fn overrides(params: &ParamArgs, weights: Option<Weights>) -> Vec<(&'static str, Override)> {
    let is_measured = |from: ConfidenceArg| matches!(from, ConfidenceArg::Logprob);
    let is_formed =
        !params.constraints.is_empty() || params.canonical.is_some() || !params.choices.is_empty();
    let given = [
        // Of the ways to think one is not every protocol's.
        ("--thinking field", params.thinking.map(|thinking| Override::Thinking(thinking.into()))),
        ("--resample", params.resample.map(Override::Resample)),
        (
            "--weights-from",
            weights.map(|Weights { pathos, logos, ethos }| Override::Weights([pathos, logos, ethos])),
        ),
        ("--confidence", params.confidence.map(|from| Override::MeasuredConfidence(is_measured(from)))),
        ("--threshold", params.threshold.map(Override::Threshold)),
        (
            "--constraint, --canonical or --choices",
            is_formed.then(|| Override::Constraints(params.constraints.clone())),
        ),
        ("--max-rounds", params.max_rounds.map(Override::MaxRounds)),
    ];
    given.into_iter().filter_map(|(flag, change)| Some((flag, change?))).collect()
}

/// Puts parameters that were given in place of the roleset's.
pub(super) fn override_params(roleset: &mut Roleset, params: &ParamArgs) -> anyhow::Result<()> {
    let weights = params.weights_from.as_deref().map(weights).transpose()?;
    for (_, change) in overrides(params, weights) {
        // What the protocol does not have has been refused.
        roleset.params.apply(&change);
    }
    for agent in roleset.agents.iter_mut().chain(&mut roleset.arbiter) {
        agent.max_tokens = params.max_tokens.unwrap_or(agent.max_tokens);
        agent.temperature = params.temperature.unwrap_or(agent.temperature);
    }
    let kind = params.canonical.map(CanonicalKind::from);
    if !params.choices.is_empty() {
        if kind.is_some_and(|kind| kind != CanonicalKind::Choice) {
            return Err(UsageError("--choices goes with --canonical choice only".to_owned()).into());
        }
        roleset.canonical = CanonicalRule { choices: params.choices.clone(), ..CanonicalKind::Choice.into() };
    } else if let Some(kind) = kind {
        if kind == CanonicalKind::Choice && roleset.canonical.choices.is_empty() {
            return Err(UsageError("--canonical choice needs --choices A,B,…".to_owned()).into());
        }
        // The choices and the decimal sign of the roleset stay, where they are of this kind.
        if kind != roleset.canonical.kind || roleset.canonical.decimal.is_none() {
            let choices = std::mem::take(&mut roleset.canonical.choices);
            roleset.canonical = kind.into();
            if kind == CanonicalKind::Choice {
                roleset.canonical.choices = choices;
            }
        }
    }
    Ok(())
}

/// Reads what each member of a council counts.
fn weights(path: &Path) -> anyhow::Result<Weights> {
    let why = |why: String| UsageError(format!("`{}` holds no weights: {why}", path.display()));
    let text = read(path)?;
    // Some programs begin every file with this mark.
    let value: serde_json::Value =
        serde_json::from_str(text.trim_start_matches('\u{FEFF}')).map_err(|e| why(e.to_string()))?;
    // A bare list would be read by its order.
    let named = value.is_object().then_some(value).ok_or_else(|| why("they are not named".to_owned()))?;
    let exact: ExactWeights = serde_json::from_value(named).map_err(|e| why(e.to_string()))?;
    let sum_to_one = || why("the three weights must sum to 1".to_owned());
    Ok(Weights::nearest([exact.pathos, exact.logos, exact.ethos]).ok_or_else(sum_to_one)?)
}

/// Weights as a fit gives them, with all their digits.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExactWeights {
    pathos: f64,
    logos: f64,
    ethos: f64,
}

/// Reads the task from where it was given: a flag, a file, or stdin. `-f -` reads a document from stdin.
fn task(args: &RunArgs) -> anyhow::Result<Task> {
    let given = args.prompt.as_ref().or(args.positional.as_ref());
    let wants_stdin = usize::from(given.is_some_and(|text| text == "-"))
        + usize::from(given.is_none() && args.prompt_file.is_none())
        + args.files.iter().filter(|path| path.as_os_str() == "-").count();
    if wants_stdin > 1 {
        return Err(
            UsageError("stdin can be read only once, as the task or as one document".to_owned()).into()
        );
    }
    let prompt = match (given.map(String::as_str), &args.prompt_file) {
        (Some("-"), _) => stdin()?,
        (Some(text), _) => text.to_owned(),
        (None, Some(path)) => read(path)?,
        (None, None) if std::io::stdin().is_terminal() => String::new(),
        (None, None) => stdin()?,
    };
    if prompt.trim().is_empty() {
        let is_given = given.is_some() || args.prompt_file.is_some();
        let why = if is_given { "the task is empty" } else { NO_TASK };
        return Err(UsageError(why.to_owned()).into());
    }
    let document = |path: &PathBuf| {
        if path.as_os_str() == "-" {
            return anyhow::Ok(Document { name: "stdin".to_owned(), text: stdin()?, redacted: false });
        }
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("document").to_owned();
        anyhow::Ok(Document { name, text: read(path)?, redacted: false })
    };
    let mut documents: Vec<Document> = Vec::new();
    for path in &args.files {
        let mut read = document(path)?;
        // Of two files with one name each must be told from the other.
        let same = documents.iter().filter(|known| known.name == read.name).count();
        if same > 0 {
            read.name = path.display().to_string();
        }
        documents.push(read);
    }
    Ok(Task { prompt: prompt.trim().to_owned(), documents, is_searched: false })
}

fn stdin() -> anyhow::Result<String> {
    bounded(std::io::stdin(), "stdin")
}

fn read(path: &Path) -> anyhow::Result<String> {
    let name = format!("`{}`", path.display());
    let file = std::fs::File::open(path).map_err(|e| UsageError(format!("{name}: {e}")))?;
    bounded(file, &name)
}

/// Reads text of a bounded size, whatever it comes from.
fn bounded(source: impl Read, name: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let usage = |why: String| UsageError(format!("{name}: {why}"));
    source.take(DOCUMENT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|e| usage(e.to_string()))?;
    if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
        return Err(usage(format!("more than {DOCUMENT_BYTES_MAX} bytes do not fit into a run")).into());
    }
    String::from_utf8(bytes).map_err(|_| usage("it is not UTF-8 text".to_owned()).into())
}

pub(super) fn mock_script(path: Option<&Path>, answer: Option<&str>) -> anyhow::Result<Option<String>> {
    if let Some(path) = path {
        let script = read(path)?;
        script
            .parse::<crate::provider::MockScript>()
            .map_err(|e| UsageError(format!("`{}`: {e}", path.display())))?;
        return Ok(Some(script));
    }
    Ok(answer.map(|answer| serde_json::json!({"policy": "honest", "answer": answer}).to_string()))
}

/// Makes a folder that only the user can read, where there is none.
pub(super) fn private_folder(dir: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.with_context(|| format!("cannot make the folder `{}`", dir.display()))
}
