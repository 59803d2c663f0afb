//! Forms of members that several bodies share.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// The longest reason of a change. Unit: characters.
pub const REASON_MAX: usize = 1000;

/// Reads a member whose null means something: "take it away".
///
/// # Errors
/// When it is neither null nor such a value.
pub fn some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(from).map(Some)
}

/// Reads the id of a thing; that of one which a dry run would make is null, and nothing here.
///
/// # Errors
/// When it is no text.
pub fn id<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// Reads the `reason` of a change: none, or a text that isn't too long.
///
/// # Errors
/// When it is something else.
pub fn reason<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    match text {
        Some(text) if text.chars().count() > REASON_MAX => Err(D::Error::custom(format!(
            "a reason has at most {REASON_MAX} characters"
        ))),
        Some(text) if text.contains('\0') => Err(D::Error::custom(
            "a reason has no NUL, which databases don't store",
        )),
        text => Ok(text),
    }
}

/// Reads any JSON, its members in the order of their names. serde buffers what is flattened, and no `RawValue` can be
/// read from its buffer.
///
/// # Errors
/// When it is no JSON.
pub fn flat<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    let value = Option::<Value>::deserialize(from)?;
    value
        .map(|value| to_raw_value(&value))
        .transpose()
        .map_err(D::Error::custom)
}
