//! Hints over a Redis channel. Hints sent while Redis is down are dropped and counted; listeners reconnect on their
//! own. Nothing waits for a hint: polling finds the same within about a second.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use windrow_words::store as say;

use async_trait::async_trait;
use futures_util::StreamExt;
use redis::Msg;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use uuid::Uuid;

use super::Section;
use super::fault::explained;
use super::hint_text::{self, HINTS_MAX};
use super::link::{Link, Request};
use super::locate::Servers;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::meters::{HintFate, Meters};
use windrow_engine::ports::ownership::hints::{Hint, Hints};

/// Capacity of the outgoing queue, and of the set of received hints that the node has not taken yet; more are
/// dropped.
const QUEUE_MAX: usize = 1024;
/// Time for which hints are gathered before they take effect, so a flooded channel costs at most 50 reads of a row
/// per second.
const GATHER: Duration = Duration::from_millis(20);
/// Timeout for connecting and subscribing, and for the ping that tests an idle connection after `TEST_EVERY`.
const LISTEN_LIMIT: Duration = Duration::from_secs(1);
const TEST_EVERY: Duration = Duration::from_secs(5);
/// Delay before listening again; doubles with each failure up to `RETRY_MAX`.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// Consecutive failures, about ten seconds' worth, before a warning is logged. None is logged while Redis as a whole
/// is lost, which is logged elsewhere.
const FAILURES_TOLD: u32 = 8;

/// Hints of a node over Redis: an outgoing queue and a listener.
pub struct RedisHints {
    outgoing: mpsc::Sender<Hint>,
    ear: Arc<Ear>,
    tasks: [AbortHandle; 2],
}

struct Ear {
    me: Uuid,
    channel: String,
    meters: Arc<Meters>,
    unheard: Mutex<BTreeSet<Hint>>,
    arrived: Notify,
}

impl RedisHints {
    pub(super) fn open(
        servers: Arc<Servers>,
        link: Arc<Link>,
        channel: String,
        meters: Arc<Meters>,
        runtime: &Handle,
    ) -> RedisHints {
        let (outgoing, queue) = mpsc::channel(QUEUE_MAX);
        let (me, unheard, arrived) = (Uuid::new_v4(), Mutex::default(), Notify::new());
        let ear = Arc::new(Ear {
            me,
            channel,
            meters,
            unheard,
            arrived,
        });
        let speaking = runtime.spawn(speak(queue, link, ear.clone()));
        let listening = runtime.spawn(listen(servers, ear.clone()));
        RedisHints {
            outgoing,
            ear,
            tasks: [speaking.abort_handle(), listening.abort_handle()],
        }
    }
}

#[async_trait]
impl Hints for RedisHints {
    fn send(&self, hint: Hint) {
        if self.outgoing.try_send(hint).is_err() {
            self.ear.meters.hinted(HintFate::Dropped, 1);
        }
    }

    async fn heard(&self) -> Vec<Hint> {
        loop {
            if !self.ear.unheard().is_empty() {
                tokio::time::sleep(GATHER).await;
                return std::mem::take(&mut *self.ear.unheard()).into_iter().collect();
            }
            self.ear.arrived.notified().await;
        }
    }
}

impl Drop for RedisHints {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Ear {
    fn unheard(&self) -> MutexGuard<'_, BTreeSet<Hint>> {
        self.unheard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_message(&self, message: &Msg) {
        let Some(said) = hint_text::read(message.get_payload_bytes()) else {
            return self.meters.hinted(HintFate::Unreadable, 1);
        };
        if said.sender == self.me {
            return;
        }
        self.meters.hinted(HintFate::Unreadable, said.unreadable);
        let mut dropped = 0;
        let count = said.hints.len() as u64;
        let mut unheard = self.unheard();
        for hint in said.hints {
            if unheard.len() < QUEUE_MAX {
                unheard.insert(hint);
            } else {
                dropped += 1;
            }
        }
        drop(unheard);
        self.meters.hinted(HintFate::Heard, count - dropped);
        self.meters.hinted(HintFate::Dropped, dropped);
        self.arrived.notify_one();
    }
}

/// Sends queued hints, many per message, until all senders are dropped.
async fn speak(mut queue: mpsc::Receiver<Hint>, link: Arc<Link>, ear: Arc<Ear>) {
    let mut taken = Vec::new();
    while queue.recv_many(&mut taken, HINTS_MAX).await > 0 {
        let count = taken.len() as u64;
        let hints: BTreeSet<Hint> = taken.drain(..).collect();
        let message = hint_text::write(ear.me, hints);
        let sent = link
            .call(Request::Publish {
                channel: ear.channel.clone(),
                message,
            })
            .await;
        ear.meters.hinted(
            if sent.is_ok() {
                HintFate::Sent
            } else {
                HintFate::Dropped
            },
            count,
        );
    }
}

/// Listens forever, reconnecting after each failure.
async fn listen(servers: Arc<Servers>, ear: Arc<Ear>) {
    let (mut failures, mut is_told) = (0_u32, false);
    loop {
        let fault = match subscribe(&servers, &ear).await {
            Ok((sink, stream)) => {
                if std::mem::take(&mut is_told) {
                    tracing::info!("receiving hints of other nodes again");
                }
                failures = 0;
                hear(sink, stream, &ear).await
            }
            Err(fault) => {
                servers.forget();
                fault
            }
        };
        let is_lost = matches!(ear.meters.redis(), Some(Err(_)));
        if failures >= FAILURES_TOLD && !is_lost && !std::mem::replace(&mut is_told, true) {
            tracing::warn!(
                error = %fault,
                "not receiving hints of other nodes; polling finds the same, later"
            );
        }
        tracing::debug!(error = %fault, failures, "hint subscription ended");
        tokio::time::sleep(RETRY_FIRST.saturating_mul(1 << failures.min(8)).min(RETRY_MAX)).await;
        failures = failures.saturating_add(1);
    }
}

async fn subscribe(servers: &Servers, ear: &Ear) -> Result<(PubSubSink, PubSubStream), StoreError> {
    let located = servers.listened_to().await?;
    let subscribing = async {
        let mut connection = located.client.get_async_pubsub().await?;
        connection.subscribe(&ear.channel).await?;
        Ok(connection.split())
    };
    match timeout(LISTEN_LIMIT, subscribing).await {
        Ok(Ok(parts)) => Ok(parts),
        Ok(Err(error)) => Err(explained(&error, &located.whom, Section::CLUSTER)),
        Err(_) => Err(StoreError::Unavailable(
            say::redis(located.whom, say::redis_late()).to_string(),
        )),
    }
}

/// Receives messages until the connection ends or proves dead; returns the cause.
async fn hear(mut sink: PubSubSink, mut stream: PubSubStream, ear: &Ear) -> StoreError {
    loop {
        match timeout(TEST_EVERY, stream.next()).await {
            Ok(Some(message)) => ear.on_message(&message),
            Ok(None) => return StoreError::Unavailable(say::redis_hangup().to_string()),
            Err(_) => match timeout(LISTEN_LIMIT, sink.ping::<redis::Value>()).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    return explained(&error, say::redis_other_end().english(), Section::CLUSTER);
                }
                Err(_) => return StoreError::Unavailable(say::redis_dead().to_string()),
            },
        }
    }
}
