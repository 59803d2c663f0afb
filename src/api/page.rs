//! Pages of lists, and dry runs.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// One page of a list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// The things.
    pub items: Vec<T>,
    /// Where the next page begins; null on the last one.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// The same page of items as they are shown.
    pub fn map<J>(self, show: impl FnMut(T) -> J) -> Page<J> {
        Page {
            items: self.items.into_iter().map(show).collect(),
            next_cursor: self.next_cursor,
        }
    }
}

/// A node that has a part in this and gave no answer: of its part the answer has what is stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SilentNode {
    /// Its name.
    pub node: String,
    /// Why it can't be asked.
    pub why: String,
}

/// What a write would have come to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct DryRun {
    /// Always true: nothing was changed.
    pub dry_run: bool,
    /// The thing as it would be; null for what would be gone. What would be new has a null `id`.
    #[schema(value_type = Value)]
    pub would: Box<RawValue>,
}

/// Why, for the audit.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
