//! Does what time makes due: deadlines, hooks that were not answered, tasks that no node serves, what isn't kept longer.
//!
//! Each second it starts one round of work, unless the last is still on its way. What it does are the commands that
//! people give too; when two nodes find the same, one of them is first and the other is refused.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::policy::Kind;
use crate::actors::runtime::tree::{Activity, Address, Leaf, Line};
use crate::actors::upkeep::work::{self, Done, Round};
use windrow_core::handler::elsewhere::Elsewhere;
use windrow_core::ids::{Moment, ShardId, TaskId, WallMs};

const ROUND_EVERY: Duration = Duration::from_secs(1);
/// How often it looks for tasks that no node serves.
const SERVED_EVERY: Duration = Duration::from_secs(5);
/// How often it removes what isn't kept longer.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// How often it looks whether handlers that are down here answer other nodes.
const ELSEWHERE_EVERY: Duration = Duration::from_secs(10);

/// Who hears what it did.
#[derive(Clone)]
pub(crate) struct Sinks {
    /// A task was commanded.
    pub(crate) nudge: Arc<dyn Fn(TaskId) + Send + Sync>,
    /// This shard's handler is down for this node only.
    pub(crate) leave: Arc<dyn Fn(ShardId) + Send + Sync>,
    /// Something can be claimed.
    pub(crate) restorer: Line<crate::actors::membership::restorer::Msg>,
}

pub(crate) enum Msg {
    Tick,
    /// A round is over.
    Done(Done),
}

pub(crate) struct State {
    node: Arc<NodeContext>,
    sinks: Sinks,
    me: Address<Msg>,
    leaf: Leaf,
    working: bool,
    /// Until when starts were looked for.
    seen: WallMs,
    served_at: Moment,
    swept_at: Moment,
    looked_elsewhere_at: Moment,
    elsewhere: Elsewhere,
}

pub(crate) struct Steward;

impl Actor for Steward {
    type Msg = Msg;
    type State = State;
    type Arguments = (Arc<NodeContext>, Sinks);

    async fn pre_start(
        &self,
        me: ActorRef<Msg>,
        (node, sinks): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let leaf = node.tree.enter(&format!("{}/steward", node.node), Kind::Steward);
        let me = Address::new(me, leaf.clone());
        me.tell_after(ROUND_EVERY, Msg::Tick);
        let (seen, now) = (node.clock.wall(), node.clock.now());
        Ok(State {
            node,
            sinks,
            me,
            leaf,
            working: false,
            seen,
            served_at: now,
            swept_at: now,
            looked_elsewhere_at: now,
            elsewhere: Elsewhere::default(),
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
            Msg::Tick => {
                state.begin_round();
                state.me.tell_after(ROUND_EVERY, Msg::Tick);
            }
            Msg::Done(done) => {
                state.working = false;
                state.leaf.say(Activity::Ok, done.text());
                state.elsewhere = done.elsewhere;
            }
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<Msg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        state.leaf.leave();
        Ok(())
    }
}

impl State {
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
                sinks
                    .restorer
                    .tell(crate::actors::membership::restorer::Msg::Wake);
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

impl Drop for State {
    fn drop(&mut self) {
        self.leaf.leave();
    }
}
