//! Store of schedules and their fires.
//!
//! - Only the stored `next_fire` of a schedule fires, by the database's clock; the clocks of nodes play no part.
//! - [`ScheduleStore::fire_due`] stores the outcomes of due fires together with the advanced `next_fire`, in one
//!   transaction that holds the schedule's row and first checks that it is still as the caller saw it. So each fire
//!   is decided once, whichever nodes polled.
//! - A fire whose task is to be made is `pending` under a lease. The node that takes it makes the task in the
//!   transaction that settles the fire ([`Making::fire`](crate::ports::tasks::create::Making::fire)); if that node
//!   dies, another takes it.

use std::time::Duration;
use windrow_words::engine as say;

use async_trait::async_trait;

use crate::ports::StoreError;
pub use crate::ports::schedules::error::{InTheWay, ScheduleError};
pub use crate::ports::schedules::tries::{NextTry, given_up, skipped_by, skipped_for};
use crate::ports::tasks::store::Write;
use windrow_core::ids::{ScheduleId, TaskId, WallMs};
use windrow_core::schedule::Spec;
use windrow_core::slugs;

/// Maximum number of schedules of one business.
pub const PER_BUSINESS_MAX: u64 = 200;
/// Time for which a fire belongs to the node that makes its task; that node asks for more time meanwhile.
pub const FIRE_LEASE: Duration = Duration::from_secs(30);
/// Maximum number of fires that one backfill orders, and that wait at once.
pub const BACKFILL_MAX: usize = 1_000;
/// Maximum number of fires kept of each schedule, whatever their age allows.
pub const FIRES_KEPT_MAX: u64 = 10_000;
/// Lead over the current time that shows that a schedule was armed by a wrong clock.
pub const CLOCK_SLACK: Duration = Duration::from_secs(5);
/// Longest text of a fire that failed, in characters.
pub const FIRE_TEXT_MAX: usize = 500;

/// Schedule to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSchedule {
    /// Slug of the business, which must exist.
    pub business: String,
    /// Name, unique within the business.
    pub name: String,
    /// Times at which it fires.
    pub spec: Spec,
    /// Template of its tasks, as JSON text; the maker of the tasks reads it.
    pub template: String,
    /// True if its tasks may have only what the business itself may: a business made it.
    pub is_guarded: bool,
    /// True if it begins paused.
    pub paused: bool,
}

/// Schedule as stored in the database.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Number of the schedule.
    pub id: ScheduleId,
    /// Slug of the business.
    pub business: String,
    /// Name of the schedule.
    pub name: String,
    /// Times at which it fires.
    pub spec: Spec,
    /// Template of its tasks; see [`NewSchedule::template`].
    pub template: String,
    /// True if its tasks are limited to what the business may; see [`NewSchedule::is_guarded`].
    pub is_guarded: bool,
    /// True if it doesn't fire at present.
    pub paused: bool,
    /// Time of its next fire; `None` while it is paused and after the last one.
    pub next_fire: Option<WallMs>,
    /// Time at which that is due, with its jitter.
    pub next_due: Option<WallMs>,
    /// Name of its creator.
    pub created_by: String,
    /// Revision, incremented by each change made by people.
    pub revision: u64,
    /// Time at which it was made.
    pub created_at: WallMs,
    /// Time of the last change by people.
    pub updated_at: WallMs,
}

/// Values that a change of a schedule sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleEdit {
    /// Times at which it fires; its next fire is computed again if they differ.
    pub spec: Option<Spec>,
    /// Template of its tasks, and whether they are limited to what the business may.
    pub template: Option<(String, bool)>,
    /// True pauses the schedule, false resumes it.
    pub paused: Option<bool>,
}

slugs! {
    /// Cause of a fire.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FireKind {
        /// The scheduled time came.
        Scheduled = "scheduled",
        /// Someone triggered it for now.
        Triggered = "triggered",
        /// Someone ordered it for a time that was over.
        Backfilled = "backfilled",
    }
}

slugs! {
    /// Outcome of a fire.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FireOutcome {
        /// A node is making its task.
        Pending = "pending",
        /// Waiting until nothing of the schedule runs.
        Queued = "queued",
        /// The task was made.
        Made = "made",
        /// No task was made: a task of the schedule ran, or a newer fire took its place.
        Skipped = "skipped",
        /// No node was there in time, and it was not made up for. One row may stand for many.
        Missed = "missed",
        /// The task could not be made.
        Failed = "failed",
    }
}

