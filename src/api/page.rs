//! Pages of lists, and dry runs.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// One page of a list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// Objects on this page.
    pub items: Vec<T>,
    /// Cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Converts each item and keeps the cursor.
    pub fn map<J>(self, show: impl FnMut(T) -> J) -> Page<J> {
        Page {
            items: self.items.into_iter().map(show).collect(),
            next_cursor: self.next_cursor,
        }
    }
}

/// A node that should have contributed but didn't respond; stored values stand in for its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SilentNode {
    /// Name of the node.
    pub node: String,
    /// Reason why it can't be asked.
    pub why: String,
}

/// Result that a write would have had.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct DryRun {
    /// Always true: nothing was changed.
    pub dry_run: bool,
    /// The object as it would be; null if it would be deleted. A new object has a null `id`.
    #[schema(value_type = Value)]
    pub would: Box<RawValue>,
}

/// Reason for a change, recorded in the audit log.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
