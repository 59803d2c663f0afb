//! Businesses and tasks: create, find, command, show. Every change keeps an audit entry in its transaction.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::StoreError;
use crate::domain::counters::Counters;
use crate::domain::ids::{ItemCount, ItemIndex, StoreId, TaskId, WallMs};
use crate::domain::lifecycle::{Status, StopReason, TaskResult, Wish};
use crate::domain::task::{Canary, Tuning};

/// Who changes something, for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// From the token; `cli` runs say the operating system's user.
    pub name: String,
    /// `cli`, `api`, `ui`, `business` or `system`.
    pub source: &'static str,
    /// Why, in their words.
    pub reason: Option<String>,
    /// The request that asked for it, for who looks in logs.
    pub request_id: Option<String>,
}

/// A task to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// The business's slug; it must exist.
    pub business: String,
    /// Unique within the business, if given.
    pub name: Option<String>,
    /// How many items, once known.
    pub total: ItemCount,
    /// Items before this index are excluded.
    pub skip_first: ItemIndex,
    /// The live settings.
    pub tuning: Tuning,
    /// Parameters for the handler as JSON text.
    pub params: Option<String>,
    /// The source's description as JSON text (kind, location, format); the adapter of sources reads it.
    pub source: String,
    /// Fingerprint of what the task means: source checksum, format options, total. Same name with another
    /// meaning is another task.
    pub meaning: u64,
    /// Repeats of a create with this key return the first one's task.
    pub idempotency_key: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Higher goes first.
    pub priority: i32,
    /// Whether the parameters go with each call.
    pub send_params: bool,
    /// The first items, run before any other.
    pub canary: Option<Canary>,
    /// Not run before this time.
    pub start_at: Option<WallMs>,
    /// Stopped at this time.
    pub deadline: Option<WallMs>,
    /// The task whose failures it does again.
    pub parent: Option<TaskId>,
}

/// A task and its progress as every surface shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// `t42`.
    pub id: TaskId,
    /// The business's slug.
    pub business: String,
    /// The name, if it has one.
    pub name: Option<String>,
    /// Where it stands.
    pub status: Status,
    /// A machine slug, where the status needs a reason.
    pub status_reason: Option<String>,
    /// A sentence for people.
    pub status_text: Option<String>,
    /// What it wants.
    pub wish: Wish,
    /// The revision of the live settings.
    pub control_rev: u64,
    /// Changes with each change of the row.
    pub version: u64,
    /// How many items.
    pub total: ItemCount,
    /// The saved counters over all shards; `in_flight` is 0.
    pub counters: Counters,
    /// The lowest saved low water of an unfinished shard.
    pub low_water: ItemIndex,
    /// The live settings.
    pub tuning: Tuning,
    /// The parameters.
    pub params: Option<String>,
    /// The source's description.
    pub source: String,
    /// See [`NewTask::meaning`].
    pub meaning: u64,
    /// Only when finished.
    pub result: Option<TaskResult>,
    /// Only when stopping or stopped.
    pub stop_reason: Option<StopReason>,
    /// How often it was started.
    pub start_no: u32,
    /// When it was made.
    pub created_at: WallMs,
    /// When it was first started.
    pub started_at: Option<WallMs>,
    /// When it ended.
    pub finished_at: Option<WallMs>,
    /// Since when it has this status.
    pub since: WallMs,
    /// Only when recovering: when the first of its shards is tried again.
    pub next_at: Option<WallMs>,
    /// See [`NewTask::skip_first`].
    pub skip_first: ItemIndex,
    /// See [`NewTask::labels`].
    pub labels: BTreeMap<String, String>,
    /// See [`NewTask::priority`].
    pub priority: i32,
    /// The business's pool when the task was made.
    pub pool: String,
    /// See [`NewTask::send_params`].
    pub send_params: bool,
    /// See [`NewTask::canary`]; none once it is done.
    pub canary: Option<Canary>,
    /// See [`NewTask::start_at`].
    pub start_at: Option<WallMs>,
    /// See [`NewTask::deadline`].
    pub deadline: Option<WallMs>,
    /// See [`NewTask::parent`].
    pub parent: Option<TaskId>,
    /// Until when the business may answer the before-run hook; only when awaiting it.
    pub awaiting_until: Option<WallMs>,
    /// Where an early finish cuts the task, once it was asked for.
    pub finish_at: Option<ItemIndex>,
}

/// What people (and the system) may do to a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskCommand {
    /// Run, or run on.
    Start,
    /// Drain and stop.
    Stop {
        /// Why.
        reason: StopReason,
    },
    /// Stop without waiting for calls in flight.
    StopNow,
    /// End for good.
    Cancel,
    /// Change the live settings.
    Tune(Box<Tuning>),
    /// End early: what was not dispatched at or above this index is excluded.
    Finish {
        /// The new end.
        end: ItemIndex,
    },
    /// Try a recovering task now.
    Recover,
    /// Change what is not given to the handler as pace: name, labels, priority, deadline; and, while it doesn't
    /// run, what it means.
    Edit(Box<TaskEdit>),
    /// The business is ready for the present start.
    Ready {
        /// Which start it answers.
        start_no: u32,
        /// What it changes before shards are cut.
        edit: Box<TaskEdit>,
    },
    /// The business refused the present start, or never answered.
    NotReady {
        /// Which start it answers.
        start_no: u32,
        /// The sentence shown to people.
        text: String,
    },
}

