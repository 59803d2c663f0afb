//! Tasks to be made and changed.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::schema::NumberOrAuto;
use windrow_core::settings::Auto;

/// The kinds of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// `total` numbers.
    Range,
    /// A short list: `items`.
    Inline,
    /// An upload: `upload`.
    File,
    /// A file at an address: `url`, fetched once, now.
    Url,
}

/// How the bytes at an address become rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileFormat {
    /// Comma-separated values and their relatives.
    Csv,
    /// One JSON value per line.
    Ndjson,
    /// One text per line: `{"line": "…"}`.
    Lines,
    /// The same of texts that a NUL ends.
    Nul,
}

/// Where a task's items come from. Each type has members of its own.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSource {
    /// Which.
    #[serde(rename = "type")]
    pub kind: SourceKind,
    /// `range`: how many.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub total: Option<u64>,
    /// `inline`: the items, each one JSON value.
    #[schema(value_type = Option<Vec<Value>>)]
    pub items: Option<Box<RawValue>>,
    /// `file`: the upload's number, `u7`.
    #[schema(pattern = "^u[1-9][0-9]{0,17}$")]
    pub upload: Option<String>,
    /// `url`: `http` or `https`.
    #[schema(pattern = "^https?://", max_length = 2048)]
    pub url: Option<String>,
    /// `url`: how its bytes become rows; by the ending of the path if it isn't said, the one before `.gz`, `.zst`, `.bz2` or
    /// `.xz`. What is compressed is unpacked.
    pub format: Option<FileFormat>,
    /// `url` of a CSV: between fields.
    #[schema(min_length = 1, max_length = 1)]
    pub delimiter: Option<char>,
    /// `url` of a CSV: whether the first row names the columns.
    pub header: Option<bool>,
}

/// The first items, run and settled before any other leaves.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCanary {
    /// How many.
    #[schema(minimum = 1, maximum = 9223372036854775807_u64)]
    pub items: u64,
    /// `stop` (and wait for a start), or `continue` by itself if none was abandoned.
    pub then: Option<CanaryThen>,
}

/// What follows a canary.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CanaryThen {
    /// Stop.
    Stop,
    /// Go on.
    Continue,
}

/// What a source without items is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfEmpty {
    /// Nothing to do.
    Ok,
    /// Refused.
    Error,
}

