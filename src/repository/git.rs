//! Runs git, always in the same way.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::RepositoryError;
use super::oid::Oid;
use super::substitute::{GitPlace, SubstituteFolder};
use crypto::Digest;

/// The settings in place of all that a user, a system or a repository has set and that would change a tree, run something or
/// wait for a person.
const SETTINGS: [&str; 12] = [
    "apply.ignoreWhitespace=no",
    "apply.whitespace=nowarn",
    "core.autocrlf=false",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    // A name that other systems take for `.git` is refused here too.
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.quotePath=false",
    "commit.gpgSign=false",
    "diff.external=",
    "gc.auto=0",
    "maintenance.auto=false",
];

#[derive(Clone, Debug)]
pub struct Repository {
    /// The `.git` folder of the repository.
    pub(super) folder: PathBuf,
}

/// A call of git.
pub(super) struct GitCall<'a> {
    pub(super) words: &'a [&'a str],
    pub(super) input: &'a [u8],
    /// An index other than the repository's own.
    pub(super) index: Option<&'a Path>,
    pub(super) env: &'a [(&'a str, &'a OsStr)],
}

impl<'a> GitCall<'a> {
    pub(super) fn new(words: &'a [&'a str]) -> Self {
        Self { words, input: &[], index: None, env: &[] }
    }
}

/// The output of git: whether it has succeeded, and its two streams.
pub(super) struct GitOutput {
    pub(super) has_succeeded: bool,
    pub(super) out: Vec<u8>,
    pub(super) err: String,
}

impl Repository {
    /// Opens the repository that a folder is in.
    ///
    /// Returns [`RepositoryError::NotARepository`] if there is no repository.
    pub fn open(folder: &Path) -> Result<Self, RepositoryError> {
        let place =
            GitPlace::find(folder).ok_or_else(|| RepositoryError::NotARepository(folder.to_owned()))?;
        Ok(Self { folder: place.common })
    }

