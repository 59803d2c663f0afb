//! Drains: when the node ends, and when people want it to stand by. Each shard is released once its own run has
//! drained; runs that take too long are aborted. If the node ends and its store is silent, nothing can be given back,
//! and nothing done from then on will count: the node ends with its last lease.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::actors::launcher;
use crate::actors::supervisor::{Msg, Supervisor};
use windrow_core::ids::ShardId;

/// Longest time for the last checkpoints of aborted runs.
const GIVE_BACK_PATIENCE: Duration = Duration::from_secs(5);

/// Drain state of the node: whether it ends, or is to stand by.
#[derive(Debug, Default)]
pub(crate) struct Drains {
    /// Set while the node ends: the channels that wait for it.
    ending: Option<Vec<oneshot::Sender<Vec<ShardId>>>>,
    /// Set when the node ends without its store.
    gave_up: bool,
    /// Set while people want the node to own nothing and take nothing.
    requested: bool,
    /// Number of the last drain; the end of an older one is ignored.
    count: u64,
}

impl Supervisor {
    /// True if the node takes no shard, since it ends or stands by.
    pub(crate) fn takes_nothing(&self) -> bool {
        self.drains.ending.is_some() || self.drains.requested
    }

    pub(crate) fn drain(&mut self, done: oneshot::Sender<Vec<ShardId>>) {
        let is_first = self.drains.ending.is_none();
        self.drains.ending.get_or_insert_default().push(done);
        if is_first {
            self.hand_everything_over();
            self.me.tell_after(self.node.times.lease_ttl, Msg::LeaseOver);
        }
        if self.runs.is_empty() {
            self.me.actor().stop(Some("drained".into()));
        }
    }

    /// True if the node ends and everything was handed over.
    pub(crate) fn is_over(&self) -> bool {
        self.drains.ending.is_some() && self.runs.is_empty()
    }

    /// Applies the drain requested by people, as read by the heartbeat.
    pub(crate) fn on_drain_request(&mut self, requested: bool) {
        if requested == self.drains.requested {
            return;
        }
        self.drains.requested = requested;
        if self.drains.ending.is_some() {
            // The drain of a node that ends has its own time.
            return;
        }
        if requested {
            tracing::info!(
                node = self.node.node,
                "draining the node: it hands its tasks over and accepts no new ones"
            );
            self.hand_everything_over();
        } else {
            tracing::info!(node = self.node.node, "node accepts work again");
            self.drains.count += 1;
            self.show_face();
            self.look_for_work();
        }
    }

    pub(crate) fn hand_everything_over(&mut self) {
        self.drains.count += 1;
        self.show_face();
        self.give_up_starting();
        self.runs.tell_all(|| launcher::Msg::HandOver);
        self.me
            .tell_after(self.node.times.drain_timeout, Msg::DrainOver(self.drains.count));
    }

    pub(crate) fn on_drain_over(&self, drain: u64) {
        if drain != self.drains.count {
            return;
        }
        self.runs.tell_all(|| launcher::Msg::Abort);
        if self.drains.ending.is_some() {
            let is_hopeless = self.is_cut_off();
            let patience = if is_hopeless {
                Duration::ZERO
            } else {
                GIVE_BACK_PATIENCE
            };
            self.me.tell_after(patience, Msg::GiveUp);
        }
    }

    /// Called a lease lifetime after the node began to end: shards not given back to a silent store by now won't be.
    pub(crate) fn on_lease_over(&mut self) {
        if self.is_cut_off() {
            self.runs.tell_all(|| launcher::Msg::Abort);
            self.give_up();
        }
    }

    /// True if the store has answered no heartbeat for as long as one is valid.
    fn is_cut_off(&self) -> bool {
        let now = self.node.clock.now();
        self.life.as_ref().is_none_or(|life| life.trust.until() <= now)
    }

    /// True if children that end have no store to write to.
    pub(crate) fn ends_alone(&self) -> bool {
        self.drains.gave_up || self.is_cut_off()
    }

    /// Ends the runs that can't be given back, since the store doesn't answer.
    pub(crate) fn give_up(&mut self) {
        let left: Vec<ShardId> = self.runs.shards().collect();
        let Some(waiting) = self.drains.ending.as_mut().filter(|_| !left.is_empty()) else {
            return;
        };
        self.drains.gave_up = true;
        for done in waiting.drain(..) {
            if done.send(left.clone()).is_err() {
                tracing::debug!("drain ended; no one waits for it");
            }
        }
        self.runs.tell_all(|| launcher::Msg::GiveUp);
    }
}
