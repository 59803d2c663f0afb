//! Keeps schedules and their fires.
//!
//! - Only the stored `next_fire` of a schedule fires, by the database's clock: what nodes think the time is plays no part.
//! - [`ScheduleStore::fire_due`] stores the outcomes of what is due together with the advanced `next_fire`, in one transaction
//!   that holds the schedule's row and begins by looking whether it is still as the caller saw it. So each fire is decided
//!   once, whichever nodes looked.
//! - A fire whose task is to be made is `pending` under a lease. Whoever takes it makes the task in the transaction that
//!   settles the fire ([`Making::fire`](crate::ports::tasks::create::Making::fire)); if that node dies, another takes it.

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

/// Schedules of one business.
pub const PER_BUSINESS_MAX: u64 = 200;
/// How long a fire whose task is being made is nobody else's. Whoever makes it asks for more time meanwhile.
pub const FIRE_LEASE: Duration = Duration::from_secs(30);
/// Fires that one backfill orders, and that wait at once, at most.
pub const BACKFILL_MAX: usize = 1_000;
/// Fires that are kept of each schedule, whatever their age allows.
pub const FIRES_KEPT_MAX: u64 = 10_000;
/// A schedule that was armed so much later than now was armed by a clock that was wrong.
pub const CLOCK_SLACK: Duration = Duration::from_secs(5);
/// The longest text of a fire that failed. Unit: characters.
pub const FIRE_TEXT_MAX: usize = 500;

/// A schedule to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSchedule {
    /// The business's slug; it must exist.
    pub business: String,
    /// Unique within the business.
    pub name: String,
    /// When it fires.
    pub spec: Spec,
    /// What its tasks are made from, as JSON text; whoever makes them reads it.
    pub template: String,
    /// Whether its tasks may have only what the business itself may: one that a business made.
    pub is_guarded: bool,
    /// Whether it begins paused.
    pub paused: bool,
}

/// A schedule as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Its number.
    pub id: ScheduleId,
    /// The business's slug.
    pub business: String,
    /// Its name.
    pub name: String,
    /// When it fires.
    pub spec: Spec,
    /// See [`NewSchedule::template`].
    pub template: String,
    /// See [`NewSchedule::is_guarded`].
    pub is_guarded: bool,
    /// Whether it doesn't fire at present.
    pub paused: bool,
    /// Its next fire; none while it is paused and after the last one.
    pub next_fire: Option<WallMs>,
    /// When that is due: with its jitter.
    pub next_due: Option<WallMs>,
    /// Who made it.
    pub created_by: String,
    /// Grows with each change by people.
    pub revision: u64,
    /// When it was made.
    pub created_at: WallMs,
    /// When it was last changed by people.
    pub updated_at: WallMs,
}

/// What a change of a schedule sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleEdit {
    /// When it fires; its next fire is computed anew where that differs.
    pub spec: Option<Spec>,
    /// What its tasks are made from, and whether only as the business may.
    pub template: Option<(String, bool)>,
    /// Whether it is paused.
    pub paused: Option<bool>,
}

slugs! {
    /// What brought a fire about.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FireKind {
        /// Its time.
        Scheduled = "scheduled",
        /// Somebody, now.
        Triggered = "triggered",
        /// Somebody, for a time that was over.
        Backfilled = "backfilled",
    }
}

slugs! {
    /// What became of a fire.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FireOutcome {
        /// A node is making its task.
        Pending = "pending",
        /// It waits until nothing of the schedule runs.
        Queued = "queued",
        /// Its task was made.
        Made = "made",
        /// It made none: a task of the schedule ran, or a newer fire took its place.
        Skipped = "skipped",
        /// No node was there in time, and it was not made up for. One row may stand for many.
        Missed = "missed",
        /// Its task could not be made.
        Failed = "failed",
    }
}

