//! What a task's live settings must fulfil together, beyond what each says for itself.
//!
//! One check for `config.toml`, the command line and the API, so that the three can't differ. All faults at once.

use std::time::Duration;

use crate::settings::{Auto, Burst};
use crate::task::{Tuning, WINDOW_ITEMS_MAX};

/// Settings contradict one another, or one is out of its bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}; try {advice}")]
pub struct TuningFault {
    /// The setting to change.
    pub key: &'static str,
    /// What is wrong with it.
    pub what: String,
    /// What would do.
    pub advice: String,
}

/// Every fault of the settings; none when they are sound.
pub fn faults(tuning: &Tuning) -> Vec<TuningFault> {
    let mut faults = Vec::new();
    let mut add = |key, what: String, advice: String| faults.push(TuningFault { key, what, advice });
    check_sizes(tuning, &mut add);
    check_spans(tuning, &mut add);
    if tuning.ordered {
        check_ordered(tuning, &mut add);
    }
    faults
}

fn check_sizes(tuning: &Tuning, add: &mut impl FnMut(&'static str, String, String)) {
    let batch = tuning.batch;
    if let Auto::Fixed(window) = tuning.window
        && window.get() > WINDOW_ITEMS_MAX
    {
        add(
            "window",
            format!("{window} items are more than the {WINDOW_ITEMS_MAX} of the largest window"),
            "\"auto\"".to_owned(),
        );
    }
    if let (Auto::Fixed(window), Auto::Fixed(concurrency)) = (tuning.window, tuning.concurrency)
        && window < concurrency
    {
        add(
            "window",
            format!("{window} items can't keep {concurrency} in flight"),
            format!("at least {concurrency}, or \"auto\""),
        );
    }
    if let Auto::Fixed(window) = tuning.window
        && window < batch
    {
        add(
            "window",
            format!("{window} items can't fill a batch of {batch}"),
            format!("at least {batch}"),
        );
    }
    if batch.get() > WINDOW_ITEMS_MAX {
        add(
            "batch",
            format!("{batch} items are more than the largest window"),
            "a few hundred".to_owned(),
        );
    }
    if let Auto::Fixed(concurrency) = tuning.concurrency
        && concurrency < batch
    {
        add(
            "concurrency",
            format!("{concurrency} items in flight can't fill a batch of {batch}"),
            format!("at least {batch}, or \"auto\""),
        );
    }
    if let Burst::Items(items) = tuning.burst
        && items < batch
    {
        add(
            "burst",
            format!("{items} items at once can't fill a batch of {batch}"),
            format!("at least {batch}"),
        );
    }
}

fn check_spans(tuning: &Tuning, add: &mut impl FnMut(&'static str, String, String)) {
    let spans = [
        ("timeout", tuning.timeout, "10s"),
        ("checkpoint_interval", tuning.checkpoint_interval, "1s"),
        ("straggler_after", tuning.straggler_after, "1s"),
        ("park_after", tuning.park_after, "2s"),
        ("outage_patience", tuning.outage_patience, "24h"),
        ("error_window", tuning.error_window, "10s"),
    ];
    for (key, span, example) in spans {
        if span.is_zero() {
            add(key, "it can't be nothing".to_owned(), format!("\"{example}\""));
        } else if span > SPAN_MAX {
            add(
                key,
                format!("it can't be longer than {} days", SPAN_MAX.as_secs() / 86_400),
                format!("\"{example}\""),
            );
        }
    }
    if let Burst::Span(span) = tuning.burst
        && span > SPAN_MAX
    {
        add(
            "burst",
            format!("it can't be longer than {} days", SPAN_MAX.as_secs() / 86_400),
            "\"100ms\"".to_owned(),
        );
    }
    if tuning.batch_linger >= tuning.timeout && !tuning.timeout.is_zero() {
        add(
            "batch_linger",
            "an item would wait for its batch as long as its call may take".to_owned(),
            "\"5ms\"".to_owned(),
        );
    }
    if tuning.backoff.max > SPAN_MAX {
        add(
            "backoff",
            format!("a wait can't be longer than {} days", SPAN_MAX.as_secs() / 86_400),
            "\"1s..60s x2 jitter 20%\"".to_owned(),
        );
    }
}

/// The longest span of a live setting: far beyond use, and far within what every clock can add.
const SPAN_MAX: Duration = Duration::from_secs(365 * 86_400);

/// An ordered task has concurrency = batch = 1.
fn check_ordered(tuning: &Tuning, add: &mut impl FnMut(&'static str, String, String)) {
    if let Auto::Fixed(concurrency) = tuning.concurrency
        && concurrency.get() > 1
    {
        add(
            "concurrency",
            format!("an ordered task has one item in flight, not {concurrency}"),
            "\"auto\"".to_owned(),
        );
    }
    if tuning.batch.get() > 1 {
        add(
            "batch",
            format!("an ordered task has one item a call, not {}", tuning.batch),
            "1".to_owned(),
        );
    }
}
