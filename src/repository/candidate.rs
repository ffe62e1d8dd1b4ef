//! A change on a base: the tree that it makes, and the diff that reviewers read.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::RepositoryError;
use super::git::{GitCall, Repository};
use super::oid::Oid;
use super::substitute::scratch;
use crypto::Digest;

/// A change on a base.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// The commit that it changes.
    pub base: Oid,
    /// The tree that the change makes.
    pub tree: Oid,
    /// The difference between the two in git's form, always the same for the same two: whole names of objects, binary files as
    /// text, a renamed file as a removed one and an added one.
    pub diff: Vec<u8>,
    /// The files that differ, by name.
    pub files: Vec<FileChange>,
}

/// One file that differs.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileChange {
    /// The path of the file.
    pub path: String,
    /// The number of added lines; 0 for a binary file.
    pub added: u64,
    /// The number of removed lines.
    pub removed: u64,
    /// Whether git takes the file for binary.
    pub is_binary: bool,
    /// The kind of the file before the change; `None` if it is new.
    pub before: Option<FileKind>,
    /// The kind of the file after the change; `None` if it is removed.
    pub after: Option<FileKind>,
}

/// The kind of an entry of a tree.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    File,
    /// A file that can be run.
    Program,
    /// A symbolic link, which is followed when it is read.
    Link,
}

impl Candidate {
    /// Returns the SHA-256 of the diff.
    pub fn digest(&self) -> Digest {
        Digest::new(&self.diff)
    }
}

impl Repository {
    /// Puts a patch, as `git diff` writes it, on a base. Nothing is checked out, and the repository only gets objects that no
    /// reference names.
    ///
    /// Returns [`RepositoryError`] if the change does not apply, changes nothing, or has content that cannot be judged by reading.
    pub fn candidate_of_patch(&self, base: &str, patch: &[u8]) -> Result<Candidate, RepositoryError> {
        let base = self.commit_of(base)?;
        let tree = self.apply(&base, patch)?;
        self.compare(base, tree)
    }

    /// Puts the work of a branch since it left the base on that base, and merges it if the base has moved on. Otherwise this is
    /// like [`Repository::candidate_of_patch`].
    pub fn candidate_of_branch(&self, base: &str, branch: &str) -> Result<Candidate, RepositoryError> {
        let base = self.commit_of(base)?;
        let tree = self.merge(&base, branch)?;
        self.compare(base, tree)
    }

    fn compare(&self, base: Oid, tree: Oid) -> Result<Candidate, RepositoryError> {
        let words = ["diff-tree", "-r", "--no-renames", "--raw", "--no-abbrev", "--numstat", "-z"];
        let listed = [&words[..], &[base.as_str(), tree.as_str()]].concat();
        let out = self.must(&GitCall::new(&listed))?;
        let files = read_files(&out, &listed.join(" "))?;
        if files.is_empty() {
            return Err(RepositoryError::Nothing(base));
        }
        // All content is shown as text: git shows no content of a file that it takes for binary, or that an attribute calls so.
        let words = ["diff-tree", "-p", "-r", "--no-renames", "--text", "--full-index", "--unified=3"];
        let plain = ["--no-color", "--no-ext-diff", "--no-textconv", "--diff-algorithm=myers"];
        let prefixes = ["--src-prefix=a/", "--dst-prefix=b/", base.as_str(), tree.as_str()];
        // Without an index, git takes no attributes from files that happen to be checked out.
        let words = [&words[..], &plain, &prefixes].concat();
        let diff =
            self.must(&GitCall { index: Some(Path::new("/nonexistent/index")), ..GitCall::new(&words) })?;
        Ok(Candidate { base, tree, diff, files })
    }

    fn apply(&self, base: &Oid, patch: &[u8]) -> Result<Oid, RepositoryError> {
        self.with_index(|index| {
            self.must(&GitCall { index: Some(index), ..GitCall::new(&["read-tree", base.as_str()]) })?;
            let words = ["apply", "--cached", "--whitespace=nowarn", "-"];
            let output = self.ask(&GitCall { index: Some(index), input: patch, ..GitCall::new(&words) })?;
            if !output.has_succeeded {
                return Err(RepositoryError::DoesNotApply { base: base.clone(), said: output.err });
            }
            self.oid(&GitCall { index: Some(index), ..GitCall::new(&["write-tree"]) })
        })
    }

