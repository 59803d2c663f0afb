//! `?dry_run=true`: the result a write would have. It takes the same path and fails in the same places, but nothing
//! is saved.
//!
//! Only operations that document the parameter support it; `parameters` rejects it everywhere else, so that nobody
//! changes something by mistake.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::Query;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use utoipa::IntoParams;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::OneOfBuilder;
use utoipa::openapi::{Ref, RefOr};

use crate::service::ServiceError;

/// Name of the query parameter.
pub(crate) const NAME: &str = "dry_run";

/// Query parameters of operations that support dry runs.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DryRunQuery {
    /// With `true`, run all checks and return the result without changing anything.
    pub(crate) dry_run: Option<bool>,
}

/// Builds the response to a dry run. A new object has no id yet.
pub(crate) fn would<T: Serialize>(body: &T, is_new: bool) -> Result<Response, ServiceError> {
    // Keep the raw JSON so that parameters stay exactly as written.
    let written = to_raw_value(body).and_then(|would| {
        let mut members: BTreeMap<&str, &RawValue> = match is_new {
            true => serde_json::from_str(would.get())?,
            false => return Ok(would),
        };
        members.entry("id").and_modify(|id| *id = RawValue::NULL);
        to_raw_value(&members)
    });
    let would = written.map_err(|error| ServiceError::Internal(error.to_string()))?;
    Ok(Json(api::DryRun { dry_run: true, would }).into_response())
}

/// Returns true if the query asks for a dry run, ignoring its other parameters.
pub(crate) fn is_asked(uri: &Uri) -> bool {
    Query::<DryRunQuery>::try_from_uri(uri).is_ok_and(|Query(query)| query.dry_run == Some(true))
}

/// Documents the dry-run response of every operation that supports it.
pub(crate) fn describe(operation: &mut Operation) {
    let is_one = operation
        .parameters
        .iter()
        .flatten()
        .any(|parameter| match parameter {
            RefOr::T(parameter) => parameter.name == NAME,
            RefOr::Ref(_) => false,
        });
    if !is_one {
        return;
    }
    let dry = Ref::from_schema_name("DryRun");
    match operation.responses.responses.get_mut("200") {
        Some(RefOr::T(response)) => {
            for content in response.content.values_mut() {
                let RefOr::T(content) = content else { continue };
                let both = content.schema.take().into_iter();
                let both = both
                    .fold(OneOfBuilder::new(), |all, one| all.item(one))
                    .item(dry.clone());
                content.schema = Some(RefOr::T(both.build().into()));
            }
        }
        Some(RefOr::Ref(_)) => {}
        None => {
            let content = ContentBuilder::new().schema(Some(dry)).build();
            let response = ResponseBuilder::new()
                .description("Expected outcome, of a dry run")
                .content("application/json", content);
            operation
                .responses
                .responses
                .insert("200".to_owned(), RefOr::T(response.build()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::http::{document, routes};

    #[tokio::test]
    async fn what_would_be_made_has_no_number_and_keeps_what_no_tree_of_json_holds() {
        let raw = |text| serde_json::from_str::<Box<serde_json::value::RawValue>>(text).expect("JSON");
        let told = async |is_new| {
            let body = raw(r#"{"id":"t1","params":{"n":1e400}}"#);
            let answer = super::would(&body, is_new).expect("it can be written");
            axum::body::to_bytes(answer.into_body(), 1 << 10)
                .await
                .expect("a body")
        };
        assert_eq!(
            told(true).await,
            r#"{"dry_run":true,"would":{"id":null,"params":{"n":1e400}}}"#
        );
        assert_eq!(
            told(false).await,
            r#"{"dry_run":true,"would":{"id":"t1","params":{"n":1e400}}}"#
        );
    }

    #[test]
    fn what_can_be_tried_says_so_with_its_answer_and_is_no_read() {
        let (_, mut document) = routes().split_for_parts();
        document::finish(&mut document);
        let document = serde_json::to_value(&document).expect("it is JSON");
        let mut tried = Vec::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("operations") {
                let mut parameters = operation["parameters"].as_array().into_iter().flatten();
                if !parameters.any(|one| one["name"] == super::NAME) {
                    continue;
                }
                assert_ne!(method, "get", "{path}");
                let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
                let one = json!({"$ref": "#/components/schemas/DryRun"});
                let is_told = *schema == one
                    || schema["oneOf"]
                        .as_array()
                        .is_some_and(|all| all.len() == 2 && all.contains(&one));
                assert!(is_told, "{method} {path}: {schema:#}");
                tried.push(format!("{method} {}", path.trim_start_matches("/v1/")));
            }
        }
        tried.sort_unstable();
        let known = [
            "delete alerts/{alert}",
            "delete datasets/{dataset}",
            "delete limits/{limit}",
            "delete schedules/{schedule}",
            "delete sessions/{id}",
            "delete tasks/{task}",
            "delete tokens/{id}",
            "patch alerts/{alert}",
            "patch businesses/{business}",
            "patch datasets/{dataset}",
            "patch limits/{limit}",
            "patch nodes/{node}",
            "patch schedules/{schedule}",
            "patch tasks/{task}",
            "post alerts",
            "post businesses",
            "post businesses/{business}/archive",
            "post businesses/{business}/unarchive",
            "post datasets",
            "post datasets/{dataset}/generations/{generation}/pin",
            "post datasets/{dataset}/generations/{generation}/unpin",
            "post datasets/{dataset}/rollback",
            "post limits",
            "post nodes/{node}/drain",
            "post nodes/{node}/undrain",
            "post schedules",
            "post schedules/{schedule}/backfill",
            "post schedules/{schedule}/pause",
            "post schedules/{schedule}/resume",
            "post schedules/{schedule}/skip",
            "post schedules/{schedule}/trigger",
            "post tasks",
            "post tasks/{task}/cancel",
            "post tasks/{task}/clone",
            "post tasks/{task}/fail",
            "post tasks/{task}/finish",
            "post tasks/{task}/items",
            "post tasks/{task}/move",
            "post tasks/{task}/ready",
            "post tasks/{task}/recover",
            "post tasks/{task}/redrives",
            "post tasks/{task}/replays",
            "post tasks/{task}/seal",
            "post tasks/{task}/skips",
            "post tasks/{task}/start",
            "post tasks/{task}/stop",
            "post tokens",
        ];
        assert_eq!(tried, known);
    }
}
