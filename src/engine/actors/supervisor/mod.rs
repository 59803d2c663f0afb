//! The root of the tree: owns the node's capacity, starts and stops launchers, restarts its children.
//!
//! Admitting and booking are one step here, so that concurrent starts can't exceed the capacity. Whatever ends a
//! launcher, its reservation is given back here; a shard that the store still calls ours is released here.

pub mod backoff;
pub mod children;
pub mod runs;
pub mod standby;
pub mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::oneshot;

use crate::actors::launcher::share::{Booked, Part};
use crate::actors::launcher::{self, LauncherEnd};
use crate::actors::membership::restorer;
use crate::actors::membership::session::{self, Life, News};
use crate::actors::runtime::context::{NodeContext, RoomBoard};
use crate::actors::runtime::lines::Lines;
use crate::actors::runtime::policy::{Kind, Restarts, policy};
use crate::actors::runtime::tree::{self, Activity, Address, Leaf};
use crate::actors::supervisor::backoff::Bars;
use crate::actors::supervisor::runs::Runs;
use crate::actors::supervisor::standby::Standby;
use crate::actors::supervisor::waits::{Wait, Waits};
use crate::actors::upkeep::outbox_dispatcher;
use crate::actors::writers::data_log_writer::LogQueue;
use crate::ports::ownership::hints::Hint;
use crate::ports::ownership::run_store::Candidate;
use crate::ports::ownership::run_store::RunClose;
use crate::ports::ownership::session_store::OwnedShard;
use windrow_core::capacity::{Capacity, Ledger, Refusal};
use windrow_core::explain::counted;
use windrow_core::ids::{Moment, ShardId, TaskId};
use windrow_core::settings::RateLimit;
use windrow_core::shards::Share;

pub(crate) enum Msg {
    /// Everything that waits to run here, as one scan found it.
    Offer(Vec<Candidate>),
    /// More of what was admitted can be started.
    LaunchMore,
    /// The reasons of these tasks are stored.
    Explained(Vec<(TaskId, Wait)>),
    /// Book another rate for what runs of a task; one shard of it would have this share.
    Rebook(TaskId, (RateLimit, Share), oneshot::Sender<Result<(), Refusal>>),
    /// Whether that could be booked.
    TryBook(TaskId, (RateLimit, Share), oneshot::Sender<Result<(), Refusal>>),
    /// A launcher asks for another part of its task's rate.
    Book(ShardId, Part, Booked),
    SetCapacity(Capacity),
    News(News),
    Restart(Kind),
    /// Something was started, stopped or changed: look for work and for hook calls.
    Wake,
    /// A hook call was left.
    WakeCourier,
    /// How this node shows itself was changed.
    ShowFace,
    /// The runs of this task should look at its wish and settings, here and elsewhere.
    Nudge(TaskId),
    /// The handler of this shard is down for this node only: another node is to have it.
    LeaveToOthers(ShardId),
    /// Other nodes say what to look at.
    Heard(Vec<Hint>),
    /// Other nodes should look.
    Hint(Hint),
    /// Hand everything over, then end; the sender is dropped when nothing is owned any more, and says of how many shards
    /// nobody could be told otherwise.
    Drain(oneshot::Sender<usize>),
    /// The time of this drain is up: what still runs is aborted.
    DrainOver(u64),
    /// What was aborted could not be given back either: the node ends without.
    GiveUp,
}

pub(crate) struct Arguments {
    pub(crate) node: Arc<NodeContext>,
    pub(crate) leaf: Leaf,
    pub(crate) ledger: Ledger,
}

pub(crate) struct State {
    pub(crate) node: Arc<NodeContext>,
    pub(crate) me: Address<Msg>,
    pub(crate) leaf: Leaf,
    pub(crate) lines: Lines,
    pub(crate) logs: LogQueue,
    pub(crate) ledger: Ledger,
    room: RoomBoard,
    pub(crate) life: Option<Life>,
    pub(crate) children: BTreeMap<Kind, (ActorCell, Restarts)>,
    pub(crate) runs: Runs,
    /// When launchers ended: heartbeats sent before that say nothing about their shards.
    ended: BTreeMap<ShardId, Moment>,
    pub(crate) failures: BTreeMap<ShardId, u32>,
    pub(crate) waits: Waits,
    pub(crate) draining: Option<Vec<oneshot::Sender<usize>>>,
    pub(crate) standby: Standby,
    pub(crate) bars: Bars,
    /// Shards that are left to other nodes, until their runs have ended.
    leaving: BTreeSet<ShardId>,
}

