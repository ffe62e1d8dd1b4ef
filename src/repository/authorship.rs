//! The authors of a change, as the commits of its branch name them.
//!
//! The input is a base and a branch. The output is the author of the commit that lands, and the lines that credit others. A
//! commit can claim any author: these claims are not proven, and no decision depends on them.

use serde::{Deserialize, Serialize};

use super::error::RepositoryError;
use super::git::{GitCall, Repository};
use super::oid::Oid;

/// The most lines that credit someone, which are more than a person would write.
const CREDITS_MAX: usize = 50;

/// The longest name, mail address or value of a trailer, in characters.
const CHARS_MAX: usize = 200;

/// The trailers that credit an author.
const CREDIT_KEYS: [&str; 2] = ["Signed-off-by", "Co-authored-by"];

/// The authors of a change.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Authorship {
    pub name: String,
    pub mail: String,
    /// Lines for the end of the message, such as `Signed-off-by: NAME <MAIL>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credits: Vec<String>,
}

impl Repository {
    /// Returns the authors of the commits that are on a branch but not on its base. The author of the first commit becomes the
    /// author, and the other authors become co-authors. Returns `None` if git could not write the author of some commit again.
    ///
    /// Returns [`RepositoryError`] if git fails.
    pub fn read_authorship(&self, base: &Oid, branch: &str) -> Result<Option<Authorship>, RepositoryError> {
        let branch = self.commit_of(branch)?;
        let not_in_base = format!("^{base}");
        let words = [
            "-c",
            "trailer.separators=:",
            "log",
            "--reverse",
            "--no-merges",
            "--no-show-signature",
            "--no-color",
            "--encoding=UTF-8",
            "--format=%x00%an%n%ae%n%(trailers:only,unfold)",
            branch.as_str(),
            &not_in_base,
            "--",
        ];
        let out = self.must(&GitCall::new(&words))?;
        Ok(read_log(&String::from_utf8_lossy(&out)))
    }
}

/// Reads the output of `git log`: for each commit a NUL, its author's name and mail address on a line each, and its trailers.
fn read_log(text: &str) -> Option<Authorship> {
    let mut found: Option<Authorship> = None;
    let mut credits: Vec<String> = Vec::new();
    for commit in text.split('\0').skip(1) {
        let mut lines = commit.lines();
        let (name, mail) = (read_name(lines.next()?)?, read_name(lines.next()?)?);
        match &found {
            None => found = Some(Authorship { name, mail, credits: Vec::new() }),
            Some(first) if (&first.name, &first.mail) != (&name, &mail) => {
                add_credit(&mut credits, format!("Co-authored-by: {name} <{mail}>"));
            }
            Some(_) => {}
        }
        for (key, value) in lines.filter_map(|line| line.split_once(':')) {
            let credit = CREDIT_KEYS.iter().find(|known| known.eq_ignore_ascii_case(key.trim()));
            if let Some(credit) = credit
                && let Some(value) = read_line(value)
            {
                add_credit(&mut credits, format!("{credit}: {value}"));
            }
        }
    }
    Some(Authorship { credits, ..found? })
}

fn add_credit(credits: &mut Vec<String>, line: String) {
    if credits.len() < CREDITS_MAX && !credits.contains(&line) {
        credits.push(line);
    }
}

/// Returns a name or an address if git can write it again.
fn read_name(text: &str) -> Option<String> {
    read_line(text).filter(|text| !text.contains(['<', '>']))
}

/// Returns a text without the space around it, if it is a single line of bounded length.
fn read_line(text: &str) -> Option<String> {
    let text = text.trim();
    let is_line = !text.is_empty() && text.chars().count() <= CHARS_MAX && !text.contains(char::is_control);
    if is_line { Some(text.to_owned()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_first_author_and_credits_others() {
        let listed = "\0Ada\nada@x\nSigned-off-by: Ada <ada@x>\nConsensus-Sequence: 9\n\0Bob\nbob@x\nsigned-off-by: Bob <bob@x>\n\0Ada\nada@x\nSigned-off-by: Ada <ada@x>\n";
        let found = read_log(listed).unwrap();
        assert_eq!((found.name.as_str(), found.mail.as_str()), ("Ada", "ada@x"));
        let credits =
            ["Signed-off-by: Ada <ada@x>", "Co-authored-by: Bob <bob@x>", "Signed-off-by: Bob <bob@x>"];
        assert_eq!(found.credits, credits);
        for bad in ["", "\0\nada@x\n", "\0Ada <b>\nada@x\n", "\0Ada\n\n"] {
            assert_eq!(read_log(bad), None, "{bad:?}");
        }
    }
}
