//! `windrow task runs` and `revisions`: what was.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::difference::change;
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone};
use crate::shell::Shell;
use crate::task::args::look::PagesArgs;
use windrow_client::Request;

/// Runs.
const RUNS: Listing = Listing {
    columns: &[
        Column::plain("SHARD", Keep::Rank(55), 3, "shard"),
        Column::plain("RUN", Keep::Always, 3, "run").tone(Tone::Strong),
        Column::text("NODE", Keep::Rank(40), 4, "node"),
        Column::time("STARTED", Keep::Rank(60), "started_at"),
        Column::time("ENDED", Keep::Rank(50), "ended_at"),
        Column::new("END", Side::Left, Keep::Always, 8, |run, _| {
            match run["end_reason"].is_null() && run["ended_at"].is_null() {
                true => Cell::new("runs").plain("").tone(Tone::Good),
                false => Cell::member(run, "end_reason"),
            }
        }),
        Column::text("WHY", Keep::Rank(45), 12, "end_text").named("end_text"),
        Column::count("LOW WATER", Keep::Rank(30), 6, "low_water"),
        Column::count("SUCCEEDED", Keep::Rank(20), 6, "counts.succeeded"),
        Column::count("SKIPPED", Keep::Rank(10), 6, "counts.skipped"),
        Column::count("ABANDONED", Keep::Rank(25), 6, "counts.abandoned"),
        Column::plain("EPOCH", Keep::Wide, 3, "epoch"),
        Column::count("PARKED", Keep::Wide, 3, "counts.parked"),
    ],
    name: |run| format!("{}/{}", run["shard"], run["run"]),
    none: "it never ran",
};

/// Changes, and why.
const REVISIONS: Listing = Listing {
    columns: &[
        Column::time("AT", Keep::Always, "at"),
        Column::text("ACTOR", Keep::Rank(60), 6, "actor"),
        Column::text("ACTION", Keep::Always, 8, "action").tone(Tone::Strong),
        Column::new("CHANGE", Side::Left, Keep::Rank(50), 16, change),
        Column::text("REASON", Keep::Rank(55), 10, "reason"),
        Column::text("SOURCE", Keep::Wide, 4, "source"),
        Column::text("REQUEST", Keep::Wide, 8, "request_id"),
    ],
    name: |entry| entry["id"].to_string(),
    none: "nothing was changed",
};

/// Lists runs.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn runs(args: &PagesArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let (exit, runs) = pages(&link, args, "runs", &RUNS).await?;
    if has_gone_on(&runs) {
        link.hint(NO_SUMS);
    }
    Ok(exit)
}

/// Why the counts of runs are no parts of the task's.
const NO_SUMS: &str = "counts are of the shard as each run left it, with those of its earlier runs: they don't add up, the newest \
                       run of each shard has them all";

/// Whether a shard has several of these runs.
fn has_gone_on(runs: &[Value]) -> bool {
    let mut seen = BTreeSet::new();
    !runs.iter().all(|run| seen.insert(run["shard"].as_u64()))
}

/// Lists who changed what.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn revisions(args: &PagesArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let (exit, _) = pages(&link, args, "revisions", &REVISIONS).await?;
    Ok(exit)
}

/// Shows a list of a task, and gives what it shows.
async fn pages(
    link: &Link<'_>,
    args: &PagesArgs,
    what: &str,
    listing: &Listing,
) -> Result<(Exit, Vec<Value>), Fault> {
    let id = link.task(&args.task).await?;
    let request = Request::get(&format!("/v1/tasks/{id}/{what}"));
    let listed = link.list(request, Some(&args.paging)).await?;
    let things = listed.things()?;
    Ok((link.show_list(listing, &listed, &things)?, things))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_of_runs_are_explained_where_a_shard_has_several() {
        let run = |shard: u64, run: u64| json!({"shard": shard, "run": run});
        assert!(has_gone_on(&[run(0, 2), run(1, 1), run(0, 1)]));
        assert!(!has_gone_on(&[run(0, 1), run(1, 1)]));
    }
}
