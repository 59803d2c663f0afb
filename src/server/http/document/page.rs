//! `/docs`: the API for people, made from the document: no script, nothing from elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::http::answer::html::{self, escaped};
use crate::http::document::Written;

/// How deep a schema is shown where it is used; deeper ones are links.
const DEPTH_MAX: usize = 3;

/// What somebody needs who has nothing yet.
const BEGINNING: &str = r#"<h2 id="begin">begin</h2>
<p>Every call but those that are open to everybody carries a token. At its first start a node writes an administrator's
into <code>admin.token</code> of its data directory, unless the configuration says where
(<code>auth.bootstrap_token_file</code>); that one makes others: <code>windrow token create --name me --role operator</code>.</p>
<pre>TOKEN=$(cat data/admin.token)
curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:7700/v1/tasks
curl -H "Authorization: Bearer $TOKEN" --json '{"business":"push","source":{"type":"range","total":100},"rate":"5/s","start":true}' http://127.0.0.1:7700/v1/tasks
curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:7700/v1/tasks/t1</pre>
<p>The same as a document: <a href="/openapi.json">/openapi.json</a>. Times are RFC 3339; lists are pages: give
<code>next_cursor</code> back as <code>cursor</code>. What went wrong is told as a problem with a <code>type</code>, all of
which are <a href="/problems">explained</a>.</p>
"#;

/// Where the resources are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Index {
    /// The collections, by name.
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    resources: BTreeMap<&'static str, &'static str>,
    /// The page for people.
    docs: &'static str,
    /// The document for programs.
    openapi: &'static str,
}

/// Where the resources are
#[utoipa::path(
    get, path = "/v1", operation_id = "index", tag = "node", security(()),
    responses((status = 200, body = Index))
)]
pub(crate) async fn index() -> Json<Index> {
    Json(Index {
        resources: RESOURCES.into(),
        docs: "/docs",
        openapi: "/openapi.json",
    })
}

/// The collections.
const RESOURCES: [(&str, &str); 11] = [
    ("audit", "/v1/audit"),
    ("businesses", "/v1/businesses"),
    ("events", "/v1/events"),
    ("limits", "/v1/limits"),
    ("logs", "/v1/logs"),
    ("nodes", "/v1/nodes"),
    ("sessions", "/v1/sessions"),
    ("tasks", "/v1/tasks"),
    ("tokens", "/v1/tokens"),
    ("uploads", "/v1/uploads"),
    ("whoami", "/v1/whoami"),
];

/// This API, for people
#[utoipa::path(
    get, path = "/docs", operation_id = "docs", tag = "node", security(()),
    responses((status = 200, description = "A page", body = String, content_type = "text/html"))
)]
pub(crate) async fn docs(Extension(written): Extension<Arc<Written>>) -> Response {
    html::page("API", &written.html)
}

/// The inside of the page.
pub(crate) fn render(document: &Value) -> String {
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
    let mut text = format!(
        "<h1>Windrow {}</h1>\n{}{BEGINNING}",
        escaped(text_of(&document["info"], "version")),
        html::rendered(text_of(&document["info"], "description"))
    );
    let links: String = by_tag
        .keys()
        .map(|tag| format!("<a href=\"#{tag}\">{tag}</a> "))
        .collect();
    text.push_str(&format!("<nav>{links}<a href=\"#schemas\">schemas</a></nav>\n"));
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
    text
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

/// Who may call it, in words.
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
        (true, true) => "Open to everybody.".to_owned(),
        (true, false) => format!("Role {}; from this machine without a token.", roles.join(" or ")),
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

/// Rows as a table; none is nothing.
fn table(rows: String) -> String {
    if rows.is_empty() {
        rows
    } else {
        format!("<table>{rows}</table>\n")
    }
}

/// What is written where something holds.
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

/// A link to a schema of a name; its kind otherwise.
fn named(schema: &Value) -> String {
    match schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        Some(name) => format!("<a href=\"#schema-{0}\">{0}</a>", escaped(name)),
        None => escaped(&kind_of(schema)),
    }
}

/// The kind of a value with what bounds it.
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
    use super::RESOURCES;

    #[test]
    fn the_index_names_what_is_there() {
        let (_, document) = crate::http::routes().split_for_parts();
        for (_, path) in RESOURCES {
            assert!(document.paths.paths.contains_key(path), "{path}");
        }
    }
}
