//! `windrow biz list`.

use super::args::ListArgs;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone};
use windrow_client::Request;

/// Businesses.
pub(super) const BUSINESSES: Listing = Listing {
    columns: &[
        Column::new("NAME", Side::Left, Keep::Always, 10, |business, _| {
            Cell::member(business, "name").tone(Tone::Strong)
        }),
        Column::new("DISPLAY NAME", Side::Left, Keep::Rank(30), 10, |business, _| {
            Cell::member(business, "display_name")
        }),
        Column::new(
            "HANDLER",
            Side::Left,
            Keep::Rank(50),
            16,
            |business, _| match business["command"].as_str() {
                Some(command) => Cell::new(format!("command {command}")),
                None => Cell::member(business, "url"),
            },
        ),
        Column::new("POOL", Side::Left, Keep::Rank(10), 4, |business, _| {
            Cell::member(business, "pool")
        }),
        Column::new("REVISION", Side::Right, Keep::Rank(20), 3, |business, _| {
            Cell::member(business, "revision")
        }),
        Column::new("UPDATED", Side::Left, Keep::Rank(15), 7, |business, times| {
            Cell::time(business, "updated_at", times)
        }),
        Column::new("ARCHIVED", Side::Left, Keep::Wide, 7, |business, times| {
            Cell::time(business, "archived_at", times)
        }),
    ],
    name: |business| business["name"].as_str().unwrap_or_default().to_owned(),
    none: "no businesses",
};

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
