//! The OpenAPI document as it is served: completed by what every route can answer, and written once.

mod begin;
pub(crate) mod page;

use std::collections::BTreeMap;

use bytes::Bytes;
use utoipa::openapi::content::{Content, ContentBuilder};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::response::Response;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{OpenApi, PathItem, Ref, RefOr, Required};

use crate::http::guard::access::{self, Access};
use crate::http::guard::bounds;
use crate::http::guard::dry_run;
use crate::http::guard::parameters::Rules;
use crate::http::problem::Slug;

/// The document, written.
#[derive(Debug)]
pub(crate) struct Written {
    /// As JSON.
    pub(super) json: Bytes,
    /// As HTML for people, the inside of a page, before and after the first calls.
    pub(super) html: [String; 2],
    /// What can be looked at without naming one.
    pub(super) resources: BTreeMap<String, String>,
}

/// Completes the document, writes it, and says what it wants of parameters.
pub(super) fn finish(document: &mut OpenApi) -> (Written, Rules) {
    for (path, item) in &mut document.paths.paths {
        add_path_parameters(path, item);
        if let Some(change) = &mut item.patch {
            guard_by_tag(change);
        }
        operations_mut(item).into_iter().for_each(complete);
    }
    let mut value = serde_json::to_value(&*document).unwrap_or_default();
    bounds::complete(&mut value);
    let written = Written {
        json: Bytes::from(value.to_string()),
        html: page::render(&value),
        resources: page::resources(&value),
    };
    (written, Rules::of(&value))
}

/// Parameters of paths that several routes have: the name, what it is, its pattern, an example.
const PATH_PARAMETERS: [(&str, &str, &str, &str); 6] = [
    ("task", "Its number", "^t[1-9][0-9]{0,18}$", "t42"),
    ("business", "Its name", "^[a-z0-9-]{1,40}$", "push"),
    ("schedule", "Its number", "^s[1-9][0-9]{0,17}$", "s3"),
    ("limit", "Its name", "^[a-z0-9-]{1,40}$", "crm"),
    ("node", "Its name", "^.{1,64}$", "n1"),
    ("u", "The upload", "^u[1-9][0-9]{0,17}$", "u7"),
];

/// Describes the parameters of a path that its routes leave to this table.
fn add_path_parameters(path: &str, item: &mut PathItem) {
    for (name, description, pattern, example) in PATH_PARAMETERS {
        if !path.contains(&format!("{{{name}}}")) {
            continue;
        }
        let schema = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(pattern));
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some(description))
            .schema(Some(schema))
            .example(Some(example.into()))
            .build();
        for operation in operations_mut(item) {
            let parameters = operation.parameters.get_or_insert_default();
            // utoipa adds what a handler reads from the path, of which it knows the name only.
            parameters.retain(|one| !matches!(one, RefOr::T(one) if one.name == name));
            parameters.insert(0, RefOr::T(parameter.clone()));
        }
    }
}

/// A change of what is answered with a tag takes the tag that the caller has seen.
fn guard_by_tag(change: &mut Operation) {
    let has_tag = |response: &RefOr<Response>| match response {
        RefOr::T(response) => response.headers.contains_key("etag"),
        RefOr::Ref(_) => false,
    };
    if !change.responses.responses.values().any(has_tag) {
        return;
    }
    let parameter = ParameterBuilder::new()
        .name("If-Match")
        .parameter_in(ParameterIn::Header)
        .description(Some("The ETag of what was looked at"))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)));
    let parameters = change.parameters.get_or_insert_default();
    parameters.insert(1, RefOr::T(parameter.build()));
    change.responses.responses.insert("412".to_owned(), problem());
}

fn operations_mut(item: &mut PathItem) -> Vec<&mut Operation> {
    let all = [
        &mut item.get,
        &mut item.post,
        &mut item.put,
        &mut item.patch,
        &mut item.delete,
    ];
    all.into_iter().filter_map(Option::as_mut).collect()
}

/// Adds the problems that a route can answer by what it takes, and says of each answer what it means: OpenAPI wants it said.
fn complete(operation: &mut Operation) {
    dry_run::describe(operation);
    leave_rows_open(operation);
    let asks = !matches!(access::access_of(operation), Access::Public);
    let parameters = operation.parameters.as_deref().unwrap_or_default();
    let has_input = !parameters.is_empty();
    let in_path =
        |one: &RefOr<Parameter>| matches!(one, RefOr::T(one) if one.parameter_in == ParameterIn::Path);
    let has_place = parameters.iter().any(in_path);
    let has_body = operation.request_body.is_some();
    let is_key = |one: &RefOr<Parameter>| matches!(one, RefOr::T(one) if one.name == "Idempotency-Key");
    let has_key = parameters.iter().any(is_key);
    let statuses = [
        (has_input || has_body, "400"),
        (asks, "401"),
        (asks, "403"),
        (has_place, "404"),
        (has_body, "413"),
        (has_body, "415"),
        (has_body, "422"),
        (true, "500"),
        (asks, "503"),
    ];
    let responses = &mut operation.responses.responses;
    for (_, status) in statuses.into_iter().filter(|(applies, _)| *applies) {
        responses.entry(status.to_owned()).or_insert_with(problem);
    }
    for (status, response) in responses {
        let RefOr::T(response) = response else { continue };
        if response.description.trim().is_empty() {
            response.description = match status.as_str() {
                "200" => "What was asked for".to_owned(),
                "201" => "It was made".to_owned(),
                "202" => "It is under way".to_owned(),
                "204" => "It is done".to_owned(),
                "422" if has_key => "validation-failed, idempotency-key-reused".to_owned(),
                "422" => "validation-failed".to_owned(),
                _ => slugs_of(status),
            };
        }
        if status.starts_with(['4', '5']) && response.content.is_empty() {
            response
                .content
                .insert("application/problem+json".to_owned(), problem_content());
        }
    }
}

/// A body of rows is bytes, and its media type says of which form: of bytes the type `string` says nothing that JSON could
/// violate, so that whoever made wrong bodies by it would find them accepted.
fn leave_rows_open(operation: &mut Operation) {
    let Some(RefOr::T(body)) = &mut operation.request_body else {
        return;
    };
    for (media_type, content) in &mut body.content {
        let is_json = media_type == "application/json" || media_type.ends_with("+json");
        if let (false, RefOr::T(content)) = (is_json, content) {
            let anything = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
            content.schema = Some(anything.build().into());
        }
    }
}

/// The problems that a status can be.
fn slugs_of(status: &str) -> String {
    let facts = Slug::ALL.iter().map(|slug| slug.facts());
    let slugs: Vec<&str> = facts
        .filter(|(_, of, ..)| of.as_str() == status)
        .map(|(slug, ..)| slug)
        .collect();
    slugs.join(", ")
}

/// An answer that is a problem; what it means is said in [`finish`].
pub(super) fn problem() -> RefOr<Response> {
    RefOr::T(Response::default())
}

fn problem_content() -> RefOr<Content> {
    let schema = Ref::from_schema_name("Problem");
    RefOr::T(ContentBuilder::new().schema(Some(schema)).build())
}
