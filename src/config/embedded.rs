//! The rolesets and packs that are part of the binary.

/// The schema of a roleset file.
pub const ROLESET_SCHEMA: &str = include_str!("roleset.schema.json");

macro_rules! embed {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../rolesets/", $folder, $name)))),+]
    };
}

/// Rolesets by file name.
pub const EMBEDDED_ROLESETS: &[(&str, &str)] = embed![
    "":
    "council_tripartite.json",
    "json_author_auditor.json",
    "mcq_reasoner_auditor.json",
    "planner_coder.json",
    "solver_checker.json",
    "translator_reviewer.json",
    "uiux_programmer.json",
    "writer_physicist.json",
];

/// Packs by file name.
pub(super) const EMBEDDED_PACKS: &[(&str, &str)] = embed![
    "packs/":
    "checker.md",
    "coder.md",
    "designer.md",
    "ethos.md",
    "json_auditor.md",
    "json_author.md",
    "logos.md",
    "option_auditor.md",
    "pathos.md",
    "physicist.md",
    "planner.md",
    "programmer.md",
    "reasoner.md",
    "reviewer.md",
    "solver.md",
    "translator.md",
    "writer.md",
];
