//! Runs of the supervisor: admission of the waiting line, and the launchers of admitted shards.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use ractor::ActorId;
use tokio::sync::Semaphore;

use crate::actors::launcher::share::BookSink;
use crate::actors::launcher::{self, Launcher};
use crate::actors::membership::restorer::needs_room;
use crate::actors::membership::seen_revision::SeenRevision;
use crate::actors::membership::session;
use crate::actors::runtime::actor::start;
use crate::actors::runtime::address::Address;
use crate::actors::runtime::policy::Kind;
use crate::actors::supervisor::waits::{Wait, Why};
use crate::actors::supervisor::{Msg, Supervisor};
use crate::ports::ownership::hints::Hint;
use crate::ports::ownership::run_store::Candidate;
use crate::ports::ownership::session_store::OwnedShard;
use windrow_core::capacity::Request;
use windrow_core::ids::{Moment, ShardId, TaskId};

/// Launchers started before other messages get their turn.
const STARTS_PER_TURN: usize = 16;
/// Maximum number of concurrent claims: thousands of admitted shards must not queue before the one writer of a
/// database, where checkpoints wait too.
const CLAIMS_MAX: usize = 16;

/// Launchers, and the shards that will get one.
pub(crate) struct Runs {
    launchers: BTreeMap<ShardId, (Address<launcher::Msg>, Arc<SeenRevision>)>,
    shards: HashMap<ActorId, ShardId>,
    /// Shards that are admitted and booked, or to be stopped, and not started yet.
    starting: VecDeque<Candidate>,
    waiting_to_start: BTreeSet<ShardId>,
    claims: Arc<Semaphore>,
    /// Times at which launchers ended: heartbeats sent earlier say nothing about their shards.
    ended: BTreeMap<ShardId, Moment>,
    /// Number of failures in a row of each shard's launchers.
    failures: BTreeMap<ShardId, u32>,
    /// Shards left to other nodes, until their runs have ended.
    leaving: BTreeSet<ShardId>,
}

impl Runs {
    pub(crate) fn new() -> Runs {
        Runs {
            launchers: BTreeMap::new(),
            shards: HashMap::new(),
            starting: VecDeque::new(),
            waiting_to_start: BTreeSet::new(),
            claims: Arc::new(Semaphore::new(CLAIMS_MAX)),
            ended: BTreeMap::new(),
            failures: BTreeMap::new(),
            leaving: BTreeSet::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.launchers.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.launchers.is_empty()
    }

    /// True if a shard has a launcher.
    pub(crate) fn holds(&self, shard: ShardId) -> bool {
        self.launchers.contains_key(&shard)
    }

    /// Returns the shards that have a launcher.
    pub(crate) fn shards(&self) -> impl Iterator<Item = ShardId> {
        self.launchers.keys().copied()
    }

    /// True if a shard of the task has a launcher.
    pub(crate) fn holds_task(&self, task: TaskId) -> bool {
        self.of_task(task).next().is_some()
    }

    fn of_task(&self, task: TaskId) -> impl Iterator<Item = &Address<launcher::Msg>> {
        let (first, last) = (ShardId { task, no: 0 }, ShardId { task, no: u32::MAX });
        self.launchers
            .range(first..=last)
            .map(|(_, (launcher, _))| launcher)
    }

    pub(crate) fn tell(&self, shard: ShardId, message: launcher::Msg) {
        if let Some((launcher, _)) = self.launchers.get(&shard) {
            launcher.tell(message);
        }
    }

    pub(crate) fn tell_task(&self, task: TaskId, message: impl Fn() -> launcher::Msg) {
        for launcher in self.of_task(task) {
            launcher.tell(message());
        }
    }

    pub(crate) fn tell_all(&self, message: impl Fn() -> launcher::Msg) {
        for (launcher, _) in self.launchers.values() {
            launcher.tell(message());
        }
    }

    /// Sends each launcher the row that a heartbeat, sent at this moment, found of its shard, unless it knows that.
    /// Returns the rows of shards without a launcher here.
    pub(crate) fn show(&mut self, mut rows: BTreeMap<ShardId, OwnedShard>, sent: Moment) -> Vec<OwnedShard> {
        for (shard, (launcher, seen)) in &self.launchers {
            match rows.remove(shard) {
                Some(row) if seen.shows(&row) => {}
                Some(row) => {
                    launcher.tell(launcher::Msg::Row(row, sent));
                }
                None => {
                    launcher.tell(launcher::Msg::NotListed(sent));
                }
            }
        }
        self.ended.retain(|_, at| *at >= sent);
        rows.retain(|shard, _| !self.ended.contains_key(shard));
        rows.into_values().collect()
    }

    /// Drains a run whose handler is down for this node only, so that another node takes the shard.
    pub(crate) fn leave_to_others(&mut self, shard: ShardId) {
        self.leaving.insert(shard);
        self.tell(shard, launcher::Msg::Leave);
    }

    /// Records the end of a launcher. Returns true if its shard was left to other nodes.
    pub(crate) fn was_left(&mut self, shard: ShardId, now: Moment) -> bool {
        self.ended.insert(shard, now);
        self.leaving.remove(&shard)
    }

    pub(crate) fn note_failure(&mut self, shard: ShardId) {
        *self.failures.entry(shard).or_insert(0) += 1;
    }

    pub(crate) fn forget_failures(&mut self, shard: ShardId) {
        self.failures.remove(&shard);
    }

    /// Returns the number of failures in a row of the shard's launchers.
    pub(crate) fn failures(&self, shard: ShardId) -> u32 {
        self.failures.get(&shard).copied().unwrap_or(0)
    }

    /// Forgets an actor that ended. Returns its shard if it was a launcher.
    pub(crate) fn remove(&mut self, actor: ActorId) -> Option<ShardId> {
        let shard = self.shards.remove(&actor)?;
        self.launchers.remove(&shard);
        Some(shard)
    }

    fn is_known(&self, shard: ShardId) -> bool {
        self.holds(shard) || self.waiting_to_start.contains(&shard)
    }

    fn start_later(&mut self, candidate: Candidate) {
        self.waiting_to_start.insert(candidate.rank.shard);
        self.starting.push_back(candidate);
    }

    fn next_start(&mut self) -> Option<Candidate> {
        let candidate = self.starting.pop_front()?;
        self.waiting_to_start.remove(&candidate.rank.shard);
        Some(candidate)
    }

    fn insert(&mut self, shard: ShardId, launcher: Address<launcher::Msg>, seen: Arc<SeenRevision>) {
        self.shards.insert(launcher.actor().get_id(), shard);
        self.launchers.insert(shard, (launcher, seen));
    }
}

impl Supervisor {
    /// Admits the shards of the line that fit, and explains why the others wait.
    pub(crate) fn on_offer(&mut self, line: Vec<Candidate>) {
        let now = self.node.clock.now();
        let trusted = self.life.as_ref().is_some_and(|life| life.trust.until() > now);
        if self.takes_nothing() || !trusted {
            return;
        }
        let offered: BTreeSet<ShardId> = line.iter().map(|candidate| candidate.rank.shard).collect();
        self.backoff.retain(|shard| offered.contains(&shard), now);
        let mut refused = self.unclaimable(&line);
        let line: Vec<Candidate> = line
            .into_iter()
            .filter(|candidate| !self.backoff.holds(candidate, now))
            .collect();
        let fresh = line
            .into_iter()
            .filter(|candidate| !self.runs.is_known(candidate.rank.shard));
        let (to_run, to_end): (Vec<_>, Vec<_>) = fresh.partition(needs_room);
        let mut starts = !to_end.is_empty();
        to_end
            .into_iter()
            .for_each(|candidate| self.runs.start_later(candidate));
        let requests: Vec<Request> = to_run.iter().map(request).collect();
        let mut candidates: HashMap<ShardId, Candidate> = to_run
            .into_iter()
            .map(|candidate| (candidate.rank.shard, candidate))
            .collect();
        let ends = || self.node.directory.ends();
        for admission in self.booking.admit(requests, ends, now) {
            match (admission.outcome, candidates.remove(&admission.shard)) {
                (Ok(_), Some(candidate)) => {
                    starts = true;
                    self.runs.start_later(candidate);
                }
                (Err(refusal), Some(candidate)) => {
                    let since = candidate.rank.since;
                    refused.entry(admission.shard.task).or_insert(Wait {
                        why: Why::Refused(refusal),
                        since,
                    });
                }
                (_, None) => {}
            }
        }
        self.explain(refused);
        if starts {
            self.me.tell(Msg::LaunchMore);
        }
    }

