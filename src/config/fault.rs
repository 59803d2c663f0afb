//! What is wrong with a configuration, one line a fault.

use std::fmt;
use std::path::PathBuf;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: the built-in default, or a flag that the caller merged.
    Default,
    /// In this file.
    File(PathBuf),
    /// In this environment variable.
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

/// One fault of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}{}: {what}; try: {try_}", self.place())]
pub struct Fault {
    /// The key, such as `node.capacity_rate`; `config` when the file as a whole is meant.
    pub key: String,
    /// Where it was written.
    pub origin: Origin,
    /// What is wrong.
    pub what: String,
    /// What would do.
    pub try_: String,
}

impl Fault {
    /// A default is no place that anyone could look at.
    fn place(&self) -> String {
        match &self.origin {
            Origin::Default => String::new(),
            written => format!(" ({written})"),
        }
    }
}
