//! The live settings in bodies: flat, as `[task_defaults]` has them. Those of retries may stand in `retry` too, where
//! they were at first.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::Deref;

use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use crate::http::document::settings::{RETRY, properties, retry};
use windrow_core::settings::json::Object;
use windrow_core::settings::table::{SETTINGS, Tuning, TuningPatch};
use windrow_core::settings::{Backoff, OnExhausted};

/// A body: members of its own, and the live settings beside them.
#[derive(Debug)]
pub(crate) struct WithSettings<T> {
    /// Its own members.
    pub(in crate::http) own: T,
    /// The settings that are named.
    pub(in crate::http) tuning: TuningPatch,
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
    retry: &'a mut Option<Object<Retry>>,
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

/// The settings of retries, where they were at first.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Retry {
    max_attempts: Option<NonZeroU32>,
    backoff: Option<Backoff>,
    on_exhausted: Option<OnExhausted>,
}

impl From<Retry> for TuningPatch {
    fn from(retry: Retry) -> TuningPatch {
        TuningPatch {
            max_attempts: retry.max_attempts,
            backoff: retry.backoff,
            on_exhausted: retry.on_exhausted,
            ..TuningPatch::default()
        }
    }
}

/// The live settings of a task, as they are written.
#[derive(Debug, Serialize)]
pub(in crate::http) struct SettingsJson {
    #[serde(flatten)]
    tuning: Tuning,
    retry: Retry,
}

impl From<&Tuning> for SettingsJson {
    fn from(tuning: &Tuning) -> SettingsJson {
        SettingsJson {
            tuning: tuning.clone(),
            retry: Retry {
                max_attempts: Some(tuning.max_attempts),
                backoff: Some(tuning.backoff),
                on_exhausted: Some(tuning.on_exhausted),
            },
        }
    }
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
