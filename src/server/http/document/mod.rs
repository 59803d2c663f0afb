//! OpenAPI document as served: completed with the responses common to all routes, and serialized once.

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

/// Serialized forms of the OpenAPI document.
#[derive(Debug)]
pub(crate) struct Written {
    /// Document serialized as JSON.
    pub(super) json: Bytes,
    /// Document as HTML, the parts before and after the introduction.
    pub(super) html: [String; 2],
    /// Paths of the resources that can be listed, by name.
    pub(super) resources: BTreeMap<String, String>,
}

/// Completes the document, serializes it and extracts the parameter rules.
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

/// Path parameters shared by several routes: name, description, pattern, example.
const PATH_PARAMETERS: [(&str, &str, &str, &str); 6] = [
    ("task", "Task id", "^t[1-9][0-9]{0,18}$", "t42"),
    ("business", "Name of the business", "^[a-z0-9-]{1,40}$", "push"),
    ("schedule", "Schedule id", "^s[1-9][0-9]{0,17}$", "s3"),
    ("limit", "Name of the limit", "^[a-z0-9-]{1,40}$", "crm"),
    ("node", "Name of the node", "^.{1,64}$", "n1"),
    ("u", "Upload id", "^u[1-9][0-9]{0,17}$", "u7"),
];

/// Describes the path parameters that routes leave to the shared table.
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
            // Replace utoipa's own entry, which knows only the name.
            parameters.retain(|one| !matches!(one, RefOr::T(one) if one.name == name));
            parameters.insert(0, RefOr::T(parameter.clone()));
        }
    }
}

/// Adds `If-Match` and `412` to a change whose response has an ETag.
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
        .description(Some("ETag of the version that the change is based on"))
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

/// Adds the problems that a route can return given its inputs, and a description for each response, which OpenAPI
/// requires.
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
                "200" => "OK".to_owned(),
                "201" => "Created".to_owned(),
                "202" => "Accepted".to_owned(),
                "204" => "Done".to_owned(),
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

/// Removes the schema of row bodies, which are described by their media type only. With type `string`, clients that
/// generate invalid bodies from the schema would find them accepted.
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

/// Returns the problem slugs of a status.
fn slugs_of(status: &str) -> String {
    let facts = Slug::ALL.iter().map(|slug| slug.facts());
    let slugs: Vec<&str> = facts
        .filter(|(_, of, ..)| of.as_str() == status)
        .map(|(slug, ..)| slug)
        .collect();
    slugs.join(", ")
}

/// Returns the placeholder response for a problem; [`finish`] fills in the description.
pub(super) fn problem() -> RefOr<Response> {
    RefOr::T(Response::default())
}

fn problem_content() -> RefOr<Content> {
    let schema = Ref::from_schema_name("Problem");
    RefOr::T(ContentBuilder::new().schema(Some(schema)).build())
}
