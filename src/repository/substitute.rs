//! A git folder of our own, in place of that of a repository.
//!
//! The settings of a repository can name commands, and each version of git knows more of them. So none is read. Git works
//! in a folder that is made here, with settings of our own and without hooks. That folder borrows the objects, the
//! references and their logs. Two facts on how these are stored are taken over, if they are among the known ones.
//! Nothing that the repository has is changed here, and nothing in it is run.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::files::{SMALL_BYTES_MAX, Scratch, read_text};

/// The names that the folder borrows, apart from the objects. Git takes no link for `HEAD`, which is copied.
const BORROWED: [&str; 5] = ["refs", "packed-refs", "logs", "shallow", "reftable"];

/// The facts on how a repository stores its data, where that is not git's usual way.
const FORMATS: [(&str, &str); 2] = [("objectformat", "sha256"), ("refstorage", "reftable")];

/// The place of a repository.
#[derive(Clone, Debug)]
pub(super) struct GitPlace {
    /// The folder with the objects and references, which all work trees share.
    pub(super) common: PathBuf,
    /// The folder with the index of this work tree.
    pub(super) own: PathBuf,
    /// The root of the work tree, if there is one.
    pub(super) work_tree: Option<PathBuf>,
}

impl GitPlace {
    /// Finds the repository that a folder is in, by the names of files alone.
    pub(super) fn find(folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        for place in folder.ancestors() {
            let dot = place.join(".git");
            // A file that leads nowhere does not mean the repository around it.
            let own = if dot.is_file() { read_link_file(&dot)? } else { dot };
            if let Some(common) = common_of(&own) {
                return Some(Self { common, own, work_tree: Some(place.to_owned()) });
            }
            if let Some(common) = common_of(place) {
                return Some(Self { common, own: place.to_owned(), work_tree: None });
            }
        }
        None
    }
}

/// Returns the folder that the file `.git` of a linked work tree or of a submodule names.
fn read_link_file(file: &Path) -> Option<PathBuf> {
    let text = read_text(file, SMALL_BYTES_MAX).ok()?;
    let named = text.strip_prefix("gitdir:")?.trim();
    file.parent()?.join(named).canonicalize().ok()
}

/// Returns the folder with the objects and references that a git folder uses, if it is one.
fn common_of(folder: &Path) -> Option<PathBuf> {
    if !folder.join("HEAD").exists() {
        return None;
    }
    let common = match read_text(&folder.join("commondir"), SMALL_BYTES_MAX) {
        Ok(named) => folder.join(named.trim()).canonicalize().ok()?,
        Err(_) => folder.to_owned(),
    };
    if common.join("objects").is_dir() && common.join("refs").is_dir() { Some(common) } else { None }
}

/// The folder in which git works in place of a repository's. It is removed with this value.
#[derive(Debug)]
pub(super) struct SubstituteFolder {
    folder: Scratch,
    /// The folder with the objects of the repository.
    objects: PathBuf,
}

impl SubstituteFolder {
    /// Makes the folder for the repository in `common`.
    ///
    /// Returns any error of the file system.
    pub(super) fn new(common: &Path) -> std::io::Result<Self> {
        let folder = scratch(common, "git")?;
        let objects = common.join("objects");
        std::fs::create_dir(folder.path().join("objects"))?;
        for name in BORROWED {
            symlink(common.join(name), folder.path().join(name))?;
        }
        std::fs::write(folder.path().join("HEAD"), read_head(common)?)?;
        std::fs::write(folder.path().join("config"), build_settings(common)?)?;
        Ok(Self { folder, objects })
    }

