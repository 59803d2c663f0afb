//! `windrow task create` and `clone`.

use serde_json::{Value, json as object};

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::human;
use crate::task::args::make::{CloneArgs, CreateArgs};
use crate::task::look::follow::{Made, follow};
use crate::task::look::rows::{self, Upload};
use crate::task::make::draft::{Draft, Operation, json};
use crate::task::words;
use windrow_client::{Request, segment};

/// Makes a task.
///
/// # Errors
/// When the items can't be read or uploaded, or what the node refused; an upload that no task took is removed.
pub(crate) async fn create(args: &CreateArgs, shell: &Shell) -> Result<Exit, Fault> {
    // What is wrong in the flags is told before anything is uploaded.
    let mut draft = Draft::default().strictly(args.strict);
    draft.put("business", &args.business)?;
    draft.known(&args.known)?;
    draft.content(&args.content)?;
    draft.settings(&args.settings)?;
    draft.begin(args.canary, args.begin.starts())?;
    rows::check(args)?;
    let link = Link::open(&args.remote, shell)?;
    draft.times(&args.content, &link)?;
    let upload = source(args, &link, &mut draft).await?;
    let sent = draft.send(&link, &args.write, Operation::CREATE, "").await;
    let Ok(Some(answer)) = sent else {
        if let Some(upload) = &upload {
            discard(&link, upload).await;
        }
        return sent.map(|_| Exit::Ok);
    };
    let task: Value = answer.json()?;
    let line = format!(
        "created  {}  {}   {}   {}",
        task["id"].as_str().unwrap_or_default(),
        words::address(&task),
        human::counted(task["total"].as_u64().unwrap_or(0), "item"),
        words::status(&task).0
    );
    let made = Made {
        answer,
        line,
        begin: args.begin,
        then: args.canary.then(),
    };
    follow(&link, made).await.map(|followed| followed.exit)
}

/// Adds the source; uploads it if it is a file.
async fn source(args: &CreateArgs, link: &Link<'_>, draft: &mut Draft) -> Result<Option<Upload>, Fault> {
    if let Some(total) = args.total {
        draft.put("source", object!({"type": "range", "total": total}))?;
    } else if let Some(url) = &args.url {
        let mut source = object!({"type": "url", "url": url});
        if let Some(format) = args.format {
            source["format"] = object!(format.word());
        }
        if let Some(delimiter) = args.items.delimiter {
            source["delimiter"] = object!(delimiter);
        }
        if args.items.no_header {
            source["header"] = object!(false);
        }
        draft.put("source", source)?;
    } else if let Some(inline) = &args.inline {
        let items = json("--items", inline)?;
        draft.put(
            "source",
            rows::Inline {
                kind: "inline",
                items: &items,
            },
        )?;
    } else {
        is_free(args, link).await?;
        let upload = rows::upload(&args.items, link).await?;
        draft.put("source", object!({"type": "file", "upload": upload.id}))?;
        return Ok(Some(upload));
    }
    Ok(None)
}

/// That the business is there and the name is free: better said before a large file goes over the wire. The node has the
/// last word.
async fn is_free(args: &CreateArgs, link: &Link<'_>) -> Result<(), Fault> {
    // The node refuses it as a part of the task.
    let refused = |fault| Fault {
        exit: Exit::Rejected,
        ..fault
    };
    link.is_business(Some(&args.business)).await.map_err(refused)?;
    let Some(name) = &args.known.name else {
        return Ok(());
    };
    match link.task(&format!("{}/{name}", args.business)).await {
        Ok(id) => {
            let because = format!("{id} is called {}/{name}", args.business);
            Err(Fault::new(Exit::Conflict, "the name is taken", because).hint("another name"))
        }
        Err(_) => Ok(()),
    }
}

/// Removes an upload that no task took. The node would do it a day later; until then it keeps one that a task was to take.
async fn discard(link: &Link<'_>, upload: &Upload) {
    let path = format!("/v1/uploads/{}", segment(&upload.id));
    if let Err(fault) = link.send(Request::delete(&path)).await
        && fault.exit != Exit::Conflict
    {
        link.say(&format!(
            "the upload {} stays for a day: {}",
            upload.id,
            fault.because.join("; ")
        ));
    }
}

/// Makes a task like another one.
///
/// # Errors
/// What the node refused.
pub(crate) async fn clone(args: &CloneArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut draft = Draft::default().strictly(args.strict);
    draft.known(&args.known)?;
    draft.content(&args.content)?;
    draft.settings(&args.settings)?;
    draft.begin(args.canary, args.begin.starts())?;
    let link = Link::open(&args.remote, shell)?;
    draft.times(&args.content, &link)?;
    let id = link.task(&args.task).await?;
    let Some(answer) = draft.send(&link, &args.write, Operation::CLONE, &id).await? else {
        return Ok(Exit::Ok);
    };
    let task: Value = answer.json()?;
    let line = format!(
        "created  {}  {}   a clone of {id}, {} with new keys   {}",
        task["id"].as_str().unwrap_or_default(),
        words::address(&task),
        human::counted(task["total"].as_u64().unwrap_or(0), "item"),
        words::status(&task).0
    );
    let made = Made {
        answer,
        line,
        begin: args.begin,
        then: args.canary.then(),
    };
    follow(&link, made).await.map(|followed| followed.exit)
}
