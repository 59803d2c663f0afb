//! `windrow task runs` and `revisions`: what was.

use serde_json::Value;

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::times::Times;
use crate::output::table::{Cell, Keep, Listing, Side, Tone};
use crate::task::args::look::PagesArgs;
use crate::task::look::failures::{column, number};
use crate::task::steer::set::difference_but;
use windrow_client::{Request, segment};

/// Runs.
const RUNS: Listing = Listing {
    columns: &[
        column("SHARD", Side::Right, Keep::Rank(55), 3, |run, _| {
            Cell::member(run, "shard")
        }),
        column("RUN", Side::Right, Keep::Always, 3, |run, _| {
            Cell::member(run, "run").tone(Tone::Strong)
        }),
        column("NODE", Side::Left, Keep::Rank(40), 4, |run, _| {
            Cell::member(run, "node")
        }),
        column("STARTED", Side::Left, Keep::Rank(60), 7, |run, times| {
            Cell::time(run, "started_at", times)
        }),
        column("ENDED", Side::Left, Keep::Rank(50), 7, |run, times| {
            Cell::time(run, "ended_at", times)
        }),
        column(
            "END",
            Side::Left,
            Keep::Always,
            8,
            |run, _| match run["end_reason"].as_str() {
                None if run["ended_at"].is_null() => Cell::new("runs").plain("").tone(Tone::Good),
                _ => Cell::member(run, "end_reason"),
            },
        ),
        column("LOW WATER", Side::Right, Keep::Rank(30), 6, |run, _| {
            number(run, "low_water")
        }),
        column("SUCCEEDED", Side::Right, Keep::Rank(20), 6, |run, _| {
            number(&run["counts"], "succeeded")
        }),
        column("SKIPPED", Side::Right, Keep::Rank(10), 6, |run, _| {
            number(&run["counts"], "skipped")
        }),
        column("ABANDONED", Side::Right, Keep::Rank(25), 6, |run, _| {
            number(&run["counts"], "abandoned")
        }),
        column("EPOCH", Side::Right, Keep::Wide, 3, |run, _| {
            Cell::member(run, "epoch")
        }),
        column("PARKED", Side::Right, Keep::Wide, 3, |run, _| {
            number(&run["counts"], "parked")
        }),
    ],
    name: |run| format!("{}/{}", run["shard"], run["run"]),
    none: "it never ran",
};

/// Changes, and why.
const REVISIONS: Listing = Listing {
    columns: &[
        column("AT", Side::Left, Keep::Always, 7, |entry, times| {
            Cell::time(entry, "at", times)
        }),
        column("ACTOR", Side::Left, Keep::Rank(60), 6, |entry, _| {
            Cell::member(entry, "actor")
        }),
        column("ACTION", Side::Left, Keep::Always, 8, |entry, _| {
            Cell::member(entry, "action").tone(Tone::Strong)
        }),
        column("CHANGE", Side::Left, Keep::Rank(50), 16, change),
        column("REASON", Side::Left, Keep::Rank(55), 10, |entry, _| {
            Cell::member(entry, "reason")
        }),
        column("SOURCE", Side::Left, Keep::Wide, 4, |entry, _| {
            Cell::member(entry, "source")
        }),
        column("REQUEST", Side::Left, Keep::Wide, 8, |entry, _| {
            Cell::member(entry, "request_id")
        }),
    ],
    name: |entry| entry["id"].to_string(),
    none: "nothing was changed",
};

fn change(entry: &Value, times: &Times) -> Cell {
    let (before, after) = (&entry["before"], &entry["after"]);
    if !before.is_object() || !after.is_object() {
        return Cell::nothing();
    }
    Cell::new(times.style.within(&difference_but(before, after, &[])))
}

/// Lists runs.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn runs(args: &PagesArgs, shell: &Shell) -> Result<Exit, Fault> {
    pages(args, shell, "runs", &RUNS).await
}

/// Lists who changed what.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn revisions(args: &PagesArgs, shell: &Shell) -> Result<Exit, Fault> {
    pages(args, shell, "revisions", &REVISIONS).await
}

async fn pages(args: &PagesArgs, shell: &Shell, what: &str, listing: &Listing) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    let request = Request::get(&format!("/v1/tasks/{}/{what}", segment(&id)));
    let listed = link.list(request, Some(&args.paging)).await?;
    link.show_list(listing, &listed, &listed.things()?)
}
