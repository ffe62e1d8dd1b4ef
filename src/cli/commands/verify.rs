//! `consensus verify`: derives everything that a journal claims again, and compares it.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::not_covered::{self, RecordKind};
use super::verified_run::{VerifiedResult, verified_run};
use super::verify_batch::{verify_batch, verify_calibration};
use crate::api::{Session, SessionSays};
use crate::approval::{
    CommandVerification, DecisionError, DecisionRecord, KeyFolder, VerifiedRecord, VotedFor, quorum_of_votes,
};
use crate::batch::is_batch;
use crate::cli::args::{Format, VerifyArgs};
use crate::cli::error::{IntegrityError, UsageError};
use crate::cli::output::Output;
use crate::cli::reexecution::Reexecutor;
use crate::config::FileConfig;
use crate::engine::RunState;
use crate::eval::EvalPlan;
use crate::files::{LARGE_BYTES_MAX, read, read_own};
use crate::journal::{Entry, FILE_NAME, Journal, REDACTIONS_FILE, SESSIONS_FOLDER};
use crate::run::{SessionError, folder_of_runs};
use protocol::Outcome;
use protocol::core::ExitCode;
use protocol::text::escape;
use quorum::{Membership, Opinion};

pub(crate) fn verify(args: &VerifyArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let named = args.which.run.as_ref().map(Path::new);
    let file = named.filter(|path| path.is_file() && !path.ends_with(FILE_NAME));
    let folder = named.filter(|path| is_batch(path));
    if let (Some(dir), None, Some(calibration)) = (named, folder, &args.calibration) {
        return verify_calibration(calibration, dir, output);
    }
    if let Some(path) = named {
        EvalPlan::require_batch(path)?;
    }
    if let Some(folder) = folder {
        return verify_batch(args, folder, output);
    }
    if args.with_gaps {
        let why =
            "--with-gaps is for the folder of a batch or a server; no line of a single run can be removed";
        return Err(UsageError(why.to_owned()).into());
    }
    match file {
        Some(file) => verify_record(file, args.keys.as_deref(), output),
        None => verify_run(args, output),
    }
}

/// Reads the public keys. A roster that exists but cannot be read counts as a damaged record.
fn open_roster(keys: &Path) -> anyhow::Result<KeyFolder> {
    let why = match KeyFolder::open(keys) {
        Ok(roster) => return Ok(roster),
        Err(why) => why,
    };
    if let DecisionError::File { path, source, .. } = &why
        && source.kind() == ErrorKind::InvalidData
    {
        return Err(IntegrityError(format!("`{}` is not UTF-8", path.display())).into());
    }
    if let DecisionError::Unreadable { path, .. } = &why
        && path.exists()
    {
        return Err(IntegrityError(why.to_string()).into());
    }
    Err(why.into())
}

/// Verifies the record of a decision, with the public keys alone.
fn verify_record(file: &Path, keys: Option<&Path>, output: &Output) -> anyhow::Result<ExitCode> {
    if file.extension().is_some_and(|ending| ["gz", "tgz", "tar"].iter().any(|known| ending == *known)) {
        let why = format!(
            "`{}` is an archive; unpack it with `tar xf`, and verify the unpacked folder",
            file.display()
        );
        return Err(UsageError(why).into());
    }
    let Some(keys) = keys else {
        let why = "give --keys DIR, the folder with the reviewers' public keys (roster.json): whether a record is proven \
                   depends on whose keys you trust";
        return Err(UsageError(why.to_owned()).into());
    };
    let roster = open_roster(keys)?;
    let bytes = read(file, LARGE_BYTES_MAX).with_context(|| format!("cannot read `{}`", file.display()))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        IntegrityError(format!("`{}` is not a record, since it is not UTF-8", file.display()))
    })?;
    let verified = DecisionRecord::read(&text)?.verify(roster.roster())?;
    if output.format == Format::Text {
        print_decision(&verified, &roster, output)?;
    } else {
        output.json(&json!({"verified": true, "decision": verified}))?;
    }
    Ok(ExitCode::Success)
}

