//! Implementation of `windrow biz edit`, `archive` and `unarchive`.

use api::{Business, CheckReply};
use serde_json::{Map, Value, json};

use super::list::BUSINESSES;
use super::{EditArgs, path};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, NamedWrite};
use crate::output::difference::differences;
use crate::output::table::clean;
use crate::shell::Shell;
use windrow_client::Request;

/// Members that don't affect the handler's replies.
const BESIDE_HANDLER: [&str; 5] = ["display_name", "defaults", "limits", "pool", "hooks"];

/// Changes a business.
///
/// # Errors
/// `Usage` if no flag changes anything; otherwise same as [`Link::send`].
pub(super) async fn edit(args: &EditArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut patch = args.settings.body()?;
    for member in &args.unset {
        unset(&mut patch, member)?;
    }
    // A business has only one of these.
    let kinds = [
        ("url", args.settings.url.is_some()),
        ("command", args.settings.command.is_some()),
        ("request", args.settings.request.request.is_some()),
    ];
    if let Some((said, _)) = kinds.into_iter().find(|(_, is_said)| *is_said) {
        for (other, _) in kinds.into_iter().filter(|(other, _)| *other != said) {
            patch.insert(other.to_owned(), Value::Null);
        }
        if said != "request" {
            patch.insert("request_secrets".to_owned(), Value::Null);
        }
    }
    if patch.is_empty() {
        let fault = Fault::new(Exit::Usage, "nothing to change", "no setting was given");
        return Err(fault.hint("--url, --rate, --unset …; `windrow biz edit --help` lists them all"));
    }
    let is_about_handler = patch
        .keys()
        .any(|member| !BESIDE_HANDLER.contains(&member.as_str()));
    let link = Link::open(&args.write.remote, shell)?;
    let Some((before, after)) = link.patch(&args.write, &path(&args.name), patch).await? else {
        return Ok(Exit::Ok);
    };
    // Without permission to read it, every member appears as new.
    let before: Business = serde_json::from_value(before).unwrap_or_default();
    let is = after.read()?;
    let done = told(&args.name, &before, &is).join("\n");
    link.show_done(&BUSINESSES, &after, &done)?;
    if is_about_handler && before.revision != is.revision {
        warn_of_handler(&link, &args.name).await;
    }
    Ok(Exit::Ok)
}

/// Checks the changed handler and warns if it fails, since running tasks use it from now on. The change is already
/// made, so an unavailable check is ignored.
async fn warn_of_handler(link: &Link<'_>, name: &str) {
    let request = Request::post(&format!("{}/check", path(name)));
    let checked = link.send(request).await.and_then(|answer| Ok(answer.read()?));
    let checked: CheckReply = match checked {
        Ok(checked) => checked,
        Err(fault) => return tracing::debug!(%fault, "the handler was not checked"),
    };
    if let Some(failed) = checked.checks.iter().find(|check| check.result == "fail") {
        let (check, detail) = (clean(&failed.check), clean(&failed.detail));
        link.say(&format!(
            "warning: the handler of {name} fails the check, but running tasks still use it: {}: \
                {detail}; windrow biz check {name}",
            check.replace('_', " ")
        ));
    }
}

/// Archives a business, or restores it.
///
/// # Errors
/// Same as [`Link::send`].
pub(super) async fn archive(args: &NamedWrite, shell: &Shell, verb: &str) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let request = Request::post(&format!("{}/{verb}", path(&args.name)));
    let Some(answer) = link.change(&args.write, request, Map::new()).await? else {
        return Ok(Exit::Ok);
    };
    let done = match verb {
        "archive" => format!(
            "archived {}: it accepts no new tasks; existing tasks continue",
            args.name
        ),
        _ => format!("{} accepts tasks again", args.name),
    };
    link.show_done(&BUSINESSES, &answer, &done)
}

/// Returns the changes, one per line.
pub(super) fn told(name: &str, before: &Business, after: &Business) -> Vec<String> {
    if before.revision == after.revision {
        return vec![format!("{name}  unchanged")];
    }
    let mut lines = vec![format!("{name}  changed")];
    let differences = differences(&json!(before), &json!(after));
    lines.extend(differences.iter().map(|one| format!("  {}", one.line())));
    lines.extend(secret(after));
    if differences.is_empty() {
        lines.push("  value of a secret header".to_owned());
    }
    lines
}

/// Returns the line with a new signing secret, if one was created.
pub(super) fn secret(answer: &Business) -> Option<String> {
    let secret = answer.secret.as_ref()?;
    Some(format!("  signing secret, shown only once  {secret}"))
}

/// Sets a member to null, which removes it.
fn unset(patch: &mut Map<String, Value>, member: &str) -> Result<(), Fault> {
    let bad = || {
        Fault::new(
            Exit::Usage,
            "can't unset the member",
            format!("--unset {member:?}"),
        )
        .hint(
            "give a member of `windrow biz show -o json`, with a dot between levels: \
                defaults.rate",
        )
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
