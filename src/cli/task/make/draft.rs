//! A change before it is sent: its body, member by member, and the wish only to see what it would do.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::moment::{self, Lean};
use crate::link::{Form, Link, Write};
use crate::output::screen;
use crate::task::args::make::{CanaryArgs, Content, Known, Strict, Then};
use crate::task::args::settings::Settings;
use crate::task::look::show;
use crate::task::make::warnings;
use crate::task::steer::set::difference_but;
use crate::task::wait::until;
use windrow_client::{Answer, ClientError, Request, segment};

/// What takes a deadline away.
const NO_DEADLINE: &str = "none";

/// Members that change by themselves, which a plan doesn't tell; those of `retry` stand beside it.
const PASSING: [&str; 13] = [
    "retry",
    "since",
    "warnings",
    "version",
    "live",
    "actual_rate",
    "low_water",
    "next",
    "counts",
    "start",
    "started_at",
    "finished_at",
    "shard_list",
];

/// An operation of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// `post`, `patch` or `delete`.
    method: &'static str,
    /// Its path as the API's description has it.
    template: &'static str,
}

impl Operation {
    pub(crate) const CREATE: Operation = Operation::post("/v1/tasks");
    pub(crate) const CLONE: Operation = Operation::post("/v1/tasks/{task}/clone");
    pub(crate) const REDRIVE: Operation = Operation::post("/v1/tasks/{task}/redrives");
    pub(crate) const PREVIEW: Operation = Operation::post("/v1/tasks/{task}/preview");
    pub(crate) const START: Operation = Operation::post("/v1/tasks/{task}/start");
    pub(crate) const STOP: Operation = Operation::post("/v1/tasks/{task}/stop");
    pub(crate) const CANCEL: Operation = Operation::post("/v1/tasks/{task}/cancel");
    pub(crate) const FINISH: Operation = Operation::post("/v1/tasks/{task}/finish");
    pub(crate) const ABANDON: Operation = Operation::post("/v1/tasks/{task}/abandon");
    pub(crate) const RECOVER: Operation = Operation::post("/v1/tasks/{task}/recover");
    pub(crate) const MOVE: Operation = Operation::post("/v1/tasks/{task}/move");
    pub(crate) const EDIT: Operation = Operation {
        method: "patch",
        template: "/v1/tasks/{task}",
    };
    pub(crate) const DELETE: Operation = Operation {
        method: "delete",
        template: "/v1/tasks/{task}",
    };

    const fn post(template: &'static str) -> Operation {
        Operation {
            method: "post",
            template,
        }
    }

    /// Whether its answer is the task that it is about.
    fn changes_its_task(self) -> bool {
        let makes_another = [Operation::CREATE, Operation::CLONE, Operation::REDRIVE];
        !makes_another.contains(&self)
    }

    fn request(self, task: &str) -> Request {
        let path = self.template.replace("{task}", &segment(task));
        match self.method {
            "patch" => Request::patch(&path),
            "delete" => Request::delete(&path),
            _ => Request::post(&path),
        }
    }
}

/// The body of a change. What a person wrote as JSON is sent as they wrote it, whatever the size of its numbers.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    members: BTreeMap<String, Box<RawValue>>,
    /// Whether the node refuses what it would only warn of.
    strict: bool,
}

impl Draft {
    /// A body with these members.
    pub(crate) fn of(members: BTreeMap<String, Box<RawValue>>) -> Draft {
        Draft {
            members,
            strict: false,
        }
    }

    /// Another one that says the same.
    pub(crate) fn again(&self) -> Draft {
        Draft {
            members: self.members.clone(),
            strict: self.strict,
        }
    }

    /// The same, refused where it would only be warned of.
    pub(crate) fn strictly(self, strict: Strict) -> Draft {
        Draft {
            strict: strict.strict,
            ..self
        }
    }

    /// Whether it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds a member.
    ///
    /// # Errors
    /// A bug: what is given can be written as JSON.
    pub(crate) fn put(&mut self, name: &str, value: impl Serialize) -> Result<(), Fault> {
        let raw = to_raw_value(&value).map_err(|error| Fault::bug(error.to_string()))?;
        self.members.insert(name.to_owned(), raw);
        Ok(())
    }

    /// Adds a member, if there is one.
    ///
    /// # Errors
    /// As [`Draft::put`].
    pub(crate) fn put_option(&mut self, name: &str, value: Option<impl Serialize>) -> Result<(), Fault> {
        value.map_or(Ok(()), |value| self.put(name, value))
    }

    /// Adds the settings that are named.
    ///
    /// # Errors
    /// As [`Draft::put`].
    pub(crate) fn settings(&mut self, settings: &Settings) -> Result<(), Fault> {
        let value = serde_json::to_value(&settings.0).map_err(|error| Fault::bug(error.to_string()))?;
        let mut members = value.as_object().into_iter().flatten();
        members.try_for_each(|(name, value)| self.put(name, value))
    }

