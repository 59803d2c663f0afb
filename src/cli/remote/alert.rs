//! Implementation of `windrow alert`, for notices of events that may need a person.

use std::time::Duration;

use tokio::time::Instant;

use api::{Alert, AlertDelivery, Page};
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Danger, Form, Link, Named, NamedWrite, Pages, Paging, Remote, Write};
use crate::output::body::joined;
use crate::output::difference::differences;
use crate::output::screen;
use crate::output::table::times::Times;
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone};
use crate::shell::Shell;
use windrow_client::{Request, segment};
use windrow_core::alert::{AlertKind, Form as NoticeForm};

/// Examples of alerts, for the help.
const CREATE_EXAMPLES: &str = "Examples:
  windrow alert create ops --url @slack.url --form slack --on stopped,failed
  windrow alert create pager --command page --on stopped --business billing
  windrow alert create chat --url @chat.url --on finished --template @chat.json
  windrow alert test ops

Calls are signed as Standard Webhooks are, sent at least once, and retried for a day. A command is one of \
[handler.command.commands]; it reads the notice on its standard input.

Placeholders of a template: {type} {title} {text} {url} {business} {at}, and members by type (task, failed, limit …).";

/// Time that a test waits for its delivery, beyond the longest call; below, the interval of its checks.
const TEST_PATIENCE: Duration = Duration::from_secs(20);
const TEST_LOOK_EVERY: Duration = Duration::from_millis(250);

/// Arguments of `windrow alert`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AlertArgs {
    /// Verb to execute; without one the alerts are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Flags of the list, without a verb.
    #[command(flatten)]
    pub list: Pages,
}

/// Verbs of `windrow alert`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List alerts with their events and targets
    List(Pages),
    /// Show the events and the target of an alert
    Show(Named),
    /// Create an alert and print the key that signs its calls
    #[command(after_help = CREATE_EXAMPLES, override_usage = "windrow alert create [OPTIONS] --on <EVENTS> <NAME>")]
    Create(CreateArgs),
    /// Change the events or the target of an alert
    #[command(override_usage = "windrow alert edit [OPTIONS] <NAME>")]
    Edit(EditArgs),
    /// Send a test notice and wait for its delivery
    Test(Named),
    /// List the notices of an alert, newest first
    History(HistoryArgs),
    /// Delete an alert; undelivered notices are dropped
    Delete(NamedWrite),
}

/// Members of an alert.
#[derive(Clone, Debug, Args)]
pub struct Members {
    /// URL to call, or @FILE that holds it; stored sealed
    #[arg(long, value_name = "URL|@FILE")]
    pub url: Option<String>,
    /// Command of the nodes' configuration that reads the notice
    #[arg(long, value_name = "NAME")]
    pub command: Option<String>,
    /// Business whose events are told; by default all, and those of no business
    #[arg(long, value_name = "NAME")]
    pub business: Option<String>,
    /// Form of the notice
    #[arg(long, value_parser = PossibleValuesParser::new(NoticeForm::ALL.map(NoticeForm::as_str)))]
    pub form: Option<String>,
    /// JSON with placeholders to send instead of a form, or @FILE
    #[arg(long, value_name = "JSON|@FILE", conflicts_with = "form")]
    pub template: Option<String>,
}

/// Arguments of `windrow alert create`.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("target").required(true).args(["url", "command"]))]
pub struct CreateArgs {
    /// Name used in URLs: a-z, 0-9 and -; can't be changed later
    pub name: String,
    /// Events to tell, separated by commas
    #[arg(long, required = true, value_delimiter = ',', value_parser = kinds())]
    pub on: Vec<String>,
    /// Flags for the target and the form.
    #[command(flatten)]
    pub members: Members,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow alert edit`.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("change").required(true).multiple(true)
    .args(["on", "url", "command", "business", "form", "template", "no_business", "no_template"]))]
pub struct EditArgs {
    /// Name of the alert
    pub name: String,
    /// Events to tell from now on, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = kinds())]
    pub on: Vec<String>,
    /// Flags for the target and the form.
    #[command(flatten)]
    pub members: Members,
    /// Tell the events of all businesses
    #[arg(long, conflicts_with = "business")]
    pub no_business: bool,
    /// Send the form again
    #[arg(long, conflicts_with = "template")]
    pub no_template: bool,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow alert history`.
#[derive(Clone, Debug, Args)]
pub struct HistoryArgs {
    /// Name of the alert
    pub name: String,
    /// Flags of the list.
    #[command(flatten)]
    pub paging: Paging,
    /// Flags for the connection.
    #[command(flatten)]
    pub remote: Remote,
}

fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(AlertKind::ALL.map(AlertKind::as_str))
}

