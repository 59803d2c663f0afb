//! Requests that control a task.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Options of a task start.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartTask {
    /// Earliest start; replaces the task's present one.
    #[schema(format = "date-time")]
    pub start_at: Option<String>,
    /// Start immediately, regardless of the task's `start_at`.
    pub now: Option<bool>,
    /// With `items`, failures without a verdict are blamed on the items and not on an outage; sets `judge_after:
    /// "0s"`.
    pub judge: Option<Judge>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Attribution of failures without a verdict.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// The items are at fault.
    Items,
}

/// Options of a task stop.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StopTask {
    /// Don't wait for calls in flight: abort them; they may be repeated later.
    pub now: Option<bool>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Options to finish a task early.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishTask {
    /// Exclude undispatched items from this index on; without it, all undispatched items.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub total: Option<u64>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Destination of a task that is moved.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveTask {
    /// Name of the target node.
    #[schema(min_length = 1, max_length = 64, examples("n2"))]
    pub to: String,
    /// Move only this shard.
    #[schema(minimum = 0, maximum = 4294967295_u64)]
    pub shard: Option<u32>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Report of a business that it is ready.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// Start that it responds to; implied by a start token.
    pub start: Option<u32>,
    /// Number of items in the task.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub total: Option<u64>,
    /// Number of items to leave out at the beginning.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub skip_first: Option<u64>,
    /// Parameters passed to the handler, any JSON.
    #[schema(value_type = Option<serde_json::Value>)]
    pub params: Option<Box<RawValue>>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Items to skip, with the reason.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SkipItems {
    /// Indexes: comma-separated numbers and inclusive ranges.
    #[schema(min_length = 1, max_length = 65536, examples("5-9,12"))]
    pub indexes: String,
    /// Reason, recorded in the audit log; required.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Items to preview with the handler.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewTask {
    /// Indexes, such as `0,17,999`, `5..9` (without 9) or `5-8`; by default the first three items.
    #[schema(min_length = 1, max_length = 4000)]
    pub indexes: Option<String>,
    /// Reason, recorded in the node's log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    #[allow(
        dead_code,
        reason = "every write takes it; a preview changes nothing that an audit would show"
    )]
    pub reason: Option<String>,
}

/// Items to append to an open task.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendItems {
    /// Items, each of them a JSON value; at most 10,000 items and 1 MiB in total.
    #[schema(value_type = Vec<serde_json::Value>)]
    pub items: Box<RawValue>,
}

/// Items to mark as failed without further attempts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailItems {
    /// Code of their last failure.
    #[schema(min_length = 1, max_length = 64, examples("TIMEOUT"))]
    pub code: String,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
