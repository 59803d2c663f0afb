//! Items that failed, one by one and by code.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Failures of one code.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FailureGroup {
    /// The code; `OTHER` holds all past the first hundred.
    pub code: String,
    /// How many items failed for good with it.
    pub count: u64,
    /// Those of them that are unconfirmed: nothing showed whether the handler failed for them alone.
    pub unconfirmed: u64,
    /// When the first of them was given up.
    #[schema(format = DateTime)]
    pub first_at: String,
    /// When the last of them was given up.
    #[schema(format = DateTime)]
    pub last_at: String,
    /// One of them.
    pub example_index: u64,
    /// Its message.
    pub example: String,
    /// In a redrive: the task whose failure the example was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example_origin_task: Option<String>,
    /// In a redrive: its index there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example_origin_index: Option<u64>,
    /// What the item of the example carries, where that is asked for and there is some.
    #[schema(value_type = Option<Value>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example_data: Option<Box<RawValue>>,
    /// Why its data can't be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example_data_missing: Option<String>,
}

/// All groups of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FailureGroups {
    /// Most frequent first.
    pub items: Vec<FailureGroup>,
    /// Unconfirmed failures of all groups.
    pub unconfirmed: u64,
}

/// An item that failed for good.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// The item.
    pub index: u64,
    /// Its key: what its handler gets with every attempt.
    pub key: String,
    /// Its trace: the trace id in the `traceparent` of each of its calls.
    pub trace_id: String,
    /// The last failure's code.
    pub code: Option<String>,
    /// Its group; `OTHER` holds all codes past the first hundred.
    pub group: Option<String>,
    /// The last failure's message.
    pub message: Option<String>,
    /// The handler's own JSON about it.
    pub output: Option<Value>,
    /// Attempts made.
    pub attempts: u32,
    /// Those that count against `max_attempts`: not those that an outage excuses, say.
    pub charged: u32,
    /// Failed for good, and nothing showed whether the handler failed for it alone.
    pub unconfirmed: bool,
    /// Calls for other items that were answered since its first failure in the run in which it failed for good, at least; null
    /// before that, and in failures of older versions.
    pub others_answered: Option<u64>,
    /// When it first failed.
    #[schema(format = DateTime)]
    pub first_at: String,
    /// When it was given up.
    #[schema(format = DateTime)]
    pub last_at: String,
    /// In a redrive: the task whose failure it was.
    pub origin_task: Option<String>,
    /// In a redrive: the item's index there.
    pub origin_index: Option<u64>,
    /// What the item carries; null where it carries nothing, where nobody asked, and where it can't be shown.
    #[schema(value_type = Option<Value>)]
    pub data: Option<Box<RawValue>>,
    /// Why its data can't be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_missing: Option<String>,
}

/// A failed attempt of an item.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ItemAttempt {
    /// When it failed. Unit: milliseconds since 1970.
    pub at_ms: i64,
    /// The number of it.
    pub attempt: u32,
    /// The failure's code.
    pub code: String,
    /// How long the call took; absent where only the last failure is known, as is the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The run of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
}

/// What is known of one item.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Item {
    /// The item.
    pub index: u64,
    /// Its key: what its handler gets with every attempt.
    pub key: String,
    /// Its trace: the trace id in the `traceparent` of each of its calls.
    pub trace_id: String,
    /// `pending`, `in_window` (dispatched or about to be, never failed so far), `parked`, `failed`, `excluded`; `succeeded`
    /// where what it came to was kept.
    pub state: String,
    /// `skipped_by_operator`, where people want it skipped: without a call, unless one is out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// Attempts made, as far as they are recorded.
    pub attempts: u32,
    /// Those that count against `max_attempts`: not those that an outage excuses, say.
    pub charged: u32,
    /// When the next attempt is due; only when parked.
    #[schema(format = DateTime)]
    pub due_at: Option<String>,
    /// The last failure; only when it failed.
    pub failure: Option<Failure>,
    /// Its failed attempts, oldest first.
    #[schema(value_type = Vec<Value>)]
    pub timeline: Vec<ItemAttempt>,
    /// What it carries; null where it carries nothing, and where it can't be shown.
    #[schema(value_type = Option<Value>)]
    pub data: Option<Box<RawValue>>,
    /// Why its data can't be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_missing: Option<String>,
    /// What it came to, of a task that keeps results.
    #[schema(value_type = Option<Value>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
}
