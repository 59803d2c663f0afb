//! The data of an item beside what is told of it.

use serde_json::Value;

use crate::output::body::member;
use crate::output::table::{Cell, clean};

/// What an item carries; why it can't be told, in brackets.
pub(crate) fn carried(thing: &Value, name: &str) -> Cell {
    match (member(thing, name), thing[format!("{name}_missing")].as_str()) {
        (Some(data), _) => Cell::new(data),
        (None, Some(why)) => Cell::new(format!("({why})")),
        (None, None) => Cell::nothing(),
    }
}

/// Behind a failure: what its item carries, if anything.
pub(crate) fn who(thing: &Value, name: &str) -> String {
    member(thing, name).map_or_else(String::new, |data| clean(&format!("  {data}")))
}