    /// Adds what a task is known by.
    ///
    /// # Errors
    /// As [`Draft::put`].
    pub(crate) fn known(&mut self, known: &Known) -> Result<(), Fault> {
        self.put_option("name", known.name.as_ref())?;
        self.put_option("priority", known.priority)?;
        let labels: BTreeMap<&String, &String> =
            known.labels.iter().map(|(key, value)| (key, value)).collect();
        self.put_option("labels", (!labels.is_empty()).then_some(labels))
    }

    /// Adds what is given to the handler.
    ///
    /// # Errors
    /// When the params aren't JSON.
    pub(crate) fn content(&mut self, content: &Content) -> Result<(), Fault> {
        if let Some(params) = &content.params {
            self.put("params", json("--params", params)?)?;
        }
        self.put_option("send_params", content.send_params)?;
        self.put_option("limits", (!content.limits.is_empty()).then_some(&content.limits))?;
        self.put_option("shards", content.shards.as_deref().map(number_or_word))?;
        self.put_option("skip_first", content.skip_first)?;
        Ok(())
    }

    /// Adds a time that a person gave, and says as what it was understood.
    ///
    /// # Errors
    /// `Usage` when it is none.
    pub(crate) fn time(&mut self, name: &str, text: Option<&String>, link: &Link<'_>) -> Result<(), Fault> {
        let flag = format!("--{}", name.replace('_', "-"));
        let at = moment::given_option(&flag, text, Lean::Ahead, link)?;
        self.put_option(name, at.map(|at| at.exact))
    }

    /// Adds when it may begin, and when it is stopped.
    ///
    /// # Errors
    /// As [`Draft::time`].
    pub(crate) fn times(&mut self, content: &Content, link: &Link<'_>) -> Result<(), Fault> {
        self.time("start_at", content.start_at.as_ref(), link)?;
        self.deadline(content.deadline.as_ref(), link)
    }

    /// Adds when it is stopped; `none` takes that away.
    ///
    /// # Errors
    /// As [`Draft::time`].
    pub(crate) fn deadline(&mut self, text: Option<&String>, link: &Link<'_>) -> Result<(), Fault> {
        match text {
            Some(text) if text == NO_DEADLINE => self.put("deadline", serde_json::Value::Null),
            text => self.time("deadline", text, link),
        }
    }

    /// Adds the canary, and whether it starts.
    ///
    /// # Errors
    /// As [`Draft::put`].
    pub(crate) fn begin(&mut self, canary: CanaryArgs, starts: bool) -> Result<(), Fault> {
        if let (Some(items), Some(then)) = (canary.canary, canary.then()) {
            // The API asks nobody: it stops, and we ask.
            let then = if then == Then::Continue {
                "continue"
            } else {
                "stop"
            };
            self.put("canary", serde_json::json!({"items": items.get(), "then": then}))?;
        }
        self.put_option("start", starts.then_some(true))
    }

    /// Sends it; none when it was a dry run, whose plan is printed.
    ///
    /// # Errors
    /// What the node refused; `Conflict` where it has no dry runs.
    pub(crate) async fn send(
        &self,
        link: &Link<'_>,
        write: &Write,
        operation: Operation,
        task: &str,
    ) -> Result<Option<Answer>, Fault> {
        let request = self.request(write, operation.request(task))?;
        if !write.dry_run {
            let answer = link.send(request).await?;
            warn(link, task, &answer);
            return Ok(Some(answer));
        }
        plan(link, operation, task, request).await.map(|()| None)
    }

    /// The same, if the task still has this tag; else it is [`Sent::Met`].
    ///
    /// # Errors
    /// As [`Draft::send`].
    pub(crate) async fn send_if(
        &self,
        link: &Link<'_>,
        write: &Write,
        operation: Operation,
        task: &str,
        tag: &str,
    ) -> Result<Sent, Fault> {
        let request = self
            .request(write, operation.request(task))?
            .header("if-match", tag);
        if write.dry_run {
            return plan(link, operation, task, request).await.map(|()| Sent::Planned);
        }
        match link.client.send(request).await {
            Ok(answer) => {
                warn(link, task, &answer);
                Ok(Sent::Done(answer))
            }
            Err(ClientError::Problem(problem)) if problem.slug() == "etag-mismatch" => Ok(Sent::Met),
            Err(error) => Err(error.into()),
        }
    }

