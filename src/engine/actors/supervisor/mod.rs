//! Root of the tree: owns the node's capacity, starts and stops launchers, restarts its children.
//!
//! Admitting and booking are one step here, so that concurrent starts can't exceed the capacity. However a launcher
//! ends, its reservation is given back here. A shard that the store still assigns to this node is released here.

pub mod booking;
pub mod children;
pub mod claim_backoff;
pub mod runs;
pub mod standby;
pub mod waits;

use std::collections::BTreeMap;
use std::sync::Arc;

use ractor::actor::messages::BoxedState;
use ractor::{ActorCell, ActorProcessingErr};
use tokio::sync::oneshot;

use crate::actors::launcher::share::{Booked, Part};
use crate::actors::launcher::{self, Launcher, LauncherEnd};
use crate::actors::membership::restorer;
use crate::actors::membership::session::{self, Life, News};
use crate::actors::runtime::actor::{Entered, Handled, TreeActor};
use crate::actors::runtime::address::Address;
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::policy::Kind;
use crate::actors::runtime::routes::Routes;
use crate::actors::runtime::tree::{self, Activity};
use crate::actors::supervisor::booking::{Answer, Booking};
use crate::actors::supervisor::children::{CHILDREN, Children};
use crate::actors::supervisor::claim_backoff::ClaimBackoff;
use crate::actors::supervisor::runs::Runs;
use crate::actors::supervisor::standby::Drains;
use crate::actors::supervisor::waits::{Wait, Waits};
use crate::actors::upkeep::outbox_dispatcher;
use crate::actors::upkeep::scheduler;
use crate::actors::writers::data_log_writer::LogQueue;
use crate::ports::ownership::hints::Hint;
use crate::ports::ownership::run_store::Candidate;
use crate::ports::ownership::run_store::RunClose;
use crate::ports::ownership::session_store::OwnedShard;
use windrow_core::capacity::{Capacity, Ledger, Request};
use windrow_core::explain::counted;
use windrow_core::ids::{Moment, ShardId, TaskId};
use windrow_core::settings::RateLimit;
use windrow_core::shards::Share;
use windrow_core::task::lifecycle::KEY_MISSING;

pub(crate) enum Msg {
    /// All shards that wait to run here, as one scan found them.
    Offer(Vec<Candidate>),
    /// Start more of the admitted shards.
    LaunchMore,
    /// The waiting reasons of these tasks are stored.
    Explained(Vec<(TaskId, Wait)>),
    /// Book another rate for the running shards of a task; one of its shards would have this share.
    Rebook(TaskId, (RateLimit, Share), Answer),
    TryBook(TaskId, (RateLimit, Share), Answer),
    /// Check whether this shard would be admitted now.
    TryAdmit(Request, Answer),
    /// A launcher requests another share of its task's rate.
    Book(ShardId, Part, Booked),
    SetCapacity(Capacity),
    News(News),
    Restart(Kind),
    /// Something was started, stopped or changed: look for work and for hook calls.
    Wake,
    /// A schedule was changed, or a fire ordered.
    WakeSchedules,
    /// The advertised state of this node changed.
    ShowFace,
    /// The runs of this task should check its desired state and settings, here and on other nodes.
    Nudge(TaskId),
    /// The handler of this shard is down for this node only: leave the shard to another node.
    LeaveToOthers(ShardId),
    /// Hints received from other nodes.
    Hints(Vec<Hint>),
    /// Hint to send to other nodes.
    Hint(Hint),
    /// Hand everything over, then end. The sender is dropped when nothing is owned any more; otherwise it gets the
    /// shards that could not be given back.
    Drain(oneshot::Sender<Vec<ShardId>>),
    /// The node has been ending for as long as a lease lasts.
    LeaseOver,
    /// The time of this drain is up: abort the remaining runs.
    DrainOver(u64),
    /// The aborted runs could not be given back either: end the node without that.
    GiveUp,
}

