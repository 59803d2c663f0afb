//! Members that several answers about a run have.

use serde_json::{Value, json};

use windrow_core::items::counters::Counters;
use windrow_core::settings::text::span_text;
use windrow_core::task::Tuning;

/// Every term of the sum, as the API has them.
pub(in crate::run) fn counts_json(counts: &Counters, pending: u64) -> Value {
    json!({
        "succeeded": counts.succeeded, "skipped": counts.skipped, "abandoned": counts.abandoned,
        "parked": counts.parked, "in_flight": counts.in_flight, "pending": pending, "excluded": counts.excluded,
    })
}

/// What can be changed while it runs, as it is written on the command line.
pub(in crate::run) fn settings_json(tuning: &Tuning) -> Value {
    json!({
        "rate": tuning.rate, "burst": tuning.burst, "concurrency": tuning.concurrency, "window": tuning.window,
        "batch": tuning.batch, "timeout": span_text(tuning.timeout), "max_attempts": tuning.max_attempts,
        "backoff": tuning.backoff, "on_exhausted": tuning.on_exhausted, "error_budget": tuning.error_budget,
        "ordered": tuning.ordered, "outage_patience": span_text(tuning.outage_patience),
        "judge_after": tuning.judge_after.to_string(),
    })
}
