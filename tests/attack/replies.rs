//! Replies that are bent: values, names, nesting and wrapping are drawn, and an oracle says which of them may count.
//!
//! In: the form that an honest model would write. Out: a mutated reply to every request of one author for that form, also
//! when it is asked again. No reply counts that the oracle forbids, and one that is not bent does count. Nothing that a reply
//! holds reaches a terminal raw.

mod mutation;
mod oracle;

use std::sync::{Arc, Mutex};

use fastrand::Rng;
use serde_json::Value;

use crate::honest::{QUESTION, form, honest, write_change};
use crate::support::{Act, Finished, Folder, Server, completion, consensus, model};
use crate::sweep::{REPLIES, sweep};

/// A form, and whose.
struct Target {
    form: &'static str,
    author: &'static str,
    words: &'static [&'static str],
    /// Whether a reply may count, as it was read and as the honest one is.
    may_count: fn(&Value, &Value) -> bool,
    /// Whether it has counted, by the exit code and the result.
    has_counted: fn(i32, &Value) -> bool,
}

const TARGETS: [Target; 4] = [
    Target {
        form: "envelope",
        author: "Checker",
        words: &[
            "--roleset",
            "solver_checker",
            "--talk",
            "always",
            "--max-rounds",
            "1",
            "--prompt",
            QUESTION,
        ],
        may_count: oracle::envelope,
        has_counted: |code, _| code == 0,
    },
    Target {
        form: "ballot",
        author: "Optimist",
        words: &[
            "--roleset",
            "panel_personas",
            "--members",
            "optimist,analyst",
            "--max-rounds",
            "1",
            "--prompt",
            QUESTION,
        ],
        may_count: oracle::ballot,
        has_counted: |_, result| {
            let evaluations = result["panel"]["evaluations"].as_array();
            evaluations.is_some_and(|all| all.iter().any(|one| one["evaluator"] == "Optimist"))
        },
    },
    Target {
        form: "verification",
        author: "Ethos",
        words: &["--roleset", "council_tripartite", "--max-rounds", "1", "--prompt", QUESTION],
        may_count: oracle::verification,
        has_counted: |code, _| code == 0,
    },
    Target {
        form: "review",
        author: "Security",
        words: &["--roleset", "reviewers_f1", "--file", "change.diff", "--prompt", "May it be applied?"],
        may_count: oracle::review,
        has_counted: |_, result| {
            let reviews = result["approval"]["reviews"].as_array();
            let approves =
                |one: &Value| one["reviewer"] == "Security" && one["opinion"]["approve"].is_object();
            reviews.is_some_and(|all| all.iter().any(approves))
        },
    },
];

/// Whether a request is for this form by this author.
fn is_of(target: &Target, request: &Value) -> bool {
    let says_who = |text: &Value| text.as_str().is_some_and(|text| text.contains(target.author));
    let (name, schema) = form(request);
    let role = &schema["anyOf"][0]["properties"]["role"]["enum"][0];
    name == Some(target.form) && (says_who(role) || says_who(&request["messages"][0]["content"]))
}

/// A reply that was sent.
#[derive(Clone, Debug)]
struct Sent {
    text: String,
    may_count: bool,
}

#[test]
fn no_reply_counts_that_the_oracle_forbids() {
    let ends = sweep("replies", REPLIES.of(usize::MAX), 2, |index, draw| {
        let target = &TARGETS[index % TARGETS.len()];
        // The first of each form is not bent: it shows that the others could count.
        let is_bent = index >= TARGETS.len();
        let (counted, sent) = tried(target, is_bent.then(|| draw.u64(..)));
        let Some(last) = sent.last() else {
            panic!("no request asked {} for a {}", target.author, target.form)
        };
        assert!(
            !counted || sent.iter().any(|one| one.may_count),
            "a {} counts that must not: {}",
            target.form,
            last.text
        );
        assert!(counted || is_bent, "an honest {} does not count: {}", target.form, last.text);
        match (counted, last.may_count) {
            (true, _) => "counted and may",
            (false, true) => "did not count and may",
            (false, false) => "did not count and must not",
        }
    });
    assert!(ends["did not count and must not"] > ends["counted and may"], "{ends:?}");
}

/// Runs the protocol with replies bent by this seed. Returns whether one has counted, and all that were sent.
fn tried(target: &'static Target, seed: Option<u64>) -> (bool, Vec<Sent>) {
    let sent: Arc<Mutex<Vec<Sent>>> = Arc::default();
    let log = Arc::clone(&sent);
    let server = Server::start(move |request| {
        let asked = request.json();
        if !is_of(target, &asked) {
            return model(honest)(request);
        }
        let base: Value = serde_json::from_str(&honest(&asked)).unwrap();
        let (text, read) = match seed {
            Some(seed) => mutation::mutate(&base, &mut Rng::with_seed(seed)),
            None => (base.to_string(), Some(base.clone())),
        };
        let may_count = read.is_some_and(|read| (target.may_count)(&read, &base));
        log.lock().unwrap().push(Sent { text: text.clone(), may_count });
        vec![Act::Send(completion(&text))]
    });
    let folder = Folder::new();
    write_change(&folder);
    let run = ["run", "--model", "tiny-model", "--seed", "1", "--base-url", &server.url()].map(str::to_owned);
    let finished = Finished::of(consensus(&folder).args(run).args(target.words));
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!([0, 3, 4, 6].contains(&finished.code), "exit code {}: {said}", finished.code);
    assert!(!said.contains(['\u{1b}', '\u{7}', '\u{202e}']), "raw on a terminal: {said:?}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    let sent = sent.lock().unwrap().clone();
    ((target.has_counted)(finished.code, &folder.result()), sent)
}
