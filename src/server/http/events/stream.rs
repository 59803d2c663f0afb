//! Event stream of a single listener.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse;
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::hub::{Batch, Event, Hub, Listening};
use super::topic::{Kind, Look, STALE, Told, Topic};
use crate::service::ServiceError;

/// Time a client waits before it reconnects.
const RETRY: Duration = Duration::from_secs(2);

/// Request of a listener.
pub(super) struct StreamRequest {
    pub(super) topics: Vec<Topic>,
    /// Batches per second, at most.
    pub(super) hz: u32,
    /// Id of the last event received, from an earlier connection.
    pub(super) last: Option<u64>,
}

struct Listener {
    listening: Listening,
    look: Arc<dyn Look>,
    newest: watch::Receiver<u64>,
    every: Duration,
    next_at: Instant,
    cursor: u64,
    ready: VecDeque<Event>,
    /// Resolves with a reason when the stream must end.
    ended: Pin<Box<dyn Future<Output = &'static str> + Send>>,
    is_over: bool,
    /// Set until the first batch, which is sent without waiting for an event.
    is_new: bool,
    /// Topics whose snapshot is still to be sent.
    fresh: Vec<Topic>,
    /// Set when the listener was told that a task's numbers are stale; reset by the next snapshot.
    is_blind: bool,
}

/// Returns the stream. It sends `bye` and ends when `ended` resolves.
pub(super) fn stream<E: Future<Output = &'static str> + Send + 'static>(
    hub: &Hub,
    look: Arc<dyn Look>,
    request: StreamRequest,
    ended: E,
) -> impl Stream<Item = Result<sse::Event, Infallible>> + Send + use<E> {
    let listening = hub.listen(request.topics.clone(), request.hz, &look);
    // Ignore an id that was never issued.
    let last = request.last.filter(|last| *last < listening.snapshot_id());
    let fresh = if last.is_some() {
        Vec::new()
    } else {
        request.topics
    };
    let listener = Listener {
        newest: listening.newest(),
        listening,
        look,
        every: Duration::from_secs(1) / request.hz.max(1),
        next_at: Instant::now(),
        cursor: last.unwrap_or(0),
        is_new: true,
        ready: VecDeque::new(),
        ended: Box::pin(ended),
        is_over: false,
        fresh,
        is_blind: false,
    };
    unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok(written(&event)), listener))
    })
}

impl Listener {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            self.gather().await;
        }
    }

    /// Waits for events, at most at the requested rate.
    async fn gather(&mut self) {
        let is_urgent = self.is_new || !self.fresh.is_empty();
        self.is_new = false;
        let (newest, next_at, cursor) = (&mut self.newest, self.next_at, self.cursor);
        let news = async {
            tokio::time::sleep_until(next_at).await;
            is_urgent || newest.wait_for(|newest| *newest > cursor).await.is_ok()
        };
        tokio::select! {
            biased;
            why = &mut self.ended => return self.say_goodbye(why),
            // Unreachable in practice: the hub outlives its listeners.
            heard = news => if !heard { return self.say_goodbye("the stream has ended; connect again") },
        }
        self.next_at = Instant::now() + self.every;
        let Batch {
            events,
            mut lost,
            cursor,
        } = self.listening.after(self.cursor);
        self.cursor = cursor;
        let asked = std::mem::take(&mut self.fresh)
            .into_iter()
            .filter(|topic| !lost.contains(topic))
            .collect::<Vec<_>>();
        lost.extend(asked);
        self.ready
            .extend(events.into_iter().filter(|event| !lost.contains(&event.topic)));
        for topic in lost {
            self.tell_all(topic).await;
        }
    }

    async fn tell_all(&mut self, topic: Topic) {
        let id = self.listening.snapshot_id();
        let data = match self.look.snapshot(&topic).await {
            Ok(data) => data,
            // The object was deleted in the meantime.
            Err(ServiceError::NotFound { .. }) => Value::Null,
            Err(error) => {
                tracing::debug!(%topic, %error, "snapshot failed; retried with the next batch");
                return self.tell_blind(topic);
            }
        };
        self.is_blind = false;
        self.ready.push_back(Event {
            id,
            kind: Kind::Snapshot,
            topic,
            data: Arc::new(data.into()),
        });
        self.cursor = self.cursor.max(id);
    }

    /// Tells the listener of a task once that its numbers are stale: it may have them from an earlier connection.
    fn tell_blind(&mut self, topic: Topic) {
        if matches!(topic, Topic::Task(_)) && !std::mem::replace(&mut self.is_blind, true) {
            self.ready.push_back(Event {
                id: self.cursor,
                kind: Kind::Stats,
                topic: topic.clone(),
                data: Arc::new(json!({"stale": STALE}).into()),
            });
        }
        self.fresh.push(topic);
    }

    fn say_goodbye(&mut self, why: &str) {
        self.is_over = true;
        let data = Arc::new(json!({"text": why}).into());
        let id = self.cursor;
        self.ready.push_back(Event {
            id,
            kind: Kind::Bye,
            topic: Topic::Cluster,
            data,
        });
    }
}

/// Event data with its topic, as serialized.
#[derive(Serialize)]
struct Written<'a> {
    data: &'a Told,
    topic: String,
}

fn written(event: &Event) -> sse::Event {
    let data = Written {
        data: &event.data,
        topic: event.topic.to_string(),
    };
    let data = serde_json::to_string(&data).unwrap_or_default();
    let written = sse::Event::default()
        .id(event.id.to_string())
        .event(event.kind.as_str())
        .data(data);
    // Snapshots start every stream that isn't replayed, so setting the retry time on them is enough.
    if event.kind == Kind::Snapshot {
        written.retry(RETRY)
    } else {
        written
    }
}
