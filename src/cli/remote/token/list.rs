//! `windrow token list`.

use serde_json::Value;

use super::args::ListArgs;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::times::Times;
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone};
use windrow_client::Request;

/// Tokens.
pub(super) const TOKENS: Listing = Listing {
    columns: &[
        Column::new("ID", Side::Right, Keep::Always, 2, |token, _| {
            Cell::member(token, "id")
        }),
        Column::new("NAME", Side::Left, Keep::Always, 8, |token, _| {
            Cell::member(token, "name").tone(Tone::Strong)
        }),
        Column::new("ROLE", Side::Left, Keep::Always, 6, |token, _| {
            Cell::member(token, "role")
        }),
        Column::new("BUSINESS", Side::Left, Keep::Rank(60), 8, |token, _| {
            Cell::member(token, "business")
        }),
        Column::new("PREFIX", Side::Left, Keep::Rank(50), 8, |token, _| {
            Cell::member(token, "prefix")
        }),
        Column::new("STATE", Side::Left, Keep::Rank(80), 8, state),
        Column::new("CREATED", Side::Left, Keep::Rank(30), 7, |token, times| {
            Cell::time(token, "created_at", times)
        }),
        Column::new("BY", Side::Left, Keep::Rank(20), 6, |token, _| {
            Cell::member(token, "created_by")
        }),
        Column::new("EXPIRES", Side::Left, Keep::Wide, 7, |token, times| {
            Cell::time(token, "expires_at", times)
        }),
        Column::new("REVOKED", Side::Left, Keep::Wide, 7, |token, times| {
            Cell::time(token, "revoked_at", times)
        }),
    ],
    name: |token| token["id"].to_string(),
    none: "no tokens",
};

fn state(token: &Value, times: &Times) -> Cell {
    if token["revoked_at"].is_string() {
        return Cell::new("revoked").tone(Tone::Dim);
    }
    match token["expires_at"].as_str().and_then(|at| times.since(at)) {
        Some(since) if since >= 0 => Cell::new("expired").tone(Tone::Dim),
        Some(_) => {
            let at = token["expires_at"].as_str().unwrap_or_default();
            Cell::new(format!("valid, ends {}", times.text(at)))
                .short("valid")
                .plain("valid")
        }
        None => Cell::new("valid").tone(Tone::Good),
    }
}

/// Lists tokens.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn list(args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let listed = link.list(Request::get("/v1/tokens"), Some(&args.paging)).await?;
    link.show_list(&TOKENS, &listed, &listed.things()?)
}
