//! `approve` in one process is killed, and the same command is given until the change has landed.
//!
//! In: a repository with a change, and keys. Out: one commit with the tree of the change, one mark, a clean repository, a record
//! that verifies, and nothing of the change in the temp folder. Every review verifies that was begun.

use std::process::{Command, Stdio};

use super::{CountingServer, ProcessLife, Started, asked, is_emptied, killed, records, temp};
use crate::honest::honest;
use crate::support::{Finished, Project, consensus};
use crate::sweep::{KILLED_APPROVALS, sweep};

/// A repository and its server.
struct ApprovalCase {
    project: Project,
    base: String,
    server: CountingServer,
}

impl ApprovalCase {
    fn new() -> Self {
        let project = Project::new();
        let base = project.main();
        Self { project, base, server: CountingServer::new(honest) }
    }

    fn command(&self) -> Command {
        let mut command = consensus(&self.project.folder);
        command.args([
            "approve",
            "--repo",
            "repo",
            "--keys",
            "keys",
            "--change",
            "fix",
            "--verify",
            "test -f sum.py",
        ]);
        command.args([
            "--model",
            "tiny-model",
            "--base-url",
            &self.server.server.url(),
            "-o",
            "proof.json",
            "--quiet",
        ]);
        command.env("TMPDIR", temp(&self.project.folder)).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Asserts that the change has landed once, and that everything about it verifies.
    fn has_landed(&self, label: &str) {
        let Self { project, base, server } = self;
        let tree = |name: &str| project.git(&["rev-parse", &format!("{name}^{{tree}}")]);
        assert_eq!(project.git(&["rev-list", "--count", &format!("{base}..main")]), "1", "{label}");
        assert_eq!(tree("main"), tree("fix"), "{label}");
        let marks = project.git(&["for-each-ref", "--format=%(refname)", "refs/consensus"]);
        assert_eq!(marks.lines().count(), 1, "{label}: {marks}");
        project.is_clean();
        let verify = ["verify", "proof.json", "--keys", "keys"];
        Finished::of(consensus(&project.folder).args(verify)).exits(0);
        let mut on_record = 0;
        for run in std::fs::read_dir(project.folder.path().join("runs")).unwrap() {
            let run = run.unwrap();
            let records = records(&run.path().join("journal.jsonl"));
            on_record += asked(&records);
            if !records.is_empty() {
                Finished::of(consensus(&project.folder).arg("verify").arg(run.file_name())).exits(0);
            }
        }
        let chats = server.chats();
        assert!(chats <= on_record, "{label}: {chats} requests, and {on_record} on record");
        is_emptied(&project.folder);
        let entries = std::fs::read_dir(project.path().join(".git")).unwrap();
        let left = entries
            .map(|entry| entry.unwrap().file_name())
            .find(|name| name.to_string_lossy().contains("consensus-"));
        assert_eq!(left, None, "{label}");
    }
}

/// The same command brings the change to its end after one kill or two.
#[test]
fn killed_approval_lands_once_when_repeated() {
    let whole = ApprovalCase::new();
    let life = ProcessLife::of(&mut Started::by(&mut whole.command()), &whole.server);
    whole.has_landed("undisturbed");
    let ends = sweep("kills, approvals", KILLED_APPROVALS.of(usize::MAX), 2, |_, draw| {
        let case = ApprovalCase::new();
        let moment = life.moment(draw);
        let is_killed = killed(&mut Started::by(&mut case.command()), &case.server, moment);
        let mut end = if is_killed { "landed" } else { "had ended" };
        if draw.u8(..4) == 0 && killed(&mut Started::by(&mut case.command()), &case.server, life.moment(draw))
        {
            end = "landed after a second kill";
        }
        Finished::of(case.command().stdout(Stdio::piped()).stderr(Stdio::piped())).exits(0);
        case.has_landed(&format!("killed at {moment:?}"));
        end
    });
    assert!(ends.contains_key("landed"), "{ends:?}");
}
