//! Does what time makes due: deadlines, hooks that were not answered, tasks that no node serves, what isn't kept longer.
//!
//! Each second it starts one round of work, unless the last is still on its way. What it does are the commands that
//! people give too; when two nodes find the same, one of them is first and the other is refused.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::context::NodeContext;
use super::policy::Kind;
use super::steward_work::{self, Round};
use super::tree::{Activity, Address, Leaf, Line};
use crate::domain::ids::{Moment, TaskId, WallMs};

const ROUND_EVERY: Duration = Duration::from_secs(1);
/// How often it looks for tasks that no node serves.
const SERVED_EVERY: Duration = Duration::from_secs(5);
/// How often it removes what isn't kept longer.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Who hears that a task was commanded.
pub(crate) type NudgeSink = Arc<dyn Fn(TaskId) + Send + Sync>;

pub(crate) enum Msg {
    Tick,
    /// A round is over: what it did, in words.
    Done(String),
}

pub(crate) struct State {
    node: Arc<NodeContext>,
    nudge: NudgeSink,
    restorer: Line<super::restorer::Msg>,
    me: Address<Msg>,
    leaf: Leaf,
    working: bool,
    /// Until when starts were looked for.
    seen: WallMs,
    served_at: Moment,
    swept_at: Moment,
}

pub(crate) struct Steward;

impl Actor for Steward {
    type Msg = Msg;
    type State = State;
    type Arguments = (Arc<NodeContext>, NudgeSink, Line<super::restorer::Msg>);

    async fn pre_start(
        &self,
        me: ActorRef<Msg>,
        (node, nudge, restorer): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let leaf = node.tree.enter(&format!("{}/steward", node.node), Kind::Steward);
        let me = Address::new(me, leaf.clone());
        me.tell_after(ROUND_EVERY, Msg::Tick);
        let (seen, now) = (node.clock.wall(), node.clock.now());
        Ok(State { node, nudge, restorer, me, leaf, working: false, seen, served_at: now, swept_at: now })
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
            Msg::Done(text) => {
                state.working = false;
                state.leaf.say(Activity::Ok, text);
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
        let (node, nudge) = (self.node.clone(), self.nudge.clone());
        let (restorer, me) = (self.restorer.clone(), self.me.clone());
        tokio::spawn(self.me.guard(async move {
            let done = steward_work::work(&node, &round).await;
            done.commanded.iter().for_each(|task| nudge(*task));
            if done.wakes {
                restorer.tell(super::restorer::Msg::Wake);
            }
            me.tell(Msg::Done(done.text()));
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
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.leaf.leave();
    }
}
