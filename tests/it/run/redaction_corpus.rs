//! Counts what redaction catches, and what it wrongly takes for a secret.
//!
//! `redaction_corpus.tsv` holds strings that must not leave the machine, by class, with keys drawn anew from the forms that
//! their issuers document. Ordinary prose and code are the sources and the change logs of crates that this program is
//! built from: other people wrote them, and the lock file pins them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use protocol::text::redact::{Redactor, tokens};

/// The least share of each class that must be caught, in percent.
const CAUGHT_PERCENT_MIN: usize = 90;

/// The most lines of ten thousand in which something may be replaced.
const ALARMS_MAX: usize = 100;

/// As many lines of ordinary text of each kind are looked at.
const ORDINARY_LINES: usize = 10_000;

/// So many characters of a secret in a row tell too much of it.
const TELLING_CHARS: usize = 5;

/// Crates whose code or change logs name few addresses, keys and phones on purpose.
const CRATES: [&str; 6] = ["clap_builder", "indicatif", "regex", "serde_json", "tokio", "tracing-subscriber"];

fn redactor() -> Redactor {
    Redactor::default()
}

/// Puts drawn characters in place of `{w36}` and its like.
fn drawn(text: &str, random: &mut fastrand::Rng) -> String {
    let letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, (body, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        let (kind, count) = body.split_at(1);
        let signs: String = match kind {
            "w" => letters.to_owned(),
            "h" => "0123456789abcdef".to_owned(),
            "u" => format!("{letters}-_"),
            "A" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".to_owned(),
            "a" => "abcdefghijklmnopqrstuvwxyz0123456789".to_owned(),
            "d" => "123456789".to_owned(),
            "b" => format!("{letters}+/"),
            _ => panic!("`{text}` has no such kind of characters: {kind}"),
        };
        let signs: Vec<char> = signs.chars().collect();
        out.push_str(before);
        out.extend((0..count.parse().unwrap()).map(|_| signs[random.usize(..signs.len())]));
        rest = after;
    }
    out + rest
}

/// Splits a line of the corpus into the text and the secrets in it.
fn secrets(marked: &str) -> (String, Vec<String>) {
    let secrets = marked.split('«').skip(1).map(|part| part.split('»').next().unwrap().to_owned());
    (marked.replace(['«', '»'], ""), secrets.collect())
}

/// Whether a text tells so much of a secret that a reader can guess the rest.
fn tells(redacted: &str, secret: &str) -> bool {
    let text = tokens(redacted).fold(redacted.to_owned(), |text, token| text.replace(token, ""));
    let secret: Vec<char> = secret.chars().filter(|c| !c.is_whitespace()).collect();
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let width = TELLING_CHARS.min(secret.len());
    secret.windows(width).any(|part| text.contains(&part.iter().collect::<String>()))
}

/// At least nine of ten secrets of each class in the corpus are caught.
#[test]
fn catches_most_secrets_of_each_class() {
    let corpus = include_str!("redaction_corpus.tsv");
    let mut random = fastrand::Rng::with_seed(7);
    let mut classes: BTreeMap<&str, (usize, Vec<String>)> = BTreeMap::new();
    for line in corpus.lines().filter(|line| !line.starts_with('#')) {
        let (class, marked) = line.split_once('\t').unwrap();
        let (text, secrets) = secrets(&drawn(marked, &mut random).replace("\\n", "\n"));
        let redacted = redactor().redact(&text);
        let (count, missed) = classes.entry(class).or_default();
        *count += 1;
        if secrets.iter().any(|secret| tells(&redacted, secret)) {
            missed.push(format!("{text} → {redacted}"));
        }
    }
    assert!(classes.values().map(|(count, _)| count).sum::<usize>() >= 200);
    for (class, (count, missed)) in &classes {
        let caught = count - missed.len();
        println!("{class}: {caught} of {count} caught; missed: {missed:#?}");
    }
    for (class, (count, missed)) in classes {
        assert!((count - missed.len()) * 100 >= CAUGHT_PERCENT_MIN * count, "{class}: missed {missed:#?}");
    }
}

/// Returns the folders of [`CRATES`], where Cargo keeps them.
fn crate_folders() -> Vec<PathBuf> {
    let output = |program: &str, words: &[&str]| {
        let output =
            Command::new(program).args(words).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    // Crates for other platforms need not be on this machine.
    let host = String::from_utf8(output("rustc", &["--print", "host-tuple"])).unwrap();
    let words = ["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform"];
    let metadata = output(env!("CARGO"), &[&words[..], &[host.trim()]].concat());
    let metadata: serde_json::Value = serde_json::from_slice(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let chosen = packages.filter(|package| CRATES.contains(&package["name"].as_str().unwrap()));
    chosen
        .map(|package| Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned())
        .collect()
}

/// Collects the lines of the files below a folder that end like this, in the order of their names.
fn lines(folder: &Path, ending: &str, into: &mut Vec<String>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            lines(&path, ending, into);
        } else if path.to_string_lossy().ends_with(ending) {
            into.extend(std::fs::read_to_string(path).unwrap().lines().map(str::to_owned));
        }
    }
}

/// At most one line in a hundred of ordinary prose and of ordinary code has anything replaced.
#[test]
fn ordinary_text_is_hardly_replaced() {
    for (kind, ending) in [("prose", ".md"), ("code", ".rs")] {
        let mut ordinary = Vec::new();
        for folder in crate_folders() {
            lines(&folder, ending, &mut ordinary);
        }
        ordinary.retain(|line| !line.trim().is_empty());
        // Spread over all of them, so that no crate is half of it.
        let step = (ordinary.len() / ORDINARY_LINES).max(1);
        let looked_at: Vec<&String> = ordinary.iter().step_by(step).take(ORDINARY_LINES).collect();
        let count = looked_at.len();
        let alarms: Vec<String> = looked_at
            .into_iter()
            .filter_map(|line| Some(redactor().redact(line)).filter(|redacted| redacted != line))
            .collect();
        println!("{kind}: {} of {count} lines had something replaced: {alarms:#?}", alarms.len());
        assert!(count > ORDINARY_LINES / 3, "{kind}: only {count} lines");
        assert!(alarms.len() * ORDINARY_LINES <= ALARMS_MAX * count, "{kind}: {alarms:#?}");
    }
}

#[test]
fn numbers_that_only_look_like_secrets_stay() {
    for text in [
        "i32::MAX is 2147483647, and u32::MAX 4294967295; 2147483648 is one more.",
        "What is 4155552671 + 612345678?",
        "Built 2024-01-05 10:20:30 at 1712345678 s, 1712345678901 ms.",
        "The total is 1 234 567 890 euros, or 12 345 678 dollars.",
        "ISBN 978-3-16-148410-0, DOI 10.1000/182, RFC 3966, 3.14159265358979, 1e-10",
        "1920x1080, 192 KiB, 10.5.2, 0x7fffffff, 550e8400-e29b-41d4-a716-446655440000",
        "Figures: 12.5 13.7 14.2 15.9 16.1 and 100 200 300 400 500 600 700.",
        "Rows 1000 2000 3000 4000, pages 1234-1240, 24/7, 9-to-5, 1/2/3/4",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709 is the digest of nothing.",
        "Meet at the dot, look at example.com, ask at 5.",
        "The cookie: a small cake. The pin is bent. The passphrase is long.",
        "clap@4.5, @types/node, user@host, x @ 1..=5, decorators such as @property",
    ] {
        assert_eq!(redactor().redact(text), text);
    }
}
