//! Types of configuration values: how each is read from TOML and written by people.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::de::DeserializeOwned;
use toml::Value as Toml;
use toml::de::Error;

use super::command::Command;
use super::grant::Grant;
use super::read::Reader;
use super::table::{Key, Row};
use super::values::{ActorTree, AuthMode, DataLogLevel, LogFormat, StoreUrl};
use windrow_core::business::network::Network;
use windrow_core::settings::table::{SETTINGS, TuningPatch};
use windrow_core::settings::text::{ByteSize, TextError, parse_span};
use windrow_core::settings::value::Kind;
use windrow_core::settings::{Auto, Backoff, Rate, RateLimit, Share};
use windrow_core::task::Tuning;

/// Type of a section's field: a single key, or a table of keys.
pub(super) trait Value: Clone + PartialEq {
    /// Form of the value, for people.
    const WRITTEN: &'static str;

    /// Reads the value from TOML.
    fn read(value: &Toml) -> Result<Self, String>;

    /// Takes the written value, or the default.
    fn take(from: &mut Reader, key: &'static str, default: Self) -> Self {
        from.key(key, Self::read).unwrap_or(default)
    }

    /// Returns the keys of the field.
    fn keys(row: &Row) -> Vec<Key> {
        vec![Key::new(
            row,
            row.key.to_owned(),
            row.written,
            row.default,
            row.about,
        )]
    }

    /// Returns the keys whose values differ.
    fn changes(&self, new: &Self, key: &'static str) -> Vec<String> {
        (self != new).then(|| key.to_owned()).into_iter().collect()
    }
}

macro_rules! values {
    ($($type:ty = $written:literal by $read:expr;)+) => {$(
        impl Value for $type {
            const WRITTEN: &'static str = $written;

            fn read(value: &Toml) -> Result<$type, String> {
                let read: fn(&Toml) -> Result<$type, String> = $read;
                read(value)
            }
        }
    )+};
}

values! {
    bool = "true or false" by whole;
    u32 = "number" by whole;
    u64 = "number" by whole;
    NonZeroU32 = "number" by whole;
    Auto<NonZeroU32> = "number or \"auto\"" by whole;
    String = "text" by whole;
    Option<String> = "text" by optional;
    Auto<String> = "text" by |value| match text(value)? {
        "" => Err("must not be empty; use \"auto\" or a name".to_owned()),
        "auto" => Ok(Auto::Auto),
        name => Ok(Auto::Fixed(name.to_owned())),
    };
    PathBuf = "path" by |value| whole(value).and_then(|path: PathBuf| match path.as_os_str().is_empty() {
        true => Err("must not be empty".to_owned()),
        false => Ok(path),
    });
    Option<PathBuf> = "path" by optional;
    Duration = "span" by |value| parse_span(text(value)?).map_err(|error| error.to_string());
    Rate = "rate" by whole;
    RateLimit = "rate or \"unlimited\"" by whole;
    ByteSize = "size" by whole;
    Backoff = "\"FIRST..LONGEST xFACTOR jitter N%\"" by whole;
    SocketAddr = "address:port" by parsed;
    StoreUrl = "URL or \"auto\"" by parsed;
    AuthMode = "one of" by parsed;
    DataLogLevel = "one of" by parsed;
    LogFormat = "one of" by parsed;
    ActorTree = "some of" by parsed;
    Share = "percentage" by parsed;
    Vec<String> = "list of strings" by whole;
    Vec<Network> = "list of networks" by |value| {
        let texts: Vec<String> = whole(value)?;
        texts.iter().map(|text| text.parse().map_err(|error| format!("{error}"))).collect()
    };
    BTreeMap<String, String> = "table of strings" by whole;
    BTreeMap<String, Grant> = "table of roles" by |value| {
        let texts: BTreeMap<String, String> = whole(value)?;
        let read = |(group, text): (String, String)| text.parse().map(|grant| (group, grant));
        texts.into_iter().map(read).collect::<Result<_, TextError>>().map_err(|error| error.to_string())
    };
    Auto<Grant> = "role or \"auto\"" by |value| match text(value)? {
        "auto" => Ok(Auto::Auto),
        role => role.parse().map(Auto::Fixed).map_err(|error: TextError| error.to_string()),
    };
    BTreeMap<String, Command> = "tables" by whole;
}

