//! `/docs`: the API as an HTML page, generated from the OpenAPI document, without scripts or external resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::begin::begin;
use crate::http::answer::html::{self, escaped};
use crate::http::document::Written;
use crate::http::front::App;

/// Nesting depth up to which a schema is shown inline; deeper ones are links.
const DEPTH_MAX: usize = 3;

/// Entry points of the API.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Index {
    /// Paths of the resources, by name.
    resources: BTreeMap<String, String>,
    /// Path of the HTML documentation.
    docs: &'static str,
    /// Path of the OpenAPI document.
    openapi: &'static str,
}

/// List the resources of the API
#[utoipa::path(
    get, path = "/v1", operation_id = "index", tag = "node", security(()),
    responses((status = 200, body = Index))
)]
pub(crate) async fn index(Extension(written): Extension<Arc<Written>>) -> Json<Index> {
    Json(Index {
        resources: written.resources.clone(),
        docs: "/docs",
        openapi: "/openapi.json",
    })
}

/// Returns the resources that can be read without an id, by name. Taken from the document, so that none is missing.
pub(crate) fn resources(document: &Value) -> BTreeMap<String, String> {
    let gets = members(&document["paths"]).filter(|(_, item)| item["get"].is_object());
    let named = gets.filter_map(|(path, _)| {
        let name = path.strip_prefix("/v1/")?;
        let is_one = !name.contains(['/', '{', '.']);
        is_one.then(|| (name.to_owned(), path.to_owned()))
    });
    named.collect()
}

/// API documentation as HTML
#[utoipa::path(
    get, path = "/docs", operation_id = "docs", tag = "node", security(()),
    responses((status = 200, description = "A page", body = String, content_type = "text/html"))
)]
pub(crate) async fn docs(
    State(app): State<App>,
    Extension(written): Extension<Arc<Written>>,
    request: Request,
) -> Response {
    let [head, rest] = &written.html;
    let begin = begin(&app, &request);
    // Don't cache: the page may name a file on this machine, which only this client may see.
    let own = [(header::CACHE_CONTROL, "no-store")];
    (own, html::page("API", &format!("{head}{begin}{rest}"))).into_response()
}

