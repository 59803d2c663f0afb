//! Implementation of `windrow task explain`: the causes of a task's current speed, and advice to raise it.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Danger, Form, Link, Write};
use crate::output::body::shown;
use crate::output::screen;
use crate::output::table::times::TimeStyle;
use crate::output::table::{Column, Keep, Listing, Tone, clean};
use crate::shell::Shell;
use windrow_client::Request;
use windrow_core::explain::rate_text;

/// Examples of `explain`, for the help.
pub const EXAMPLES: &str = "Examples:
  windrow task explain t42
  windrow task explain t42 --seconds 300
  windrow task explain t42 --apply   # applies the recommended change";

/// Reason recorded in the audit log if none is given.
const REASON: &str = "explain";

/// Arguments of `windrow task explain`.
#[derive(Debug, Args)]
#[command(mut_arg("reason", |arg| arg.requires("apply")), mut_arg("dry_run", |arg| arg.requires("apply")))]
pub struct ExplainArgs {
    /// Task to explain: t42, or business/name
    pub task: String,
    /// Number of past seconds to explain
    #[arg(long, value_name = "N")]
    pub seconds: Option<u32>,
    /// Make the first recommended change
    #[arg(long)]
    pub apply: bool,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Listing of causes, for scripts.
const CAUSES: Listing<api::ExplainedCause> = Listing {
    columns: &[
        Column::text("CAUSE", Keep::Always, 8, |cause| &cause.slug),
        Column::plain("RATE", Keep::Always, 4, |cause| {
            Some(json!(cause.rate).to_string())
        }),
        Column::plain("SHARE", Keep::Always, 5, |cause| {
            Some(json!(cause.share?).to_string())
        }),
        Column::text("TEXT", Keep::Always, 8, |cause| &cause.text),
    ],
    name: |cause| cause.slug.clone(),
    none: "nothing is below target",
};

/// Explains the speed of a task, and makes the recommended change with `--apply`.
///
/// # Errors
/// Same as [`Link::send`]; `Interrupted` if the user declines the change.
pub(crate) async fn explain(args: &ExplainArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let id = link.task(&args.task).await?;
    let path = format!("/v1/tasks/{id}");
    let request = Request::get(&format!("{path}/explain")).query_option("seconds", args.seconds);
    let is_for_people = link.look.form.is_for_people();
    // With `--apply`, show and apply the same explanation: a second request may recommend something else.
    if is_for_people && !args.apply {
        let text = link.send(request.clone().accept("text/plain")).await?.text();
        screen::put(&painted(
            &link.said(&text),
            link.look.paper.colours,
            link.look.style,
        ))?;
        return Ok(Exit::Ok);
    }
    let answer = link.send(request).await?;
    let explanation: api::Explanation = answer.read()?;
    if args.apply {
        if is_for_people {
            let why = format!("why: {}", explanation.why);
            screen::put(&painted(&why, link.look.paper.colours, link.look.style))?;
        }
        return apply(args, &link, &path, &explanation).await;
    }
    let causes = &explanation.causes;
    screen::put(&match link.look.form {
        Form::Name => CAUSES.names(causes),
        Form::Csv => CAUSES.csv(causes, &link.times(&answer), link.look.guard.into()),
        Form::Table | Form::Wide | Form::Json => answer.text(),
        Form::Ndjson => answer.line(),
    })?;
    Ok(Exit::Ok)
}

async fn apply(
    args: &ExplainArgs,
    link: &Link<'_>,
    path: &str,
    explanation: &api::Explanation,
) -> Result<Exit, Fault> {
    let advice = explanation.advice.iter();
    let mut advised = advice.filter_map(|advice| Some((advice.change.as_ref()?, advice.predicted_rate)));
    let Some((change, predicted)) = advised.next() else {
        link.say("nothing to apply: no change is recommended");
        return Ok(Exit::Ok);
    };
    let changes = changes(change, &link.get(path).await?.read()?);
    let predicted = predicted.map(|rate| format!(" (predicted {})", rate_text(rate)));
    let task = &explanation.task;
    let what = format!("{task}: {changes}{}", predicted.unwrap_or_default());
    if !args.write.dry_run {
        link.confirm(Danger::Ordinary, &format!("Change {what}?"))?;
    }
    let mut write = args.write.clone();
    write.reason.get_or_insert_with(|| REASON.to_owned());
    let Some(answer) = link.change(&write, Request::patch(path), change.clone()).await? else {
        return Ok(Exit::Ok);
    };
    screen::put(&match link.look.form {
        Form::Json => answer.text(),
        Form::Ndjson => answer.line(),
        Form::Name => task.to_owned(),
        Form::Table | Form::Wide | Form::Csv => format!("changed {what}"),
    })?;
    Ok(Exit::Ok)
}

/// Formats a change of settings as `window 600 → 1500, concurrency 8 → 16`.
fn changes(change: &Map<String, Value>, task: &api::Task) -> String {
    let before = json!(task.settings.tuning);
    let texts = change.iter().map(|(name, value)| {
        let (was, is) = (shown(&before[name]), shown(value));
        format!("{} {was} → {is}", name.replace('_', " "))
    });
    clean(&texts.collect::<Vec<_>>().join(", "))
}

/// Colours the marks in the node's text and formats its times in the requested style. Lines stay as they are.
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
    use windrow_core::settings::table::TuningPatch;

    use super::*;

    #[test]
    fn a_change_shows_what_was_and_what_would_be() {
        let mut task = api::Task::default();
        for (name, value) in [("window", "600"), ("backoff", "1s..60s x2")] {
            let patch = TuningPatch::parse(name, value).expect("sound");
            task.settings.tuning = patch.apply(&task.settings.tuning);
        }
        let change = json!({"concurrency": 16, "backoff": "1s..5s x2", "window": 1500});
        let change = change.as_object().expect("an object");
        let text = changes(change, &task);
        assert_eq!(
            text,
            "backoff 1s..60s x2 jitter 20% → 1s..5s x2, concurrency auto → 16, window 600 → 1500"
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
