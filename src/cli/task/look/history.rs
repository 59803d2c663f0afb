//! Implementation of `windrow task runs` and `revisions`: the history of a task.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::difference::change;
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone};
use crate::shell::Shell;
use crate::task::args::look::PagesArgs;
use windrow_client::Request;

/// Listing of the runs of a task.
const RUNS: Listing<api::Run> = Listing {
    columns: &[
        Column::plain("SHARD", Keep::Rank(55), 3, |run| Some(run.shard.to_string())),
        Column::plain("RUN", Keep::Always, 3, |run: &api::Run| Some(run.run.to_string())).tone(Tone::Strong),
        Column::maybe("NODE", Keep::Rank(40), 4, |run| run.node.as_deref()),
        Column::time("STARTED", Keep::Rank(60), |run| Some(&run.started_at)),
        Column::time("ENDED", Keep::Rank(50), |run| run.ended_at.as_deref()),
        Column::new("END", Side::Left, Keep::Always, 8, |run, _| {
            match (&run.end_reason, &run.ended_at) {
                (None, None) => Cell::new("runs").plain("").tone(Tone::Good),
                (reason, _) => Cell::text(reason.as_deref()),
            }
        }),
        Column::maybe("WHY", Keep::Rank(45), 12, |run: &api::Run| {
            run.end_text.as_deref()
        })
        .named("end_text"),
        Column::count("WATERMARK", Keep::Rank(30), 6, |run| Some(run.watermark)),
        Column::count("SUCCEEDED", Keep::Rank(20), 6, |run| Some(run.counts.succeeded)),
        Column::count("SKIPPED", Keep::Rank(10), 6, |run| Some(run.counts.skipped)),
        Column::count("FAILED", Keep::Rank(25), 6, |run| Some(run.counts.failed)),
        Column::plain("EPOCH", Keep::Wide, 3, |run| Some(run.epoch.to_string())),
        Column::count("PARKED", Keep::Wide, 3, |run| Some(run.counts.parked)),
    ],
    name: |run| format!("{}/{}", run.shard, run.run),
    none: "no runs yet",
};

/// Listing of changes with their reasons.
const REVISIONS: Listing<api::AuditEntry> = Listing {
    columns: &[
        Column::time("AT", Keep::Always, |entry| Some(&entry.at)),
        Column::text("ACTOR", Keep::Rank(60), 6, |entry| &entry.actor),
        Column::text("ACTION", Keep::Always, 8, |entry: &api::AuditEntry| &entry.action).tone(Tone::Strong),
        Column::new("CHANGE", Side::Left, Keep::Rank(50), 16, change),
        Column::maybe("REASON", Keep::Rank(55), 10, |entry| entry.reason.as_deref()),
        Column::text("SOURCE", Keep::Wide, 4, |entry| &entry.source),
        Column::maybe("ROLE", Keep::Wide, 6, |entry| entry.role.as_deref()),
        Column::maybe("REQUEST", Keep::Wide, 8, |entry| entry.request_id.as_deref()),
    ],
    name: |entry| entry.id.to_string(),
    none: "no changes",
};

/// Lists the runs of a task.
///
/// # Errors
/// Same as [`Link::send`].
pub(crate) async fn runs(args: &PagesArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let (exit, runs) = pages(&link, args, "runs", &RUNS).await?;
    if has_gone_on(&runs) {
        link.hint(NO_SUMS);
    }
    Ok(exit)
}

/// Note that the counts of runs don't add up to the task's.
const NO_SUMS: &str = "counts include the earlier runs of the same shard, so they don't add up; the \
    latest run of each shard has the totals";

/// True if a shard has several of these runs.
fn has_gone_on(runs: &[api::Run]) -> bool {
    let mut seen = BTreeSet::new();
    !runs.iter().all(|run| seen.insert(run.shard))
}

/// Lists the changes to a task with their authors.
///
/// # Errors
/// Same as [`Link::send`].
pub(crate) async fn revisions(args: &PagesArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let (exit, _) = pages(&link, args, "revisions", &REVISIONS).await?;
    Ok(exit)
}

/// Prints a list that belongs to a task, and returns its entries.
async fn pages<T: DeserializeOwned>(
    link: &Link<'_>,
    args: &PagesArgs,
    what: &str,
    listing: &Listing<T>,
) -> Result<(Exit, Vec<T>), Fault> {
    let id = link.task(&args.task).await?;
    let request = Request::get(&format!("/v1/tasks/{id}/{what}"));
    let listed = link.list(request, Some(&args.paging)).await?;
    let things = listed.things()?;
    Ok((link.show_list(listing, &listed, &things)?, things))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_runs_are_explained_where_a_shard_has_several() {
        let run = |shard, run| api::Run {
            shard,
            run,
            ..Default::default()
        };
        assert!(has_gone_on(&[run(0, 2), run(1, 1), run(0, 1)]));
        assert!(!has_gone_on(&[run(0, 1), run(1, 1)]));
    }
}
