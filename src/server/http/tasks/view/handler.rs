//! How the handler of a task fares: an outage, and what last went wrong.

use serde::Serialize;
use utoipa::ToSchema;

use crate::http::answer::time::rfc3339;
use windrow_core::handler::sight::HandlerSight;
use windrow_core::items::verdict::{LastError, Outage};

/// The handler doesn't answer. The task goes on by itself once it does; nothing is charged for it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HandlerDown)]
pub(crate) struct HandlerDownJson {
    /// Of whom the last failure speaks: `unreachable`, `unavailable` or `unclear`. Null where only its node knows, and
    /// can't be asked.
    class: Option<&'static str>,
    /// The code of the last failure.
    code: Option<String>,
    /// Its message.
    example: Option<String>,
    /// Since when.
    since: String,
    /// When it is tried next; null while it is being tried, or where that isn't known.
    next_probe: Option<String>,
    /// How often it was tried since.
    probes: u32,
    /// The nodes from which it is down.
    nodes: Vec<String>,
}

/// What last went wrong with calls of a task that runs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LastError)]
pub(crate) struct LastErrorJson {
    /// Of whom it speaks: `answered`, `faulty`, `rejected`, `unreachable`, `unavailable` or `unclear`.
    class: &'static str,
    /// The failure's code.
    code: String,
    /// The message of the latest one.
    example: String,
    /// An item that it happened to.
    index: u64,
    /// How many calls failed since then, with whichever code.
    count: u64,
    /// When calls began to fail.
    since: String,
    /// When it last happened.
    at: String,
}

impl HandlerDownJson {
    /// None while the handler answers.
    pub(in crate::http) fn of(handler: &HandlerSight) -> Option<HandlerDownJson> {
        let Outage { since, probes } = handler.state.outage?;
        let error = handler.state.error.as_ref();
        Some(HandlerDownJson {
            class: error.map(|error| error.class.as_str()),
            code: error.map(|error| error.code.clone().into_owned()),
            example: error.map(|error| error.example.clone()),
            since: rfc3339(since),
            next_probe: handler.next_probe_at().map(rfc3339),
            probes,
            nodes: handler.down_on.clone(),
        })
    }
}

impl LastErrorJson {
    /// None where nothing went wrong.
    pub(in crate::http) fn of(handler: &HandlerSight) -> Option<LastErrorJson> {
        let error: LastError = handler.state.error.clone()?;
        Some(LastErrorJson {
            class: error.class.as_str(),
            code: error.code.into_owned(),
            example: error.example,
            index: error.index.0,
            count: error.count,
            since: rfc3339(error.since),
            at: rfc3339(error.at),
        })
    }
}
