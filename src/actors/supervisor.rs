//! The root of the tree: owns the node's capacity, starts and stops launchers, restarts its children.
//!
//! Admitting and booking are one step here, so that concurrent starts can't exceed the capacity. Whatever ends a
//! launcher, its reservation is given back here; a shard that the store still calls ours is released here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::oneshot;

use super::context::NodeContext;
use super::data_log_writer::LogQueue;
use super::launcher::{self, Launcher, LauncherEnd};
use super::lines::Lines;
use super::policy::{Kind, Restarts, policy};
use super::restorer::{self};
use super::session::{Life, News};
use super::tree::{Activity, Address, Leaf};
use crate::domain::capacity::{Ledger, Obstacle, Request};
use crate::domain::ids::{Moment, ShardId, TaskId};
use crate::domain::lifecycle::Wish;
use crate::ports::run_store::Candidate;
use crate::ports::session_store::OwnedShard;

/// How long the ordered end of one child may take.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) enum Msg {
    Offer(Vec<Candidate>),
    News(News),
    Restart(Kind),
    Wake,
    /// The runs of this task should look at its wish and settings.
    Nudge(TaskId),
    /// Hand everything over, then end; the sender is dropped when nothing is owned any more.
    Drain(oneshot::Sender<()>),
    DrainOver,
}

pub(crate) struct Arguments {
    pub(crate) node: Arc<NodeContext>,
    pub(crate) leaf: Leaf,
    pub(crate) ledger: Ledger,
}

struct Runner {
    address: Address<launcher::Msg>,
}

pub(crate) struct State {
    pub(super) node: Arc<NodeContext>,
    pub(super) me: Address<Msg>,
    pub(super) leaf: Leaf,
    pub(super) lines: Lines,
    pub(super) logs: LogQueue,
    ledger: Ledger,
    pub(super) life: Option<Life>,
    pub(super) children: BTreeMap<Kind, (ActorCell, Restarts)>,
    launchers: BTreeMap<ShardId, Runner>,
    /// When launchers ended: heartbeats sent before that say nothing about their shards.
    ended: BTreeMap<ShardId, Moment>,
    pub(super) failures: BTreeMap<ShardId, u32>,
    pub(super) waits: BTreeMap<ShardId, Obstacle>,
    draining: Option<Vec<oneshot::Sender<()>>>,
}

pub(crate) struct Supervisor;

const CHILDREN: [Kind; 5] =
    [Kind::LeaseKeeper, Kind::CheckpointWriter, Kind::DataLogWriter, Kind::Session, Kind::Restorer];

impl Actor for Supervisor {
    type Msg = Msg;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, me: ActorRef<Msg>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let Arguments { node, leaf, ledger } = arguments;
        let mut state = State {
            node,
            me: Address::new(me.clone(), leaf.clone()),
            leaf,
            lines: Lines::default(),
            logs: LogQueue::new(),
            ledger,
            life: None,
            children: BTreeMap::new(),
            launchers: BTreeMap::new(),
            ended: BTreeMap::new(),
            failures: BTreeMap::new(),
            waits: BTreeMap::new(),
            draining: None,
        };
        for kind in CHILDREN {
            let child = state.spawn(kind, &me.get_cell()).await?;
            state.children.insert(kind, (child, Restarts::default()));
        }
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<Msg>,
        message: Msg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.leaf.handled();
        match message {
            Msg::Offer(candidates) => state.on_offer(candidates, &me).await,
            Msg::News(news) => state.on_news(news),
            Msg::Restart(kind) => state.restart(kind, &me.get_cell()).await,
            Msg::Wake => {
                state.lines.restorer.tell(restorer::Msg::Wake);
            }
            Msg::Nudge(task) => {
                for (_, runner) in state.launchers.iter().filter(|(shard, _)| shard.task == task) {
                    runner.address.tell(launcher::Msg::Look);
                }
            }
            Msg::Drain(done) => state.drain(done, &me),
            Msg::DrainOver => {
                state.launchers.values().for_each(|runner| {
                    runner.address.tell(launcher::Msg::Abort);
                });
            }
        }
        state.say();
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<Msg>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let outcome = match event {
            SupervisionEvent::ActorTerminated(child, boxed, reason) => {
                let end = boxed
                    .and_then(|mut boxed| boxed.take::<launcher::State>().ok())
                    .and_then(|s| s.end.clone());
                state.on_child_ended(&child, end, reason.as_deref().unwrap_or("ended"))
            }
            SupervisionEvent::ActorFailed(child, error) => {
                state.on_child_ended(&child, None, &error.to_string())
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => Ok(()),
        };
        state.say();
        if state.launchers.is_empty() && state.draining.is_some() {
            me.stop(Some("drained".into()));
        }
        outcome
    }

