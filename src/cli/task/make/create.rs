//! Implementation of `windrow task create` and `clone`.

use serde_json::json as object;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::metering;
use crate::link::Link;
use crate::output::table::human;
use crate::run::args::IfEmpty;
use crate::shell::Shell;
use crate::task::args::make::{CloneArgs, CreateArgs, NewTask};
use crate::task::look::follow::{Created, follow};
use crate::task::look::rows;
use crate::task::make::draft::Draft;
use crate::task::wait::until;
use crate::task::words;
use windrow_client::{Answer, Request};
use windrow_core::meter::metering::Metering;
use windrow_server::service::failures::item_data::Members;

/// Creates a task.
///
/// # Errors
/// Fails if the items can't be read or uploaded, or if the node refuses. An unused upload is removed.
pub(crate) async fn create(args: &CreateArgs, shell: &Shell) -> Result<Exit, Fault> {
    // Report errors in the flags before anything is uploaded.
    let mut draft = Draft::new_task(&args.new)?;
    let (limits, _) = metering::divided(&args.new.content.limits);
    draft.metering(&limits, &args.new.content.costs, &Metering::default())?;
    draft.put("business", &args.business)?;
    draft.put_option("if_empty", (args.if_empty == IfEmpty::Error).then_some("error"))?;
    rows::check(args)?;
    let link = Link::open(&args.new.write.remote, shell)?;
    draft.times(&args.new.times, &link)?;
    let upload = source(args, &link, &mut draft).await?;
    let sent = draft
        .send(&link, &args.new.write, Request::post("/v1/tasks"), "")
        .await;
    let Ok(Some(answer)) = sent else {
        if let Some(upload) = &upload {
            rows::discard(&link, upload).await;
        }
        return sent.map(|_| Exit::Ok);
    };
    created(&link, &args.new, answer, |items| format!("  {items}")).await
}

/// Creates a task like another one.
///
/// # Errors
/// Same as [`Draft::send`].
pub(crate) async fn clone(args: &CloneArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut draft = Draft::new_task(&args.new)?;
    let link = Link::open(&args.new.write.remote, shell)?;
    draft.times(&args.new.times, &link)?;
    let id = link.task(&args.task).await?;
    let (limits, costs) = (
        metering::divided(&args.new.content.limits).0,
        &args.new.content.costs,
    );
    if !metering::is_empty(&limits, costs) {
        let origin = until::look(&link, &id).await?.task;
        draft.metering(&limits, costs, &origin.spec.metering)?;
    }
    let request = Request::post(&format!("/v1/tasks/{id}/clone"));
    let Some(answer) = draft.send(&link, &args.new.write, request, &id).await? else {
        return Ok(Exit::Ok);
    };
    let what = |items| format!("  a clone of {id}, {items} with new keys");
    created(&link, &args.new, answer, what).await
}

/// Prints a new task, and follows it as far as requested.
async fn created(
    link: &Link<'_>,
    new: &NewTask,
    answer: Answer,
    what: impl FnOnce(String) -> String,
) -> Result<Exit, Fault> {
    let task: api::Task = answer.read()?;
    let (address, status) = (words::address(&task), words::status(&task).0);
    let what = what(human::counted(task.total, "item"));
    let line = format!("created  {}  {address} {what}   {status}", task.id);
    let created = Created {
        answer,
        line,
        begin: new.begin,
        then: new.canary.then(),
    };
    follow(link, created).await.map(|followed| followed.exit)
}

/// Adds the source. Uploads it if it is a file.
async fn source(args: &CreateArgs, link: &Link<'_>, draft: &mut Draft) -> Result<Option<String>, Fault> {
    if args.open {
        draft.put("open", true)?;
        return Ok(None);
    }
    if draft.named_items(&args.named, Some(&args.items))? {
        return Ok(None);
    }
    is_free(args, link).await?;
    let (upload, columns) = rows::upload(&args.items, link).await?;
    if let Err(fault) = check_key_column(args.new.identity.key_column.as_deref(), &columns) {
        rows::discard(link, &upload).await;
        return Err(fault);
    }
    draft.put("source", object!({"type": "file", "upload": upload}))?;
    Ok(Some(upload))
}

/// Checks that rows have the columns that identify them. Lines of JSON may differ.
fn check_key_column(wanted: Option<&str>, columns: &[String]) -> Result<(), Fault> {
    let unknown = wanted.and_then(|wanted| Members::parse(wanted).unknown(true, columns));
    match unknown {
        None => Ok(()),
        Some((why, there_are)) => Err(Fault::new(Exit::Usage, "can't use --key-column", why).hint(there_are)),
    }
}

/// Checks that the business exists and the name is free, before a large file is uploaded. The node still decides.
async fn is_free(args: &CreateArgs, link: &Link<'_>) -> Result<(), Fault> {
    link.is_business(Some(&args.business)).await?;
    let Some(name) = &args.new.identity.name else {
        return Ok(());
    };
    match link.task(&format!("{}/{name}", args.business)).await {
        Ok(id) => {
            let because = format!("{id} already has the name {}/{name}", args.business);
            Err(Fault::new(Exit::Conflict, "name already taken", because).hint("choose another name"))
        }
        Err(_) => Ok(()),
    }
}
