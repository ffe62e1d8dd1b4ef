//! The origin of each value with which a model is called: a flag, a variable, a file, or the program itself.
//!
//! The input is the choices, the files, and the endpoint that resulted. The output is each value with its origin, for people who ask
//! why a server is called. Nothing is decided here: the order of precedence is that of [`resolve_endpoints`], and the origin of an
//! address or key is noted where it is chosen.
//!
//! [`resolve_endpoints`]: super::resolve_endpoints

use std::fmt;

use super::document::Setting;
use super::file::FileConfig;

/// The source that set a value.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Origin {
    /// A flag of the command line.
    Flag(&'static str),
    /// A variable of the environment.
    Variable(&'static str),
    /// A configuration file, with the line.
    File(String),
    Roleset,
    /// AWS's own configuration file.
    AwsFile,
    /// The server that was started for the run.
    Launched,
    /// The list of models of the server.
    Listed,
    /// A server that answered on one of the usual ports.
    Port,
    /// The program.
    #[default]
    BuiltIn,
}

impl Origin {
    /// Returns the origin of a value that a flag or its variable gave.
    pub fn given(flag: &'static str, variable: &'static str, value: &str) -> Self {
        // A flag that repeats its variable changes nothing.
        if std::env::var(variable).is_ok_and(|set| set == value) {
            Self::Variable(variable)
        } else {
            Self::Flag(flag)
        }
    }

    /// Returns the file as the origin of a value if it sets the value, and otherwise the program.
    pub fn of_setting<'a>(file: &FileConfig, keys: impl IntoIterator<Item = &'a str>) -> Self {
        file.setting(keys).map_or(Self::BuiltIn, |setting| Self::File(setting.place()))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File(place) => f.write_str(place),
            Self::Roleset => f.write_str("the roleset"),
            Self::AwsFile => f.write_str("the configuration file of AWS"),
            Self::Launched => f.write_str("the server that was started"),
            Self::Listed => f.write_str("the server's list of models"),
            Self::Port => f.write_str("a usual port of this machine"),
            Self::BuiltIn => f.write_str("the program's default"),
        }
    }
}

/// A value with its origin.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sourced {
    /// The setting's name, as in a configuration file.
    pub name: String,
    pub value: String,
    pub origin: Origin,
}

impl Sourced {
    pub(super) fn new(name: &str, value: &impl ToString, origin: Origin) -> Self {
        Self { name: name.to_owned(), value: value.to_string(), origin }
    }

    pub(super) fn from_setting(setting: &Setting) -> Self {
        Self::new(&setting.name(), &setting.value, Origin::File(setting.place()))
    }
}
