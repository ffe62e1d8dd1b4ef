//! The probability of a word, read from a server's report on each token.
//!
//! The input is the tokens of a reply, with the likeliest others in each place, and the name of a field that holds
//! `yes` or `no`. The output is the probability of `yes` against `no` in that place. There is no output if the tokens
//! do not add up to the text, or if neither word is among the likeliest, because a guessed figure is not a figure.

use serde::Deserialize;

/// A server's report on the tokens of a reply, or of a part of it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Logprobs {
    pub(super) content: Option<Vec<Token>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Token {
    #[serde(flatten)]
    chosen: Likely,
    /// The likeliest tokens in its place. Most servers list the chosen one among them.
    top_logprobs: Vec<Likely>,
}

impl Token {
    fn bytes(&self) -> &[u8] {
        self.chosen.bytes.as_deref().unwrap_or(self.chosen.token.as_bytes())
    }
}

/// A token that is possible in a place, with its probability.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Likely {
    token: String,
    /// The natural logarithm of its probability.
    logprob: f64,
    /// Its bytes, if the token alone is not a whole character.
    bytes: Option<Vec<u8>>,
}

/// The least probability that the two words must have together. Below it, another word was meant, and only a grammar
/// prevented it.
const BOTH_MIN: f64 = 0.5;

/// Returns the probability of `yes` against `no` as the value of `field`, in ten-thousandths.
pub(super) fn yes(tokens: &[Token], text: &str, field: &str) -> Option<u16> {
    let key = format!("\"{field}\"");
    let after = text.rfind(&key)? + key.len();
    let value = text[after..].trim_start_matches([' ', '\n', '\t', ':', '"']);
    // Some servers also report the tokens of their reasoning and of the end mark, so the text is somewhere between
    // them.
    let reply: Vec<u8> = tokens.iter().flat_map(Token::bytes).copied().collect();
    let begin = reply.windows(text.len().max(1)).rposition(|part| part == text.as_bytes())?;
    let at = begin + text.len() - value.len();
    let mut end = 0;
    let token = tokens.iter().find(|token| {
        end += token.bytes().len();
        end > at
    })?;
    // The word in that place must be the one that its token begins.
    if !value.starts_with(word(&token.chosen.token)?) {
        return None;
    }
    let mut sum = [0.0, 0.0];
    let others: Vec<&Likely> = token.top_logprobs.iter().collect();
    if others.iter().any(|likely| likely.logprob > 0.0) {
        // No probability is above 1.
        return None;
    }
    for likely in if others.is_empty() { vec![&token.chosen] } else { others } {
        match word(&likely.token) {
            Some("yes") => sum[0] += likely.logprob.exp(),
            Some(_) => sum[1] += likely.logprob.exp(),
            None => {}
        }
    }
    let both = sum[0] + sum[1];
    // The share is between 0 and 1 and is rounded down, so the cast is exact.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10,000")]
    (both >= BOTH_MIN).then_some((sum[0] / both * 10_000.0 + 1e-6).floor() as u16)
}

/// Returns which of the two words a token begins, with or without the quotation mark before it.
fn word(token: &str) -> Option<&'static str> {
    let bare = token.trim_start_matches([' ', ':', '"']).to_ascii_lowercase();
    let bare = bare.trim_end_matches(['"', '}', ' ', '\n']);
    ["yes", "no"].into_iter().find(|word| !bare.is_empty() && word.starts_with(bare))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a reply in these tokens, with the likeliest tokens in the place of the one at `index`.
    fn tokens(parts: &[&str], index: usize, likely: &[(&str, f64)]) -> (Vec<Token>, String) {
        let top: Vec<_> =
            likely.iter().map(|(token, p)| json!({"token": token, "logprob": p.ln()})).collect();
        let token = |(i, part): (usize, &&str)| {
            let top = if i == index { top.clone() } else { vec![] };
            serde_json::from_value(json!({"token": part, "logprob": -0.1, "top_logprobs": top})).unwrap()
        };
        (parts.iter().enumerate().map(token).collect(), parts.concat())
    }

    #[test]
    fn the_probability_is_that_of_yes_against_no() {
        for (parts, index) in [
            (&["{\"a\":\"no\",", "\"sound\":", "\"yes", "\"}"][..], 2),
            (&["{\"sound\"", ": \"", "yes", "\"}", "<end>"][..], 2),
            (&["{\"é\":1,\"sound\": \"", "y", "es\"}"][..], 1),
        ] {
            let (tokens, text) =
                tokens(parts, index, &[("yes", 0.6), (" \"yes", 0.12), ("no", 0.18), ("ya", 0.1)]);
            assert_eq!(yes(&tokens, &text, "sound"), Some(8_000), "{parts:?}");
        }
    }

    #[test]
    fn what_does_not_add_up_says_nothing() {
        let parts = ["{\"sound\":\"", "yes", "\"}"];
        let (whole, text) = tokens(&parts, 1, &[("maybe", 1.0)]);
        assert_eq!(yes(&whole, &text, "sound"), None, "neither word is likely");
        assert_eq!(yes(&whole, "{\"sound\":\"no\"}", "sound"), None, "another word stands there");
        assert_eq!(yes(&whole, "{\"sure\":\"yes\"}", "sound"), None, "there is no such field");
        assert_eq!(yes(&[], &text, "sound"), None, "the server says nothing");
        let (whole, text) = tokens(&parts, 1, &[("maybe", 0.99), ("yes", 0.001)]);
        assert_eq!(yes(&whole, &text, "sound"), None, "neither word was meant");
        let (whole, text) = tokens(&parts, 1, &[("yes", 0.849_96), ("no", 0.150_04)]);
        assert_eq!(yes(&whole, &text, "sound"), Some(8_499), "it is never rounded up");
        let (whole, text) = tokens(&parts, 1, &[("yes", 2.0), ("no", 0.1)]);
        assert_eq!(yes(&whole, &text, "sound"), None, "no probability is above 1");
        // Without a list of others, only the chosen word is known.
        let (bare, text) = tokens(&parts, 9, &[]);
        assert_eq!(yes(&bare, &text, "sound"), Some(10_000));
    }

    #[test]
    fn reasoning_tokens_before_text_are_skipped() {
        let parts = ["{\"sound\":\"", " yes", "<think>", "{\"sound\":\"", "no", "\"}", "<end>"];
        let (tokens, _) = tokens(&parts, 4, &[("yes", 0.4), ("no", 0.6)]);
        assert_eq!(yes(&tokens, "{\"sound\":\"no\"}", "sound"), Some(4_000));
    }

    #[test]
    fn parts_of_characters_are_counted_by_their_bytes() {
        let list = json!([
            {"token": "\u{FFFD}", "logprob": 0.0, "bytes": [0xC3]}, {"token": "\u{FFFD}", "logprob": 0.0, "bytes": [0xA9]},
            {"token": "\"sound\":\"", "logprob": 0.0, "bytes": b"\"sound\":\""},
            {"token": "no", "logprob": -0.1, "top_logprobs": [{"token": "no", "logprob": -0.1}]},
            {"token": "\"}", "logprob": 0.0, "bytes": null, "top_logprobs": []},
        ]);
        let tokens: Vec<Token> = serde_json::from_value(list).unwrap();
        assert_eq!(yes(&tokens, "é\"sound\":\"no\"}", "sound"), Some(0));
    }
}
