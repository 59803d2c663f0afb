//! Transition table of tasks: the statuses in which each verb is legal, and the desired state and status afterwards.
//!
//! The store calls [`decide`] inside the transaction that locks the task row, and stores the decision. A command of a
//! person needs nothing more. A fact that a run reports also changes shard rows; for a task of several shards the
//! status is then [`status_of`] over all of them. Both agree wherever both apply (`tests/model/lifecycle.rs`).

use super::{Desired, Refusal, Status};

crate::slugs! {
    /// Commands of people to a task, and facts that happen to it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Verb {
        /// Run, or resume after a stop.
        Start = "start",
        /// Drain the calls in flight, then stop.
        Stop = "stop",
        /// Stop without waiting for calls in flight; turns a stop that is under way into an immediate one.
        StopNow = "stop_now",
        /// End the task for good.
        Cancel = "cancel",
        /// Change the live settings.
        Tune = "tune",
        /// Change the description and times: name, labels, priority, deadline.
        Describe = "describe",
        /// Change the meaning, which is fixed while the task runs: parameters, source, total, items left out at the
        /// head, shards.
        Edit = "edit",
        /// End early: items that were not dispatched are excluded.
        Finish = "finish",
        /// Append items to an open task.
        Append = "append",
        /// Accept no more items: the open task finishes once all are settled.
        Seal = "seal",
        /// Fail the items that are retrying with a code.
        Fail = "fail",
        /// Settle unsettled items as skipped, without calling them.
        Skip = "skip",
        /// Retry now instead of after the waiting time; if the end didn't add up, check it again.
        Recover = "recover",
        /// A person started or recovered a task that was idle too long to resume by itself.
        Woken = "woken",
        /// A person changed the time of a task that waits for its start.
        Rescheduled = "rescheduled",
        /// A node claimed a shard.
        Claimed = "claimed",
        /// A run released its shard unfinished.
        Released = "released",
        /// A run ended and is to be retried later.
        Recovered = "recovered",
        /// A run ended because the task stops: by its desired state, by the business, or by a limit that the run
        /// found exceeded.
        Drained = "drained",
        /// The last shard is done.
        AllSettled = "all_settled",
        /// The end is recorded, and the results are published if they were to be.
        Finalized = "finalized",
        /// A person started a task that has only its publication left.
        PublishAgain = "publish_again",
        /// The before-run hook was sent; the business has yet to answer.
        HookAsked = "hook_asked",
        /// The business is ready for the start.
        HookReady = "hook_ready",
        /// The business refused to run the task, or never answered.
        HookRefused = "hook_refused",
    }
}

impl Verb {
    /// Returns true for commands of people; the others are facts.
    pub fn is_command(self) -> bool {
        use Verb::{Cancel, Describe, Edit, Fail, Finish, Recover, Skip, Start, Stop, StopNow, Tune};
        self.is_of_open_tasks()
            || matches!(
                self,
                Start | Stop | StopNow | Cancel | Tune | Describe | Edit | Finish | Fail | Skip | Recover
            )
    }

    /// Returns true for commands that apply only to tasks made open.
    pub fn is_of_open_tasks(self) -> bool {
        matches!(self, Verb::Append | Verb::Seal)
    }
}

/// State of a task when a verb arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Desired state of the task.
    pub desired: Desired,
    /// Status of the task.
    pub status: Status,
    /// True if a shard row names an owner: for a command now, for a fact after it. A fenced session still counts as
    /// owner.
    pub owned: bool,
}

/// State of a task after a legal verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Desired state after the verb.
    pub desired: Desired,
    /// Status after the verb.
    pub status: Status,
}

/// Row of the transition table. If `idle` or `owned` is `stopped` and the desired state is to cancel, the status is
/// `cancelled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Verb that the row is about.
    pub verb: Verb,
    /// Statuses in which it is legal.
    pub from: &'static [Status],
    /// Desired state afterwards; `None` leaves it. A stop never becomes a weaker one.
    pub desired: Option<Desired>,
    /// Status afterwards if no shard is owned; `None` leaves it.
    pub idle: Option<Status>,
    /// Status afterwards if a shard is owned; `None` leaves it.
    pub owned: Option<Status>,
}

use Status::{
    AwaitingBusiness, Created, Finalizing, Finished, Queued, Recovering, Running, Stopped, Stopping,
};

/// Statuses in which a task may be stopped; `stopping` is included so that a repeat is harmless.
const STOPPABLE: &[Status] = &[Queued, AwaitingBusiness, Running, Recovering, Stopping];

/// Status in which a task may have only its publication left; other tasks in it have nothing left to stop.
const PUBLISHES: &[Status] = &[Finalizing];

/// Statuses of a task that has not ended.
const OPEN: &[Status] = &[
    Created,
    Queued,
    AwaitingBusiness,
    Running,
    Recovering,
    Stopping,
    Stopped,
];

/// Statuses of a started task, in which items may have failed.
const BEGUN: &[Status] = &[Queued, AwaitingBusiness, Running, Recovering, Stopping, Stopped];

/// Statuses in which the last item may be settled.
const SETTLES: &[Status] = &[Queued, Running, Recovering, Stopping, Stopped];

/// Next status of a verb: without an owned shard, and with one.
type Leads = (Option<Status>, Option<Status>);

const STAYS: Leads = (None, None);
const STOPS: Leads = (Some(Stopped), Some(Stopping));
const QUEUES: Leads = to(Queued);

