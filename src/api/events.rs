//! Bodies of the stream of events: the `data` of each kind. A `snapshot` of a task is the task, an `audit` its entry.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::task::{HandlerDown, LastError, TaskCounts, TaskPace};

/// A task changed its status: `status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusEvent {
    /// The task.
    pub id: String,
    /// As in the task.
    pub status: String,
    /// As in the task.
    pub result: Option<String>,
    /// As in the task.
    pub stop_reason: Option<String>,
    /// As in the task.
    pub status_reason: Option<String>,
    /// As in the task.
    pub status_text: Option<String>,
    /// As in the task.
    pub since: String,
    /// When something happens next by itself.
    pub next_at: Option<String>,
}

/// A task's handler stopped answering, or answers again, or its calls fail with a code that is new: `handler`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HandlerEvent {
    /// The task.
    pub id: String,
    #[serde(flatten)]
    pub handler: HandlerState,
}

/// The members of a task that tell how its handler fares.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HandlerState {
    /// As in the task.
    pub handler_down: Option<HandlerDown>,
    /// As in the task.
    pub last_error: Option<LastError>,
    /// As in the task.
    pub status_text: Option<String>,
}

/// The numbers of a task that move: `stats`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StatsEvent {
    /// The task.
    pub id: String,
    /// How many items.
    pub total: u64,
    /// Where they stand.
    pub counts: TaskCounts,
    #[serde(flatten)]
    pub pace: TaskPace,
    /// As in the task.
    pub watermark: u64,
    /// The rate that was asked for; it may be older than the answer to a change of it.
    pub rate: String,
    /// As in the task's `live`, as all that follows; null while it doesn't run.
    pub high_water: Option<u64>,
    /// The windows' sizes now.
    pub window: Option<u64>,
    /// Items that may be in flight now.
    pub concurrency: Option<u64>,
    /// Why nothing leaves, if so.
    pub stall: Option<String>,
    /// The 95th percentile of how long calls take.
    pub latency_p95_seconds: Option<f64>,
    #[serde(flatten)]
    pub handler: HandlerState,
    /// Of one task: `store_unavailable` while the node can't reach its database, and the numbers are those of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
}

/// The `stats` of a task of which its node can tell no more than that.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StaleEvent {
    /// `store_unavailable`.
    pub stale: String,
}

/// A line of a task's log: `log`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LogEvent {
    /// The task.
    pub id: String,
    /// As in the log, as all that follows.
    pub number: i64,
    /// When it was written.
    pub at: String,
    /// How important.
    pub level: String,
    /// Who wrote it.
    pub origin: String,
    /// A stable code, of lines that windrow writes.
    pub code: Option<String>,
    /// The item; none for a line about the task.
    pub index: Option<u64>,
    /// The text.
    pub message: String,
    /// What the item of an error carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}
