//! Firing of schedules: decides about due schedules by the database's clock, and has the tasks of their fires made.
//!
//! Every node does this, all alike: the store lets one decide about a fire and one settle it. A fire that a node was
//! about to make when it died is taken by another, or by this one, after a lease. One poll is bounded; the rest is
//! left to the next, which follows at once.

use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

use ractor::ActorProcessingErr;

use crate::actors::runtime::actor::{Handled, TreeActor};
use crate::actors::runtime::address::Address;
use crate::actors::runtime::context::{NodeContext, ScheduleParts};
use crate::actors::runtime::in_time;
use crate::actors::runtime::routes::Routes;
use crate::actors::runtime::tree::Activity;
use crate::actors::upkeep::firing;
use crate::ports::StoreError;
use crate::ports::schedules::store::{Agenda, FireOutcome, Fired, Taken, TakenFire};
use windrow_core::explain::counted;
use windrow_core::ids::TaskId;

/// Polling interval without a wake-up; fires that wait until nothing runs are found then, too.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Shortest pause between two polls for a fire that is about to be due.
const LOOK_REST: Duration = Duration::from_millis(5);
/// Maximum number of schedules decided per poll.
const DUE_MAX: u32 = 100;
/// Maximum number of tasks that this node makes at a time.
const MAKING_MAX: u32 = 8;
/// Time after which an unanswered query is repeated.
const PATIENCE: Duration = Duration::from_secs(20);

/// Callback for a task that got a command.
pub(crate) type Nudge = Arc<dyn Fn(TaskId) + Send + Sync>;

pub(crate) enum Msg {
    /// Poll now: a schedule was changed or a fire ordered.
    Wake,
    /// Time to poll; the tick of an older poll is ignored.
    Tick(u64),
    Looked(Result<Look, StoreError>),
    Made,
}

/// Result of one poll.
pub(crate) struct Look {
    agenda: Agenda,
    fired: u64,
    taken: Taken,
}

pub(crate) struct Scheduler {
    node: Arc<NodeContext>,
    parts: Option<ScheduleParts>,
    nudge: Nudge,
    me: Address<Msg>,
    looking: bool,
    again: bool,
    making: u32,
    /// Number of the newest tick.
    ticks: u64,
    fails: bool,
}

impl TreeActor for Scheduler {
    type Msg = Msg;
    type Arguments = (Arc<NodeContext>, Nudge, Routes);

    async fn begin(
        me: Address<Msg>,
        (node, nudge, routes): Self::Arguments,
    ) -> Result<Self, ActorProcessingErr> {
        routes.scheduler.lead_to(&me);
        let parts = node.schedules.clone();
        if parts.is_some() {
            me.tell(Msg::Tick(0));
        } else {
            me.leaf.say(Activity::Ok, say::no_schedules());
        }
        Ok(Scheduler {
            node,
            parts,
            nudge,
            me,
            looking: false,
            again: false,
            making: 0,
            ticks: 0,
            fails: false,
        })
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Wake => self.look(),
            Msg::Tick(tick) if tick == self.ticks => self.look(),
            Msg::Tick(_) => {}
            Msg::Looked(look) => self.on_looked(look),
            Msg::Made => {
                self.making = self.making.saturating_sub(1);
                if self.again {
                    self.look();
                }
            }
        }
        Ok(())
    }
}

impl Scheduler {
    fn look(&mut self) {
        let Some(parts) = &self.parts else { return };
        if self.looking {
            self.again = true;
            return;
        }
        (self.looking, self.again) = (true, false);
        let room = MAKING_MAX.saturating_sub(self.making);
        let room = if parts.maker.get().is_some() { room } else { 0 };
        let (node, parts, me) = (self.node.clone(), parts.clone(), self.me.clone());
        let alone = self.making == 0;
        tokio::spawn(self.me.guard(async move {
            let looked = look(&node, &parts, (room, alone));
            me.tell(Msg::Looked(in_time(PATIENCE, say::the_store(), looked).await));
        }));
    }

