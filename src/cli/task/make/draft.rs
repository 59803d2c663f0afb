//! Draft of a change: its body, built member by member, and support for dry runs.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json as object};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::attributes::Attributes;
use crate::input::flags::Items;
use crate::input::metering::{self, Costs};
use crate::input::moment::{self, Lean};
use crate::input::settings::Settings;
use crate::link::{Link, Write, word};
use crate::output::difference::difference_of;
use crate::output::screen;
use crate::task::args::make::{
    Begin, CanaryArgs, Content, Identity, NamedItems, NewTask, PublishArgs, Strict, Then, Times,
};
use crate::task::look::{rows, show};
use crate::task::make::warnings;
use crate::task::wait::until;
use windrow_client::{Answer, ClientError, Request};
use windrow_core::meter::metering::Metering;
use windrow_server::service::failures::item_data::KEY_COLUMN;

/// Word that removes a deadline.
const NO_DEADLINE: &str = "none";

/// Members that change by themselves and are left out of a plan. The settings in `retry` are also separate members.
const PASSING: [&str; 15] = [
    "retry",
    "since",
    "warnings",
    "version",
    "live",
    "progress",
    "actual_rate",
    "eta_seconds",
    "watermark",
    "next",
    "counts",
    "start",
    "started_at",
    "finished_at",
    "shard_list",
];

/// Body of a change. JSON written by a user is sent unchanged, however large its numbers are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    members: BTreeMap<String, Box<RawValue>>,
    /// True if the node is to treat warnings as errors.
    strict: bool,
}

impl Draft {
    /// Creates a draft with these members.
    pub(crate) fn of(members: BTreeMap<String, Box<RawValue>>) -> Draft {
        let strict = false;
        Draft { members, strict }
    }

    /// Makes the node treat warnings as errors, if the flag is set.
    pub(crate) fn strictly(self, strict: Strict) -> Draft {
        let strict = strict.strict;
        Draft { strict, ..self }
    }

    /// Returns the members as one value, for a member of another body.
    ///
    /// # Errors
    /// Same as [`Draft::put`].
    pub(crate) fn raw(&self) -> Result<Box<RawValue>, Fault> {
        to_raw_value(&self.members).map_err(|error| Fault::bug(error.to_string()))
    }

    /// True if there are no members.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds a member to the body.
    ///
    /// # Errors
    /// Only an internal error: every given value can be written as JSON.
    pub(crate) fn put(&mut self, name: &str, value: impl Serialize) -> Result<(), Fault> {
        let raw = to_raw_value(&value).map_err(|error| Fault::bug(error.to_string()))?;
        self.members.insert(name.to_owned(), raw);
        Ok(())
    }

    /// Adds a member if it has a value.
    ///
    /// # Errors
    /// Same as [`Draft::put`].
    pub(crate) fn put_option(&mut self, name: &str, value: Option<impl Serialize>) -> Result<(), Fault> {
        value.map_or(Ok(()), |value| self.put(name, value))
    }

    /// Adds the given settings.
    ///
    /// # Errors
    /// Same as [`Draft::put`].
    pub(crate) fn settings(&mut self, settings: &Settings) -> Result<(), Fault> {
        let value = serde_json::to_value(&settings.0).map_err(|error| Fault::bug(error.to_string()))?;
        let mut members = value.as_object().into_iter().flatten();
        members.try_for_each(|(name, value)| self.put(name, value))
    }

    /// Adds the given attributes.
    ///
    /// # Errors
    /// Same as [`Draft::put`].
    pub(crate) fn attributes<R>(&mut self, attributes: &Attributes<R>) -> Result<(), Fault> {
        let mut named = attributes.0.iter();
        named.try_for_each(|(name, value)| self.put(name, value))
    }

    /// Creates the draft of a new task from its flags, except for the times.
    ///
    /// # Errors
    /// Fails if the params aren't JSON.
    pub(crate) fn new_task(new: &NewTask) -> Result<Draft, Fault> {
        let mut draft = Draft::default().strictly(new.strict);
        draft.identity(&new.identity)?;
        draft.content(&new.content)?;
        draft.settings(&new.settings)?;
        draft.publication(&new.publish)?;
        draft.begin(new.canary, new.begin)?;
        Ok(draft)
    }

