//! Bodies of the event stream: the `data` of each kind of event. A `snapshot` of a task carries the task, an `audit`
//! its audit entry.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::message::Message;
use crate::task::{HandlerDown, LastError, TaskAutopilot, TaskCost, TaskCounts, TaskPace};

/// `status` event: a task changed its status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusEvent {
    /// Id of the task.
    pub id: String,
    /// Same as in the task.
    pub status: String,
    /// Same as in the task.
    pub result: Option<String>,
    /// Same as in the task.
    pub stop_reason: Option<String>,
    /// Same as in the task.
    pub status_reason: Option<String>,
    /// Same as in the task.
    pub status_text: Option<String>,
    /// Same as in the task.
    pub since: String,
    /// Time of the next automatic action.
    pub next_at: Option<String>,
}

/// `handler` event: a task's handler stopped responding or recovered, or its calls fail with a new code.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HandlerEvent {
    /// Id of the task.
    pub id: String,
    #[serde(flatten)]
    pub handler: HandlerState,
}

/// State of a task's handler.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HandlerState {
    /// Same as in the task.
    pub handler_down: Option<HandlerDown>,
    /// Same as in the task.
    pub last_error: Option<LastError>,
    /// Same as in the task.
    pub status_text: Option<String>,
    /// The same as a message, if it is about the handler; null otherwise, so that an event replaces an earlier one.
    #[serde(default)]
    pub status_text_message: Option<Message>,
}

/// `stats` event: the changing numbers of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StatsEvent {
    /// Id of the task.
    pub id: String,
    /// Number of items in the task.
    pub total: u64,
    /// Number of items in each state.
    pub counts: TaskCounts,
    #[serde(flatten)]
    pub pace: TaskPace,
    /// Same as in the task.
    pub watermark: u64,
    /// Configured rate. It may still be the previous one right after a change was acknowledged.
    pub rate: String,
    /// Highest dispatched index plus one. This and the following members are those of the task's `live`; null while
    /// it isn't running.
    pub high_water: Option<u64>,
    /// Current window size, summed over shards.
    pub window: Option<u64>,
    /// Current limit on items in flight.
    pub concurrency: Option<u64>,
    /// Reason why nothing is dispatched, if so.
    pub stall: Option<String>,
    /// 95th percentile of the call duration, in seconds.
    pub latency_p95_seconds: Option<f64>,
    /// Limits that the autopilot has found; null without one.
    #[serde(default)]
    pub autopilot: Option<TaskAutopilot>,
    /// Same as in the task; absent if it isn't known anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<BTreeMap<String, TaskCost>>,
    #[serde(flatten)]
    pub handler: HandlerState,
    /// Only in the stream of one task: `store_unavailable` while the node can't reach its database and the numbers
    /// are old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
}

/// `stats` event of a task whose current numbers the node can't read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StaleEvent {
    /// Always `store_unavailable`: the node can't reach its database.
    pub stale: String,
}

/// `log` event: a line of a task's log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LogEvent {
    /// Id of the task.
    pub id: String,
    /// Line number. This and the following members are the same as in the log.
    pub number: i64,
    /// Time when it was written.
    pub at: String,
    /// Severity: `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// Writer of the line: `business` or `system`.
    pub origin: String,
    /// Stable code; only on lines that Windrow itself writes.
    pub code: Option<String>,
    /// Index of the item; null for a line about the task.
    pub index: Option<u64>,
    /// Text of the line.
    pub message: String,
    /// Data of the item that an error is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}