    /// Returns the folder in which git works.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the variables by which git finds the objects. New ones go to the repository, if it can be written.
    pub(super) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let is_writable = nix::unistd::access(&self.objects, nix::unistd::AccessFlags::W_OK).is_ok();
        let objects = self.objects.clone().into_os_string();
        if is_writable {
            vec![("GIT_OBJECT_DIRECTORY", objects)]
        } else {
            vec![("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects)]
        }
    }
}

/// Makes a folder for temporary use beside the data of the repository in `common`. The owner of that place could replace
/// the folder, so that of another owner is not used.
///
/// Returns any error of the file system.
pub(super) fn scratch(common: &Path, kind: &str) -> std::io::Result<Scratch> {
    let is_own = std::fs::metadata(common)?.uid() == nix::unistd::geteuid().as_raw();
    if is_own && let Ok(folder) = Scratch::new(common, kind) {
        return Ok(folder);
    }
    Scratch::new(&std::env::temp_dir(), kind)
}

/// Returns the content of `HEAD`: the name of a reference or of a commit.
fn read_head(common: &Path) -> std::io::Result<String> {
    let path = common.join("HEAD");
    // Old versions of git made a link of it.
    if let Ok(target) = std::fs::read_link(&path) {
        return Ok(format!("ref: {}\n", target.display()));
    }
    let text = read_text(&path, SMALL_BYTES_MAX).map_err(std::io::Error::other)?;
    Ok(format!("{}\n", text.lines().next().unwrap_or_default()))
}

/// Returns the work trees of the repository in `common` that have a branch checked out.
///
/// Returns any error of the file system.
pub(super) fn work_trees(common: &Path, branch: &str) -> std::io::Result<Vec<PathBuf>> {
    let expected_head = format!("ref: {branch}");
    let mut found = Vec::new();
    let is_dot_git = common.file_name().is_some_and(|name| name == ".git");
    if is_dot_git && read_head(common).is_ok_and(|head| head.trim() == expected_head) {
        found.extend(common.parent().map(Path::to_owned));
    }
    let linked = common.join("worktrees");
    if linked.is_dir() {
        for entry in std::fs::read_dir(linked)? {
            let folder = entry?.path();
            let Ok(file) = read_text(&folder.join("gitdir"), SMALL_BYTES_MAX) else { continue };
            if read_head(&folder).is_ok_and(|head| head.trim() == expected_head) {
                found.extend(folder.join(file.trim()).parent().map(Path::to_owned));
            }
        }
    }
    Ok(found)
}

/// Returns the settings of our folder. The rights of new files are those of the folder of objects.
fn build_settings(common: &Path) -> std::io::Result<String> {
    let mode = std::fs::metadata(common.join("objects"))?.permissions().mode();
    let shared = match (mode & 0o020, mode & 0o004) {
        (0, _) => "umask",
        (_, 0) => "group",
        _ => "world",
    };
    let theirs = read_text(&common.join("config"), SMALL_BYTES_MAX).unwrap_or_default();
    let mut settings = format!(
        "[core]\n\trepositoryformatversion = 1\n\tbare = true\n\tlogAllRefUpdates = true\n\tsharedRepository = {shared}\n[extensions]\n"
    );
    for (name, value) in FORMATS {
        if has_format(&theirs, name, value) {
            let _ = writeln!(settings, "\t{name} = {value}");
        }
    }
    Ok(settings)
}

/// Returns true if settings say, in the section `extensions`, that a format has this value.
fn has_format(settings: &str, name: &str, value: &str) -> bool {
    let mut is_in_section = false;
    for line in settings.lines().map(|line| line.trim().to_ascii_lowercase()) {
        if line.starts_with('[') {
            is_in_section = line == "[extensions]";
        } else if is_in_section
            && let Some((key, found)) = line.split_once('=')
            && key.trim() == name
        {
            return found.trim() == value;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file `.git` that leads nowhere is not passed over.
    #[test]
    fn broken_link_finds_no_other_repository() {
        let folder = Scratch::new(&std::env::temp_dir(), "test").unwrap();
        let git = folder.path().join(".git");
        for name in ["objects", "refs"] {
            std::fs::create_dir_all(git.join(name)).unwrap();
        }
        std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        assert_eq!(GitPlace::find(&inner).unwrap().common, git.canonicalize().unwrap());
        std::fs::write(inner.join(".git"), "gitdir: ../nowhere\n").unwrap();
        assert!(GitPlace::find(&inner).is_none());
    }

    #[test]
    fn only_known_formats_are_taken() {
        let settings =
            "[core]\n\trefstorage = x\n[extensions]\n\tobjectFormat = sha256\n\trefStorage = !run\n";
        assert!(has_format(settings, "objectformat", "sha256"));
        assert!(!has_format(settings, "objectformat", "sha1"));
        assert!(!has_format(settings, "refstorage", "reftable"));
    }
}
