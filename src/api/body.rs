//! Request bodies that mix their own members with task attributes and live settings in one flat object.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use crate::attributes;
use crate::settings::{RETRY, RetrySettings, properties, retry};
use windrow_core::settings::json::Object;
use windrow_core::settings::table::{SETTINGS, TuningPatch};
use windrow_core::task::spec::{Attribute, Request, SpecPatch};

/// Request that may set attributes of a task.
pub trait Names {
    /// Kind of request, which decides the attributes it may set.
    const REQUEST: Request;
}

/// Request body: its own members plus attributes and live settings of a task.
#[derive(Clone, Debug)]
pub struct Body<T> {
    /// Members that are neither attributes nor settings.
    pub own: T,
    /// Attributes set by the request.
    pub spec: SpecPatch,
    /// Settings set by the request.
    pub tuning: TuningPatch,
}

impl<T> Deref for Body<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.own
    }
}

impl<'de, T: Names + Deserialize<'de>> Deserialize<'de> for Body<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Body<T>, D::Error> {
        from.deserialize_map(Members(PhantomData))
    }
}

struct Members<T>(PhantomData<T>);

impl<'de, T: Names + Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = Body<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Body<T>, A::Error> {
        let mut members = Own::new(map, Some(T::REQUEST));
        let own = T::deserialize(MapAccessDeserializer::new(&mut members))?;
        let (spec, tuning) = members.named();
        Ok(Body { own, spec, tuning })
    }
}

/// Members of a body that are neither attributes nor settings. The others are collected while reading.
pub(crate) struct Own<A> {
    map: A,
    /// Reads the attributes that this request may set; `None` reads all, as in a response.
    request: Option<Request>,
    spec: SpecPatch,
    tuning: TuningPatch,
    retry: Option<Object<RetrySettings>>,
}

impl<A> Own<A> {
    /// Wraps the members of a map.
    pub(crate) fn new(map: A, request: Option<Request>) -> Own<A> {
        Own {
            map,
            request,
            spec: SpecPatch::default(),
            tuning: TuningPatch::default(),
            retry: None,
        }
    }

    /// Returns the attributes and settings collected while reading.
    pub(crate) fn named(self) -> (SpecPatch, TuningPatch) {
        let tuning = match self.retry {
            Some(Object(retry)) => TuningPatch::from(retry).and(&self.tuning),
            None => self.tuning,
        };
        (self.spec, tuning)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for &mut Own<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let mut seed = Some(seed);
        while let Some(name) = self.map.next_key_seed(NameSeed(self.request, &mut seed))? {
            match name {
                Name::Own(name) => return Ok(Some(name)),
                Name::Attribute(attribute) => self
                    .map
                    .next_value_seed(OneAttribute(attribute, &mut self.spec))?,
                Name::Setting(name) => self.map.next_value_seed(One(name, &mut self.tuning))?,
                Name::Retry => self.retry = self.map.next_value()?,
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Kind of member that a name stands for.
enum Name<T> {
    Own(T),
    Attribute(&'static Attribute),
    Setting(&'static str),
    Retry,
}

struct NameSeed<'a, K>(Option<Request>, &'a mut Option<K>);

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for NameSeed<'_, K> {
    type Value = Name<K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Name<K::Value>, D::Error> {
        let name = String::deserialize(from)?;
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) {
            return Ok(Name::Setting(setting.name));
        }
        if let Some(attribute) = attributes::of(self.0).find(|attribute| attribute.name == name) {
            return Ok(Name::Attribute(attribute));
        }
        if name == RETRY {
            return Ok(Name::Retry);
        }
        let seed = self
            .1
            .take()
            .ok_or_else(|| D::Error::custom("a member was read twice"))?;
        let name: StringDeserializer<D::Error> = name.into_deserializer();
        let read = seed.deserialize(name).map(Name::Own);
        read.map_err(|error| {
            let attributes = attributes::of(self.0).map(|attribute| attribute.name);
            let names = attributes.chain(SETTINGS.iter().map(|setting| setting.name));
            let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
            D::Error::custom(format!("{error}, {}", names.join(", ")))
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

/// Reads the value of one attribute.
struct OneAttribute<'a>(&'static Attribute, &'a mut SpecPatch);

impl<'de> DeserializeSeed<'de> for OneAttribute<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.1.read(self.0, from)
    }
}

impl<T: Names + ToSchema> PartialSchema for Body<T> {
    fn schema() -> RefOr<Schema> {
        let mut schema = T::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.properties.extend(attributes::properties(T::REQUEST));
            object.properties.extend(properties(true));
            object.properties.insert(RETRY.to_owned(), retry(true));
        }
        schema
    }
}

impl<T: Names + ToSchema> ToSchema for Body<T> {
    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        T::schemas(schemas);
        attributes::schemas(schemas);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Named {
        open: Option<bool>,
    }

    impl Names for Named {
        const REQUEST: Request = Request::Redrive;
    }

    fn read(text: &str) -> Result<Body<Named>, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_are_read_beside_the_other_members_and_in_retry() {
        let body = read(
            r#"{"rate":"5/s","open":true,"name":"x","retry":{"backoff":"1s"},"max_attempts":3,"timeout":null}"#,
        );
        let body = body.expect("sound");
        let named = serde_json::to_string(&body.tuning).expect("it can be written");
        assert_eq!(
            named,
            r#"{"rate":"5/s","max_attempts":3,"backoff":"1s jitter 20%"}"#
        );
        assert_eq!(body.open, Some(true));
        assert_eq!(body.spec.name, Some(Some("x".to_owned())));
        assert!(read(r#"{"retry":null}"#).is_ok());
    }

    #[test]
    fn what_is_no_member_or_stands_twice_is_refused() {
        for (text, what) in [
            (
                r#"{"nam":1}"#,
                "unknown field `nam`, expected `open`, `name`, `labels`, `metering`, `priority`, `canary`, `rate`, `burst`",
            ),
            (r#"{"retry":{"rate":"1/s"}}"#, "unknown field `rate`"),
            (r#"{"retry":[5]}"#, "an object"),
            (r#"{"rate":"1/s","rate":"2/s"}"#, "duplicate field `rate`"),
            (r#"{"shards":2}"#, "unknown field `shards`"),
            (r#"{"name":"x","name":"y"}"#, "duplicate field `name`"),
            (r#"{"timeout":5}"#, "expected a string"),
            ("[]", "an object"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
