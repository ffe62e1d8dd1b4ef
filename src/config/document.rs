//! A configuration file as it was read: its bytes, and each of its settings with its place.
//!
//! The input is the path of a file. The output is its text, and every setting in it by its dotted name, with its value as text and
//! its line. The file is read once and up to a bound, so the parsed bytes are those that are shown and digested. This module never
//! decides what a setting may do.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use reqwest::Url;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::bounded_read::read_to_string;
use super::error::ConfigError;
use crypto::Digest;
use protocol::text::escape;

/// The key whose value is shown without user name, password and query.
const URL: &str = "base_url";

/// One setting of a configuration file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Setting {
    /// The keys, the outermost first, such as `providers`, `lab` and `base_url`.
    pub keys: Vec<String>,
    /// The value, as TOML writes it; a base URL without user name, password and query.
    pub value: String,
    /// The file with the setting.
    pub file: PathBuf,
    /// The line in the file, from 1.
    pub line: usize,
}

impl Setting {
    /// Returns the dotted name, such as `providers.lab.base_url`.
    pub fn name(&self) -> String {
        join_keys(self.keys.iter().map(String::as_str))
    }

    /// Returns the place, such as `consensus.toml:3`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.file.display(), self.line)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} = {}", self.place(), self.name(), self.value)
    }
}

/// Returns keys as one name, as TOML writes it.
pub(super) fn join_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> String {
    keys.into_iter().map(quote_key).collect::<Vec<_>>().join(".")
}

fn quote_key(key: &str) -> String {
    let is_bare = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if is_bare && !key.is_empty() { key.to_owned() } else { escape::json_string(key) }
}

pub(super) struct TomlDocument {
    path: PathBuf,
    text: String,
}

impl TomlDocument {
    /// Reads a file; returns `None` if it does not exist.
    ///
    /// Returns [`ConfigError::Read`] if the file cannot be read, is too long or is not UTF-8, and [`ConfigError::File`] if it is not
    /// a regular file.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        let about = match std::fs::metadata(path) {
            Ok(about) => about,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ConfigError::Read { path: path.to_owned(), source }),
        };
        // Reading a pipe would block, and a device may have no end.
        if !about.is_file() {
            let why = "it is not a regular file".to_owned();
            return Err(ConfigError::File { path: path.to_owned(), why });
        }
        match read_to_string(path) {
            Ok(text) => Ok(Some(Self { path: path.to_owned(), text })),
            Err(source) => Err(ConfigError::Read { path: path.to_owned(), source }),
        }
    }

    /// Returns the file's path, as it was given.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the SHA-256 of the file's bytes.
    pub(super) fn digest(&self) -> Digest {
        Digest::new(self.text.as_bytes())
    }

    /// Parses the file, with the outermost keys that `takes` accepts.
    ///
    /// Returns [`ConfigError::File`] with the line of the mistake.
    pub(super) fn parse<T: DeserializeOwned>(&self, takes: impl Fn(&str) -> bool) -> Result<T, ConfigError> {
        let table = self.table()?.into_inner();
        let count = table.len();
        let table: DeTable<'_> = table.into_iter().filter(|(key, _)| takes(key.get_ref())).collect();
        let parsed = if table.len() == count {
            // Parsing the text itself shows a mistake with its line.
            toml::from_str(&self.text)
        } else {
            T::deserialize(Deserializer::from(Spanned::new(0..self.text.len(), table)))
        };
        parsed.map_err(|e| self.invalid(&e))
    }

    /// Returns every setting, in the order of the lines.
    ///
    /// Returns [`ConfigError::File`] if the file is not TOML.
    pub(super) fn settings(&self) -> Result<Vec<Setting>, ConfigError> {
        let mut settings = Vec::new();
        self.collect(self.table()?.get_ref(), &mut Vec::new(), &mut settings);
        settings.sort_by_key(|setting| setting.line);
        Ok(settings)
    }

    fn collect(&self, table: &DeTable<'_>, keys: &mut Vec<String>, settings: &mut Vec<Setting>) {
        for (key, value) in table {
            keys.push(key.get_ref().to_string());
            if let DeValue::Table(inner) = value.get_ref() {
                self.collect(inner, keys, settings);
            } else {
                let line = self.text[..key.span().start].matches('\n').count() + 1;
                let value = match value.get_ref().as_str() {
                    Some(url) if key.get_ref() == URL => escape::json_string(&hide_secrets(url)),
                    Some(_) | None => format_value(value.get_ref()),
                };
                settings.push(Setting { keys: keys.clone(), value, file: self.path.clone(), line });
            }
            keys.pop();
        }
    }

    fn table(&self) -> Result<Spanned<DeTable<'_>>, ConfigError> {
        DeTable::parse(&self.text).map_err(|e| self.invalid(&e))
    }

    fn invalid(&self, why: &toml::de::Error) -> ConfigError {
        ConfigError::File { path: self.path.clone(), why: why.to_string() }
    }
}

/// Returns a value on one line, without anything that acts on a terminal.
fn format_value(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => escape::json_string(text),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| format_value(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(table) => {
            let mut pairs = Vec::new();
            for (key, value) in table {
                let value = format_value(value.get_ref());
                pairs.push(format!("{} = {value}", quote_key(key.get_ref())));
            }
            format!("{{ {} }}", pairs.join(", "))
        }
    }
}

/// Returns a base URL without the parts that may hold a secret. A URL with such parts is refused when it is used.
fn hide_secrets(url: &str) -> String {
    let Ok(parsed) = Url::parse(url) else { return url.to_owned() };
    if parsed.username().is_empty() && parsed.password().is_none() && parsed.query().is_none() {
        return url.to_owned();
    }
    let host = parsed.host_str().unwrap_or_default();
    format!("{}://…@{host}{}", parsed.scheme(), parsed.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Vec<String> {
        let document = TomlDocument { path: "consensus.toml".into(), text: text.to_owned() };
        document.settings().unwrap().iter().map(Setting::to_string).collect()
    }

    /// The line is found however the setting is written.
    #[test]
    fn each_setting_shows_its_line() {
        let text = "model = \"m\"\n\nproviders.e = { base_url = \"http://a/v1\", body = { x = [1, { y = true }] } }\n[providers.\"a b\"]\nbase_url = 'http://b/v1'\n[timeouts]\ntotal_ms = 0x10\n";
        let expected = [
            "consensus.toml:1: model = \"m\"",
            "consensus.toml:3: providers.e.base_url = \"http://a/v1\"",
            "consensus.toml:3: providers.e.body.x = [1, { y = true }]",
            "consensus.toml:5: providers.\"a b\".base_url = \"http://b/v1\"",
            "consensus.toml:7: timeouts.total_ms = 0x10",
        ];
        assert_eq!(settings(text), expected);
    }

    #[test]
    fn value_stays_on_line_and_hides_password() {
        let text =
            "launch = \"\"\"a\nb\\u001b[2J\"\"\"\nbase_url = \"https://me:s3cret@host/v1?key=s3cret\"\n";
        let shown = settings(text);
        assert_eq!(shown[0], "consensus.toml:1: launch = \"a\\nb\\u001b[2J\"");
        assert_eq!(shown[1], "consensus.toml:3: base_url = \"https://…@host/v1\"");
    }
}
