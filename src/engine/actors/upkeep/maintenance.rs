//! Work that becomes due with time: deadlines, unanswered hooks, tasks that no node serves, removal of expired data.
//!
//! Each second it starts one round of work, unless the last is still running. It uses the commands that people use;
//! when two nodes find the same work, one is first and the other is refused.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorProcessingErr;

use crate::actors::membership::restorer;
use crate::actors::runtime::actor::{Handled, TreeActor};
use crate::actors::runtime::address::{Address, Route};
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::tree::Activity;
use crate::actors::upkeep::work::{self, Done, Round};
use windrow_core::handler::elsewhere::Elsewhere;
use windrow_core::ids::{Moment, ShardId, TaskId, WallMs};

const ROUND_EVERY: Duration = Duration::from_secs(1);
/// Interval between checks for tasks that no node serves.
const SERVED_EVERY: Duration = Duration::from_secs(5);
/// Interval between removals of expired data.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Interval between checks whether handlers that are down here answer other nodes.
const ELSEWHERE_EVERY: Duration = Duration::from_secs(10);

/// Callbacks for the results of a round.
#[derive(Clone)]
pub(crate) struct Sinks {
    /// Called for a task that got a command.
    pub(crate) nudge: Arc<dyn Fn(TaskId) + Send + Sync>,
    /// Called for a shard whose handler is down for this node only.
    pub(crate) leave: Arc<dyn Fn(ShardId) + Send + Sync>,
    /// Woken when something can be claimed.
    pub(crate) restorer: Route<restorer::Msg>,
}

pub(crate) enum Msg {
    Tick,
    Done(Done),
}

pub(crate) struct Maintenance {
    node: Arc<NodeContext>,
    sinks: Sinks,
    me: Address<Msg>,
    working: bool,
    /// Time up to which due starts were searched.
    seen: WallMs,
    served_at: Moment,
    swept_at: Moment,
    looked_elsewhere_at: Moment,
    elsewhere: Elsewhere,
}

impl TreeActor for Maintenance {
    type Msg = Msg;
    type Arguments = (Arc<NodeContext>, Sinks);

    async fn begin(me: Address<Msg>, (node, sinks): Self::Arguments) -> Result<Self, ActorProcessingErr> {
        me.tell_after(ROUND_EVERY, Msg::Tick);
        let (seen, now) = (node.clock.wall(), node.clock.now());
        Ok(Maintenance {
            node,
            sinks,
            me,
            working: false,
            seen,
            served_at: now,
            swept_at: now,
            looked_elsewhere_at: now,
            elsewhere: Elsewhere::default(),
        })
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Tick => {
                self.begin_round();
                self.me.tell_after(ROUND_EVERY, Msg::Tick);
            }
            Msg::Done(done) => {
                self.working = false;
                self.me.leaf.say(Activity::Ok, done.text());
                self.elsewhere = done.elsewhere;
            }
        }
        Ok(())
    }
}

impl Maintenance {
    fn begin_round(&mut self) {
        if self.working {
            return;
        }
        self.working = true;
        let round = self.round();
        let (node, sinks, me) = (self.node.clone(), self.sinks.clone(), self.me.clone());
        tokio::spawn(self.me.guard(async move {
            let done = work::work(&node, round).await;
            done.commanded.iter().for_each(|task| (sinks.nudge)(*task));
            done.left.iter().for_each(|shard| (sinks.leave)(*shard));
            if done.wakes {
                sinks.restorer.tell(restorer::Msg::Wake);
            }
            me.tell(Msg::Done(done));
        }));
    }

    fn round(&mut self) -> Round {
        let (now, after) = (self.node.clock.now(), self.seen);
        self.seen = self.node.clock.wall();
        let is_due = |last: &mut Moment, every: Duration| {
            let is_due = now.since(*last) >= every;
            if is_due {
                *last = now;
            }
            is_due
        };
        Round {
            after,
            now: self.seen,
            looks_for_unserved: is_due(&mut self.served_at, SERVED_EVERY),
            sweeps: is_due(&mut self.swept_at, SWEEP_EVERY),
            looks_elsewhere: is_due(&mut self.looked_elsewhere_at, ELSEWHERE_EVERY),
            elsewhere: std::mem::take(&mut self.elsewhere),
        }
    }
}