/// Prints what a record proves.
fn print_decision(verified: &VerifiedRecord, roster: &KeyFolder, output: &Output) -> anyhow::Result<()> {
    let VerifiedRecord {
        sequence,
        approved,
        change,
        signed_by,
        quorum,
        votes,
        chain,
        silent,
        branch,
        base,
        tree,
        verification,
    } = verified;
    let outcome = if *approved { "approved" } else { "not approved" };
    output.line(&format!("verified: decision {sequence}, {outcome}"))?;
    match change {
        Some(change) => output.line(&format!("  change       sha256 {change}"))?,
        None => output.line("  change       unknown; the record has too few votes to prove it")?,
    }
    if let (Some(branch), Some(base), Some(tree)) = (branch, base, tree) {
        output.line(&escape::terminal(&format!("  branch       {branch}, on {base}")))?;
        output.line(&format!("  tree         {tree}"))?;
    }
    if let Some(CommandVerification { command, no_sandbox, .. }) = verification {
        let wall = if *no_sandbox { ", without a sandbox" } else { "" };
        let line = format!("  command      {} succeeded on it{wall}", escape::excerpt(command));
        output.line(&escape::terminal(&line))?;
    }
    output.line(&format!("  repository   {chain}"))?;
    let names: Vec<&str> = signed_by.iter().map(String::as_str).collect();
    output.line(&escape::terminal(&format!("  signed by    {} (quorum {quorum})", names.join(", "))))?;
    for VotedFor { reviewer, model, opinion, .. } in votes {
        let vote = match opinion {
            Opinion::Approve { confidence, .. } => format!("approves, {} % sure", confidence / 100),
            Opinion::Reject { reason, severity } => {
                format!("rejects ({severity}): {}", escape::excerpt(reason))
            }
            Opinion::Abstain { reason } => format!("abstains: {}", escape::excerpt(reason)),
        };
        output.line(&escape::terminal(&format!("  vote         {reviewer} ({model}) {vote}")))?;
    }
    for reviewer in silent {
        output.line(&escape::terminal(&format!("  no vote      {reviewer}")))?;
    }
    if votes.iter().any(|vote| vote.signed_model.is_some()) {
        let membership = Membership::new(*chain, roster.roster().clone())?;
        let bears = quorum_of_votes(&membership, votes);
        output.line(&escape::terminal(&format!("  quorum       {bears}")))?;
    }
    Ok(())
}

fn verify_run(args: &VerifyArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let file = FileConfig::load_to_read()?;
    let dir = args.which.folder(&file)?;
    let VerifiedResult { journal, state, result, has_result_file } = verified_run(&dir)?;
    let has_ended = state.outcome().is_some();
    let opened = state.opened();
    let (is_calibrated, is_paced) = (opened.calibration.is_some(), opened.setup.params.is_paced());
    let kind = RecordKind { is_batch: false, is_calibrated, is_paced };
    let session = compare_session(&state, &journal, &dir)?;
    let again = Reexecutor::new(args, &file).run(&state, &dir)?;
    let (mut asked, mut replied) = (0_usize, 0_usize);
    for record in &journal.records {
        asked += usize::from(matches!(record.event, Entry::Asked(_)));
        replied += usize::from(matches!(record.event, Entry::Replied(_)));
    }
    if output.format != Format::Text {
        let totals = state.totals();
        output.json(&json!({
            "verified": true,
            "run": result.run,
            "outcome": if has_ended { result.outcome.name() } else { "open" },
            "sha256": result.sha256,
            "records": journal.records.len(),
            "prompts": asked,
            "replies": replied,
            "lost_calls": totals.lost,
            "cancelled_calls": totals.cancelled,
            "torn_bytes": journal.torn_bytes,
            "result_file": has_result_file,
            "session": session.as_ref().map(|(name, says)| json!({"name": name, "says": says})),
            "checks": again.checks,
            "checks_run_again": again.checks_again,
            "programs": again.programs,
            "programs_run_again": again.programs_again,
            "journal_head": journal.head,
            "not_covered": not_covered::names(kind),
        }))?;
        return Ok(ExitCode::Success);
    }
    let outcome = if has_ended { result.outcome.name() } else { "open (no end on record)" };
    output.line(&format!("verified: run {}, {outcome}", escape::terminal(&result.run)))?;
    output.line(&format!("  chain        {} records, head {}", journal.records.len(), journal.head))?;
    output.line(&format!("  prompts      {asked} sent, each as the protocol issues it"))?;
    let leads = match state.verdict() {
        Some(_) => "they determine this outcome",
        None => "they do not determine an outcome; the recorded stop reason cannot be checked",
    };
    output.line(&format!("  replies      {replied}; {leads}"))?;
    print_details(output, &state, &journal, &dir)?;
    output.lines(again.lines())?;
    let file = if has_result_file { "matches" } else { "is missing" };
    output.line(&format!("  result.json  {file}"))?;
    if let Some((name, says)) = session {
        output.line(&format!("  session      {name}: {}", describe_session(says)))?;
    }
    output.lines(not_covered::lines(kind))?;
    Ok(ExitCode::Success)
}

