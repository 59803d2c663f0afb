//! Finds runnable shards without a live owner and offers them to the supervisor.
//!
//! It watches the heartbeats of all sessions on its own clock: one that stayed silent for its owner's time is fenced
//! first (where the heartbeat is still the silent one), then its shards are offered. It never claims.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use uuid::Uuid;

use super::context::NodeContext;
use super::policy::Kind;
use super::tree::{Activity, Address, Leaf, Line};
use crate::domain::ids::{Moment, SessionId};
use crate::domain::trust::SilenceWatch;
use crate::ports::StoreError;
use crate::ports::run_store::Candidate;
use crate::ports::session_store::SessionView;

/// Shards of one offer; what is left is found by the next scan.
const OFFER_MAX: u32 = 200;

/// Where offers go.
pub(crate) type OfferSink = Arc<dyn Fn(Vec<Candidate>) + Send + Sync>;

pub(crate) enum Msg {
    /// Look now: something ended, started, or was freed.
    Wake,
    Scan,
    Scanned(Box<Scan>),
}

/// What one scan found.
pub(crate) struct Scan {
    sessions: Result<(Vec<SessionView>, Moment), StoreError>,
    candidates: Result<Vec<Candidate>, StoreError>,
}

pub(crate) struct State {
    node: Arc<NodeContext>,
    offer: OfferSink,
    me: Address<Msg>,
    leaf: Leaf,
    watch: SilenceWatch,
    scanning: bool,
    again: bool,
}

pub(crate) struct Restorer;

impl Actor for Restorer {
    type Msg = Msg;
    type State = State;
    type Arguments = (Arc<NodeContext>, OfferSink, Line<Msg>);

    async fn pre_start(
        &self,
        me: ActorRef<Msg>,
        (node, offer, line): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let leaf = node.tree.enter(&format!("{}/restorer", node.node), Kind::Restorer);
        let me = Address::new(me, leaf.clone());
        line.plug(me.clone());
        me.tell(Msg::Scan);
        Ok(State { node, offer, me, leaf, watch: SilenceWatch::new(), scanning: false, again: false })
    }

    async fn handle(
        &self,
        _: ActorRef<Msg>,
        message: Msg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.leaf.handled();
        match message {
            Msg::Wake => state.scan(),
            Msg::Scan => {
                state.scan();
                state.me.tell_after(jittered(state.node.times.restore_scan), Msg::Scan);
            }
            Msg::Scanned(scan) => state.on_scanned(*scan),
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<Msg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        state.leaf.leave();
        Ok(())
    }
}

/// ± 30 %, so that nodes don't scan in step.
fn jittered(scan: Duration) -> Duration {
    let percent = 70 + (Uuid::new_v4().as_u128() % 61) as u32;
    scan * percent / 100
}

impl State {
    fn scan(&mut self) {
        if self.scanning {
            self.again = true;
            return;
        }
        self.scanning = true;
        let (node, me, watch) = (self.node.clone(), self.me.clone(), self.watch.clone());
        tokio::spawn(self.me.guard(async move {
            let scan = scan(&node, watch).await;
            me.tell(Msg::Scanned(Box::new(scan)));
        }));
    }

    fn on_scanned(&mut self, scan: Scan) {
        self.scanning = false;
        match scan.sessions {
            Ok((sessions, reply_at)) => self.observe(&sessions, reply_at),
            Err(error) => tracing::warn!(actor = self.leaf.path(), %error, "sessions not read"),
        }
        match scan.candidates {
            Ok(candidates) => {
                self.leaf.say(Activity::Ok, format!("{} shards offered", candidates.len()));
                if !candidates.is_empty() {
                    (self.offer)(candidates);
                }
            }
            Err(error) => tracing::warn!(actor = self.leaf.path(), %error, "shards not scanned"),
        }
        if std::mem::take(&mut self.again) {
            self.scan();
        }
    }

    fn observe(&mut self, sessions: &[SessionView], reply_at: Moment) {
        for session in sessions.iter().filter(|session| !session.fenced) {
            self.watch.observe(session.id, session.heartbeat, session.promise, reply_at);
        }
        self.watch.retain(|id| sessions.iter().any(|session| session.id == id && !session.fenced));
    }
}

async fn scan(node: &NodeContext, watch: SilenceWatch) -> Scan {
    let sessions = node.sessions.list().await;
    let reply_at = node.clock.now();
    let mut alive: Vec<SessionId> = Vec::new();
    if let Ok(sessions) = &sessions {
        for session in sessions.iter().filter(|session| !session.fenced) {
            if !fence_if_silent(node, &watch, session, reply_at).await {
                alive.push(session.id);
            }
        }
    }
    let candidates = match &sessions {
        Ok(_) => node.runs.candidates(&alive, node.clock.wall(), node.times.restore_window, OFFER_MAX).await,
        Err(error) => Err(error.clone()),
    };
    Scan { sessions: sessions.map(|sessions| (sessions, reply_at)), candidates }
}

/// Fences a session whose heartbeat was silent for its owner's time; says whether it is fenced now.
async fn fence_if_silent(
    node: &NodeContext,
    watch: &SilenceWatch,
    session: &SessionView,
    now: Moment,
) -> bool {
    let silent = watch.silent_heartbeat(session.id, now);
    let Some(heartbeat) = silent.filter(|heartbeat| *heartbeat == session.heartbeat) else { return false };
    match node.sessions.fence(session.id, heartbeat).await {
        Ok(fenced) => {
            tracing::warn!(node = session.node, fenced, "silent session fenced");
            fenced
        }
        Err(error) => {
            tracing::warn!(node = session.node, %error, "silent session not fenced");
            false
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.leaf.leave();
    }
}
