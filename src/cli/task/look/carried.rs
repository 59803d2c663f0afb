//! The data of an item beside what is told of it.

use serde_json::value::RawValue;

use crate::output::table::{Cell, clean};

/// What an item carries; why it can't be told, in brackets.
pub(crate) fn carried(data: Option<&RawValue>, missing: Option<&str>) -> Cell {
    match (data, missing) {
        (Some(data), _) => Cell::new(data.get()),
        (None, Some(why)) => Cell::new(format!("({why})")),
        (None, None) => Cell::nothing(),
    }
}

/// Behind a failure: what its item carries, if anything.
pub(crate) fn who(data: Option<&RawValue>) -> String {
    data.map_or_else(String::new, |data| clean(&format!("  {}", data.get())))
}
