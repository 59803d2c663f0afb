//! Implementation of `windrow task redrive` and `windrow task replay`.

use std::collections::BTreeMap;

use serde_json::json;

use crate::exit::Exit;
use crate::fault::{Fault, as_flags};
use crate::link::{Form, Link};
use crate::output::table::human;
use crate::run::args::IfEmpty;
use crate::shell::Shell;
use crate::task::args::make::Begin;
use crate::task::args::redrive::{RedriveArgs, ReplayArgs};
use crate::task::look::follow::{Created, follow};
use crate::task::make::draft::Draft;
use crate::task::steer::tell;
use crate::task::wait::until;
use crate::task::words;
use windrow_client::{Answer, Request};

/// Creates a task that redoes failed items.
///
/// # Errors
/// Same as [`Draft::send`].
pub(crate) async fn redrive(args: &RedriveArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut draft = draft(args)?;
    let link = Link::open(&args.write.remote, shell)?;
    let origin = link.task(&args.task).await?;
    if !args.limits.is_empty() {
        let before = until::look(&link, &origin).await?.task;
        draft.put("metering", args.limits.over(&before.spec.metering)?)?;
    }
    let request = Request::post(&format!("/v1/tasks/{origin}/redrives"));
    let Some(answer) = draft.send(&link, &args.write, request, &origin).await? else {
        return Ok(Exit::Ok);
    };
    if let Ok(told) = answer.read() {
        return nothing(&link, &answer, &told);
    }
    let task: api::Task = answer.read()?;
    let keys = if args.new_keys { "new" } else { "same" };
    let left_out = match args.all && !args.again {
        true => left_out(&link, &origin, &task).await?,
        false => String::new(),
    };
    let line = format!(
        "created  {} (redrive of {origin}, {}, {keys} idempotency keys{left_out})   {}",
        task.id,
        human::counted(task.total, "item"),
        words::status(&task).0
    );
    let created = Created {
        answer,
        line,
        begin: args.begin,
        then: args.canary.then(),
    };
    let followed = follow(&link, created).await?;
    if followed.ended.is_some_and(|ended| ended.status == "finished") {
        tell_net(&link, &origin).await?;
    }
    Ok(followed.exit)
}

/// Creates a task that sends settled items again, and starts it.
///
/// # Errors
/// Same as [`Draft::send`].
pub(crate) async fn replay(args: &ReplayArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut draft = Draft::default();
    draft.put("indexes", args.index.replace(' ', ""))?;
    draft.put_option("same_keys", args.same_key.then_some(true))?;
    draft.put("start", true)?;
    let link = Link::open(&args.write.remote, shell)?;
    let origin = link.task(&args.task).await?;
    let request = Request::post(&format!("/v1/tasks/{origin}/replays"));
    let Some(answer) = draft.send(&link, &args.write, request, &origin).await? else {
        return Ok(Exit::Ok);
    };
    let task: api::Task = answer.read()?;
    let keys = if args.same_key { "same" } else { "new" };
    let line = format!(
        "created  {} (replay of {} of {origin}, {keys} idempotency keys)   {}",
        task.id,
        human::counted(task.total, "item"),
        words::status(&task).0
    );
    let begin = Begin {
        start: true,
        wait: args.wait,
    };
    let created = Created {
        answer,
        line,
        begin,
        then: None,
    };
    Ok(follow(&link, created).await?.exit)
}

/// Reports why no task was created. Scripts that want JSON get the answer, those that want a name get nothing.
fn nothing(link: &Link<'_>, answer: &Answer, told: &api::NothingToDo) -> Result<Exit, Fault> {
    if matches!(link.look.form, Form::Json | Form::Ndjson) {
        return link.put(answer.line().as_bytes());
    }
    link.say(&told.detail);
    for advice in &told.advice {
        link.hint(&as_flags(advice));
    }
    Ok(Exit::Ok)
}

fn draft(args: &RedriveArgs) -> Result<Draft, Fault> {
    let mut draft = Draft::default();
    let mut filter = BTreeMap::new();
    filter.extend((!args.codes.is_empty()).then(|| ("codes", json!(args.codes))));
    let indexes = args.indexes.as_ref().map(|indexes| indexes.replace(' ', ""));
    filter.extend(indexes.map(|indexes| ("indexes", json!(indexes))));
    filter.extend(args.unconfirmed.then_some(("unconfirmed", json!(true))));
    draft.put("filter", filter)?;
    draft.put_option("new_keys", args.new_keys.then_some(true))?;
    draft.put_option("again", args.again.then_some(true))?;
    draft.put_option("if_empty", (args.if_empty == IfEmpty::Error).then_some("error"))?;
    draft.identity(&args.identity)?;
    draft.attributes(&args.attributes)?;
    draft.settings(&args.settings)?;
    draft.begin(args.canary, args.begin)?;
    Ok(draft)
}

/// Returns the number of the origin's failures that the redrive leaves out, and the idle redrives that have them.
/// Empty if none are left out.
async fn left_out(link: &Link<'_>, origin: &str, redrive: &api::Task) -> Result<String, Fault> {
    let report = report(link, origin).await?;
    let left_out = match report.counts.terms.failed.saturating_sub(redrive.total) {
        0 => return Ok(String::new()),
        left_out => human::count(left_out),
    };
    let others = report.redrives.iter().filter(|other| other.id != redrive.id);
    let resting = others.filter(|other| matches!(other.status.as_str(), "created" | "stopped"));
    let resting: Vec<String> = resting
        .map(|other| format!("{} is {}: windrow task start {0}", other.id, other.status))
        .collect();
    let resting = match resting.is_empty() {
        true => String::new(),
        false => format!(" ({})", resting.join("; ")),
    };
    Ok(format!(
        "; excluding {left_out} recovered or in progress{resting}"
    ))
}

async fn report(link: &Link<'_>, task: &str) -> Result<api::Report, Fault> {
    Ok(link.get(&format!("/v1/tasks/{task}/report")).await?.read()?)
}

/// Reports the remaining failures of the origin. They don't affect the exit code, which is the redrive's.
async fn tell_net(link: &Link<'_>, origin: &str) -> Result<(), Fault> {
    let api::Report { net, counts, .. } = report(link, origin).await?;
    tell(
        link,
        &format!(
            "net result of {origin}: succeeded {}  skipped {}  recovered {}  failed {}{}",
            human::count(counts.terms.succeeded),
            human::count(counts.terms.skipped),
            human::count(net.recovered),
            human::count(net.still_failed),
            at_least(&net)
        ),
    )
}

/// Returns the prefix for a lower bound: redrives may share items, and there are too many to check each.
pub(crate) fn at_least(net: &api::ReportNet) -> &'static str {
    match net.exact {
        true => "",
        false => " or more (too many to check each)",
    }
}