    fn merge(&self, base: &Oid, branch: &str) -> Result<Oid, RepositoryError> {
        let branch = self.commit_of(branch)?;
        let words = ["merge-tree", "--write-tree", "--no-messages", base.as_str(), branch.as_str()];
        let output = self.ask(&GitCall::new(&words))?;
        let out = String::from_utf8_lossy(&output.out).into_owned();
        let first = out.lines().next().unwrap_or_default();
        match Oid::read(first) {
            Some(tree) if output.has_succeeded => Ok(tree),
            Some(_) | None => Err(RepositoryError::DoesNotApply {
                base: base.clone(),
                said: format!("{branch} conflicts with it {}", output.err).trim_end().to_owned(),
            }),
        }
    }

    /// Lends `act` an index of its own, in a private folder.
    fn with_index<T>(
        &self,
        act: impl FnOnce(&Path) -> Result<T, RepositoryError>,
    ) -> Result<T, RepositoryError> {
        let scratch = scratch(&self.folder, "index");
        let scratch = scratch.map_err(|why| RepositoryError::File(self.folder.clone(), why))?;
        act(&scratch.path().join("index"))
    }

    /// Writes the files of a tree into an empty folder, for a program that is to look at them. There is no repository in it.
    ///
    /// Returns [`RepositoryError`] if git cannot write them.
    pub fn export(&self, tree: &Oid, folder: &Path) -> Result<(), RepositoryError> {
        let prefix = format!("--prefix={}/", folder.display());
        self.with_index(|index| {
            self.must(&GitCall { index: Some(index), ..GitCall::new(&["read-tree", tree.as_str()]) })?;
            let place = [("GIT_WORK_TREE", folder.as_os_str())];
            let words = ["checkout-index", "--all", "--force", &prefix];
            self.must(&GitCall { index: Some(index), env: &place, ..GitCall::new(&words) })?;
            Ok(())
        })
    }
}

/// Reads the two lists that `diff-tree --raw --numstat -z` writes one after the other.
fn read_files(out: &[u8], command: &str) -> Result<Vec<FileChange>, RepositoryError> {
    let mut fields = out.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let mut files: Vec<FileChange> = Vec::new();
    while let Some(field) = fields.next() {
        let text = std::str::from_utf8(field)
            .map_err(|_| RepositoryError::Name(String::from_utf8_lossy(field).into_owned()))?;
        if let Some(raw) = text.strip_prefix(':') {
            let parts: Vec<&str> = raw.split(' ').collect();
            let ([old, new, _, _, _], Some(path)) = (&parts[..], fields.next()) else {
                return Err(unknown_answer(command, text));
            };
            let path = String::from_utf8(path.to_vec())
                .map_err(|e| RepositoryError::Name(String::from_utf8_lossy(e.as_bytes()).into_owned()))?;
            let mut kinds = [None; 2];
            for (kind, mode) in kinds.iter_mut().zip([old, new]) {
                *kind = match *mode {
                    "000000" => None,
                    "100644" | "100664" => Some(FileKind::File),
                    "100755" => Some(FileKind::Program),
                    "120000" => Some(FileKind::Link),
                    "160000" => return Err(RepositoryError::Submodule(path)),
                    _ => return Err(unknown_answer(command, text)),
                };
            }
            let [before, after] = kinds;
            files.push(FileChange { path, added: 0, removed: 0, is_binary: false, before, after });
            continue;
        }
        let mut parts = text.splitn(3, '\t');
        let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(unknown_answer(command, text));
        };
        let file =
            files.iter_mut().find(|file| file.path == path).ok_or_else(|| unknown_answer(command, text))?;
        file.is_binary = added == "-";
        if !file.is_binary {
            file.added = added.parse().map_err(|_| unknown_answer(command, text))?;
            file.removed = removed.parse().map_err(|_| unknown_answer(command, text))?;
        }
    }
    Ok(files)
}

fn unknown_answer(command: &str, said: &str) -> RepositoryError {
    RepositoryError::Strange { command: command.to_owned(), said: said.to_owned() }
}
