//! Checks of a task's live settings: the bounds of each, and their consistency.
//!
//! The same check serves `config.toml`, the command line and the API, so that the three can't differ. Reports all
//! faults at once.

use crate::settings::table::Tuning;
use crate::settings::{Auto, Burst};
use windrow_words::{Message, settings as say};

/// Message about a number of items that is below the batch.
type Below = fn(u32, u32) -> Message;

/// Error in the settings: some contradict each other, or one is out of its bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::fault(*key, what, advice))]
pub struct TuningFault {
    /// Name of the setting to change.
    pub key: &'static str,
    /// Description of the fault.
    pub what: String,
    /// Value that would be accepted.
    pub advice: String,
}

/// Returns every fault of the settings; empty if they are valid.
pub fn faults(tuning: &Tuning) -> Vec<TuningFault> {
    let mut faults = tuning.out_of_bounds();
    let mut add = |key, what: Message, advice: String| {
        let what = what.to_string();
        faults.push(TuningFault { key, what, advice });
    };
    check_sizes(tuning, &mut add);
    if tuning.batch_linger >= tuning.timeout && !tuning.timeout.is_zero() {
        add("batch_linger", say::linger_too_long(), "\"5ms\"".to_owned());
    }
    faults
}

fn check_sizes(tuning: &Tuning, add: &mut impl FnMut(&'static str, Message, String)) {
    let batch = tuning.batch;
    if let (Auto::Fixed(window), Auto::Fixed(concurrency)) = (tuning.window, tuning.concurrency)
        && window < concurrency
    {
        let what = say::window_too_small(window.get(), concurrency.get());
        add(
            "window",
            what,
            say::at_least_or(concurrency.get(), "\"auto\"").to_string(),
        );
    }
    let fixed = |setting| match setting {
        Auto::Fixed(number) => Some(number),
        Auto::Auto => None,
    };
    let at_once = match tuning.burst {
        Burst::Items(items) => Some(items),
        Burst::Span(_) => None,
    };
    let below: [(_, _, Below); 3] = [
        ("window", fixed(tuning.window), say::window_below_batch),
        (
            "concurrency",
            fixed(tuning.concurrency),
            say::concurrency_below_batch,
        ),
        ("burst", at_once, say::burst_below_batch),
    ];
    for (key, number, what) in below {
        if let Some(number) = number.filter(|number| *number < batch) {
            let what = what(number.get(), batch.get());
            add(key, what, say::at_least(batch.get()).to_string());
        }
    }
    if !tuning.ordered {
        return;
    }
    if let Some(concurrency) = fixed(tuning.concurrency).filter(|number| number.get() > 1) {
        let what = say::ordered_concurrency(concurrency.get());
        add("concurrency", what, "\"auto\"".to_owned());
    }
    if batch.get() > 1 {
        add("batch", say::ordered_batch(batch.get()), "1".to_owned());
    }
}
