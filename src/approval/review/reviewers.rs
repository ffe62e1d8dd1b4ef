//! The reviewers of a roleset: the check that they are those of the keys, the check of the rules by which they judge, and the
//! run in which they read a change.

use std::path::Path;

use crate::approval::error::ApprovalError;
use crate::approval::keys::KeyFolder;
use crate::approval::request::{ApprovalRequest, ReviewRequest};
use crate::config::{Chosen, FileConfig, PROJECT_FILE};
use crate::engine::{PreparedRun, RunBuilder};
use crate::repository::{Oid, Repository};
use crate::run::{
    NamedRoleset, Reporter, RolesetSettings, RunId, SERVER_LOG, check_prices, mock_script, open_endpoints,
    read_named, resolve,
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
pub(in crate::approval) struct Reviewers {
    pub(super) named: NamedRoleset,
}

impl Reviewers {
    /// Reads the reviewers of a roleset.
    pub(super) fn of(request: &ReviewRequest, file: &FileConfig) -> Result<Self, ApprovalError> {
        let name = request.roleset.as_deref().unwrap_or(ROLESET);
        let named = read_named(Some(name), request.settings.rolesets_dir.as_ref(), file)?;
        if !matches!(named.roleset.params, Params::Approval(_)) {
            let (name, protocol) = (&named.name, named.roleset.params.protocol());
            let why = format!(
                "`{name}` is a roleset of `{protocol}`, but a change is reviewed by one of `approval`"
            );
            return Err(ApprovalError::Usage(why));
        }
        Ok(Self { named: resolve(&named, &request.settings, file)? })
    }

    /// Reads the reviewers that the keys are for.
    pub(in crate::approval) fn read(
        request: &ApprovalRequest,
        file: &FileConfig,
        keys: &KeyFolder,
    ) -> Result<Self, ApprovalError> {
        let mock = &request.review.settings.mock;
        let is_scripted = mock.is_wanted || mock.script.is_some();
        if is_scripted && keys.roster().reviewers.iter().any(|seat| seat.domain != MOCK) {
            return Err(ApprovalError::Usage(
                "scripts would sign with real keys; make keys for a rehearsal with `consensus keys generate DIR --mock`".to_owned(),
            ));
        }
        let found = Self::of(&request.review, file)?;
        let seats: Vec<&str> = keys.roster().reviewers.iter().map(|seat| seat.name.as_str()).collect();
        let agents: Vec<&str> = found.named.roleset.agents.iter().map(|agent| agent.name.as_str()).collect();
        if seats != agents {
            let why = format!(
                "the reviewers of `{name}` are {}, but those of the keys are {}; make keys with --roleset {name}",
                agents.join(", "),
                seats.join(", "),
                name = found.named.name,
            );
            return Err(ApprovalError::Usage(why));
        }
        Ok(found)
    }

    /// Refuses rules that a change could have brought: files that git keeps in this very repository, and that differ from those
    /// of the base.
    pub(in crate::approval) fn require_rules_of(
        &self,
        repository: &Repository,
        base: &Oid,
        request: &ApprovalRequest,
    ) -> Result<(), ApprovalError> {
        let rolesets = self.named.packs.folder().and_then(Path::parent).map(Path::to_owned);
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

    /// Has each finding judged by the other reviewers as well.
    pub(super) fn confirming(mut self) -> Self {
        if let Params::Approval(params) = &mut self.named.roleset.params {
            params.confirm = true;
        }
        self
    }

    /// Keeps the reviewer of this name alone.
    pub(in crate::approval) fn only(mut self, name: &str) -> Self {
        self.named.roleset.agents.retain(|agent| agent.name == name);
        self
    }

    /// Makes the run in which they review a diff.
    pub(in crate::approval) fn draft(
        &self,
        request: &ReviewRequest,
        diff: &[u8],
        id: RunId,
    ) -> Result<RunBuilder, ApprovalError> {
        let task = review_task(diff);
        let seed = request.seed.unwrap_or_else(|| id.seed());
        let builder = RunBuilder::new(self.named.setup(task, seed));
        builder.map_err(|why| ApprovalError::Usage(format!("this change cannot be reviewed: {why}")))
    }

    /// Finds their models, and starts a server if one is to be started, with its log in `dir`.
    pub(in crate::approval) async fn prepare(
        &self,
        request: &ReviewRequest,
        file: &FileConfig,
        builder: RunBuilder,
        dir: &Path,
        reporter: &dyn Reporter,
    ) -> Result<PreparedRun, ApprovalError> {
        let RolesetSettings { mock, servers, limits, .. } = &request.settings;
        let answer = mock.answer.as_deref().unwrap_or("approve");
        let script = mock_script(mock.script.as_deref(), mock.is_wanted.then_some(answer))?;
        let mut chosen = Chosen { mock_script: script, ..servers.clone() };
        let log = dir.join(SERVER_LOG);
        let (server, endpoints) =
            open_endpoints(&mut chosen, file, &self.named.roleset, &log, reporter).await?;
        check_prices(*limits, &endpoints)?;
        Ok(builder.build(endpoints, *limits).on_server(server))
    }
}
