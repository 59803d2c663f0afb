//! How long an open circuit waits between probes.

use std::time::Duration;

use crate::items::retry::mix;

/// The wait before the first probe; doubled up to the longest. With 20 % of jitter a handler that is back is called
/// within 36 s.
const PROBE_FIRST: Duration = Duration::from_secs(1);
pub(in crate::execution::judge) const PROBE_LONGEST: Duration = Duration::from_secs(30);
const PROBE_JITTER_PERCENT: u64 = 20;
/// Where more of the handler is there than before (a worker has started), the next probe is sent as early as this.
pub(super) const PROBE_ON_NEWS: Duration = Duration::from_secs(10);

/// The wait before probe `step`, ± 20 %.
pub(super) fn probe_wait(step: u32, salt: u64) -> Duration {
    let steady = PROBE_FIRST
        .saturating_mul(1 << step.min(5))
        .min(PROBE_LONGEST)
        .as_millis() as u64;
    let range = steady * PROBE_JITTER_PERCENT / 100;
    let spread = mix(salt ^ u64::from(step)) % (2 * range + 1);
    Duration::from_millis(steady - range + spread)
}