/// What a change of a task names; what is none stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskEdit {
    /// The name; an empty one is taken away.
    pub name: Option<String>,
    /// All labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// The priority.
    pub priority: Option<i32>,
    /// The deadline; the inner none takes it away.
    pub deadline: Option<Option<WallMs>>,
    /// Parameters as JSON text; only while it doesn't run.
    pub params: Option<String>,
    /// Only while it doesn't run; never smaller after the first dispatch.
    pub total: Option<ItemCount>,
    /// Only before the first dispatch.
    pub skip_first: Option<ItemIndex>,
    /// The source's description and meaning; only before the first dispatch.
    pub source: Option<(String, u64)>,
}

/// A command could not be obeyed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// No such task.
    #[error("there is no task {0}")]
    NotFound(TaskId),
    /// Not now; names what is allowed.
    #[error(transparent)]
    Refused(#[from] crate::domain::lifecycle::Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A task could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// No such business.
    #[error("there is no business {0}")]
    NoBusiness(String),
    /// The business has a task of this name already.
    #[error("{0} is taken by {1}")]
    NameTaken(String, TaskId),
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request (task {0})")]
    KeyReused(TaskId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Failures of one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    /// The code.
    pub code: String,
    /// How many items were abandoned with it.
    pub count: u64,
    /// The first one's time.
    pub first_at: WallMs,
    /// The last one's time.
    pub last_at: WallMs,
    /// One of them.
    pub example_index: ItemIndex,
    /// Its message.
    pub example: String,
}

/// One abandoned item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedItem {
    /// The item.
    pub index: ItemIndex,
    /// Attempts made.
    pub attempts: u32,
    /// The last failure's code.
    pub code: String,
    /// Its message.
    pub message: String,
    /// The handler's own JSON about it.
    pub output: Option<String>,
    /// When it was given up.
    pub at: WallMs,
}

/// One entry of the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// When.
    pub at: WallMs,
    /// By whom.
    pub actor: String,
    /// From where.
    pub source: String,
    /// What, e.g. `task.start`.
    pub action: String,
    /// Why.
    pub reason: Option<String>,
    /// The settings before, as JSON text.
    pub before: Option<String>,
    /// The settings after, as JSON text.
    pub after: Option<String>,
}

/// Creates, commands and shows tasks.
#[async_trait]
pub trait TaskStore: Send + Sync {
    /// The short random id made at migration.
    ///
    /// # Errors
    /// When the store can't be read.
    async fn store_id(&self) -> Result<StoreId, StoreError>;

    /// Makes the business of this slug unless it exists.
    ///
    /// # Errors
    /// When the store can't be written.
    async fn ensure_business(&self, slug: &str, actor: &Actor, now: WallMs) -> Result<(), StoreError>;

    /// Makes a task in state `created` with one shard; its shard map is pinned at the first start.
    ///
    /// # Errors
    /// See [`CreateError`].
    async fn create(&self, task: &NewTask, actor: &Actor, now: WallMs) -> Result<TaskView, CreateError>;

    /// A task by id.
    ///
    /// # Errors
    /// When the store can't be read.
    async fn get(&self, id: TaskId) -> Result<Option<TaskView>, StoreError>;

    /// The newest task of a business that has this name.
    ///
    /// # Errors
    /// When the store can't be read.
    async fn find(&self, business: &str, name: &str) -> Result<Option<TaskView>, StoreError>;

    /// Takes the name away from a task (`--restart` gives it to a new one).
    ///
    /// # Errors
    /// See [`CommandError`].
    async fn release_name(&self, id: TaskId, actor: &Actor, now: WallMs) -> Result<(), CommandError>;

    /// Obeys a command in one transaction with its audit entry, and returns the task after it.
    ///
    /// # Errors
    /// See [`CommandError`]; a refusal changes nothing.
    async fn command(
        &self,
        id: TaskId,
        command: &TaskCommand,
        actor: &Actor,
        now: WallMs,
    ) -> Result<TaskView, CommandError>;

    /// Says why a queued task waits; changes nothing for any other status.
    ///
    /// # Errors
    /// When the store can't be written.
    async fn explain_wait(&self, id: TaskId, reason: &str, text: &str, now: WallMs)
    -> Result<(), StoreError>;

    /// Abandoned items grouped by code, most frequent first, without counting items.
    ///
    /// # Errors
    /// When the store can't be read.
    async fn failure_groups(&self, id: TaskId) -> Result<Vec<FailureGroup>, StoreError>;

    /// Abandoned items after an index, in index order.
    ///
    /// # Errors
    /// When the store can't be read.
    async fn failures(
        &self,
        id: TaskId,
        after: Option<ItemIndex>,
        limit: u32,
    ) -> Result<Vec<FailedItem>, StoreError>;

    /// The audit of a task, oldest first.
    ///
    /// # Errors
    /// When the store can't be read.
    async fn audit(&self, id: TaskId) -> Result<Vec<AuditEntry>, StoreError>;
}
