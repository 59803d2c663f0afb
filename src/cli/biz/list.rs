//! `windrow biz list`.

use super::args::ListArgs;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::remote::Link;
use crate::table::{Cell, Column, Keep, Listing, Side, Tone};
use windrow_client::Request;

/// Businesses.
pub(super) const BUSINESSES: Listing = Listing {
    columns: &[
        Column {
            title: "NAME",
            side: Side::Left,
            keep: Keep::Always,
            least: 10,
            cell: |business, _| Cell::member(business, "name").tone(Tone::Strong),
        },
        Column {
            title: "DISPLAY NAME",
            side: Side::Left,
            keep: Keep::Rank(30),
            least: 10,
            cell: |business, _| Cell::member(business, "display_name"),
        },
        Column {
            title: "HANDLER",
            side: Side::Left,
            keep: Keep::Rank(50),
            least: 16,
            cell: |business, _| match business["command"].as_str() {
                Some(command) => Cell::new(format!("command {command}")),
                None => Cell::member(business, "url"),
            },
        },
        Column {
            title: "POOL",
            side: Side::Left,
            keep: Keep::Rank(10),
            least: 4,
            cell: |business, _| Cell::member(business, "pool"),
        },
        Column {
            title: "REVISION",
            side: Side::Right,
            keep: Keep::Rank(20),
            least: 3,
            cell: |business, _| Cell::member(business, "revision"),
        },
        Column {
            title: "UPDATED",
            side: Side::Left,
            keep: Keep::Rank(15),
            least: 7,
            cell: |business, times| Cell::time(business, "updated_at", times),
        },
        Column {
            title: "ARCHIVED",
            side: Side::Left,
            keep: Keep::Wide,
            least: 7,
            cell: |business, times| Cell::time(business, "archived_at", times),
        },
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