/// Root actor of a node; each of its parts keeps the books of what it owns.
pub(crate) struct Supervisor {
    node: Arc<NodeContext>,
    me: Address<Msg>,
    routes: Routes,
    logs: LogQueue,
    life: Option<Life>,
    booking: Booking,
    children: Children,
    runs: Runs,
    waits: Waits,
    drains: Drains,
    backoff: ClaimBackoff,
}

impl TreeActor for Supervisor {
    type Msg = Msg;
    type Arguments = (Arc<NodeContext>, Ledger);

    async fn begin(
        me: Address<Msg>,
        (node, ledger): Self::Arguments,
    ) -> Result<Supervisor, ActorProcessingErr> {
        let mut supervisor = Supervisor {
            me,
            routes: Routes::default(),
            logs: LogQueue::new(),
            life: None,
            booking: Booking::new(ledger, node.room.clone()),
            children: Children::default(),
            runs: Runs::new(),
            waits: Waits::default(),
            drains: Drains::default(),
            backoff: ClaimBackoff::default(),
            node,
        };
        for kind in CHILDREN {
            let child = supervisor.start_child(kind).await?;
            supervisor.children.put(kind, child);
        }
        Ok(supervisor)
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Offer(line) => self.on_offer(line),
            Msg::LaunchMore => self.launch_some().await,
            Msg::Explained(reasons) => self.on_explained(reasons),
            Msg::Rebook(task, (rate, share), answer) => {
                let is_freed = self.booking.rebook(task, rate, share, answer);
                self.look_where(is_freed);
            }
            Msg::Book(shard, part, answer) => {
                let is_freed = self.booking.book(shard, part, answer);
                self.look_where(is_freed);
            }
            Msg::TryBook(task, (rate, share), answer) => self.booking.try_book(task, rate, share, answer),
            Msg::TryAdmit(request, answer) => {
                let now = self.node.clock.now();
                self.booking
                    .try_admit(request, || self.node.directory.ends(), now, answer);
            }
            Msg::SetCapacity(capacity) => {
                self.booking.ledger.set_capacity(capacity);
                self.look_for_work();
                self.show_face();
            }
            Msg::News(news) => self.on_news(news),
            Msg::Restart(kind) => self.restart(kind).await,
            Msg::Wake => {
                self.look_for_work();
                self.dispatch_outbox();
            }
            Msg::WakeSchedules => {
                self.routes.scheduler.tell(scheduler::Msg::Wake);
            }
            Msg::ShowFace => self.show_face(),
            Msg::Nudge(task) => {
                self.runs.tell_task(task, || launcher::Msg::Look);
                self.node.hint(Hint::Task(task));
            }
            Msg::LeaveToOthers(shard) => self.runs.leave_to_others(shard),
            Msg::Hints(hints) => self.on_hints(&hints),
            Msg::Hint(hint) => self.node.hint(hint),
            Msg::Drain(done) => self.drain(done),
            Msg::LeaseOver => self.on_lease_over(),
            Msg::DrainOver(drain) => self.on_drain_over(drain),
            Msg::GiveUp => self.give_up(),
        }
        self.say();
        Ok(())
    }

    fn on_child_ended(&mut self, child: &ActorCell, left: Option<BoxedState>, reason: &str) -> Handled {
        let outcome = match self.runs.remove(child.get_id()) {
            Some(shard) => {
                let left = left.and_then(|mut left| left.take::<Entered<Launcher>>().ok());
                self.on_launcher_ended(shard, left.and_then(|left| left.actor.end.clone()), reason);
                Ok(())
            }
            None => self.on_own_child_ended(child, reason),
        };
        self.say();
        if self.is_over() {
            self.me.actor().stop(Some("drained".into()));
        }
        outcome
    }

    async fn end(&mut self) {
        let patience = children::stop_patience(self.ends_alone());
        self.children.end(patience).await;
    }
}

impl Supervisor {
    /// Shows others the tasks that this node takes, its capacity and use, and whether it drains.
    pub(crate) fn show_face(&self) {
        self.booking.publish(self.waits.len());
        let draining = self.takes_nothing();
        self.routes.session.tell(session::Msg::Describe { draining });
    }

