//! Deserializers of members shared by several bodies.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// Maximum length of a change's reason, in characters.
pub const REASON_MAX: usize = 1000;

/// Reads a member for which null means "remove it".
///
/// # Errors
/// Fails if the value is neither null nor of the type.
pub fn some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(from).map(Some)
}

/// Reads the id of an object. The null id of a dry run is read as an empty string.
///
/// # Errors
/// Fails if the value is neither null nor a string.
pub fn id<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// Reads the optional `reason` of a change.
///
/// # Errors
/// Fails if it is not a string, is too long or contains NUL.
pub fn reason<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    match text {
        Some(text) if text.chars().count() > REASON_MAX => Err(D::Error::custom(format!(
            "a reason has at most {REASON_MAX} characters"
        ))),
        Some(text) if text.contains('\0') => Err(D::Error::custom(
            "a reason can't contain NUL, which databases don't store",
        )),
        text => Ok(text),
    }
}

/// Reads any JSON, with object members sorted by name. serde buffers flattened members, and a `RawValue` can't be
/// read from its buffer.
///
/// # Errors
/// Fails if the value is not JSON.
pub fn flat<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    let value = Option::<Value>::deserialize(from)?;
    value
        .map(|value| to_raw_value(&value))
        .transpose()
        .map_err(D::Error::custom)
}
