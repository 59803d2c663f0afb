//! Search for runnable shards without a live owner, which it offers to the supervisor.
//!
//! The restorer watches the heartbeats of all sessions on its own clock. Once one has been silent for its owner's
//! time, it scans and offers its shards. Without leases it fences such a session first (if the heartbeat is still the
//! silent one); with leases only a candidate that holds one may (`takeover`). It never claims.
//!
//! If several nodes could take a shard, each offers at once the shards that rank it first, and the rest a moment
//! later: the shards of a task, and a thousand of a dead node, spread over the live nodes, and no shard waits for a
//! full one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

use ractor::ActorProcessingErr;

use crate::actors::membership::heartbeats::Owner;
use crate::actors::runtime::actor::{Handled, TreeActor};
use crate::actors::runtime::address::{Address, Route};
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::in_time;
use crate::actors::runtime::tree::Activity;
use crate::ports::StoreError;
use crate::ports::ownership::run_store::{Candidate, CandidateQuery};
use crate::ports::ownership::session_store::SessionView;
use windrow_core::capacity::placement;
use windrow_core::ids::{Epoch, Moment, SessionId, ShardId};
use windrow_core::task::lifecycle::Desired;

/// Candidates per page: one statement, and the most rows in memory before they are examined.
const PAGE: u32 = 1_000;
/// Maximum number of shards per offer, to bound the memory of the line. The others wait for a later scan.
const LINE_MAX: usize = 50_000;
/// Rest after a scan, in multiples of its duration, between `REST_MIN` and `REST_MAX`, however often the restorer is
/// woken: when thousands of tasks are started one by one, a scan for each would cost more than all else.
const REST_FACTOR: u32 = 3;
const REST_MIN: Duration = Duration::from_millis(25);
const REST_MAX: Duration = Duration::from_millis(500);
/// Longest duration of a scan: a connection that vanished silently would otherwise blind the node for long.
const SCAN_PATIENCE: Duration = Duration::from_secs(10);

/// Delay before a node offers shards that rank another node first: as long as a takeover has left beyond the owner's
/// lease. Two nodes see the same silence up to a scan apart, so the distribution is rough; the first to claim has the
/// shard.
const RANK_WAIT: Duration = Duration::from_millis(600);
/// The same delay in scans, for shards that no node left behind and that others find only with their next scan.
const RANK_WAIT_SCANS: f64 = 1.5;
/// Scan interval while a node drains or has just gone, so that its shards are found at once even without a hint.
const RESTLESS_SCAN: Duration = Duration::from_millis(250);

pub(crate) type OfferSink = Arc<dyn Fn(Vec<Candidate>) + Send + Sync>;

pub(crate) enum Msg {
    /// Scan now: something ended, started, or was freed.
    Wake,
    Rested,
    /// Scan because a silent owner's time may be up, or because shards of another node are due here.
    Due(Moment),
    Scan,
    Scanned(Box<Scan>),
}

pub(crate) struct Scan {
    sessions: Result<(), StoreError>,
    line: Result<Vec<Candidate>, StoreError>,
}

pub(crate) struct Restorer {
    node: Arc<NodeContext>,
    offer: OfferSink,
    me: Address<Msg>,
    /// Shards held back for other nodes, each with the time when it was first seen.
    held_back: BTreeMap<ShardId, (Epoch, Moment)>,
    /// Time of the next [`Msg::Due`] that is on its way.
    due: Option<Moment>,
    scanning: Option<Moment>,
    again: bool,
    rests_until: Moment,
    /// Set if the last offer was not empty: the next one is then made even if it is empty.
    offered: bool,
}

impl TreeActor for Restorer {
    type Msg = Msg;
    type Arguments = (Arc<NodeContext>, OfferSink, Route<Msg>);

    async fn begin(
        me: Address<Msg>,
        (node, offer, route): Self::Arguments,
    ) -> Result<Self, ActorProcessingErr> {
        route.lead_to(&me);
        me.tell(Msg::Scan);
        Ok(Restorer {
            node,
            offer,
            me,
            held_back: BTreeMap::new(),
            due: None,
            scanning: None,
            again: false,
            rests_until: Moment(0),
            offered: false,
        })
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Wake => self.scan(),
            Msg::Rested => {
                if std::mem::take(&mut self.again) {
                    self.scan();
                }
            }
            Msg::Due(at) => {
                if self.due == Some(at) {
                    self.due = None;
                }
                self.scan();
            }
            Msg::Scan => {
                self.scan();
                self.me.tell_after(self.next_scan(), Msg::Scan);
            }
            Msg::Scanned(scan) => self.on_scanned(*scan),
        }
        Ok(())
    }
}

/// Varies an interval by ± 30 %, so that nodes don't scan in step.
fn jittered(scan: Duration, node: &NodeContext) -> Duration {
    let percent = 70 + (node.new_ids.make().as_u128() % 61) as u32;
    scan * percent / 100
}

