//! Log lines that a node serves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use windrow_core::handler::log::LogLevel;
use windrow_core::settings::json::Object;

/// A stored log line.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// Line number; grows from line to line of a task, in storage order.
    pub number: i64,
    /// Time when it was written.
    #[schema(format = DateTime)]
    pub at: String,
    /// Id of the task.
    pub task: String,
    /// Index of the item; null for a line about the task.
    pub index: Option<u64>,
    /// Trace id of the item, as in the `traceparent` of its calls. Only in a task's log, on lines about an item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Task in which the item originally failed; only in the log of a redrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_task: Option<String>,
    /// Index of the item in that task; only in the log of a redrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_index: Option<u64>,
    /// Severity: `debug`, `info`, `warn` or `error`.
    #[schema(pattern = "^(debug|info|warn|error)$")]
    pub level: String,
    /// Writer of the line: `business` or `system`.
    #[schema(pattern = "^(business|system)$")]
    pub origin: String,
    /// Stable code; only on lines that Windrow itself writes.
    pub code: Option<String>,
    /// Text of the line.
    pub message: String,
    /// Additional data, any JSON.
    pub extra: Option<Value>,
    /// Data of the item. Only in a task's log, on errors about an item; with the task label `key-column`, the value
    /// of the column named there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub data: Option<Box<RawValue>>,
}

/// A page of lines, newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LogPage {
    /// The lines. A page may be shorter than requested although a next page exists: a search scans a limited number
    /// of lines at a time.
    pub items: Vec<LogLine>,
    /// Cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
    /// Number of lines that were not kept, by reason (`age`, `max_per_task`, `queue`); only for one task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<BTreeMap<String, u64>>,
}

/// A log line to append.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogEntry {
    /// Severity; `info` by default.
    #[schema(value_type = Option<String>, pattern = "^(debug|info|warn|error)$")]
    pub level: Option<LogLevel>,
    /// Text of the line.
    #[schema(min_length = 1, max_length = 1024)]
    pub message: String,
    /// Index of the item that the line is about.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub index: Option<u64>,
    /// Additional data, at most 4 KiB as JSON.
    pub extra: Option<Value>,
}

/// Result of appending log lines.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AppendedLines {
    /// Number of stored lines.
    pub stored: u64,
    /// Number of discarded lines, below `data_log.min_level`.
    pub below_min_level: u64,
}

/// Request to append log lines.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendLines {
    /// Lines to append, at most 1,000.
    #[schema(min_items = 1, max_items = 1000, value_type = Vec<LogEntry>)]
    pub entries: Vec<Object<LogEntry>>,
}
