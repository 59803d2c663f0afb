//! Datasets, their generations and uploaded rows.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::num::NonZeroU32;
use utoipa::ToSchema;

/// What one item of a generation came to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct GenerationItem {
    /// The generation.
    pub generation: u64,
    /// The item's 0-based index.
    pub index: u64,
    /// What its handler answered, any JSON.
    #[schema(value_type = serde_json::Value)]
    pub output: Box<RawValue>,
}

/// What readers know by a name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Dataset {
    /// Its name in URLs; never changes.
    pub name: String,
    /// The business whose tasks publish it.
    pub business: String,
    /// The current generation; null before the first publication.
    pub generation: Option<u64>,
    /// The highest that was ever published; 0 before the first.
    pub highest: u64,
    /// Grows with each move of the pointer.
    pub publication: u64,
    /// When it moved last.
    #[schema(format = DateTime)]
    pub published_at: Option<String>,
    /// The number that was given to a task last.
    pub last: u64,
    /// So many of the newest generations stay.
    pub keep: u32,
    /// Grows with each change, publications too; the tag.
    pub version: u64,
    /// When its first task was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was changed last.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Where the current generation is copied to: `none` or `redis`.
    pub sink: String,
    /// What readers find there; null where it is copied nowhere.
    pub sink_state: Option<SinkState>,
}

/// What readers of a sink find.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SinkState {
    /// The key with which they begin: a hash that names the others. Null where this node knows no Redis of readers.
    pub pointer: Option<String>,
    /// The publication; null before the first copy, and after it was lost.
    pub publication: Option<u64>,
    /// Its generation.
    pub generation: Option<u64>,
    /// Since when they find it.
    #[schema(format = DateTime)]
    pub copied_at: Option<String>,
    /// Since when that is something else than what is current; null where it isn't.
    #[schema(format = DateTime)]
    pub behind_since: Option<String>,
    /// Why the last try to copy failed; null where it didn't.
    pub fault: Option<String>,
}

/// The results of one task, under one number.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Generation {
    /// The dataset.
    pub dataset: String,
    /// Its number.
    pub generation: u64,
    /// `pending` until its task has ended, then `published`, or `withheld`.
    pub state: String,
    /// Whether it is the current one.
    pub current: bool,
    /// Whether it stays however many come after it.
    pub pinned: bool,
    /// The task whose results it is; it may be gone.
    pub task: String,
    /// How many results it has.
    pub results: u64,
    /// The member of the outputs by which it can be looked up; null where it can't.
    pub key: Option<String>,
    /// The publication by which it first became current.
    pub publication: Option<u64>,
    /// Why it was withheld.
    pub why: Option<String>,
    /// When its task was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was published.
    #[schema(format = DateTime)]
    pub published_at: Option<String>,
}

/// A generation with its summary, as of one moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct GenerationRead {
    #[serde(flatten)]
    pub generation: Generation,
    /// The number of the publication that is current now.
    pub current_publication: u64,
    /// What the reduce answered, any JSON; null without one.
    #[schema(value_type = Option<serde_json::Value>)]
    pub summary: Option<Box<RawValue>>,
}

/// An upload.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Upload {
    /// Its name, for the `source` of a task.
    pub id: String,
    /// `open` while bytes are missing, else `ready`.
    pub state: String,
    /// `csv`, `ndjson`, `lines` or `nul`.
    pub kind: String,
    /// Size, as it is stored; what was sent compressed is kept compressed. Unit: bytes.
    pub bytes: u64,
    /// `gzip`, `zstd`, `bzip2` or `xz`, if it was sent compressed; only when ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<String>,
    /// Rows, which are items; only when ready.
    pub rows: Option<u64>,
    /// The columns of a CSV; only when ready.
    pub columns: Vec<String>,
    /// The first rows; only when ready.
    pub sample: Value,
    /// SHA-256 of all bytes, as they were sent; only when ready.
    pub sha256: Option<String>,
    /// When it began.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When a task took it; one that none takes is removed after 24 hours.
    #[schema(format = DateTime)]
    pub used_at: Option<String>,
    /// What the business may store; only of its own uploads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<UploadQuota>,
}

/// What the uploads of a business may take, those that its tasks have included (`http.upload_quota`).
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct UploadQuota {
    /// All of it. Unit: bytes.
    pub bytes: u64,
    /// What is taken now. Unit: bytes.
    pub stored: u64,
    /// Once little is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A change of a dataset.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditDataset {
    /// So many of the newest generations stay; those beyond go, but for pinned ones and the current one.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    pub keep: Option<NonZeroU32>,
    /// Where the current generation is copied to: `redis`, which `datasets.redis_url` of nodes names, or `none`.
    #[schema(pattern = "^(none|redis)$")]
    pub sink: Option<String>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Which generation becomes current again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    /// One that was published and is kept.
    #[schema(minimum = 1)]
    pub generation: u64,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
