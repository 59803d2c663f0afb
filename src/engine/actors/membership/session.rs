//! Session of the node: one heartbeat row, one write a second however many shards, on a separate thread.
//!
//! It extends the validity that all dispatch gates depend on, and learns here that it was fenced. A fenced session is
//! over: the node drops everything, carries nothing over, and begins a new one.

use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

use ractor::ActorProcessingErr;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::actors::membership::allocator;
use crate::actors::runtime::actor::{Handled, TreeActor};
use crate::actors::runtime::address::{Address, Route};
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::in_time;
use crate::actors::runtime::tree::Activity;
use crate::ports::StoreError;
use crate::ports::handling::meters::Renewal;
use crate::ports::ownership::gate::SessionTrust;
use crate::ports::ownership::session_store::{Heartbeat, NewSession, OwnedShard};
use windrow_core::checkpoint;
use windrow_core::explain::counted;
use windrow_core::ids::{Moment, SessionId};
use windrow_core::shards::trust::Term;

/// Shortest rest between two heartbeats, however often there is news.
const HURRY_REST: Duration = Duration::from_millis(100);

/// Longest time for a session to begin. One whose row may have been written after all belongs to no node and is
/// fenced.
const BEGIN_PATIENCE: Duration = Duration::from_secs(15);

/// Session of this node with its validity.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) id: SessionId,
    pub(crate) trust: Arc<SessionTrust>,
}

/// News from the session to its parent.
pub(crate) enum News {
    /// A new session has begun.
    Begun(Life),
    /// Shards found by a heartbeat sent at this moment; true if people want the node drained.
    Shards(SessionId, Moment, Vec<OwnedShard>, bool),
    Fenced(SessionId),
}

pub(crate) type NewsSink = Arc<dyn Fn(News) + Send + Sync>;

pub(crate) enum Msg {
    Begin,
    /// The advertised state of the node changed.
    Describe {
        draining: bool,
    },
    /// There is news for this session: send a heartbeat soon.
    Hurry,
    Begun(Life, Result<(), StoreError>),
    Beat(SessionId, Moment, Result<Heartbeat, StoreError>),
}

pub(crate) struct Session {
    node: Arc<NodeContext>,
    news: NewsSink,
    me: Address<Msg>,
    life: Option<Life>,
    draining: bool,
    beating: Option<AbortHandle>,
    dealing: Option<AbortHandle>,
    hurry: Arc<Notify>,
}

impl TreeActor for Session {
    type Msg = Msg;
    /// Includes the session that an earlier incarnation of this actor left, if it wasn't fenced: a crash of this
    /// actor doesn't end the node's session.
    type Arguments = (Arc<NodeContext>, NewsSink, Option<Life>, Route<Msg>);

    async fn begin(
        me: Address<Msg>,
        (node, news, life, route): Self::Arguments,
    ) -> Result<Self, ActorProcessingErr> {
        route.lead_to(&me);
        let mut session = Session {
            node,
            news,
            me,
            life: None,
            draining: false,
            beating: None,
            dealing: None,
            hurry: Arc::default(),
        };
        match life.filter(|life| !life.trust.is_fenced()) {
            Some(life) => session.live(life),
            None => session.begin_life(),
        }
        Ok(session)
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Begin => self.begin_life(),
            Msg::Describe { draining } => {
                self.draining = draining;
                self.describe();
            }
            Msg::Hurry => self.hurry.notify_one(),
            Msg::Begun(life, outcome) => self.on_begun(life, outcome),
            Msg::Beat(id, sent, outcome) => self.on_beat(id, sent, outcome),
        }
        Ok(())
    }

    /// Removes the session's row: every run has released its shards by now.
    async fn end(&mut self) {
        self.end_beating();
        let Some(life) = self.life.take() else { return };
        allocator::leave(&self.node, &life).await;
        if let Err(error) = end(&self.node, life.id).await {
            tracing::warn!(
                actor = self.me.leaf.path(),
                %error,
                "session row not deleted; the session will be fenced"
            );
        }
    }
}

impl Session {
    /// Writes the advertised state. A failure is only logged: others see old data until the next change.
    fn describe(&self) {
        let Some(life) = self.life.clone() else { return };
        let (node, draining) = (self.node.clone(), self.draining);
        self.node.vital.spawn(self.me.guard(async move {
            if let Err(error) = node
                .sessions
                .describe(life.id, &node.session_face(draining))
                .await
            {
                tracing::warn!(%error, "advertised state of this node not published");
            }
        }));
    }

    fn begin_life(&mut self) {
        let life = Life {
            id: SessionId(self.node.new_ids.make()),
            trust: Arc::default(),
        };
        let (node, me, draining) = (self.node.clone(), self.me.clone(), self.draining);
        self.node.vital.spawn(self.me.guard(async move {
            let begun = in_time(BEGIN_PATIENCE, say::the_store(), insert(&node, &life, draining)).await;
            me.tell(Msg::Begun(life, begun));
        }));
    }