/// Fire as stored in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fire {
    /// Schedule that it belongs to.
    pub schedule: ScheduleId,
    /// Time that the schedule names; unique within the schedule.
    pub time: WallMs,
    /// Cause of the fire.
    pub kind: FireKind,
    /// Outcome of the fire.
    pub outcome: FireOutcome,
    /// Task that was made; it may be deleted by now.
    pub task: Option<TaskId>,
    /// Last of the fires that the row stands for; equals `time` except for missed ones.
    pub last: WallMs,
    /// Number of fires that the row stands for.
    pub count: u64,
    /// Time at which it was decided.
    pub decided_at: WallMs,
    /// Time at which its outcome became final; `None` before.
    pub settled_at: Option<WallMs>,
    /// Number of tries to make its task, including one in progress.
    pub attempts: u32,
    /// Reason for the outcome, if that isn't plain.
    pub text: Option<String>,
    /// True if its task publishes as the schedule's tasks do; for a time that was over only if requested.
    pub publishes: bool,
}

/// Fires that someone orders for times that were over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backfill<'a> {
    /// Times in ascending order; at most [`BACKFILL_MAX`].
    pub times: &'a [WallMs],
    /// True if their tasks publish as the schedule's tasks do.
    pub publishes: bool,
}

impl Fire {
    /// Returns the reason why a fire for a past time publishes nothing: the fire of a later time has made its task.
    pub fn overtaken(later: WallMs) -> String {
        say::publishes_nothing(later.to_rfc3339()).to_string()
    }
}

/// Fire whose task this node makes, until its lease is over.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenFire {
    /// Schedule of the fire.
    pub schedule: Schedule,
    /// Time that the schedule names.
    pub time: WallMs,
    /// Cause of the fire.
    pub kind: FireKind,
    /// Newest fire before it that made a task.
    pub previous: Option<WallMs>,
    /// Number of tries before this one.
    pub attempts: u32,
    /// True if its task publishes as the schedule's tasks do.
    pub publishes: bool,
}

/// Due schedule, as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Number of the schedule.
    pub id: ScheduleId,
    /// Time of its next fire.
    pub next_fire: WallMs,
}

/// Work to do, by the database's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agenda {
    /// Current time of that clock.
    pub now: WallMs,
    /// Schedules with a due fire, or whose next fire was set by a wrong clock.
    pub due: Vec<Due>,
    /// True if fires may be taken: their lease is over, or they wait.
    pub has_open: bool,
    /// Time at which the next schedule becomes due.
    pub nearest: Option<WallMs>,
}

/// Result of deciding the fires of a due schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fired {
    /// Fires that were decided, and their due times; missed ones are one fire.
    pub fires: Vec<Fire>,
    /// Delay with which the newest fire that goes ahead was decided; `None` if none does.
    pub late: Option<Duration>,
    /// True if its next fire had been set by a wrong clock, and was computed again.
    pub is_mended: bool,
}

/// Open fires to be acted on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taken {
    /// Fires whose tasks are to be made.
    pub fires: Vec<TakenFire>,
    /// Tasks to be cancelled, since they are in the way of a fire that cancels what runs.
    pub cancels: Vec<TaskId>,
    /// Fires that used up their tries and have failed now.
    pub given_up: Vec<Fire>,
}

/// Filter for a list of schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleFilter {
    /// Schedules of this business.
    pub business: Option<String>,
    /// Schedules of this name.
    pub name: Option<String>,
}

/// Numbers of unsettled fires of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFires {
    /// Fires whose tasks are about to be made.
    pub pending: u64,
    /// Fires that wait until nothing runs.
    pub queued: u64,
}

