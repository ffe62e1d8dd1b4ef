//! The target of a path, with links and `..` resolved, even if its end does not exist yet.
//!
//! The input is a folder, and a path that is absolute or relative to it. The output is the place that the system would go to, and
//! the links inside the folder that led there. Nothing is opened or made here.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The most links that are followed, as the system does.
const LINKS_MAX: usize = 40;

/// The target of a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct LinkTarget {
    /// The place, without links and `..`.
    pub(super) place: PathBuf,
    /// The links of the folder on the way, relative to the folder, each with its target.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    /// Whether the place is outside the folder.
    pub(super) is_outside: bool,
}

/// Follows a path from a folder, which must be given without links.
pub(super) fn follow_links(folder: &Path, path: &Path) -> LinkTarget {
    let mut place = folder.to_owned();
    let mut links = Vec::new();
    let mut followed = 0;
    let mut remaining = split_steps(path);
    while let Some(step) = remaining.pop() {
        match Path::new(&step).components().next() {
            Some(Component::RootDir) => place = PathBuf::from("/"),
            Some(Component::ParentDir) => {
                place.pop();
            }
            Some(Component::Normal(name)) => {
                let next = place.join(name);
                let Ok(target) = std::fs::read_link(&next) else {
                    place = next;
                    continue;
                };
                followed += 1;
                if followed > LINKS_MAX {
                    // The system refuses such a path; here it counts as leading away.
                    return LinkTarget { place: next, links, is_outside: true };
                }
                remaining.extend(split_steps(&target));
                if let Ok(own) = next.strip_prefix(folder) {
                    links.push((own.to_owned(), target));
                }
            }
            Some(Component::CurDir | Component::Prefix(_)) | None => {}
        }
    }
    let is_outside = !place.starts_with(folder);
    LinkTarget { place, links, is_outside }
}

/// Returns the parts of a path, the last one first.
fn split_steps(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_leads_where_its_links_do() {
        let folder = std::env::temp_dir().canonicalize().unwrap().join(uuid::Uuid::new_v4().to_string());
        std::fs::create_dir_all(folder.join("inside")).unwrap();
        symlink("inside", folder.join("near")).unwrap();
        symlink("near/../..", folder.join("far")).unwrap();
        symlink("round", folder.join("round")).unwrap();
        let is_outside = |path: &str| follow_links(&folder, Path::new(path)).is_outside;
        for path in ["runs", "./runs/deep", "inside/../runs", "near/runs", "near"] {
            assert!(!is_outside(path), "{path}");
        }
        for path in ["..", "../x", "/", "/nowhere", "inside/../../x", "far/x", "near/../../x", "round"] {
            assert!(is_outside(path), "{path}");
        }
        assert!(!is_outside(&format!("{}/runs", folder.display())), "an absolute path may lead inside");
        let far = follow_links(&folder, Path::new("far/x"));
        assert_eq!(far.place, folder.parent().unwrap().join("x"));
        let links = [("far".into(), "near/../..".into()), ("near".into(), "inside".into())];
        assert_eq!(far.links, links);
        // The result matches the system's for every path of up to four of these steps.
        let steps = ["inside", "near", "far", "..", ".", "new"];
        for count in 0..steps.len().pow(4) {
            let path: PathBuf = (0..4).map(|n| steps[count / steps.len().pow(n) % steps.len()]).collect();
            if let Ok(system) = folder.join(&path).canonicalize() {
                assert_eq!(follow_links(&folder, &path).place, system, "{}", path.display());
            }
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
