//! Handler state of a task: a current outage, and the last error.

use crate::http::answer::time::rfc3339;
use windrow_core::handler::sight::HandlerSight;
use windrow_core::items::verdict::{LastError, Outage};

/// Returns the outage, `None` while the handler responds.
pub(crate) fn show_handler_down(handler: &HandlerSight) -> Option<api::HandlerDown> {
    let Outage { since, probes } = handler.state.outage?;
    let error = handler.state.error.as_ref();
    Some(api::HandlerDown {
        class: error.map(|error| error.class.as_str()).map(str::to_owned),
        code: error.map(|error| error.code.clone().into_owned()),
        example: error.map(|error| error.example.clone()),
        since: rfc3339(since),
        next_probe: handler.next_probe_at().map(rfc3339),
        probes,
        nodes: handler.down_on.clone(),
    })
}

/// Returns the last error, `None` if there was none.
pub(crate) fn show_last_error(handler: &HandlerSight) -> Option<api::LastError> {
    let error: LastError = handler.state.error.clone()?;
    Some(api::LastError {
        class: error.class.as_str().to_owned(),
        code: error.code.into_owned(),
        example: error.example,
        index: error.index.0,
        count: error.count,
        since: rfc3339(error.since),
        at: rfc3339(error.at),
    })
}
