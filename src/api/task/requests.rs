//! Requests to create and change tasks.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::body::Names;
use windrow_core::task::spec::Request;

/// Kind of a task's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// The numbers below `total`.
    Range,
    /// A short list, in `items`.
    Inline,
    /// An uploaded file, named by `upload`.
    File,
    /// A file at `url`, fetched once, at creation.
    Url,
}

/// Format of the rows in a file at a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileFormat {
    /// Comma-separated values and similar formats.
    Csv,
    /// One JSON value per line.
    Ndjson,
    /// One string per line: `{"line": "…"}`.
    Lines,
    /// Strings terminated by NUL, otherwise like `lines`.
    Nul,
}

/// Source of a task's items. Each type has its own members.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSource {
    /// Type of the source.
    #[serde(rename = "type")]
    pub kind: SourceKind,
    /// `range`: number of items.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub total: Option<u64>,
    /// `inline`: the items, each of them a JSON value.
    #[schema(value_type = Option<Vec<Value>>)]
    pub items: Option<Box<RawValue>>,
    /// `file`: id of the upload, e.g. `u7`.
    #[schema(pattern = "^u[1-9][0-9]{0,17}$")]
    pub upload: Option<String>,
    /// `url`: address, with `http` or `https`.
    #[schema(pattern = "^https?://", max_length = 2048)]
    pub url: Option<String>,
    /// `url`: format of the rows. By default it follows the extension of the path, before any `.gz`, `.zst`, `.bz2`
    /// or `.xz`. Compressed data is unpacked.
    pub format: Option<FileFormat>,
    /// `url` of a CSV: delimiter between fields.
    #[schema(min_length = 1, max_length = 1)]
    pub delimiter: Option<char>,
    /// `url` of a CSV: true if the first row holds the column names.
    pub header: Option<bool>,
}

/// Handling of a source without items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfEmpty {
    /// Accepted: there is nothing to do.
    Ok,
    /// Refused with an error.
    Error,
}

/// A task to create. `business` is required, and either `source` or `open`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTask {
    /// Business of the task.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub business: String,
    /// Source of the items.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub source: Option<NewSource>,
    /// Create an open task instead of giving a source: items are appended while it runs, until it is sealed. It has
    /// one shard.
    pub open: Option<bool>,
    /// Dataset of which the results become a generation when the task finishes; created with its first task. A token
    /// of a business may name only that business's datasets: its slug, or names that begin with the slug and a dot.
    #[schema(max_length = 40, pattern = r"^[a-z0-9-]+(\.[a-z0-9-]+)*$")]
    pub publish: Option<String>,
    /// Share of items that must have succeeded or been skipped for publication: `all` (default), `any`, or a
    /// percentage such as `99.5%`.
    #[schema(pattern = r"^(all|any|[0-9]{1,3}(\.[0-9]{1,2})?%)$")]
    pub publish_if: Option<String>,
    /// Output member by which readers look up results in the generation.
    #[schema(min_length = 1, max_length = 128)]
    pub publish_key: Option<String>,
    /// Producer of the generation's summary: `none`, `hook`, or `command:NAME` for a command of the node.
    #[schema(max_length = 80)]
    pub reduce: Option<String>,
    /// Handling of a source without items: `ok` (default, the task has nothing to do and finishes as soon as it
    /// starts) or `error`.
    pub if_empty: Option<IfEmpty>,
    /// Start the task at once.
    pub start: Option<bool>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

impl Names for CreateTask {
    const REQUEST: Request = Request::Create;
}

/// Members in which a clone differs from the original. Everything else is copied, except the name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CloneTask {
    /// Dataset of which the results become a generation when the task finishes; created with its first task. A token
    /// of a business may name only that business's datasets: its slug, or names that begin with the slug and a dot.
    #[schema(max_length = 40, pattern = r"^[a-z0-9-]+(\.[a-z0-9-]+)*$")]
    pub publish: Option<String>,
    /// Share of items that must have succeeded or been skipped for publication: `all` (default), `any`, or a
    /// percentage such as `99.5%`.
    #[schema(pattern = r"^(all|any|[0-9]{1,3}(\.[0-9]{1,2})?%)$")]
    pub publish_if: Option<String>,
    /// Output member by which readers look up results in the generation.
    #[schema(min_length = 1, max_length = 128)]
    pub publish_key: Option<String>,
    /// Producer of the generation's summary: `none`, `hook`, or `command:NAME` for a command of the node.
    #[schema(max_length = 80)]
    pub reduce: Option<String>,
    /// Start the task at once.
    pub start: Option<bool>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

impl Names for CloneTask {
    const REQUEST: Request = Request::Clone;
}

/// Change of a task: members that are present are set, the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditTask {
    /// Number of items. Can change only while the task isn't running, and can't be lowered once it has run.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub total: Option<u64>,
    /// Source of the items. Can change only before the task has run.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub source: Option<NewSource>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

impl Names for EditTask {
    const REQUEST: Request = Request::Edit;
}

/// Filter for failures: those that match every member that is present, all if none is.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureFilter {
    /// Failures in any of these groups.
    #[schema(max_items = 101, example = json!(["TIMEOUT"]))]
    pub codes: Option<Vec<String>>,
    /// Failures of these items: numbers and ranges, at most 10,000 items.
    #[schema(
        pattern = r"^[0-9]{1,19}(-[0-9]{1,19})?(,[0-9]{1,19}(-[0-9]{1,19})?)*$",
        max_length = 65536,
        example = "5,9-20"
    )]
    pub indexes: Option<String>,
    /// Only unconfirmed failures: there is no evidence that the handler failed only for these items.
    pub unconfirmed: Option<bool>,
}

/// A redrive to create. Omitted members are copied from the other task, except the name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveTask {
    /// Failures to redrive; all of them if omitted.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub filter: Option<FailureFilter>,
    /// Give the items new keys, so that the business treats them as new items.
    pub new_keys: Option<bool>,
    /// Include items that earlier redrives recovered or still have in progress; by default they are left out.
    pub again: Option<bool>,
    /// Handling of a redrive without any failures to repeat: `ok` (default, the response says so and no task is
    /// created) or `error`.
    pub if_empty: Option<IfEmpty>,
    /// Start the task at once.
    pub start: Option<bool>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

impl Names for RedriveTask {
    const REQUEST: Request = Request::Redrive;
}

/// A replay to create: a redrive of named items, whatever their outcome. Omitted members are copied from the other
/// task, except the name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayTask {
    /// Items to send again: numbers and ranges, at most 1,000 items.
    #[schema(min_length = 1, max_length = 65536, example = "7")]
    pub indexes: String,
    /// Keep the keys of the items' first calls. By default they get new ones, so that the business treats them as new
    /// items.
    pub same_keys: Option<bool>,
    /// Start the task at once.
    pub start: Option<bool>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

impl Names for ReplayTask {
    const REQUEST: Request = Request::Redrive;
}
