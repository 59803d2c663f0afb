//! Commands that control tasks: start, stop, cancel, finish, seal, mark items as failed, skip items, recover and
//! delete.

pub(crate) mod relocate;
pub(crate) mod set;
pub(crate) mod skip;

use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::args::steer::{FailArgs, FinishArgs, Judge, PlainArgs, StartArgs, StopArgs, Which};
use super::ending;
use super::which::{Action, Became, chosen, each};
use super::words;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Danger, Link, Write};
use crate::output::screen;
use crate::output::shell_word;
use crate::output::table::{clean, human};
use crate::shell::Shell;
use crate::task::make::draft::Draft;
use crate::task::wait::until::{self, TaskAnswer};
use windrow_client::{Answer, Request};
use windrow_core::ids::ItemIndex;
use windrow_core::items::run::IndexRun;
use windrow_core::task::lifecycle::CutOff;

/// Returns the statuses of tasks to which the verb applies, empty for all.
pub(crate) fn usual(verb: &str) -> &'static str {
    match verb {
        "start" => "created,stopped",
        "stop" => "queued,awaiting_business,running,recovering",
        "cancel" | "set" => "created,queued,awaiting_business,running,recovering,stopping,stopped",
        "recover" => "recovering,finalizing",
        "finish" => "running,stopped",
        "seal" => "created,queued,awaiting_business,running,recovering,stopping,stopped",
        "fail" => "queued,awaiting_business,running,recovering,stopping,stopped",
        "delete" => "finished,cancelled",
        _ => "",
    }
}

/// Creates an action that can be undone or repeated.
fn ordinary(verb: &'static str) -> Action {
    Action {
        verb,
        path: verb,
        usual: usual(verb),
        danger: Danger::Ordinary,
    }
}

/// Creates an action that can't be undone.
fn irreversible(verb: &'static str) -> Action {
    Action {
        danger: Danger::Final,
        ..ordinary(verb)
    }
}

/// Returns the request for an action on a task.
fn post(id: &str, verb: &str) -> Request {
    Request::post(&format!("/v1/tasks/{id}/{verb}"))
}

/// Starts tasks.
///
/// # Errors
/// Same as [`Draft::send`].
pub(super) async fn start(args: &StartArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let action = ordinary("start");
    let ids = chosen(&link, &args.which, action, args.write.dry_run).await?;
    let mut draft = Draft::default().strictly(args.strict);
    draft.time("start_at", args.start_at.as_ref(), &link)?;
    draft.put_option("now", args.now.then_some(true))?;
    draft.put_option("judge", args.judge.map(|Judge::Items| "items"))?;
    let send = async |id: &str| draft.send(&link, &args.write, post(id, "start"), id).await;
    let became = async |id: &str, answer: Answer| {
        let task = answer.read()?;
        let line = format!("{id}  {}{}", words::status(&task).0, because(&task));
        let line = link.look.style.within(&line);
        if !args.wait {
            return Ok(Became::well(line, answer));
        }
        tell(&link, &line)?;
        let over = until::until(&link, id, |task| ending::ended(task).is_some()).await?;
        Ok(Became {
            line: until::outcome(&over.task),
            exit: ending::ended(&over.task).unwrap_or(Exit::Stopped),
            answer: over.answer,
        })
    };
    each(&link, &ids, send, became).await
}

/// Prints a line for people on standard output, before the final one.
pub(super) fn tell(link: &Link<'_>, line: &str) -> Result<(), Fault> {
    match link.look.form.is_for_people() {
        true => screen::put(line),
        false => Ok(()),
    }
}

fn because(task: &api::Task) -> String {
    let text = task.status_text.as_ref();
    text.map(|text| format!("  {text}")).unwrap_or_default()
}