/// Store of schedules and their fires.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// Returns the current time of the database's clock.
    async fn database_time(&self) -> Result<WallMs, StoreError>;

    /// Makes a schedule; its first fire is the next one from now on.
    ///
    /// # Errors
    /// `NoBusiness`, `Taken`, `Full`, or if the store fails.
    async fn create_schedule(&self, new: &NewSchedule, write: &Write) -> Result<Schedule, ScheduleError>;

    /// Returns a schedule by its number.
    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>, StoreError>;

    /// Returns schedules in the order of their numbers, after one, at most `count`.
    async fn schedules(
        &self,
        filter: &ScheduleFilter,
        after: Option<ScheduleId>,
        count: u32,
    ) -> Result<Vec<Schedule>, StoreError>;

    /// Changes a schedule, while it has the expected revision. Values that it has already are left as they are.
    ///
    /// # Errors
    /// `NotFound`, `Changed`, or if the store fails.
    async fn change_schedule(
        &self,
        id: ScheduleId,
        expected: u64,
        edit: &ScheduleEdit,
        write: &Write,
    ) -> Result<Schedule, ScheduleError>;

    /// Deletes a schedule with its fires, and returns its last state; its tasks stay.
    ///
    /// # Errors
    /// `NotFound`, or if the store fails.
    async fn delete_schedule(&self, id: ScheduleId, write: &Write) -> Result<Schedule, ScheduleError>;

    /// Orders a fire now, even of a paused schedule. Running tasks block it if the schedule says so.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, or if the store fails.
    async fn trigger(&self, id: ScheduleId, write: &Write) -> Result<Fire, ScheduleError>;

    /// Orders fires for times that are over; they run one after the other unless the schedule lets its tasks overlap.
    /// Times that have a fire which wasn't missed, skipped or failed are left out. Returns the ordered fires.
    ///
    /// # Errors
    /// `NotFound`, `Crowded`, or if the store fails.
    async fn backfill(
        &self,
        id: ScheduleId,
        wanted: Backfill<'_>,
        write: &Write,
    ) -> Result<Vec<Fire>, ScheduleError>;

    /// Skips fires that aren't settled: the one of a time, or all. A node that makes the task of one meanwhile finds
    /// it settled and makes none. Returns the skipped fires.
    ///
    /// # Errors
    /// `NotFound`, `NotOpen`, or if the store fails.
    async fn skip_fires(
        &self,
        id: ScheduleId,
        time: Option<WallMs>,
        write: &Write,
    ) -> Result<Vec<Fire>, ScheduleError>;

    /// Returns the fires of a schedule, newest first, before one, at most `count`.
    async fn fires(
        &self,
        id: ScheduleId,
        outcome: Option<FireOutcome>,
        before: Option<WallMs>,
        count: u32,
    ) -> Result<Vec<Fire>, StoreError>;

    /// Returns the numbers of unsettled fires of a schedule.
    async fn open_fires(&self, id: ScheduleId) -> Result<OpenFires, StoreError>;

    /// Returns the work to do, for at most `limit` schedules.
    async fn agenda(&self, limit: u32) -> Result<Agenda, StoreError>;

    /// Decides the due fires of a schedule, unless it has changed since it was seen.
    async fn fire_due(&self, due: Due) -> Result<Fired, StoreError>;

    /// Takes fires whose tasks are to be made, at most `limit`, each for [`FIRE_LEASE`] and one more try: pending
    /// ones whose lease is over, and waiting ones that nothing blocks any more. [`NextTry`] selects among them;
    /// `alone` is true if the node makes no other.
    async fn take_fires(&self, limit: u32, alone: bool) -> Result<Taken, StoreError>;

    /// Keeps a fire for another [`FIRE_LEASE`]. Returns true if it is still pending.
    async fn keep_fire(&self, id: ScheduleId, time: WallMs) -> Result<bool, StoreError>;

    /// Gives back a fire that could not be tried for a reason outside of it: the try doesn't count. It may be taken
    /// once its lease is over.
    async fn put_back_fire(&self, id: ScheduleId, time: WallMs) -> Result<(), StoreError>;

    /// Records that the task of a fire could not be made. It is tried again after `again`; if that is `None`, it has
    /// failed.
    async fn fail_fire(
        &self,
        id: ScheduleId,
        time: WallMs,
        text: &str,
        again: Option<Duration>,
    ) -> Result<(), StoreError>;

    /// Removes settled fires that were decided before a time, and those beyond [`FIRES_KEPT_MAX`] of a schedule; a
    /// bounded number. Returns the number removed.
    async fn expire_fires(&self, before: WallMs) -> Result<u64, StoreError>;
}