/// A fire as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fire {
    /// Of which schedule.
    pub schedule: ScheduleId,
    /// The time that the schedule names; unique within the schedule.
    pub time: WallMs,
    /// What brought it about.
    pub kind: FireKind,
    /// What became of it.
    pub outcome: FireOutcome,
    /// The task that was made; it may be deleted by now.
    pub task: Option<TaskId>,
    /// The last of the fires that the row stands for; `time` but for missed ones.
    pub last: WallMs,
    /// How many those are.
    pub count: u64,
    /// When it was decided.
    pub decided_at: WallMs,
    /// When its outcome was final; none before.
    pub settled_at: Option<WallMs>,
    /// How often its task was tried to be made; a try that is under way counts.
    pub attempts: u32,
    /// Why it is what it is, where that isn't plain.
    pub text: Option<String>,
    /// Whether its task publishes what the schedule's tasks do: one for a time that was over only if that was asked for.
    pub publishes: bool,
}

/// Fires that somebody orders for times that were over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backfill<'a> {
    /// The times, ascending; at most [`BACKFILL_MAX`].
    pub times: &'a [WallMs],
    /// Whether their tasks publish what the schedule's tasks do.
    pub publishes: bool,
}

impl Fire {
    /// Why a fire for a time that was over publishes nothing: the fire of a later time has made its task.
    pub fn overtaken(later: WallMs) -> String {
        say::publishes_nothing(later.to_rfc3339()).to_string()
    }
}

/// A fire that this node makes the task of, until its lease is over.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenFire {
    /// Its schedule.
    pub schedule: Schedule,
    /// Its time.
    pub time: WallMs,
    /// What brought it about.
    pub kind: FireKind,
    /// The newest fire before it that made a task.
    pub previous: Option<WallMs>,
    /// How often it was tried before.
    pub attempts: u32,
    /// Whether its task publishes what the schedule's tasks do.
    pub publishes: bool,
}

/// A schedule that is due, as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Which.
    pub id: ScheduleId,
    /// Its next fire.
    pub next_fire: WallMs,
}

/// What there is to do, as the database's clock says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agenda {
    /// That clock.
    pub now: WallMs,
    /// Schedules of which a fire is due, or whose next fire was set by a clock that was wrong.
    pub due: Vec<Due>,
    /// Whether fires may be taken: their lease is over, or they wait.
    pub has_open: bool,
    /// When the next schedule is due that isn't yet.
    pub nearest: Option<WallMs>,
}

/// What a look at a due schedule came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fired {
    /// What was decided of each fire, and when it was due; missed ones are one fire.
    pub fires: Vec<Fire>,
    /// How much later than due the newest that goes was decided; none where none goes.
    pub late: Option<Duration>,
    /// Its next fire had been set by a clock that was wrong, and was computed anew.
    pub is_mended: bool,
}

/// What may be done about open fires.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taken {
    /// Their tasks are to be made.
    pub fires: Vec<TakenFire>,
    /// Tasks in the way of a fire that cancels what runs: they are to be cancelled.
    pub cancels: Vec<TaskId>,
    /// They were tried as often as they may be, and have failed now.
    pub given_up: Vec<Fire>,
}

/// Which schedules a list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleFilter {
    /// Of one business.
    pub business: Option<String>,
    /// Of one name.
    pub name: Option<String>,
}

/// Fires of a schedule that are not settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFires {
    /// Their tasks are about to be made.
    pub pending: u64,
    /// They wait until nothing runs.
    pub queued: u64,
}

