//! Size limits of bodies: per route, and for all bodies in memory.

use std::sync::Arc;

use crate::http::guard::shares::Shares;
use crate::http::paths::APPENDS;
use windrow_config::Config;

/// Routes whose bodies may have up to `http.body_limit`: they carry lists of items, which are kept as raw text.
const CARRIERS: [&str; 3] = ["/v1/tasks", "/v1/tasks/{task}", APPENDS];
/// Largest body of any other route, in bytes.
const PLAIN_MAX: u64 = 1 << 20;
/// Room for the rest of a body besides the largest parameters, in bytes.
pub(super) const AROUND_PARAMS: u64 = 64 << 10;
/// Memory charged per byte of such a body: it is parsed into values many times as large as the text.
const PLAIN_WEIGHT: u64 = 16;
/// Size limit of a route's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measure {
    /// Largest allowed body, in bytes.
    pub(super) most: u64,
    pub(super) weight: u64,
}

impl Measure {
    pub(super) fn of(path: &str, config: &Config) -> Measure {
        let limit = config.http.body_limit.0;
        if CARRIERS.contains(&path) {
            return Measure {
                most: limit,
                weight: 1,
            };
        }
        let plain = PLAIN_MAX.max(config.task_defaults.max_params.0.saturating_add(AROUND_PARAMS));
        Measure {
            most: limit.min(plain),
            weight: PLAIN_WEIGHT,
        }
    }
}

/// Returns the memory limits for bodies, in total and per caller.
pub(crate) fn memory(config: &Config) -> Arc<Shares<String>> {
    let all = config.http.body_memory.0;
    let largest = config.http.body_limit.0.max(PLAIN_MAX * PLAIN_WEIGHT);
    Shares::new(all.max(largest), largest.max(all / 4))
}
