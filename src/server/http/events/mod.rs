//! `GET /v1/events`: one stream for many topics. Ids increase. A client that reconnects with its last id gets the
//! events since then if they are still in memory, otherwise new snapshots.

mod handler;
pub(super) mod hub;
mod list;
mod look;
mod node;
mod stream;
mod task;
#[cfg(test)]
mod tests;
mod topic;

use std::net::SocketAddr;
use std::sync::Arc;
use windrow_core::text::quoted;

use axum::Extension;
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{KeepAlive, Sse};
use serde::Deserialize;
use utoipa::IntoParams;

use self::look::check;
use self::stream::StreamRequest;
use self::topic::{Look, Topic};
use super::problem::HttpResult;
use crate::http::front::App;
use crate::http::guard::access::no_longer_known;
use crate::http::guard::{Caller, Params, headers};
use crate::service::ServiceError;

/// Most topics per stream.
const TOPICS_MAX: usize = 32;
/// Default number of batches per second; the maximum follows.
const HZ_DEFAULT: u32 = 4;
const HZ_MAX: u32 = 10;
/// Time between keep-alive comments on a quiet stream.
const KEEP_ALIVE: std::time::Duration = std::time::Duration::from_secs(15);

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Comma-separated: `cluster`, `tasks`, `task:t42`, `node:n1`
    #[param(max_length = 1024)]
    topics: String,
    /// Maximum number of batches per second
    #[param(minimum = 1, maximum = 10)]
    hz: Option<u32>,
}

/// Stream events as they happen
///
/// Events: `snapshot`, `stats`, `status`, `handler` (a task's handler went down or recovered, or its calls fail with
/// a new code), `failure`, `log`, `audit`, `node`, and `bye` when the node shuts down or the token becomes invalid.
/// Each has the topic in its data. In the `stats` of a task, `stale` is null, or `store_unavailable` while the node
/// can't reach its database and doesn't know the task's state; the numbers are then the last known ones, without a
/// rate.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "events", tag = "node",
    params(EventsQuery, ("last-event-id" = Option<String>, Header, description = "Id of the last event received; the stream continues after it")),
    security(("bearer" = ["viewer", "business"])),
    responses(
        (status = 200, description = "Server-sent events", body = String, content_type = "text/event-stream"),
        (status = 404),
        (status = 429),
    )
)]
pub(crate) async fn events(
    State(app): State<App>,
    caller: Caller,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    Params(query): Params<EventsQuery>,
    headers: HeaderMap,
) -> HttpResult {
    let topics = topics(&query.topics)?;
    for topic in &topics {
        check(&app, &caller, topic).await?;
    }
    let hz = query.hz.unwrap_or(HZ_DEFAULT);
    if !(1..=HZ_MAX).contains(&hz) {
        return Err(ServiceError::invalid("hz", format!("{hz} is not between 1 and {HZ_MAX}")).into());
    }
    let place = app.front.streams.take(caller.account(), 1, false);
    let place = place.map_err(|full| full.problem("event streams"))?;
    let last = headers::text(&headers, "last-event-id").parse().ok();
    let look: Arc<dyn Look> = Arc::new(app.clone());
    let front = app.front.clone();
    let (again, peer) = (app.clone(), peer.map(|Extension(ConnectInfo(peer))| peer.ip()));
    let ended = async move {
        let _place = place;
        tokio::select! {
            () = front.ended() => "the node is shutting down; connect again",
            () = no_longer_known(&again, &headers, peer) => "the token is no longer valid; use another",
        }
    };
    let stream = stream::stream(&app.front.hub, look, StreamRequest { topics, hz, last }, ended);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    let headers = [("x-accel-buffering", "no"), ("cache-control", "no-store")];
    Ok((headers, Sse::new(stream).keep_alive(keep_alive)).into_response())
}

fn topics(text: &str) -> Result<Vec<Topic>, ServiceError> {
    let mut topics = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let unknown = |()| {
            ServiceError::invalid(
                "topics",
                format!(
                    "{} is not a topic; use cluster, tasks, task:t42 or node:n1",
                    quoted(word)
                ),
            )
        };
        let topic = word.parse().map_err(unknown)?;
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    match topics.len() {
        1..=TOPICS_MAX => Ok(topics),
        count => Err(ServiceError::invalid(
            "topics",
            format!("1 to {TOPICS_MAX} topics are required, not {count}"),
        )),
    }
}
