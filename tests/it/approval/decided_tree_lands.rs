//! Changes on real repositories: the tree that was decided on is the tree that lands, and nothing else changes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use consensus::repository::{Candidate, FileKind, Landing, LandingMark, Repository, RepositoryError};

use crate::support::{Folder, commit_all, git, git_bytes};

/// A repository with a few files on `main`, which is not checked out.
struct WorkRepository {
    folder: Folder,
}

impl WorkRepository {
    fn new() -> Self {
        let project = Self { folder: Folder::new() };
        project.git(&["init", "--quiet", "--initial-branch=main"]);
        project.write("a.txt", b"one\ntwo\nthree\n");
        project.write("crlf.txt", b"one\r\ntwo\r\n");
        project.write("gone.txt", b"it goes\n");
        project.write("data.bin", &[0, 1, 2, 255, 0, 7]);
        project.write("run.sh", b"#!/bin/sh\n");
        project.commit("first");
        project.git(&["checkout", "--quiet", "-b", "work"]);
        project
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn git(&self, words: &[&str]) -> String {
        git(self.path(), words)
    }

    fn commit(&self, message: &str) -> String {
        commit_all(self.path(), message);
        self.git(&["rev-parse", "HEAD"])
    }

    fn open(&self) -> Repository {
        Repository::open(self.path()).unwrap()
    }

    /// All references and the state of the work tree.
    fn state(&self) -> String {
        [self.git(&["for-each-ref"]), self.git(&["status", "--porcelain"]), self.git(&["rev-parse", "HEAD"])]
            .join("\n")
    }

    fn landing(&self, candidate: &Candidate) -> Landing {
        let to =
            self.open().commit(&candidate.base, &candidate.tree, "decided\n", 1_700_000_000, None).unwrap();
        Landing {
            branch: "refs/heads/main".to_owned(),
            from: candidate.base.clone(),
            to,
            with_checkout: false,
        }
    }
}

/// Changes of every kind that git knows, and a patch of them.
fn everything(project: &WorkRepository) -> (Vec<u8>, String) {
    project.write("a.txt", b"one\nTWO  \nthree\n");
    project.write("crlf.txt", b"one\r\nTWO\r\n");
    project.write("data.bin", &[0, 9, 9, 255, 0]);
    project.write("new/file with \"quotes\".txt", "caf\u{e9}\n".as_bytes());
    project.git(&["mv", "run.sh", "start.sh"]);
    project.git(&["rm", "--quiet", "gone.txt"]);
    let program = project.path().join("start.sh");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("a.txt", project.path().join("link")).unwrap();
    project.commit("everything");
    let patch = git_bytes(project.path(), &["diff", "--binary", "main", "work"]);
    (patch, project.git(&["rev-parse", "work^{tree}"]))
}

/// The settings of the repository make no difference, and its state stays as it was.
#[test]
fn patch_gives_tree_of_its_author() {
    let project = WorkRepository::new();
    let (patch, tree) = everything(&project);
    for setting in ["apply.whitespace=fix", "core.autocrlf=true", "diff.noprefix=true", "diff.renames=copies"]
    {
        let (key, value) = setting.split_once('=').unwrap();
        project.git(&["config", key, value]);
    }
    let before = project.state();
    let candidate = project.open().candidate_of_patch("main", &patch).unwrap();
    assert_eq!(candidate.tree.as_str(), tree);
    let merged = project.open().candidate_of_branch("main", "work").unwrap();
    assert_eq!(merged, candidate, "the branch is the same change, with the same diff");
    assert_eq!(project.state(), before, "and nothing has been touched");
    let files: Vec<(&str, u64, u64)> =
        candidate.files.iter().map(|file| (file.path.as_str(), file.added, file.removed)).collect();
    assert_eq!(
        files,
        [
            ("a.txt", 1, 1),
            ("crlf.txt", 1, 1),
            ("data.bin", 0, 0),
            ("gone.txt", 0, 1),
            ("link", 1, 0),
            ("new/file with \"quotes\".txt", 1, 0),
            ("run.sh", 0, 1),
            ("start.sh", 1, 0),
        ]
    );
    let of = |path: &str| candidate.files.iter().find(|file| file.path == path).unwrap();
    assert!(of("data.bin").is_binary && !of("a.txt").is_binary);
    for (path, before, after) in [
        ("a.txt", Some(FileKind::File), Some(FileKind::File)),
        ("gone.txt", Some(FileKind::File), None),
        ("link", None, Some(FileKind::Link)),
        ("start.sh", None, Some(FileKind::Program)),
    ] {
        assert_eq!((of(path).before, of(path).after), (before, after), "{path}");
    }
}

/// The diff that is read makes the tree that lands, and an export has the files of that tree.
#[test]
fn diff_of_candidate_gives_same_candidate() {
    let project = WorkRepository::new();
    let (patch, _) = everything(&project);
    let repository = project.open();
    let candidate = repository.candidate_of_patch("main", &patch).unwrap();
    let again = repository.candidate_of_patch("main", &candidate.diff).unwrap();
    assert_eq!(again, candidate);
    let folder = Folder::new();
    repository.export(&candidate.tree, folder.path()).unwrap();
    assert_eq!(std::fs::read(folder.path().join("crlf.txt")).unwrap(), b"one\r\nTWO\r\n");
    assert!(!folder.path().join("gone.txt").exists() && !folder.path().join(".git").exists());
    let mode = std::fs::metadata(folder.path().join("start.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
}

/// Paths into `.git`, submodules and empty patches are refused too.
#[test]
fn change_outside_repository_is_refused() {
    let project = WorkRepository::new();
    let repository = project.open();
    let adding = |path: &str, mode: &str| {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
        )
    };
    // The last two are `.git` on other systems.
    let elsewhere = [".g\u{200c}it/hooks/x", "git~1/config"];
    for path in ["../x", ".git/hooks/post-commit", ".GIT/config", "a/../../x"].into_iter().chain(elsewhere) {
        let refused = repository.candidate_of_patch("main", adding(path, "100644").as_bytes());
        assert!(matches!(refused, Err(RepositoryError::DoesNotApply { .. })), "{path}: {refused:?}");
    }
    let submodule = format!(
        "diff --git a/sub b/sub\nnew file mode 160000\nindex 0000000..1111111\n--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+Subproject commit {}\n",
        "1".repeat(40)
    );
    let refused = repository.candidate_of_patch("main", submodule.as_bytes());
    assert!(matches!(&refused, Err(RepositoryError::Submodule(path)) if path == "sub"), "{refused:?}");
    for (patch, why) in
        [("", "nothing"), ("no patch at all\n", "nothing to read"), (&adding("a.txt", "100644"), "there")]
    {
        assert!(repository.candidate_of_patch("main", patch.as_bytes()).is_err(), "{why}");
    }
    assert!(matches!(repository.candidate_of_branch("main", "main"), Err(RepositoryError::Nothing(_))));
    assert!(matches!(repository.candidate_of_patch("nowhere", b""), Err(RepositoryError::NoCommit(_))));
    assert!(matches!(repository.candidate_of_patch("--help", b""), Err(RepositoryError::NoCommit(_))));
    assert!(matches!(Repository::open(Path::new("/")), Err(RepositoryError::NotARepository(_))));
}

/// A branch that is only behind is merged, and what the base has done is no part of the change.
#[test]
fn conflicting_branch_is_refused() {
    let project = WorkRepository::new();
    project.write("b.txt", b"a new file\n");
    project.commit("work");
    project.git(&["checkout", "--quiet", "main"]);
    project.write("a.txt", b"one\n2\nthree\n");
    project.commit("main goes on");
    project.git(&["checkout", "--quiet", "work"]);
    let candidate = project.open().candidate_of_branch("main", "work").unwrap();
    assert_eq!(candidate.files.len(), 1, "what main has done is no part of the change");
    project.write("a.txt", b"one\nzwei\nthree\n");
    project.commit("conflict");
    let refused = project.open().candidate_of_branch("main", "work");
    assert!(matches!(refused, Err(RepositoryError::DoesNotApply { .. })), "{refused:?}");
}

/// A landing can be undone, and the repository is then as it was before.
#[test]
fn change_lands_once_as_same_commit() {
    let project = WorkRepository::new();
    let (patch, tree) = everything(&project);
    let repository = project.open();
    let candidate = repository.candidate_of_patch("main", &patch).unwrap();
    let (landing, mark) = (project.landing(&candidate), mark_of(1));
    assert_eq!(project.landing(&candidate), landing, "made again it is the same commit");
    let before = project.state();
    repository.land(&landing, &mark).unwrap();
    assert_eq!(project.git(&["rev-parse", "main^{tree}"]), tree);
    assert_eq!(repository.find_mark(&mark).unwrap(), Some(landing.to.clone()));
    let once = project.state();
    let twice = repository.land(&landing, &mark);
    assert!(matches!(&twice, Err(RepositoryError::Stale { found, .. }) if *found == landing.to), "{twice:?}");
    assert_eq!(project.state(), once);
    repository.undo(&landing, &mark).unwrap();
    assert_eq!(project.state(), before, "bit for bit");
    assert_eq!(repository.find_mark(&mark).unwrap(), None);
    project.git(&["fsck", "--strict"]);
}

#[test]
fn moved_branch_is_left_alone() {
    let project = WorkRepository::new();
    let (patch, _) = everything(&project);
    let repository = project.open();
    let candidate = repository.candidate_of_patch("main", &patch).unwrap();
    let landing = project.landing(&candidate);
    project.git(&["branch", "--force", "main", "work"]);
    let before = project.state();
    let refused = repository.land(&landing, &mark_of(1));
    assert!(matches!(refused, Err(RepositoryError::Stale { .. })), "{refused:?}");
    assert!(matches!(repository.undo(&landing, &mark_of(1)), Err(RepositoryError::Stale { .. })));
    assert_eq!(project.state(), before, "no mark without a move");
}

/// A landing that was cut short is completed, and one that never began stays undone.
#[test]
fn interrupted_landing_is_settled() {
    let project = WorkRepository::new();
    let (patch, _) = everything(&project);
    let repository = project.open();
    let candidate = repository.candidate_of_patch("main", &patch).unwrap();
    let (landing, mark) = (project.landing(&candidate), mark_of(1));
    let (from, to, mark_name) = (landing.from.as_str(), landing.to.as_str(), "refs/consensus/a-ledger/1");
    let before = project.state();
    assert!(!repository.settle(&landing, &mark).unwrap());
    assert_eq!(project.state(), before, "what was not begun is not done");
    repository.land(&landing, &mark).unwrap();
    let after = project.state();
    for halfway in [["update-ref", "refs/heads/main", from], ["update-ref", "-d", mark_name]] {
        project.git(&halfway);
        // A git that was killed before it moved the branch has not written of it either.
        project.git(&["reflog", "expire", "--expire=all", "refs/heads/main"]);
        assert_ne!(project.state(), after);
        assert!(repository.settle(&landing, &mark).unwrap());
        assert_eq!(project.state(), after, "{halfway:?}");
    }
    // Its owner has moved it back: what has landed does not land again.
    project.git(&["update-ref", "--create-reflog", "refs/heads/main", from]);
    project.git(&["update-ref", "refs/heads/main", to]);
    project.git(&["update-ref", "refs/heads/main", from]);
    assert!(repository.settle(&landing, &mark).unwrap());
    assert_eq!(project.git(&["rev-parse", "main"]), from);
    project.git(&["update-ref", "refs/heads/main", to]);
    // Others have built on it.
    let next = project.git(&["commit-tree", &format!("{to}^{{tree}}"), "-p", to, "-m", "next"]);
    project.git(&["update-ref", "refs/heads/main", &next]);
    assert!(repository.settle(&landing, &mark).unwrap());
    assert_eq!(project.git(&["rev-parse", "main"]), next);
    // Or it was thrown away.
    project.git(&["update-ref", "refs/heads/main", "work"]);
    assert!(matches!(repository.settle(&landing, &mark), Err(RepositoryError::Stale { .. })));
}

#[test]
fn existing_mark_stops_branch_too() {
    let project = WorkRepository::new();
    let (patch, _) = everything(&project);
    let repository = project.open();
    let candidate = repository.candidate_of_patch("main", &patch).unwrap();
    project.git(&["update-ref", "refs/consensus/a-ledger/1", "work"]);
    let before = project.state();
    assert!(repository.land(&project.landing(&candidate), &mark_of(1)).is_err());
    assert_eq!(project.state(), before);
}

#[test]
fn checked_out_branch_is_not_moved() {
    let project = WorkRepository::new();
    let (patch, _) = everything(&project);
    let repository = project.open();
    let candidate = repository.candidate_of_patch("main", &patch).unwrap();
    let landing = project.landing(&candidate);
    let other = Folder::new();
    let place = other.path().join("linked");
    project.git(&["worktree", "add", "--quiet", &place.to_string_lossy(), "main"]);
    let refused = repository.land(&landing, &mark_of(1));
    assert!(
        matches!(&refused, Err(RepositoryError::CheckedOut { place, .. }) if place.ends_with("linked")),
        "{refused:?}"
    );
    // The same repository, opened from there.
    assert!(Repository::open(&place).unwrap().land(&landing, &mark_of(1)).is_err());
    project.git(&["worktree", "remove", "--force", &place.to_string_lossy()]);
    project.git(&["checkout", "--quiet", "main"]);
    assert!(matches!(repository.land(&landing, &mark_of(1)), Err(RepositoryError::CheckedOut { .. })));
}

#[test]
fn leftover_lock_is_named_and_kept() {
    let project = WorkRepository::new();
    let (patch, _) = everything(&project);
    let repository = project.open();
    let candidate = repository.candidate_of_patch("main", &patch).unwrap();
    let lock = project.path().join(".git/refs/heads/main.lock");
    std::fs::write(&lock, "").unwrap();
    let refused = repository.land(&project.landing(&candidate), &mark_of(1));
    assert!(
        matches!(&refused, Err(RepositoryError::Locked(found)) if found.ends_with("main.lock")),
        "{refused:?}"
    );
    assert!(lock.exists());
}

fn mark_of(sequence: u64) -> LandingMark {
    LandingMark::new("a-ledger", sequence)
}

/// Exported files are those of the tree.
#[test]
fn repository_filter_is_never_run() {
    let project = WorkRepository::new();
    project.write(".gitattributes", b"*.txt filter=one\n*.sh filter=a.b=c\n");
    project.commit("attributes");
    let run = |name: &str| format!("sh -c 'echo {name} >> {}/ran; tr a-z A-Z'", project.path().display());
    for (key, name) in
        [("filter.one.smudge", "smudge"), ("filter.one.clean", "clean"), ("filter.a.b=c.smudge", "named")]
    {
        project.git(&["config", key, &run(name)]);
    }
    project.git(&["config", "filter.one.required", "true"]);
    let repository = project.open();
    let tree = repository.candidate_of_branch("main", "work").unwrap().tree;
    let folder = Folder::new();
    repository.export(&tree, folder.path()).unwrap();
    assert_eq!(std::fs::read(folder.path().join("a.txt")).unwrap(), b"one\ntwo\nthree\n");
    assert!(!project.path().join("ran").exists(), "a filter was run");
}

/// Sets every key of git-config(1) that names a command, some that change a tree, hooks and attributes.
fn set_every_command(project: &WorkRepository, command: &str) {
    let keys = "core.fsmonitor core.pager core.editor core.sshCommand core.askPass core.gitProxy core.alternateRefsCommand \
        diff.external diff.x.command diff.x.textconv difftool.x.cmd filter.x.clean filter.x.smudge filter.x.process \
        merge.x.driver mergetool.x.cmd gpg.program gpg.ssh.program gpg.ssh.defaultKeyCommand credential.helper \
        interactive.diffFilter pager.diff pager.log sequence.editor trailer.x.command trailer.x.cmd \
        uploadpack.packObjectsHook remote.origin.uploadpack remote.origin.receivepack remote.origin.vcs browser.x.cmd \
        sendemail.sendmailCmd web.browser hook.x.command man.x.cmd guitool.x.cmd init.templateDir";
    let more = [
        ("core.attributesFile", project.path().join("attributes").display().to_string()),
        ("core.hooksPath", project.path().join("hooks").display().to_string()),
        ("core.worktree", "/".to_owned()),
        ("diff.renames", "copies".to_owned()),
        ("diff.algorithm", "histogram".to_owned()),
        ("diff.noprefix", "true".to_owned()),
        ("merge.default", "x".to_owned()),
        ("merge.directoryRenames", "true".to_owned()),
        ("merge.renames", "false".to_owned()),
        ("log.showSignature", "true".to_owned()),
        ("remote.origin.promisor", "true".to_owned()),
        ("remote.origin.url", format!("ext::sh -c '{command}'")),
        ("protocol.ext.allow", "always".to_owned()),
        ("extensions.partialClone", "origin".to_owned()),
    ];
    let set = |file: &Path, key: &str, value: &str| {
        git(Path::new("/"), &["config", "--file", file.to_str().unwrap(), key, value])
    };
    let (config, included) = (project.path().join(".git/config"), project.path().join("included"));
    for file in [&config, &included] {
        for key in keys.split_whitespace() {
            set(file, key, command);
        }
        for (key, value) in &more {
            set(file, key, value);
        }
    }
    set(&config, "include.path", included.to_str().unwrap());
    for hooks in [".git/hooks", "hooks"] {
        for name in
            ["reference-transaction", "post-checkout", "post-index-change", "pre-commit", "post-merge"]
        {
            let hook = project.path().join(hooks).join(name);
            project.write(&format!("{hooks}/{name}"), format!("#!/bin/sh\n{command}\n").as_bytes());
            std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    for name in ["attributes", ".git/info/attributes"] {
        project.write(name, b"* merge=x diff=x filter=x\n");
    }
}

/// No key of git-config(1) that names a command runs one or changes the tree, in a repository of any owner.
#[test]
fn repository_settings_run_nothing() {
    let project = WorkRepository::new();
    project.write("b.txt", b"1\n2\n3\n4\n5\n6\n7\n8\n");
    project.write("old/a", b"the same file, which is long enough to be found again\n");
    project.commit("before");
    project.git(&["branch", "--force", "main"]);
    project.write("b.txt", b"1\n2\n3\n4\n5\n6\n7\nx\n");
    project.write("old/new", b"new\n");
    project.commit("ours");
    project.git(&["checkout", "--quiet", "-b", "theirs", "main"]);
    project.write("b.txt", b"y\n2\n3\n4\n5\n6\n7\n8\n");
    project.git(&["mv", "old", "moved"]);
    project.commit("theirs");
    let patch = git_bytes(project.path(), &["diff-tree", "-p", "main", "work"]);
    let decide = || {
        let (repository, folder) = (project.open(), Folder::new());
        let main = repository.commit_of("main").unwrap();
        let merged = repository.candidate_of_branch("theirs", "work").map_err(|why| why.to_string());
        let patched = repository.candidate_of_patch("main", &patch).unwrap();
        repository.export(&patched.tree, folder.path()).unwrap();
        let author = repository.read_authorship(&main, "work").unwrap();
        (merged, patched, author, repository.differing(&project.path().join("b.txt"), &main).unwrap())
    };
    let before = decide();
    assert_eq!(before.3, ["b.txt"], "the work tree is at another commit");
    let ran = project.path().join("ran");
    set_every_command(&project, &format!("touch {}; false", ran.display()));
    assert_eq!(decide(), before);
    let repository = project.open();
    let candidate = repository.candidate_of_branch("main", "theirs").unwrap();
    repository.land(&project.landing(&candidate), &mark_of(1)).unwrap();
    repository.undo(&project.landing(&candidate), &mark_of(1)).unwrap();
    assert!(!ran.exists(), "a command was run");
}
