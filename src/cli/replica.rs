//! `consensus approve --replica NAME`: one reviewer in a process of its own.
//!
//! It has its own copy of the repository, its own key, its own model, and trusts nobody's word: it makes the tree from the
//! diff itself, runs its own command on it, and votes on what it has seen.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use serde_json::json;
use tokio::sync::watch;
use uuid::Uuid;

use super::approve::{Place, verified};
use super::approve_args::ApproveArgs;
use super::desk::write_public;
use super::error::UsageError;
use super::output::{Format, Output};
use super::reading::{Reviewed, Reviewers, begun, review};
use super::{ExitCode, settings, signals};
use crate::config::FileConfig;
use crate::crypto::Signature;
use crate::decision::{Checked, Proposal};
use crate::engine::StopRequest;
use crate::peer::{Connections, Patience, Peer, Reviewer, listen};
use crate::protocol::Section;
use crate::protocol::approval::member::Want;
use crate::protocol::approval::{
    Change, Letter, Opinion, Party, Post, Registry, Sequence, Severity, Signed, Value,
};
use crate::report::write_whole;
use crate::repository::{Repository, RepositoryError, Source};
use crate::text::quote;

/// The longest words about a review that has failed.
const REASON_CHARS_MAX: usize = 1000;

/// A reviewer with what it needs to review.
struct Desk<'a> {
    args: &'a ApproveArgs,
    file: FileConfig,
    repository: Repository,
    branch: String,
    reviewers: Reviewers,
    runs: PathBuf,
    /// Where its log is.
    folder: PathBuf,
    stop: watch::Receiver<StopRequest>,
    output: &'a Output,
}

pub(super) async fn serve(name: &str, args: &ApproveArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let mut stop = signals::listen()?;
    let file = FileConfig::load()?;
    let Place { repository, branch, keys, registry, addresses } = Place::open(args)?;
    let addresses = addresses.context("--replica needs --peers")?;
    let (key, me, seal, folder) = keys.apart_as(name, &registry)?;
    if !matches!(me, Party::Reviewer(_)) {
        let why = format!("`{name}` proposes and has no vote: leave --replica away, and give a --change");
        return Err(UsageError(why).into());
    }
    let reviewers = Reviewers::of(args, &file, &keys)?.only(name);
    let mut peer = Peer::open(&folder, &registry, (me, seal))?;
    let address = args.listen.as_deref().map_or_else(|| addresses.of(name), Ok)?;
    let (mut inbox, local) = listen(address, &key, &registry).await?;
    let connections = Connections::open(&key, me, &registry, &addresses)?;
    let known = peer.known();
    output.tell(&format!("{name}: heard at {local}; decisions known: {known}"));
    let runs = settings::runs_dir(args.runs_dir.as_ref(), &file);
    let desk = Desk {
        args,
        file,
        repository,
        branch,
        reviewers,
        runs,
        folder: folder.clone(),
        stop: stop.clone(),
        output,
    };
    let patience = Patience { review: args.review_timeout, ..Patience::default() };
    let mut failure = None;
    let tell = |want: &Want<Signature>| match told(want, &registry, &folder, output) {
        Ok(()) => ControlFlow::Continue(()),
        Err(why) => {
            failure = Some(why);
            ControlFlow::Break(())
        }
    };
    tokio::select! {
        ended = peer.run(&mut inbox, &connections, &desk, patience, tell) => ended?,
        _ = stop.changed() => {}
        () = settings::deadline(&args.limits, began) => {}
    }
    match failure {
        Some(why) => Err(why),
        None => Ok(ExitCode::Success),
    }
}

/// Says what becomes of decisions, and keeps what proves a fraud.
fn told(want: &Want<Signature>, registry: &Registry, folder: &Path, output: &Output) -> anyhow::Result<()> {
    match want {
        Want::Decide(sequence, proof) => {
            let value = proof.check(registry.quorum()).map(|proven| proven.value);
            let outcome = match value {
                Some(Value::Change(digest)) => format!("approved: {digest}"),
                Some(Value::Nothing) | None => "not approved".to_owned(),
            };
            output.tell(&format!("decision {sequence}: {outcome}"));
            if output.format != Format::Text {
                output.json(&json!({"sequence": sequence, "value": value}))?;
            }
        }
        Want::Accuse(pair) => {
            let (first, second) = &**pair;
            let post =
                |signed: &Signed<Signature>| registry.write(&Post::Letter(Letter::alone(signed.clone())));
            let posts = [post(first), post(second)];
            let text = format!("[{},\n {}]\n", posts[0], posts[1]);
            let path = folder.join(format!("accusation-{}-{}.json", first.sequence, first.by));
            write_public(&path, &text)?;
            output.insist(&format!(
                "decision {}: somebody has signed two things of which an honest one signs one; both are in {}",
                first.sequence,
                path.display()
            ));
        }
        Want::Send(..)
        | Want::Review(..)
        | Want::Wait(..)
        | Want::Tell(..)
        | Want::Return(..)
        | Want::Late(..)
        | Want::Recall(..)
        | Want::Stable(..) => {}
    }
    Ok(())
}