    /// Children end in the reverse order of their start; the session last, since it says that this node lives.
    async fn post_stop(&self, _: ActorRef<Msg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        let order =
            [Kind::Restorer, Kind::CheckpointWriter, Kind::DataLogWriter, Kind::LeaseKeeper, Kind::Session];
        for kind in order {
            let Some((child, _)) = state.children.remove(&kind) else { continue };
            if let Err(error) = child.stop_and_wait(None, Some(STOP_PATIENCE)).await {
                tracing::warn!(actor = kind.as_str(), %error, "child did not end in time");
            }
        }
        state.leaf.leave();
        Ok(())
    }
}

impl State {
    async fn on_offer(&mut self, candidates: Vec<Candidate>, me: &ActorRef<Msg>) {
        let now = self.node.clock.now();
        let trusted = self.life.as_ref().is_some_and(|life| life.trust.until() > now);
        if self.draining.is_some() || !trusted {
            return;
        }
        let fresh: Vec<Candidate> =
            candidates.into_iter().filter(|c| !self.launchers.contains_key(&c.shard)).collect();
        // One that is to be stopped is claimed only to commit that: it needs no capacity.
        let (to_run, to_stop): (Vec<_>, Vec<_>) = fresh.into_iter().partition(|c| c.wish == Wish::Run);
        for candidate in to_stop {
            self.launch(candidate, me).await;
        }
        let requests: Vec<Request> = to_run.iter().map(request).collect();
        let admissions = self.ledger.admit(&requests, now);
        for candidate in to_run {
            let outcome = admissions.iter().find(|admission| admission.shard == candidate.shard);
            match outcome.map(|admission| admission.outcome) {
                Some(Ok(_)) => self.launch(candidate, me).await,
                Some(Err(refusal)) => self.explain(candidate.shard, refusal),
                None => {}
            }
        }
    }

    async fn launch(&mut self, candidate: Candidate, me: &ActorRef<Msg>) {
        let Some(life) = self.life.clone() else { return };
        let shard = candidate.shard;
        let leaf = self.node.tree.enter(&self.leaf.child(&shard.to_string()), Kind::Launcher);
        let arguments = launcher::Arguments {
            node: self.node.clone(),
            leaf: leaf.clone(),
            candidate,
            life,
            lines: self.lines.clone(),
            logs: self.logs.clone(),
        };
        let name = Some(leaf.path().to_owned());
        match Actor::spawn_linked(name, Launcher, arguments, me.get_cell()).await {
            Ok((actor, _)) => {
                self.waits.remove(&shard);
                self.launchers.insert(shard, Runner { address: Address::new(actor, leaf) });
            }
            Err(error) => {
                tracing::error!(%shard, %error, "launcher not started; the shard will be offered again");
                leaf.leave();
                self.ledger.release(shard);
            }
        }
    }

    fn on_news(&mut self, news: News) {
        match news {
            News::Begun(life) => {
                self.life = Some(life);
                self.lines.restorer.tell(restorer::Msg::Wake);
            }
            News::Fenced(id) => {
                self.life.take_if(|life| life.id == id);
                self.launchers.values().for_each(|runner| {
                    runner.address.tell(launcher::Msg::Drop);
                });
            }
            News::Shards(id, sent, rows) => {
                let first = self.life.as_ref().is_some_and(|life| life.id == id);
                if first {
                    self.on_rows(sent, rows);
                }
            }
        }
    }