/// Keeps schedules and their fires.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// What the database's clock says.
    async fn database_time(&self) -> Result<WallMs, StoreError>;

    /// Makes a schedule; its first fire is the next one from now on.
    ///
    /// # Errors
    /// `NoBusiness`, `Taken`, `Full`, or when the store fails.
    async fn create_schedule(&self, new: &NewSchedule, write: &Write) -> Result<Schedule, ScheduleError>;

    /// A schedule by its number.
    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>, StoreError>;

    /// Schedules in the order of their numbers, after one, at most `count`.
    async fn schedules(
        &self,
        filter: &ScheduleFilter,
        after: Option<ScheduleId>,
        count: u32,
    ) -> Result<Vec<Schedule>, StoreError>;

    /// Changes a schedule, while it has the expected revision. What is so already is left as it is.
    ///
    /// # Errors
    /// `NotFound`, `Changed`, or when the store fails.
    async fn change_schedule(
        &self,
        id: ScheduleId,
        expected: u64,
        edit: &ScheduleEdit,
        write: &Write,
    ) -> Result<Schedule, ScheduleError>;

    /// Deletes a schedule with its fires; its tasks stay. Answers what it was.
    ///
    /// # Errors
    /// `NotFound`, or when the store fails.
    async fn delete_schedule(&self, id: ScheduleId, write: &Write) -> Result<Schedule, ScheduleError>;

    /// Orders a fire now, also of a paused schedule; what runs stands in its way as the schedule says.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, or when the store fails.
    async fn trigger(&self, id: ScheduleId, write: &Write) -> Result<Fire, ScheduleError>;

    /// Orders fires for times that are over; they go one after the other unless the schedule lets its tasks overlap. Times
    /// that have a fire which wasn't missed, skipped or failed are left out. Answers those ordered.
    ///
    /// # Errors
    /// `NotFound`, `Crowded`, or when the store fails.
    async fn backfill(
        &self,
        id: ScheduleId,
        wanted: Backfill<'_>,
        write: &Write,
    ) -> Result<Vec<Fire>, ScheduleError>;

    /// Gives up fires that aren't settled: the one of a time, or all there are; they are skipped. Whoever makes the task of one
    /// meanwhile finds it settled and makes none. Answers those given up.
    ///
    /// # Errors
    /// `NotFound`, `NotOpen`, or when the store fails.
    async fn skip_fires(
        &self,
        id: ScheduleId,
        time: Option<WallMs>,
        write: &Write,
    ) -> Result<Vec<Fire>, ScheduleError>;

    /// Fires of a schedule, newest first, before one, at most `count`.
    async fn fires(
        &self,
        id: ScheduleId,
        outcome: Option<FireOutcome>,
        before: Option<WallMs>,
        count: u32,
    ) -> Result<Vec<Fire>, StoreError>;

    /// How many fires of a schedule are not settled.
    async fn open_fires(&self, id: ScheduleId) -> Result<OpenFires, StoreError>;

    /// What there is to do, at most `limit` schedules.
    async fn agenda(&self, limit: u32) -> Result<Agenda, StoreError>;

    /// Decides about what is due of a schedule, unless it has changed since it was seen.
    async fn fire_due(&self, due: Due) -> Result<Fired, StoreError>;

    /// Takes fires whose tasks are to be made, at most `limit`, each for [`FIRE_LEASE`] and one try more: pending ones whose
    /// lease is over, and those that waited and in whose way nothing is any more. [`NextTry`] says which of them; `alone`,
    /// whether the node makes no other.
    async fn take_fires(&self, limit: u32, alone: bool) -> Result<Taken, StoreError>;

    /// Keeps a fire for another [`FIRE_LEASE`]; says whether it is still pending.
    async fn keep_fire(&self, id: ScheduleId, time: WallMs) -> Result<bool, StoreError>;

    /// Gives back a fire that could not be tried for a reason that isn't its own: the try doesn't count. It may be taken once its
    /// lease is over.
    async fn put_back_fire(&self, id: ScheduleId, time: WallMs) -> Result<(), StoreError>;

    /// Notes that the task of a fire could not be made: it is tried again after `again`, or not, and then it has failed.
    async fn fail_fire(
        &self,
        id: ScheduleId,
        time: WallMs,
        text: &str,
        again: Option<Duration>,
    ) -> Result<(), StoreError>;

    /// Removes settled fires that were decided before a time, and what is more than [`FIRES_KEPT_MAX`] of a schedule; a
    /// bounded number. Says how many it were.
    async fn expire_fires(&self, before: WallMs) -> Result<u64, StoreError>;
}
