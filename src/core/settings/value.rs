//! Types of live settings: parsing from text, and reading and writing JSON and TOML.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::settings::json::span;
use crate::settings::text::parse_span;
use crate::settings::{Auto, Backoff, Burst, ErrorBudget, OnExhausted, RateLimit, Results};

/// Form in which a setting is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A rate, or `unlimited`.
    RateLimit,
    /// A span of the rate, or items.
    Burst,
    /// A number above 0, or `auto`.
    NumberOrAuto,
    /// A number above 0.
    Positive,
    /// A number, which may be 0.
    Number,
    /// A span of time.
    Span,
    /// A span of time, or `auto`.
    SpanOrAuto,
    /// A back-off: waits, factor and jitter.
    Backoff,
    /// Either `fail` or `stop`.
    OnExhausted,
    /// Either `off` or `keep`.
    Results,
    /// A rate, a share, a number, or `none`.
    ErrorBudget,
    /// Either `true` or `false`.
    Switch,
}

/// Type of a setting's value.
pub trait Value: Sized {
    /// Form in which it is written.
    const KIND: Kind;

    /// Parses the text form.
    ///
    /// # Errors
    /// Returns the expected form.
    fn parse(text: &str) -> Result<Self, String>;

    /// Reads a value from JSON or TOML.
    ///
    /// # Errors
    /// Fails if it isn't a value of this type.
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error>;

    /// Writes the value to JSON or TOML.
    ///
    /// # Errors
    /// Fails if the format refuses it.
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;

    /// Returns the size that bounds apply to: a number, or the nanoseconds of a span. `None` if it has no size.
    fn size(&self) -> Option<u128> {
        None
    }
}

macro_rules! by_serde {
    ($($type:ty: $kind:ident $(, $size:expr)?;)+) => {$(
        impl Value for $type {
            const KIND: Kind = Kind::$kind;

            fn parse(text: &str) -> Result<$type, String> {
                text.parse().map_err(|error| format!("{error}"))
            }

            fn read<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                Deserialize::deserialize(from)
            }

            fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                self.serialize(to)
            }

            $(fn size(&self) -> Option<u128> {
                let size: fn($type) -> Option<u128> = $size;
                size(*self)
            })?
        }
    )+};
}

by_serde! {
    RateLimit: RateLimit;
    Burst: Burst, |burst| match burst {
        Burst::Span(span) => Some(span.as_nanos()),
        Burst::Items(_) => None,
    };
    Auto<NonZeroU32>: NumberOrAuto, |number| match number {
        Auto::Fixed(number) => number.size(),
        Auto::Auto => None,
    };
    Auto<Duration>: SpanOrAuto, |span| match span {
        Auto::Fixed(span) => Some(span.as_nanos()),
        Auto::Auto => None,
    };
    NonZeroU32: Positive, |number| Some(u128::from(number.get()));
    u32: Number, |number| Some(u128::from(number));
    Backoff: Backoff, |backoff| Some(backoff.max.as_nanos());
    OnExhausted: OnExhausted;
    Results: Results;
    ErrorBudget: ErrorBudget;
    bool: Switch;
}

impl Value for Duration {
    const KIND: Kind = Kind::Span;

    fn parse(text: &str) -> Result<Duration, String> {
        parse_span(text).map_err(|error| error.to_string())
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        span::deserialize(from)
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        span::serialize(self, to)
    }

    fn size(&self) -> Option<u128> {
        Some(self.as_nanos())
    }
}

/// Parses a default or bound that the table writes as TOML.
pub(crate) fn default<T: Value>(written: &str) -> T {
    let plain = written.trim_matches('"').replace('_', "");
    T::parse(&plain).expect("the table's defaults and bounds are sound; a test reads all of them")
}

/// Wrapper that gives a setting its serde form.
#[derive(Clone, Copy, Debug)]
pub struct Written<T>(pub T);

impl<T: Value> Serialize for Written<&T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.write(to)
    }
}

impl<'de, T: Value> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Written<T>, D::Error> {
        T::read(from).map(Written)
    }
}

/// Serde form of a setting.
pub(crate) mod written {
    use super::{Deserializer, Serializer, Value};

    pub(crate) fn serialize<T: Value, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        value.write(to)
    }

    pub(crate) fn deserialize<'de, T: Value, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        T::read(from)
    }
}

/// Serde form of an optional setting.
pub mod written_option {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Value, Written};

    /// Writes the value, or null.
    ///
    /// # Errors
    /// Fails if the format refuses it.
    pub fn serialize<T: Value, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(Written).serialize(to)
    }

    /// Reads the value, or null.
    ///
    /// # Errors
    /// Fails if it isn't a value of this type.
    pub fn deserialize<'de, T: Value, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
        Ok(Option::<Written<T>>::deserialize(from)?.map(|Written(value)| value))
    }
}
