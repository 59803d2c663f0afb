//! Words of the data log.

use serde::{Deserialize, Serialize};

/// How important a data log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// For developers.
    Debug,
    /// Normal.
    Info,
    /// Odd but handled.
    Warn,
    /// Something failed.
    Error,
}

impl LogLevel {
    /// The slug of surfaces and columns.
    pub const fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }
}

/// Who wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogOrigin {
    /// The business's handler.
    Business,
    /// Windrow.
    System,
}

impl LogOrigin {
    /// The slug of surfaces and columns.
    pub const fn as_str(self) -> &'static str {
        match self {
            LogOrigin::Business => "business",
            LogOrigin::System => "system",
        }
    }
}