/// Prints a run's usage and its losses, and the digest of its text.
fn print_details(output: &Output, state: &RunState, journal: &Journal, dir: &Path) -> anyhow::Result<()> {
    let totals = state.totals();
    output.line(&format!(
        "  budget       {} + {} tokens, every call within its limits",
        totals.usage.prompt, totals.usage.completion
    ))?;
    if let Some(Outcome::Agreed { sha256: digest, .. }) = state.outcome().or(state.verdict()) {
        output.line(&format!("  text         sha256 {digest}"))?;
    }
    if totals.lost > 0 {
        output.line(&format!("  lost calls   {} made again after an interruption", totals.lost))?;
    }
    if totals.cancelled > 0 {
        let count = totals.cancelled;
        output.line(&format!(
            "  cancelled    {count} calls that could not change the result; their usage is unknown"
        ))?;
    }
    if state.opened().redacted {
        output.line(if dir.join(REDACTIONS_FILE).exists() {
            "  redactions   the originals of its tokens are in redactions.json, which is not verified"
        } else {
            "  redactions   redactions.json is missing, and with it the originals of its tokens"
        })?;
    }
    if journal.torn_bytes > 0 {
        output.line(&format!("  torn line    {} bytes at the end do not count", journal.torn_bytes))?;
    }
    Ok(())
}

fn describe_session(says: SessionSays) -> &'static str {
    match says {
        SessionSays::NoFile => "its file is missing, and was not compared",
        SessionSays::NoTable => {
            "nothing contradicts it; a table of redactions cannot be read, so the run's text was not compared"
        }
        SessionSays::Nothing => {
            "matches the text that the run received; it lacks a line of the run, which `consensus resume` adds"
        }
        SessionSays::Earlier => {
            "matches the text that the run received; its line is from before the run was resumed"
        }
        SessionSays::Same => "matches the text that the run received, and how the run has ended",
    }
}

/// Compares the run with its session, if it belongs to one. Returns the session's name, and how far it confirms the run.
fn compare_session(
    state: &RunState,
    journal: &Journal,
    dir: &Path,
) -> anyhow::Result<Option<(String, SessionSays)>> {
    let Some(place) = &state.opened().session else { return Ok(None) };
    let mut ends = Vec::new();
    for record in &journal.records {
        if let Entry::Stopped { outcome } = &record.event {
            ends.push(outcome);
        }
    }
    let has_ended = state.outcome().is_some();
    let runs = folder_of_runs(dir);
    let says = match Session::open(&runs, &place.name) {
        Ok(session) => {
            let name = format!("{}.jsonl", place.name);
            require_each_once(&runs.join(SESSIONS_FOLDER).join(name))?;
            session.compare_with_record(state.run(), state.opened(), &ends, has_ended)
        }
        Err(SessionError::Forgotten(_)) => Ok(SessionSays::NoFile),
        Err(why) => Err(why),
    };
    let says = says.map_err(|why| IntegrityError(why.to_string()))?;
    Ok(Some((place.name.clone(), says)))
}

/// Refuses the file of a session in which a line says again what the line before it of the same run says. The program adds no such line.
fn require_each_once(file: &Path) -> Result<(), IntegrityError> {
    let bytes = match read_own(file, LARGE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(IntegrityError(format!("`{}` cannot be read: {why}", file.display()))),
    };
    let mut known: HashMap<String, [Value; 4]> = HashMap::new();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    for (index, line) in lines.enumerate() {
        let value: Value = serde_json::from_slice(line).unwrap_or_default();
        let run = value["run"].as_str().unwrap_or_default().to_owned();
        let is_redacted = value["redacted"].as_bool().unwrap_or(false);
        let says =
            [value["prompt"].clone(), value["outcome"].clone(), value["text"].clone(), is_redacted.into()];
        if known.get(&run) == Some(&says) {
            let why = format!("line {} says again what an earlier line says of the same run", index + 1);
            return Err(IntegrityError(format!("the session `{}` is damaged: {why}", file.display())));
        }
        known.insert(run, says);
    }
    Ok(())
}
