//! The authors of a change, as the commits of its branch name them.
//!
//! The input is a base and a branch. The output is the author of the commit that lands, and the lines that credit others. A
//! commit claims whatever it likes: nothing here is proven, and nothing is decided by it.

use serde::{Deserialize, Serialize};

use super::error::RepositoryError;
use super::git::{GitCall, Repository};
use super::oid::Oid;

/// The most lines of credit, which is more than a person would write.
const CREDITS_MAX: usize = 50;

/// The longest name, mail address or line, in characters.
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
    /// Returns the authors of the commits that a branch has made since it left its base. The author of the first commit is the
    /// author; the others are named as co-authors. Returns `None` if a commit has no author that could be written again.
    ///
    /// # Errors
    ///
    /// [`RepositoryError`] if git fails.
    pub fn authorship(&self, base: &Oid, branch: &str) -> Result<Option<Authorship>, RepositoryError> {
        let branch = self.commit_of(branch)?;
        let since = format!("^{base}");
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
            &since,
            "--",
        ];
        let out = self.must(&GitCall::new(&words))?;
        Ok(read(&String::from_utf8_lossy(&out)))
    }
}

/// Reads the list of git: for each commit a NUL, its author's name and mail address on a line each, and its trailers.
fn read(text: &str) -> Option<Authorship> {
    let mut found: Option<Authorship> = None;
    let mut credits: Vec<String> = Vec::new();
    for commit in text.split('\0').skip(1) {
        let mut lines = commit.lines();
        let (name, mail) = (writable_name(lines.next()?)?, writable_name(lines.next()?)?);
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
                && let Some(value) = single_line(value)
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
fn writable_name(text: &str) -> Option<String> {
    single_line(text).filter(|text| !text.contains(['<', '>']))
}

/// Returns a text if it is a single line of bounded length.
fn single_line(text: &str) -> Option<String> {
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
        let found = read(listed).unwrap();
        assert_eq!((found.name.as_str(), found.mail.as_str()), ("Ada", "ada@x"));
        let credits =
            ["Signed-off-by: Ada <ada@x>", "Co-authored-by: Bob <bob@x>", "Signed-off-by: Bob <bob@x>"];
        assert_eq!(found.credits, credits);
        for bad in ["", "\0\nada@x\n", "\0Ada <b>\nada@x\n", "\0Ada\n\n"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
