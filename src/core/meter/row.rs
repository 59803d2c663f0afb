//! Row of an item, as the values that an expression names.

use std::borrow::Cow;

use serde_json::Value;

use super::expr::Values;

/// Row of an item; without one nothing is known of it.
#[derive(Clone, Debug, Default)]
pub struct Row(Option<Value>);

impl Row {
    /// Reads the JSON of a row; text that isn't JSON has no values.
    pub fn read(text: Option<&str>) -> Row {
        Row(text.and_then(|text| serde_json::from_str(text).ok()))
    }
}

impl Values for Row {
    fn column(&self, name: &str) -> Option<Cow<'_, str>> {
        let row = self.0.as_ref()?;
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
}
