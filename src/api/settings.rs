//! The live settings in bodies: flat, as `[task_defaults]` has them. Those of retries may stand in `retry` too, where
//! they were at first. Their description is made from their table.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::Deref;

use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, Object as ObjectSchema, ObjectBuilder, OneOfBuilder, Schema,
    SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::schema::NumberOrAuto;
use windrow_core::settings::json::{Object, TEXT_CHARS_MAX};
use windrow_core::settings::table::{SETTINGS, Setting, Tuning, TuningPatch};
use windrow_core::settings::value::Kind;
use windrow_core::settings::{Backoff, OnExhausted};

/// The member where the settings of retries stood at first, and stand too.
pub const RETRY: &str = "retry";
/// Those.
const OF_RETRIES: [&str; 3] = ["max_attempts", "backoff", "on_exhausted"];

/// A rate, or `unlimited`.
const RATE_LIMIT: &str =
    "^( *[0-9][0-9_]*k? */ *[0-9]*(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))* *| *unlimited *)$";
/// A span of time.
const SPAN: &str = "^[0-9]{1,20}(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))*$";
const ON_EXHAUSTED: &str = "^ *(abandon|stop) *$";
const RESULTS: &str = "^ *(off|keep) *$";

/// The settings as properties: of a request, where each may be absent, or of an answer.
pub fn properties(is_request: bool) -> impl Iterator<Item = (String, RefOr<Schema>)> {
    let property = move |setting: &Setting| (setting.name.to_owned(), property(setting, is_request));
    SETTINGS.iter().map(property)
}

fn property(setting: &Setting, is_request: bool) -> RefOr<Schema> {
    let about = format!("{}.", setting.summary());
    let object = |kind| {
        ObjectBuilder::new()
            .schema_type(nullable(kind, is_request))
            .description(Some(about.clone()))
    };
    let text = || object(Type::String).max_length(Some(TEXT_CHARS_MAX));
    let number = |least| {
        let format = SchemaFormat::KnownFormat(KnownFormat::Int32);
        object(Type::Integer).format(Some(format)).minimum(Some(least))
    };
    match setting.kind {
        Kind::RateLimit => text().pattern(Some(RATE_LIMIT)),
        Kind::Span => text().pattern(Some(SPAN)),
        Kind::SpanOrAuto => text().pattern(Some(format!("^auto$|{SPAN}"))),
        Kind::OnExhausted => text().pattern(Some(ON_EXHAUSTED)),
        Kind::Results => text().pattern(Some(RESULTS)),
        Kind::Backoff => text(),
        Kind::Positive => number(1),
        Kind::Number => number(0),
        Kind::Switch => object(Type::Boolean),
        Kind::NumberOrAuto => return number_or_auto(about, is_request),
        Kind::Burst if is_request => return either(&about, text(), number(1)),
        Kind::ErrorBudget if is_request => {
            let number = number(0).format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)));
            return either(&about, text(), number);
        }
        Kind::Burst | Kind::ErrorBudget => text(),
    }
    .into()
}

fn nullable(kind: Type, is_nullable: bool) -> SchemaType {
    match is_nullable {
        true => SchemaType::from_iter([kind, Type::Null]),
        false => SchemaType::new(kind),
    }
}

fn number_or_auto(about: String, is_nullable: bool) -> RefOr<Schema> {
    let mut named = Ref::from_schema_name(NumberOrAuto::name());
    named.description = about;
    if !is_nullable {
        return named.into();
    }
    let none = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(named).item(none).into()
}

/// A text, a number, or nothing.
fn either(about: &str, text: ObjectBuilder, number: ObjectBuilder) -> RefOr<Schema> {
    let number = number.schema_type(Type::Integer).description(None::<String>);
    let either = OneOfBuilder::new()
        .item(text.description(None::<String>))
        .item(number);
    either.description(Some(about)).into()
}

/// The member where the settings of retries stood at first.
pub fn retry(is_request: bool) -> RefOr<Schema> {
    let about = "The same as `max_attempts`, `backoff` and `on_exhausted`, where they were at first.";
    let mut retry = object(about, is_request, |name| OF_RETRIES.contains(&name));
    retry.schema_type = nullable(Type::Object, is_request);
    RefOr::T(retry.into())
}

/// An object of some of the settings.
fn object(about: &str, is_request: bool, has: impl Fn(&str) -> bool) -> ObjectSchema {
    let mut object = ObjectBuilder::new().description(Some(about));
    for (name, property) in properties(is_request).filter(|(name, _)| has(name)) {
        if !is_request {
            object = object.required(&name);
        }
        object = object.property(name, property);
    }
    if is_request {
        object = object.additional_properties(Some(AdditionalProperties::FreeForm(false)));
    }
    object.build()
}

/// Some of the live settings of a task.
#[derive(Debug, serde::Serialize)]
pub struct TuningSettings;

impl PartialSchema for TuningSettings {
    fn schema() -> RefOr<Schema> {
        let about = "Some of the live settings of a task; what isn't named stays. Keys and defaults: `[task_defaults]`.";
        RefOr::T(object(about, true, |_| true).into())
    }
}

impl PartialSchema for TaskSettings {
    fn schema() -> RefOr<Schema> {
        let mut settings = object("The live settings of a task, as they are written.", false, |_| {
            true
        });
        settings.properties.insert(RETRY.to_owned(), retry(false));
        settings.required.push(RETRY.to_owned());
        RefOr::T(settings.into())
    }
}

