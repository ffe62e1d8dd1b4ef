//! A model that answers every protocol well and at once, so that only what a sweep bends keeps a run from agreement.
//!
//! In: a request. Out: the tests' sensible answer, with the doubts taken out of it, and an approving review. The same request
//! has the same answer, so that a run that is resumed comes to the same end.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Folder, SENSIBLE};

/// What every run is asked, unless it reviews a change.
pub(crate) const QUESTION: &str = "How much is 2+2?";

/// A change by one line.
const DIFF: &str = "--- a/sum.py\n+++ b/sum.py\n@@ -1 +1 @@\n-total = a + b\n+total = b + a\n";

/// Returns the name of the form that a request wants, and the form.
pub(crate) fn form(request: &Value) -> (Option<&str>, &Value) {
    let schema = &request["response_format"]["json_schema"];
    (schema["name"].as_str(), &schema["schema"])
}

pub(crate) fn honest(request: &Value) -> String {
    match form(request).0 {
        Some("review") => {
            json!({"findings": [], "summary": "It turns a sum.", "verdict": "approve", "confidence": 90})
                .to_string()
        }
        Some("response") => SENSIBLE(request).replace("\"confidence\":0.5", "\"confidence\":0.9"),
        Some("verification") => {
            let check =
                json!({"claim": "it is the sum", "source": "task", "quote": QUESTION, "verdict": "holds"});
            json!({"checks": [check], "reasoning": "it holds", "veto": false, "confidence": 0.9}).to_string()
        }
        Some(_) | None => {
            SENSIBLE(request).replace("{\"canonical_text\":\"four\"}", "{\"canonical_text\":\"4\"}")
        }
    }
}

/// Writes the change into a folder, to be reviewed there.
pub(crate) fn write_change(folder: &Folder) -> PathBuf {
    folder.write("change.diff", DIFF)
}
