//! Decides whether a reply is whole, cut or refused, by the reason that its server gave for its end.
//!
//! The input is that reason, as the server wrote it. The output is a [`Finish`], or nothing for a reason that is not in
//! the lists here. Nothing is guessed: a reply whose end is unknown has failed, because it may be cut in the middle.

use protocol::Finish;

/// The reasons of a reply that the model ended.
const WHOLE: [&str; 14] = [
    "complete",
    "completed",
    "end_of_text",
    "end_turn",
    "endoftext",
    "eos",
    "eos_token",
    "finish",
    "finished",
    "normal",
    "stop",
    "stop_sequence",
    "stop_token",
    "stop_words",
];

/// The reasons of a reply that a limit cut off.
const CUT: [&str; 16] = [
    "context_length",
    "context_length_exceeded",
    "context_window_exceeded",
    "incomplete",
    "length",
    "length_limit",
    "max_completion_tokens",
    "max_length",
    "max_new_tokens",
    "max_output_tokens",
    "max_token",
    "max_tokens",
    "model_context_window_exceeded",
    "model_length",
    "token_limit",
    "truncated",
];

/// The reasons of a reply that the model or its server refused.
const REFUSED: [&str; 19] = [
    "blocked",
    "blocklist",
    "content_filter",
    "content_filtered",
    "content_moderation",
    "content_policy",
    "error_toxic",
    "filtered",
    "flagged",
    "guardrail_intervened",
    "guardrails",
    "image_safety",
    "moderation",
    "prohibited_content",
    "recitation",
    "refusal",
    "safety",
    "sensitive",
    "spii",
];

/// Returns how a reply with this reason ended. Case, hyphens, and Gemini's prefix `FINISH_REASON_` do not matter.
pub(super) fn finish(reason: &str) -> Option<Finish> {
    let plain = reason.trim().to_ascii_lowercase().replace(['-', ' '], "_");
    let plain = plain.strip_prefix("finish_reason_").unwrap_or(&plain);
    if WHOLE.contains(&plain) {
        Some(Finish::Stop)
    } else if CUT.contains(&plain) {
        Some(Finish::Length)
    } else if REFUSED.contains(&plain) {
        Some(Finish::Refused)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_reasons_alone_end_a_reply() {
        for (reason, expected) in [
            ("stop", Some(Finish::Stop)),
            ("STOP", Some(Finish::Stop)),
            ("eos_token", Some(Finish::Stop)),
            ("MAX_TOKENS", Some(Finish::Length)),
            ("FINISH_REASON_MAX_TOKENS", Some(Finish::Length)),
            ("model_length", Some(Finish::Length)),
            ("content-filter", Some(Finish::Refused)),
            ("SAFETY", Some(Finish::Refused)),
            ("abort", None),
            ("error", None),
            ("insufficient_system_resource", None),
            ("tool_calls", None),
            ("stop_the_world", None),
            ("", None),
        ] {
            assert_eq!(finish(reason), expected, "{reason:?}");
        }
    }
}
