//! Changes: sent, or only tried.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::args::{Form, Write};
use super::open::Link;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::screen;
use windrow_client::{Answer, Request};
use windrow_core::settings::json::tree;

/// The API's description, as far as it says which operations can be tried.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Description {
    paths: BTreeMap<String, BTreeMap<String, Operation>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Operation {
    parameters: Vec<Parameter>,
}

#[derive(Debug, Deserialize)]
struct Parameter {
    name: String,
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
                format!("{:#}", tree(plan.would.get()))
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
    pub async fn try_out(&self, request: Request) -> Result<(Answer, api::DryRun), Fault> {
        // A node that knows no dry run of it would make the change.
        let description: Description = self.get("/openapi.json").await?.read()?;
        if !description.can_be_tried(request.method(), request.path()) {
            let because = format!(
                "the node has no dry run of {} {}",
                request.method(),
                request.path()
            );
            return Err(Fault::new(Exit::Conflict, "dry run not supported", because)
                .hint("a newer node, or without --dry-run"));
        }
        let answer = self.send(request.query("dry_run", true)).await?;
        let plan = answer.read::<api::DryRun>().ok().filter(|plan| plan.dry_run);
        let plan = plan.ok_or_else(|| {
            Fault::bug("the node promised a dry run, but answered as if it had made the change")
        })?;
        if self.look.form.is_for_people() {
            self.say("dry run: nothing was changed; this would be:");
        }
        Ok((answer, plan))
    }
}

impl Description {
    /// Whether it knows a dry run of an operation.
    fn can_be_tried(&self, method: &str, path: &str) -> bool {
        let method = method.to_lowercase();
        let items = self.paths.iter().filter(|(template, _)| fits(template, path));
        items
            .filter_map(|(_, item)| item.get(&method))
            .flat_map(|operation| &operation.parameters)
            .any(|parameter| parameter.name == "dry_run")
    }
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
    fn only_what_the_node_describes_is_tried() {
        let dry = json!({"parameters": [{"name": "node"}, {"name": "dry_run"}]});
        let paths = json!({"paths": {
            "/v1/nodes/{node}/drain": {"post": dry}, "/v1/nodes/{node}": {"patch": {"parameters": []}},
        }});
        let read = |text| serde_json::from_value::<Description>(text).expect("a description");
        let description = read(paths);
        assert!(description.can_be_tried("POST", "/v1/nodes/n1/drain"));
        assert!(!description.can_be_tried("POST", "/v1/nodes/n1/undrain"));
        assert!(
            !description.can_be_tried("PATCH", "/v1/nodes/n1")
                && !description.can_be_tried("POST", "/v1/nodes")
        );
        assert!(!read(json!({})).can_be_tried("POST", "/v1/nodes/n1/drain"));
    }
}
