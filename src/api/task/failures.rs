//! Failed items, one by one and grouped by code.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Failures with the same code.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FailureGroup {
    /// Failure code; `OTHER` collects all codes beyond the first hundred.
    pub code: String,
    /// Number of items that failed permanently with it.
    pub count: u64,
    /// Number of them that are unconfirmed: there is no evidence that the handler failed only for these items.
    pub unconfirmed: u64,
    /// Time when the first of them failed permanently.
    #[schema(format = DateTime)]
    pub first_at: String,
    /// Time when the last of them failed permanently.
    #[schema(format = DateTime)]
    pub last_at: String,
    /// Index of one of these items.
    pub example_index: u64,
    /// Failure message of the example.
    pub example: String,
    /// Task in which the example originally failed; only in a redrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example_origin_task: Option<String>,
    /// Index of the example in that task; only in a redrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example_origin_index: Option<u64>,
    /// Data of the example item, if requested and available.
    #[schema(value_type = Option<Value>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example_data: Option<Box<RawValue>>,
    /// Reason why its data can't be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example_data_missing: Option<String>,
}

/// All failure groups of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FailureGroups {
    /// Groups, most frequent first.
    pub items: Vec<FailureGroup>,
    /// Number of unconfirmed failures in all groups.
    pub unconfirmed: u64,
}

/// An item that failed permanently.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// Index of the item.
    pub index: u64,
    /// Item key, which the handler gets with every attempt.
    pub key: String,
    /// Trace id, as in the `traceparent` of each of its calls.
    pub trace_id: String,
    /// Code of the last failure.
    pub code: Option<String>,
    /// Group of the failure; `OTHER` collects all codes beyond the first hundred.
    pub group: Option<String>,
    /// Message of the last failure.
    pub message: Option<String>,
    /// JSON that the handler returned about the failure.
    pub output: Option<Value>,
    /// Number of attempts made.
    pub attempts: u32,
    /// Attempts that count against `max_attempts`; those excused while the handler was down, for example, don't.
    pub charged: u32,
    /// True if there is no evidence that the handler failed only for this item.
    pub unconfirmed: bool,
    /// Minimum number of calls for other items that were answered after its first failure, in the run in which it
    /// failed permanently. Null before that and for failures recorded by older versions.
    pub others_answered: Option<u64>,
    /// Time of its first failure.
    #[schema(format = DateTime)]
    pub first_at: String,
    /// Time when it failed permanently.
    #[schema(format = DateTime)]
    pub last_at: String,
    /// Task in which it originally failed; only in a redrive.
    pub origin_task: Option<String>,
    /// Index of the item in that task; only in a redrive.
    pub origin_index: Option<u64>,
    /// Data of the item; null if there is none, if it wasn't requested, or if it can't be shown.
    #[schema(value_type = Option<Value>)]
    pub data: Option<Box<RawValue>>,
    /// Reason why its data can't be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_missing: Option<String>,
}

/// One failed attempt of an item.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ItemAttempt {
    /// Time of the failure, in milliseconds since 1970.
    pub at_ms: i64,
    /// Number of the attempt.
    pub attempt: u32,
    /// Code of the failure.
    pub code: String,
    /// Duration of the call, in milliseconds; absent, like the run, if only the last failure is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Number of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
}

/// State and history of one item.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Item {
    /// Index of the item.
    pub index: u64,
    /// Item key, which the handler gets with every attempt.
    pub key: String,
    /// Trace id, as in the `traceparent` of each of its calls.
    pub trace_id: String,
    /// `pending`, `in_window` (dispatched or about to be, no failure so far), `parked`, `failed`, `excluded`;
    /// `succeeded` if its result was kept.
    pub state: String,
    /// `skipped_by_operator` if an operator asked to skip it: no call is made, unless one is in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// Number of recorded attempts.
    pub attempts: u32,
    /// Attempts that count against `max_attempts`; those excused while the handler was down, for example, don't.
    pub charged: u32,
    /// Time when the next attempt is due; only when parked.
    #[schema(format = DateTime)]
    pub due_at: Option<String>,
    /// Last failure; only if the item failed.
    pub failure: Option<Failure>,
    /// Failed attempts, oldest first.
    #[schema(value_type = Vec<Value>)]
    pub timeline: Vec<ItemAttempt>,
    /// Data of the item; null if there is none or it can't be shown.
    #[schema(value_type = Option<Value>)]
    pub data: Option<Box<RawValue>>,
    /// Reason why its data can't be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_missing: Option<String>,
    /// Output of the item, if the task keeps results.
    #[schema(value_type = Option<Value>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
}
