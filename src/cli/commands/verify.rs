//! `consensus verify`: everything that a journal claims, derived again and compared.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::api::{Session, SessionSays};
use crate::approval::{DecisionError, DecisionRecord, KeyFolder, Verified, VotedFor, quorum_of_votes};
use crate::bft::{Membership, Opinion};
use crate::cli::args::{Format, RunRef, VerifyArgs};
use crate::cli::error::{IntegrityError, UsageError};
use crate::cli::output::Output;
use crate::config::FileConfig;
use crate::core::ExitCode;
use crate::crypto::Digest;
use crate::engine::RunState;
use crate::files::LARGE_BYTES_MAX;
use crate::journal::{Entry, FILE_NAME, Journal, REDACTIONS_FILE, read};
use crate::protocol::Outcome;
use crate::report::{RESULT_FILE, RunResult};
use crate::run::{SessionError, folder_of_runs};
use crate::text::escape;
use crate::{batch, files};

/// What no record of a run can prove.
const NOT_COVERED: [&str; 5] = ["endpoint", "model", "tokens", "cost", "times"];

/// The same for people.
const NOT_COVERED_IN_WORDS: &str =
    "  not covered  endpoints, models' names, token counts, costs and times: the word of the file's holder";

pub(crate) fn verify(args: &VerifyArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let file =
        args.which.run.as_ref().map(Path::new).filter(|path| path.is_file() && !path.ends_with(FILE_NAME));
    let folder = args.which.run.as_ref().map(Path::new).filter(|path| batch::is_batch(path));
    match (file, folder) {
        (Some(file), _) => verify_record(file, args.keys.as_deref(), output),
        (None, Some(folder)) => verify_batch(folder, output),
        (None, None) => verify_run(&args.which, output),
    }
}

/// Verifies every run of a batch.
fn verify_batch(folder: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let verified = batch::verify(folder)?;
    if output.format != Format::Text {
        output.json(&json!({"verified": true, "batch": verified, "not_covered": NOT_COVERED}))?;
        return Ok(ExitCode::Success);
    }
    output.line(&format!("verified: {} runs have ended as their results say", verified.ended))?;
    if verified.untold > 0 {
        let untold = verified.untold;
        output
            .line(&format!("  {untold} more have ended and have no such result; the same command adds it"))?;
    }
    if verified.open > 0 {
        output.line(&format!("  {} more are under way or were cut off", verified.open))?;
    }
    if verified.absent_shards > 0 {
        output.line(&format!("  {} shards have not begun, or are not here", verified.absent_shards))?;
    }
    if verified.unlabelled > 0 {
        let unlabelled = verified.unlabelled;
        output.line(&format!(
            "  {unlabelled} of them were begun by version 0.1, which does not record `made_of`; it was not compared"
        ))?;
    }
    output.line(NOT_COVERED_IN_WORDS)?;
    Ok(ExitCode::Success)
}

/// Reads the public keys. A roster that is there and cannot be read is as bad as a damaged record.
fn roster(keys: &Path) -> anyhow::Result<KeyFolder> {
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
            "`{}` is an archive; unpack it with `tar xf`, and verify the folder that comes out of it",
            file.display()
        );
        return Err(UsageError(why).into());
    }
    let Some(keys) = keys else {
        let why = "give --keys DIR, the folder with the reviewers' public keys (roster.json): whether a record is proven \
                   depends on whose keys you trust";
        return Err(UsageError(why.to_owned()).into());
    };
    let roster = roster(keys)?;
    let bytes =
        files::read(file, LARGE_BYTES_MAX).with_context(|| format!("cannot read `{}`", file.display()))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| IntegrityError(format!("`{}` is no record: it is not UTF-8", file.display())))?;
    let verified = DecisionRecord::read(&text)?.verify(roster.roster())?;
    if output.format != Format::Text {
        output.json(&json!({"verified": true, "decision": verified}))?;
        return Ok(ExitCode::Success);
    }
    let Verified { sequence, approved, change, signed_by, quorum, votes, chain, silent, branch, base, tree } =
        &verified;
    let outcome = if *approved { "approved" } else { "not approved" };
    output.line(&format!("verified: decision {sequence}, {outcome}"))?;
    match change {
        Some(change) => output.line(&format!("  change       sha256 {change}"))?,
        None => output.line("  change       too few votes are in it to prove what it was decided on")?,
    }
    if let (Some(branch), Some(base), Some(tree)) = (branch, base, tree) {
        output.line(&escape::terminal(&format!("  branch       {branch}, on {base}")))?;
        output.line(&format!("  tree         {tree}"))?;
    }
    output.line(&format!("  repository   {chain}"))?;
    let names: Vec<&str> = signed_by.iter().map(String::as_str).collect();
    output.line(&escape::terminal(&format!("  signed by    {} (wanted {quorum})", names.join(", "))))?;
    for VotedFor { reviewer, model, opinion, .. } in votes {
        let said = match opinion {
            Opinion::Approve { confidence, .. } => format!("approves, {} % sure", confidence / 100),
            Opinion::Reject { reason, severity } => {
                format!("rejects ({severity}): {}", escape::excerpt(reason))
            }
            Opinion::Abstain { reason } => format!("abstains: {}", escape::excerpt(reason)),
        };
        output.line(&escape::terminal(&format!("  vote         {reviewer} ({model}) {said}")))?;
    }
    for reviewer in silent {
        output.line(&escape::terminal(&format!("  no vote      {reviewer}")))?;
    }
    // Records of version 0.1 do not say it.
    if votes.iter().any(|vote| vote.signed_model.is_some()) {
        let membership = Membership::new(*chain, roster.roster().clone())?;
        let bears = quorum_of_votes(&membership, votes);
        output.line(&escape::terminal(&format!("  quorum       {bears}")))?;
    }
    Ok(ExitCode::Success)
}

