//! The versions that a lock file pins, before a change and after it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// A dependency whose versions change.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DependencyChange {
    pub file: String,
    pub name: String,
    /// The versions before the change; empty for a new dependency.
    pub before: BTreeSet<String>,
    /// The versions after the change; empty for a removed dependency.
    pub after: BTreeSet<String>,
}

/// A kind of lock file that can be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lockfile {
    /// `Cargo.lock`, `poetry.lock` and `uv.lock`: packages with names and versions, in TOML.
    Toml,
    /// `package-lock.json`.
    Npm,
    /// `go.sum`.
    Go,
    /// `requirements.txt` with pinned versions.
    Pip,
}

impl Lockfile {
    /// Returns the kind of a file by its name, or `None` if it is not a lock file.
    pub fn from_path(path: &str) -> Option<Self> {
        match path.rsplit('/').next().unwrap_or_default() {
            "Cargo.lock" | "poetry.lock" | "uv.lock" => Some(Self::Toml),
            "package-lock.json" | "npm-shrinkwrap.json" => Some(Self::Npm),
            "go.sum" => Some(Self::Go),
            "requirements.txt" => Some(Self::Pip),
            _ => None,
        }
    }

    /// Returns the differences between two texts of a lock file. A text that cannot be read pins nothing.
    pub fn changes(self, file: &str, before: &str, after: &str) -> Vec<DependencyChange> {
        let (mut before, mut after) = (self.versions(before), self.versions(after));
        let names: BTreeSet<String> = before.keys().chain(after.keys()).cloned().collect();
        let mut changes = Vec::new();
        for name in names {
            let before = before.remove(&name).unwrap_or_default();
            let after = after.remove(&name).unwrap_or_default();
            if before != after {
                changes.push(DependencyChange { file: file.to_owned(), name, before, after });
            }
        }
        changes
    }

    /// Returns the versions of each package that a text pins.
    fn versions(self, text: &str) -> BTreeMap<String, BTreeSet<String>> {
        let mut found = Vec::new();
        match self {
            Self::Toml => {
                let table: toml::Table = toml::from_str(text).unwrap_or_default();
                let packages = table.get("package").and_then(toml::Value::as_array);
                for package in packages.into_iter().flatten() {
                    if let Some(name) = package.get("name").and_then(toml::Value::as_str)
                        && let Some(version) = package.get("version").and_then(toml::Value::as_str)
                    {
                        found.push((name.to_owned(), version.to_owned()));
                    }
                }
            }
            Self::Npm => {
                let lock: Json = serde_json::from_str(text).unwrap_or_default();
                for (place, package) in lock["packages"].as_object().into_iter().flatten() {
                    // In `node_modules/a/node_modules/b`, the name is `b`.
                    let name = place.rsplit("node_modules/").next().unwrap_or_default();
                    if !name.is_empty()
                        && let Some(version) = package["version"].as_str()
                    {
                        found.push((name.to_owned(), version.to_owned()));
                    }
                }
            }
            Self::Go => {
                for line in text.lines() {
                    if let [name, version, _] = line.split_whitespace().collect::<Vec<_>>()[..] {
                        found.push((name.to_owned(), version.trim_end_matches("/go.mod").to_owned()));
                    }
                }
            }
            Self::Pip => {
                for line in text.lines() {
                    let pinned = line.split(['#', ';']).next().unwrap_or_default().split_once("==");
                    if let Some((name, version)) = pinned {
                        let version = version.split_whitespace().next().unwrap_or_default();
                        found.push((name.trim().to_lowercase(), version.to_owned()));
                    }
                }
            }
        }
        let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, version) in found {
            versions.entry(name).or_default().insert(version);
        }
        versions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The changes are the dependencies that come, go or have another version.
    #[test]
    fn every_lockfile_kind_lists_its_changes() {
        let cases = [
            (
                "Cargo.lock",
                "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\n",
                "[[package]]\nname = \"a\"\nversion = \"1.1.0\"\n[[package]]\nname = \"c\"\nversion = \"3.0.0\"\n",
            ),
            (
                "web/package-lock.json",
                r#"{"packages":{"":{"version":"9.9.9"},"node_modules/a":{"version":"1.0.0"},"node_modules/b":{"version":"2.0.0"}}}"#,
                r#"{"packages":{"":{"version":"9.9.9"},"node_modules/x/node_modules/a":{"version":"1.1.0"},"node_modules/c":{"version":"3.0.0"}}}"#,
            ),
            ("go.sum", "a 1.0.0 h1:x\na 1.0.0/go.mod h1:y\nb 2.0.0 h1:z\n", "a 1.1.0 h1:x\nc 3.0.0 h1:z\n"),
            (
                "requirements.txt",
                "A==1.0.0 # pinned\nb == 2.0.0 ; python_version > '3'\nfree\n",
                "a==1.1.0\nc==3.0.0 --hash=sha256:00\n",
            ),
        ];
        for (file, before, after) in cases {
            let changes = Lockfile::from_path(file).unwrap().changes(file, before, after);
            let expected = [("a", "1.0.0", "1.1.0"), ("b", "2.0.0", ""), ("c", "", "3.0.0")];
            assert_eq!(changes.len(), expected.len(), "{file}");
            for (change, (name, before, after)) in changes.iter().zip(expected) {
                assert_eq!(change.name, name, "{file}");
                assert!(change.before.iter().eq(&[before][usize::from(before.is_empty())..]), "{file}");
                assert!(change.after.iter().eq(&[after][usize::from(after.is_empty())..]), "{file}");
            }
        }
        assert_eq!(Lockfile::from_path("src/lock.rs"), None);
        assert!(Lockfile::Toml.changes("Cargo.lock", "no toml [", "").is_empty());
    }
}
