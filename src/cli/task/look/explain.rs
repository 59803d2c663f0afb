//! `windrow task explain`: why a task is as fast as it is, and what would help.

use clap::Args;
use serde_json::{Map, Value};

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Danger, Form, Link, Remote, Write};
use crate::output::screen;
use crate::output::table::times::{TimeStyle, Times};
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone, clean};
use windrow_client::{Request, segment};
use windrow_core::explain::rate_text;

/// Examples under `--help`.
pub const EXAMPLES: &str = "\
Examples:
  windrow task explain t42
  windrow task explain t42 --seconds 300
  windrow task explain t42 --apply   # makes the advised change; asks first";

/// The reason that the audit has when none is given.
const REASON: &str = "explain";

/// `windrow task explain`
#[derive(Debug, Args)]
#[command(mut_arg("reason", |arg| arg.requires("apply")), mut_arg("dry_run", |arg| arg.requires("apply")))]
pub struct ExplainArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// Of the last so many seconds
    #[arg(long, value_name = "N")]
    pub seconds: Option<u32>,
    /// Make the first change that is advised
    #[arg(long)]
    pub apply: bool,
    /// What is said of the change.
    #[command(flatten)]
    pub write: Write,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// The causes, for scripts.
const CAUSES: Listing = Listing {
    columns: &[
        Column::new("CAUSE", Side::Left, Keep::Always, 8, |cause, _| {
            Cell::member(cause, "slug")
        }),
        Column::new("RATE", Side::Right, Keep::Always, 4, |cause, _| {
            Cell::member(cause, "rate")
        }),
        Column::new("SHARE", Side::Right, Keep::Always, 5, |cause, _| {
            Cell::member(cause, "share")
        }),
        Column::new("TEXT", Side::Left, Keep::Always, 8, |cause, _| {
            Cell::member(cause, "text")
        }),
    ],
    name: |cause| cause["slug"].as_str().unwrap_or_default().to_owned(),
    none: "nothing is missing",
};

/// Explains the speed of a task, and makes the change that is advised if that is wanted.
///
/// # Errors
/// As [`Link::send`]; `Interrupted` when the change isn't wanted after all.
pub(crate) async fn explain(args: &ExplainArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    let path = format!("/v1/tasks/{}", segment(&id));
    let request = Request::get(&format!("{path}/explain")).query_option("seconds", args.seconds);
    let is_for_people = link.look.form.is_for_people();
    if is_for_people {
        let text = link.send(request.clone().accept("text/plain")).await?.text();
        screen::put(&painted(&text, link.look.paper.colours, link.look.style))?;
    }
    if is_for_people && !args.apply {
        return Ok(Exit::Ok);
    }
    let answer = link.send(request).await?;
    let explanation: Value = answer.json()?;
    if args.apply {
        return apply(args, &link, &path, &explanation).await;
    }
    let causes = explanation["causes"].as_array().cloned().unwrap_or_default();
    let times: Times = link.times(&answer);
    let text = match link.look.form {
        Form::Name => CAUSES.names(&causes),
        Form::Csv => CAUSES.csv(&causes, &times),
        Form::Table | Form::Wide | Form::Json => answer.text(),
        Form::Ndjson => answer.text().replace(['\n', '\r'], " "),
    };
    screen::put(&text).map(|()| Exit::Ok)
}

async fn apply(args: &ExplainArgs, link: &Link<'_>, path: &str, explanation: &Value) -> Result<Exit, Fault> {
    let advice = explanation["advice"].as_array().into_iter().flatten();
    let advised =
        advice.filter_map(|advice| Some((advice["change"].as_object()?, &advice["predicted_rate"])));
    let Some((change, predicted)) = advised.clone().next() else {
        link.say("nothing to apply: no change of settings is advised");
        return Ok(Exit::Ok);
    };
    let task: Value = link.get(path).await?.json()?;
    let changes = changes(change, &task);
    let predicted = predicted
        .as_f64()
        .map(|rate| format!(" (predicted {})", rate_text(rate)));
    let what = format!(
        "{}: {changes}{}",
        explanation["task"].as_str().unwrap_or_default(),
        predicted.unwrap_or_default()
    );
    if !args.write.dry_run {
        link.confirm(Danger::Ordinary, &format!("Change {what}?"))?;
    }
    let reason = args.write.reason.clone().or_else(|| Some(REASON.to_owned()));
    let write = Write {
        reason,
        dry_run: args.write.dry_run,
    };
    let answer = link
        .send(write.request(Request::patch(path), change.clone()))
        .await?;
    if link.show_plan(&answer)? {
        return Ok(Exit::Ok);
    }
    screen::put(&match link.look.form {
        Form::Json => answer.text(),
        Form::Ndjson => answer.text().replace(['\n', '\r'], " "),
        Form::Name => explanation["task"].as_str().unwrap_or_default().to_owned(),
        Form::Table | Form::Wide | Form::Csv => format!("changed {what}"),
    })?;
    Ok(Exit::Ok)
}

/// `window 600 → 1500, concurrency 8 → 16`.
fn changes(change: &Map<String, Value>, task: &Value) -> String {
    let written = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let texts = change.iter().map(|(name, value)| {
        let (was, is) = (written(&task[name]), written(value));
        format!("{} {was} → {is}", name.replace('_', " "))
    });
    clean(&texts.collect::<Vec<_>>().join(", "))
}

/// The node's text with its marks in colour and its times as they are wanted; each line stays a line.
fn painted(text: &str, colours: bool, style: TimeStyle) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let line = style.within(&clean(line));
        let mark = [
            ("why:", Tone::Strong),
            ("try:", Tone::Good),
            ("target", Tone::Strong),
        ];
        let mark = mark.into_iter().find(|(mark, _)| line.starts_with(mark));
        lines.push(match mark {
            Some((mark, tone)) => tone.paint(mark, colours) + &line[mark.len()..],
            None => line,
        });
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_shows_what_was_and_what_would_be() {
        let task = json!({"window": 600, "concurrency": "auto", "backoff": "1s..60s x2"});
        let change = json!({"concurrency": 16, "backoff": "1s..5s x2", "window": 1500});
        let change = change.as_object().expect("an object");
        let text = changes(change, &task);
        assert_eq!(
            text,
            "backoff 1s..60s x2 → 1s..5s x2, concurrency auto → 16, window 600 → 1500"
        );
    }

    #[test]
    fn a_nodes_text_keeps_its_lines_and_steers_no_terminal() {
        assert_eq!(
            painted("target 1/s\n  a\u{1b}[2J\nwhy: b\n", false, TimeStyle::Relative),
            "target 1/s\n  a\u{FFFD}[2J\nwhy: b"
        );
        assert!(painted("why: b", true, TimeStyle::Relative).contains("\u{1b}[1mwhy:"));
    }
}