/// Live settings: one key each, next to the other keys of their section.
impl Value for Tuning {
    const WRITTEN: &'static str = "";

    fn read(value: &Toml) -> Result<Tuning, String> {
        whole(value)
    }

    fn take(from: &mut Reader, key: &'static str, default: Tuning) -> Tuning {
        let mut named = TuningPatch::default();
        for setting in SETTINGS {
            let read = |value: Toml| {
                let mut one = TuningPatch::default();
                one.read(setting.name, value).map(|()| one)
            };
            if let Some(one) = from.key(&beside(key, setting.name), |value| literal(value, read)) {
                named = named.and(&one);
            }
        }
        named.apply(&default)
    }

    fn keys(row: &Row) -> Vec<Key> {
        let key = |setting: &windrow_core::settings::table::Setting| {
            let name = beside(row.key, setting.name);
            Key::new(row, name, kind(setting.kind), setting.default, setting.about)
        };
        SETTINGS.iter().map(key).collect()
    }

    fn changes(&self, new: &Tuning, key: &'static str) -> Vec<String> {
        self.differences(new)
            .into_iter()
            .map(|name| beside(key, name))
            .collect()
    }
}

/// Returns the key of a setting within the section of the settings table.
fn beside(key: &str, name: &str) -> String {
    format!(
        "{}.{name}",
        key.rsplit_once('.').map_or(key, |(section, _)| section)
    )
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::RateLimit => "rate, \"auto\", \"auto up to RATE\", or \"unlimited\"",
        Kind::Burst => "span of the rate, or \"N items\"",
        Kind::NumberOrAuto => <Auto<NonZeroU32>>::WRITTEN,
        Kind::Positive | Kind::Number => u32::WRITTEN,
        Kind::Span => Duration::WRITTEN,
        Kind::SpanOrAuto => "span, or \"auto\"",
        Kind::Backoff => Backoff::WRITTEN,
        Kind::OnExhausted | Kind::Results => AuthMode::WRITTEN,
        Kind::ErrorBudget => "rate, share, number, \"auto\" or \"none\"",
        Kind::Switch => bool::WRITTEN,
    }
}

fn text(value: &Toml) -> Result<&str, String> {
    let fault = || format!("expected a string in quotes, not {}", value.type_str());
    value.as_str().ok_or_else(fault)
}

/// Parses a value from a string.
fn parsed<T: FromStr<Err: Display>>(value: &Toml) -> Result<T, String> {
    text(value)?.parse().map_err(|error: T::Err| error.to_string())
}

/// Reads an optional string, with "" as `None`.
fn optional<T: From<String>>(value: &Toml) -> Result<Option<T>, String> {
    let text = text(value)?;
    Ok((!text.is_empty()).then(|| T::from(text.to_owned())))
}

/// Reads a value with serde.
fn whole<T: DeserializeOwned>(value: &Toml) -> Result<T, String> {
    literal(value, |value| T::deserialize(value))
}

/// Reads a value as given or, if that fails, as TOML (`16`, `true`, `["a"]`): the environment holds only strings.
fn literal<T>(value: &Toml, read: impl Fn(Toml) -> Result<T, Error>) -> Result<T, String> {
    let message = |error: Error| error.message().trim().replace('\n', " ");
    let as_is = read(value.clone()).map_err(message);
    let Toml::String(text) = value else { return as_is };
    as_is.or_else(|error| {
        let meant = super::table::toml_of(text)
            .filter(|meant| !meant.is_str())
            .ok_or(error);
        meant.and_then(|meant| read(meant).map_err(message))
    })
}
