//! Guards the trust of one run: renews its lease, extends its gate, and ends the run when the lease is lost.
//!
//! Trust itself decays in the gate, by time alone: if this actor dies, dispatch stops when trust runs out.

use std::sync::Arc;

use ractor::ActorProcessingErr;

use crate::actors::runtime::actor::{Handled, TreeActor};
use crate::actors::runtime::address::{Address, Route};
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::tree::Activity;
use crate::actors::writers::lease_keeper::{self, LeaseAnswer, LeaseRequest, Question};
use crate::ports::ownership::gate::{Gate, SessionTrust};
use crate::ports::ownership::lease_store::{LeaseKey, LeaseReply};
use windrow_core::shards::trust::Term;

pub(crate) enum Msg {
    Renew,
    Answered(LeaseAnswer),
}

pub(crate) struct Arguments {
    pub(crate) node: Arc<NodeContext>,
    pub(crate) key: LeaseKey,
    pub(crate) gate: Arc<Gate>,
    pub(crate) session: Arc<SessionTrust>,
    pub(crate) keeper: Route<lease_keeper::Msg>,
    /// Called once, when the lease is someone else's.
    pub(crate) on_lost: Arc<dyn Fn(()) + Send + Sync>,
}

pub(crate) struct LeaseRenewer {
    arguments: Arguments,
    me: Address<Msg>,
}

impl TreeActor for LeaseRenewer {
    type Msg = Msg;
    type Arguments = Arguments;

    async fn begin(me: Address<Msg>, arguments: Arguments) -> Result<Self, ActorProcessingErr> {
        me.tell(Msg::Renew);
        Ok(LeaseRenewer { arguments, me })
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Renew => self.renew(),
            Msg::Answered(answer) => {
                if self.on_answer(&answer) {
                    self.me.actor().stop(Some("lease lost".into()));
                }
            }
        }
        Ok(())
    }
}

impl LeaseRenewer {
    fn renew(&mut self) {
        let Arguments {
            node,
            key,
            session,
            keeper,
            gate,
            ..
        } = &self.arguments;
        let now = node.clock.now();
        let left = gate.trusted_until().since(now);
        self.me
            .leaf
            .say(Activity::Ok, format!("{:.1} s left", left.as_secs_f64()));
        let me = self.me.clone();
        let answer = Box::new(move |answer| {
            me.tell(Msg::Answered(answer));
        });
        // Whoever may do nothing any more keeps nobody else from it. A heartbeat sets the lease anew, unless it is gone.
        let wanted = if left.is_zero() {
            LeaseRequest::Release
        } else {
            LeaseRequest::Renew(session.clone())
        };
        let key = *key;
        keeper.tell(lease_keeper::Msg::Ask(Question { key, wanted, answer }));
        self.me.tell_after(node.times.lease_renew, Msg::Renew);
    }

    /// Says whether the lease is lost.
    fn on_answer(&mut self, answer: &LeaseAnswer) -> bool {
        let Arguments {
            node, gate, on_lost, ..
        } = &self.arguments;
        match answer {
            LeaseAnswer::Said(LeaseReply::Held, sent) => {
                let until = Term::new(node.times.lease_ttl).trusted_until(*sent);
                if !gate.extend_lease(until, node.clock.now()) {
                    self.me
                        .leaf
                        .say(Activity::Backoff, "trust is over; only a heartbeat revives it");
                }
                false
            }
            LeaseAnswer::Said(LeaseReply::Lost, _) => {
                gate.close();
                on_lost(());
                true
            }
            LeaseAnswer::Said(LeaseReply::Absent, _) | LeaseAnswer::SessionOnly => false,
            LeaseAnswer::Unknown(error) => {
                tracing::warn!(actor = self.me.leaf.path(), %error, "lease not renewed; trust decays");
                false
            }
        }
    }
}
