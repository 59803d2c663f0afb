//! `windrow biz edit`, `archive` and `unarchive`.

use serde_json::{Map, Value, json};

use super::args::{ChangeArgs, EditArgs};
use super::list::BUSINESSES;
use super::path;
use super::show::card;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::change::differences;
use crate::link::{Form, Link, Write};
use crate::output::screen;
use windrow_client::{Answer, Request};

/// Changes a business.
///
/// # Errors
/// `Usage` when nothing is to be changed; else as [`Link::send`].
pub(super) async fn edit(args: &EditArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut patch = args.settings.body()?;
    for member in &args.unset {
        unset(&mut patch, member)?;
    }
    // A business has one of the two.
    for (name, other) in [("url", "command"), ("command", "url")] {
        if patch.get(name).is_some_and(Value::is_string) {
            patch.insert(other.to_owned(), Value::Null);
        }
    }
    if patch.is_empty() {
        let fault = Fault::new(Exit::Usage, "there is nothing to change", "no setting was named");
        return Err(fault.hint("--url, --rate, --unset …; `windrow biz edit --help` has them all"));
    }
    let link = Link::open(&args.remote, shell)?;
    let Some((before, after)) = send(&link, &args.name, patch, &args.write).await? else {
        return Ok(Exit::Ok);
    };
    match link.look.form {
        Form::Table | Form::Wide => {
            let (before, after) = (before.json()?, after.json()?);
            screen::put(&told(&args.name, &before, &after).join("\n")).map(|()| Exit::Ok)
        }
        _ => link.show_one(&BUSINESSES, &after, card),
    }
}

/// Hides a business, or shows it again.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn archive(args: &ChangeArgs, shell: &Shell, verb: &str) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let request = args
        .write
        .request(Request::post(&format!("{}/{verb}", path(&args.name))), Map::new());
    let Some(answer) = link.change(&args.write, request).await? else {
        return Ok(Exit::Ok);
    };
    match (link.look.form, verb) {
        (Form::Table | Form::Wide, "archive") => screen::put(&format!(
            "archived {}: it takes no new tasks, those it has go on",
            args.name
        )),
        (Form::Table | Form::Wide, _) => screen::put(&format!("{} takes tasks again", args.name)),
        _ => return link.show_one(&BUSINESSES, &answer, card),
    }
    .map(|()| Exit::Ok)
}

/// Sends a patch of what is there now: what somebody else changes in between is not overwritten. None is a dry run.
pub(super) async fn send(
    link: &Link<'_>,
    name: &str,
    patch: Map<String, Value>,
    write: &Write,
) -> Result<Option<(Answer, Answer)>, Fault> {
    let before = link.get(&path(name)).await?;
    let mut request = Request::patch(&path(name));
    if let Some(tag) = before.header("etag") {
        request = request.header("if-match", tag);
    }
    let after = link.change(write, write.request(request, patch)).await?;
    Ok(after.map(|after| (before, after)))
}

/// What was changed, in lines.
pub(super) fn told(name: &str, before: &Value, after: &Value) -> Vec<String> {
    if before["revision"] == after["revision"] {
        return vec![format!("{name}  unchanged")];
    }
    let mut lines = vec![format!("{name}  changed")];
    let differences = differences(before, after);
    lines.extend(differences.iter().map(|one| format!("  {}", one.line())));
    if differences.is_empty() {
        lines.push("  the value of a secret header".to_owned());
    }
    lines
}

/// Puts a null where a member is to go.
fn unset(patch: &mut Map<String, Value>, member: &str) -> Result<(), Fault> {
    let bad = || {
        Fault::new(Exit::Usage, "this can't be unset", format!("--unset {member:?}"))
            .hint("a member of `windrow biz show -o json`, with a dot between levels: defaults.rate")
    };
    let mut at = patch;
    let mut names = member.split('.').peekable();
    while let Some(name) = names.next() {
        if name.is_empty() {
            return Err(bad());
        }
        if names.peek().is_none() {
            at.insert(name.to_owned(), Value::Null);
            return Ok(());
        }
        at = at
            .entry(name)
            .or_insert_with(|| json!({}))
            .as_object_mut()
            .ok_or_else(bad)?;
    }
    Err(bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_unset_wherever_it_is() {
        let mut patch = Map::new();
        for member in ["proxy", "defaults.rate", "defaults.batch"] {
            unset(&mut patch, member).expect("a member");
        }
        let expected = json!({"proxy": null, "defaults": {"rate": null, "batch": null}});
        assert_eq!(Value::Object(patch.clone()), expected);
        for member in ["", "defaults.", ".rate", "proxy.x"] {
            assert_eq!(
                unset(&mut patch, member).expect_err("no member").exit,
                Exit::Usage,
                "{member:?}"
            );
        }
    }
}
