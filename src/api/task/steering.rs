//! Tasks to be steered.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// How a task starts.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartTask {
    /// Not before this time; replaces the one that the task has.
    #[schema(format = "date-time")]
    pub start_at: Option<String>,
    /// Now, whatever `start_at` the task has.
    pub now: Option<bool>,
    /// With `items`, it is the items that fail and no outage: as `judge_after: "0s"`, which it sets.
    pub judge: Option<Judge>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Whose fault failures without a verdict are.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// The items'.
    Items,
}

/// How a task stops.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StopTask {
    /// Without waiting for calls in flight: they are aborted, and may be made again later.
    pub now: Option<bool>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Where a task ends early.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishTask {
    /// Items at or above this index that were not dispatched are excluded; without it, all that were not dispatched.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub total: Option<u64>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Where a task goes on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveTask {
    /// The node.
    #[schema(min_length = 1, max_length = 64, examples("n2"))]
    pub to: String,
    /// Only this shard of it.
    #[schema(minimum = 0, maximum = 4294967295_u64)]
    pub shard: Option<u32>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// What a business says when it is ready.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// Which start it answers; a start token says it already.
    pub start: Option<u32>,
    /// How many items there are.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub total: Option<u64>,
    /// How many of them are left out at the head.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub skip_first: Option<u64>,
    /// What the handler is given, any JSON.
    #[schema(value_type = Option<serde_json::Value>)]
    pub params: Option<Box<RawValue>>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Which items are skipped, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SkipItems {
    /// Their indexes: numbers and ranges with both ends, separated by commas.
    #[schema(min_length = 1, max_length = 65536, examples("5-9,12"))]
    pub indexes: String,
    /// Why, for the audit; it is needed.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Which items.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewTask {
    /// Their indexes, such as `0,17,999`, `5..9` (without 9) or `5-8`; the first three if none is named.
    #[schema(min_length = 1, max_length = 4000)]
    pub indexes: Option<String>,
    /// Why, for the node's log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    #[allow(
        dead_code,
        reason = "every write takes it; a preview changes nothing that an audit would show"
    )]
    pub reason: Option<String>,
}

/// Items to be appended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendItems {
    /// The items, each one JSON value; at most 10,000 of 1 MiB together.
    #[schema(value_type = Vec<serde_json::Value>)]
    pub items: Box<RawValue>,
}

/// Which items are given up.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailItems {
    /// The code of their last failure.
    #[schema(min_length = 1, max_length = 64, examples("TIMEOUT"))]
    pub code: String,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