    fn on_begun(&mut self, life: Life, outcome: Result<(), StoreError>) {
        if let Err(error) = outcome {
            tracing::warn!(actor = self.me.leaf.path(), %error, "session not started; trying again");
            return self.me.tell_after(self.node.times.heartbeat, Msg::Begin);
        }
        self.node.heartbeats.i_am(life.id);
        (self.news)(News::Begun(life.clone()));
        self.live(life);
    }

    fn live(&mut self, life: Life) {
        self.life = Some(life.clone());
        let (node, me, hurry) = (self.node.clone(), self.me.clone(), self.hurry.clone());
        let (dealing_node, dealing_life) = (self.node.clone(), life.clone());
        let allocate = async move { allocator::deal_on(&dealing_node, &dealing_life).await };
        self.dealing = Some(self.node.vital.spawn(self.me.guard(allocate)).abort_handle());
        let beat = async move { beat_on(&node, &life, &me, &hurry).await };
        let beating = self.node.vital.spawn(self.me.guard(beat));
        self.beating = Some(beating.abort_handle());
    }

    fn on_beat(&mut self, id: SessionId, sent: Moment, outcome: Result<Heartbeat, StoreError>) {
        if self.life.as_ref().is_none_or(|life| life.id != id) {
            return;
        }
        match outcome {
            Ok(Heartbeat::Alive { shards, drain }) => {
                self.node.meters.renewed(Renewal::Renewed);
                self.me
                    .leaf
                    .say(Activity::Ok, counted(shards.len() as u64, "shard"));
                (self.news)(News::Shards(id, sent, shards, drain));
            }
            Ok(Heartbeat::Fenced) => {
                self.node.meters.renewed(Renewal::Fenced);
                // A node that is alone with its store is the only one with the state directory.
                let why = if self.node.exclusive {
                    say::was_silent()
                } else {
                    say::taken_by_other()
                };
                tracing::error!(
                    actor = self.me.leaf.path(),
                    "session fenced: {why}; starting a new one"
                );
                self.life = None;
                self.end_beating();
                (self.news)(News::Fenced(id));
                self.begin_life();
            }
            Err(error) => {
                self.node.meters.renewed(Renewal::Failed);
                self.node.meters.not_written(&error, self.node.clock.now());
                self.me.leaf.say(Activity::Backoff, say::heartbeat_missed());
                tracing::warn!(actor = self.me.leaf.path(), %error, "heartbeat not written; lease validity is running out");
            }
        }
    }

    fn end_beating(&mut self) {
        self.beating
            .take()
            .iter()
            .chain(&self.dealing.take())
            .for_each(AbortHandle::abort);
    }
}

/// Ends a session cleanly. Also removes earlier sessions of its node that no shard names: a node that ended cleanly
/// isn't shown as one that died.
async fn end(node: &NodeContext, id: SessionId) -> Result<(), StoreError> {
    node.sessions.end(id).await?;
    let sessions = node.sessions.list().await?;
    for earlier in sessions
        .into_iter()
        .filter(|one| one.fenced && one.node == node.node)
    {
        node.sessions.end(earlier.id).await?;
    }
    Ok(())
}

async fn insert(node: &NodeContext, life: &Life, draining: bool) -> Result<(), StoreError> {
    let session = NewSession {
        id: life.id,
        node: node.node.clone(),
        version: node.version.clone(),
        lease_duration: node.times.lease_ttl,
        ckpt_version_max: checkpoint::VERSION,
        started_at: node.clock.wall(),
        face: node.session_face(draining),
    };
    node.sessions.begin(&session).await?;
    if node.exclusive {
        // The holder of the state directory's lock knows that every older session here is dead.
        node.sessions.fence_all_but(life.id).await?;
    }
    // Valid from the start: a shard offered to a node without a valid session waits for the next scan.
    let sent = node.clock.now();
    if matches!(node.sessions.beat(life.id).await?, Heartbeat::Alive { .. }) {
        life.trust
            .extend(Term::new(node.times.lease_ttl).trusted_until(sent));
    }
    Ok(())
}

/// Sends heartbeats until the session is fenced. Validity counts from the time a heartbeat was sent, never from its
/// answer.
async fn beat_on(node: &NodeContext, life: &Life, me: &Address<Msg>, hurry: &Notify) {
    loop {
        let sent = node.clock.now();
        let patience = node.times.lease_ttl / 3;
        let outcome = in_time(patience, say::the_store(), node.sessions.beat(life.id)).await;
        let fenced = matches!(outcome, Ok(Heartbeat::Fenced));
        match &outcome {
            Ok(Heartbeat::Alive { .. }) => {
                life.trust
                    .extend(Term::new(node.times.lease_ttl).trusted_until(sent));
            }
            Ok(Heartbeat::Fenced) => life.trust.fence(),
            Err(_) => {}
        }
        if !me.tell(Msg::Beat(life.id, sent, outcome)) || fenced {
            return;
        }
        let waited = node.clock.now().since(sent);
        let rest = node
            .times
            .heartbeat
            .saturating_sub(waited)
            .max(Duration::from_millis(1));
        let must_rest = rest.min(HURRY_REST);
        tokio::time::sleep(must_rest).await;
        // Either is a reason for a heartbeat: the time, or a notice that there is news.
        tokio::time::timeout(rest - must_rest, hurry.notified())
            .await
            .ok();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end_beating();
    }
}
