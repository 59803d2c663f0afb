//! Faults of a configuration, one line each.

use std::fmt;
use std::path::PathBuf;

/// Origin of a configuration value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// No place: a built-in default, or a flag merged by the caller.
    Default,
    /// Path of the file.
    File(PathBuf),
    /// Name of the environment variable.
    Env(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Env(name) => f.write_str(name),
        }
    }
}

/// A fault of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}{}: {what}; try: {try_}", self.place())]
pub struct Fault {
    /// Key, such as `node.capacity_rate`; `config` for the file as a whole.
    pub key: String,
    /// Origin of the value at fault.
    pub origin: Origin,
    /// Description of the fault.
    pub what: String,
    /// A value or action that fixes it.
    pub try_: String,
}

impl Fault {
    /// Formats the origin; empty for a default, which can't be looked up anywhere.
    fn place(&self) -> String {
        match &self.origin {
            Origin::Default => String::new(),
            written => format!(" ({written})"),
        }
    }
}