impl Reviewer for Desk<'_> {
    async fn review(&self, sequence: Sequence, change: &Change) -> Opinion {
        let opinion = self.opinion(change).await.unwrap_or_else(|why| {
            // Whoever cannot review says so, and nobody waits for it.
            let reason = format!("the review has failed: {why:#}").chars().take(REASON_CHARS_MAX).collect();
            Opinion::Abstain { reason }
        });
        let said = match &opinion {
            Opinion::Approve { .. } => "approved of".to_owned(),
            Opinion::Reject { reason, severity } => format!("rejected ({severity}): {reason}"),
            Opinion::Abstain { reason } => format!("abstained from: {reason}"),
        };
        self.output.tell(&quote::terminal(&format!("decision {sequence}: {said}")));
        opinion
    }
}

impl Desk<'_> {
    async fn opinion(&self, change: &Change) -> anyhow::Result<Opinion> {
        let reject = |reason: String, severity| Ok(Opinion::Reject { reason, severity });
        let proposal = match Proposal::read(change.text()) {
            Ok(proposal) => proposal,
            Err(why) => return reject(format!("it is no proposal: {why}"), Severity::Critical),
        };
        if proposal.branch != self.branch {
            let reason =
                format!("it is for `{}`, and this one reviews for `{}`", proposal.branch, self.branch);
            return Ok(Opinion::Abstain { reason });
        }
        // What would land is made here, of what is read here.
        let source = Source::Patch(proposal.diff.as_bytes());
        let candidate = match self.repository.candidate(proposal.base.as_str(), source) {
            Ok(candidate) => candidate,
            Err(RepositoryError::NoCommit(_)) => {
                let reason = format!("its base {} is not in this copy of the repository", proposal.base);
                return Ok(Opinion::Abstain { reason });
            }
            Err(why @ (RepositoryError::DoesNotApply { .. } | RepositoryError::Nothing(_))) => {
                return reject(why.to_string(), Severity::Critical);
            }
            Err(why) => return Err(why.into()),
        };
        if candidate.tree != proposal.tree || candidate.diff != proposal.diff.as_bytes() {
            let reason = "its diff is not what leads to its tree".to_owned();
            return reject(reason, Severity::Critical);
        }
        if !proposal.facts.are_of(&candidate, &self.repository, proposal.verification.is_some())? {
            return reject("what it says of itself is not so".to_owned(), Severity::Critical);
        }
        self.reviewers.are_of(&self.repository, &candidate.base, self.args)?;
        let setup = self.reviewers.setup(self.args, &candidate.diff)?;
        // A review that was begun before this process was killed is gone on with, in its own run.
        let note = self.folder.join(format!("review-{}", change.digest()));
        let noted = std::fs::read_to_string(&note).ok().and_then(|id| id.trim().parse().ok());
        let earlier = noted.and_then(|id: Uuid| Some((id, begun(&self.runs.join(id.to_string()), &setup)?)));
        let (id, earlier) = earlier.map_or_else(|| (Uuid::now_v7(), None), |(id, run)| (id, Some(run)));
        let dir = self.runs.join(id.to_string());
        write_whole(&note, &format!("{id}\n"), 0o600).context("cannot note which run reviews it")?;
        let checked = verified(self.args, &self.repository, &candidate.tree, &dir, self.output).await?;
        if let Some(Checked::Failed { how, .. }) = checked {
            return reject(format!("the command of this reviewer fails on it: {how}"), Severity::High);
        }
        let opened = self.reviewers.opened(self.args, &self.file, setup, &dir, self.output).await?;
        let Reviewed { result, .. } =
            review(opened, earlier, &dir, &id, Instant::now(), self.stop.clone(), self.output).await?;
        let Section::Approval(section) = result.section else {
            anyhow::bail!("the run is no review");
        };
        let is_whole = matches!(result.outcome, "agreed" | "no_agreement" | "vetoed");
        let review = section.reviews.into_iter().next().filter(|_| is_whole);
        let reason = result.reason.unwrap_or_else(|| result.outcome.to_owned());
        review.map(|review| review.opinion).with_context(|| reason)
    }
}
