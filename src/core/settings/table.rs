//! The live settings of a task, declared once: name, type, default and what it means.
//!
//! The settings of a task, a change of them, their defaults, their stored form and the keys of `[task_defaults]` in a
//! file and the environment are made from this table.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::settings::json::span;
use crate::settings::text::parse_span;
use crate::settings::{Auto, Backoff, Burst, ErrorBudget, OnExhausted, RateLimit};

/// Calls the macro `$then` with every live setting, `about name: Type = default;` each.
///
/// The default is written as in `config.toml`, which gives the reason for it.
#[macro_export]
macro_rules! live_settings {
    ($then:ident) => {
        $then! {
            /// Item attempts in a time, retries included: 500/s, 30/m, 1/2s, or unlimited
            ///
            /// "unlimited" is unpaced (`windrow run` without --rate is)
            rate: $crate::settings::RateLimit = "100/s";
            /// How much may leave at once above the steady rate: 100ms (of the rate) or '50 items'
            ///
            /// 100ms at 500/s are 50 items; as a span never below max(2 × batch, 4)
            burst: $crate::settings::Burst = "100ms";
            /// Items in flight at the same time: a number or auto
            ///
            /// auto = 64, once a p95 is known max(64, rate × p95 × 1.5)
            concurrency: $crate::settings::Auto<std::num::NonZeroU32> = "auto";
            /// The most that concurrency = auto may become
            max_concurrency: std::num::NonZeroU32 = 1024;
            /// Items between low water and the highest that may leave: a number or auto
            ///
            /// auto = max(2 × concurrency, 4096)
            window: $crate::settings::Auto<std::num::NonZeroU32> = "auto";
            /// Items of one call
            batch: std::num::NonZeroU32 = 1;
            /// How long an item may wait for its batch to fill
            batch_linger: std::time::Duration = "5ms";
            /// How long one call of the handler may take
            timeout: std::time::Duration = "10s";
            /// Attempts of one item before it is given up
            ///
            /// They are counted across restarts
            max_attempts: std::num::NonZeroU32 = 5;
            /// The wait between attempts: '1s..60s x2 jitter 20%'
            ///
            /// The first wait..the longest, the factor, the spread
            backoff: $crate::settings::Backoff = "1s..60s x2 jitter 20%";
            /// What an item without attempts left means: abandon (it, and go on) or stop (the task)
            on_exhausted: $crate::settings::OnExhausted = "abandon";
            /// Errors that are tolerated: 10/s failed attempts (more: it pauses), 1% or 500 given up (more: it stops), none
            ///
            /// Both: "10/s 1%"
            error_budget: $crate::settings::ErrorBudget = "10/s";
            /// The span over which failed attempts are counted for the rate of the error budget
            error_window: std::time::Duration = "10s";
            /// How often progress is saved
            checkpoint_interval: std::time::Duration = "1s";
            /// Completions that may be unsaved: a number or auto
            ///
            /// The bound on repeats after a crash; auto = max(10 × concurrency, 100,000, 5 × settled in the last second)
            unsaved_max: $crate::settings::Auto<std::num::NonZeroU32> = "auto";
            /// How long an item may hold a full window before it is parked although in flight
            straggler_after: std::time::Duration = "1s";
            /// A longer retry wait parks the item, so that it doesn't hold the window
            park_after: std::time::Duration = "2s";
            /// Parked items per shard
            parked_max: u32 = 10_000;
            /// One item at a time, in index order
            ordered: bool = false;
            /// How long the handler may be down before the task stops; nothing is lost by it
            ///
            /// A night and a day: somebody has seen it by then
            outage_patience: std::time::Duration = "24h";
            /// How long items without a verdict are tried when nothing else is left to compare them with
            ///
            /// Most outages of a deploy or a restart are over by then; 0s judges them at once: people know that it is the items
            judge_after: std::time::Duration = "10m";
        }
    };
}

/// The type of a setting: how it is read from text, and read and written in JSON and TOML.
pub trait Value: Sized {
    /// Reads it as people write it.
    ///
    /// # Errors
    /// What was expected.
    fn parse(text: &str) -> Result<Self, String>;

    /// Reads it from JSON or TOML.
    ///
    /// # Errors
    /// When it isn't one.
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error>;

    /// Writes it to JSON or TOML.
    ///
    /// # Errors
    /// When the format refuses.
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;
}

macro_rules! by_serde {
    ($($type:ty),+ $(,)?) => {$(
        impl Value for $type {
            fn parse(text: &str) -> Result<$type, String> {
                text.parse().map_err(|error| format!("{error}"))
            }

            fn read<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                Deserialize::deserialize(from)
            }

            fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                self.serialize(to)
            }
        }
    )+};
}

by_serde!(
    RateLimit,
    Burst,
    Auto<NonZeroU32>,
    NonZeroU32,
    u32,
    Backoff,
    OnExhausted,
    ErrorBudget,
    bool
);

impl Value for Duration {
    fn parse(text: &str) -> Result<Duration, String> {
        parse_span(text).map_err(|error| error.to_string())
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        span::deserialize(from)
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        span::serialize(self, to)
    }
}

/// The default that the table gives a setting.
pub(crate) fn default<T: Value>(written: &str) -> T {
    let plain = written.trim_matches('"').replace('_', "");
    T::parse(&plain).expect("the table's defaults are sound; a test reads all of them")
}

/// A setting in its serde form.
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

/// The serde form of a setting.
pub(crate) mod written {
    use super::{Deserializer, Serializer, Value};

    pub(crate) fn serialize<T: Value, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        value.write(to)
    }

    pub(crate) fn deserialize<'de, T: Value, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        T::read(from)
    }
}

/// The serde form of a setting that may be absent.
pub mod written_option {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Value, Written};

    /// Writes the value, or nothing.
    ///
    /// # Errors
    /// When the format refuses.
    pub fn serialize<T: Value, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(Written).serialize(to)
    }

    /// Reads the value, or nothing.
    ///
    /// # Errors
    /// When it isn't one.
    pub fn deserialize<'de, T: Value, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
        Ok(Option::<Written<T>>::deserialize(from)?.map(|Written(value)| value))
    }
}