    /// Adds the flags for publishing the results.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub(crate) fn publication(&mut self, publish: &PublishArgs) -> Result<(), Fault> {
        self.put_option("publish", publish.publish.as_ref())?;
        self.put_option("publish_if", publish.publish_if.as_ref())?;
        self.put_option("publish_key", publish.publish_key.as_ref())?;
        self.put_option("reduce", publish.reduce.as_ref())
    }

    /// Adds the data given to the handler, except for limits in units.
    ///
    /// # Errors
    /// Fails if the params aren't JSON.
    pub(crate) fn content(&mut self, content: &Content) -> Result<(), Fault> {
        self.params(content.params.as_deref())?;
        let (_, names) = metering::divided(&content.limits);
        self.put_option("limits", (!names.is_empty()).then_some(names))?;
        self.attributes(&content.attributes)
    }

    /// Adds limits in units and costs, over those of another task if there is one.
    ///
    /// # Errors
    /// `Usage` if they don't fit together.
    pub(crate) fn metering(
        &mut self,
        limits: &[String],
        costs: &Costs,
        base: &Metering,
    ) -> Result<(), Fault> {
        if metering::is_empty(limits, costs) {
            return Ok(());
        }
        self.put("metering", metering::over(limits, costs, base)?)
    }

    /// Adds a source that the node gets itself, and returns true if there is one. `csv` has the options for a CSV at
    /// a URL.
    ///
    /// # Errors
    /// Fails if inline items aren't JSON.
    pub(crate) fn named_items(&mut self, items: &NamedItems, csv: Option<&Items>) -> Result<bool, Fault> {
        if let Some(total) = items.total {
            self.put("source", object!({"type": "range", "total": total}))?;
        } else if let Some(url) = &items.url {
            let mut source = BTreeMap::from([("type", object!("url")), ("url", object!(url))]);
            let delimiter = csv.and_then(|csv| csv.delimiter);
            source.extend(items.format.map(|format| ("format", object!(word(&format)))));
            source.extend(delimiter.map(|delimiter| ("delimiter", object!(delimiter))));
            source.extend(
                csv.filter(|csv| csv.no_header)
                    .map(|_| ("header", object!(false))),
            );
            self.put("source", source)?;
        } else if let Some(inline) = &items.inline {
            let items = json("--items", inline)?;
            let kind = "inline";
            self.put("source", rows::Inline { kind, items: &items })?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Adds name, labels and key column.
    ///
    /// # Errors
    /// Same as [`Draft::put`].
    pub(crate) fn identity(&mut self, identity: &Identity) -> Result<(), Fault> {
        self.put_option("name", identity.name.as_ref())?;
        let mut labels: BTreeMap<_, _> = identity.labels.iter().cloned().collect();
        let columns = identity.key_column.clone();
        labels.extend(columns.map(|columns| (KEY_COLUMN.to_owned(), columns)));
        self.put_option("labels", (!labels.is_empty()).then_some(labels))
    }

    /// Adds the parameters for the handler.
    ///
    /// # Errors
    /// Fails if they aren't JSON.
    pub(crate) fn params(&mut self, params: Option<&str>) -> Result<(), Fault> {
        let params = params.map(|params| json("--params", params)).transpose()?;
        self.put_option("params", params)
    }

    /// Adds a time given by the user, and prints how it was understood.
    ///
    /// # Errors
    /// `Usage` if it isn't a time.
    pub(crate) fn time(&mut self, name: &str, text: Option<&String>, link: &Link<'_>) -> Result<(), Fault> {
        let flag = format!("--{}", name.replace('_', "-"));
        let at = moment::given_option(&flag, text, Lean::Ahead, link)?;
        self.put_option(name, at.map(|at| at.exact))
    }

    /// Adds the earliest start and the deadline.
    ///
    /// # Errors
    /// Same as [`Draft::time`].
    pub(crate) fn times(&mut self, times: &Times, link: &Link<'_>) -> Result<(), Fault> {
        self.time("start_at", times.start_at.as_ref(), link)?;
        self.deadline(times.deadline.as_ref(), link)
    }

    /// Adds the deadline; `none` removes it.
    ///
    /// # Errors
    /// Same as [`Draft::time`].
    pub(crate) fn deadline(&mut self, text: Option<&String>, link: &Link<'_>) -> Result<(), Fault> {
        match text {
            Some(text) if text == NO_DEADLINE => self.put("deadline", Value::Null),
            text => self.time("deadline", text, link),
        }
    }

    /// Adds the canary and the start.
    ///
    /// # Errors
    /// Same as [`Draft::put`].
    pub(crate) fn begin(&mut self, canary: CanaryArgs, begin: Begin) -> Result<(), Fault> {
        if let (Some(items), Some(then)) = (canary.canary, canary.then()) {
            // The API can't ask anybody: for `ask` the task stops, and this program asks.
            let is_plain = then == Then::Continue;
            let then = if is_plain { "continue" } else { "stop" };
            self.put("canary", serde_json::json!({"items": items.get(), "then": then}))?;
        }
        self.put_option("start", begin.starts().then_some(true))
    }

    /// Sends the change. Returns `None` for a dry run, whose plan is printed.
    ///
    /// # Errors
    /// The node's refusal; `Conflict` if it has no dry run of this change.
    pub(crate) async fn send(
        &self,
        link: &Link<'_>,
        write: &Write,
        request: Request,
        task: &str,
    ) -> Result<Option<Answer>, Fault> {
        let request = self.request(write, request)?;
        if write.dry_run {
            return plan(link, task, request).await.map(|()| None);
        }
        let answer = link.send(request).await?;
        if !answer.body.is_empty() {
            warnings::tell(link, &answer.read()?, task);
        }
        Ok(Some(answer))
    }

    /// Adds the body and the reason to a request.
    ///
    /// # Errors
    /// Same as [`Draft::put`].
    pub(crate) fn request(&self, write: &Write, request: Request) -> Result<Request, Fault> {
        let mut draft = self.clone();
        draft.put_option("reason", write.reason.as_ref())?;
        let text = serde_json::to_string(&draft.members).map_err(|error| Fault::bug(error.to_string()))?;
        let request = request.query_option("strict", self.strict.then_some(true));
        Ok(request.body("application/json", text))
    }
}

/// Requests the dry run of a change to this task and prints it. People see the differences.
///
/// # Errors
/// Same as [`Link::try_out`].
pub(crate) async fn plan(link: &Link<'_>, task: &str, request: Request) -> Result<(), Fault> {
    let is_delete = request.method() == "DELETE";
    let path = request.path();
    let makes_another = ["/tasks", "/clone", "/redrives", "/replays"];
    let makes_another = makes_another.iter().any(|end| path.ends_with(end));
    let (answer, tried) = link.try_out(request).await?;
    if !link.look.form.is_for_people() {
        return screen::put(&answer.text());
    }
    if is_delete {
        return screen::put(&format!("{task}  deleted"));
    }
    warnings::tell(link, &would(&answer)?, task);
    if makes_another {
        let card = show::card(&would(&answer)?, &link.times(&answer));
        return screen::put(&card.text(link.look.paper));
    }
    // Compare the JSON as sent: some answers contain more than a task.
    let before: Box<RawValue> = until::look(link, task).await?.answer.read()?;
    let change = difference_of(&before, &tried.would, &PASSING);
    screen::put(&link.look.style.within(&format!("{task}  {change}")))
}

/// Returns the future state in the answer to a dry run.
fn would<T: DeserializeOwned>(answer: &Answer) -> Result<T, ClientError> {
    #[derive(Deserialize)]
    struct Plan<T> {
        would: T,
    }
    answer.read().map(|Plan { would }| would)
}

/// Returns JSON given directly or as `@FILE`.
///
/// # Errors
/// `Rejected` if the file can't be read, or if the text isn't JSON.
pub(crate) fn json(flag: &str, text: &str) -> Result<Box<RawValue>, Fault> {
    let wrong = |because: String| {
        Fault::new(Exit::Rejected, format!("invalid {flag}"), because)
            .hint(format!("{flag} '{}', or {flag} @FILE", example(flag)))
    };
    let text = match text.strip_prefix('@') {
        Some(file) => {
            std::fs::read_to_string(file).map_err(|error| wrong(format!("can't read {file}: {error}")))?
        }
        None => text.to_owned(),
    };
    serde_json::from_str(text.trim()).map_err(|error| wrong(format!("not JSON: {error}")))
}

/// Returns an example value for a flag that takes JSON.
fn example(flag: &str) -> &'static str {
    match flag {
        "--items" => r#"[{"key":1}]"#,
        "--task" => r#"{"total":1000}"#,
        _ => r#"{"key":1}"#,
    }
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
        let fault = json("--items", "@/nowhere").expect_err("no file");
        let hint = fault.hint.expect("what to try");
        assert_eq!(hint, r#"--items '[{"key":1}]', or --items @FILE"#);
    }
}
