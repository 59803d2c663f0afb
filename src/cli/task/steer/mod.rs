//! `windrow task start`, `stop`, `cancel`, `finish`, `recover` and `delete`.

pub(crate) mod relocate;
pub(crate) mod set;

use serde_json::Value;
use tokio::time::Instant;

use super::args::steer::{AbandonArgs, FinishArgs, Judge, PlainArgs, StartArgs, StopArgs};
use super::ending;
use super::which::{Deed, Told, chosen, each};
use super::words;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Danger, Form, Link};
use crate::output::screen;
use crate::output::table::{clean, human};
use crate::task::make::draft::{Draft, Operation};
use crate::task::wait::until::{self, Seen};
use windrow_client::Answer;
use windrow_core::ids::ItemIndex;
use windrow_core::items::run::IndexRun;
use windrow_core::task::lifecycle::CutOff;

/// Statuses of tasks that haven't ended.
pub(super) const LIVING: &str = "created,queued,awaiting_business,running,recovering,stopping,stopped";

/// Starts.
///
/// # Errors
/// What the node refused.
pub(super) async fn start(args: &StartArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let deed = Deed {
        verb: "start",
        usual: "created,stopped",
        danger: Danger::Ordinary,
        is_dry: args.write.dry_run,
    };
    let ids = chosen(&link, &args.which, deed).await?;
    let mut draft = Draft::default().strictly(args.strict);
    draft.time("start_at", args.start_at.as_ref(), &link)?;
    draft.put_option("now", args.now.then_some(true))?;
    draft.put_option("judge", args.judge.map(|Judge::Items| "items"))?;
    let send = async |id: &str| draft.send(&link, &args.write, Operation::START, id).await;
    let became = async |id: &str, answer: Answer| {
        let task: Value = answer.json()?;
        let line = format!("{id}  {}{}", words::status(&task).0, because(&task));
        let line = link.look.style.within(&line);
        if !args.wait {
            return Ok(Told::well(line, answer));
        }
        tell(&link, &line)?;
        let seen = until::until(&link, id, |task| ending::ended(task).is_some()).await?;
        let exit = ending::ended(&seen.task).unwrap_or(Exit::Stopped);
        Ok(Told {
            line: until::outcome(&seen.task),
            answer: Some(seen.answer),
            exit,
        })
    };
    each(&link, &ids, send, became).await
}

/// Says a line to people on standard output, before the last one.
pub(super) fn tell(link: &Link<'_>, line: &str) -> Result<(), Fault> {
    match link.look.form {
        Form::Table | Form::Wide => screen::put(line),
        _ => Ok(()),
    }
}

fn because(task: &Value) -> String {
    task["status_text"]
        .as_str()
        .map(|text| format!("  {text}"))
        .unwrap_or_default()
}

/// Stops.
///
/// # Errors
/// What the node refused.
pub(super) async fn stop(args: &StopArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let deed = Deed {
        verb: "stop",
        usual: "queued,awaiting_business,running,recovering",
        danger: Danger::Ordinary,
        is_dry: args.write.dry_run,
    };
    let ids = chosen(&link, &args.which, deed).await?;
    let mut draft = Draft::default();
    draft.put_option("now", args.now.then_some(true))?;
    let begun = Instant::now();
    let send = async |id: &str| draft.send(&link, &args.write, Operation::STOP, id).await;
    let became = async |id: &str, answer: Answer| {
        let task: Value = answer.json()?;
        if task["status"] != "stopping" {
            return Ok(Told::well(stopped(&task), answer));
        }
        if !args.wait {
            return Ok(Told::well(stopping(&task), answer));
        }
        tell(&link, &stopping(&task))?;
        let is_over = |task: &Value| task["status"] != "stopping" && task["status"] != "finalizing";
        let Seen { answer, task } = until::until(&link, id, is_over).await?;
        let took = until::seconds(begun.elapsed());
        Ok(Told::well(
            format!("drained in {took}\n{}", stopped(&task)),
            answer,
        ))
    };
    each(&link, &ids, send, became).await
}

fn stopping(task: &Value) -> String {
    let id = task["id"].as_str().unwrap_or_default();
    let in_flight = human::count(task["counts"]["in_flight"].as_u64().unwrap_or(0));
    let halt = task["live"]["high_water"].as_u64();
    let halt = halt.map(|high| format!(", dispatch halted at index {}", human::count(high)));
    format!(
        "{id}  stopping: {in_flight} in flight{}",
        halt.unwrap_or_default()
    )
}

/// Where it stands, what may repeat, and how it goes on.
fn stopped(task: &Value) -> String {
    let id = task["id"].as_str().unwrap_or_default();
    if task["status"] != "stopped" {
        return format!("{id}  {}{}", words::status(task).0, because(task));
    }
    let low = human::count(task["low_water"].as_u64().unwrap_or(0));
    let repeats = cut_off(&task["cut_off"]).unwrap_or_else(|| "nothing will repeat".to_owned());
    format!("{id}  stopped at low water {low} ({repeats})   go on: windrow task start {id}")
}

/// Which items may repeat; none where nothing was cut off.
fn cut_off(cut_off: &Value) -> Option<String> {
    let items = cut_off["items"].as_u64()?;
    let runs = cut_off["runs"].as_array()?.iter().filter_map(|run| {
        let (first, items) = (
            run["first"].as_u64()?,
            u32::try_from(run["items"].as_u64()?).ok()?,
        );
        IndexRun::new(ItemIndex(first), items)
    });
    Some(
        CutOff {
            items,
            runs: runs.collect(),
        }
        .to_string(),
    )
}