    pub(crate) fn look_for_work(&self) {
        self.routes.restorer.tell(restorer::Msg::Wake);
    }

    /// Looks for work if capacity was freed: a waiting shard may fit.
    fn look_where(&self, is_freed: bool) {
        if is_freed {
            self.look_for_work();
        }
    }

    fn dispatch_outbox(&self) {
        self.routes.outbox_dispatcher.tell(outbox_dispatcher::Msg::Wake);
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
                if self.life.as_ref().is_some_and(|life| life.id == id) {
                    self.on_drain_request(drain);
                    self.on_rows(sent, rows);
                }
            }
        }
    }

    /// Passes the rows found by the heartbeat to the runs, and releases orphaned shards: those of this node without a
    /// run.
    fn on_rows(&mut self, sent: Moment, rows: Vec<OwnedShard>) {
        let rows: BTreeMap<ShardId, OwnedShard> = rows.into_iter().map(|row| (row.shard, row)).collect();
        for row in self.runs.show(rows, sent) {
            self.release_orphan(row);
        }
    }

    fn on_launcher_ended(&mut self, shard: ShardId, end: Option<LauncherEnd>, reason: &str) {
        self.booking.ledger.release(shard);
        let now = self.node.clock.now();
        if self.runs.was_left(shard, now) {
            self.backoff.was_left(shard, now);
        }
        let path = self.me.leaf.child(&shard.to_string());
        // A shard that could not be taken is still offered: looking at once would mean trying without a pause.
        let looks = !matches!(
            end,
            Some(LauncherEnd::NotOwned | LauncherEnd::Unclaimable(_) | LauncherEnd::StillOwned(_))
        );
        match end {
            Some(end) => {
                if matches!(end, LauncherEnd::NotOwned | LauncherEnd::Unclaimable(_)) {
                    tracing::debug!(actor = path, %end, "shard not acquired");
                } else {
                    tracing::info!(target: tree::LOG, actor = path, %end, "run ended");
                }
                self.on_ended_as(shard, &end, now);
                self.node.tree.forget(&path);
                self.runs.forget_failures(shard);
            }
            None => {
                tracing::error!(
                    actor = path,
                    error = reason,
                    "launcher failed; its shard will recover"
                );
                self.node.tree.failed(&path, reason);
                self.runs.note_failure(shard);
            }
        }
        self.look_where(looks);
        // The run that ended may have left a hook call.
        self.dispatch_outbox();
    }

    /// Counts the end of a launcher and backs off from its shard where needed.
    fn on_ended_as(&mut self, shard: ShardId, end: &LauncherEnd, now: Moment) {
        match end {
            LauncherEnd::Fenced => self.node.meters.fenced(),
            LauncherEnd::Closed(RunClose::Recovering { reason, .. }) => {
                self.node.meters.recovers(reason);
                // The node that was first would be first again: nodes that may have the key would never get the
                // shard.
                if reason == KEY_MISSING {
                    self.backoff.was_left(shard, now);
                }
            }
            LauncherEnd::Closed(RunClose::Released) => self.node.hint(Hint::Work),
            LauncherEnd::NotOwned => self.backoff.was_lost(shard, now, &self.node.new_ids),
            LauncherEnd::Unclaimable(why) => self.backoff.was_unclaimable(shard, *why, now),
            LauncherEnd::Closed(_) | LauncherEnd::StillOwned(_) => {}
        }
    }

    fn say(&self) {
        let activity = if self.takes_nothing() {
            Activity::Draining
        } else {
            Activity::Ok
        };
        self.booking.publish(self.waits.len());
        let (runs, reserved) = (
            counted(self.runs.len() as u64, "run"),
            self.booking.ledger.held_sum(),
        );
        self.me
            .leaf
            .say(activity, format!("{runs}, {} reserved", reserved.rounded()));
    }
}