    /// Runs git, and takes any answer.
    pub(super) fn ask(&self, asked: &GitCall<'_>) -> Result<GitOutput, RepositoryError> {
        // It exists as long as git runs, so that a process that is killed rarely leaves one.
        let substitute = SubstituteFolder::new(&self.folder)
            .map_err(|why| RepositoryError::File(self.folder.clone(), why))?;
        let here = substitute.path();
        let mut command = Command::new("git");
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            // A copy that lacks objects does not get them from elsewhere, which may take for ever.
            ("GIT_NO_LAZY_FETCH", "1"),
            ("LC_ALL", "C"),
        ]);
        // The attributes of the current folder must not apply to the repository.
        command.current_dir(here).arg("--git-dir").arg(here).envs(substitute.variables());
        command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        command.args(asked.words).envs(asked.env.iter().copied());
        command.envs(asked.index.map(|index| ("GIT_INDEX_FILE", index)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(RepositoryError::NoGit)?;
        let pipe = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // Git may print much before it has read everything. Input that it does not read is not missed.
            scope.spawn(|| pipe.map(|mut pipe| pipe.write_all(asked.input)));
            child.wait_with_output()
        });
        let output = output.map_err(RepositoryError::NoGit)?;
        Ok(GitOutput {
            has_succeeded: output.status.success(),
            out: output.stdout,
            // What git says of this folder is true of the repository.
            err: String::from_utf8_lossy(&output.stderr)
                .trim()
                .replace(&*here.to_string_lossy(), &self.folder.to_string_lossy()),
        })
    }

    /// Runs git, which must succeed.
    pub(super) fn must(&self, asked: &GitCall<'_>) -> Result<Vec<u8>, RepositoryError> {
        let output = self.ask(asked)?;
        if output.has_succeeded {
            return Ok(output.out);
        }
        Err(RepositoryError::Git { command: asked.words.join(" "), said: output.err })
    }

    /// Runs git, which must print the name of an object.
    pub(super) fn oid(&self, asked: &GitCall<'_>) -> Result<Oid, RepositoryError> {
        let out = String::from_utf8_lossy(&self.must(asked)?).trim().to_owned();
        Oid::read(&out).ok_or_else(|| RepositoryError::Strange { command: asked.words.join(" "), said: out })
    }

    /// Returns the commit that a name means.
    ///
    /// Returns [`RepositoryError::NoCommit`] if the name means no commit.
    pub fn commit_of(&self, name: &str) -> Result<Oid, RepositoryError> {
        let commit = format!("{name}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
        let output = self.ask(&GitCall::new(&words))?;
        match Oid::read(String::from_utf8_lossy(&output.out).trim()) {
            Some(commit) if output.has_succeeded => Ok(commit),
            Some(_) | None => Err(RepositoryError::NoCommit(name.to_owned())),
        }
    }

    /// Returns the identity that all copies of a repository share: the SHA-256 of the names of the commits that its history
    /// begins with.
    ///
    /// Returns [`RepositoryError::Shallow`] if its history is cut off; another error if git fails.
    pub fn identity(&self, commit: &Oid) -> Result<Digest, RepositoryError> {
        let shallow = self.must(&GitCall::new(&["rev-parse", "--is-shallow-repository"]))?;
        if shallow.starts_with(b"true") {
            return Err(RepositoryError::Shallow);
        }
        let out = self.must(&GitCall::new(&["rev-list", "--max-parents=0", commit.as_str()]))?;
        let text = String::from_utf8_lossy(&out);
        let mut roots: Vec<&str> = text.lines().collect();
        roots.sort_unstable();
        Ok(Digest::new(roots.join("\n").as_bytes()))
    }

    /// Returns the text of a file in a commit or a tree.
    ///
    /// Returns [`RepositoryError`] if the file is not there.
    pub fn text(&self, tree: &Oid, path: &str) -> Result<String, RepositoryError> {
        let name = format!("{tree}:{path}");
        let out = self.must(&GitCall::new(&["cat-file", "blob", &name]))?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// Returns the files at this place that differ from a commit, if the place is in a work tree of this repository. Only the
    /// files that git keeps are compared, not those that merely happen to be there.
    ///
    /// Returns [`RepositoryError`] if git fails.
    pub fn differing(&self, place: &Path, from: &Oid) -> Result<Vec<String>, RepositoryError> {
        let given = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
        let mut found = self.differing_at(&given, from)?;
        // A link is read at the place to which it leads.
        if let Ok(real) = given.canonicalize()
            && real != given
        {
            found.extend(self.differing_at(&real, from)?);
        }
        Ok(found)
    }

    fn differing_at(&self, place: &Path, from: &Oid) -> Result<Vec<String>, RepositoryError> {
        let folder = if place.is_dir() { Some(place) } else { place.parent() };
        let found = folder.and_then(GitPlace::find).filter(|found| found.common == self.folder);
        // Without a work tree there are no files that git keeps.
        let Some(GitPlace { own, work_tree: Some(root), .. }) = found else { return Ok(Vec::new()) };
        let place = place.to_string_lossy();
        let words = ["diff", "--name-only", "--no-ext-diff", "--no-textconv", "--no-renames"];
        // A submodule has settings of its own.
        let more = ["--ignore-submodules=all", from.as_str(), "--", &*place];
        let words = [&words[..], &more].concat();
        let index = own.join("index");
        let env = [("GIT_WORK_TREE", root.as_os_str())];
        let output = self.ask(&GitCall { index: Some(&index), env: &env, ..GitCall::new(&words) })?;
        if !output.has_succeeded {
            return Err(RepositoryError::Git { command: words.join(" "), said: output.err });
        }
        let text = String::from_utf8_lossy(&output.out);
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Returns the folder in which git keeps its own files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the full name of a branch.
    ///
    /// Returns [`RepositoryError::NoBranch`] if there is no branch of this name.
    pub fn branch(&self, name: &str) -> Result<String, RepositoryError> {
        let short = name.strip_prefix("refs/heads/").unwrap_or(name);
        let full = format!("refs/heads/{short}");
        let output = self.ask(&GitCall::new(&["show-ref", "--verify", "--quiet", "--", &full]))?;
        if !output.has_succeeded {
            return Err(self.no_branch(name)?);
        }
        // A symbolic reference would be moved in place of the branch that it names.
        let output = self.ask(&GitCall::new(&["symbolic-ref", "--quiet", &full]))?;
        match String::from_utf8_lossy(&output.out).trim().strip_prefix("refs/heads/") {
            Some(other) if output.has_succeeded => self.branch(other),
            Some(_) | None => Ok(full),
        }
    }

    /// Returns the error for a name that is not a branch, with the branch of a remote that may be meant.
    pub(super) fn no_branch(&self, name: &str) -> Result<RepositoryError, RepositoryError> {
        let short = name.strip_prefix("refs/heads/").unwrap_or(name);
        let all =
            self.must(&GitCall::new(&["for-each-ref", "--format=%(refname:lstrip=2)", "refs/remotes"]))?;
        let all = String::from_utf8_lossy(&all).into_owned();
        let meant = all
            .lines()
            .find(|remote| *remote == short || remote.split_once('/').is_some_and(|(_, own)| own == short));
        let advice = match meant.and_then(|remote| Some((remote, remote.split_once('/')?.1))) {
            Some((remote, own)) => format!("`git branch {own} {remote}` makes one from `{remote}`"),
            None => "give one, such as `main`".to_owned(),
        };
        Ok(RepositoryError::NoBranch { name: name.to_owned(), advice })
    }
}
