//! What was told of each topic in the last minute: one ticker a topic, however many listen.
//!
//! Nothing is queued for a listener. Each comes by, at its own pace, and takes what is new; one that is too late for
//! the ring is given a fresh snapshot. So a slow client costs what one batch costs, and never holds anything up.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::topic::{Kind, Look, Told, Topic};

/// How long events can be replayed, and how long a topic is watched after its last listener went.
pub(super) const REPLAY: Duration = Duration::from_secs(60);
/// Events of one topic that are kept at most.
const RING_MAX: usize = 1000;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) id: u64,
    pub(super) kind: Kind,
    pub(super) topic: Topic,
    pub(super) data: Arc<Told>,
}

/// What there is for a listener.
#[derive(Debug, PartialEq)]
pub(super) struct Batch {
    /// New events, oldest first; of what only has a newest state, that one.
    pub(super) events: Vec<Event>,
    /// Topics of which too much was missed.
    pub(super) lost: Vec<Topic>,
    /// Everything up to here is in this batch.
    pub(super) cursor: u64,
}

struct Channel {
    ring: VecDeque<(Instant, Event)>,
    /// Events after this id are all in the ring.
    complete_since: u64,
    listeners: usize,
    idle_since: Option<Instant>,
    /// The highest pace that was asked for. Unit: looks per second.
    hz: u32,
    ticker: Option<AbortHandle>,
}

struct Inner {
    next_id: u64,
    channels: BTreeMap<Topic, Channel>,
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Hub {
    inner: Arc<Mutex<Inner>>,
    newest: watch::Sender<u64>,
}

/// As long as it is held, its topics are watched.
pub(super) struct Listening {
    hub: Hub,
    topics: Vec<Topic>,
}

impl Hub {
    /// A hub whose ids begin at `first`: above those of any earlier life of the node, so that a listener of then is
    /// known to have missed something.
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

    /// How many listen, each counted once.
    pub(crate) fn listeners(&self) -> usize {
        self.newest.receiver_count()
    }

    /// Begins to listen; topics that nobody watched are watched from now on.
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

    /// Looks at nothing any more.
    pub(crate) fn close(&self) {
        let channels = std::mem::take(&mut self.lock().channels);
        channels
            .into_values()
            .filter_map(|channel| channel.ticker)
            .for_each(|ticker| ticker.abort());
    }

    /// Looks at a topic again and again until nobody has listened for a while.
    async fn tick(self, topic: Topic, look: Arc<dyn Look>) {
        let mut watcher = look.watcher(&topic);
        while let Some(wait) = self.pause(&topic) {
            let found = watcher.look().await;
            self.put(&topic, found);
            tokio::time::sleep(wait).await;
        }
    }

    /// How long until the next look; none when nobody cares any more, and the topic is forgotten.
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
    /// Hears that there may be something new.
    pub(super) fn newest(&self) -> watch::Receiver<u64> {
        self.hub.newest.subscribe()
    }

    /// An id for a snapshot that is about to be taken: whatever happens from now on has a higher one.
    pub(super) fn snapshot_id(&self) -> u64 {
        let mut inner = self.hub.lock();
        inner.next_id += 1;
        inner.next_id - 1
    }

    /// What is new after an id.
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
