//! Live settings in request and response bodies: flat, as in `[task_defaults]`. Retry settings are also accepted in
//! `retry`, their original place. The OpenAPI schemas are generated from the settings table.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, Object as ObjectSchema, ObjectBuilder, OneOfBuilder, Schema,
    SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::schema::NumberOrAuto;
use windrow_core::settings::json::TEXT_CHARS_MAX;
use windrow_core::settings::table::{SETTINGS, Setting, Tuning, TuningPatch};
use windrow_core::settings::value::Kind;
use windrow_core::settings::{Backoff, OnExhausted};

/// Member that originally held the retry settings; still written and accepted.
pub const RETRY: &str = "retry";
/// Settings found in `retry`.
const OF_RETRIES: [&str; 3] = ["max_attempts", "backoff", "on_exhausted"];

/// Pattern of a rate, of `auto` with or without a rate as its ceiling, or of `unlimited`.
const RATE_LIMIT: &str = "^ *((auto +up +to +)?[0-9][0-9_]*k? */ *[0-9]*(ns|us|ms|s|m|h|d)( \
                          ?[0-9]{1,20}(ns|us|ms|s|m|h|d))*|auto|unlimited) *$";
/// Pattern of a time span.
const SPAN: &str = "^[0-9]{1,20}(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))*$";
const ON_EXHAUSTED: &str = "^ *(fail|stop) *$";
const RESULTS: &str = "^ *(off|keep) *$";

/// Returns the settings as properties of a request, all of them optional, or of a response.
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

pub(crate) fn nullable(kind: Type, is_nullable: bool) -> SchemaType {
    match is_nullable {
        true => SchemaType::from_iter([kind, Type::Null]),
        false => SchemaType::new(kind),
    }
}

pub(crate) fn number_or_auto(about: String, is_nullable: bool) -> RefOr<Schema> {
    let mut named = Ref::from_schema_name(NumberOrAuto::name());
    named.description = about;
    if !is_nullable {
        return named.into();
    }
    let none = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(named).item(none).into()
}

/// Schema of a value that is a string or a number.
fn either(about: &str, text: ObjectBuilder, number: ObjectBuilder) -> RefOr<Schema> {
    let number = number.schema_type(Type::Integer).description(None::<String>);
    let either = OneOfBuilder::new()
        .item(text.description(None::<String>))
        .item(number);
    either.description(Some(about)).into()
}

/// Schema of the member that originally held the retry settings.
pub fn retry(is_request: bool) -> RefOr<Schema> {
    let about = "Older place of `max_attempts`, `backoff` and `on_exhausted`; the same values.";
    let mut retry = object(about, is_request, |name| OF_RETRIES.contains(&name));
    retry.schema_type = nullable(Type::Object, is_request);
    RefOr::T(retry.into())
}

/// Builds an object schema with the selected settings.
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

/// Some of a task's live settings.
#[derive(Debug, serde::Serialize)]
pub struct TuningSettings;

impl PartialSchema for TuningSettings {
    fn schema() -> RefOr<Schema> {
        let about = "Live settings of a task to change; omitted ones stay as they are. Keys and defaults: `[task_defaults]`.";
        RefOr::T(object(about, true, |_| true).into())
    }
}

impl PartialSchema for TaskSettings {
    fn schema() -> RefOr<Schema> {
        let mut settings = object("Live settings of a task, as the node writes them.", false, |_| {
            true
        });
        settings.properties.insert(RETRY.to_owned(), retry(false));
        settings.required.push(RETRY.to_owned());
        RefOr::T(settings.into())
    }
}

impl ToSchema for TuningSettings {}

impl ToSchema for TaskSettings {}

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

impl Default for TaskSettings {
    fn default() -> TaskSettings {
        (&Tuning::default()).into()
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

/// Live settings of a task, in their written form.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskSettings {
    #[serde(flatten)]
    pub tuning: Tuning,
    pub retry: RetrySettings,
}

/// Retry settings, in their original place.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrySettings {
    pub max_attempts: Option<NonZeroU32>,
    pub backoff: Option<Backoff>,
    pub on_exhausted: Option<OnExhausted>,
}
