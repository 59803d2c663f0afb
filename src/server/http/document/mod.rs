//! The OpenAPI document as it is served: completed by what every route can answer, and written once.

pub(crate) mod page;
pub mod schema;
pub(in crate::http) mod settings;

use bytes::Bytes;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::{OpenApi, PathItem, Ref, RefOr};

use crate::http::guard::access::{self, Access};
use crate::http::guard::dry_run;
use crate::http::guard::parameters::Rules;
use crate::http::problem::Slug;

/// The document, written.
#[derive(Debug)]
pub(super) struct Written {
    /// As JSON.
    pub(super) json: Bytes,
    /// As HTML for people, the inside of a page.
    pub(super) html: String,
}

/// Completes the document, writes it, and says what it wants of parameters.
pub(super) fn finish(document: &mut OpenApi) -> (Written, Rules) {
    for item in document.paths.paths.values_mut() {
        operations_mut(item).into_iter().for_each(complete);
    }
    let value = serde_json::to_value(&*document).unwrap_or_default();
    let written = Written {
        json: Bytes::from(value.to_string()),
        html: page::render(&value),
    };
    (written, Rules::of(&value))
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

/// Adds the problems that are answered before, around or after any handler, where the route doesn't name them.
fn complete(operation: &mut Operation) {
    dry_run::describe(operation);
    let asks = !matches!(access::access_of(operation), Access::Public);
    let has_input = operation.parameters.as_ref().is_some_and(|all| !all.is_empty());
    let has_body = operation.request_body.is_some();
    let statuses = [
        (has_input || has_body, "400"),
        (asks, "401"),
        (asks, "403"),
        (has_body, "413"),
        (has_body, "415"),
        (true, "500"),
        (asks, "503"),
    ];
    for (_, status) in statuses.into_iter().filter(|(applies, _)| *applies) {
        operation
            .responses
            .responses
            .entry(status.to_owned())
            .or_insert_with(problem);
    }
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response {
            describe(status, response);
        }
    }
}

/// Says of an answer what it means where the route doesn't: OpenAPI wants it said of each.
fn describe(status: &str, response: &mut Response) {
    let said = &mut response.description;
    if said.trim().is_empty() {
        *said = match status {
            "200" => "What was asked for".to_owned(),
            "201" => "It was made".to_owned(),
            "202" => "It is under way".to_owned(),
            "204" => "It is done".to_owned(),
            _ => slugs_of(status),
        };
    }
}

/// The problems that a status can be.
fn slugs_of(status: &str) -> String {
    let facts = Slug::ALL
        .into_iter()
        .map(Slug::facts)
        .filter(|(_, of, ..)| of.as_str() == status);
    let slugs: Vec<&str> = facts.map(|(slug, ..)| slug).collect();
    // `4XX` is none of them.
    if slugs.is_empty() {
        "A problem".to_owned()
    } else {
        slugs.join(", ")
    }
}

pub(super) fn problem() -> RefOr<utoipa::openapi::Response> {
    let schema = Ref::from_schema_name("Problem");
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response = ResponseBuilder::new().content("application/problem+json", content);
    RefOr::T(response.build())
}
