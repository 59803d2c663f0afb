//! Does the lease I/O for all shards in few round trips, on the vital runtime.
//!
//! One trip at a time; what is asked meanwhile goes into the next. Without a lease store (database only) the
//! session's heartbeat is the only witness: a lease is then granted without any trust of its own.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::task::JoinHandle;

use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::policy::Kind;
use crate::actors::runtime::tree::{Activity, Address, Leaf, Line};
use crate::ports::StoreError;
use crate::ports::ownership::gate::SessionTrust;
use crate::ports::ownership::lease_store::{LeaseKey, LeaseReply};
use windrow_core::ids::Moment;

/// What was found out about one lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseAnswer {
    /// The lease store answered a request that was sent at this moment.
    Said(LeaseReply, Moment),
    /// There is no lease store: the session is the witness.
    SessionOnly,
    /// Nothing is known.
    Unknown(StoreError),
}

/// Who hears the answer.
pub(crate) type AnswerSink = Box<dyn FnOnce(LeaseAnswer) + Send>;

#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    Acquire,
    /// Extend; set an absent one again only where this session is trusted when the request is sent (decision 0020,
    /// rule 8).
    Renew(Arc<SessionTrust>),
    Release,
}

/// Questions of one kind go in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kindred {
    Acquire,
    Renew { reassert: bool },
    Release,
}

impl Wanted {
    /// What is asked in a request that is sent now.
    fn kindred(&self, now: Moment) -> Kindred {
        match self {
            Wanted::Acquire => Kindred::Acquire,
            Wanted::Renew(session) => Kindred::Renew {
                reassert: session.until() > now,
            },
            Wanted::Release => Kindred::Release,
        }
    }
}

pub(crate) enum Msg {
    Ask {
        key: LeaseKey,
        wanted: Wanted,
        answer: AnswerSink,
    },
    TripDone,
}

struct Question {
    key: LeaseKey,
    wanted: Wanted,
    answer: AnswerSink,
}

pub(crate) struct State {
    node: Arc<NodeContext>,
    me: Address<Msg>,
    leaf: Leaf,
    waiting: Vec<Question>,
    on_trip: Option<JoinHandle<()>>,
}

pub(crate) struct LeaseKeeper;

impl Actor for LeaseKeeper {
    type Msg = Msg;
    type State = State;
    type Arguments = (Arc<NodeContext>, Line<Msg>);

    async fn pre_start(
        &self,
        me: ActorRef<Msg>,
        (node, line): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let leaf = node
            .tree
            .enter(&format!("{}/lease-keeper", node.node), Kind::LeaseKeeper);
        let me = Address::new(me, leaf.clone());
        line.plug(me.clone());
        Ok(State {
            node,
            me,
            leaf,
            waiting: Vec::new(),
            on_trip: None,
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
            Msg::Ask { key, wanted, answer } => state.waiting.push(Question { key, wanted, answer }),
            Msg::TripDone => state.on_trip = None,
        }
        state.travel();
        Ok(())
    }

    /// What the last runs gave back is told, or who takes their shards would wait until the leases run out.
    async fn post_stop(&self, _: ActorRef<Msg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        state.finish().await;
        state.leaf.leave();
        Ok(())
    }
}

impl State {
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
        self.leaf
            .say(Activity::Ok, format!("{} leases on a trip", questions.len()));
        let (node, me) = (self.node.clone(), self.me.clone());
        self.on_trip = Some(self.node.vital.spawn(self.me.guard(async move {
            trip(&node, questions).await;
            me.tell(Msg::TripDone);
        })));
    }

    async fn finish(&mut self) {
        if let Some(trip) = self.on_trip.take() {
            // A panic of its own has been told.
            trip.await.ok();
        }
        let mut last = std::mem::take(&mut self.waiting);
        last.retain(|question| matches!(question.wanted, Wanted::Release));
        trip(&self.node, last).await;
    }
}

/// One round trip for each kind of question; what keeps runs alive goes first.
async fn trip(node: &NodeContext, questions: Vec<Question>) {
    let (renewals, others): (Vec<_>, Vec<_>) = questions
        .into_iter()
        .partition(|question| matches!(question.wanted, Wanted::Renew(_)));
    let (releases, acquisitions): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|question| matches!(question.wanted, Wanted::Release));
    for some in [renewals, releases, acquisitions] {
        let mut left = some;
        // Whether a session is trusted is seen right before each request, which may have waited for the one before.
        while let Some(first) = left.first() {
            let now = node.clock.now();
            let kindred = first.wanted.kindred(now);
            let (asked, others) = left
                .into_iter()
                .partition(|question| question.wanted.kindred(now) == kindred);
            left = others;
            ask(node, kindred, asked).await;
        }
    }
}

async fn ask(node: &NodeContext, wanted: Kindred, questions: Vec<Question>) {
    let Some(leases) = &node.leases else { return };
    let keys: Vec<LeaseKey> = questions.iter().map(|question| question.key).collect();
    let ttl = node.times.lease_ttl;
    let sent = node.clock.now();
    let trip = async {
        match wanted {
            Kindred::Acquire => leases.acquire(&keys, ttl).await,
            Kindred::Renew { reassert } => leases.renew(&keys, ttl, reassert).await,
            Kindred::Release => leases
                .release(&keys)
                .await
                .map(|()| vec![LeaseReply::Absent; keys.len()]),
        }
    };
    // Much shorter than the renewal interval, so that one hanging trip does not cost the next.
    let replies = tokio::time::timeout(node.times.lease_renew.min(Duration::from_secs(1)), trip)
        .await
        .unwrap_or_else(|_| {
            Err(StoreError::Unavailable(
                "the lease store did not answer in time".into(),
            ))
        });
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

impl Drop for State {
    fn drop(&mut self) {
        self.leaf.leave();
    }
}
