//! Checks of a task's live settings: the bounds of each, and their consistency.
//!
//! The same check serves `config.toml`, the command line and the API, so that the three can't differ. Reports all
//! faults at once.

use crate::settings::table::Tuning;
use crate::settings::{Auto, Burst};

/// Error in the settings: some contradict each other, or one is out of its bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}; try {advice}")]
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
    let mut add = |key, what: String, advice: String| faults.push(TuningFault { key, what, advice });
    check_sizes(tuning, &mut add);
    if tuning.batch_linger >= tuning.timeout && !tuning.timeout.is_zero() {
        let what = "an item would wait for its batch as long as its call may take";
        add("batch_linger", what.to_owned(), "\"5ms\"".to_owned());
    }
    faults
}

fn check_sizes(tuning: &Tuning, add: &mut impl FnMut(&'static str, String, String)) {
    let batch = tuning.batch;
    if let (Auto::Fixed(window), Auto::Fixed(concurrency)) = (tuning.window, tuning.concurrency)
        && window < concurrency
    {
        let what = format!("{window} items can't keep {concurrency} in flight");
        add("window", what, format!("at least {concurrency}, or \"auto\""));
    }
    let fixed = |setting| match setting {
        Auto::Fixed(number) => Some(number),
        Auto::Auto => None,
    };
    let at_once = match tuning.burst {
        Burst::Items(items) => Some(items),
        Burst::Span(_) => None,
    };
    for (key, number, what) in [
        ("window", fixed(tuning.window), "items"),
        ("concurrency", fixed(tuning.concurrency), "items in flight"),
        ("burst", at_once, "items at once"),
    ] {
        if let Some(number) = number.filter(|number| *number < batch) {
            let what = format!("{number} {what} can't fill a batch of {batch}");
            add(key, what, format!("at least {batch}"));
        }
    }
    if !tuning.ordered {
        return;
    }
    if let Some(concurrency) = fixed(tuning.concurrency).filter(|number| number.get() > 1) {
        let what = format!("an ordered task has one item in flight, not {concurrency}");
        add("concurrency", what, "\"auto\"".to_owned());
    }
    if batch.get() > 1 {
        let what = format!("an ordered task has one item a call, not {batch}");
        add("batch", what, "1".to_owned());
    }
}