/// Cancels.
///
/// # Errors
/// What the node refused; `Usage` without a yes.
pub(super) async fn cancel(args: &PlainArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let deed = Deed {
        verb: "cancel",
        usual: LIVING,
        danger: Danger::Final,
        is_dry: args.write.dry_run,
    };
    let ids = chosen(&link, &args.which, deed).await?;
    let line = |task: &Value| {
        let left = task["counts"]["pending"].as_u64().unwrap_or(0);
        let are = if left == 1 { "is" } else { "are" };
        let next = format!("{} {are} left undone", human::counted(left, "item"));
        format!(
            "{}   do it after all: windrow task clone {}",
            standing(task, &next),
            id_of(task)
        )
    };
    plain(&link, &ids, args, Operation::CANCEL, line).await
}

/// Tries recovering tasks now, and proves again the ends that didn't add up.
///
/// # Errors
/// What the node refused.
pub(super) async fn recover(args: &PlainArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let deed = Deed {
        verb: "recover",
        usual: "recovering,finalizing",
        danger: Danger::Ordinary,
        is_dry: args.write.dry_run,
    };
    let ids = chosen(&link, &args.which, deed).await?;
    let line = |task: &Value| match task["status"].as_str() {
        Some("finished") => standing(task, "its end adds up now"),
        Some("finalizing") => format!("{}{}", standing(task, "its end doesn't add up"), because(task)),
        _ => standing(task, "it is tried now, not later"),
    };
    plain(&link, &ids, args, Operation::RECOVER, line).await
}

async fn plain(
    link: &Link<'_>,
    ids: &[String],
    args: &PlainArgs,
    operation: Operation,
    line: impl Fn(&Value) -> String,
) -> Result<Exit, Fault> {
    let draft = Draft::default();
    let send = async |id: &str| draft.send(link, &args.write, operation, id).await;
    each(link, ids, send, async |_: &str, answer: Answer| {
        told(answer, &line)
    })
    .await
}

fn told(answer: Answer, line: impl Fn(&Value) -> String) -> Result<Told, Fault> {
    let task: Value = answer.json()?;
    Ok(Told::well(line(&task), answer))
}

fn standing(task: &Value, next: &str) -> String {
    format!("{}  {}: {next}", id_of(task), words::status(task).0)
}

fn id_of(task: &Value) -> &str {
    task["id"].as_str().unwrap_or_default()
}

/// Finishes early.
///
/// # Errors
/// What the node refused.
pub(super) async fn finish(args: &FinishArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let is_dry = args.write.dry_run;
    let deed = Deed {
        verb: "finish",
        usual: "running,stopped",
        danger: Danger::Ordinary,
        is_dry,
    };
    let ids = chosen(&link, &args.which, deed).await?;
    let mut draft = Draft::default();
    draft.put_option("total", args.total)?;
    let line = |task: &Value| {
        let cut = task["finish_at"].as_u64();
        let cut = cut.map(|cut| format!("items from index {} on are left out", human::count(cut)));
        standing(
            task,
            &cut.unwrap_or_else(|| "what was not dispatched is left out".to_owned()),
        )
    };
    let send = async |id: &str| draft.send(&link, &args.write, Operation::FINISH, id).await;
    each(&link, &ids, send, async |_: &str, answer: Answer| {
        told(answer, line)
    })
    .await
}

/// Gives up items that wait with a code.
///
/// # Errors
/// What the node refused.
pub(super) async fn abandon(args: &AbandonArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let deed = Deed {
        verb: "give up items of",
        usual: "queued,awaiting_business,running,recovering,stopping,stopped",
        danger: Danger::Ordinary,
        is_dry: args.write.dry_run,
    };
    let ids = chosen(&link, &args.which, deed).await?;
    let mut draft = Draft::default();
    draft.put("code", &args.code)?;
    let send = async |id: &str| draft.send(&link, &args.write, Operation::ABANDON, id).await;
    each(&link, &ids, send, async |_: &str, answer: Answer| {
        told(answer, given_up)
    })
    .await
}

/// How many, when, and what comes next.
fn given_up(task: &Value) -> String {
    let (id, code) = (
        id_of(task),
        clean(task["given_up"]["code"].as_str().unwrap_or_default()),
    );
    let items = human::count(task["given_up"]["items"].as_u64().unwrap_or(0));
    let what = format!("items that wait with {code} are given up, {items} as last saved");
    let next = match task["status"].as_str() {
        Some("running" | "stopping") => format!("see them: windrow task failures {id} --code {code}"),
        Some("stopped") => format!("as soon as it runs: windrow task start {id}"),
        _ => "as soon as it runs".to_owned(),
    };
    standing(task, &format!("{what}; {next}"))
}

/// Deletes.
///
/// # Errors
/// What the node refused; `Usage` without a yes.
pub(super) async fn delete(args: &PlainArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let is_dry = args.write.dry_run;
    let deed = Deed {
        verb: "delete",
        usual: "finished,cancelled",
        danger: Danger::Final,
        is_dry,
    };
    let ids = chosen(&link, &args.which, deed).await?;
    let draft = Draft::default();
    let send = async |id: &str| draft.send(&link, &args.write, Operation::DELETE, id).await;
    let became = async |id: &str, _: Answer| {
        // The API answers with nothing.
        Ok(Told {
            line: format!("{id}  deleted"),
            answer: None,
            exit: Exit::Ok,
        })
    };
    each(&link, &ids, send, became).await
}
