//! Levels and origins of the data log.

use serde::{Deserialize, Serialize};

/// Severity of a data log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Details meant for developers.
    Debug,
    /// Part of normal operation.
    Info,
    /// Something unusual that was handled.
    Warn,
    /// A failure of some kind.
    Error,
}

impl LogLevel {
    /// Returns the slug used on surfaces and in columns.
    pub const fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }
}

/// Author of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogOrigin {
    /// Written by the business's handler.
    Business,
    /// Written by Windrow itself.
    System,
}

impl LogOrigin {
    /// Returns the slug used on surfaces and in columns.
    pub const fn as_str(self) -> &'static str {
        match self {
            LogOrigin::Business => "business",
            LogOrigin::System => "system",
        }
    }
}
