//! Row of an item, as the values that an expression names before its call.

use std::borrow::Cow;

use serde_json::Value;

use super::expr::Values;

/// Row of an item, with the length of its request; without either nothing is known of it.
#[derive(Clone, Debug, Default)]
pub struct Row {
    value: Option<Value>,
    request_bytes: Option<u64>,
}

impl Row {
    /// Reads the JSON of a row; text that isn't JSON has no values.
    pub fn read(text: Option<&str>) -> Row {
        Row {
            value: text.and_then(|text| serde_json::from_str(text).ok()),
            request_bytes: None,
        }
    }

    /// Adds the length of the request that is made of the row.
    #[must_use]
    pub fn with_request(self, bytes: Option<u64>) -> Row {
        Row {
            request_bytes: bytes,
            ..self
        }
    }
}

impl Values for Row {
    fn column(&self, name: &str) -> Option<Cow<'_, str>> {
        let row = self.value.as_ref()?;
        let value = match name.starts_with('/') {
            true => row.pointer(name)?,
            false => row.get(name)?,
        };
        match value {
            Value::String(text) => Some(Cow::Borrowed(text)),
            Value::Null => None,
            other => Some(Cow::Owned(other.to_string())),
        }
    }

    fn request_bytes(&self) -> Option<u64> {
        self.request_bytes
    }
}
