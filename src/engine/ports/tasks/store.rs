//! Businesses and tasks: create, find, command, show. Every change keeps an audit entry in its transaction.

use std::collections::BTreeSet;
use windrow_words::engine as say;

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::dataset::Publish;
use windrow_core::ids::{INDEX_MAX, ItemCount, ItemIndex, StoreId, TaskId, WallMs};
use windrow_core::task::lifecycle::Status;
use windrow_core::task::spec::TaskSpec;
use windrow_core::task::{ShardRange, Tuning};

pub use crate::ports::access::actor::{Actor, Write};
pub use crate::ports::tasks::command::{CommandError, CommandRefusal, MoveRefusal, TaskCommand, TaskEdit};
pub use crate::ports::tasks::create::{CreateError, Family, FireKey, Making};
pub use crate::ports::tasks::view::TaskView;
pub use windrow_core::life::ShardLife;

/// Task that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// Slug of the business, which must exist.
    pub business: String,
    /// Attributes of the task; each limit must exist.
    pub spec: TaskSpec,
    /// Number of items, once known.
    pub total: ItemCount,
    /// Live settings of the task.
    pub tuning: Tuning,
    /// Description of the source as JSON text (kind, location, format); the adapter of sources reads it.
    pub source: String,
    /// Fingerprint of the task's meaning: source checksum, format options, total. The same name with another meaning
    /// is another task.
    pub meaning: u64,
    /// Key of the request; repeats of a create with it return the first one's task.
    pub idempotency_key: Option<String>,
    /// Task whose failures it redrives.
    pub parent: Option<TaskId>,
    /// Publication of its results when it is finished.
    pub publish: Option<Publish>,
    /// True if items are added to it until it is sealed; it begins without any.
    pub is_open: bool,
}

impl NewTask {
    /// Returns a task of `total` indexes without rows, in one shard, with default values for all else.
    pub fn of(business: &str, total: ItemCount, tuning: Tuning) -> NewTask {
        NewTask {
            business: business.to_owned(),
            spec: TaskSpec {
                send_params: true,
                ..TaskSpec::default()
            },
            total,
            tuning,
            source: "{}".to_owned(),
            meaning: 0,
            idempotency_key: None,
            parent: None,
            publish: None,
            is_open: false,
        }
    }

    /// Refuses tasks with more items than a store can number.
    ///
    /// # Errors
    /// `Refused` if it has too many items.
    pub fn check(&self) -> Result<(), StoreError> {
        let most = self.total.0.max(self.spec.skip_first.0);
        if most <= INDEX_MAX {
            return Ok(());
        }
        Err(StoreError::Refused(
            say::too_many_items(INDEX_MAX, most).to_string(),
        ))
    }

    /// Returns the indexes without those left out at its head.
    pub fn range(&self) -> ShardRange {
        ShardRange::of_task(self.total, self.spec.skip_first)
    }
}

pub use windrow_core::life::COORDINATOR_DOWN;

/// Reason why a queued task waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitNote {
    /// Task that the note is about.
    pub task: TaskId,
    /// Reason as a machine slug.
    pub reason: String,
    /// Reason as the sentence shown to people.
    pub text: String,
}

impl WaitNote {
    /// True if a task of this status with this known reason takes the note.
    pub fn is_for(&self, status: Status, known: Option<&str>) -> bool {
        let waits = matches!(status, Status::Queued | Status::Recovering);
        match self.reason.as_str() {
            "" => (waits || status == Status::Running) && known == Some(COORDINATOR_DOWN),
            COORDINATOR_DOWN => waits || status == Status::Running,
            _ => waits,
        }
    }
}

/// Start of a task that a start token belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenStart {
    /// Task that was started.
    pub task: TaskId,
    /// Number of the start.
    pub start_no: u32,
    /// True if that start is the current one and has not ended.
    pub is_live: bool,
}

/// Failures of a task with one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    /// Code of the failures.
    pub code: String,
    /// Number of items that failed with it.
    pub count: u64,
    /// Time of the first one.
    pub first_at: WallMs,
    /// Time of the last one.
    pub last_at: WallMs,
    /// Index of one of them.
    pub example_index: ItemIndex,
    /// Message of that one.
    pub example: String,
    /// Unconfirmed ones: nothing showed that the handler failed for them alone.
    pub unconfirmed: u64,
}

