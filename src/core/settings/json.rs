//! Serde form of settings: their text, or a plain number where a number is meant.

use std::collections::BTreeMap;
use std::fmt::{self, Display as _};
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;
use windrow_words::settings as say;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::settings::text::{ByteSize, TextError, parse_span, span_text};
use crate::settings::{Auto, Backoff, Burst, ErrorBudget, OnExhausted, Rate, RateLimit, Results};

/// Maximum length of a setting's text; each is shorter when it is written back. Unit: characters.
pub const TEXT_CHARS_MAX: usize = 80;

/// Visitor that reads a text, or a number as if it had been written as text.
struct TextOrNumber<T>(PhantomData<T>);

impl<T: FromStr<Err = TextError>> Visitor<'_> for TextOrNumber<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        say::text_or_number().fmt(f)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        short(text)?.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

/// Returns the text, or fails if it is longer than any setting.
fn short<E: Error>(text: &str) -> Result<&str, E> {
    if text.chars().count() > TEXT_CHARS_MAX {
        return Err(E::custom(say::too_long(TEXT_CHARS_MAX)));
    }
    Ok(text)
}

macro_rules! reads_text {
    ($($type:ty),+) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                from.deserialize_any(TextOrNumber(PhantomData))
            }
        }
    )+};
}

macro_rules! writes_text {
    ($($type:ty),+) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
    )+};
}

reads_text!(
    Rate,
    RateLimit,
    Burst,
    Auto<NonZeroU32>,
    Auto<Duration>,
    Backoff,
    OnExhausted,
    Results,
    ErrorBudget,
    ByteSize
);
writes_text!(
    Rate,
    RateLimit,
    Burst,
    Auto<Duration>,
    Backoff,
    OnExhausted,
    Results,
    ErrorBudget,
    ByteSize
);

impl Serialize for Auto<NonZeroU32> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Auto::Auto => to.serialize_str("auto"),
            Auto::Fixed(number) => to.serialize_u32(number.get()),
        }
    }
}

/// Serde form of a `Duration`: `"15s"`.
pub mod span {
    use super::{Deserialize, Deserializer, Duration, Error, Serializer, parse_span, short, span_text};

    /// Writes the span in the form that people use.
    ///
    /// # Errors
    /// Fails if the format refuses the text.
    pub fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&span_text(*span))
    }

    /// Reads a span in the form that people use.
    ///
    /// # Errors
    /// Fails if the text isn't a span.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        parse_span(short(&String::deserialize(from)?)?).map_err(D::Error::custom)
    }
}

/// Value that must be written as an object. A derived reader of a struct also accepts an array, in which nothing has
/// a name.
#[derive(Clone, Copy, Debug)]
pub struct Object<T>(pub T);

struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        say::object().fmt(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Object)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Object<T>, D::Error> {
        from.deserialize_map(Members(PhantomData))
    }
}

/// Reads a member that must be an object.
///
/// # Errors
/// Fails if it is something else.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Object::deserialize(from).map(|Object(value)| value)
}

/// Reads a member that must be an object or null.
///
/// # Errors
/// Fails if it is something else.
pub fn object_option<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    let read = Option::<Object<T>>::deserialize(from)?;
    Ok(read.map(|Object(value)| value))
}

/// Parses JSON text into a tree; returns the text itself if no tree can hold it, such as the number 1e400.
pub fn tree(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// Converts each member of a value that is written as an object into a tree, separately.
///
/// # Errors
/// Fails if the value can't be written, or isn't an object.
pub fn trees(thing: &impl Serialize) -> Result<Value, serde_json::Error> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&serde_json::to_string(thing)?)?;
    let member = |(name, value): (String, Box<RawValue>)| (name, tree(value.get()));
    Ok(Value::Object(members.into_iter().map(member).collect()))
}

/// Reads a member whose null means its default.
///
/// # Errors
/// Fails if the value has another type.
pub fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// Maximum number of members in a map that people write: more are refused while reading. The meaning of a map may
/// allow fewer.
pub const MEMBERS_MAX: usize = 1_000;

struct Texts;

impl<'de> Visitor<'de> for Texts {
    type Value = FewTexts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        say::object_of_texts().fmt(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<FewTexts, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, text)) = from.next_entry()? {
            if members.len() == MEMBERS_MAX {
                return Err(A::Error::custom(say::too_many_members(MEMBERS_MAX)));
            }
            members.insert(name, text);
        }
        Ok(FewTexts(members))
    }
}

struct FewTexts(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for FewTexts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<FewTexts, D::Error> {
        from.deserialize_map(Texts)
    }
}

/// Reads a member that is a map of texts, or null.
///
/// # Errors
/// Fails if it is something else, or has too many members.
pub fn few_texts<'de, D: Deserializer<'de>>(from: D) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    let read = Option::<FewTexts>::deserialize(from)?;
    Ok(read.map(|FewTexts(members)| members))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::table::TuningPatch;
    use crate::task::Tuning;

    const WRITTEN: &str = r#"{"rate":"500/s","burst":"100ms","concurrency":"auto","max_concurrency":1024,"window":4096,
"batch":1,"batch_linger":"5ms","timeout":"10s","max_attempts":5,"backoff":"1s..60s x2 jitter 20%",
"on_exhausted":"fail","error_budget":"10/s 1%","error_window":"30s","checkpoint_interval":"1s",
"unsaved_max":"auto","straggler_after":"1s","park_after":"2s","parked_max":10000,"ordered":false,"results":"off","outage_patience":"24h",
"reduce_timeout":"10m","judge_after":"auto"}"#;

    #[test]
    fn a_tuning_reads_and_writes_like_the_configuration() {
        let tuning: Tuning = serde_json::from_str(WRITTEN).expect("the text is sound");
        assert_eq!(tuning.error_window, Duration::from_secs(30));
        let written = serde_json::to_string(&tuning).expect("a tuning can be written");
        assert_eq!(written, WRITTEN.replace('\n', ""));
    }

    #[test]
    fn an_object_is_no_array() {
        let read = |text| serde_json::from_str::<Object<TuningPatch>>(text).map(|Object(patch)| patch);
        assert_eq!(
            read(r#"{"ordered":true}"#).ok().and_then(|patch| patch.ordered),
            Some(true)
        );
        assert_eq!(read("{}").ok(), Some(TuningPatch::default()));
        for wrong in ["[]", "[null]", "null", "1", r#"{"rats":1}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_setting_is_refused() {
        let text = WRITTEN.replacen("\"rate\"", "\"rats\"", 1);
        let error = serde_json::from_str::<Tuning>(&text).expect_err("there are no rats");
        assert!(error.to_string().contains("unknown field `rats`"), "{error}");
    }
}
