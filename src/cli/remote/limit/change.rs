//! `windrow limit create`, `set` and `delete`.

use serde_json::{Map, json};

use super::args::{CreateArgs, DeleteArgs, SetArgs};
use super::path;
use super::show::{LIMITS, card};
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::change::differences;
use crate::link::{Danger, Form, Link};
use crate::output::screen;
use windrow_client::Request;

/// Makes a limit.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn create(args: &CreateArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut body = Map::new();
    body.insert("name".to_owned(), json!(args.name));
    if let Some(rate) = args.rate {
        body.insert("rate".to_owned(), json!(rate.to_string()));
    }
    if let Some(concurrency) = args.concurrency {
        body.insert("concurrency".to_owned(), json!(concurrency));
    }
    let link = Link::open(&args.remote, shell)?;
    let request = args.write.request(Request::post("/v1/limits"), body);
    let Some(answer) = link.change(&args.write, request).await? else {
        return Ok(Exit::Ok);
    };
    if matches!(link.look.form, Form::Table | Form::Wide) {
        link.hint(&format!(
            "nobody uses it yet: windrow biz edit NAME --limit {}",
            args.name
        ));
        return screen::put(&format!("created {}", args.name)).map(|()| Exit::Ok);
    }
    link.show_one(&LIMITS, &answer, card)
}

/// Changes what a limit allows.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn set(args: &SetArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut body = Map::new();
    if let Some(rate) = args.rate {
        body.insert("rate".to_owned(), json!(rate.0.map(|rate| rate.to_string())));
    }
    if let Some(concurrency) = args.concurrency {
        body.insert("concurrency".to_owned(), json!(concurrency.0));
    }
    let link = Link::open(&args.remote, shell)?;
    let before = link.get(&path(&args.name)).await?;
    let mut request = Request::patch(&path(&args.name));
    if let Some(tag) = before.header("etag") {
        request = request.header("if-match", tag);
    }
    let Some(after) = link
        .change(&args.write, args.write.request(request, body))
        .await?
    else {
        return Ok(Exit::Ok);
    };
    if !matches!(link.look.form, Form::Table | Form::Wide) {
        return link.show_one(&LIMITS, &after, card);
    }
    let (mut before, after) = (before.json()?, after.json()?);
    // Who uses it is in the one answer only, and isn't what was changed.
    if let (Some(members), Some(kept)) = (before.as_object_mut(), after.as_object()) {
        members.retain(|name, _| kept.contains_key(name));
    }
    let changed: Vec<String> = differences(&before, &after)
        .iter()
        .map(|one| one.line())
        .collect();
    let what = if changed.is_empty() {
        "unchanged".to_owned()
    } else {
        changed.join("  ")
    };
    screen::put(&format!("{}  {what}", args.name)).map(|()| Exit::Ok)
}

/// Deletes a limit.
///
/// # Errors
/// `Usage` without a yes; else as [`Link::send`].
pub(super) async fn delete(args: &DeleteArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    if !args.write.dry_run {
        link.confirm(Danger::Final, &format!("Delete the limit {}?", args.name))?;
    }
    let request = args.write.bare_request(Request::delete(&path(&args.name)));
    if link.change(&args.write, request).await?.is_none() {
        return Ok(Exit::Ok);
    }
    match link.look.form {
        Form::Table | Form::Wide => screen::put(&format!("deleted the limit {}", args.name))?,
        Form::Name => screen::put(&args.name)?,
        // The API answers with no body.
        Form::Json | Form::Ndjson | Form::Csv => {}
    }
    Ok(Exit::Ok)
}