pub(crate) struct Supervisor;

const CHILDREN: [Kind; 7] = [
    Kind::LeaseKeeper,
    Kind::CheckpointWriter,
    Kind::DataLogWriter,
    Kind::Session,
    Kind::Restorer,
    Kind::Courier,
    Kind::Steward,
];

impl Actor for Supervisor {
    type Msg = Msg;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, me: ActorRef<Msg>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let Arguments { node, leaf, ledger } = arguments;
        let room = node.room.clone();
        let mut state = State {
            node,
            me: Address::new(me.clone(), leaf.clone()),
            leaf,
            lines: Lines::default(),
            logs: LogQueue::new(),
            room,
            ledger,
            life: None,
            children: BTreeMap::new(),
            runs: Runs::new(),
            ended: BTreeMap::new(),
            failures: BTreeMap::new(),
            waits: Waits::default(),
            draining: None,
            standby: Standby::default(),
            bars: Bars::default(),
            leaving: BTreeSet::new(),
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
            Msg::Offer(line) => state.on_offer(line),
            Msg::LaunchMore => state.launch_some(&me).await,
            Msg::Explained(reasons) => state.on_explained(reasons),
            Msg::Rebook(task, rate, answer) => state.on_rebook(task, rate, answer),
            Msg::Book(shard, part, answer) => state.on_book(shard, part, answer),
            Msg::TryBook(task, (rate, share), answer) => {
                let outcome = state.ledger.clone().change_task(task, rate, share).map(|_| ());
                told(task, answer, outcome);
            }
            Msg::SetCapacity(capacity) => {
                state.ledger.set_capacity(capacity);
                state.look_for_work();
                state.show_face();
            }
            Msg::News(news) => state.on_news(news),
            Msg::Restart(kind) => state.restart(kind, &me.get_cell()).await,
            Msg::Wake => {
                state.look_for_work();
                state.lines.courier.tell(outbox_dispatcher::Msg::Wake);
            }
            Msg::WakeCourier => {
                state.lines.courier.tell(outbox_dispatcher::Msg::Wake);
            }
            Msg::ShowFace => state.show_face(),
            Msg::Nudge(task) => {
                state.runs.tell_task(task, || launcher::Msg::Look);
                state.node.hint(Hint::Task(task));
            }
            Msg::LeaveToOthers(shard) => {
                state.leaving.insert(shard);
                state.runs.tell(shard, launcher::Msg::Leave);
            }
            Msg::Heard(hints) => state.on_heard(&hints),
            Msg::Hint(hint) => state.node.hint(hint),
            Msg::Drain(done) => state.drain(done, &me),
            Msg::DrainOver(drain) => state.on_drain_over(drain),
            Msg::GiveUp => state.give_up(),
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
        if state.runs.is_empty() && state.draining.is_some() {
            me.stop(Some("drained".into()));
        }
        outcome
    }

    /// Children end in the reverse order of their start; the session last, since it says that this node lives.
    async fn post_stop(&self, _: ActorRef<Msg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        let order = [
            Kind::Steward,
            Kind::Courier,
            Kind::Restorer,
            Kind::CheckpointWriter,
            Kind::DataLogWriter,
            Kind::LeaseKeeper,
            Kind::Session,
        ];
        for kind in order {
            if let Some((child, _)) = state.children.remove(&kind) {
                crate::actors::supervisor::children::end(kind, &child).await;
            }
        }
        state.leaf.leave();
        Ok(())
    }
}

impl State {
    /// Others see what this node takes, has, and whether it drains.
    pub(crate) fn show_face(&self) {
        self.room.write(&self.ledger, self.waits.len());
        self.lines.session.tell(session::Msg::Describe {
            draining: self.takes_nothing(),
        });
    }

    pub(crate) fn look_for_work(&self) {
        self.lines.restorer.tell(restorer::Msg::Wake);
    }

    fn on_rebook(
        &mut self,
        task: TaskId,
        (rate, share): (RateLimit, Share),
        answer: oneshot::Sender<Result<(), Refusal>>,
    ) {
        let before = self.ledger.held_sum();
        let outcome = self.ledger.change_task(task, rate, share).map(|_| ());
        if self.ledger.held_sum() < before {
            self.look_for_work();
        }
        told(task, answer, outcome);
    }

