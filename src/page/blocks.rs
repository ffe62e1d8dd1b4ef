//! A transcript in parts, for a page on which each looks different.
//!
//! The input is the text of a transcript. The output is its headings, the words of models, and its own words, in their order. A control
//! character in any of them is shown and not obeyed.

use serde::Serialize;

use protocol::text::escape;

/// A transcript, divided into parts that look different.
#[derive(Debug, Serialize)]
pub struct Blocks {
    parts: Vec<Block>,
}

#[derive(Debug, Serialize)]
struct Block {
    kind: BlockKind,
    text: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum BlockKind {
    Heading,
    /// The words of the task or of a model, whose lines begin with `>` in a transcript.
    Quote,
    Plain,
}

impl Blocks {
    /// Divides a transcript.
    pub fn new(transcript: &str) -> Self {
        let mut parts: Vec<Block> = Vec::new();
        for line in transcript.lines() {
            let (kind, text) = classify_line(line);
            match parts.last_mut() {
                Some(last) if last.kind == kind && kind != BlockKind::Heading => {
                    last.text.push('\n');
                    last.text.push_str(text);
                }
                Some(_) | None => parts.push(Block { kind, text: text.to_owned() }),
            }
        }
        parts.retain(|part| !part.text.trim().is_empty());
        for part in &mut parts {
            let text = part.text.trim_matches('\n');
            part.text = match part.kind {
                BlockKind::Plain => escape::terminal(&strip_marks(text)),
                BlockKind::Heading | BlockKind::Quote => escape::terminal(text),
            };
        }
        Self { parts }
    }
}

/// Returns words without the marks of Markdown, and without empty lines.
fn strip_marks(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix("- ").unwrap_or(line)).collect();
    lines.join("\n").replace("**", "")
}

fn classify_line(line: &str) -> (BlockKind, &str) {
    if let Some(text) = line.strip_prefix('>') {
        return (BlockKind::Quote, text.strip_prefix(' ').unwrap_or(text));
    }
    if let Some(text) = line.strip_prefix("## ").or_else(|| line.strip_prefix("# ")) {
        return (BlockKind::Heading, text);
    }
    // An emphasis of a whole line says nothing on a page that sets quotes apart.
    let text = line.strip_prefix('*').and_then(|line| line.strip_suffix('*'));
    (BlockKind::Plain, text.unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a model are set apart from the transcript's own words.
    #[test]
    fn model_words_are_set_apart() {
        let transcript = "# Run 1\n\n> a\n> ## **b**\n\n*note*\n\n- Status **SOLVED**.\n".to_owned();
        let blocks = Blocks::new(&transcript);
        let found: Vec<(BlockKind, &str)> =
            blocks.parts.iter().map(|part| (part.kind, part.text.as_str())).collect();
        assert!(
            found
                == [
                    (BlockKind::Heading, "Run 1"),
                    (BlockKind::Quote, "a\n## **b**"),
                    (BlockKind::Plain, "note\nStatus SOLVED.")
                ]
        );
    }
}