    /// What the heartbeat found: wishes for the runs, and shards of ours that nobody here runs.
    fn on_rows(&mut self, sent: Moment, rows: Vec<OwnedShard>) {
        for (shard, runner) in &self.launchers {
            let message = match rows.iter().find(|row| row.shard == *shard) {
                Some(row) => launcher::Msg::Row(*row, sent),
                None => launcher::Msg::NotListed(sent),
            };
            runner.address.tell(message);
        }
        self.ended.retain(|_, at| *at >= sent);
        for row in rows {
            let known = self.launchers.contains_key(&row.shard) || self.ended.contains_key(&row.shard);
            if !known {
                self.release_orphan(row);
            }
        }
    }

    fn on_child_ended(
        &mut self,
        child: &ActorCell,
        end: Option<LauncherEnd>,
        reason: &str,
    ) -> Result<(), ActorProcessingErr> {
        let id = child.get_id();
        let shard =
            self.launchers.iter().find(|(_, r)| r.address.actor().get_id() == id).map(|(shard, _)| *shard);
        if let Some(shard) = shard {
            self.on_launcher_ended(shard, end, reason);
            return Ok(());
        }
        let now = self.node.clock.now();
        let found = self.children.iter_mut().find(|(_, (cell, _))| cell.get_id() == id);
        let Some((kind, (_, restarts))) = found else { return Ok(()) };
        let kind = *kind;
        tracing::error!(actor = self.leaf.child(kind.as_str()), error = reason, "actor failed");
        match restarts.on_failure(policy(kind), now) {
            Some(wait) => {
                self.me.tell_after(wait, Msg::Restart(kind));
                Ok(())
            }
            None => Err(ActorProcessingErr::from(format!("{} failed too often: {reason}", kind.as_str()))),
        }
    }

    fn on_launcher_ended(&mut self, shard: ShardId, end: Option<LauncherEnd>, reason: &str) {
        self.launchers.remove(&shard);
        self.ledger.release(shard);
        self.ended.insert(shard, self.node.clock.now());
        let path = self.leaf.child(&shard.to_string());
        // What was not to be had is still offered: to look at once would be to try without a pause.
        let looks = !matches!(end, Some(LauncherEnd::NotOwned | LauncherEnd::StillOwned(_)));
        match end {
            Some(end) => {
                tracing::info!(actor = path, ?end, "run ended");
                self.node.tree.forget(&path);
                self.failures.remove(&shard);
            }
            None => {
                tracing::error!(actor = path, error = reason, "launcher failed; its shard will recover");
                *self.failures.entry(shard).or_insert(0) += 1;
            }
        }
        if looks {
            self.lines.restorer.tell(restorer::Msg::Wake);
        }
    }

    fn drain(&mut self, done: oneshot::Sender<()>, me: &ActorRef<Msg>) {
        self.draining.get_or_insert_default().push(done);
        self.launchers.values().for_each(|runner| {
            runner.address.tell(launcher::Msg::HandOver);
        });
        self.me.tell_after(self.node.times.drain_timeout, Msg::DrainOver);
        if self.launchers.is_empty() {
            me.stop(Some("drained".into()));
        }
    }

    /// Whether everything was handed over.
    pub(super) fn is_over(&self) -> bool {
        self.draining.is_some() && self.launchers.is_empty()
    }

    fn say(&self) {
        let activity = if self.draining.is_some() { Activity::Draining } else { Activity::Ok };
        self.leaf
            .say(activity, format!("{} runs, {} reserved", self.launchers.len(), self.ledger.held_sum()));
    }
}

fn request(candidate: &Candidate) -> Request {
    Request {
        shard: candidate.shard,
        rate: candidate.rate,
        priority: candidate.priority,
        waiting_since: candidate.waiting_since,
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.leaf.leave();
    }
}