    /// With its body, and the reason in it.
    fn request(&self, write: &Write, request: Request) -> Result<Request, Fault> {
        let mut members: BTreeMap<&str, &RawValue> = self
            .members
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_ref()))
            .collect();
        let wrong = |error: serde_json::Error| Fault::bug(error.to_string());
        let reason = write
            .reason
            .as_ref()
            .map(to_raw_value)
            .transpose()
            .map_err(wrong)?;
        if let Some(reason) = &reason {
            members.insert("reason", reason);
        }
        let text = serde_json::to_string(&members).map_err(wrong)?;
        let request = request.query_option("strict", self.strict.then_some(true));
        Ok(request.body("application/json", text))
    }
}

/// Says what the node warns of. An answer without a body, as that to a delete, has no warnings.
fn warn(link: &Link<'_>, task: &str, answer: &Answer) {
    if !answer.body.is_empty()
        && let Ok(body) = answer.json()
    {
        warnings::tell(link, &body, task);
    }
}

/// What became of a change that was bound to a tag.
#[derive(Debug)]
pub(crate) enum Sent {
    /// It was made.
    Done(Answer),
    /// It was a dry run, whose plan is printed.
    Planned,
    /// Somebody else had changed the task meanwhile.
    Met,
}

/// Asks what it would do, and prints that: people see what would be another.
async fn plan(link: &Link<'_>, operation: Operation, task: &str, request: Request) -> Result<(), Fault> {
    refuse_blind(link, operation).await?;
    let answer = link.send(request.query("dry_run", true)).await?;
    let plan: Value = answer.json()?;
    if plan["dry_run"] != true {
        let because = "the node says that it can try this, but it answered as if it had done it";
        return Err(Fault::bug(because));
    }
    if !matches!(link.look.form, Form::Table | Form::Wide) {
        return screen::put(&answer.text());
    }
    link.say("dry run: nothing was changed; this would be:");
    let would = &plan["would"];
    warnings::tell(link, would, task);
    if operation == Operation::DELETE {
        return screen::put(&format!("{task}  deleted"));
    }
    if operation.changes_its_task() {
        let before = until::look(link, task).await?.task;
        let change = difference_but(&before, would, &PASSING);
        return screen::put(&link.look.style.within(&format!("{task}  {change}")));
    }
    screen::put(&show::card(would, &link.times(&answer)).text(link.look.paper))
}

/// A node that knows no dry run of an operation would do it in earnest.
async fn refuse_blind(link: &Link<'_>, operation: Operation) -> Result<(), Fault> {
    let document: Value = link.get("/openapi.json").await?.json()?;
    let described = &document["paths"][operation.template][operation.method]["parameters"];
    let mut parameters = described.as_array().into_iter().flatten();
    if parameters.any(|parameter| parameter["name"] == "dry_run") {
        return Ok(());
    }
    let because = format!("this node would do {} in earnest", operation.template);
    Err(Fault::new(Exit::Conflict, "it can't be tried", because).hint("a newer node, or without --dry-run"))
}

/// JSON as a person gives it: itself, or `@FILE`.
///
/// # Errors
/// `Rejected` when the file can't be read or it isn't JSON.
pub(crate) fn json(flag: &str, text: &str) -> Result<Box<RawValue>, Fault> {
    let wrong = |because: String| {
        Fault::new(Exit::Rejected, format!("{flag} can't be used"), because)
            .hint(format!("{flag} '{{\"key\":1}}', or {flag} @FILE"))
    };
    let text = match text.strip_prefix('@') {
        Some(file) => {
            std::fs::read_to_string(file).map_err(|error| wrong(format!("{file} can't be read: {error}")))?
        }
        None => text.to_owned(),
    };
    serde_json::from_str(text.trim()).map_err(|error| wrong(format!("it is no JSON: {error}")))
}

/// A number as one; what else it is, the node judges.
pub(crate) fn number_or_word(text: &str) -> serde_json::Value {
    text.parse::<u64>().map_or_else(|_| text.into(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_sent_by_their_names() {
        let named = r#"{"rate":"500/s","timeout":"3s","max_attempts":5}"#;
        let settings = Settings(serde_json::from_str(named).expect("settings"));
        let mut draft = Draft::default();
        draft.settings(&settings).expect("JSON");
        let text = serde_json::to_string(&draft.members).expect("JSON");
        assert_eq!(text, r#"{"max_attempts":5,"rate":"500/s","timeout":"3s"}"#);
    }

    #[test]
    fn what_a_person_wrote_is_sent_as_they_wrote_it() {
        let big = r#"{"b":123456789012345678901234567890, "a":1}"#;
        assert_eq!(json("--params", big).expect("JSON").get(), big);
        let fault = json("--params", "{a}").expect_err("no JSON");
        assert_eq!(fault.exit, Exit::Rejected);
        assert!(json("--params", "@/nowhere/at/all").is_err());
    }
}
