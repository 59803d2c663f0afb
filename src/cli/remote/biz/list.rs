//! `windrow biz list`, `show` and `revisions`.

use serde_json::Value;

use super::{ListArgs, RevisionsArgs, path};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, Named};
use crate::output::body::{joined, shown, text};
use crate::output::table::times::Times;
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone};
use crate::shell::Shell;
use windrow_client::Request;

/// Businesses.
pub(super) const BUSINESSES: Listing = Listing {
    columns: &[
        Column::text("NAME", Keep::Always, 10, "name").tone(Tone::Strong),
        Column::text("DISPLAY NAME", Keep::Rank(30), 10, "display_name"),
        Column::new("HANDLER", Side::Left, Keep::Rank(50), 16, |business, _| {
            Cell::new(handler(business))
        }),
        Column::text("POOL", Keep::Rank(10), 4, "pool"),
        Column::plain("REVISION", Keep::Rank(20), 3, "revision"),
        Column::time("UPDATED", Keep::Rank(15), "updated_at"),
        Column::time("ARCHIVED", Keep::Wide, "archived_at"),
    ],
    name: |business| text(&business["name"]).to_owned(),
    none: "no businesses",
};

/// Its URL, or its command.
fn handler(business: &Value) -> String {
    let is = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    match (is(&business["command"]), is(&business["request"]["call"])) {
        (Some(command), _) => format!("command {command}"),
        (None, Some(call)) => call,
        (None, None) => text(&business["url"]).to_owned(),
    }
}

/// Changes of a business.
const REVISIONS: Listing = Listing {
    columns: &[
        Column::plain("REVISION", Keep::Always, 3, "revision"),
        Column::time("AT", Keep::Always, "at"),
        Column::text("ACTOR", Keep::Rank(50), 8, "actor").tone(Tone::Strong),
        Column::text("FROM", Keep::Wide, 4, "source"),
        Column::text("ACTION", Keep::Rank(30), 8, "action"),
        Column::new("CHANGED", Side::Left, Keep::Rank(40), 16, |one, _| changed(one)),
        Column::text("REASON", Keep::Rank(60), 12, "reason"),
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

/// Lists businesses.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn list(args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let request = Request::get("/v1/businesses").query_option("archived", args.archived.then_some("true"));
    let listed = link.list(request, Some(&args.paging)).await?;
    link.show_list(&BUSINESSES, &listed, &listed.things()?)
}

/// Shows a business.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn show(args: &Named, shell: &Shell) -> Result<Exit, Fault> {
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
    let is = |name: &str| business[name].as_str().filter(|text| !text.is_empty());
    let mut card = Card::new()
        .title(text(&business["name"]), Tone::Strong)
        .title(is("display_name").unwrap_or_default(), Tone::Plain)
        .line("handler", handler(business))
        .maybe("pool", is("pool"));
    for name in [
        "request",
        "request_secrets",
        "headers",
        "secret_headers",
        "hooks",
        "defaults",
        "limits",
    ] {
        card = card.maybe(&name.replace('_', " "), members(&business[name]));
    }
    card = card
        .maybe("result at", is("response_pointer"))
        .maybe("proxy", is("proxy"));
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
        .time("registered", &business["created_at"], times)
        .time("updated", &business["updated_at"], times)
        .time("archived", &business["archived_at"], times)
}

/// `rate 500/s  batch 16`; none when there is nothing in it.
fn members(table: &Value) -> Option<String> {
    let all = table.as_object()?.iter().filter(|(_, value)| !value.is_null());
    let all: Vec<String> = all
        .map(|(name, value)| match value.is_object() {
            true => members(value).map_or_else(|| name.clone(), |inner| format!("{name} ({inner})")),
            false => format!("{name} {}", shown(value)),
        })
        .collect();
    joined(&all, "  ")
}
