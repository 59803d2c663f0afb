//! `windrow biz show`, `windrow biz revisions`.

use serde_json::Value;

use super::args::{NameArgs, RevisionsArgs};
use super::list::BUSINESSES;
use super::path;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::times::Times;
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone};
use windrow_client::Request;

/// Changes of a business.
const REVISIONS: Listing = Listing {
    columns: &[
        Column::new("REVISION", Side::Right, Keep::Always, 3, |one, _| {
            Cell::member(one, "revision")
        }),
        Column::new("AT", Side::Left, Keep::Always, 7, |one, times| {
            Cell::time(one, "at", times)
        }),
        Column::new("ACTOR", Side::Left, Keep::Rank(50), 8, |one, _| {
            Cell::member(one, "actor").tone(Tone::Strong)
        }),
        Column::new("FROM", Side::Left, Keep::Wide, 4, |one, _| {
            Cell::member(one, "source")
        }),
        Column::new("ACTION", Side::Left, Keep::Rank(30), 8, |one, _| {
            Cell::member(one, "action")
        }),
        Column::new("CHANGED", Side::Left, Keep::Rank(40), 16, |one, _| changed(one)),
        Column::new("REASON", Side::Left, Keep::Rank(60), 12, |one, _| {
            Cell::member(one, "reason")
        }),
    ],
    name: |one| one["revision"].to_string(),
    none: "no revisions",
};

fn changed(revision: &Value) -> Cell {
    // At its beginning everything did.
    if revision["action"] == "business.create" {
        return Cell::nothing();
    }
    let members = revision["diff"].as_array().into_iter().flatten();
    let pointers = members.filter_map(|one| one["pointer"].as_str());
    let mut names: Vec<String> = pointers
        .map(|pointer| pointer.trim_start_matches('/').replace('/', "."))
        .collect();
    if revision["secrets_changed"] == true {
        names.push("a secret".to_owned());
    }
    if names.is_empty() {
        Cell::nothing()
    } else {
        Cell::new(names.join(", "))
    }
}

/// Shows a business.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn show(args: &NameArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link.get(&path(&args.name)).await?;
    link.show_one(&BUSINESSES, &answer, card)
}

/// Shows who changed it.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn revisions(args: &RevisionsArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let request = Request::get(&format!("{}/revisions", path(&args.name)));
    let listed = link.list(request, Some(&args.paging)).await?;
    link.show_list(&REVISIONS, &listed, &listed.things()?)
}

/// A business for people.
pub(super) fn card(business: &Value, times: &Times) -> Card {
    let text = |name: &str| business[name].as_str().filter(|text| !text.is_empty());
    let command = text("command").map(|command| format!("command {command}"));
    let card = Card::new().title(text("name").unwrap_or_default(), Tone::Strong);
    let card = match text("display_name") {
        Some(name) => card.title(name, Tone::Plain),
        None => card,
    };
    let mut card = card
        .line(
            "handler",
            text("url").map(str::to_owned).or(command).unwrap_or_default(),
        )
        .maybe("pool", text("pool"));
    for (label, name) in [
        ("headers", "headers"),
        ("secret headers", "secret_headers"),
        ("hooks", "hooks"),
        ("defaults", "defaults"),
        ("limits", "limits"),
    ] {
        card = card.maybe(label, members(&business[name]));
    }
    card = card
        .maybe("result at", text("response_pointer"))
        .maybe("proxy", text("proxy"));
    if business["require_signature"] == true {
        card = card.line("signature", "the handler must refuse bad ones");
    }
    if business["ca_pem"].is_string() {
        card = card.line("certificates", "authorities of its own are trusted");
    }
    if business["insecure_skip_verify"] == true {
        card = card.toned("certificates", "any is trusted", Tone::Warn);
    }
    card.line("revision", business["revision"].to_string())
        .maybe("registered", text("created_at").map(|at| times.text(at)))
        .maybe("updated", text("updated_at").map(|at| times.text(at)))
        .maybe("archived", text("archived_at").map(|at| times.text(at)))
}

/// `rate 500/s  batch 16`; none when there is nothing in it.
fn members(table: &Value) -> Option<String> {
    let all = table.as_object()?.iter().filter(|(_, value)| !value.is_null());
    let texts: Vec<String> = all
        .map(|(name, value)| format!("{name}{}", member(value)))
        .collect();
    (!texts.is_empty()).then(|| texts.join("  "))
}

fn member(value: &Value) -> String {
    match value {
        Value::String(text) => format!(" {text}"),
        Value::Object(_) => members(value)
            .map(|inner| format!(" ({inner})"))
            .unwrap_or_default(),
        other => format!(" {other}"),
    }
}
