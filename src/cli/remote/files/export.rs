//! Implementation of `windrow export`: writes the objects of a node as a file that `windrow apply` reads.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::kinds::{KINDS, Kind, Members, Present};
use super::schema::Schemas;
use super::{ExportArgs, KindWord};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::document::{self, FileForm};
use crate::link::{Form, Link};
use crate::output::body::joined;
use crate::output::screen;
use crate::shell::Shell;

/// Writes the objects to standard output.
///
/// # Errors
/// `Rejected` if the format can't hold a value; otherwise same as [`Link::send`].
pub(crate) async fn export(args: &ExportArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let form = match (args.format, link.look.form) {
        (Some(form), _) => form,
        (None, Form::Json) => FileForm::Json,
        (None, Form::Table) => FileForm::Toml,
        _ => {
            return Err(Fault::no_form(
                "export writes TOML, YAML or JSON",
                "use --format yaml",
            ));
        }
    };
    let schemas = Schemas::of(&link).await?;
    let mut all = Vec::new();
    for kind in &KINDS {
        if let Some(found) = present(&link, args, kind).await? {
            all.push((kind, found));
        }
    }
    say_left_out(&link, &all);
    all.iter_mut()
        .for_each(|(_, found)| found.retain(|one| one.left_out.is_none()));
    let mut lists: BTreeMap<&str, Vec<Members>> = BTreeMap::new();
    for (kind, found) in &all {
        let members = found.iter().map(|one| kind.exported(&schemas, one)).collect();
        lists.insert(kind.name, members);
    }
    if let Some(business) = &args.business {
        keep_of(&mut lists, business);
    }
    say_secrets(&link, &lists);
    lists.retain(|_, list| !list.is_empty());
    let text = document::written(&json!(lists), form).map_err(|why| {
        Fault::new(Exit::Rejected, "can't write the objects", why).hint("use --format yaml or json")
    })?;
    screen::put(&text)?;
    Ok(Exit::Ok)
}

/// Reads the objects of a kind that is to be exported. A kind that wasn't named may be one that the caller can't read.
async fn present(link: &Link<'_>, args: &ExportArgs, kind: &Kind) -> Result<Option<Vec<Present>>, Fault> {
    let is_named = args.kinds.contains(&kind.word);
    if !is_named && !args.kinds.is_empty() {
        return Ok(None);
    }
    match kind.present(link).await {
        Err(fault) if fault.exit == Exit::NotAllowed && !is_named && kind.word != KindWord::Limit => {
            link.must_say(&format!(
                "left out: every {}, which this token may not read",
                kind.name
            ));
            Ok(None)
        }
        found => found.map(Some),
    }
}

/// Keeps what belongs to a business, and the limits that this names.
fn keep_of(lists: &mut BTreeMap<&str, Vec<Members>>, business: &str) {
    for (kind, list) in lists.iter_mut().filter(|(kind, _)| **kind != "limit") {
        let member = if *kind == "business" { "name" } else { "business" };
        list.retain(|one| one.get(member).is_some_and(|of| of == business));
    }
    let mut named = BTreeSet::new();
    for one in lists
        .iter()
        .filter(|(kind, _)| **kind != "limit")
        .flat_map(|(_, list)| list)
    {
        let task = one.get("task").and_then(Value::as_object).unwrap_or(one);
        let limits = [
            one.get("limits").and_then(|limits| limits.get("named")),
            task.get("limits"),
        ];
        let limits = limits.into_iter().flatten().filter_map(Value::as_array).flatten();
        named.extend(limits.filter_map(Value::as_str).map(str::to_owned));
    }
    if let Some(limits) = lists.get_mut("limit") {
        limits.retain(|limit| {
            limit
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| named.contains(name))
        });
    }
}

/// Says which objects are not in the file, for each reason.
fn say_left_out(link: &Link<'_>, all: &[(&Kind, Vec<Present>)]) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in all.iter().flat_map(|(_, found)| found) {
        if let Some(reason) = one.left_out {
            reasons.entry(reason).or_default().push(&one.address);
        }
    }
    for (reason, addresses) in reasons {
        let named = joined(&addresses, ", ").unwrap_or_default();
        link.say(&format!("left out, since it {reason}: {named}"));
    }
}

/// Says which secrets need a value where the file is applied to another node.
fn say_secrets(link: &Link<'_>, lists: &BTreeMap<&str, Vec<Members>>) {
    for kind in &KINDS {
        for one in lists.get(kind.name).into_iter().flatten() {
            let of = |member: &&str| {
                let names = one.get(*member).and_then(Value::as_object).map(Map::keys);
                names
                    .into_iter()
                    .flatten()
                    .map(|name| format!("{member}.{name}"))
                    .collect::<Vec<_>>()
            };
            let names: Vec<String> = kind.secrets.iter().flat_map(of).collect();
            if let Some(names) = joined(&names, ", ") {
                let address = kind.address(one).unwrap_or_default();
                link.say(&format!(
                    "secrets without values: {address} {names}; another node needs env:NAME or @FILE"
                ));
            }
        }
    }
}
