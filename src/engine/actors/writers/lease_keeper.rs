//! Lease I/O for all shards in few round trips, on the vital runtime.
//!
//! One trip at a time; requests that arrive meanwhile go into the next. Without a lease store (database only) the
//! session's heartbeat is the only witness: a lease is then granted without any validity of its own.

use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

use ractor::ActorProcessingErr;
use tokio::task::JoinHandle;

use crate::actors::runtime::actor::{Handled, TreeActor};
use crate::actors::runtime::address::{Address, Route};
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::in_time;
use crate::actors::runtime::tree::Activity;
use crate::ports::StoreError;
use crate::ports::ownership::gate::SessionTrust;
use crate::ports::ownership::lease_store::{LeaseKey, LeaseReply};
use windrow_core::ids::Moment;

/// Result of a request for one lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseAnswer {
    /// The lease store answered a request that was sent at this moment.
    Said(LeaseReply, Moment),
    /// There is no lease store: the session is the witness.
    SessionOnly,
    Unknown(StoreError),
}

pub(crate) type AnswerSink = Box<dyn FnOnce(LeaseAnswer) + Send>;

#[derive(Clone, Debug)]
pub(crate) enum LeaseRequest {
    Acquire,
    /// Extend the lease; set an absent one again only if this session is valid when the request is sent (decision
    /// 0020, rule 8).
    Renew(Arc<SessionTrust>),
    Release,
}

/// Kind of a lease request; questions of one kind go in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    Acquire,
    Renew { reassert: bool },
    Release,
}

impl LeaseRequest {
    /// Returns the kind of request to send now.
    fn kind(&self, now: Moment) -> RequestKind {
        match self {
            LeaseRequest::Acquire => RequestKind::Acquire,
            LeaseRequest::Renew(session) => RequestKind::Renew {
                reassert: session.until() > now,
            },
            LeaseRequest::Release => RequestKind::Release,
        }
    }
}

pub(crate) enum Msg {
    Ask(Question),
    TripDone,
}

/// Request for one lease, with the callback for its result.
pub(crate) struct Question {
    pub(crate) key: LeaseKey,
    pub(crate) wanted: LeaseRequest,
    pub(crate) answer: AnswerSink,
}

pub(crate) struct LeaseKeeper {
    node: Arc<NodeContext>,
    me: Address<Msg>,
    waiting: Vec<Question>,
    on_trip: Option<JoinHandle<()>>,
}

impl TreeActor for LeaseKeeper {
    type Msg = Msg;
    type Arguments = (Arc<NodeContext>, Route<Msg>);

    async fn begin(me: Address<Msg>, (node, route): Self::Arguments) -> Result<Self, ActorProcessingErr> {
        route.lead_to(&me);
        let (waiting, on_trip) = (Vec::new(), None);
        Ok(LeaseKeeper {
            node,
            me,
            waiting,
            on_trip,
        })
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Ask(question) => self.waiting.push(question),
            Msg::TripDone => self.on_trip = None,
        }
        self.travel();
        Ok(())
    }

    /// Sends the releases of the last runs; otherwise the next owners would wait until the leases expire.
    async fn end(&mut self) {
        if let Some(trip) = self.on_trip.take() {
            // A panic in the trip was logged already.
            trip.await.ok();
        }
        let mut last = std::mem::take(&mut self.waiting);
        last.retain(|question| matches!(question.wanted, LeaseRequest::Release));
        trip(&self.node, last).await;
    }
}

impl LeaseKeeper {
    fn travel(&mut self) {
        if self.on_trip.is_some() || self.waiting.is_empty() {
            return;
        }
        let questions = std::mem::take(&mut self.waiting);
        if self.node.leases.is_none() {
            questions
                .into_iter()
                .for_each(|question| (question.answer)(LeaseAnswer::SessionOnly));
            return;
        }
        self.me.leaf.say(Activity::Ok, say::leases_asked(questions.len()));
        let (node, me) = (self.node.clone(), self.me.clone());
        self.on_trip = Some(self.node.vital.spawn(self.me.guard(async move {
            trip(&node, questions).await;
            me.tell(Msg::TripDone);
        })));
    }
}

/// Makes one round trip per kind of question. Renewals go first, since they keep runs alive.
async fn trip(node: &NodeContext, questions: Vec<Question>) {
    let (renewals, others): (Vec<_>, Vec<_>) = questions
        .into_iter()
        .partition(|question| matches!(question.wanted, LeaseRequest::Renew(_)));
    let (releases, acquisitions): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|question| matches!(question.wanted, LeaseRequest::Release));
    for some in [renewals, releases, acquisitions] {
        let mut left = some;
        // The session's validity is checked right before each request, which may have waited for the one before.
        while let Some(first) = left.first() {
            let now = node.clock.now();
            let kind = first.wanted.kind(now);
            let (asked, others) = left
                .into_iter()
                .partition(|question| question.wanted.kind(now) == kind);
            left = others;
            ask(node, kind, asked).await;
        }
    }
}

async fn ask(node: &NodeContext, wanted: RequestKind, questions: Vec<Question>) {
    let Some(leases) = &node.leases else { return };
    let keys: Vec<LeaseKey> = questions.iter().map(|question| question.key).collect();
    let ttl = node.times.lease_ttl;
    let sent = node.clock.now();
    let trip = async {
        match wanted {
            RequestKind::Acquire => leases.acquire(&keys, ttl).await,
            RequestKind::Renew { reassert } => leases.renew(&keys, ttl, reassert).await,
            RequestKind::Release => leases
                .release(&keys)
                .await
                .map(|()| vec![LeaseReply::Absent; keys.len()]),
        }
    };
    // Much shorter than the renewal interval, so that one hanging trip does not cost the next.
    let patience = node.times.lease_renew.min(Duration::from_secs(1));
    let replies = in_time(patience, say::the_lease_store(), trip).await;
    match replies {
        Ok(replies) => questions
            .into_iter()
            .zip(replies)
            .for_each(|(question, reply)| (question.answer)(LeaseAnswer::Said(reply, sent))),
        Err(error) => {
            questions
                .into_iter()
                .for_each(|question| (question.answer)(LeaseAnswer::Unknown(error.clone())));
        }
    }
}