impl ToSchema for TuningSettings {}

impl ToSchema for TaskSettings {}

/// A body: members of its own, and the live settings beside them.
#[derive(Clone, Debug)]
pub struct WithSettings<T> {
    /// Its own members.
    pub own: T,
    /// The settings that are named.
    pub tuning: TuningPatch,
}

impl<T> Deref for WithSettings<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.own
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for WithSettings<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<WithSettings<T>, D::Error> {
        from.deserialize_map(Members(PhantomData))
    }
}

struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = WithSettings<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WithSettings<T>, A::Error> {
        let (mut tuning, mut retry) = (TuningPatch::default(), None);
        let own = T::deserialize(MapAccessDeserializer::new(Own {
            map,
            tuning: &mut tuning,
            retry: &mut retry,
        }))?;
        if let Some(Object(retry)) = retry {
            tuning = TuningPatch::from(retry).and(&tuning);
        }
        Ok(WithSettings { own, tuning })
    }
}

/// The members of a body that are no settings; those are read on the way.
struct Own<'a, A> {
    map: A,
    tuning: &'a mut TuningPatch,
    retry: &'a mut Option<Object<RetrySettings>>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Own<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let mut seed = Some(seed);
        while let Some(name) = self.map.next_key_seed(NameSeed(&mut seed))? {
            match name {
                Name::Own(name) => return Ok(Some(name)),
                Name::Setting(name) => self.map.next_value_seed(One(name, self.tuning))?,
                Name::Retry => *self.retry = self.map.next_value()?,
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// What a member is.
enum Name<T> {
    Own(T),
    Setting(&'static str),
    Retry,
}

struct NameSeed<'a, K>(&'a mut Option<K>);

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for NameSeed<'_, K> {
    type Value = Name<K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Name<K::Value>, D::Error> {
        let name = String::deserialize(from)?;
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) {
            return Ok(Name::Setting(setting.name));
        }
        if name == RETRY {
            return Ok(Name::Retry);
        }
        let seed = self
            .0
            .take()
            .ok_or_else(|| D::Error::custom("a member was read twice"))?;
        let name: StringDeserializer<D::Error> = name.into_deserializer();
        let read = seed.deserialize(name).map(Name::Own);
        read.map_err(|error| {
            let settings = SETTINGS.iter().map(|setting| format!("`{}`", setting.name));
            D::Error::custom(format!("{error}, {}", settings.collect::<Vec<_>>().join(", ")))
        })
    }
}

/// Reads the value of one setting.
struct One<'a>(&'static str, &'a mut TuningPatch);

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.1.read(self.0, from)
    }
}

impl<T: ToSchema> PartialSchema for WithSettings<T> {
    fn schema() -> RefOr<Schema> {
        let mut schema = T::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.properties.extend(properties(true));
            object.properties.insert(RETRY.to_owned(), retry(true));
        }
        schema
    }
}

impl<T: ToSchema> ToSchema for WithSettings<T> {
    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        T::schemas(schemas);
    }
}

impl From<RetrySettings> for TuningPatch {
    fn from(retry: RetrySettings) -> TuningPatch {
        TuningPatch {
            max_attempts: retry.max_attempts,
            backoff: retry.backoff,
            on_exhausted: retry.on_exhausted,
            ..TuningPatch::default()
        }
    }
}

impl From<&Tuning> for TaskSettings {
    fn from(tuning: &Tuning) -> TaskSettings {
        TaskSettings {
            tuning: tuning.clone(),
            retry: RetrySettings {
                max_attempts: Some(tuning.max_attempts),
                backoff: Some(tuning.backoff),
                on_exhausted: Some(tuning.on_exhausted),
            },
        }
    }
}

/// The live settings of a task, as they are written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TaskSettings {
    #[serde(flatten)]
    pub tuning: Tuning,
    pub retry: RetrySettings,
}

/// The settings of retries, where they were at first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrySettings {
    pub max_attempts: Option<NonZeroU32>,
    pub backoff: Option<Backoff>,
    pub on_exhausted: Option<OnExhausted>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Named {
        name: Option<String>,
    }

    fn read(text: &str) -> Result<WithSettings<Named>, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_are_read_beside_the_other_members_and_in_retry() {
        let body =
            read(r#"{"rate":"5/s","name":"x","retry":{"backoff":"1s"},"max_attempts":3,"timeout":null}"#);
        let body = body.expect("sound");
        let named = serde_json::to_string(&body.tuning).expect("it can be written");
        assert_eq!(
            named,
            r#"{"rate":"5/s","max_attempts":3,"backoff":"1s jitter 20%"}"#
        );
        assert_eq!(body.name.as_deref(), Some("x"));
        assert!(read(r#"{"retry":null}"#).is_ok());
    }

    #[test]
    fn what_is_no_member_or_stands_twice_is_refused() {
        for (text, what) in [
            (
                r#"{"nam":1}"#,
                "unknown field `nam`, expected `name`, `rate`, `burst`",
            ),
            (r#"{"retry":{"rate":"1/s"}}"#, "unknown field `rate`"),
            (r#"{"retry":[5]}"#, "an object"),
            (r#"{"rate":"1/s","rate":"2/s"}"#, "duplicate field `rate`"),
            (r#"{"timeout":5}"#, "expected a string"),
            ("[]", "an object"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
