//! Log lines of a node.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use windrow_core::handler::log::LogLevel;
use windrow_core::settings::json::Object;

/// A line.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// Grows from line to line of a task, in the order in which they are stored.
    pub number: i64,
    /// When it was written.
    #[schema(format = DateTime)]
    pub at: String,
    /// The task.
    pub task: String,
    /// The item; none for a line about the task.
    pub index: Option<u64>,
    /// In the log of a task, of a line about an item: its trace, as in the `traceparent` of its calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// In the log of a redrive: the task whose failure the item was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_task: Option<String>,
    /// In the log of a redrive: the item's index there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_index: Option<u64>,
    /// How important.
    #[schema(pattern = "^(debug|info|warn|error)$")]
    pub level: String,
    /// Who wrote it.
    #[schema(pattern = "^(business|system)$")]
    pub origin: String,
    /// A stable code, of lines that windrow writes.
    pub code: Option<String>,
    /// The text.
    pub message: String,
    /// More.
    pub extra: Option<Value>,
    /// In the log of a task, of an error about an item: what the item carries (of a task with the label `key-column` what
    /// that names).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub data: Option<Box<RawValue>>,
}

/// A page of lines, newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LogPage {
    /// The lines. May be fewer than asked for although there is a next page: a search looks at so many lines at a time.
    pub items: Vec<LogLine>,
    /// Where the next page begins; null on the last one.
    pub next_cursor: Option<String>,
    /// Of one task: lines that were not kept, by reason (`age`, `max_per_task`, `queue`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<BTreeMap<String, u64>>,
}

/// A line to append.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogEntry {
    /// How important; `info` if it isn't said.
    #[schema(value_type = Option<String>, pattern = "^(debug|info|warn|error)$")]
    pub level: Option<LogLevel>,
    /// The text.
    #[schema(min_length = 1, max_length = 1024)]
    pub message: String,
    /// The item that it is about.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub index: Option<u64>,
    /// More; at most 4 KiB as JSON.
    pub extra: Option<Value>,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AppendedLines {
    /// Lines that are stored.
    pub stored: u64,
    /// Lines below `data_log.min_level`, which are not.
    pub below_min_level: u64,
}

/// Lines to append.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendLines {
    /// At most a thousand.
    #[schema(min_items = 1, max_items = 1000, value_type = Vec<LogEntry>)]
    pub entries: Vec<Object<LogEntry>>,
}
