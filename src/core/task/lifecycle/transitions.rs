//! The one transition table: which verb is legal in which status, and what the task wants and is afterwards.
//!
//! The store calls [`decide`] inside the transaction that locks the task row, and stores what it says. A command
//! of a person needs nothing more. A fact that a run reports also changes shard rows; for a task of several shards
//! the status is then [`status_of`] over all of them. Both agree wherever both apply (`tests/model/lifecycle.rs`).

use super::{Refusal, Status, Desired};

crate::slugs! {
    /// What people do to a task, and what happens to it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Verb {
        /// Run, or run on.
        Start = "start",
        /// Drain and stop.
        Stop = "stop",
        /// Stop without waiting for calls in flight; makes an ordinary stop under way an immediate one.
        StopNow = "stop_now",
        /// End for good.
        Cancel = "cancel",
        /// Change the live settings.
        Tune = "tune",
        /// Change what it is called and when it goes: name, labels, priority, deadline.
        Describe = "describe",
        /// Change what it means, fixed while it runs: parameters, source, total, items left out at the head, shards.
        Edit = "edit",
        /// End early: what was not dispatched is excluded.
        Finish = "finish",
        /// Add items to an open task.
        Append = "append",
        /// Take no more of them: it finishes once all are settled.
        Seal = "seal",
        /// Give up the items that wait with a code.
        Fail = "fail",
        /// Settle items as skipped that aren't settled, without calling them.
        Skip = "skip",
        /// Try it now, not when its waiting time is over; where its end didn't add up, look at it again.
        Recover = "recover",
        /// A person started or recovered what had rested too long to go on by itself.
        Woken = "woken",
        /// A person gave another time to what waits for its start.
        Rescheduled = "rescheduled",
        /// A node claimed a shard.
        Claimed = "claimed",
        /// A run gave its shard back, still to be done.
        Released = "released",
        /// A run ended and is to be tried again later.
        Recovered = "recovered",
        /// A run ended because the task stops: by wish, by the business, or by a limit that the run found exceeded.
        Drained = "drained",
        /// The last shard is done.
        AllSettled = "all_settled",
        /// The ends are written, and what is to be published is.
        Finalized = "finalized",
        /// A person started what has only its publication left.
        PublishAgain = "publish_again",
        /// The before-run hook was sent; the business has yet to answer.
        HookAsked = "hook_asked",
        /// The business is ready.
        HookReady = "hook_ready",
        /// The business refused to run the task, or never answered.
        HookRefused = "hook_refused",
    }
}

impl Verb {
    /// Whether a person gives it as a command; the others are facts.
    pub fn is_command(self) -> bool {
        use Verb::{Fail, Cancel, Describe, Edit, Finish, Recover, Skip, Start, Stop, StopNow, Tune};
        self.is_of_open_tasks()
            || matches!(
                self,
                Start | Stop | StopNow | Cancel | Tune | Describe | Edit | Finish | Fail | Skip | Recover
            )
    }

    /// Whether it is a command that only tasks know which were made open.
    pub fn is_of_open_tasks(self) -> bool {
        matches!(self, Verb::Append | Verb::Seal)
    }
}

/// Where a task stands when a verb arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What it wants.
    pub desired: Desired,
    /// What it is.
    pub status: Status,
    /// Whether a shard row names an owner: for a command now, for a fact after it. A fenced session still owns.
    pub owned: bool,
}

/// What a legal verb makes of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What it wants now.
    pub desired: Desired,
    /// What it is now.
    pub status: Status,
}

/// One row of the table. Where `idle` or `owned` says `stopped` and the wish is to cancel, it is `cancelled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// What arrives.
    pub verb: Verb,
    /// In which states it is legal.
    pub from: &'static [Status],
    /// What the task wants afterwards; none leaves the wish. A wish to stop never becomes a weaker one.
    pub desired: Option<Desired>,
    /// The status afterwards where no shard is owned; none leaves it.
    pub idle: Option<Status>,
    /// The status afterwards where one is; none leaves it.
    pub owned: Option<Status>,
}

use Status::{
    AwaitingBusiness, Created, Finalizing, Finished, Queued, Recovering, Running, Stopped, Stopping,
};

/// The states in which a task may be stopped; `stopping` itself makes a repeat harmless.
const STOPPABLE: &[Status] = &[Queued, AwaitingBusiness, Running, Recovering, Stopping];

/// The state in which all that is left of a task is to publish its results; of other tasks nothing is left to stop.
const PUBLISHES: &[Status] = &[Finalizing];

/// The states of a task that has not ended.
const OPEN: &[Status] = &[
    Created,
    Queued,
    AwaitingBusiness,
    Running,
    Recovering,
    Stopping,
    Stopped,
];

/// Those of them in which items may have failed.
const BEGUN: &[Status] = &[Queued, AwaitingBusiness, Running, Recovering, Stopping, Stopped];

