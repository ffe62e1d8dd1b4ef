//! The architecture as rules: what the folders promise is checked on every run.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod graph;
mod names;
mod prose;
mod ratchet;

use std::path::{Path, PathBuf};

use graph::{Graph, Module};
use ratchet::{Ceilings, Counted};

/// Folders in which nothing may touch the outside world.
const PURE: [&str; 3] = ["crates/crypto/src", "crates/protocol/src", "crates/quorum/src"];

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

/// Files whose texts models have seen or records hold: those stay as they were measured, and only their comments are checked.
const FROZEN_TEXTS: [&str; 4] =
    ["src/config/panel.rs", "src/engine/run_state.rs", "src/provider/mock", "crates/protocol/src"];

/// Files among these whose texts no model has seen.
const CORE: &str = "crates/protocol/src/core";

/// The README is a page that people read to its end.
const README_LINES_MAX: usize = 200;

fn sources(folder: &str) -> Vec<PathBuf> {
    files(folder, "rs")
}

/// Returns the sources of the program: of its package, and of its crates.
fn program() -> Vec<PathBuf> {
    let crates = sources("crates").into_iter().filter(|path| !is_test(path));
    sources("src").into_iter().chain(crates).collect()
}

/// Returns the sources of all tests.
fn tests() -> Vec<PathBuf> {
    let of_crates = sources("crates").into_iter().filter(|path| is_test(path));
    sources("tests").into_iter().chain(of_crates).collect()
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests")
}

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == ending) {
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
fn the_lower_layers_are_pure() {
    let found = offenders(&PURE, |line| IMPURE.iter().any(|word| line.contains(word)));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The crates whose `lib.rs` states their layers.
const LAYERED: [&str; 2] = ["src", "crates/protocol/src"];

/// The folders whose `mod.rs` states their wings.
const WINGED: [&str; 3] = ["approval", "batch", "serve"];

/// Returns the layers under a heading of a file, the lowest first, each with its modules.
fn layers(file: &str, heading: &str) -> Vec<Vec<Module>> {
    let text = std::fs::read_to_string(root(file)).unwrap();
    let (_, after) = text.split_once(heading).unwrap();
    let lines =
        after.lines().skip_while(|line| *line != "//! ```text").skip(1).take_while(|line| *line != "//! ```");
    let module = |word: &str| word.split("::").map(str::to_owned).collect();
    let layer = |line: &str| line.trim_start_matches("//!").split_whitespace().map(module).collect();
    let mut layers: Vec<Vec<Module>> = lines.map(layer).collect();
    layers.reverse();
    layers
}

/// A file uses its own module and the layers below it, and no other module.
#[test]
fn files_use_only_lower_layers() {
    let mut found = Vec::new();
    for src in LAYERED {
        let layers = layers(&format!("{src}/lib.rs"), "//! # Layers\n");
        // The root re-exports, and uses nothing.
        for (from, used) in Graph::of_crate(&root(src), &sources(src)).arrows {
            for to in used {
                let (from_height, from_module) = layer_of(&from, &layers);
                let (to_height, to_module) = layer_of(&to, &layers);
                if from_module != to_module && from_height <= to_height {
                    found.push(format!("{} uses {}", graph::name(&from), graph::name(&to)));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A file of a folder with wings uses its own wing and those of lower lines.
#[test]
fn wings_use_only_lower_wings() {
    let arrows = Graph::of_crate(&root("src"), &sources("src")).arrows;
    let mut found = Vec::new();
    for folder in WINGED {
        let layers = layers(&format!("src/{folder}/mod.rs"), "//! # Wings\n");
        // The root of the folder re-exports.
        let is_within = |module: &Module| module.len() > 1 && module[0] == folder;
        for (from, used) in arrows.iter().filter(|(from, _)| is_within(from)) {
            for to in used.iter().filter(|to| is_within(to)) {
                let (from_height, from_wing) = layer_of(&from[1..], &layers);
                let (to_height, to_wing) = layer_of(&to[1..], &layers);
                if from_wing != to_wing && from_height <= to_height {
                    found.push(format!("{} uses {}", graph::name(from), graph::name(to)));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Every file that the code map names is there.
#[test]
fn files_of_the_code_map_exist() {
    let text = std::fs::read_to_string(root("src/lib.rs")).unwrap();
    let is_file =
        |word: &&str| word.contains('/') && Path::new(word).extension().is_some_and(|end| end == "rs");
    let named: Vec<&str> = text.split('`').filter(is_file).collect();
    assert!(named.len() >= 6, "{named:?}");
    for name in named {
        assert!(root(name).is_file(), "there is no {name}");
    }
}

/// Returns the height of a file's layer, and its module there.
fn layer_of<'a>(file: &[String], layers: &'a [Vec<Module>]) -> (usize, &'a Module) {
    for (height, layer) in layers.iter().enumerate() {
        if let Some(module) = layer.iter().find(|module| file.starts_with(module)) {
            return (height, module);
        }
    }
    panic!("no layer has {}", graph::name(file))
}

#[test]
fn the_code_map_has_every_module() {
    let text = std::fs::read_to_string(root("src/lib.rs")).unwrap();
    let modules = text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let missing: Vec<&str> = modules.filter(|module| !text.contains(&format!("[`{module}`]"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn files_do_not_use_each_other_in_circles() {
    for src in LAYERED {
        let graph = Graph::of_crate(&root(src), &sources(src));
        let found: String = graph.circles().iter().map(|circle| graph.among(circle)).collect();
        assert!(found.is_empty(), "{src}: {found}");
    }
}

#[test]
fn a_type_name_means_one_thing() {
    let found = names::defined_twice(&program());
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn only_the_command_line_prints() {
    let all: Vec<PathBuf> = program().into_iter().filter(|p| !p.starts_with(root("src/cli"))).collect();
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
    for path in program().into_iter().chain(tests()) {
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines", path.display());
    }
}

#[test]
fn every_module_says_what_it_is_for() {
    for path in program().into_iter().chain(tests()) {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//! "), "{} has no module comment", path.display());
    }
}

fn root(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

/// Returns the prose of the README, the contributors' page, the book, and the help texts.
fn documentation() -> Vec<(&'static str, Vec<prose::Paragraph>)> {
    let page = |path: &Path| {
        let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().to_string_lossy().into_owned();
        prose::markdown(&name, &std::fs::read_to_string(path).unwrap(), 1)
    };
    let help = std::fs::read_to_string(root("tests/fixtures/frozen/help.txt")).unwrap();
    let book = files("docs/src", "md");
    vec![
        ("README.md", page(&root("README.md"))),
        (".github/CONTRIBUTING.md", page(&root(".github/CONTRIBUTING.md"))),
        ("the book", book.iter().flat_map(|path| page(path)).collect()),
        ("the help texts", prose::help("help", &help)),
    ]
}

#[test]
fn documentation_is_plain_english_in_short_sentences() {
    let mut found = Vec::new();
    for (name, paragraphs) in documentation() {
        found.extend(prose::faults(&paragraphs));
        let lengths = prose::lengths(&paragraphs);
        let at = |share: usize| lengths.get(lengths.len() * share / 100).copied().unwrap_or_default();
        println!("{name}: {} sentences, median {}, p90 {} words", lengths.len(), at(50), at(90));
        if at(50) > prose::WORDS_MEDIAN_MAX {
            found.push(format!("{name}: half of its sentences have more than {} words", at(50)));
        }
    }
    let lines = std::fs::read_to_string(root("README.md")).unwrap().lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines");
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[test]
fn comments_and_messages_are_plain_english() {
    let mut found = Vec::new();
    for path in program() {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut paragraphs = prose::comments(&name.to_string_lossy(), &text);
        let is_frozen = FROZEN_TEXTS.iter().any(|place| name.starts_with(place)) && !name.starts_with(CORE);
        if !is_frozen {
            paragraphs.extend(prose::literals(&name.to_string_lossy(), &text));
        }
        found.extend(prose::faults(&paragraphs));
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[test]
fn counts_of_dialect_only_fall() {
    let ceilings = Ceilings::read(&root("tests/tidy/ceilings.txt"));
    let counts = [("program", Counted::of(&program())), ("tests", Counted::of(&tests()))];
    if std::env::var_os("CONSENSUS_REWRITE").is_some() {
        ceilings.lower(&counts);
        return;
    }
    let faults: Vec<String> =
        counts.iter().flat_map(|(group, counted)| counted.faults(group, &ceilings)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
