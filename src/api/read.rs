//! Forms of members that several bodies share.

use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// The longest reason of a change. Unit: characters.
pub const REASON_MAX: usize = 1000;

/// Reads a member whose null means something: "take it away".
///
/// # Errors
/// When it is neither null nor such a value.
pub fn some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(from).map(Some)
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