/// Stops tasks.
///
/// # Errors
/// Same as [`Draft::send`].
pub(super) async fn stop(args: &StopArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let action = ordinary("stop");
    let ids = chosen(&link, &args.which, action, args.write.dry_run).await?;
    let mut draft = Draft::default();
    draft.put_option("now", args.now.then_some(true))?;
    let begun = Instant::now();
    let send = async |id: &str| draft.send(&link, &args.write, post(id, "stop"), id).await;
    let became = async |id: &str, answer: Answer| {
        let task: api::Task = answer.read()?;
        if task.status != "stopping" {
            return Ok(Became::well(stopped(&task), answer));
        }
        if !args.wait {
            return Ok(Became::well(stopping(&task), answer));
        }
        tell(&link, &stopping(&task))?;
        let is_over = |task: &api::Task| !matches!(task.status.as_str(), "stopping" | "finalizing");
        let TaskAnswer { answer, task } = until::until(&link, id, is_over).await?;
        let took = human::span(begun.elapsed());
        let line = format!("drained in {took}\n{}", stopped(&task));
        Ok(Became::well(line, answer))
    };
    each(&link, &ids, send, became).await
}

fn stopping(task: &api::Task) -> String {
    let waits = match task.counts.in_flight {
        0 => String::new(),
        in_flight => format!("; waiting for {} in flight", human::count(in_flight)),
    };
    let halt = task.live.as_ref().and_then(|live| live.high_water);
    let halt = halt.map(|high| format!(", dispatch halted at index {}", human::count(high)));
    let next = format!("no new calls{waits}{}", halt.unwrap_or_default());
    format!("{}  stopping: {next}", task.id)
}

/// Formats the position of a stopped task, the items that may repeat, and the command that resumes it.
fn stopped(task: &api::Task) -> String {
    let id = &task.id;
    if task.status != "stopped" {
        return format!("{id}  {}{}", words::status(task).0, because(task));
    }
    let low = human::count(task.watermark);
    let repeats = task.cut_off.as_ref().map(cut_off);
    let repeats = repeats.unwrap_or_else(|| "no call is repeated".to_owned());
    format!("{id}  stopped at watermark {low} ({repeats})   resume: windrow task start {id}")
}

/// Formats the items that may repeat.
fn cut_off(cut_off: &api::CutOff) -> String {
    let runs = cut_off.runs.iter();
    let runs = runs.filter_map(|run| IndexRun::new(ItemIndex(run.first), run.items));
    let (items, runs) = (cut_off.items, runs.collect());
    CutOff { items, runs }.to_string()
}

/// Applies one action to the selected tasks. `line` formats the result for each.
async fn steer<T: DeserializeOwned>(
    (which, write): (&Which, &Write),
    shell: &Shell,
    action: Action,
    draft: Draft,
    line: impl Fn(&T) -> String,
) -> Result<Exit, Fault> {
    let link = Link::open(&write.remote, shell)?;
    let ids = chosen(&link, which, action, write.dry_run).await?;
    let send = async |id: &str| draft.send(&link, write, post(id, action.path), id).await;
    let became = async |_: &str, answer: Answer| Ok(Became::well(line(&answer.read()?), answer));
    each(&link, &ids, send, became).await
}

/// Cancels tasks.
///
/// # Errors
/// Same as [`Draft::send`]; `Usage` without confirmation.
pub(super) async fn cancel(args: &PlainArgs, shell: &Shell) -> Result<Exit, Fault> {
    let action = irreversible("cancel");
    steer(
        (&args.which, &args.write),
        shell,
        action,
        Draft::default(),
        cancelled,
    )
    .await
}

/// Formats the number of items left undone, including retrying ones.
fn cancelled(task: &api::Task) -> String {
    let left = task.counts.pending + task.counts.parked;
    let next = format!("{} not done", human::counted(left, "item"));
    let id = &task.id;
    format!(
        "{}; `windrow task clone {id}` makes a new task over all items",
        standing(task, &next)
    )
}

/// Retries the recovery of tasks now, and repeats final checks that didn't add up.
///
/// # Errors
/// Same as [`Draft::send`].
pub(super) async fn recover(args: &PlainArgs, shell: &Shell) -> Result<Exit, Fault> {
    let line = |task: &api::Task| match task.status.as_str() {
        "finished" => standing(task, "its counts add up now"),
        "finalizing" => format!("{}{}", standing(task, "its counts don't add up"), because(task)),
        _ => standing(task, "retrying now"),
    };
    let action = ordinary("recover");
    steer((&args.which, &args.write), shell, action, Draft::default(), line).await
}

