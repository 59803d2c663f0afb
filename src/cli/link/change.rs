//! Changes: sent, or only tried; and what was changed, member by member.

use serde::Serialize;
use serde_json::{Map, Value};

use super::args::{Form, Write};
use super::open::Link;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::body::shown;
use crate::output::screen;
use windrow_client::{Answer, Request};

/// Members that say nothing of what was changed: some grow with every change, and a new secret is told for itself.
const BESIDE: [&str; 3] = ["revision", "updated_at", "secret"];

/// A member that is another now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Which, with dots between the levels.
    pub member: String,
    /// What it was; null where it wasn't there.
    pub from: Value,
    /// What it is; null where it is gone.
    pub to: Value,
}

impl Difference {
    /// `defaults.rate  500/s → 1000/s`.
    pub fn line(&self) -> String {
        let text = |value: &Value| {
            if value.is_null() {
                "–".to_owned()
            } else {
                shown(value)
            }
        };
        format!("{}  {} → {}", self.member, text(&self.from), text(&self.to))
    }
}

/// Every member that isn't the same, in the order of the names.
pub fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", before, after, &mut found);
    found.retain(|one| !BESIDE.contains(&one.member.as_str()));
    found
}

fn compare(member: &str, before: &Value, after: &Value, found: &mut Vec<Difference>) {
    if before == after {
        return;
    }
    let empty = Map::new();
    let levels = match (before, after) {
        (Value::Object(before), Value::Object(after)) => Some((before, after)),
        (Value::Object(before), Value::Null) => Some((before, &empty)),
        (Value::Null, Value::Object(after)) => Some((&empty, after)),
        _ => None,
    };
    let Some((before_all, after_all)) = levels.filter(|(a, b)| !(a.is_empty() && b.is_empty())) else {
        found.push(Difference {
            member: member.to_owned(),
            from: before.clone(),
            to: after.clone(),
        });
        return;
    };
    let names: std::collections::BTreeSet<&String> = before_all.keys().chain(after_all.keys()).collect();
    for name in names {
        let inner = if member.is_empty() {
            name.clone()
        } else {
            format!("{member}.{name}")
        };
        let of = |all: &Map<String, Value>| all.get(name).cloned().unwrap_or(Value::Null);
        compare(&inner, &of(before_all), &of(after_all), found);
    }
}

impl Write {
    /// A request with this body and the reason; that of a DELETE, which has no body, is in its query.
    pub fn request(&self, request: Request, mut body: Map<String, Value>) -> Request {
        let reason = self.reason.clone();
        if request.method() == "DELETE" {
            return request.query_option("reason", reason);
        }
        body.extend(reason.map(|reason| ("reason".to_owned(), Value::String(reason))));
        request.json(&Value::Object(body))
    }
}

