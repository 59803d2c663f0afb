//! What redrives made of a task's failures.

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::failures::net::NetResult;

/// What redrives made of a task's failures, those of redrives of them included.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskRedriven)]
pub(crate) struct RedrivenJson {
    /// Items that a redrive settled well.
    made_good: u64,
    /// Items that have failed still.
    still_failed: u64,
    /// Whether no item was counted for two redrives: false only where they are too many to look at each.
    exact: bool,
}

impl From<&NetResult> for RedrivenJson {
    fn from(net: &NetResult) -> RedrivenJson {
        RedrivenJson {
            made_good: net.made_good,
            still_failed: net.still_failed,
            exact: net.is_exact,
        }
    }
}