fn verify_run(which: &RunRef, output: &Output) -> anyhow::Result<ExitCode> {
    let dir = which.folder(&FileConfig::load_to_read()?)?;
    let journal = read(&dir.join(FILE_NAME))?;
    let state = RunState::replay(&journal.records)?;
    let result = RunResult::new(&state, journal.head);
    let stored = match files::read(&dir.join(RESULT_FILE), LARGE_BYTES_MAX) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(IntegrityError(format!("result.json cannot be read: {e}")).into()),
    };
    let has_ended = state.outcome().is_some();
    if stored.as_ref().is_some_and(|text| !is_result_of(text, &journal)) {
        let why =
            "result.json is not what the journal leads to; `consensus show --format json` prints what is";
        return Err(IntegrityError(why.to_owned()).into());
    }
    let session = session(&state, &journal, &dir)?;
    let count = |wanted: fn(&Entry) -> bool| journal.records.iter().filter(|r| wanted(&r.event)).count();
    let asked = count(|e| matches!(e, Entry::Asked(_)));
    let replied = count(|e| matches!(e, Entry::Replied(_)));
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
            "result_file": stored.is_some(),
            "session": session.as_ref().map(|(name, says)| json!({"name": name, "says": says})),
            "journal_head": journal.head,
            "not_covered": NOT_COVERED,
        }))?;
        return Ok(ExitCode::Success);
    }
    let outcome = if has_ended { result.outcome.name() } else { "open (no end on record)" };
    output.line(&format!("verified: run {}, {outcome}", escape::terminal(&result.run)))?;
    output.line(&format!("  chain        {} records, head {}", journal.records.len(), journal.head))?;
    output.line(&format!("  prompts      {asked} sent, each as the protocol issues it"))?;
    let leads = match state.verdict() {
        Some(_) => "they lead to this outcome",
        None => "they lead to no outcome yet; why the run was put down is the record's word",
    };
    output.line(&format!("  replies      {replied}; {leads}"))?;
    tell_details(output, &state, &journal, &dir)?;
    let file = if stored.is_some() { "matches" } else { "is not there" };
    output.line(&format!("  result.json  {file}"))?;
    if let Some((name, says)) = session {
        output.line(&format!("  session      {name}: {}", in_words(says)))?;
    }
    output.line(NOT_COVERED_IN_WORDS)?;
    Ok(ExitCode::Success)
}

/// Prints what a run has used and lost, and the digest of its text.
fn tell_details(output: &Output, state: &RunState, journal: &Journal, dir: &Path) -> anyhow::Result<()> {
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
            "  cancelled    {count} calls that could change nothing; what they used is not known"
        ))?;
    }
    if state.opened().redacted {
        output.line(if dir.join(REDACTIONS_FILE).exists() {
            "  redactions   what its tokens stand for is in redactions.json, which nothing here covers"
        } else {
            "  redactions   redactions.json is not there: what its tokens stand for is lost"
        })?;
    }
    if journal.torn_bytes > 0 {
        output.line(&format!("  torn line    {} bytes at the end do not count", journal.torn_bytes))?;
    }
    Ok(())
}

fn in_words(says: SessionSays) -> &'static str {
    match says {
        SessionSays::NoFile => "its file is not there, and was not compared",
        SessionSays::NoTable => {
            "is not contradicted; a table of redactions cannot be read, and what the run was given was not compared"
        }
        SessionSays::Nothing => {
            "held what the run was given; it has no line of the run, which `consensus resume` adds"
        }
        SessionSays::Earlier => "held what the run was given; its line is from before the run was resumed",
        SessionSays::Same => "held what the run was given, and says how the run has ended",
    }
}

/// Compares the run with its session, if it belongs to one: returns the session's name, and what it says of the run.
fn session(state: &RunState, journal: &Journal, dir: &Path) -> anyhow::Result<Option<(String, SessionSays)>> {
    let Some(place) = &state.opened().session else { return Ok(None) };
    let ends: Vec<&Outcome> = journal
        .records
        .iter()
        .filter_map(|record| match &record.event {
            Entry::Stopped { outcome } => Some(outcome),
            Entry::Opened(_)
            | Entry::Asked(_)
            | Entry::Replied(_)
            | Entry::Found(_)
            | Entry::Resumed { .. } => None,
        })
        .collect();
    let has_ended = state.outcome().is_some();
    let says = match Session::open(&folder_of_runs(dir), &place.name) {
        Ok(session) => session.says_of(state.run(), state.opened(), &ends, has_ended),
        Err(SessionError::Forgotten(_)) => Ok(SessionSays::NoFile),
        Err(why) => Err(why),
    };
    let says = says.map_err(|why| IntegrityError(why.to_string()))?;
    Ok(Some((place.name.clone(), says)))
}

/// Returns true if `stored` is the result of this run's end, or of an earlier stop after which the run
/// was taken up again: what the journal led to when its last line had the head that it names.
fn is_result_of(stored: &str, journal: &Journal) -> bool {
    let value: Value = serde_json::from_str(stored).unwrap_or_default();
    let head: Option<Digest> = value["journal_head"].as_str().and_then(|text| text.parse().ok());
    let Some(head) = head else { return false };
    // A record names the head of all records before it.
    let mut heads = journal.records.iter().skip(1).map(|record| record.prev).chain([journal.head]);
    let Some(count) = heads.position(|h| h == head).map(|index| index + 1) else { return false };
    let earlier = RunState::replay(&journal.records[..count]);
    earlier.is_ok_and(|state| state.outcome().is_some() && stored == RunResult::new(&state, head).to_json())
}