/// One entry of the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Time of the change.
    pub at: WallMs,
    /// Author of the change.
    pub actor: String,
    /// Source of the change: `cli`, `api`, `ui`, `business` or `system`.
    pub source: String,
    /// Action, such as `task.start`.
    pub action: String,
    /// Reason given for it.
    pub reason: Option<String>,
    /// Settings before, as JSON text.
    pub before: Option<String>,
    /// Settings after, as JSON text.
    pub after: Option<String>,
}

/// Store that creates, commands and shows tasks.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait TaskStore: Send + Sync {
    /// Returns the short random id made at migration.
    async fn store_id(&self) -> Result<StoreId, StoreError>;

    /// Makes the business of this slug unless it exists.
    async fn ensure_business(&self, slug: &str, write: &Write, now: WallMs) -> Result<(), StoreError>;

    /// Makes a task in state `created` with one shard; its shard map is pinned at the first start. With `starts` it
    /// is also started, in one step if the store can. A repeat of the request returns the first task, started or
    /// since stopped.
    ///
    /// # Errors
    /// See [`CreateError`]; `Overtaken`: look again.
    async fn make(
        &self,
        task: &NewTask,
        how: Making<'_>,
        write: &Write,
        now: WallMs,
    ) -> Result<TaskView, CreateError>;

    /// Makes a task without starting it.
    async fn create(&self, task: &NewTask, write: &Write, now: WallMs) -> Result<TaskView, CreateError> {
        self.make(task, Making::default(), write, now).await
    }

    /// Returns a task by its id.
    async fn get(&self, id: TaskId) -> Result<Option<TaskView>, StoreError>;

    /// Returns the newest task of a business that has this name.
    async fn find(&self, business: &str, name: &str) -> Result<Option<TaskView>, StoreError>;

    /// Takes the name away from a task (`--restart` gives it to a new one).
    async fn release_name(&self, id: TaskId, write: &Write, now: WallMs) -> Result<(), CommandError>;

    /// Carries out a command in one transaction with its audit entry, and returns the task after it; with `expected`
    /// only while the task has that version.
    ///
    /// # Errors
    /// See [`CommandError`]; a refusal changes nothing.
    async fn command_if(
        &self,
        id: TaskId,
        expected: Option<u64>,
        command: &TaskCommand,
        write: &Write,
        now: WallMs,
    ) -> Result<TaskView, CommandError>;

    /// Carries out a command whatever the task's version is.
    ///
    /// # Errors
    /// As [`TaskStore::command_if`].
    async fn command(
        &self,
        id: TaskId,
        command: &TaskCommand,
        write: &Write,
        now: WallMs,
    ) -> Result<TaskView, CommandError> {
        self.command_if(id, None, command, write, now).await
    }

    /// Stores why queued tasks wait, and writes only what changed. Ignores tasks of any other status, except that
    /// [`COORDINATOR_DOWN`] is also stored for a running one; an empty reason clears that one again. Returns the
    /// tasks that now have the reason of their note.
    async fn explain_waits(&self, notes: &[WaitNote], now: WallMs) -> Result<BTreeSet<TaskId>, StoreError>;

    /// Deletes a task that has ended, with its items, runs, lines and calls, in transactions of bounded size; the
    /// audit stays. A repeat continues an interrupted deletion.
    ///
    /// # Errors
    /// See [`CommandError`]; `HasRedrive` while a child of it has not ended, `NotArchived` while its archive can't be
    /// written.
    async fn delete(&self, id: TaskId, write: &Write, now: WallMs) -> Result<(), CommandError>;

    /// Asks to continue a running task's shards (or one of them) on another node: their owners drain and release
    /// them, and other nodes leave them to that one for
    /// [`MOVE_PATIENCE`](crate::ports::ownership::run_store::MOVE_PATIENCE). Returns the number of shards to move.
    ///
    /// # Errors
    /// See [`CommandError`], above all [`MoveRefusal`]; a refusal changes nothing.
    async fn move_shards(
        &self,
        task: TaskId,
        shard: Option<u32>,
        to: &str,
        write: &Write,
        now: WallMs,
    ) -> Result<u32, CommandError>;

    /// Returns the start that a start token belongs to; `None` for a text that never was one.
    async fn start_of_token(&self, token: &str) -> Result<Option<TokenStart>, StoreError>;

    /// Returns the audit of a task, oldest first.
    async fn audit(&self, id: TaskId) -> Result<Vec<AuditEntry>, StoreError>;
}
