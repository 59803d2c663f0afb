//! Changes to objects of a node, with support for dry runs.

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

/// Part of the OpenAPI description that shows which operations have a dry run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Description {
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
    /// Adds the body and the reason to a request. A DELETE has no body, so its reason goes into the query.
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
    /// Sends a change with this body, empty for a DELETE. For a dry run, prints the plan and returns `None`.
    ///
    /// # Errors
    /// Same as [`Link::send`]; `Conflict` if the node has no dry run of this change.
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

    /// Changes the object at a path and returns its previous state and the answer. A concurrent change isn't
    /// overwritten.
    ///
    /// # Errors
    /// Same as [`Link::change`].
    pub async fn patch(
        &self,
        write: &Write,
        path: &str,
        body: Map<String, Value>,
    ) -> Result<Option<(Value, Answer)>, Fault> {
        let before = match self.get(path).await {
            // A caller who may not read may not change either; the refusal of the change names the required role.
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

    /// Requests a dry run and tells people that nothing was changed. Returns the answer and its plan.
    ///
    /// # Errors
    /// `Conflict` if the node can't do that; otherwise same as [`Link::send`].
    pub async fn try_out(&self, request: Request) -> Result<(Answer, api::DryRun), Fault> {
        let description = self.get("/openapi.json").await?.read()?;
        let tried = self.tried(&description, request).await?;
        if self.look.form.is_for_people() {
            self.say("dry run: nothing was changed; the result would be:");
        }
        Ok(tried)
    }

    /// Requests a dry run of an operation that the node describes as having one.
    ///
    /// # Errors
    /// Same as [`Link::try_out`].
    pub(crate) async fn tried(
        &self,
        description: &Description,
        request: Request,
    ) -> Result<(Answer, api::DryRun), Fault> {
        // A node without a dry run of this operation would make the change.
        if !description.can_be_tried(request.method(), request.path()) {
            let because = format!(
                "the node doesn't support a dry run of {} {}",
                request.method(),
                request.path()
            );
            return Err(Fault::new(Exit::Conflict, "dry run not supported", because)
                .hint("use a newer node, or omit --dry-run"));
        }
        let answer = self.send(request.query("dry_run", true)).await?;
        let plan = answer.read::<api::DryRun>().ok().filter(|plan| plan.dry_run);
        let plan = plan.ok_or_else(|| {
            Fault::bug("the node promised a dry run but answered as if it had made the change")
        })?;
        Ok((answer, plan))
    }
}

impl Description {
    /// True if the operation has a dry run.
    fn can_be_tried(&self, method: &str, path: &str) -> bool {
        let method = method.to_lowercase();
        let items = self.paths.iter().filter(|(template, _)| fits(template, path));
        items
            .filter_map(|(_, item)| item.get(&method))
            .flat_map(|operation| &operation.parameters)
            .any(|parameter| parameter.name == "dry_run")
    }
}

/// True if a path matches a template: `/v1/nodes/n1/drain` matches `/v1/nodes/{node}/drain`.
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
