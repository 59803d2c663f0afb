//! Data of an item, printed with other facts about it.

use serde_json::value::RawValue;

use crate::output::table::{Cell, clean};

/// Formats the data of an item, or in brackets the reason why it is missing.
pub(crate) fn carried(data: Option<&RawValue>, missing: Option<&str>) -> Cell {
    match (data, missing) {
        (Some(data), _) => Cell::new(data.get()),
        (None, Some(why)) => Cell::new(format!("({why})")),
        (None, None) => Cell::nothing(),
    }
}

/// Formats the data of an item to follow its failure, empty if there is none.
pub(crate) fn who(data: Option<&RawValue>) -> String {
    data.map_or_else(String::new, |data| clean(&format!("  {}", data.get())))
}