    /// Starts some of the admitted shards; the rest follow after other messages.
    pub(crate) async fn launch_some(&mut self) {
        for _ in 0..STARTS_PER_TURN {
            let Some(candidate) = self.runs.next_start() else {
                return;
            };
            self.launch(candidate).await;
        }
        self.me.tell(Msg::LaunchMore);
    }

    /// Gives back the admitted shards without a launcher: the next scan finds them again.
    pub(crate) fn give_up_starting(&mut self) {
        while let Some(candidate) = self.runs.next_start() {
            self.booking.ledger.release(candidate.rank.shard);
        }
    }

    /// Follows the hints of other nodes; a wrong hint costs one check.
    pub(crate) fn on_hints(&mut self, hints: &[Hint]) {
        for hint in hints {
            match hint {
                Hint::Task(task) => self.runs.tell_task(*task, || launcher::Msg::Look),
                Hint::Session(id) if self.life.as_ref().is_some_and(|life| life.id == *id) => {
                    self.routes.session.tell(session::Msg::Hurry);
                }
                Hint::Work | Hint::Session(_) => {}
            }
        }
        if hints
            .iter()
            .any(|hint| matches!(hint, Hint::Task(_) | Hint::Work))
        {
            self.look_for_work();
        }
    }

    async fn launch(&mut self, candidate: Candidate) {
        let shard = candidate.rank.shard;
        let Some(life) = self.life.clone() else {
            self.booking.ledger.release(shard);
            return;
        };
        let path = self.me.leaf.child(&shard.to_string());
        let leaf = self.node.tree.enter(&path, Kind::Launcher);
        let seen = Arc::<SeenRevision>::default();
        let arguments = launcher::Arguments {
            node: self.node.clone(),
            candidate,
            life,
            routes: self.routes.clone(),
            logs: self.logs.clone(),
            claims: self.runs.claims.clone(),
            seen: seen.clone(),
            book: self.booking(shard),
        };
        match start::<Launcher>(leaf, arguments, self.me.cell()).await {
            Ok(launcher) => self.runs.insert(shard, launcher, seen),
            Err(error) => {
                tracing::error!(%shard, %error, "launcher not started; the shard will be offered again");
                self.booking.ledger.release(shard);
            }
        }
    }

    /// Returns the callback with which a launcher books another share of its task's rate.
    fn booking(&self, shard: ShardId) -> BookSink {
        let me = self.me.clone();
        Arc::new(move |part, answer| {
            me.tell(Msg::Book(shard, part, answer));
        })
    }
}

fn request(candidate: &Candidate) -> Request {
    Request {
        rank: candidate.rank,
        rate: candidate.rate,
        share: candidate.share,
        takes: candidate.takes(),
    }
}
