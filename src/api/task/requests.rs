//! Tasks to be made and changed.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::body::Names;
use windrow_core::task::spec::Request;

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

impl Names for CreateTask {
    const REQUEST: Request = Request::Create;
}

/// What a clone has that its origin doesn't; all else is the same, but for the name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CloneTask {
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

impl Names for CloneTask {
    const REQUEST: Request = Request::Clone;
}

/// A change of a task: what is named is set, the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditTask {
    /// How many items; only while it doesn't run, and never fewer once it has.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub total: Option<u64>,
    /// Where its items come from; only before it has run.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub source: Option<NewSource>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

impl Names for EditTask {
    const REQUEST: Request = Request::Edit;
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
    /// Whether it also takes items that earlier redrives recovered or have under way; without, they are left out.
    pub again: Option<bool>,
    /// What it is that no failure is left to do again: `ok`, the default (the answer says so, and no task is made), or `error`.
    pub if_empty: Option<IfEmpty>,
    /// Whether it starts at once.
    pub start: Option<bool>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

impl Names for RedriveTask {
    const REQUEST: Request = Request::Redrive;
}