/// A task to be made. `business` is needed, and `source` or `open`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTask {
    /// The business.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub business: String,
    /// Where its items come from.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub source: Option<NewSource>,
    /// In place of a source: its items are appended while it runs, until it is sealed. It has one shard.
    pub open: Option<bool>,
    /// Its name, unique within the business.
    #[schema(min_length = 1, max_length = 128, pattern = r"^[^\s/]+$")]
    pub name: Option<String>,
    /// Labels, to find it by.
    #[serde(default, deserialize_with = "windrow_core::settings::json::few_texts")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Items left out at the head.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub skip_first: Option<u64>,
    /// What the handler is given, any JSON.
    #[schema(value_type = Option<serde_json::Value>)]
    pub params: Option<Box<RawValue>>,
    /// Whether it goes with each call.
    pub send_params: Option<bool>,
    /// Named limits that its items count against, beside those of its business; they stay as long as the task does.
    #[schema(max_items = 4)]
    pub limits: Option<Vec<String>>,
    /// Parts that different nodes can own: a number, or `auto`.
    #[schema(value_type = Option<NumberOrAuto>)]
    pub shards: Option<Auto<NonZeroU32>>,
    /// Higher goes first.
    pub priority: Option<i32>,
    /// Not run before this time.
    #[schema(format = "date-time")]
    pub start_at: Option<String>,
    /// Stopped at this time.
    #[schema(format = "date-time")]
    pub deadline: Option<String>,
    /// The first items, run before any other.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub canary: Option<NewCanary>,
    /// The dataset that its results become a generation of, once it is finished; made with its first task. A token
    /// of a business names its own: its slug, or what begins with that and a dot.
    #[schema(max_length = 40, pattern = r"^[a-z0-9-]+(\.[a-z0-9-]+)*$")]
    pub publish: Option<String>,
    /// How many items must have succeeded, or been skipped, for that: `all` (the default), `any`, or such as `99.5%`.
    #[schema(pattern = r"^(all|any|[0-9]{1,3}(\.[0-9]{1,2})?%)$")]
    pub publish_if: Option<String>,
    /// The member of the outputs by which readers look up in the generation.
    #[schema(min_length = 1, max_length = 128)]
    pub publish_key: Option<String>,
    /// What makes the generation's summary of the results: `none`, `hook`, or `command:NAME` with a command of the node.
    #[schema(max_length = 80)]
    pub reduce: Option<String>,
    /// What a source without items is: `ok`, the default (the task has nothing to do, and finishes as soon as it starts), or
    /// `error`.
    pub if_empty: Option<IfEmpty>,
    /// Whether it starts at once.
    pub start: Option<bool>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// What a clone has that its origin doesn't; all else is the same, but for the name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CloneTask {
    /// Its name, unique within the business.
    #[schema(min_length = 1, max_length = 128, pattern = r"^[^\s/]+$")]
    pub name: Option<String>,
    /// Labels, to find it by.
    #[serde(default, deserialize_with = "windrow_core::settings::json::few_texts")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Items left out at the head.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub skip_first: Option<u64>,
    /// What the handler is given, any JSON.
    #[schema(value_type = Option<serde_json::Value>)]
    pub params: Option<Box<RawValue>>,
    /// Whether it goes with each call.
    pub send_params: Option<bool>,
    /// Named limits that its items count against, beside those of its business; they stay as long as the task does.
    #[schema(max_items = 4)]
    pub limits: Option<Vec<String>>,
    /// Parts that different nodes can own: a number, or `auto`.
    #[schema(value_type = Option<NumberOrAuto>)]
    pub shards: Option<Auto<NonZeroU32>>,
    /// Higher goes first.
    pub priority: Option<i32>,
    /// Not run before this time.
    #[schema(format = "date-time")]
    pub start_at: Option<String>,
    /// Stopped at this time.
    #[schema(format = "date-time")]
    pub deadline: Option<String>,
    /// The first items, run before any other.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub canary: Option<NewCanary>,
    /// The dataset that its results become a generation of, once it is finished; made with its first task. A token
    /// of a business names its own: its slug, or what begins with that and a dot.
    #[schema(max_length = 40, pattern = r"^[a-z0-9-]+(\.[a-z0-9-]+)*$")]
    pub publish: Option<String>,
    /// How many items must have succeeded, or been skipped, for that: `all` (the default), `any`, or such as `99.5%`.
    #[schema(pattern = r"^(all|any|[0-9]{1,3}(\.[0-9]{1,2})?%)$")]
    pub publish_if: Option<String>,
    /// The member of the outputs by which readers look up in the generation.
    #[schema(min_length = 1, max_length = 128)]
    pub publish_key: Option<String>,
    /// What makes the generation's summary of the results: `none`, `hook`, or `command:NAME` with a command of the node.
    #[schema(max_length = 80)]
    pub reduce: Option<String>,
    /// Whether it starts at once.
    pub start: Option<bool>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// A change of a task: what is named is set, the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditTask {
    /// Its name; null takes it away.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = r"^[^\s/]+$")]
    pub name: Option<Option<String>>,
    /// All its labels.
    #[serde(default, deserialize_with = "windrow_core::settings::json::few_texts")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Higher goes first.
    pub priority: Option<i32>,
    /// Stopped at this time; null takes it away.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub deadline: Option<Option<String>>,
    /// What the handler is given; only while it doesn't run.
    #[schema(value_type = Option<serde_json::Value>)]
    pub params: Option<Box<RawValue>>,
    /// How many items; only while it doesn't run, and never fewer once it has.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub total: Option<u64>,
    /// Items left out at the head; only before it has run.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub skip_first: Option<u64>,
    /// Where its items come from; only before it has run.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub source: Option<NewSource>,
    /// Parts that different nodes can own: a number, or `auto`; only before it has run, and while it isn't queued.
    #[schema(value_type = Option<NumberOrAuto>)]
    pub shards: Option<Auto<NonZeroU32>>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Which failures: those that fulfil each member; nothing named is all of them.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureFilter {
    /// Those of these groups.
    #[schema(max_items = 101, example = json!(["TIMEOUT"]))]
    pub codes: Option<Vec<String>>,
    /// Only these items: numbers and ranges, at most 10,000 items.
    #[schema(
        pattern = r"^[0-9]{1,19}(-[0-9]{1,19})?(,[0-9]{1,19}(-[0-9]{1,19})?)*$",
        max_length = 65536,
        example = "5,9-20"
    )]
    pub indexes: Option<String>,
    /// Only those that are unconfirmed: nothing showed whether the handler failed for them alone.
    pub unconfirmed: Option<bool>,
}

/// A redrive. What isn't named is as the other task has it, but for the name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveTask {
    /// Which failures; nothing named is all of them.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub filter: Option<FailureFilter>,
    /// Whether the items get new keys, so that the business takes them for new ones.
    pub new_keys: Option<bool>,
    /// Whether it also takes items that earlier redrives made good or have under way; without, they are left out.
    pub again: Option<bool>,
    /// Its name, unique within the business.
    #[schema(min_length = 1, max_length = 128, pattern = r"^[^\s/]+$")]
    pub name: Option<String>,
    /// Labels, to find it by.
    pub labels: Option<BTreeMap<String, String>>,
    /// Higher goes first.
    pub priority: Option<i32>,
    /// The first items, run before any other.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub canary: Option<NewCanary>,
    /// What it is that no failure is left to do again: `ok`, the default (the answer says so, and no task is made), or `error`.
    pub if_empty: Option<IfEmpty>,
    /// Whether it starts at once.
    pub start: Option<bool>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