/// Renders the page's body: the parts before and after the introduction.
pub(crate) fn render(document: &Value) -> [String; 2] {
    let mut by_tag: BTreeMap<&str, String> = BTreeMap::new();
    for (path, item) in members(&document["paths"]) {
        for (method, operation) in members(item).filter(|(_, value)| value["responses"].is_object()) {
            let tag = operation["tags"][0].as_str().unwrap_or("other");
            by_tag
                .entry(tag)
                .or_default()
                .push_str(&operation_html(path, method, operation));
        }
    }
    let head = format!(
        "<h1>Windrow {}</h1>\n{}",
        escaped(text_of(&document["info"], "version")),
        html::rendered(text_of(&document["info"], "description"))
    );
    let links: String = by_tag
        .keys()
        .map(|tag| format!("<a href=\"#{tag}\">{tag}</a> "))
        .collect();
    let mut text = format!("<nav>{links}<a href=\"#schemas\">schemas</a></nav>\n");
    for (tag, operations) in &by_tag {
        text.push_str(&format!("<h2 id=\"{tag}\">{tag}</h2>\n{operations}"));
    }
    text.push_str("<h2 id=\"schemas\">schemas</h2>\n");
    for (name, schema) in members(&document["components"]["schemas"]) {
        let name = escaped(name);
        text.push_str(&format!(
            "<h3 id=\"schema-{name}\">{name}</h3>\n{}",
            schema_html(schema, 0)
        ));
    }
    [head, text]
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value
        .as_object()
        .into_iter()
        .flat_map(Map::iter)
        .map(|(name, value)| (name.as_str(), value))
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn operation_html(path: &str, method: &str, operation: &Value) -> String {
    let mut text = format!(
        "<h3><code><span class=\"m\">{}</span> {}</code></h3>\n<p>{}</p>\n",
        method.to_uppercase(),
        escaped(path),
        escaped(text_of(operation, "summary"))
    );
    if !text_of(operation, "description").is_empty() {
        text.push_str(&html::rendered(text_of(operation, "description")));
    }
    text.push_str(&format!("<p class=\"d\">{}</p>\n", who(operation)));
    text.push_str(&parameters_html(&operation["parameters"]));
    for (kind, content) in members(&operation["requestBody"]["content"]) {
        let body = schema_html(&content["schema"], 0);
        text.push_str(&format!(
            "<details><summary>Body, {}</summary>{body}</details>\n",
            escaped(kind)
        ));
    }
    text.push_str(&responses_html(&operation["responses"]));
    text
}

/// Describes the roles that may call an operation.
fn who(operation: &Value) -> String {
    let requirements = operation["security"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let roles: Vec<&str> = requirements
        .iter()
        .flat_map(|requirement| requirement["bearer"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    let is_open = requirements
        .iter()
        .any(|requirement| requirement.as_object().is_some_and(Map::is_empty));
    match (is_open, roles.is_empty()) {
        (true, true) => "Public.".to_owned(),
        (true, false) => format!("Role {}; no token needed from this machine.", roles.join(" or ")),
        (false, _) => format!("Role {}.", roles.join(" or ")),
    }
}

fn parameters_html(parameters: &Value) -> String {
    let rows = parameters.as_array().into_iter().flatten().map(|parameter| {
        format!(
            "<tr><td><code>{}</code></td><td>{}{}</td><td>{}</td><td>{}</td></tr>\n",
            escaped(text_of(parameter, "name")),
            escaped(text_of(parameter, "in")),
            text_if(parameter["required"] == true, ", required"),
            escaped(&kind_of(&parameter["schema"])),
            html::inline(text_of(parameter, "description"))
        )
    });
    table(rows.collect())
}

/// Wraps rows in a table; empty if there are no rows.
fn table(rows: String) -> String {
    if rows.is_empty() {
        rows
    } else {
        format!("<table>{rows}</table>\n")
    }
}

/// Returns the text if the condition holds, otherwise an empty string.
fn text_if(holds: bool, text: &str) -> &str {
    if holds { text } else { "" }
}

fn responses_html(responses: &Value) -> String {
    let rows = members(responses).map(|(status, response)| {
        let bodies = members(&response["content"])
            .map(|(kind, content)| format!("{} {}", escaped(kind), named(&content["schema"])));
        format!(
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>\n",
            escaped(status),
            html::inline(text_of(response, "description")),
            bodies.collect::<Vec<_>>().join(", ")
        )
    });
    format!(
        "<details><summary>Answers</summary><table>{}</table></details>\n",
        rows.collect::<String>()
    )
}

/// Returns a link to a named schema, otherwise its type.
fn named(schema: &Value) -> String {
    match schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        Some(name) => format!("<a href=\"#schema-{0}\">{0}</a>", escaped(name)),
        None => escaped(&kind_of(schema)),
    }
}

/// Describes the type of a value with its bounds.
fn kind_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return name.to_owned();
    }
    let kind = match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        _ => String::new(),
    };
    let bounds = [
        "format",
        "pattern",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "enum",
        "default",
    ];
    let told = bounds.iter().filter(|bound| !schema[**bound].is_null());
    let told: Vec<String> = told.map(|bound| format!("{bound} {}", schema[*bound])).collect();
    let items = &schema["items"];
    let of = match items.is_object() {
        true => format!(" of {}", kind_of(items)),
        false => String::new(),
    };
    let told = match told.is_empty() {
        true => String::new(),
        false => format!(" ({})", told.join(", ")),
    };
    format!("{kind}{of}{told}")
}

fn schema_html(schema: &Value, depth: usize) -> String {
    if schema["$ref"].is_string() || depth >= DEPTH_MAX {
        return format!("<p>{}</p>\n", named(schema));
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let rows = members(&schema["properties"]).map(|(name, property)| {
        let mark = text_if(required.iter().any(|one| one == name), ", required");
        let has_members = property["properties"].is_object();
        let inner = match has_members {
            true => schema_html(property, depth + 1),
            false => String::new(),
        };
        format!(
            "<tr><td><code>{}</code></td><td>{}{mark}</td><td>{}{inner}</td></tr>\n",
            escaped(name),
            named(property),
            html::inline(text_of(property, "description"))
        )
    });
    let rows: String = rows.collect();
    let choices = ["oneOf", "anyOf", "allOf"]
        .iter()
        .flat_map(|key| schema[*key].as_array().into_iter().flatten());
    let choices: String = choices.map(|choice| schema_html(choice, depth + 1)).collect();
    let head = format!(
        "<p>{} <span class=\"d\">{}</span></p>\n",
        html::inline(text_of(schema, "description")),
        escaped(&kind_of(schema))
    );
    format!("{head}{}{choices}", table(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_names_all_that_can_be_looked_at() {
        let (_, document) = crate::http::routes().split_for_parts();
        let named = resources(&serde_json::to_value(&document).expect("JSON"));
        for name in ["audit", "cluster", "datasets", "schedules", "tasks", "whoami"] {
            assert_eq!(named.get(name), Some(&format!("/v1/{name}")), "{named:?}");
        }
        let lists = document.paths.paths.iter().filter(|(path, item)| {
            item.get.is_some() && path.starts_with("/v1/") && path.matches('/').count() == 2
        });
        for (path, _) in lists.filter(|(path, _)| !path.contains('.')) {
            assert!(named.values().any(|known| known == path), "{path} is left out");
        }
        for path in named.values() {
            assert!(document.paths.paths.contains_key(path), "{path}");
        }
    }
}