/// Listing of alerts with their events and targets.
const ALERTS: Listing<Alert> = Listing {
    columns: &[
        Column::text("NAME", Keep::Always, 8, |alert: &Alert| &alert.name).tone(Tone::Strong),
        Column::new("ON", Side::Left, Keep::Always, 12, |alert, _| {
            Cell::new(alert.on.join(","))
        }),
        Column::new("TARGET", Side::Left, Keep::Rank(60), 12, |alert, _| {
            Cell::new(target(alert))
        }),
        Column::maybe("BUSINESS", Keep::Rank(50), 8, |alert| alert.business.as_deref()),
        Column::text("FORM", Keep::Rank(20), 5, form),
        Column::time("UPDATED", Keep::Rank(30), |alert| Some(&alert.updated_at)),
    ],
    name: |alert| alert.name.clone(),
    none: "no alerts",
};

/// Listing of the notices of an alert.
const DELIVERIES: Listing<AlertDelivery> = Listing {
    columns: &[
        Column::time("AT", Keep::Always, |one: &AlertDelivery| Some(&one.at)),
        Column::text("STATE", Keep::Always, 9, |one| &one.state),
        Column::text("NOTICE", Keep::Always, 20, title),
        Column::plain("ATTEMPTS", Keep::Rank(20), 3, |one| {
            Some(one.attempts.to_string())
        }),
        Column::maybe("ERROR", Keep::Rank(50), 12, |one| one.error.as_deref()),
    ],
    name: |one| one.delivery_id.clone(),
    none: "no notices yet",
};

fn target(alert: &Alert) -> String {
    let command = || format!("command {}", alert.command.as_deref().unwrap_or_default());
    alert.url.clone().unwrap_or_else(command)
}

fn form(alert: &Alert) -> &str {
    match &alert.template {
        Some(_) => "template",
        None => &alert.form,
    }
}

fn title(delivery: &AlertDelivery) -> &str {
    delivery.notice["title"].as_str().unwrap_or_default()
}

/// Executes the verb; lists the alerts without one.
///
/// # Errors
/// Same as the verb.
pub(crate) async fn alert(args: &AlertArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list(&args.list, shell).await,
        Some(Verb::List(args)) => list(args, shell).await,
        Some(Verb::Show(args)) => show(args, shell).await,
        Some(Verb::Create(args)) => create(args, shell).await,
        Some(Verb::Edit(args)) => edit(args, shell).await,
        Some(Verb::Test(args)) => test(args, shell).await,
        Some(Verb::History(args)) => history(args, shell).await,
        Some(Verb::Delete(args)) => delete(args, shell).await,
    }
}

/// Returns the API path of an alert.
fn path(name: &str) -> String {
    format!("/v1/alerts/{}", segment(name))
}

async fn list(args: &Pages, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let listed = link.list(Request::get("/v1/alerts"), Some(&args.paging)).await?;
    link.show_list(&ALERTS, &listed, &listed.things()?)
}

async fn show(args: &Named, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link.get(&path(&args.name)).await?;
    link.show_one(&ALERTS, &answer, card)
}

fn card(alert: &Alert, times: &Times) -> Card {
    Card::new()
        .title(&alert.name, Tone::Strong)
        .line("on", alert.on.join(", "))
        .line("target", target(alert))
        .maybe("business", alert.business.as_deref())
        .line("form", form(alert).to_owned())
        .maybe("template", alert.template.as_deref())
        .line("revision", alert.revision.to_string())
        .time("updated", Some(&alert.updated_at), times)
}

/// Returns the text of a flag, or of the file that it names.
fn given(flag: &str, text: &str) -> Result<String, Fault> {
    let Some(file) = text.strip_prefix('@') else {
        return Ok(text.to_owned());
    };
    let read = std::fs::read_to_string(file).map_err(|error| {
        Fault::new(
            Exit::Rejected,
            format!("invalid {flag}"),
            format!("can't read {file}: {error}"),
        )
    })?;
    Ok(read.trim().to_owned())
}

impl Members {
    fn fill(&self, body: &mut Map<String, Value>) -> Result<(), Fault> {
        if let Some(url) = &self.url {
            body.insert("url".to_owned(), json!(given("--url", url)?));
        }
        if let Some(template) = &self.template {
            body.insert("template".to_owned(), json!(given("--template", template)?));
        }
        for (name, text) in [
            ("command", &self.command),
            ("business", &self.business),
            ("form", &self.form),
        ] {
            if let Some(text) = text {
                body.insert(name.to_owned(), json!(text));
            }
        }
        Ok(())
    }
}

