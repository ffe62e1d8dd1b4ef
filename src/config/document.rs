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

use super::bounded;
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
        dotted(self.keys.iter().map(String::as_str))
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
pub(super) fn dotted<'a>(keys: impl IntoIterator<Item = &'a str>) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let key = |key: &str| {
        let is_bare = !key.is_empty() && key.chars().all(is_bare);
        if is_bare { key.to_owned() } else { escape::json_string(key) }
    };
    keys.into_iter().map(key).collect::<Vec<_>>().join(".")
}

/// A configuration file that was read.
pub(super) struct TomlDocument {
    path: PathBuf,
    text: String,
}

impl TomlDocument {
    /// Reads a file; returns `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns [`ConfigError::Read`] if the file cannot be read, is too long or is not UTF-8, and [`ConfigError::File`] if it is not
    /// a regular file.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        let failed = |source| ConfigError::Read { path: path.to_owned(), source };
        let about = match std::fs::metadata(path) {
            Ok(about) => about,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(failed(source)),
        };
        // Reading a pipe would block, and a device may have no end.
        if !about.is_file() {
            let why = "it is not a regular file".to_owned();
            return Err(ConfigError::File { path: path.to_owned(), why });
        }
        let text = bounded::read_to_string(path).map_err(failed)?;
        Ok(Some(Self { path: path.to_owned(), text }))
    }

    /// Returns the file's path, as it was given.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the SHA-256 of the file's bytes.
    pub(super) fn digest(&self) -> Digest {
        Digest::new(self.text.as_bytes())
    }

    /// Parses the file, without the outermost keys that `is_kept` refuses.
    ///
    /// # Errors
    ///
    /// Returns [`ConfigError::File`] with the line of the mistake.
    pub(super) fn parse<T: DeserializeOwned>(
        &self,
        is_kept: impl Fn(&str) -> bool,
    ) -> Result<T, ConfigError> {
        let table = self.table()?.into_inner();
        let count = table.len();
        let table: DeTable<'_> = table.into_iter().filter(|(key, _)| is_kept(key.get_ref())).collect();
        let parsed = if table.len() == count {
            // Parsing the text itself shows a mistake with its line.
            toml::from_str(&self.text)
        } else {
            T::deserialize(Deserializer::from(Spanned::new(0..self.text.len(), table)))
        };
        parsed.map_err(|e| self.mistake(&e))
    }

    /// Returns every setting, in the order of the lines.
    ///
    /// # Errors
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
                let value = match value.get_ref().as_str().filter(|_| key.get_ref() == URL) {
                    Some(url) => escape::json_string(&without_secrets(url)),
                    None => shown(value.get_ref()),
                };
                settings.push(Setting { keys: keys.clone(), value, file: self.path.clone(), line });
            }
            keys.pop();
        }
    }

    fn table(&self) -> Result<Spanned<DeTable<'_>>, ConfigError> {
        DeTable::parse(&self.text).map_err(|e| self.mistake(&e))
    }

    fn mistake(&self, why: &toml::de::Error) -> ConfigError {
        ConfigError::File { path: self.path.clone(), why: why.to_string() }
    }
}

/// Returns a value on one line, without anything that acts on a terminal.
fn shown(value: &DeValue<'_>) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        DeValue::String(text) => escape::json_string(text),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(items) => {
            format!("[{}]", list(items.iter().map(|item| shown(item.get_ref())).collect()))
        }
        DeValue::Table(table) => {
            let pair = |(key, value): (&Spanned<_>, &Spanned<_>)| {
                let key: &std::borrow::Cow<'_, str> = key.get_ref();
                format!("{} = {}", dotted([key.as_ref()]), shown(value.get_ref()))
            };
            format!("{{ {} }}", list(table.iter().map(pair).collect()))
        }
    }
}

/// Returns a base URL without the parts that may hold a secret. A URL with such parts is refused when it is used.
fn without_secrets(url: &str) -> String {
    let has_secret =
        |url: &Url| !url.username().is_empty() || url.password().is_some() || url.query().is_some();
    match Url::parse(url) {
        Ok(parsed) if has_secret(&parsed) => {
            let host = parsed.host_str().unwrap_or_default();
            format!("{}://…@{host}{}", parsed.scheme(), parsed.path())
        }
        Ok(_) | Err(_) => url.to_owned(),
    }
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
        let told = settings(text);
        assert_eq!(told[0], "consensus.toml:1: launch = \"a\\nb\\u001b[2J\"");
        assert_eq!(told[1], "consensus.toml:3: base_url = \"https://…@host/v1\"");
    }
}
