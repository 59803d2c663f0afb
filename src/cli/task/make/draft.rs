//! A change before it is sent: its body, member by member, and the wish only to see what it would do.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json as object};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::attributes::Attributes;
use crate::input::flags::Items;
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
use windrow_server::service::failures::item_data::KEY_COLUMN;

/// What takes a deadline away.
const NO_DEADLINE: &str = "none";

/// Members that change by themselves, which a plan doesn't tell; those of `retry` stand beside it.
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

/// The body of a change. What a person wrote as JSON is sent as they wrote it, whatever the size of its numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    members: BTreeMap<String, Box<RawValue>>,
    /// Whether the node refuses what it would only warn of.
    strict: bool,
}

impl Draft {
    /// A body with these members.
    pub(crate) fn of(members: BTreeMap<String, Box<RawValue>>) -> Draft {
        let strict = false;
        Draft { members, strict }
    }

    /// The same, refused where it would only be warned of.
    pub(crate) fn strictly(self, strict: Strict) -> Draft {
        let strict = strict.strict;
        Draft { strict, ..self }
    }

    /// Its members, as a member of another body.
    ///
    /// # Errors
    /// As [`Draft::put`].
    pub(crate) fn raw(&self) -> Result<Box<RawValue>, Fault> {
        to_raw_value(&self.members).map_err(|error| Fault::bug(error.to_string()))
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

    /// Adds the attributes that are named.
    ///
    /// # Errors
    /// As [`Draft::put`].
    pub(crate) fn attributes<R>(&mut self, attributes: &Attributes<R>) -> Result<(), Fault> {
        let mut named = attributes.0.iter();
        named.try_for_each(|(name, value)| self.put(name, value))
    }

    /// Adds what a new task becomes, but for its times.
    ///
    /// # Errors
    /// When the params aren't JSON.
    pub(crate) fn new_task(new: &NewTask) -> Result<Draft, Fault> {
        let mut draft = Draft::default().strictly(new.strict);
        draft.identity(&new.identity)?;
        draft.content(&new.content)?;
        draft.settings(&new.settings)?;
        draft.publication(&new.publish)?;
        draft.begin(new.canary, new.begin)?;
        Ok(draft)
    }

    /// Adds what its results become.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub(crate) fn publication(&mut self, publish: &PublishArgs) -> Result<(), Fault> {
        self.put_option("publish", publish.publish.as_ref())?;
        self.put_option("publish_if", publish.publish_if.as_ref())?;
        self.put_option("publish_key", publish.publish_key.as_ref())?;
        self.put_option("reduce", publish.reduce.as_ref())
    }

    /// Adds what is given to the handler.
    ///
    /// # Errors
    /// When the params aren't JSON.
    pub(crate) fn content(&mut self, content: &Content) -> Result<(), Fault> {
        self.params(content.params.as_deref())?;
        self.put_option("limits", (!content.limits.is_empty()).then_some(&content.limits))?;
        self.attributes(&content.attributes)
    }

    /// Adds a source that the node has by itself, if one is named; `csv` says what is special about a CSV at a URL.
    ///
    /// # Errors
    /// When inline items aren't JSON.
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

    /// Adds what a task is found by.
    ///
    /// # Errors
    /// As [`Draft::put`].
    pub(crate) fn identity(&mut self, identity: &Identity) -> Result<(), Fault> {
        self.put_option("name", identity.name.as_ref())?;
        let mut labels: BTreeMap<_, _> = identity.labels.iter().cloned().collect();
        let columns = identity.key_column.clone();
        labels.extend(columns.map(|columns| (KEY_COLUMN.to_owned(), columns)));
        self.put_option("labels", (!labels.is_empty()).then_some(labels))
    }

