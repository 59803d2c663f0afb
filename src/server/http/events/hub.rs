//! Events of each topic in the last minute, with one ticker per topic, however many listeners it has.
//!
//! Nothing is queued per listener. Each one collects what is new at its own pace; one that falls behind the ring gets
//! a fresh snapshot. A slow client costs one batch and never blocks others.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::topic::{Kind, Look, Told, Topic};

/// Time for which events can be replayed, and for which a topic is still watched after its last listener leaves.
pub(super) const REPLAY: Duration = Duration::from_secs(60);
/// Most events kept per topic.
const RING_MAX: usize = 1000;

/// Event as stored in the ring.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) id: u64,
    pub(super) kind: Kind,
    pub(super) topic: Topic,
    pub(super) data: Arc<Told>,
}

/// New events for a listener.
#[derive(Debug, PartialEq)]
pub(super) struct Batch {
    /// New events, oldest first. Of kinds that describe a state, only the newest.
    pub(super) events: Vec<Event>,
    /// Topics with missed events, which need a snapshot.
    pub(super) lost: Vec<Topic>,
    /// Id of the last event that this batch covers.
    pub(super) cursor: u64,
}

struct Channel {
    ring: VecDeque<(Instant, Event)>,
    /// All events with a higher id are in the ring.
    complete_since: u64,
    listeners: usize,
    idle_since: Option<Instant>,
    /// Highest rate requested by a listener, in looks per second.
    hz: u32,
    ticker: Option<AbortHandle>,
}

struct Inner {
    next_id: u64,
    channels: BTreeMap<Topic, Channel>,
}

/// Hub of all event streams of this node.
#[derive(Clone)]
pub(crate) struct Hub {
    inner: Arc<Mutex<Inner>>,
    newest: watch::Sender<u64>,
}

/// Subscription to topics; they are watched until it is dropped.
pub(super) struct Listening {
    hub: Hub,
    topics: Vec<Topic>,
}

impl Hub {
    /// Creates a hub whose ids start at `first`. That is above the ids of earlier lives of the node, so that an old
    /// listener is known to have missed events.
    pub(crate) fn new(first: u64) -> Hub {
        let inner = Inner {
            next_id: first.max(1),
            channels: BTreeMap::new(),
        };
        Hub {
            inner: Arc::new(Mutex::new(inner)),
            newest: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of listeners, each counted once.
    pub(crate) fn listeners(&self) -> usize {
        self.newest.receiver_count()
    }

    /// Subscribes to topics. Those without a watcher get one.
    pub(super) fn listen(&self, topics: Vec<Topic>, hz: u32, look: &Arc<dyn Look>) -> Listening {
        let mut inner = self.lock();
        for topic in &topics {
            let last_id = inner.next_id - 1;
            let is_new = !inner.channels.contains_key(topic);
            let channel = inner.channels.entry(topic.clone()).or_insert_with(|| Channel {
                ring: VecDeque::new(),
                complete_since: last_id,
                listeners: 0,
                idle_since: None,
                hz,
                ticker: None,
            });
            channel.listeners += 1;
            channel.idle_since = None;
            channel.hz = channel.hz.max(hz);
            if is_new {
                let ticker = tokio::spawn(self.clone().tick(topic.clone(), look.clone()));
                channel.ticker = Some(ticker.abort_handle());
            }
        }
        drop(inner);
        Listening {
            hub: self.clone(),
            topics,
        }
    }

    /// Stops watching all topics.
    pub(crate) fn close(&self) {
        let channels = std::mem::take(&mut self.lock().channels);
        channels
            .into_values()
            .filter_map(|channel| channel.ticker)
            .for_each(|ticker| ticker.abort());
    }

    /// Watches a topic until it has had no listeners for a while.
    async fn tick(self, topic: Topic, look: Arc<dyn Look>) {
        let mut watcher = look.watcher(&topic);
        while let Some(wait) = self.pause(&topic) {
            let found = watcher.look().await;
            self.put(&topic, found);
            tokio::time::sleep(wait).await;
        }
    }

    /// Returns the time until the next look. `None` after the topic had no listeners for [`REPLAY`]; it is then
    /// removed.
    fn pause(&self, topic: &Topic) -> Option<Duration> {
        let mut inner = self.lock();
        let channel = inner.channels.get(topic)?;
        if channel.idle_since.is_some_and(|since| since.elapsed() >= REPLAY) {
            inner.channels.remove(topic);
            return None;
        }
        Some(Duration::from_secs(1) / channel.hz.max(1))
    }

    fn put(&self, topic: &Topic, found: Vec<(Kind, Told)>) {
        if found.is_empty() {
            return;
        }
        let mut inner = self.lock();
        let first = inner.next_id;
        inner.next_id += found.len() as u64;
        let newest = inner.next_id - 1;
        let Some(channel) = inner.channels.get_mut(topic) else {
            return;
        };
        let now = Instant::now();
        for (id, (kind, data)) in (first..).zip(found) {
            let event = Event {
                id,
                kind,
                topic: topic.clone(),
                data: Arc::new(data),
            };
            channel.ring.push_back((now, event));
        }
        while channel.ring.len() > RING_MAX
            || channel
                .ring
                .front()
                .is_some_and(|(at, _)| now.duration_since(*at) > REPLAY)
        {
            channel.complete_since = channel.ring.pop_front().map_or(newest, |(_, event)| event.id);
        }
        drop(inner);
        self.newest.send_replace(newest);
    }
}

impl Listening {
    /// Returns a receiver that is notified of new events.
    pub(super) fn newest(&self) -> watch::Receiver<u64> {
        self.hub.newest.subscribe()
    }

    /// Reserves an id for a snapshot about to be taken: all later events have higher ids.
    pub(super) fn snapshot_id(&self) -> u64 {
        let mut inner = self.hub.lock();
        inner.next_id += 1;
        inner.next_id - 1
    }

    /// Returns all events after an id.
    pub(super) fn after(&self, cursor: u64) -> Batch {
        let inner = self.hub.lock();
        let (mut events, mut lost) = (Vec::new(), Vec::new());
        for topic in &self.topics {
            match inner.channels.get(topic) {
                Some(channel) if channel.complete_since <= cursor => events.extend(channel.after(cursor)),
                _ => lost.push(topic.clone()),
            }
        }
        events.sort_by_key(|event| event.id);
        Batch {
            events,
            lost,
            cursor: inner.next_id - 1,
        }
    }
}

impl Channel {
    fn after(&self, cursor: u64) -> Vec<Event> {
        let fresh: Vec<&Event> = self
            .ring
            .iter()
            .map(|(_, event)| event)
            .filter(|event| event.id > cursor)
            .collect();
        let is_newest =
            |event: &Event, at: usize| fresh[at + 1..].iter().all(|later| later.kind != event.kind);
        let kept = fresh
            .iter()
            .enumerate()
            .filter(|(at, event)| !event.kind.is_state() || is_newest(event, *at));
        kept.map(|(_, event)| (*event).clone()).collect()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut inner = self.hub.lock();
        for topic in &self.topics {
            let Some(channel) = inner.channels.get_mut(topic) else {
                continue;
            };
            channel.listeners = channel.listeners.saturating_sub(1);
            if channel.listeners == 0 {
                channel.idle_since = Some(Instant::now());
            }
        }
    }
}
