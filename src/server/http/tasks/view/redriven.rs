//! Results of redrives for a task's failures.

use crate::http::answer::Of;
use crate::service::failures::net::NetResult;

impl Of<&NetResult> for api::TaskRedriven {
    fn of(net: &NetResult) -> Self {
        api::TaskRedriven {
            recovered: net.recovered,
            still_failed: net.still_failed,
            exact: net.is_exact,
        }
    }
}
