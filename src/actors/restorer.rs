//! Finds runnable shards without a live owner and offers them to the supervisor.
//!
//! It watches the heartbeats of all sessions on its own clock: one that stayed silent for its owner's time is fenced
//! first (where the heartbeat is still the silent one), then its shards are offered. It never claims.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::context::NodeContext;
use super::policy::Kind;
use super::tree::{Activity, Address, Leaf, Line};
use crate::domain::ids::{Moment, SessionId};
use crate::domain::lifecycle::Wish;
use crate::domain::trust::SilenceWatch;
use crate::ports::StoreError;
use crate::ports::run_store::{Candidate, Hunt};
use crate::ports::session_store::SessionView;

/// Candidates of one page: one statement, and at most so many rows in memory before they are looked at.
const PAGE: u32 = 1_000;
/// Shards of one offer: bounds the memory of the line. What stands behind so many waits for a later scan.
const LINE_MAX: usize = 50_000;
/// However often it is woken, it rests for this many times as long as its last scan took, within these bounds: when
/// thousands of tasks are started one by one, a scan for each would cost more than all else.
const REST_FACTOR: u32 = 3;
const REST_MIN: Duration = Duration::from_millis(25);
const REST_MAX: Duration = Duration::from_millis(500);

/// Where offers go.
pub(crate) type OfferSink = Arc<dyn Fn(Vec<Candidate>) + Send + Sync>;

pub(crate) enum Msg {
    /// Look now: something ended, started, or was freed.
    Wake,
    /// It may scan again.
    Rested,
    Scan,
    Scanned(Box<Scan>),
}

/// What one scan found.
pub(crate) struct Scan {
    sessions: Result<(Vec<SessionView>, Moment), StoreError>,
    line: Result<Vec<Candidate>, StoreError>,
}

pub(crate) struct State {
    node: Arc<NodeContext>,
    offer: OfferSink,
    me: Address<Msg>,
    leaf: Leaf,
    watch: SilenceWatch,
    scanning: Option<Moment>,
    again: bool,
    rests_until: Moment,
    /// Whether the last offer had anybody in it: then the next one is made even when it is empty.
    offered: bool,
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
        Ok(State {
            node,
            offer,
            me,
            leaf,
            watch: SilenceWatch::new(),
            scanning: None,
            again: false,
            rests_until: Moment(0),
            offered: false,
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
            Msg::Wake => state.scan(),
            Msg::Rested => {
                if std::mem::take(&mut state.again) {
                    state.scan();
                }
            }
            Msg::Scan => {
                state.scan();
                state.me.tell_after(jittered(&state.node), Msg::Scan);
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
fn jittered(node: &NodeContext) -> Duration {
    let percent = 70 + (node.new_ids.make().as_u128() % 61) as u32;
    node.times.restore_scan * percent / 100
}

impl State {
    fn scan(&mut self) {
        let now = self.node.clock.now();
        if self.scanning.is_some() {
            self.again = true;
            return;
        }
        if now < self.rests_until {
            if !std::mem::replace(&mut self.again, true) {
                self.me.tell_after(self.rests_until.since(now), Msg::Rested);
            }
            return;
        }
        self.again = false;
        self.scanning = Some(now);
        let (node, me, watch) = (self.node.clone(), self.me.clone(), self.watch.clone());
        self.node.work.spawn(self.me.guard(async move {
            let scan = scan(&node, watch).await;
            me.tell(Msg::Scanned(Box::new(scan)));
        }));
    }

    fn on_scanned(&mut self, scan: Scan) {
        let now = self.node.clock.now();
        let took = self.scanning.take().map_or(Duration::ZERO, |since| now.since(since));
        self.rests_until = now.plus((took * REST_FACTOR).clamp(REST_MIN, REST_MAX));
        match scan.sessions {
            Ok((sessions, reply_at)) => self.observe(&sessions, reply_at),
            Err(error) => tracing::warn!(actor = self.leaf.path(), %error, "sessions not read"),
        }
        match scan.line {
            Ok(line) => {
                let text = format!("{} shards offered, scanned in {} ms", line.len(), took.as_millis());
                self.leaf.say(Activity::Ok, text);
                if !line.is_empty() || self.offered {
                    self.offered = !line.is_empty();
                    (self.offer)(line);
                }
            }
            Err(error) => tracing::warn!(actor = self.leaf.path(), %error, "shards not scanned"),
        }
        if std::mem::take(&mut self.again) {
            self.scan();
        }
    }

    fn observe(&mut self, sessions: &[SessionView], reply_at: Moment) {
        let heartbeats = sessions.iter().map(|session| (session.id, session.heartbeat));
        self.node.heartbeats.saw(heartbeats, reply_at);
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
    let line = match &sessions {
        Ok(_) => whole_line(node, alive).await,
        Err(error) => Err(error.clone()),
    };
    Scan { sessions: sessions.map(|sessions| (sessions, reply_at)), line }
}

/// Everybody who waits, page by page; of more than fit into the line, those that go first.
async fn whole_line(node: &NodeContext, alive: Vec<SessionId>) -> Result<Vec<Candidate>, StoreError> {
    let Some(pools) = node.serving.pools() else { return Ok(Vec::new()) };
    let (now, restore_window) = (node.clock.wall(), node.times.restore_window);
    let mut hunt =
        Hunt { alive, now, restore_window, pools, node: node.node.clone(), after: None, limit: PAGE };
    let mut line = Vec::new();
    loop {
        let game = node.runs.candidates(&hunt).await?;
        line.extend(game.found);
        if line.len() >= 2 * LINE_MAX {
            shorten(&mut line);
        }
        match game.next {
            Some(place) => hunt.after = Some(place),
            None => break,
        }
    }
    shorten(&mut line);
    Ok(line)
}

/// What is to be stopped needs no room and goes first.
fn shorten(line: &mut Vec<Candidate>) {
    if line.len() > LINE_MAX {
        line.sort_by_key(|candidate| (candidate.wish == Wish::Run, candidate.precedence()));
        line.truncate(LINE_MAX);
    }
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
