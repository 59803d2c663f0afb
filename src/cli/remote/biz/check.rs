//! `windrow biz check`: whether a handler keeps to the contract.

use super::args::NameArgs;
use super::path;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link};
use crate::output::checks;
use windrow_client::Request;

/// Checks its handler.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn check(args: &NameArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link
        .send(Request::post(&format!("{}/check", path(&args.name))))
        .await?;
    let answered = answer.json()?;
    let report = answered["checks"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    match link.look.form {
        Form::Json => link.put(format!("{}\n", answer.text().trim_end()).as_bytes())?,
        _ => checks::show(&link.look, report)?,
    };
    if checks::passed(report) {
        return Ok(Exit::Ok);
    }
    link.say(&format!(
        "{} breaks the contract: {}",
        args.name,
        checks::failed(report)
    ));
    Ok(Exit::BadHandler)
}