    fn on_looked(&mut self, look: Result<Look, StoreError>) {
        self.looking = false;
        let wait = match look {
            Ok(look) => {
                self.fails = false;
                self.on_found(look)
            }
            Err(error) => {
                if !self.fails {
                    tracing::warn!(
                        actor = self.me.leaf.path(),
                        %error,
                        "schedules not checked; trying again"
                    );
                }
                self.fails = true;
                LOOK_EVERY
            }
        };
        self.ticks += 1;
        let wait = if self.again { Duration::ZERO } else { wait };
        self.me.tell_after(wait, Msg::Tick(self.ticks));
        self.say();
    }

    /// Starts making the taken fires. Returns the time until the next poll.
    fn on_found(&mut self, look: Look) -> Duration {
        for task in look.taken.cancels {
            self.cancel(task);
        }
        let is_full = look.agenda.due.len() as u32 >= DUE_MAX;
        for fire in look.taken.fires {
            self.make(fire);
        }
        // Fires that didn't fit are taken as soon as one in progress is made.
        self.again |= look.agenda.has_open && self.making >= MAKING_MAX;
        if is_full || look.fired > 0 {
            self.again |= is_full;
            return LOOK_REST;
        }
        let nearest = look.agenda.nearest.map(|due| due.since(look.agenda.now));
        nearest.map_or(LOOK_EVERY, |nearest| nearest.clamp(LOOK_REST, LOOK_EVERY))
    }

    fn make(&mut self, fire: TakenFire) {
        let Some(parts) = self.parts.clone() else { return };
        self.making += 1;
        let (node, me) = (self.node.clone(), self.me.clone());
        // Sources are read and counted on the work runtime, not where actors run.
        let making = self
            .node
            .work
            .spawn(async move { firing::make(&node, &parts, fire).await });
        tokio::spawn(self.me.guard(async move {
            if let Err(error) = making.await {
                tracing::error!(%error, "task of a fire not created; trying again after the lease");
            }
            me.tell(Msg::Made);
        }));
    }

    fn cancel(&self, task: TaskId) {
        let (node, nudge) = (self.node.clone(), self.nudge.clone());
        tokio::spawn(self.me.guard(async move {
            if firing::cancel(&node, task).await {
                nudge(task);
            }
        }));
    }

    fn say(&self) {
        let making = counted(u64::from(self.making), "task");
        self.me.leaf.say(Activity::Ok, format!("{making} being made"));
    }
}

async fn look(
    node: &NodeContext,
    parts: &ScheduleParts,
    (room, alone): (u32, bool),
) -> Result<Look, StoreError> {
    let agenda = parts.store.agenda(DUE_MAX).await?;
    let mut fired = 0;
    for due in &agenda.due {
        let decided = parts.store.fire_due(*due).await?;
        fired += decided.fires.len() as u64 + u64::from(decided.is_mended);
        note(node, &decided);
    }
    let is_open = agenda.has_open || fired > 0;
    let taken = if is_open && room > 0 {
        parts.store.take_fires(room, alone).await?
    } else {
        Taken::default()
    };
    for fire in &taken.given_up {
        let (schedule, at, why) = (fire.schedule, fire.time.to_rfc3339(), fire.text.as_deref());
        tracing::error!(%schedule, at, why, "fire failed: no task created");
        node.meters.fired(FireOutcome::Failed, 1);
    }
    Ok(Look { agenda, fired, taken })
}

/// Logs the decisions. A pending fire is logged when it is settled.
fn note(node: &NodeContext, fired: &Fired) {
    for fire in &fired.fires {
        let (schedule, at) = (fire.schedule, fire.time.to_rfc3339());
        match fire.outcome {
            FireOutcome::Pending => {}
            FireOutcome::Missed => {
                let last = fire.last.to_rfc3339();
                tracing::warn!(%schedule, at, last, fires = fire.count, "fires missed");
            }
            outcome => tracing::info!(%schedule, at, %outcome, why = fire.text, "fire decided"),
        }
        if fire.outcome != FireOutcome::Pending {
            node.meters.fired(fire.outcome, fire.count);
        }
    }
    if let Some(late) = fired.late {
        node.meters.fired_late(late);
    }
    if fired.is_mended {
        tracing::warn!("next fire was set by a database clock that was ahead; recomputed");
    }
}
