//! Messages as codes with arguments.

use serde::{Deserialize, Serialize};
use serde_json::Map;
use serde_json::Value;
use utoipa::ToSchema;

/// Code of a message with its arguments, for clients that show it in another language than English.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Message {
    /// Stable code, such as `explain.on_target`.
    pub code: String,
    /// Arguments by name: a number, a text, `{"seconds": 2.5}`, `{"per_second": 12.5}`, `{"share": 0.42}`, or another
    /// message as `{"code", "args", "text"}`.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub args: Map<String, Value>,
}
