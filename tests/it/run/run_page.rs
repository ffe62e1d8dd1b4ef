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
fn page_escapes_hostile_text_and_loads_nothing() {
    let page = page("solver_checker", "<script>alert(1)</script>\u{1b}[31m\u{202e}");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("default-src 'none'"), "{page}");
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'), "{page}");
    for loaded in ["src=", "<link", "url(", "@import"] {
        assert!(!page.contains(loaded), "{loaded}");
    }
}

#[test]
fn page_has_cell_per_agent_and_sample() {
    let pair = page("solver_checker", "How much is 2+2?");
    for part in
        ["<h3>Sample 1, Solver</h3>", "<h3>Checker</h3>", "Votes", "agreed (independent)", "id=\"answer\">4<"]
    {
        assert!(pair.contains(part), "{part}: {pair}");
    }
    let vote = page("vote_number", "How much is 2+2?");
    assert!(vote.contains("<h3>Sample 1, Solver</h3>") && vote.contains("% certain after"), "{vote}");
    assert!(!vote.contains("moved from"), "samples are no changes of each other: {vote}");
}

#[test]
fn page_shows_council_form_as_fields() {
    let page = page("council_tripartite", "How much is 2+2?");
    assert!(page.contains("Confidence: 0.95") && page.contains("Veto: no"), "{page}");
    assert!(!page.contains("&quot;confidence&quot;"), "no form is shown as JSON: {page}");
}

#[test]
fn review_page_shows_finding_at_its_line() {
    let folder = Folder::new();
    let change = "--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-fn b() {}\n+fn b() { <b>panic</b> }\n";
    folder.write("change.patch", change);
    let words = ["review", "--change", "change.patch", "--mock", "--verdict", "reject"];
    Finished::of(consensus(&folder).args(words)).exits(3);
    let page = Finished::of(consensus(&folder).args(["show", "--last", "--format", "html"])).exits(0).stdout;
    assert!(page.contains("<h1>Review of a.rs</h1>"), "{page}");
    let (_, behind) = page.split_once("class=\"line added\"").unwrap_or_else(|| panic!("{page}"));
    let (line, findings) = behind.split_once("</div>").unwrap();
    assert!(line.contains("+fn b() { &lt;b&gt;panic"), "{line}");
    assert!(findings.trim_start().starts_with("<div class=\"finding\"><b>Quality</b>"), "{findings}");
    assert!(page.contains("3 of 4 reviewers must approve"), "{page}");
}
