//! Drains: at the node's end, and because people wish that it stands by. Each shard is released as soon as its own run
//! has drained; what takes too long is aborted.

use super::launcher;
use super::supervisor::{Msg, State};

/// What people want of this node beside its tasks.
#[derive(Debug, Default)]
pub(super) struct Standby {
    /// It owns nothing and takes nothing, until they want it back.
    wished: bool,
    /// The number of the last drain: the end of an older one means nothing.
    drains: u64,
}

impl State {
    /// Whether it takes no shard: it ends, or stands by.
    pub(super) fn takes_nothing(&self) -> bool {
        self.draining.is_some() || self.standby.wished
    }

    /// What the heartbeat read of people's wish.
    pub(super) fn on_drain_wish(&mut self, wished: bool) {
        if wished == self.standby.wished {
            return;
        }
        self.standby.wished = wished;
        if wished {
            tracing::info!(
                node = self.node.node,
                "the node is to be drained: it hands over and takes nothing new"
            );
            self.hand_everything_over();
        } else {
            tracing::info!(node = self.node.node, "the node takes work again");
            self.standby.drains += 1;
            self.show_face();
            self.look_for_work();
        }
    }

    pub(super) fn hand_everything_over(&mut self) {
        self.standby.drains += 1;
        self.show_face();
        self.give_up_starting();
        self.runs.tell_all(|| launcher::Msg::HandOver);
        self.me.tell_after(self.node.times.drain_timeout, Msg::DrainOver(self.standby.drains));
    }

    pub(super) fn on_drain_over(&self, drain: u64) {
        if self.draining.is_some() || drain == self.standby.drains {
            self.runs.tell_all(|| launcher::Msg::Abort);
        }
    }
}
