//! Delivers hook calls from the outbox: takes what is due, a few at a time, and looks again when told and each second.
//!
//! It decides nothing and holds nothing: a call that is out when it dies is due again half a minute later.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::lines::Lines;
use crate::actors::runtime::policy::Kind;
use crate::actors::runtime::tree::{Activity, Address, Leaf};
use crate::actors::upkeep::delivery::Delivering;
use crate::actors::writers::data_log_writer::LogQueue;
use crate::ports::StoreError;
use crate::ports::handling::outbox::Delivery;

/// Calls that are out at the same time, at most.
const OUT_MAX: u32 = 16;
/// How often it looks without being told.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// For how long a taken call is nobody else's.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// What is taken by a question that was given up is due again after its lease.
const TAKE_PATIENCE: Duration = Duration::from_secs(10);

pub(crate) enum Msg {
    /// Look now: something may have left a call.
    Wake,
    Tick,
    Taken(Result<Vec<Delivery>, StoreError>),
    Delivered,
}

pub(crate) struct State {
    node: Arc<NodeContext>,
    me: Address<Msg>,
    leaf: Leaf,
    delivering: Option<Arc<Delivering>>,
    out: u32,
    taking: bool,
    again: bool,
}

pub(crate) struct Courier;

impl Actor for Courier {
    type Msg = Msg;
    type State = State;
    type Arguments = (Arc<NodeContext>, LogQueue, Lines);

    async fn pre_start(
        &self,
        me: ActorRef<Msg>,
        (node, logs, lines): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let leaf = node.tree.enter(&format!("{}/courier", node.node), Kind::Courier);
        let me = Address::new(me, leaf.clone());
        lines.courier.plug(me.clone());
        let delivering = node.hooks.clone().map(|hooks| {
            Arc::new(Delivering {
                node: node.clone(),
                hooks,
                logs: logs.sink(),
                restorer: lines.restorer,
            })
        });
        if delivering.is_some() {
            me.tell(Msg::Tick);
        } else {
            leaf.say(Activity::Ok, "no hooks here");
        }
        Ok(State {
            node,
            me,
            leaf,
            delivering,
            out: 0,
            taking: false,
            again: false,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<Msg>,
        message: Msg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.leaf.handled();
        match message {
            Msg::Wake => state.take(),
            Msg::Tick => {
                state.take();
                state.me.tell_after(LOOK_EVERY, Msg::Tick);
            }
            Msg::Taken(taken) => state.on_taken(taken),
            Msg::Delivered => {
                state.out = state.out.saturating_sub(1);
                if state.again {
                    state.take();
                }
            }
        }
        let text = format!("{} out", state.out);
        if state.delivering.is_some() {
            state.leaf.say(Activity::Ok, text);
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<Msg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        state.leaf.leave();
        Ok(())
    }
}

impl State {
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
            let late = || StoreError::Unavailable("the store did not answer in time".into());
            let taken = tokio::time::timeout(TAKE_PATIENCE, taking).await;
            me.tell(Msg::Taken(taken.unwrap_or_else(|_| Err(late()))));
        }));
    }

    fn on_taken(&mut self, taken: Result<Vec<Delivery>, StoreError>) {
        self.taking = false;
        let (Some(delivering), Ok(deliveries)) = (&self.delivering, &taken) else {
            if let Err(error) = taken {
                tracing::warn!(actor = self.leaf.path(), %error, "hook calls not read; trying again");
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
        // There may be more than fitted; and somebody may have asked meanwhile.
        if !deliveries.is_empty() || self.again {
            self.take();
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.leaf.leave();
    }
}
