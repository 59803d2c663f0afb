//! Task attributes in request and response bodies. Their OpenAPI schemas are generated from the attribute table.

use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder};
use utoipa::openapi::schema::{Schema, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::schema::{NewCanary, NumberOrAuto, TaskCanary};
use crate::settings::{TaskSettings, nullable, number_or_auto};
use windrow_core::alert::AlertKind;
use windrow_core::ids::INDEX_MAX;
use windrow_core::meter::expr::BYTES_MAX;
use windrow_core::meter::metering::{self, UNITS_MAX};
use windrow_core::task::NAME_CHARS_MAX;
use windrow_core::task::spec::{ATTRIBUTES, Attribute, Kind, Request};

/// Maximum number of limits that a task may name in addition to those of its business.
const LIMITS_MAX: usize = 4;

/// Attributes of a task, in their written form.
#[derive(Debug, serde::Serialize)]
pub struct TaskAttributes;

impl PartialSchema for TaskAttributes {
    fn schema() -> RefOr<Schema> {
        let object = ObjectBuilder::new().description(Some("Attributes of a task, as the node writes them."));
        let all = ATTRIBUTES.iter().fold(object, |object, attribute| {
            object
                .required(attribute.name)
                .property(attribute.name, property(attribute, None))
        });
        RefOr::T(all.into())
    }
}

impl ToSchema for TaskAttributes {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((TaskCanary::name().into(), TaskCanary::schema()));
        schemas.push((NumberOrAuto::name().into(), NumberOrAuto::schema()));
        NumberOrAuto::schemas(schemas);
    }
}

/// Returns the attributes that a request may set, or, without one, those of a response.
pub(crate) fn of(request: Option<Request>) -> impl Iterator<Item = &'static Attribute> {
    let is_in = move |attribute: &&Attribute| request.is_none_or(|it| attribute.rule.requests.contains(&it));
    ATTRIBUTES.iter().filter(is_in)
}

/// Returns the attributes as properties of a request, all of them optional.
pub(crate) fn properties(request: Request) -> impl Iterator<Item = (String, RefOr<Schema>)> {
    let property =
        move |attribute: &Attribute| (attribute.name.to_owned(), property(attribute, Some(request)));
    Attribute::of(request).map(property)
}

/// Adds the schemas referenced by request and response attributes. No derive finds them behind flattened members.
pub(crate) fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    for (name, schema) in [
        (NewCanary::name(), NewCanary::schema()),
        (NumberOrAuto::name(), NumberOrAuto::schema()),
        (TaskAttributes::name(), TaskAttributes::schema()),
        (TaskSettings::name(), TaskSettings::schema()),
        (TaskCanary::name(), TaskCanary::schema()),
    ] {
        schemas.push((name.into(), schema));
    }
    NewCanary::schemas(schemas);
    NumberOrAuto::schemas(schemas);
}

/// Schema of one attribute in a request or a response.
fn property(attribute: &Attribute, request: Option<Request>) -> RefOr<Schema> {
    let is_request = request.is_some();
    let is_nullable = is_request || attribute.kind.is_optional();
    let about = format!("{}.", attribute.about_in(request.unwrap_or(Request::Create)));
    let object = |kind| {
        ObjectBuilder::new()
            .schema_type(nullable(kind, is_nullable))
            .description(Some(about.clone()))
    };
    let number = |format| object(Type::Integer).format(Some(SchemaFormat::KnownFormat(format)));
    let text = || ObjectBuilder::new().schema_type(Type::String);
    match attribute.kind {
        Kind::Name if is_request => object(Type::String)
            .min_length(Some(1))
            .max_length(Some(NAME_CHARS_MAX))
            .pattern(Some(r"^[^\s/]+$")),
        Kind::Name => object(Type::String),
        Kind::Texts => object(Type::Object)
            .property_names(Some(text()))
            .additional_properties(Some(AdditionalProperties::RefOr(text().into()))),
        Kind::Limits => {
            let limits = ArrayBuilder::new()
                .schema_type(nullable(Type::Array, is_nullable))
                .description(Some(about))
                .items(text())
                .max_items(is_request.then_some(LIMITS_MAX));
            return limits.into();
        }
        Kind::Integer => number(KnownFormat::Int32),
        Kind::Index => {
            let number = number(KnownFormat::Int64).minimum(Some(0));
            number.maximum(is_request.then_some(INDEX_MAX))
        }
        Kind::NumberOrAuto => return number_or_auto(about, is_nullable),
        Kind::Switch => object(Type::Boolean),
        Kind::Json => ObjectBuilder::new()
            .schema_type(SchemaType::AnyValue)
            .description(Some(about)),
        Kind::Time => object(Type::String).format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))),
        Kind::Canary => return canary(about, is_request),
        Kind::Metering => metering(object(Type::Object)),
    }
    .into()
}

/// Returns the schema of the limits in units of a named limit.
pub(crate) fn shared_metering() -> RefOr<Schema> {
    let about = "Limits in units that all users share, and what calls cost in them: paces and totals. Set as a whole.";
    let object = ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::Object, Type::Null]));
    metering(object.description(Some(about))).into()
}

/// Returns the schema of the kinds of events that an alert tells.
pub(crate) fn alert_kinds() -> RefOr<Schema> {
    let kind = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(AlertKind::ALL.map(AlertKind::as_str)));
    let list = ArrayBuilder::new()
        .items(kind)
        .min_items(Some(1))
        .max_items(Some(AlertKind::ALL.len()))
        .description(Some("Kinds of events to tell."));
    list.into()
}

/// Adds the lists of limits in units and of costs, with their bounds.
fn metering(object: ObjectBuilder) -> ObjectBuilder {
    let texts = |about: &str, most| {
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .max_length(Some(BYTES_MAX));
        ArrayBuilder::new()
            .items(text)
            .max_items(Some(most))
            .description(Some(about.to_owned()))
    };
    let limits = "Limits in units: `90k tokens/min`, `5 eur`, `20 at once`.";
    let cost = "Costs before a call: `tokens = {prompt:bytes}/4 + 300`.";
    let cost_from = "Costs after a call: `tokens = {answer./usage/total_tokens}`.";
    object
        .property("limits", texts(limits, metering::LIMITS_MAX))
        .property("cost", texts(cost, UNITS_MAX))
        .property("cost_from", texts(cost_from, UNITS_MAX))
        .property(
            "price",
            texts("Prices of other units: `eur = 0.6*{tokens}/1M`.", UNITS_MAX),
        )
}

fn canary(about: String, is_request: bool) -> RefOr<Schema> {
    let name = if is_request {
        NewCanary::name()
    } else {
        TaskCanary::name()
    };
    let mut named = Ref::from_schema_name(name);
    named.description = about;
    let none = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(named).item(none).into()
}
