//! Values of a row, for the expressions that say what a call costs.

use std::borrow::Cow;

use serde_json::Value;
use windrow_core::meter::expr::Values;

/// Row of an item as JSON.
#[derive(Clone, Debug)]
pub struct RowValues(Option<Value>);

impl RowValues {
    /// Parses the row of an item; one that is missing or no JSON has no values.
    pub fn of(text: Option<&str>) -> RowValues {
        RowValues(text.and_then(|text| serde_json::from_str(text).ok()))
    }
}

impl Values for RowValues {
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
