//! Names of units, which are the names of meters: `calls`, `tokens`, `eur`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use windrow_words::meter as say;

/// Maximum length of the name of a unit. Unit: bytes.
const BYTES_MAX: usize = 32;
/// Words that mean something else in a limit or in an expression.
const RESERVED: [&str; 7] = ["k", "m", "at", "once", "per", "min", "max"];

/// Name of a unit: lower-case letters, digits and `_`, beginning with a letter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit(String);

impl Unit {
    /// Unit that is meant where none is written: requests to the handler.
    pub const CALLS: &'static str = "calls";
    /// Unit of the items of a task.
    pub const ITEMS: &'static str = "items";

    /// Creates the unit of calls.
    pub fn calls() -> Unit {
        Unit(Unit::CALLS.to_owned())
    }

    /// Creates the unit of items.
    pub fn items() -> Unit {
        Unit(Unit::ITEMS.to_owned())
    }

    /// Parses a name; `call` and `item` are the built-in units too. `None` if no unit can have the name.
    pub fn parse(text: &str) -> Option<Unit> {
        let is_name = text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.len() <= BYTES_MAX
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            && !RESERVED.contains(&text);
        let name = match text {
            "call" => Unit::CALLS,
            "item" => Unit::ITEMS,
            other => other,
        };
        is_name.then(|| Unit(name.to_owned()))
    }

    /// Returns the name as people write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true for calls, which need no word in a limit.
    pub fn is_calls(&self) -> bool {
        self.0 == Unit::CALLS
    }

    /// Returns true for a unit that is counted without any expression.
    pub fn is_built_in(&self) -> bool {
        self.is_calls() || self.0 == Unit::ITEMS
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Unit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Unit, D::Error> {
        let text = String::deserialize(from)?;
        Unit::parse(&text).ok_or_else(|| serde::de::Error::custom(say::limit_unit()))
    }
}