/// Those in which its last item may be settled.
const SETTLES: &[Status] = &[Queued, Running, Recovering, Stopping, Stopped];

/// Where a verb leads: without an owned shard, and with one.
type Leads = (Option<Status>, Option<Status>);

const STAYS: Leads = (None, None);
const STOPS: Leads = (Some(Stopped), Some(Stopping));
const QUEUES: Leads = to(Queued);

const EDGES: &[Edge] = &[
    edge(Verb::Start, &[Created, Stopped], Some(Desired::Run), QUEUES),
    edge(Verb::Stop, STOPPABLE, Some(Desired::Stop), STOPS),
    edge(Verb::StopNow, STOPPABLE, Some(Desired::StopNow), STOPS),
    edge(Verb::Cancel, OPEN, Some(Desired::Cancel), STOPS),
    // Only of a task whose results are still to be published; `Life::end` refuses it of others.
    edge(Verb::Stop, PUBLISHES, Some(Desired::Stop), STOPS),
    edge(Verb::StopNow, PUBLISHES, Some(Desired::StopNow), STOPS),
    edge(Verb::Cancel, PUBLISHES, Some(Desired::Cancel), STOPS),
    edge(Verb::Tune, OPEN, None, STAYS),
    edge(Verb::Describe, OPEN, None, STAYS),
    edge(Verb::Edit, &[Created, AwaitingBusiness, Stopped], None, STAYS),
    edge(Verb::Finish, &[Queued, Running, Recovering, Stopped], None, STAYS),
    // Of a task that was made open and isn't sealed; `Life` refuses it of others.
    edge(Verb::Append, OPEN, None, STAYS),
    edge(Verb::Seal, OPEN, None, STAYS),
    edge(Verb::Fail, BEGUN, None, STAYS),
    edge(Verb::Skip, OPEN, None, STAYS),
    edge(Verb::Recover, &[Recovering], None, (Some(Queued), None)),
    // Nothing happens by itself to a task whose end doesn't add up. Whoever has mended the cause has it proved again.
    edge(Verb::Recover, &[Finalizing], None, STAYS),
    // Dormant (`lifecycle::DORMANT`): nobody claims it, so a command has to begin it anew.
    edge(
        Verb::Woken,
        &[Queued, Recovering],
        Some(Desired::Run),
        (Some(Queued), None),
    ),
    // It waits for its start, so nobody claims it; a start with another time moves it (`Life::waits_for_start`).
    edge(
        Verb::Rescheduled,
        &[Queued],
        Some(Desired::Run),
        (Some(Queued), None),
    ),
    edge(Verb::Claimed, &[Queued, Running, Recovering], None, to(Running)),
    // A stopped task whose owner died is claimed only to commit `stopped`.
    edge(Verb::Claimed, &[Stopping], None, STAYS),
    // The shard that publishes.
    edge(Verb::Claimed, PUBLISHES, None, STAYS),
    edge(Verb::Released, &[Running], None, (Some(Queued), Some(Running))),
    edge(Verb::Released, &[Stopping], None, STOPS),
    edge(Verb::Released, PUBLISHES, None, STAYS),
    edge(
        Verb::Recovered,
        &[Running],
        None,
        (Some(Recovering), Some(Running)),
    ),
    edge(Verb::Recovered, &[Stopping], None, STOPS),
    edge(Verb::Recovered, PUBLISHES, None, STAYS),
    edge(
        Verb::Drained,
        &[Running, Stopping, Finalizing],
        Some(Desired::Stop),
        STOPS,
    ),
    // Without a run where finishing early leaves nothing to do.
    edge(Verb::AllSettled, SETTLES, None, (Some(Finalizing), None)),
    // What was published before its stop was heard is.
    edge(Verb::Finalized, &[Finalizing, Stopping], None, to(Finished)),
    edge(Verb::PublishAgain, &[Stopped], Some(Desired::Run), to(Finalizing)),
    edge(Verb::HookAsked, &[Queued], None, to(AwaitingBusiness)),
    edge(Verb::HookReady, &[AwaitingBusiness], None, QUEUES),
    edge(Verb::HookRefused, &[AwaitingBusiness], Some(Desired::Stop), STOPS),
];

const fn to(status: Status) -> Leads {
    (Some(status), Some(status))
}

const fn edge(verb: Verb, from: &'static [Status], desired: Option<Desired>, (idle, owned): Leads) -> Edge {
    Edge {
        verb,
        from,
        desired,
        idle,
        owned,
    }
}

/// The whole table, for the documentation and for tests.
pub fn edges() -> &'static [Edge] {
    EDGES
}

