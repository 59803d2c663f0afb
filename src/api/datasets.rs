//! Datasets, their generations, and uploaded rows.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::num::NonZeroU32;
use utoipa::ToSchema;

/// Output of one item of a generation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct GenerationItem {
    /// Number of the generation.
    pub generation: u64,
    /// 0-based index of the item.
    pub index: u64,
    /// Output that the handler returned, any JSON.
    #[schema(value_type = serde_json::Value)]
    pub output: Box<RawValue>,
}

/// Published results that readers find by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Dataset {
    /// Name used in URLs; never changes.
    pub name: String,
    /// Business whose tasks publish it.
    pub business: String,
    /// Current generation; null before the first publication.
    pub generation: Option<u64>,
    /// Highest generation ever published; 0 before the first.
    pub highest: u64,
    /// Publication number; grows each time another generation becomes current.
    pub publication: u64,
    /// Time of the latest publication.
    #[schema(format = DateTime)]
    pub published_at: Option<String>,
    /// Latest generation number assigned to a task.
    pub last: u64,
    /// Number of newest generations to keep.
    pub keep: u32,
    /// Version, also the ETag; grows with each change, including publications.
    pub version: u64,
    /// Time when it was created, by itself or with its first task.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Destination to which the current generation is copied: `none` or `redis`.
    pub sink: String,
    /// State of the copy; null if nothing is copied.
    pub sink_state: Option<SinkState>,
}

/// State of the copy in a sink, as its readers see it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SinkState {
    /// Redis key where readers start: a hash that names the other keys. Null if this node has no
    /// `datasets.redis_url`.
    pub pointer: Option<String>,
    /// Publication that was copied; null before the first copy and after the copy was lost.
    pub publication: Option<u64>,
    /// Generation that was copied.
    pub generation: Option<u64>,
    /// Time when the copy was made.
    #[schema(format = DateTime)]
    pub copied_at: Option<String>,
    /// Time since which the copy lags behind the current generation; null if it is up to date.
    #[schema(format = DateTime)]
    pub behind_since: Option<String>,
    /// Error of the last attempt to copy; null if it succeeded.
    pub fault: Option<String>,
}

/// Results of one task, published under one number.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Generation {
    /// Name of the dataset.
    pub dataset: String,
    /// Number of the generation.
    pub generation: u64,
    /// `pending` until its task ends, then `published` or `withheld`.
    pub state: String,
    /// True if it is the current generation.
    pub current: bool,
    /// True if it is kept regardless of later generations.
    pub pinned: bool,
    /// Task that produced the results; it may have been deleted.
    pub task: String,
    /// Number of results in it.
    pub results: u64,
    /// Output member by which results can be looked up; null if there is no lookup.
    pub key: Option<String>,
    /// Publication that first made it current.
    pub publication: Option<u64>,
    /// Reason why it was withheld.
    pub why: Option<String>,
    /// Time when its task was created.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time when it was published.
    #[schema(format = DateTime)]
    pub published_at: Option<String>,
}

/// A generation with its summary, read at one moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct GenerationRead {
    #[serde(flatten)]
    pub generation: Generation,
    /// Number of the publication that is current now.
    pub current_publication: u64,
    /// Summary from the reduce step, any JSON; null without one.
    #[schema(value_type = Option<serde_json::Value>)]
    pub summary: Option<Box<RawValue>>,
}

/// Uploaded rows, the source of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Upload {
    /// Id to use in the `source` of a task.
    pub id: String,
    /// `open` while bytes are missing, then `ready`.
    pub state: String,
    /// `csv`, `ndjson`, `lines` or `nul`.
    pub kind: String,
    /// Stored size, in bytes. Compressed uploads are stored compressed.
    pub bytes: u64,
    /// `gzip`, `zstd`, `bzip2` or `xz` if the upload is compressed; only when ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<String>,
    /// Number of rows, each of them an item; only when ready.
    pub rows: Option<u64>,
    /// Column names of a CSV; only when ready.
    pub columns: Vec<String>,
    /// The first rows; only when ready.
    pub sample: Value,
    /// SHA-256 of all bytes as sent; only when ready.
    pub sha256: Option<String>,
    /// Time when the upload began.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time when a task took it. Uploads that no task takes are deleted after 24 hours.
    #[schema(format = DateTime)]
    pub used_at: Option<String>,
    /// Storage quota of the business; only in responses about its own uploads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<UploadQuota>,
}

/// Storage quota for the uploads of a business, including those used by its tasks (`http.upload_quota`).
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct UploadQuota {
    /// Total storage allowed, in bytes.
    pub bytes: u64,
    /// Storage used now, in bytes.
    pub stored: u64,
    /// Warning for people, present once little is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Dataset to create before the first task publishes to it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateDataset {
    /// Name used in URLs; never changes. A token of a business may use only its slug, or names that begin with the
    /// slug and a dot.
    #[schema(max_length = 40, pattern = r"^[a-z0-9-]+(\.[a-z0-9-]+)*$")]
    pub name: String,
    /// Business whose tasks publish it.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub business: String,
    /// Number of newest generations to keep; 5 by default.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    pub keep: Option<NonZeroU32>,
    /// Destination to copy the current generation to: `redis` (the node's `datasets.redis_url`) or `none`.
    #[schema(pattern = "^(none|redis)$")]
    pub sink: Option<String>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Change of a dataset.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditDataset {
    /// Number of newest generations to keep. Older ones are deleted, except pinned ones and the current one.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    pub keep: Option<NonZeroU32>,
    /// Destination to copy the current generation to: `redis` (the node's `datasets.redis_url`) or `none`.
    #[schema(pattern = "^(none|redis)$")]
    pub sink: Option<String>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Generation to make current again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    /// Generation number; it must have been published and still be kept.
    #[schema(minimum = 1)]
    pub generation: u64,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
