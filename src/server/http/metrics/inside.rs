//! What the node counts of itself: checkpoints, leases, recoveries, lines, statements.

use super::text::{Kind, Page, Span};
use windrow_engine::ports::handling::handler::LogLevel;
use windrow_engine::ports::handling::meters::{HintFate, Meters, Renewal};

/// Transactions and statements: 16 µs to 17 s.
const STORE: Span = Span { first: 14, last: 34 };

pub(super) fn write(page: &mut Page, meters: &Meters) {
    write_runs(page, meters);
    write_lines(page, meters);
    write_redis(page, meters);
    let help = "How long statements of the store took";
    let queries = meters.queries();
    let mut family = page.family("windrow_store_query_duration_seconds", Kind::Histogram, help);
    queries
        .iter()
        .for_each(|(op, of)| family.histogram(&[("op", op)], &of.took, STORE));
    let mut family = page.family(
        "windrow_store_errors_total",
        Kind::Counter,
        "Statements of the store that failed",
    );
    queries
        .iter()
        .for_each(|(op, of)| family.sample(&[("op", op)], of.errors as f64));
}

fn write_runs(page: &mut Page, meters: &Meters) {
    let (checkpoints, errors) = meters.checkpoints();
    let help = "How long transactions of checkpoints took";
    page.family("windrow_checkpoint_duration_seconds", Kind::Histogram, help)
        .histogram(&[], &checkpoints, STORE);
    let help = "Transactions of checkpoints that failed; they are tried again";
    page.single(
        "windrow_checkpoint_errors_total",
        Kind::Counter,
        help,
        errors as f64,
    );
    let help = "Heartbeats, each of which renews the leases of all shards of the node";
    let mut family = page.family("windrow_lease_renewals_total", Kind::Counter, help);
    for result in Renewal::ALL {
        family.sample(&[("result", result.as_str())], meters.renewals(result) as f64);
    }
    let help = "Runs that ended because another node owns their shard";
    page.single(
        "windrow_fenced_runs_total",
        Kind::Counter,
        help,
        meters.fenced_runs() as f64,
    );
    let help = "Runs that ended here and are tried again";
    let mut family = page.family("windrow_recoveries_total", Kind::Counter, help);
    for (reason, count) in meters.recoveries() {
        family.sample(&[("reason", &reason)], count as f64);
    }
}

/// Only where Redis is used: what always is 0 says nothing.
fn write_redis(page: &mut Page, meters: &Meters) {
    let Some(state) = meters.redis() else { return };
    let help = "Whether Redis answers; without it the database alone decides, and hints are found by polling";
    page.single(
        "windrow_redis_up",
        Kind::Gauge,
        help,
        f64::from(u8::from(state.is_ok())),
    );
    let (trips, failures) = meters.lease_trips();
    let help = "How long round trips for leases took";
    page.family("windrow_lease_trip_duration_seconds", Kind::Histogram, help)
        .histogram(&[], &trips, STORE);
    let help = "Round trips for leases that failed; trust decays until one succeeds";
    page.single(
        "windrow_lease_trip_errors_total",
        Kind::Counter,
        help,
        failures as f64,
    );
    let help = "Hints among nodes, which save the wait for the next poll";
    let mut family = page.family("windrow_hints_total", Kind::Counter, help);
    for fate in HintFate::ALL {
        family.sample(&[("fate", fate.as_str())], meters.hints(fate) as f64);
    }
}

fn write_lines(page: &mut Page, meters: &Meters) {
    let help = "Lines of the data log that were stored";
    let mut family = page.family("windrow_data_log_entries_total", Kind::Counter, help);
    for (level, name) in [
        (LogLevel::Debug, "debug"),
        (LogLevel::Info, "info"),
        (LogLevel::Warn, "warn"),
        (LogLevel::Error, "error"),
    ] {
        family.sample(&[("level", name)], meters.lines(level) as f64);
    }
    let help = "Lines of the data log that are gone: not kept longer, or too many to be written";
    let mut family = page.family("windrow_data_log_dropped_total", Kind::Counter, help);
    for (reason, count) in meters.dropped() {
        family.sample(&[("reason", reason)], count as f64);
    }
}
