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

/// A task to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// The business's slug; it must exist.
    pub business: String,
    /// Its attributes; each limit must exist.
    pub spec: TaskSpec,
    /// How many items, once known.
    pub total: ItemCount,
    /// The live settings.
    pub tuning: Tuning,
    /// The source's description as JSON text (kind, location, format); the adapter of sources reads it.
    pub source: String,
    /// Fingerprint of what the task means: source checksum, format options, total. Same name with another
    /// meaning is another task.
    pub meaning: u64,
    /// Repeats of a create with this key return the first one's task.
    pub idempotency_key: Option<String>,
    /// The task whose failures it does again.
    pub parent: Option<TaskId>,
    /// What becomes of its results when it is finished.
    pub publish: Option<Publish>,
    /// Whether items are added to it, until it is sealed; it begins without any.
    pub is_open: bool,
}

impl NewTask {
    /// So many indexes without rows, in one part, with all else left as it is when nobody says it.
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

    /// Refuses what no store can number.
    ///
    /// # Errors
    /// `Refused` where it has too many items.
    pub fn check(&self) -> Result<(), StoreError> {
        let most = self.total.0.max(self.spec.skip_first.0);
        if most <= INDEX_MAX {
            return Ok(());
        }
        Err(StoreError::Refused(
            say::too_many_items(INDEX_MAX, most).to_string(),
        ))
    }

    /// The indexes that are not left out at its head.
    pub fn range(&self) -> ShardRange {
        ShardRange::of_task(self.total, self.spec.skip_first)
    }
}

pub use windrow_core::life::COORDINATOR_DOWN;

/// Why a queued task waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitNote {
    /// The task.
    pub task: TaskId,
    /// A machine slug.
    pub reason: String,
    /// The sentence shown to people.
    pub text: String,
}

impl WaitNote {
    /// Whether a task of this status, of which this reason is known, takes it.
    pub fn is_for(&self, status: Status, known: Option<&str>) -> bool {
        let waits = matches!(status, Status::Queued | Status::Recovering);
        match self.reason.as_str() {
            "" => (waits || status == Status::Running) && known == Some(COORDINATOR_DOWN),
            COORDINATOR_DOWN => waits || status == Status::Running,
            _ => waits,
        }
    }
}

/// The start of a task that a start token belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenStart {
    /// The task.
    pub task: TaskId,
    /// Which start of it.
    pub start_no: u32,
    /// Whether that start is the present one and has not ended.
    pub is_live: bool,
}

/// Failures of one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    /// The code.
    pub code: String,
    /// How many items were failed with it.
    pub count: u64,
    /// The first one's time.
    pub first_at: WallMs,
    /// The last one's time.
    pub last_at: WallMs,
    /// One of them.
    pub example_index: ItemIndex,
    /// Its message.
    pub example: String,
    /// Those of them that are unconfirmed: nothing showed whether the handler failed for them alone.
    pub unconfirmed: u64,
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
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait TaskStore: Send + Sync {
    /// The short random id made at migration.
    async fn store_id(&self) -> Result<StoreId, StoreError>;

    /// Makes the business of this slug unless it exists.
    async fn ensure_business(&self, slug: &str, write: &Write, now: WallMs) -> Result<(), StoreError>;

    /// Makes a task in state `created` with one shard; its shard map is pinned at the first start. With `starts` it is
    /// started, in one step where the store can: a repeat of the request returns what the first one made, started or since
    /// stopped.
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

    /// Makes a task and leaves it at that.
    async fn create(&self, task: &NewTask, write: &Write, now: WallMs) -> Result<TaskView, CreateError> {
        self.make(task, Making::default(), write, now).await
    }

    /// A task by id.
    async fn get(&self, id: TaskId) -> Result<Option<TaskView>, StoreError>;

    /// The newest task of a business that has this name.
    async fn find(&self, business: &str, name: &str) -> Result<Option<TaskView>, StoreError>;

    /// Takes the name away from a task (`--restart` gives it to a new one).
    async fn release_name(&self, id: TaskId, write: &Write, now: WallMs) -> Result<(), CommandError>;

    /// Obeys a command in one transaction with its audit entry, and returns the task after it; with `expected` only
    /// while the task has that version.
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

    /// Obeys a command whatever the task's version is.
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

    /// Says why queued tasks wait, and writes only what changed; nothing for a task of any other status, but
    /// [`COORDINATOR_DOWN`] also of a running one. An empty reason takes that one away again. Answers the tasks that say
    /// now what their note does.
    async fn explain_waits(&self, notes: &[WaitNote], now: WallMs) -> Result<BTreeSet<TaskId>, StoreError>;

    /// Deletes a task that has ended, with its items, runs, lines and calls, in transactions of bounded size; the
    /// audit stays. A repeat goes on where an interrupted one was.
    ///
    /// # Errors
    /// See [`CommandError`]; `HasRedrive` while a child of it has not ended, `NotArchived` while its archive can't be
    /// written.
    async fn delete(&self, id: TaskId, write: &Write, now: WallMs) -> Result<(), CommandError>;

    /// Wishes that a running task's shards (or one of them) go on at another node: their owners drain and release them,
    /// and other nodes leave them to that one for [`MOVE_PATIENCE`](crate::ports::ownership::run_store::MOVE_PATIENCE). Says how many shards move.
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

    /// The start that a start token belongs to; none for a text that never was one.
    async fn start_of_token(&self, token: &str) -> Result<Option<TokenStart>, StoreError>;

    /// The audit of a task, oldest first.
    async fn audit(&self, id: TaskId) -> Result<Vec<AuditEntry>, StoreError>;
}
