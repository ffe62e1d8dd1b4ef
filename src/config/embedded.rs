//! The rolesets and packs that are part of the binary.

/// The schema of a roleset file.
pub const ROLESET_SCHEMA: &str = include_str!("roleset.schema.json");

macro_rules! embed {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../rolesets/", $folder, $name)))),+]
    };
}

/// The rolesets by file name.
pub const EMBEDDED_ROLESETS: &[(&str, &str)] = embed![
    "":
    "council_agree.json",
    "council_tripartite.json",
    "generalist_critic.json",
    "json_author_auditor.json",
    "mcq_reasoner_auditor.json",
    "panel_agree.json",
    "panel_models.json",
    "panel_personas.json",
    "planner_coder.json",
    "question.json",
    "reviewers_f1.json",
    "reviewers_f2.json",
    "self_consistency.json",
    "single.json",
    "solver_checker.json",
    "solver_programmer.json",
    "translator_reviewer.json",
    "uiux_programmer.json",
    "vote_choice.json",
    "vote_code.json",
    "vote_number.json",
    "vote_short.json",
    "vote_text.json",
    "writer_physicist.json",
];

/// The packs by file name.
pub(super) const EMBEDDED_PACKS: &[(&str, &str)] = embed![
    "packs/":
    "analyst.md",
    "answerer.md",
    "calculator.md",
    "checker.md",
    "compatibility_reviewer.md",
    "coder.md",
    "creative_thinker.md",
    "critic.md",
    "critical_thinker.md",
    "designer.md",
    "empathetic_thinker.md",
    "ethos.md",
    "generalist.md",
    "json_auditor.md",
    "json_author.md",
    "logos.md",
    "optimist.md",
    "option_auditor.md",
    "panelist.md",
    "pathos.md",
    "physicist.md",
    "planner.md",
    "pragmatist.md",
    "performance_reviewer.md",
    "programmer.md",
    "python_author.md",
    "quality_reviewer.md",
    "reasoner.md",
    "reviewer.md",
    "security_reviewer.md",
    "solver.md",
    "translator.md",
    "writer.md",
];
