//! Turns the user's words into the command of a server.

use std::fmt;
use std::path::Path;

use super::error::LaunchError;
use protocol::text::escape;

/// A server that can be launched by its name alone.
#[derive(Clone, Copy, Debug)]
pub struct Launcher {
    /// The program's name.
    pub name: &'static str,
    /// The arguments that name a model which is a file or folder on this machine.
    pub local: &'static [&'static str],
    /// The arguments that name a model which the server knows or fetches by name.
    pub named: &'static [&'static str],
    /// Its other arguments, separated by single spaces.
    pub others: &'static str,
}

/// The servers that are known by name, which differ only in data.
///
/// llama.cpp has one slot for each of two agents, each with its own part of the cache, so that neither agent's
/// conversation evicts the other's. Each slot has 8192 tokens of context.
pub const LAUNCHERS: [Launcher; 2] = [
    Launcher {
        name: "llama-server",
        local: &["--model", "{model}"],
        named: &["-hf", "{model}"],
        others: "--host 127.0.0.1 --port {port} --parallel 2 --ctx-size 16384 --no-kv-unified",
    },
    Launcher {
        name: "vllm",
        local: &["serve", "{model}"],
        named: &["serve", "{model}"],
        others: "--host 127.0.0.1 --port {port} --enable-prefix-caching --enable-prompt-tokens-details",
    },
];

/// A server's command, whose port is not chosen yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LaunchCommand {
    /// The words, with `{port}` where the port goes.
    words: Vec<String>,
}

impl LaunchCommand {
    /// Reads a command. It is a known server with further arguments of its own, such as `vllm --max-model-len 8192`, or
    /// a whole command with `{port}` and, if it needs one, `{model}`.
    ///
    /// Words are split as a shell splits them, but no shell reads them.
    ///
    /// Returns [`LaunchError::Command`], which says what to write instead.
    pub fn parse(text: &str, model: Option<&str>) -> Result<Self, LaunchError> {
        let Some(given) = shlex::split(text).filter(|words| !words.is_empty()) else {
            return Err(cannot_use(text, "it is empty, or a quote in it is not closed"));
        };
        // A project's file may name the model. As an option, it would change what the user's own command does.
        if let Some(model) = model
            && model.starts_with('-')
        {
            let why = format!("the model `{model}` would be read as an option; write ./{model} for a file");
            return Err(cannot_use(text, &why));
        }
        let (program, rest) = (&given[0], &given[1..]);
        let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_template = given.iter().any(|word| word.contains("{port}"));
        let mut words = match LAUNCHERS.iter().find(|launcher| launcher.name == name && !is_template) {
            Some(launcher) => {
                let Some(model) = model else {
                    let why = format!("name the model with --model PATH or --model NAME for {name}");
                    return Err(cannot_use(text, &why));
                };
                let known =
                    launcher.model_arguments(model)?.iter().copied().chain(launcher.others.split(' '));
                let known = known.map(str::to_owned);
                [program.clone()].into_iter().chain(known).chain(rest.iter().cloned()).collect()
            }
            None => given.clone(),
        };
        if !words.iter().any(|word| word.contains("{port}")) {
            let known = LAUNCHERS.map(|launcher| launcher.name).join(" or ");
            let why = format!(
                "write {known}, or a command that says where its port goes, such as \"my-server --model {{model}} --port {{port}}\""
            );
            return Err(cannot_use(text, &why));
        }
        for word in &mut words {
            if word.contains("{model}") {
                let Some(model) = model else {
                    return Err(cannot_use(text, "it needs a model; name one with --model"));
                };
                // Another program, such as a shell, may read the model inside a longer word.
                let is_plain = model.chars().all(|c| c.is_alphanumeric() || "._/:@+-".contains(c));
                if word != "{model}" && !is_plain {
                    let why = format!(
                        "the model `{model}` has characters that `{word}` could interpret; give {{model}} a word to itself"
                    );
                    return Err(cannot_use(text, &why));
                }
                *word = word.replace("{model}", model);
            }
        }
        Ok(Self { words })
    }

    /// Returns the words with this port.
    pub fn words(&self, port: u16) -> Vec<String> {
        self.words.iter().map(|word| word.replace("{port}", &port.to_string())).collect()
    }
}

/// The program and its arguments, as one line.
impl fmt::Display for LaunchCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape::terminal(&self.words.join(" ")))
    }
}

impl Launcher {
    /// Returns the arguments that name the model for this server.
    fn model_arguments(&self, model: &str) -> Result<&'static [&'static str], LaunchError> {
        if Path::new(model).exists() {
            return Ok(self.local);
        }
        let looks_like_a_file =
            model.starts_with(['/', '.', '~']) || Path::new(model).extension().is_some_and(|e| e == "gguf");
        if looks_like_a_file {
            return Err(LaunchError::Command(format!("--model `{model}`: there is no such file")));
        }
        Ok(self.named)
    }
}

fn cannot_use(command: &str, why: &str) -> LaunchError {
    LaunchError::Command(format!("--launch `{command}`: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, model: Option<&str>) -> Vec<String> {
        LaunchCommand::parse(text, model).unwrap().words(4321)
    }

    #[track_caller]
    fn assert_refused(text: &str, model: Option<&str>, part: &str) {
        let message = LaunchCommand::parse(text, model).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }

    #[test]
    fn known_server_takes_arguments_and_path() {
        let vllm = words("/opt/venv/bin/vllm --max-model-len 8192", Some("Qwen/Qwen2.5-7B-Instruct"));
        assert_eq!(vllm[..3], ["/opt/venv/bin/vllm", "serve", "Qwen/Qwen2.5-7B-Instruct"]);
        assert_eq!(vllm[5..7], ["--port", "4321"]);
        assert_eq!(vllm[vllm.len() - 2..], ["--max-model-len", "8192"]);
        assert_eq!(words("llama-server", Some("org/model-GGUF"))[1..3], ["-hf", "org/model-GGUF"]);
        assert_eq!(words("llama-server", Some("Cargo.toml"))[1..3], ["--model", "Cargo.toml"]);
    }

    /// A command of one's own is split as a shell does and is never run by one.
    #[test]
    fn own_command_is_split_without_a_shell() {
        let own = words("python 'my server.py' --port={port} -m {model}", Some("a b; rm -rf /"));
        assert_eq!(own, ["python", "my server.py", "--port=4321", "-m", "a b; rm -rf /"]);
    }

    #[test]
    fn mistakes_say_what_to_write() {
        assert_refused("", None, "it is empty");
        assert_refused("python 'x", None, "a quote in it is not closed");
        assert_refused("vllm", None, "name the model with --model");
        assert_refused("my-server --port 1", None, "says where its port goes");
        assert_refused("my-server {port} {model}", None, "name one with --model");
        assert_refused("llama-server", Some("./missing.gguf"), "there is no such file");
        assert_refused("vllm", Some("--trust-remote-code"), "would be read as an option");
    }
}
