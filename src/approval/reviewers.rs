//! The reviewers of a roleset: the check that they are those of the keys, the check of the rules by which they judge, and the
//! run in which they read a change.

use std::path::Path;

use super::error::ApprovalError;
use super::keys::KeyFolder;
use super::request::{ApprovalRequest, ReviewRequest};
use crate::config::{Chosen, FileConfig, PROJECT_FILE, Packs, Roleset, launch_command};
use crate::engine::{PreparedRun, RunBuilder};
use crate::repository::{Oid, Repository};
use crate::run::{
    NamedRoleset, Reporter, RunId, SERVER_LOG, check_prices, find_servers, launch, mock_script, read_named,
};
use protocol::core::MOCK;
use protocol::text::escape;
use protocol::{Document, Params, ProtocolParams, Task};

/// The default roleset of a review.
const ROLESET: &str = "reviewers_f1";

/// The task of the reviewers. The author's own words about a change are not part of it.
const TASK: &str = "Decide whether this change may be applied.";

/// Returns the task of reviewers who read this diff.
pub fn review_task(diff: &[u8]) -> Task {
    let text = String::from_utf8_lossy(diff).into();
    let document = Document { name: "change.diff".to_owned(), text, redacted: false };
    Task { prompt: TASK.to_owned(), documents: vec![document], is_searched: false }
}

/// The reviewers of a roleset.
pub(super) struct Reviewers {
    pub(super) name: String,
    pub(super) roleset: Roleset,
    packs: Packs,
}

impl Reviewers {
    /// Reads the reviewers of a roleset.
    pub(super) fn of(request: &ReviewRequest, file: &FileConfig) -> Result<Self, ApprovalError> {
        let named = request.roleset.as_deref().unwrap_or(ROLESET);
        let NamedRoleset { name, mut roleset, packs, .. } =
            read_named(Some(named), request.rolesets_dir.as_ref(), file)?;
        if !matches!(roleset.params, Params::Approval(_)) {
            let protocol = roleset.params.protocol();
            let why = format!(
                "`{name}` is a roleset of `{protocol}`, but a change is reviewed by one of `approval`"
            );
            return Err(ApprovalError::Usage(why));
        }
        for agent in &mut roleset.agents {
            agent.max_tokens = request.max_tokens.unwrap_or(agent.max_tokens);
        }
        Ok(Self { name, roleset, packs })
    }

    /// Reads the reviewers that the keys are for.
    pub(super) fn read(
        request: &ApprovalRequest,
        file: &FileConfig,
        keys: &KeyFolder,
    ) -> Result<Self, ApprovalError> {
        let mock = &request.review.mock;
        let is_scripted = mock.is_wanted || mock.script.is_some();
        if is_scripted && keys.roster().reviewers.iter().any(|seat| seat.domain != MOCK) {
            return Err(ApprovalError::Usage(
                "scripts would sign with real keys; make keys for a rehearsal with `consensus keys generate DIR --mock`".to_owned(),
            ));
        }
        let found = Self::of(&request.review, file)?;
        let seats: Vec<&str> = keys.roster().reviewers.iter().map(|seat| seat.name.as_str()).collect();
        let agents: Vec<&str> = found.roleset.agents.iter().map(|agent| agent.name.as_str()).collect();
        if seats != agents {
            let why = format!(
                "the reviewers of `{name}` are {}, but those of the keys are {}; make keys with --roleset {name}",
                agents.join(", "),
                seats.join(", "),
                name = found.name,
            );
            return Err(ApprovalError::Usage(why));
        }
        Ok(found)
    }

    /// Refuses rules that a change could have brought: files that git keeps in this very repository, and that differ from those
    /// of the base.
    pub(super) fn require_rules_of(
        &self,
        repository: &Repository,
        base: &Oid,
        request: &ApprovalRequest,
    ) -> Result<(), ApprovalError> {
        let rolesets = self.packs.folder().and_then(Path::parent).map(Path::to_owned);
        let places = [Some(PROJECT_FILE.into()), rolesets, Some(request.keys.clone()), request.peers.clone()];
        for place in places.into_iter().flatten() {
            if let Some(file) = repository.differing(&place, base)?.first() {
                let why = format!(
                    "`{file}` differs from the base {base}, and no change is decided on by its own rules; check out the base's version, \
                     or keep the file outside the repository"
                );
                return Err(ApprovalError::Usage(escape::terminal(&why)));
            }
        }
        Ok(())
    }

    /// Keeps the reviewer of this name alone.
    pub(super) fn only(mut self, name: &str) -> Self {
        self.roleset.agents.retain(|agent| agent.name == name);
        self
    }

    /// Makes the run in which they review a diff.
    pub(super) fn draft(
        &self,
        request: &ReviewRequest,
        diff: &[u8],
        id: RunId,
    ) -> Result<RunBuilder, ApprovalError> {
        let task = review_task(diff);
        let seed = request.seed.unwrap_or_else(|| id.seed());
        let builder = RunBuilder::new(self.roleset.setup(&self.name, &self.packs, task, seed));
        builder.map_err(|why| ApprovalError::Usage(format!("this change cannot be reviewed: {why}")))
    }

    /// Finds their models, and starts a server if one is to be started, with its log in `dir`.
    pub(super) async fn prepare(
        &self,
        request: &ReviewRequest,
        file: &FileConfig,
        builder: RunBuilder,
        dir: &Path,
        reporter: &dyn Reporter,
    ) -> Result<PreparedRun, ApprovalError> {
        let mock = &request.mock;
        let answer = mock.answer.as_deref().unwrap_or("approve");
        let script = mock_script(mock.script.as_deref(), mock.is_wanted.then_some(answer))?;
        let mut chosen = Chosen { mock_script: script, ..request.servers.clone() };
        let command = launch_command(&chosen, file, Some(&self.roleset))?;
        let server = launch(command.as_ref(), &mut chosen, file, &dir.join(SERVER_LOG), reporter).await?;
        let endpoints = find_servers(&chosen, file, &self.roleset, reporter).await?;
        check_prices(request.limits, &endpoints)?;
        Ok(builder.build(endpoints, request.limits).on_server(server))
    }
}