/// Formats the status of a task and the next step: `t42  ◐ stopping: …`.
fn standing(task: &api::Task, next: &str) -> String {
    format!("{}  {}: {next}", task.id, words::status(task).0)
}

/// Finishes tasks early.
///
/// # Errors
/// Same as [`Draft::send`]; `Usage` without confirmation.
pub(super) async fn finish(args: &FinishArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut draft = Draft::default();
    draft.put_option("total", args.total)?;
    let is_known = |task: &api::Task| args.total.is_some() || task.status == "finished";
    let line = |task: &api::Task| match task.finish_at.filter(|_| is_known(task)) {
        Some(cut) => {
            let left = human::counted(task.total.saturating_sub(cut), "item");
            // A run that doesn't know of it yet may have dispatched more.
            let upto = if task.status == "finished" { "" } else { "up to " };
            let cut = human::count(cut);
            standing(
                task,
                &format!("items from index {cut} on are excluded, {upto}{left}"),
            )
        }
        // The cut is known only after its runs have learned of it.
        None => {
            let left = human::counted(task.counts.pending, "item");
            standing(task, &format!("undispatched items are excluded, at most {left}"))
        }
    };
    let action = irreversible("finish");
    steer((&args.which, &args.write), shell, action, draft, line).await
}

/// Seals open tasks.
///
/// # Errors
/// Same as [`Draft::send`].
pub(super) async fn seal(args: &PlainArgs, shell: &Shell) -> Result<Exit, Fault> {
    let line = |task: &api::Task| {
        let total = human::counted(task.total, "item");
        standing(task, &format!("sealed; it finishes once its {total} are settled"))
    };
    let action = irreversible("seal");
    steer((&args.which, &args.write), shell, action, Draft::default(), line).await
}

/// Marks retrying items with a failure code as failed.
///
/// # Errors
/// Same as [`Draft::send`].
pub(super) async fn fail(args: &FailArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut draft = Draft::default();
    draft.put("code", &args.code)?;
    let action = Action {
        verb: "fail items of",
        ..ordinary("fail")
    };
    let line = |told: &api::MarkedTask| marked(&told.task, &told.marked);
    steer((&args.which, &args.write), shell, action, draft, line).await
}

/// Formats the number of items, the time at which they are marked, and the next step.
fn marked(task: &api::Task, marked: &api::MarkedFailed) -> String {
    let (id, code) = (&task.id, &marked.code);
    let items = human::count(marked.items);
    let what = format!(
        "items retrying after {} are marked failed, {items} as last saved",
        clean(code)
    );
    let next = match task.status.as_str() {
        "running" | "stopping" => {
            format!("list: windrow task failures {id} --code {}", shell_word(code))
        }
        "stopped" => format!("at the next run: windrow task start {id}"),
        _ => "at the next run".to_owned(),
    };
    standing(task, &format!("{what}; {next}"))
}

/// Deletes tasks that have ended.
///
/// # Errors
/// Same as [`Draft::send`]; `Usage` without confirmation.
pub(super) async fn delete(args: &PlainArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let action = irreversible("delete");
    let ids = chosen(&link, &args.which, action, args.write.dry_run).await?;
    let draft = Draft::default();
    let send = async |id: &str| {
        let request = Request::delete(&format!("/v1/tasks/{id}"));
        draft.send(&link, &args.write, request, id).await
    };
    let became = async |id: &str, answer| Ok(Became::well(format!("{id}  deleted"), answer));
    each(&link, &ids, send, became).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_were_to_be_tried_again_are_left_undone_as_well() {
        let of = |pending, parked| {
            let counts = api::TaskCounts {
                pending,
                parked,
                ..Default::default()
            };
            cancelled(&api::Task {
                counts,
                ..Default::default()
            })
        };
        assert!(of(4, 1).contains("5 items not done"), "{}", of(4, 1));
        assert!(of(1, 0).contains("1 item not done"), "{}", of(1, 0));
    }
}
