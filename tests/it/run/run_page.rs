//! The page of a run.

use crate::support::{Finished, Folder, consensus};

/// Returns the page of a run with this task, in this roleset.
fn page(roleset: &str, task: &str) -> String {
    let folder = Folder::new();
    let words = ["run", "--roleset", roleset, "--mock", "--answer", "4", task];
    Finished::of(consensus(&folder).args(words)).exits(0);
    Finished::of(consensus(&folder).args(["show", "--last", "--format", "html"])).exits(0).stdout
}

#[test]
fn a_page_shows_hostile_texts_as_text_and_loads_nothing() {
    let page = page("solver_checker", "<script>alert(1)</script>\u{1b}[31m\u{202e}");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("default-src 'none'"), "{page}");
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'), "{page}");
    for loaded in ["src=", "<link", "url(", "@import"] {
        assert!(!page.contains(loaded), "{loaded}");
    }
}

#[test]
fn a_page_has_a_cell_for_each_agent_and_each_sample() {
    let pair = page("solver_checker", "How much is 2+2?");
    for part in
        ["<h3>Solver</h3>", "<h3>Checker</h3>", "Blind drafts", "agreed (independent)", "id=\"answer\">4<"]
    {
        assert!(pair.contains(part), "{part}: {pair}");
    }
    let vote = page("vote_number", "How much is 2+2?");
    assert!(vote.contains("<h3>Sample 1, Solver</h3>") && vote.contains("% certain after"), "{vote}");
    assert!(!vote.contains("moved from"), "samples are no changes of each other: {vote}");
}
