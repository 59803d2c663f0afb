//! Sizes of bodies that a route takes, and of all that are in memory.

use std::sync::Arc;

use crate::http::guard::shares::Shares;
use crate::http::paths::APPENDS;
use windrow_config::Config;

/// The routes whose bodies may have `http.body_limit`: lists of items are kept as the text that they came as.
const CARRIERS: [&str; 3] = ["/v1/tasks", "/v1/tasks/{task}", APPENDS];
/// The largest body of any other route. Unit: bytes.
const PLAIN_MAX: u64 = 1 << 20;
/// Beside the largest parameters. Unit: bytes.
pub(super) const AROUND_PARAMS: u64 = 64 << 10;
/// How often a byte of such a body counts: it becomes a tree of values, each many times as long as its text.
const PLAIN_WEIGHT: u64 = 16;
/// Limit of a route's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measure {
    /// Unit: bytes.
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

/// The bytes of bodies that may be in memory, for all and for each caller.
pub(crate) fn memory(config: &Config) -> Arc<Shares<String>> {
    let all = config.http.body_memory.0;
    let largest = config.http.body_limit.0.max(PLAIN_MAX * PLAIN_WEIGHT);
    Shares::new(all.max(largest), largest.max(all / 4))
}
