//! The words of this process's command, as the manifest of a batch notes them: without everything that may be secret.

/// Returns the words of the command. They lack the shard, which differs between processes.
pub(super) fn command_words() -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut is_left_out, mut is_launch) = (false, false);
    for word in std::env::args_os().skip(1) {
        let word = word.to_string_lossy().into_owned();
        if std::mem::take(&mut is_left_out) {
            continue;
        }
        if std::mem::take(&mut is_launch) {
            words.push(without_secrets(&word));
            continue;
        }
        let (name, value) = word.split_once('=').map_or((&*word, None), |(name, value)| (name, Some(value)));
        if name == "--launch" {
            is_launch = value.is_none();
            words.push(value.map_or(word.clone(), |value| format!("--launch={}", without_secrets(value))));
        } else if let "--shard" | "--redact-pattern" = name {
            is_left_out = value.is_none();
            words.extend((name != "--shard").then(|| format!("{name}=…")));
        } else {
            // The query of an address may hold a key.
            let address = word.split_once('?').filter(|(address, _)| address.contains("://"));
            words.push(address.map_or(word.clone(), |(address, _)| format!("{address}?…")));
        }
    }
    words
}

/// Returns the command of a server without the values of flags whose names say that they are secret.
fn without_secrets(command: &str) -> String {
    // A command that does not split into words is not written down at all.
    let Some(words) = shlex::split(command) else { return "…".to_owned() };
    let (mut shown, mut is_secret) = (Vec::new(), false);
    for word in &words {
        if std::mem::take(&mut is_secret) {
            shown.push("…".to_owned());
            continue;
        }
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        let has_value = name.len() < word.len();
        let lower = name.to_ascii_lowercase();
        let is_named = ["key", "token", "secret", "password"].iter().any(|kind| lower.contains(kind));
        is_secret = is_named && !has_value && name.starts_with('-');
        shown.push(if is_named && has_value { format!("{name}=…") } else { word.clone() });
    }
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_command_is_written_without_secrets() {
        for (command, shown) in [
            ("vllm --max-model-len 8192", "vllm --max-model-len 8192"),
            ("vllm --api-key 'two words' --port 1", "vllm --api-key … --port 1"),
            ("vllm --api-key=abc --hf-token def", "vllm --api-key=… --hf-token …"),
            ("env HF_TOKEN=abc vllm", "env HF_TOKEN=… vllm"),
            ("vllm --api-key 'open", "…"),
        ] {
            assert_eq!(without_secrets(command), shown);
        }
    }
}