async fn create(args: &CreateArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut body = Map::new();
    body.insert("name".to_owned(), json!(args.name));
    body.insert("on".to_owned(), json!(args.on));
    args.members.fill(&mut body)?;
    let link = Link::open(&args.write.remote, shell)?;
    let Some(answer) = link
        .change(&args.write, Request::post("/v1/alerts"), body)
        .await?
    else {
        return Ok(Exit::Ok);
    };
    let made: Alert = answer.read()?;
    link.hint(&format!("try it: windrow alert test {}", args.name));
    tell_secret(&link, &made);
    link.show_done(&ALERTS, &answer, &format!("created {}", args.name))
}

/// Prints the key that signs the calls, if it was made now, on standard error; JSON holds it anyway.
fn tell_secret(link: &Link<'_>, made: &Alert) {
    if let Some(secret) = &made.secret
        && !matches!(link.look.form, Form::Json | Form::Ndjson)
    {
        link.must_say(&format!("signing secret, shown only once: {secret}"));
    }
}

async fn edit(args: &EditArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut body = Map::new();
    if !args.on.is_empty() {
        body.insert("on".to_owned(), json!(args.on));
    }
    args.members.fill(&mut body)?;
    for (name, is_removed) in [("business", args.no_business), ("template", args.no_template)] {
        if is_removed {
            body.insert(name.to_owned(), Value::Null);
        }
    }
    let link = Link::open(&args.write.remote, shell)?;
    let Some((before, answer)) = link.patch(&args.write, &path(&args.name), body).await? else {
        return Ok(Exit::Ok);
    };
    let (before, after): (Option<Alert>, Alert) = (serde_json::from_value(before).ok(), answer.read()?);
    tell_secret(&link, &after);
    let after = json!(Alert {
        secret: None,
        ..after
    });
    let changed = differences(&json!(before), &after);
    let changed: Vec<String> = changed.iter().map(|one| one.line()).collect();
    let what = joined(&changed, "  ").unwrap_or_else(|| "unchanged".to_owned());
    link.show_done(&ALERTS, &answer, &format!("{}  {what}", args.name))
}

/// Sends a test and waits until it is delivered or an attempt has failed.
async fn test(args: &Named, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link
        .send(Request::post(&format!("{}/test", path(&args.name))))
        .await?;
    let sent: AlertDelivery = answer.read()?;
    let (begun, request) = (
        Instant::now(),
        format!("{}/deliveries?limit=50", path(&args.name)),
    );
    loop {
        let answer = link.get(&request).await?;
        let page: Page<AlertDelivery> = answer.read()?;
        let now = page
            .items
            .into_iter()
            .find(|one| one.id == sent.id)
            .unwrap_or_default();
        if now.state == "delivered" {
            let done = format!("delivered the test of {}", args.name);
            return match link.look.form.is_for_people() {
                true => screen::put(&done).map(|()| Exit::Ok),
                false => screen::put(&json!(now).to_string()).map(|()| Exit::Ok),
            };
        }
        if now.state == "failed" || now.error.is_some() || begun.elapsed() > TEST_PATIENCE {
            let why = now.error.unwrap_or_else(|| "no node has sent it yet".to_owned());
            let fault = Fault::new(
                Exit::Failed,
                format!("the test of {} wasn't delivered", args.name),
                why,
            );
            return Err(fault.hint(format!(
                "windrow alert history {}; windrow alert edit {} --url …",
                args.name, args.name
            )));
        }
        tokio::time::sleep(TEST_LOOK_EVERY).await;
    }
}

async fn history(args: &HistoryArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let request = Request::get(&format!("{}/deliveries", path(&args.name)));
    let listed = link.list(request, Some(&args.paging)).await?;
    link.show_list(&DELIVERIES, &listed, &listed.things()?)
}

async fn delete(args: &NamedWrite, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    if !args.write.dry_run {
        link.confirm(Danger::Final, &format!("Delete the alert {}?", args.name))?;
    }
    match link
        .change(&args.write, Request::delete(&path(&args.name)), Map::new())
        .await?
    {
        Some(_) => link.show_gone(&args.name, &format!("deleted the alert {}", args.name)),
        None => Ok(Exit::Ok),
    }
}
