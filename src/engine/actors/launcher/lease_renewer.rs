//! Guard of one run's lease validity: renews its lease, extends its dispatch gate, and ends the run when the lease is
//! lost.
//!
//! The validity decays in the gate, by time alone: if this actor dies, dispatch stops when it runs out.

use std::sync::Arc;
use windrow_words::engine as say;

use ractor::ActorProcessingErr;

use crate::actors::launcher::takeover;
use crate::actors::runtime::actor::{Handled, TreeActor};
use crate::actors::runtime::address::{Address, Route};
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::tree::Activity;
use crate::actors::writers::lease_keeper::{self, LeaseAnswer, LeaseRequest, Question};
use crate::ports::ownership::gate::{Gate, SessionTrust};
use crate::ports::ownership::lease_store::{LeaseKey, LeaseReply};
use windrow_core::ids::ClaimId;
use windrow_core::shards::trust::Term;

pub(crate) enum Msg {
    Renew,
    /// Answer about the lease under this token.
    Answered(ClaimId, LeaseAnswer),
}

pub(crate) struct Arguments {
    pub(crate) node: Arc<NodeContext>,
    pub(crate) key: LeaseKey,
    pub(crate) gate: Arc<Gate>,
    pub(crate) session: Arc<SessionTrust>,
    pub(crate) keeper: Route<lease_keeper::Msg>,
    /// Called once, when someone else holds the lease.
    pub(crate) on_lost: Arc<dyn Fn(()) + Send + Sync>,
}

pub(crate) struct LeaseRenewer {
    arguments: Arguments,
    /// Lease with its current token. The first token is the claim's.
    key: LeaseKey,
    is_given_back: bool,
    /// Set while the last request went unanswered, so that an outage is logged once.
    is_unanswered: bool,
    me: Address<Msg>,
}

impl TreeActor for LeaseRenewer {
    type Msg = Msg;
    type Arguments = Arguments;

    async fn begin(me: Address<Msg>, arguments: Arguments) -> Result<Self, ActorProcessingErr> {
        me.tell(Msg::Renew);
        let key = arguments.key;
        Ok(LeaseRenewer {
            arguments,
            key,
            is_given_back: false,
            is_unanswered: false,
            me,
        })
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Renew => self.renew(),
            // From before the lease was given back.
            Msg::Answered(token, _) if token != self.key.claim => {}
            Msg::Answered(_, answer) => {
                if self.on_answer(&answer) {
                    self.me.actor().stop(Some("lease lost".into()));
                }
            }
        }
        Ok(())
    }

    async fn end(&mut self) {
        if self.key != self.arguments.key {
            // The launcher gives back only the lease that it knows of.
            takeover::give_lease_back(self.key, &self.arguments.keeper);
        }
    }
}

impl LeaseRenewer {
    fn renew(&mut self) {
        let Arguments {
            node,
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
        self.me.tell_after(node.times.lease_renew, Msg::Renew);
        let wanted = if gate.is_lease_spent(now) {
            // This run may do nothing any more, so it must not keep others from the shard.
            gate.forget_lease();
            self.is_given_back = true;
            LeaseRequest::Release
        } else if left.is_zero() {
            // The lease expires on its own. Released early, it would be free before an owner whose heartbeat was lost
            // in a failover stops.
            return;
        } else {
            // A heartbeat revives the lease under another token: the release of the old one may still be in transit.
            if std::mem::take(&mut self.is_given_back) {
                self.key.claim = ClaimId(node.new_ids.make());
            }
            LeaseRequest::Renew(session.clone())
        };
        let (me, key) = (self.me.clone(), self.key);
        let answer = Box::new(move |answer| {
            me.tell(Msg::Answered(key.claim, answer));
        });
        keeper.tell(lease_keeper::Msg::Ask(Question { key, wanted, answer }));
    }

    /// Handles an answer. Returns true if the lease is lost.
    fn on_answer(&mut self, answer: &LeaseAnswer) -> bool {
        self.tell_outage(answer);
        let Arguments {
            node, gate, on_lost, ..
        } = &self.arguments;
        match answer {
            LeaseAnswer::Said(LeaseReply::Held, sent) => {
                let until = Term::new(node.times.lease_ttl).trusted_until(*sent);
                if !gate.extend_lease(until, node.clock.now()) {
                    self.me.leaf.say(Activity::Backoff, say::lease_expired());
                }
                false
            }
            LeaseAnswer::Said(LeaseReply::Lost, _) => {
                gate.close();
                on_lost(());
                true
            }
            LeaseAnswer::Said(LeaseReply::Absent, _) | LeaseAnswer::SessionOnly | LeaseAnswer::Unknown(_) => {
                false
            }
        }
    }

    /// Logs once that the lease isn't renewed, and once that it is again.
    fn tell_outage(&mut self, answer: &LeaseAnswer) {
        let path = self.me.leaf.path();
        let was = std::mem::replace(&mut self.is_unanswered, matches!(answer, LeaseAnswer::Unknown(_)));
        match answer {
            LeaseAnswer::Unknown(error) if was => tracing::debug!(actor = path, %error, "lease not renewed"),
            LeaseAnswer::Unknown(error) => {
                tracing::warn!(
                    actor = path,
                    %error,
                    "lease not renewed; it will expire unless renewed in time"
                );
            }
            _ if was => tracing::info!(actor = path, "lease renewed again"),
            _ => {}
        }
    }
}
