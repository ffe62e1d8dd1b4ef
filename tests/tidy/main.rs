//! The architecture as rules: what the folders promise is checked on every run.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod graph;

use std::path::{Path, PathBuf};

use graph::Graph;

/// Folders in which nothing may touch the outside world.
const PURE: [&str; 3] = ["src/protocol", "src/text", "src/crypto"];

/// What would touch it.
const IMPURE: [&str; 14] = [
    "tokio",
    "reqwest",
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::thread",
    "Instant::now",
    "SystemTime",
    "HashMap",
    "HashSet",
    "async fn",
    "rand::",
    "println!",
];

const LINES_MAX: usize = 500;

fn sources(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn offenders(folders: &[&str], is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for path in folders.iter().flat_map(|folder| sources(folder)) {
        let text = std::fs::read_to_string(&path).unwrap();
        for (index, line) in text.lines().enumerate() {
            let is_code = !line.trim_start().starts_with("//");
            if is_code && is_wrong(line) {
                found.push(format!("{}:{}: {}", path.display(), index + 1, line.trim()));
            }
        }
    }
    found
}

#[test]
fn protocols_and_texts_are_pure() {
    let found = offenders(&PURE, |line| IMPURE.iter().any(|word| line.contains(word)));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn dependencies_point_one_way() {
    let below_engine =
        ["src/protocol", "src/text", "src/crypto", "src/journal", "src/provider", "src/repository"];
    let found = offenders(&below_engine, |line| {
        let above = [
            "crate::engine",
            "crate::cli",
            "crate::config",
            "crate::decision",
            "crate::peer",
            "crate::batch",
        ];
        above.iter().any(|module| line.contains(module))
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
    let found = offenders(&PURE, |line| line.contains("crate::journal") || line.contains("crate::provider"));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Files that still stand in a circle: the number may only fall.
const IN_CIRCLES: usize = 12;

#[test]
fn files_do_not_use_each_other_in_circles() {
    let graph = Graph::of_crate(&root("src"), &sources("src"));
    let circles = graph.circles();
    let told: String = circles.iter().map(|circle| graph.among(circle)).collect();
    assert_eq!(circles.iter().map(Vec::len).sum::<usize>(), IN_CIRCLES, "{told}");
}

#[test]
fn only_the_command_line_prints() {
    let all: Vec<PathBuf> = sources("src").into_iter().filter(|p| !p.starts_with(root("src/cli"))).collect();
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("mod tests {").next().unwrap();
        for word in ["println!", "eprintln!", "print!(", "dbg!"] {
            assert!(!code.contains(word), "{} prints", path.display());
        }
    }
}

#[test]
fn files_stay_short() {
    for path in sources("src").into_iter().chain(sources("tests")) {
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines", path.display());
    }
}

#[test]
fn every_module_says_what_it_is_for() {
    for path in sources("src").into_iter().chain(sources("tests")) {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//! "), "{} has no module comment", path.display());
    }
}

fn root(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}