/// What a verb makes of a task.
///
/// # Errors
/// When the verb is illegal in this status; the refusal names the commands that are legal.
///
/// ```
/// use windrow_core::task::lifecycle::{Decision, Standing, Status, Verb, Wish, decide};
///
/// let running = Standing { wish: Wish::Run, status: Status::Running, owned: true };
/// assert_eq!(decide(Verb::Stop, running), Ok(Decision { wish: Wish::Stop, status: Status::Stopping }));
///
/// let waiting = Standing { wish: Wish::Run, status: Status::Queued, owned: false };
/// assert_eq!(decide(Verb::Stop, waiting), Ok(Decision { wish: Wish::Stop, status: Status::Stopped }));
/// ```
pub fn decide(verb: Verb, standing: Standing) -> Result<Decision, Refusal> {
    let edge = find(verb, standing.status).ok_or_else(|| refusal(verb, standing.status))?;
    let desired = edge
        .desired
        .map_or(standing.desired, |asked| stronger(standing.desired, asked));
    let to = if standing.owned { edge.owned } else { edge.idle };
    let status = match to.unwrap_or(standing.status) {
        Stopped if desired == Desired::Cancel => Status::Cancelled,
        status => status,
    };
    Ok(Decision { desired, status })
}

fn find(verb: Verb, status: Status) -> Option<&'static Edge> {
    EDGES
        .iter()
        .find(|edge| edge.verb == verb && edge.from.contains(&status))
}

fn refusal(verb: Verb, status: Status) -> Refusal {
    // Whether the task is open nobody says here.
    let is_of_all = |verb: &&Verb| verb.is_command() && !verb.is_of_open_tasks();
    let commands = Verb::ALL.iter().filter(is_of_all);
    let allowed = commands
        .filter(|verb| find(**verb, status).is_some())
        .map(|verb| verb.as_str())
        .collect();
    Refusal {
        verb: verb.as_str(),
        status,
        allowed,
    }
}

/// A task that is to be cancelled isn't merely stopped by a later stop, nor does an immediate stop become a slow one.
fn stronger(held: Desired, asked: Desired) -> Desired {
    let strength = |desired| match desired {
        Desired::Rest | Desired::Run => 0,
        Desired::Stop => 1,
        Desired::StopNow => 2,
        Desired::Cancel => 3,
    };
    // Only a legal start asks for less than a stop, and it means it.
    if asked != Desired::Run && strength(held) > strength(asked) {
        held
    } else {
        asked
    }
}

crate::slugs! {
    /// Where one shard stands.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ShardState {
        /// To be run, no owner.
        Idle = "idle",
        /// The row names an owner.
        Running = "running",
        /// To be tried again by itself, no owner.
        Recovering = "recovering",
        /// Its last run ended because the task stops, no owner.
        Stopped = "stopped",
        /// Every item is settled, no owner.
        Done = "done",
    }
}

/// The rows that a task's status is made of, besides its wish. Time is in them: whoever finds an owner dead
/// changes the shard row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shards<'a> {
    /// Each shard that has items; at least one.
    pub states: &'a [ShardState],
    /// The one that publishes the results, once all others are done.
    pub publication: Option<ShardState>,
    /// The before-run hook was sent and not answered.
    pub awaiting_business: bool,
    /// The ends are written.
    pub finalized: bool,
}

impl Shards<'_> {
    /// Whether a shard row names an owner.
    pub fn is_owned(&self) -> bool {
        self.has(ShardState::Running) || self.publication == Some(ShardState::Running)
    }

    /// Whether all that is left is to publish the results.
    fn awaits_publication(&self) -> bool {
        self.is_done() && self.publication.is_some_and(|state| state != ShardState::Done)
    }

    fn has(&self, state: ShardState) -> bool {
        self.states.contains(&state)
    }

    fn is_done(&self) -> bool {
        !self.states.is_empty() && self.states.iter().all(|state| *state == ShardState::Done)
    }
}

/// What a task is, from what it wants and its rows. Everything settled wins over any wish to stop: there is
/// nothing left to stop, but for its publication.
pub fn status_of(desired: Desired, shards: &Shards<'_>) -> Status {
    match desired {
        Desired::Rest => Created,
        _ if shards.is_done() && shards.finalized => Finished,
        Desired::Run if shards.awaits_publication() => Finalizing,
        _ if shards.is_done() && !shards.awaits_publication() => Finalizing,
        Desired::Run => status_of_started(shards),
        Desired::Stop | Desired::StopNow | Desired::Cancel if shards.is_owned() => Stopping,
        Desired::Stop | Desired::StopNow => Stopped,
        Desired::Cancel => Status::Cancelled,
    }
}

fn status_of_started(shards: &Shards<'_>) -> Status {
    if shards.awaiting_business {
        AwaitingBusiness
    } else if shards.is_owned() {
        Running
    } else if shards.has(ShardState::Recovering) {
        Recovering
    } else {
        Queued
    }
}
