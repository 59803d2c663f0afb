//! Members of request bodies, read from the node's own description of its API, so that no attribute is declared twice.

use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::link::Link;
use crate::link::change::Description;

/// Members of requests that are not part of an object.
const BESIDE: [&str; 1] = ["reason"];

/// Description of the API as a node serves it.
pub(super) struct Schemas {
    document: Value,
    /// Operations that have a dry run.
    pub(super) description: Description,
}

impl Schemas {
    /// Asks the node for its description.
    ///
    /// # Errors
    /// Same as [`Link::send`].
    pub(super) async fn of(link: &Link<'_>) -> Result<Schemas, Fault> {
        let answer = link.get("/openapi.json").await?;
        Ok(Schemas {
            document: answer.json()?,
            description: answer.read()?,
        })
    }

    /// Returns the properties of the body that creates an object in the list at `path`.
    pub(super) fn to_create(&self, path: &str) -> Option<&Map<String, Value>> {
        self.properties(self.body(path, "post")?)
    }

    /// Returns the properties of the body that changes an object of the list at `path`.
    pub(super) fn to_change(&self, path: &str) -> Option<&Map<String, Value>> {
        let paths = self.document.get("paths")?.as_object()?;
        let is_item = |template: &&String| {
            let rest = template
                .strip_prefix(path)
                .and_then(|rest| rest.strip_prefix("/{"));
            rest.is_some_and(|rest| !rest.contains('/'))
        };
        let template = paths.keys().find(is_item)?;
        self.properties(self.body(template, "patch")?)
    }

    fn body(&self, path: &str, method: &str) -> Option<&Value> {
        let operation = self.document.get("paths")?.get(path)?.get(method)?;
        operation.pointer("/requestBody/content/application~1json/schema")
    }

    /// Follows references and alternatives to the schema that isn't null.
    fn resolved<'a>(&'a self, schema: &'a Value) -> Option<&'a Value> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.resolved(self.document.pointer(reference.strip_prefix('#')?)?);
        }
        match schema.get("oneOf").and_then(Value::as_array) {
            Some(all) => {
                let some = all.iter().find(|one| one.get("$ref").is_some());
                some.map_or(Some(schema), |some| self.resolved(some))
            }
            None => Some(schema),
        }
    }

    fn properties<'a>(&'a self, schema: &'a Value) -> Option<&'a Map<String, Value>> {
        self.resolved(schema)?.get("properties")?.as_object()
    }

    /// Returns JSON pointers to members that the properties don't have, at any depth.
    pub(super) fn strangers(&self, known: &Map<String, Value>, members: &Map<String, Value>) -> Vec<String> {
        let mut found = Vec::new();
        for (name, value) in members {
            let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            let Some(schema) = known.get(name).filter(|_| !BESIDE.contains(&name.as_str())) else {
                found.push(pointer);
                continue;
            };
            if let (Some(known), Value::Object(inner)) = (self.properties(schema), value) {
                let inner = self.strangers(known, inner);
                found.extend(inner.into_iter().map(|rest| format!("{pointer}{rest}")));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_known_through_references_and_alternatives() {
        let document = json!({
            "paths": {
                "/v1/limits": {"post": {"requestBody": {"content": {"application/json": {"schema":
                    {"$ref": "#/components/schemas/Create"}}}}}},
                "/v1/limits/{limit}": {"patch": {"requestBody": {"content": {"application/json": {"schema":
                    {"properties": {"rate": {}}}}}}}},
                "/v1/limits/{limit}/x": {"patch": {}},
            },
            "components": {"schemas": {
                "Create": {"properties": {"name": {}, "free": {}, "reason": {},
                    "inner": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Inner"}]}}},
                "Inner": {"properties": {"a": {}}},
            }},
        });
        let schemas = Schemas {
            document,
            description: Description::default(),
        };
        let known = schemas.to_create("/v1/limits").expect("properties");
        let members =
            json!({"name": 1, "free": {"any": 1}, "inner": {"a": 1, "b/c": 2}, "reason": 1, "no": 1});
        let found = schemas.strangers(known, members.as_object().expect("members"));
        assert_eq!(found, ["/inner/b~1c", "/no", "/reason"]);
        let known = schemas.to_change("/v1/limits").expect("properties");
        assert!(known.contains_key("rate") && schemas.to_change("/v1/tokens").is_none());
    }
}