impl Restorer {
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
        let (node, me) = (self.node.clone(), self.me.clone());
        self.node.work.spawn(self.me.guard(async move {
            let scan = in_time(SCAN_PATIENCE, say::the_store(), async { Ok(scan(&node).await) }).await;
            let late = |error| Scan {
                sessions: Ok(()),
                line: Err(error),
            };
            me.tell(Msg::Scanned(Box::new(scan.unwrap_or_else(late))));
        }));
    }

    fn on_scanned(&mut self, scan: Scan) {
        let now = self.node.clock.now();
        let took = self
            .scanning
            .take()
            .map_or(Duration::ZERO, |since| now.since(since));
        self.rests_until = now.plus((took * REST_FACTOR).clamp(REST_MIN, REST_MAX));
        if let Err(error) = scan.sessions {
            tracing::warn!(actor = self.me.leaf.path(), %error, "sessions not read");
        }
        match scan.line {
            Ok(line) => {
                let line = self.in_turn(line, now);
                self.me.leaf.say(Activity::Ok, say::offered(line.len(), took));
                if !line.is_empty() || self.offered {
                    self.offered = !line.is_empty();
                    (self.offer)(line);
                }
            }
            Err(error) => tracing::warn!(actor = self.me.leaf.path(), %error, "shards not scanned"),
        }
        if let Some(due) = self.node.heartbeats.next_due(now) {
            self.look_at(due, now);
        }
        if std::mem::take(&mut self.again) {
            self.scan();
        }
    }

    fn next_scan(&self) -> Duration {
        let scan = self.node.times.restore_scan;
        let hurry = self.node.heartbeats.is_restless(self.node.clock.now());
        jittered(if hurry { scan.min(RESTLESS_SCAN) } else { scan }, &self.node)
    }

    /// Schedules a scan for `due`, unless one is scheduled earlier.
    fn look_at(&mut self, due: Moment, now: Moment) {
        if self.due.is_none_or(|known| due < known || known <= now) {
            self.due = Some(due);
            self.me.tell_after(due.since(now), Msg::Due(due));
        }
    }

    /// Returns the time for which another node's shards are left to it; shorter for shards that a node left behind.
    fn rank_wait(&self, is_left: bool) -> Duration {
        let hears_at_once = is_left || self.node.hints.is_some();
        let scans = self.node.times.restore_scan.mul_f64(RANK_WAIT_SCANS);
        if hears_at_once {
            RANK_WAIT
        } else {
            RANK_WAIT.max(scans)
        }
    }

    /// Returns the candidates to offer now: those that rank this node first, and those that others had time to take.
    fn in_turn(&mut self, line: Vec<Candidate>, now: Moment) -> Vec<Candidate> {
        let (board, mut later) = (self.node.heartbeats.clone(), None::<Moment>);
        let (me, peers) = (board.me(), board.peers(now));
        let mut held_back = BTreeMap::new();
        let mut offered = Vec::with_capacity(line.len());
        for candidate in line {
            // Any node may take a shard that needs no room; only this node may take one that people sent here.
            let is_for_all = needs_room(&candidate) && !candidate.is_sent_here && peers.len() > 1;
            let is_anothers = me
                .filter(|_| is_for_all)
                .is_some_and(|me| placement::rank(candidate.rank.shard, me, &peers) > 0);
            if !is_anothers {
                offered.push(candidate);
                continue;
            }
            let (shard, epoch) = (candidate.rank.shard, candidate.epoch);
            let known = self.held_back.get(&shard).filter(|(seen, _)| *seen == epoch);
            let since = known.map_or(now, |(_, since)| *since);
            held_back.insert(shard, (epoch, since));
            let is_left = candidate.session.is_some() || board.is_restless(now);
            let turn = since.plus(self.rank_wait(is_left));
            if now >= turn {
                offered.push(candidate);
            } else {
                later = Some(later.map_or(turn, |known| known.min(turn)));
            }
        }
        self.held_back = held_back;
        if let Some(turn) = later {
            self.look_at(turn, now);
        }
        offered
    }
}

/// True if the shard takes a share of a node's capacity: one claimed to be stopped, or to publish, has no items to
/// run.
pub(crate) fn needs_room(candidate: &Candidate) -> bool {
    candidate.desired == Desired::Run && !candidate.rank.shard.is_publication()
}

async fn scan(node: &NodeContext) -> Scan {
    let sessions = node.sessions.list().await;
    let line = match &sessions {
        Ok(sessions) => {
            let reply_at = node.clock.now();
            node.heartbeats.saw(sessions, reply_at);
            let mut alive: Vec<SessionId> = Vec::new();
            for session in sessions.iter().filter(|session| !session.fenced) {
                if !may_be_had(node, session, reply_at).await {
                    alive.push(session.id);
                }
            }
            whole_line(node, alive).await
        }
        Err(error) => Err(error.clone()),
    };
    Scan {
        sessions: sessions.map(|_| ()),
        line,
    }
}

/// Returns all waiting candidates, read page by page; if they exceed the line, those that go first.
async fn whole_line(node: &NodeContext, alive: Vec<SessionId>) -> Result<Vec<Candidate>, StoreError> {
    let Some(pools) = node.serving.pools() else {
        return Ok(Vec::new());
    };
    let (now, restore_window) = (node.clock.wall(), node.times.restore_window);
    let mut hunt = CandidateQuery {
        alive,
        now,
        restore_window,
        pools,
        node: node.node.clone(),
        after: None,
        limit: PAGE,
    };
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

/// Shortens the line. Shards to be stopped need no room and go first.
fn shorten(line: &mut Vec<Candidate>) {
    if line.len() > LINE_MAX {
        line.sort_by_key(|candidate| (candidate.desired == Desired::Run, candidate.rank));
        line.truncate(LINE_MAX);
    }
}

/// True if the shards of an unfenced session can be taken: it was silent for its owner's time. Without leases this
/// fences it; with leases the node that gets the lease of one of its shards does.
async fn may_be_had(node: &NodeContext, session: &SessionView, now: Moment) -> bool {
    let Owner::Silent(heartbeat) = node.heartbeats.owner(session.id, Duration::ZERO, now) else {
        return false;
    };
    if node.leases.is_some() {
        return true;
    }
    node.fence(session.id, heartbeat).await.unwrap_or_else(|error| {
        tracing::warn!(node = session.node, %error, "silent session not fenced");
        false
    })
}
