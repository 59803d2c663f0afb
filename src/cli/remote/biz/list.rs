//! Implementation of `windrow biz list`, `show` and `revisions`.

use api::{Business, Revision, Workers};
use serde_json::{Value, json};

use super::{ListArgs, RevisionsArgs, path};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, Named};
use crate::output::body::{joined, shown};
use crate::output::table::human;
use crate::output::table::times::Times;
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone};
use crate::shell::Shell;
use windrow_client::Request;

/// Listing of businesses with their handlers.
pub(super) const BUSINESSES: Listing<Business> = Listing {
    columns: &[
        Column::text("NAME", Keep::Always, 10, |business: &Business| &business.name).tone(Tone::Strong),
        Column::maybe("DISPLAY NAME", Keep::Rank(30), 10, |business| {
            business.display_name.as_deref()
        }),
        Column::new("HANDLER", Side::Left, Keep::Rank(50), 16, |business, _| {
            Cell::new(handler(business))
        }),
        Column::text("POOL", Keep::Rank(10), 4, |business| &business.pool),
        Column::plain("REVISION", Keep::Rank(20), 3, |business| {
            Some(business.revision.to_string())
        }),
        Column::time("UPDATED", Keep::Rank(15), |business| Some(&business.updated_at)),
        Column::time("ARCHIVED", Keep::Wide, |business| business.archived_at.as_deref()),
    ],
    name: |business| business.name.clone(),
    none: "no businesses",
};

/// Returns the command, the request or the URL of a business.
fn handler(business: &Business) -> String {
    match (&business.command, &business.request) {
        (Some(command), _) => format!("command {command}"),
        (None, Some(request)) => request.call.clone(),
        (None, None) => business.url.clone().unwrap_or_default(),
    }
}

/// Formats the workers of a business: `3 of 8 idle`.
fn workers(Workers { busy, idle }: Workers) -> String {
    let all = u64::from(busy) + u64::from(idle);
    format!("{} of {} idle", human::count(idle.into()), human::count(all))
}

/// Listing of changes to a business.
const REVISIONS: Listing<Revision> = Listing {
    columns: &[
        Column::plain("REVISION", Keep::Always, 3, |one| Some(one.revision?.to_string())),
        Column::time("AT", Keep::Always, |one| Some(&one.at)),
        Column::text("ACTOR", Keep::Rank(50), 8, |one: &Revision| &one.actor).tone(Tone::Strong),
        Column::text("FROM", Keep::Wide, 4, |one| &one.source),
        Column::text("ACTION", Keep::Rank(30), 8, |one| &one.action),
        Column::new("CHANGED", Side::Left, Keep::Rank(40), 16, |one, _| changed(one)),
        Column::maybe("REASON", Keep::Rank(60), 12, |one| one.reason.as_deref()),
    ],
    name: |one| json!(one.revision).to_string(),
    none: "no revisions",
};

fn changed(revision: &Revision) -> Cell {
    // On creation every member is new.
    if revision.action == "business.create" {
        return Cell::nothing();
    }
    let members = revision.diff.iter();
    let mut names: Vec<String> = members
        .map(|one| one.pointer.trim_start_matches('/').replace('/', "."))
        .collect();
    if revision.secrets_changed {
        names.push("a secret".to_owned());
    }
    Cell::text(joined(&names, ", "))
}

/// Lists businesses.
///
/// # Errors
/// Same as [`Link::send`].
pub(super) async fn list(args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let request = Request::get("/v1/businesses").query_option("archived", args.archived.then_some("true"));
    let listed = link.list(request, Some(&args.paging)).await?;
    link.show_list(&BUSINESSES, &listed, &listed.things()?)
}

/// Shows a business.
///
/// # Errors
/// Same as [`Link::send`].
pub(super) async fn show(args: &Named, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link.get(&path(&args.name)).await?;
    link.show_one(&BUSINESSES, &answer, card)
}

/// Lists the changes to a business with their authors.
///
/// # Errors
/// Same as [`Link::send`].
pub(super) async fn revisions(args: &RevisionsArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let request = Request::get(&format!("{}/revisions", path(&args.name)));
    let listed = link.list(request, Some(&args.paging)).await?;
    link.show_list(&REVISIONS, &listed, &listed.things()?)
}

/// Formats a business as a card.
pub(super) fn card(business: &Business, times: &Times) -> Card {
    let mut card = Card::new()
        .title(&business.name, Tone::Strong)
        .title(business.display_name.as_deref().unwrap_or_default(), Tone::Plain)
        .line("handler", handler(business))
        .maybe("workers", business.workers.map(workers))
        .line("pool", &business.pool);
    for (name, table) in [
        ("request", json!(business.request)),
        ("request secrets", json!(business.request_secrets)),
        ("headers", json!(business.headers)),
        ("secret headers", json!(business.secret_headers)),
        ("hooks", json!(business.hooks)),
        ("defaults", json!(business.defaults)),
        ("limits", json!(business.limits)),
    ] {
        card = card.maybe(name, members(&table));
    }
    let pointer = Some(business.response_pointer.as_str());
    card = card
        .maybe("result pointer", pointer.filter(|pointer| !pointer.is_empty()))
        .maybe("proxy", business.proxy.as_deref());
    if let Some(from) = business.limits_from {
        card = card.line("limits from", from.as_str());
    }
    if business.require_signature {
        card = card.line("signature", "handler must reject invalid ones");
    }
    if business.ca_pem.is_some() {
        card = card.line("certificates", "custom authorities");
    }
    if business.client_cert_pem.is_some() {
        card = card.line("client certificate", "presented on demand");
    }
    if business.insecure_skip_verify {
        card = card.toned("certificates", "not verified", Tone::Warn);
    }
    card.line("revision", business.revision.to_string())
        .time("registered", Some(&business.created_at), times)
        .time("updated", Some(&business.updated_at), times)
        .time("archived", business.archived_at.as_deref(), times)
}

/// Formats a table as `rate 500/s  batch 16`, or returns `None` if it is empty.
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
