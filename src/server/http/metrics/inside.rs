//! Internal counters of the node: checkpoints, leases, recoveries, log lines, statements.

use super::calls::SHORT;
use super::families as f;
use super::text::{Bounds, Page};
use windrow_engine::ports::handling::handler::LogLevel;
use windrow_engine::ports::handling::meters::{
    AppendFate, CopyFate, HintFate, Meters, PublicationFate, Renewal,
};
use windrow_engine::ports::schedules::store::FireOutcome;

/// Buckets for late fires: 1 ms to about five days.
pub(super) const LATE: &Bounds = &[
    1_000,
    10_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
    600_000_000,
    1_800_000_000,
    3_600_000_000,
    9_000_000_000,
    36_000_000_000,
    90_000_000_000,
    450_000_000_000,
];
const LEVELS: [(&str, LogLevel); 4] = [
    ("debug", LogLevel::Debug),
    ("info", LogLevel::Info),
    ("warn", LogLevel::Warn),
    ("error", LogLevel::Error),
];

pub(super) fn write(page: &mut Page, meters: &Meters) {
    let (checkpoints, errors) = meters.checkpoints();
    page.histograms(f::CHECKPOINT_DURATION, SHORT, [([], &checkpoints)]);
    page.one(f::CHECKPOINT_ERRORS, errors);
    let renewals = Renewal::ALL.map(|result| (result.as_str(), meters.renewals(result)));
    page.by(f::LEASE_RENEWALS, "result", renewals);
    page.one(f::FENCED_RUNS, meters.fenced_runs());
    let recoveries = meters.recoveries();
    let recoveries = recoveries.iter().map(|(reason, count)| (reason.as_str(), *count));
    page.by(f::RECOVERIES, "reason", recoveries);
    let fires = FireOutcome::ALL
        .into_iter()
        .filter(|outcome| *outcome != FireOutcome::Pending);
    page.by(
        f::SCHEDULE_FIRES,
        "outcome",
        fires.map(|outcome| (outcome.as_str(), meters.fires(outcome))),
    );
    page.histograms(f::SCHEDULE_LATE, LATE, [([], &meters.fires_late())]);
    // Only on nodes that copy to a sink; elsewhere these would always be 0.
    if let Some((behind, lag)) = meters.sinks() {
        let copies = CopyFate::ALL.map(|fate| (fate.as_str(), meters.copies(fate)));
        page.by(f::SINK_COPIES, "outcome", copies);
        page.one(f::SINK_BEHIND, behind);
        page.one(f::SINK_LAG, lag.as_secs_f64());
    }
    page.by(f::ARCHIVED_TASKS, "outcome", meters.archives());
    let publications = PublicationFate::ALL.map(|fate| (fate.as_str(), meters.publications(fate)));
    page.by(f::PUBLICATIONS, "outcome", publications);
    let appends = AppendFate::ALL.map(|fate| (fate.as_str(), meters.appends(fate)));
    page.by(f::APPENDS, "outcome", appends);
    page.one(f::APPENDED_ITEMS, meters.appended_items());
    let lines = LEVELS.map(|(word, level)| (word, meters.lines(level)));
    page.by(f::DATA_LOG_ENTRIES, "level", lines);
    page.by(f::DATA_LOG_DROPPED, "reason", meters.dropped());
    // Only where Redis is used; elsewhere these would always be 0.
    if let Some(state) = meters.redis() {
        page.one(f::REDIS_UP, state.is_ok());
        let (trips, failures) = meters.lease_trips();
        page.histograms(f::LEASE_TRIP_DURATION, SHORT, [([], &trips)]);
        page.one(f::LEASE_TRIP_ERRORS, failures);
        let hints = HintFate::ALL.map(|fate| (fate.as_str(), meters.hints(fate)));
        page.by(f::HINTS, "fate", hints);
    }
    let queries = meters.queries();
    let took = queries.iter().map(|(op, of)| ([("op", *op)], &of.took));
    page.histograms(f::STORE_QUERY_DURATION, SHORT, took);
    let errors = queries.iter().map(|(op, of)| (*op, of.errors));
    page.by(f::STORE_ERRORS, "op", errors);
}