const EDGES: &[Edge] = &[
    edge(Verb::Start, &[Created, Stopped], Some(Desired::Run), QUEUES),
    edge(Verb::Stop, STOPPABLE, Some(Desired::Stop), STOPS),
    edge(Verb::StopNow, STOPPABLE, Some(Desired::StopNow), STOPS),
    edge(Verb::Cancel, OPEN, Some(Desired::Cancel), STOPS),
    // Only for a task whose results are still to be published; `Life::end` refuses others.
    edge(Verb::Stop, PUBLISHES, Some(Desired::Stop), STOPS),
    edge(Verb::StopNow, PUBLISHES, Some(Desired::StopNow), STOPS),
    edge(Verb::Cancel, PUBLISHES, Some(Desired::Cancel), STOPS),
    edge(Verb::Tune, OPEN, None, STAYS),
    edge(Verb::Describe, OPEN, None, STAYS),
    edge(Verb::Edit, &[Created, AwaitingBusiness, Stopped], None, STAYS),
    edge(Verb::Finish, &[Queued, Running, Recovering, Stopped], None, STAYS),
    // For a task that was made open and isn't sealed; `Life` refuses others.
    edge(Verb::Append, OPEN, None, STAYS),
    edge(Verb::Seal, OPEN, None, STAYS),
    edge(Verb::Fail, BEGUN, None, STAYS),
    edge(Verb::Skip, OPEN, None, STAYS),
    edge(Verb::Recover, &[Recovering], None, (Some(Queued), None)),
    // A task whose end doesn't add up never changes by itself. After the cause is fixed, this proves it again.
    edge(Verb::Recover, &[Finalizing], None, STAYS),
    // Dormant (`lifecycle::DORMANT`): no node claims it, so a command has to begin it anew.
    edge(
        Verb::Woken,
        &[Queued, Recovering],
        Some(Desired::Run),
        (Some(Queued), None),
    ),
    // The task waits for its start, so no node claims it; a start with another time moves it
    // (`Life::waits_for_start`).
    edge(
        Verb::Rescheduled,
        &[Queued],
        Some(Desired::Run),
        (Some(Queued), None),
    ),
    edge(Verb::Claimed, &[Queued, Running, Recovering], None, to(Running)),
    // A stopped task whose owner died is claimed only to commit `stopped`.
    edge(Verb::Claimed, &[Stopping], None, STAYS),
    // The shard that publishes the results.
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
    // Needs no run if an early finish leaves nothing to do.
    edge(Verb::AllSettled, SETTLES, None, (Some(Finalizing), None)),
    // Results that were published before the stop arrived stay published.
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

/// Returns the whole table, for the documentation and for tests.
pub fn edges() -> &'static [Edge] {
    EDGES
}

/// Returns the desired state and the status after a verb.
///
/// # Errors
/// Fails if the verb is illegal in this status; the refusal names the commands that are legal.
///
/// ```
/// use windrow_core::task::lifecycle::{Decision, Desired, Standing, Status, Verb, decide};
///
/// let running = Standing { desired: Desired::Run, status: Status::Running, owned: true };
/// assert_eq!(decide(Verb::Stop, running), Ok(Decision { desired: Desired::Stop, status: Status::Stopping }));
///
/// let waiting = Standing { desired: Desired::Run, status: Status::Queued, owned: false };
/// assert_eq!(decide(Verb::Stop, waiting), Ok(Decision { desired: Desired::Stop, status: Status::Stopped }));
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
    // It isn't known here if the task is open.
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

/// Returns the stronger desired state: a later stop doesn't weaken a cancel, and a slow stop doesn't replace an
/// immediate one.
fn stronger(held: Desired, asked: Desired) -> Desired {
    let strength = |desired| match desired {
        Desired::Rest | Desired::Run => 0,
        Desired::Stop => 1,
        Desired::StopNow => 2,
        Desired::Cancel => 3,
    };
    // Only a legal start asks for less than a stop, and it must win.
    if asked != Desired::Run && strength(held) > strength(asked) {
        held
    } else {
        asked
    }
}

crate::slugs! {
    /// State of one shard.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ShardState {
        /// To be run, without an owner.
        Idle = "idle",
        /// The shard row names an owner.
        Running = "running",
        /// To be retried automatically, without an owner.
        Recovering = "recovering",
        /// The last run ended because the task stops; no owner.
        Stopped = "stopped",
        /// Every item is settled; no owner.
        Done = "done",
    }
}

/// Rows that, with the desired state, determine a task's status. Time is included: whoever finds an owner dead
/// changes the shard row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shards<'a> {
    /// States of the shards that have items; at least one.
    pub states: &'a [ShardState],
    /// State of the shard that publishes the results, once all others are done.
    pub publication: Option<ShardState>,
    /// True while the before-run hook was sent and not answered.
    pub awaiting_business: bool,
    /// True once the end is recorded.
    pub finalized: bool,
}

impl Shards<'_> {
    /// Returns true if a shard row names an owner.
    pub fn is_owned(&self) -> bool {
        self.has(ShardState::Running) || self.publication == Some(ShardState::Running)
    }

    /// Returns true if only the publication of the results is left.
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

/// Returns the status of a task from its desired state and its rows. If everything is settled, that wins over any
/// stop: nothing is left to stop except the publication.
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