impl Link<'_> {
    /// Sends a change with this body; a DELETE has none. None is the answer to a dry run, whose plan is printed then.
    ///
    /// # Errors
    /// As [`Link::send`]; `Conflict` where a change is only to be tried, and the node can't do that.
    pub async fn change(
        &self,
        write: &Write,
        request: Request,
        body: Map<String, Value>,
    ) -> Result<Option<Answer>, Fault> {
        let request = write.request(request, body);
        if !write.dry_run {
            return self.send(request).await.map(Some);
        }
        let (answer, plan) = self.try_out(request).await?;
        screen::put(&match self.look.form {
            Form::Table | Form::Wide => {
                serde_json::to_string_pretty(&plan["would"]).map_err(|error| Fault::bug(error.to_string()))?
            }
            Form::Json | Form::Ndjson | Form::Name | Form::Csv => answer.text(),
        })?;
        Ok(None)
    }

    /// Changes what is at a path: what it was, and the answer. What somebody else changes in between is not overwritten.
    ///
    /// # Errors
    /// As [`Link::change`].
    pub async fn patch(
        &self,
        write: &Write,
        path: &str,
        body: Map<String, Value>,
    ) -> Result<Option<(Value, Answer)>, Fault> {
        let before = match self.get(path).await {
            // Whoever may not look may not change it either: the refusal of the change names the role that it needs.
            Err(fault) if fault.exit == Exit::NotAllowed => {
                let after = self.change(write, Request::patch(path), body).await?;
                return Ok(after.map(|after| (Value::Null, after)));
            }
            looked => looked?,
        };
        let mut request = Request::patch(path);
        if let Some(tag) = before.header("etag") {
            request = request.header("if-match", tag);
        }
        let after = self.change(write, request, body).await?;
        after.map(|after| Ok((before.json()?, after))).transpose()
    }

    /// Asks what a change would do, and says to people that nothing was done: the answer and its plan.
    ///
    /// # Errors
    /// `Conflict` where the node can't do that; else as [`Link::send`].
    pub async fn try_out(&self, request: Request) -> Result<(Answer, Value), Fault> {
        // A node that knows no dry run of it would make the change.
        let document: Value = self.get("/openapi.json").await?.json()?;
        if !can_be_tried(&document, request.method(), request.path()) {
            let because = format!(
                "the node has no dry run of {} {}",
                request.method(),
                request.path()
            );
            return Err(Fault::new(Exit::Conflict, "dry run not supported", because)
                .hint("a newer node, or without --dry-run"));
        }
        let answer = self.send(request.query("dry_run", true)).await?;
        let plan = answer.json()?;
        if plan["dry_run"] != true {
            return Err(Fault::bug(
                "the node promised a dry run, but answered as if it had made the change",
            ));
        }
        if self.look.form.is_for_people() {
            self.say("dry run: nothing was changed; this would be:");
        }
        Ok((answer, plan))
    }
}

/// Whether the API's description knows a dry run of an operation.
fn can_be_tried(document: &Value, method: &str, path: &str) -> bool {
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.filter(|(template, _)| fits(template, path));
    let parameters = operations.filter_map(|(_, item)| item[method.to_lowercase()]["parameters"].as_array());
    parameters
        .flatten()
        .any(|parameter| parameter["name"] == "dry_run")
}

/// Whether a path is one of a template's: `/v1/nodes/n1/drain` of `/v1/nodes/{node}/drain`.
fn fits(template: &str, path: &str) -> bool {
    let (templates, parts): (Vec<&str>, Vec<&str>) =
        (template.split('/').collect(), path.split('/').collect());
    let fits = |(template, part): (&&str, &&str)| template == part || template.starts_with('{');
    templates.len() == parts.len() && templates.iter().zip(&parts).all(fits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_changed_is_said_member_by_member() {
        let before =
            json!({"name": "a", "revision": 1, "updated_at": "x", "defaults": {"rate": "5/s"}, "hooks": {}});
        let after = json!({"name": "a", "revision": 2, "updated_at": "y", "defaults": {"batch": 2}, "hooks": {"validate": {}}});
        let lines: Vec<String> = differences(&before, &after)
            .iter()
            .map(Difference::line)
            .collect();
        assert_eq!(
            lines,
            [
                "defaults.batch  – → 2",
                "defaults.rate  5/s → –",
                "hooks.validate  – → {}"
            ]
        );
        assert_eq!(differences(&before, &before), []);
    }

    #[test]
    fn only_what_the_node_describes_is_tried() {
        let dry = json!({"parameters": [{"name": "node"}, {"name": "dry_run"}]});
        let document = json!({"paths": {
            "/v1/nodes/{node}/drain": {"post": dry}, "/v1/nodes/{node}": {"patch": {"parameters": []}},
        }});
        assert!(can_be_tried(&document, "POST", "/v1/nodes/n1/drain"));
        assert!(!can_be_tried(&document, "POST", "/v1/nodes/n1/undrain"));
        assert!(
            !can_be_tried(&document, "PATCH", "/v1/nodes/n1")
                && !can_be_tried(&document, "POST", "/v1/nodes")
        );
        assert!(!can_be_tried(&json!({}), "POST", "/v1/nodes/n1/drain"));
    }
}