    fn on_news(&mut self, news: News) {
        match news {
            News::Begun(life) => {
                self.life = Some(life);
                if self.takes_nothing() {
                    self.show_face();
                }
                self.look_for_work();
            }
            News::Fenced(id) => {
                self.life.take_if(|life| life.id == id);
                self.give_up_starting();
                self.runs.tell_all(|| launcher::Msg::Drop);
            }
            News::Shards(id, sent, rows, drain) => {
                let first = self.life.as_ref().is_some_and(|life| life.id == id);
                if first {
                    self.on_drain_wish(drain);
                    self.on_rows(sent, rows);
                }
            }
        }
    }

    /// What the heartbeat found: wishes for the runs, and shards of ours that nobody here runs.
    fn on_rows(&mut self, sent: Moment, rows: Vec<OwnedShard>) {
        let rows: BTreeMap<ShardId, OwnedShard> = rows.into_iter().map(|row| (row.shard, row)).collect();
        self.runs.show(&rows, sent);
        self.ended.retain(|_, at| *at >= sent);
        for (shard, row) in rows {
            if !self.runs.holds(shard) && !self.ended.contains_key(&shard) {
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
        if let Some(shard) = self.runs.remove(id) {
            self.on_launcher_ended(shard, end, reason);
            return Ok(());
        }
        let now = self.node.clock.now();
        let found = self
            .children
            .iter_mut()
            .find(|(_, (cell, _))| cell.get_id() == id);
        let Some((kind, (_, restarts))) = found else {
            return Ok(());
        };
        let kind = *kind;
        let path = self.leaf.child(kind.as_str());
        tracing::error!(actor = path, error = reason, "actor failed");
        self.node.tree.failed(&path, reason);
        match restarts.on_failure(policy(kind), now) {
            Some(wait) => {
                self.me.tell_after(wait, Msg::Restart(kind));
                Ok(())
            }
            None => Err(ActorProcessingErr::from(format!(
                "{} failed too often: {reason}",
                kind.as_str()
            ))),
        }
    }

    fn on_launcher_ended(&mut self, shard: ShardId, end: Option<LauncherEnd>, reason: &str) {
        self.ledger.release(shard);
        let now = self.node.clock.now();
        self.ended.insert(shard, now);
        if self.leaving.remove(&shard) {
            self.bars.was_left(shard, now);
        }
        let path = self.leaf.child(&shard.to_string());
        // What was not to be had is still offered: to look at once would be to try without a pause.
        let looks = !matches!(
            end,
            Some(LauncherEnd::NotOwned | LauncherEnd::Barred(_) | LauncherEnd::StillOwned(_))
        );
        match end {
            Some(end) => {
                if matches!(end, LauncherEnd::NotOwned | LauncherEnd::Barred(_)) {
                    tracing::debug!(actor = path, %end, "shard not had");
                } else {
                    tracing::info!(target: tree::LOG, actor = path, %end, "run ended");
                }
                match &end {
                    LauncherEnd::Fenced => self.node.meters.fenced(),
                    LauncherEnd::Closed(RunClose::Recovering { reason, .. }) => {
                        self.node.meters.recovers(reason)
                    }
                    LauncherEnd::Closed(RunClose::Released) => self.node.hint(Hint::Work),
                    LauncherEnd::NotOwned => self.bars.was_lost(shard, now, &self.node.new_ids),
                    LauncherEnd::Barred(bar) => self.bars.was_barred(shard, *bar, now),
                    LauncherEnd::Closed(_) | LauncherEnd::StillOwned(_) => {}
                }
                self.node.tree.forget(&path);
                self.failures.remove(&shard);
            }
            None => {
                tracing::error!(
                    actor = path,
                    error = reason,
                    "launcher failed; its shard will recover"
                );
                self.node.tree.failed(&path, reason);
                *self.failures.entry(shard).or_insert(0) += 1;
            }
        }
        if looks {
            self.look_for_work();
        }
        // A run that ended may have left a hook call.
        self.lines.courier.tell(outbox_dispatcher::Msg::Wake);
    }

    fn say(&self) {
        let activity = if self.takes_nothing() {
            Activity::Draining
        } else {
            Activity::Ok
        };
        let (runs, reserved) = (counted(self.runs.len() as u64, "run"), self.ledger.held_sum());
        self.room.write(&self.ledger, self.waits.len());
        self.leaf.say(activity, format!("{runs}, {reserved} reserved"));
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.leaf.leave();
    }
}

fn told(task: TaskId, answer: oneshot::Sender<Result<(), Refusal>>, outcome: Result<(), Refusal>) {
    if answer.send(outcome).is_err() {
        tracing::debug!(%task, "nobody waits for the answer to a change of the booking");
    }
}
