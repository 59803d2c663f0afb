//! Types of attributes: reading and writing them in JSON.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Deref;
use windrow_words::task as say;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ids::{ItemIndex, WallMs};
use crate::meter::metering::Metering;
use crate::settings::Auto;
use crate::settings::json::{few_texts, object_option, tree};
use crate::task::Canary;

/// Kind of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name without blanks.
    Name,
    /// Texts with their names.
    Texts,
    /// Names of shared limits.
    Limits,
    /// A signed integer of 32 bits.
    Integer,
    /// An index, or a number of items.
    Index,
    /// A number above 0, or `auto`.
    NumberOrAuto,
    /// Either `true` or `false`.
    Switch,
    /// Any JSON value, kept as written.
    Json,
    /// A time in RFC 3339.
    Time,
    /// A number of items, and the step that follows them.
    Canary,
    /// Limits in units, with expressions of costs.
    Metering,
}

impl Kind {
    /// Returns true if a task may have no value of this kind.
    pub fn is_optional(self) -> bool {
        matches!(self, Kind::Name | Kind::Json | Kind::Time | Kind::Canary)
    }
}

/// Type of an attribute.
pub trait Form: Sized + Default {
    /// Kind of its values.
    const KIND: Kind;

    /// Reads a value from JSON; returns `None` for `null`.
    ///
    /// # Errors
    /// Fails if it isn't a value of this type.
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Self>, D::Error>;

    /// Writes a value to JSON.
    ///
    /// # Errors
    /// Fails if the format refuses it.
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;
}

macro_rules! by_serde {
    ($($type:ty: $kind:ident, $read:path;)+) => {$(
        impl Form for $type {
            const KIND: Kind = Kind::$kind;

            fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Option<$type>, D::Error> {
                $read(from)
            }

            fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                self.serialize(to)
            }
        }
    )+};
}

by_serde! {
    Option<String>: Name, option;
    BTreeMap<String, String>: Texts, few_texts;
    Vec<String>: Limits, Option::deserialize;
    i32: Integer, Option::deserialize;
    ItemIndex: Index, Option::deserialize;
    Shards: NumberOrAuto, Option::deserialize;
    bool: Switch, Option::deserialize;
    Option<JsonText>: Json, option;
    Option<Canary>: Canary, canary;
    Box<Metering>: Metering, Option::deserialize;
}

/// Reads an optional value; `null` names nothing.
fn option<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Ok(Option::deserialize(from)?.map(Some))
}

fn canary<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<Canary>>, D::Error> {
    Ok(object_option(from)?.map(Some))
}

impl Form for Option<WallMs> {
    const KIND: Kind = Kind::Time;

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<WallMs>>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let at = text.map(|text| {
            WallMs::from_rfc3339(&text)
                .map_err(|error| D::Error::custom(say::not_a_time(error.to_string(), "2026-11-20T17:02:11Z")))
        });
        Ok(at.transpose()?.map(Some))
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.map(WallMs::to_rfc3339).serialize(to)
    }
}

/// Number of shards that a task is cut into; 1 by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shards(pub Auto<NonZeroU32>);

impl Default for Shards {
    fn default() -> Shards {
        Shards(Auto::Fixed(NonZeroU32::MIN))
    }
}

/// JSON as it was written, which keeps the digits of large numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonText(pub Box<RawValue>);

impl JsonText {
    /// Returns the JSON as a tree ([`tree`]).
    pub fn value(&self) -> Value {
        tree(self.0.get())
    }
}

impl Deref for JsonText {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &JsonText) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for JsonText {}

/// Wrapper that writes a value in the form of its attribute.
pub(super) struct Shown<'a, T>(pub(super) &'a T);

impl<T: Form> Serialize for Shown<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.write(to)
    }
}

/// Serde form of an attribute.
pub(super) mod written {
    use super::{Deserializer, Form, Serializer};

    pub(in super::super) fn serialize<T: Form, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        value.write(to)
    }

    pub(in super::super) fn deserialize<'de, T: Form, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        Ok(T::read(from)?.unwrap_or_default())
    }
}