    /// Adds what the handler is given.
    ///
    /// # Errors
    /// When it isn't JSON.
    pub(crate) fn params(&mut self, params: Option<&str>) -> Result<(), Fault> {
        let params = params.map(|params| json("--params", params)).transpose()?;
        self.put_option("params", params)
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
    pub(crate) fn times(&mut self, times: &Times, link: &Link<'_>) -> Result<(), Fault> {
        self.time("start_at", times.start_at.as_ref(), link)?;
        self.deadline(times.deadline.as_ref(), link)
    }

    /// Adds when it is stopped; `none` takes that away.
    ///
    /// # Errors
    /// As [`Draft::time`].
    pub(crate) fn deadline(&mut self, text: Option<&String>, link: &Link<'_>) -> Result<(), Fault> {
        match text {
            Some(text) if text == NO_DEADLINE => self.put("deadline", Value::Null),
            text => self.time("deadline", text, link),
        }
    }

    /// Adds the canary, and whether it starts.
    ///
    /// # Errors
    /// As [`Draft::put`].
    pub(crate) fn begin(&mut self, canary: CanaryArgs, begin: Begin) -> Result<(), Fault> {
        if let (Some(items), Some(then)) = (canary.canary, canary.then()) {
            // The API asks nobody: it stops, and we ask.
            let is_plain = then == Then::Continue;
            let then = if is_plain { "continue" } else { "stop" };
            self.put("canary", serde_json::json!({"items": items.get(), "then": then}))?;
        }
        self.put_option("start", begin.starts().then_some(true))
    }

    /// Sends it; none when it was a dry run, whose plan is printed.
    ///
    /// # Errors
    /// What the node refused; `Conflict` where it has no dry runs.
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

    /// With its body, and the reason in it.
    ///
    /// # Errors
    /// As [`Draft::put`].
    pub(crate) fn request(&self, write: &Write, request: Request) -> Result<Request, Fault> {
        let mut draft = self.clone();
        draft.put_option("reason", write.reason.as_ref())?;
        let text = serde_json::to_string(&draft.members).map_err(|error| Fault::bug(error.to_string()))?;
        let request = request.query_option("strict", self.strict.then_some(true));
        Ok(request.body("application/json", text))
    }
}

/// Asks what a change of this task would do, and prints that: people see what would be different.
///
/// # Errors
/// As [`Link::try_out`].
pub(crate) async fn plan(link: &Link<'_>, task: &str, request: Request) -> Result<(), Fault> {
    let is_delete = request.method() == "DELETE";
    let path = request.path();
    let makes_another = path == "/v1/tasks" || path.ends_with("/clone") || path.ends_with("/redrives");
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
    // As they were sent: some answers say more than a task.
    let before: Box<RawValue> = until::look(link, task).await?.answer.read()?;
    let change = difference_of(&before, &tried.would, &PASSING);
    screen::put(&link.look.style.within(&format!("{task}  {change}")))
}

/// What would be, of the answer to a dry run.
fn would<T: DeserializeOwned>(answer: &Answer) -> Result<T, ClientError> {
    #[derive(Deserialize)]
    struct Plan<T> {
        would: T,
    }
    answer.read().map(|Plan { would }| would)
}

/// JSON as a person gives it: itself, or `@FILE`.
///
/// # Errors
/// `Rejected` when the file can't be read or it isn't JSON.
pub(crate) fn json(flag: &str, text: &str) -> Result<Box<RawValue>, Fault> {
    let wrong = |because: String| {
        Fault::new(Exit::Rejected, format!("{flag} can't be used"), because)
            .hint(format!("{flag} '{}', or {flag} @FILE", example(flag)))
    };
    let text = match text.strip_prefix('@') {
        Some(file) => {
            std::fs::read_to_string(file).map_err(|error| wrong(format!("{file} can't be read: {error}")))?
        }
        None => text.to_owned(),
    };
    serde_json::from_str(text.trim()).map_err(|error| wrong(format!("not JSON: {error}")))
}

/// What a flag that takes JSON could be given.
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
