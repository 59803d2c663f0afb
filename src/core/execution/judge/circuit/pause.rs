//! Waits between the probes of an open circuit.

use std::time::Duration;

use crate::items::retry::mix;

/// Wait before the first probe; doubled up to the longest. With 20 % of jitter, a handler that is back is called
/// within 36 s.
const PROBE_FIRST: Duration = Duration::from_secs(1);
pub(in crate::execution::judge) const PROBE_LONGEST: Duration = Duration::from_secs(30);
const PROBE_JITTER_PERCENT: u64 = 20;
/// Maximum time from the latest probe to the next one, once more of the handler is available (a worker has started).
pub(super) const PROBE_ON_NEWS: Duration = Duration::from_secs(10);

/// Returns the wait before probe `step`, ± 20 %.
pub(super) fn probe_wait(step: u32, salt: u64) -> Duration {
    let steady = PROBE_FIRST
        .saturating_mul(1 << step.min(5))
        .min(PROBE_LONGEST)
        .as_millis() as u64;
    let range = steady * PROBE_JITTER_PERCENT / 100;
    let spread = mix(salt ^ u64::from(step)) % (2 * range + 1);
    Duration::from_millis(steady - range + spread)
}
