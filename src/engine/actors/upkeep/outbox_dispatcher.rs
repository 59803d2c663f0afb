//! Delivery of hook calls and notices from the outbox: takes calls that are due, a few at a time, and polls again when woken and
//! each second.
//!
//! It decides nothing and holds nothing: a call in flight when it dies is due again half a minute later.

use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

use ractor::ActorProcessingErr;

use crate::actors::runtime::actor::{Handled, TreeActor};
use crate::actors::runtime::address::Address;
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::in_time;
use crate::actors::runtime::routes::Routes;
use crate::actors::runtime::tree::Activity;
use crate::actors::upkeep::delivery::Delivering;
use crate::actors::writers::data_log_writer::LogQueue;
use crate::ports::StoreError;
use crate::ports::handling::outbox::Delivery;

/// Maximum number of calls in flight at the same time.
const OUT_MAX: u32 = 16;
/// Polling interval without a wake-up.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time for which a taken call belongs to this node.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// Longest wait for a query that takes calls; calls taken by a late one are due again after their lease.
const TAKE_PATIENCE: Duration = Duration::from_secs(10);

pub(crate) enum Msg {
    /// Poll now: there may be a new call.
    Wake,
    Tick,
    Taken(Result<Vec<Delivery>, StoreError>),
    Delivered,
}

pub(crate) struct OutboxDispatcher {
    node: Arc<NodeContext>,
    me: Address<Msg>,
    delivering: Option<Arc<Delivering>>,
    out: u32,
    taking: bool,
    again: bool,
}

impl TreeActor for OutboxDispatcher {
    type Msg = Msg;
    type Arguments = (Arc<NodeContext>, LogQueue, Routes);

    async fn begin(
        me: Address<Msg>,
        (node, logs, routes): Self::Arguments,
    ) -> Result<Self, ActorProcessingErr> {
        routes.outbox_dispatcher.lead_to(&me);
        let delivering = node.hooks.clone().map(|hooks| {
            Arc::new(Delivering {
                node: node.clone(),
                hooks,
                logs: logs.sink(),
                restorer: routes.restorer,
            })
        });
        if delivering.is_some() {
            me.tell(Msg::Tick);
        } else {
            me.leaf.say(Activity::Ok, say::no_hooks());
        }
        Ok(OutboxDispatcher {
            node,
            me,
            delivering,
            out: 0,
            taking: false,
            again: false,
        })
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Wake => self.take(),
            Msg::Tick => {
                self.take();
                self.me.tell_after(LOOK_EVERY, Msg::Tick);
            }
            Msg::Taken(taken) => self.on_taken(taken),
            Msg::Delivered => {
                self.out = self.out.saturating_sub(1);
                if self.again {
                    self.take();
                }
            }
        }
        let text = format!("{} out", self.out);
        if self.delivering.is_some() {
            self.me.leaf.say(Activity::Ok, text);
        }
        Ok(())
    }
}

impl OutboxDispatcher {
    fn take(&mut self) {
        let Some(delivering) = &self.delivering else {
            return;
        };
        let room = OUT_MAX - self.out.min(OUT_MAX);
        if self.taking || room == 0 {
            self.again = true;
            return;
        }
        (self.taking, self.again) = (true, false);
        let (node, me, delivering) = (self.node.clone(), self.me.clone(), delivering.clone());
        tokio::spawn(self.me.guard(async move {
            let now = node.clock.wall();
            let taking = delivering.hooks.outbox.take_due(now, now.plus(LEASE), room);
            me.tell(Msg::Taken(in_time(TAKE_PATIENCE, say::the_store(), taking).await));
        }));
    }

    fn on_taken(&mut self, taken: Result<Vec<Delivery>, StoreError>) {
        self.taking = false;
        let (Some(delivering), Ok(deliveries)) = (&self.delivering, &taken) else {
            if let Err(error) = taken {
                tracing::warn!(actor = self.me.leaf.path(), %error, "hook calls not read; trying again");
            }
            return;
        };
        for delivery in deliveries {
            self.out += 1;
            let (delivering, me, delivery) = (delivering.clone(), self.me.clone(), delivery.clone());
            tokio::spawn(self.me.guard(async move {
                delivering.deliver(delivery).await;
                me.tell(Msg::Delivered);
            }));
        }
        // There may be more than fitted, and a wake-up may have come meanwhile.
        if !deliveries.is_empty() || self.again {
            self.take();
        }
    }
}
