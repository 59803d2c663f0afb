//! What does the work: a business's handler, whatever its transport.

use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

pub use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::watch;

pub use windrow_core::handler::log::LogLevel;

use crate::ports::ownership::gate::Gate;
use crate::ports::sources::source::RowChunk;
use windrow_core::ids::{Epoch, ItemIndex, Moment, RunNo, ShardId, StoreId, TaskId};
use windrow_core::items::output::Output;
use windrow_core::items::trace::Traces;
use windrow_core::items::verdict::{Dispatch, Failure, FailureClass, HandlerCommand, Outcome, RetryAdvice};

/// Whether the items are real work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Real work.
    Live,
    /// `windrow try` and `task preview`: nothing is recorded.
    Preview,
    /// The first items of a task, held for a person's yes.
    Canary,
}

impl Mode {
    /// The word in headers, messages and environment.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Live => "live",
            Mode::Preview => "preview",
            Mode::Canary => "canary",
        }
    }
}

/// What a handler is told about the run that it works for; the same for all calls of the run.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// The task and the shard.
    pub shard: ShardId,
    /// The task's name, if it has one.
    pub task_name: Option<String>,
    /// The revision of the task's settings.
    pub task_revision: u64,
    /// The business's slug.
    pub business: String,
    /// The task's parameters as JSON text, if they are to be sent.
    pub params: Option<Box<serde_json::value::RawValue>>,
    /// The number of this run, for people.
    pub run: RunNo,
    /// The fencing number of this run.
    pub epoch: Epoch,
    /// The first part of item keys.
    pub store: StoreId,
    /// The task in item keys; none is the run's own. A redrive's items keep the keys of the task that failed.
    pub keys_of: Option<TaskId>,
    /// Whether items succeeded with this handler in the task whose failures are done again.
    pub is_proven: bool,
    /// Whether what items come to is kept; else a handler need not tell outputs of successes.
    pub keeps_results: bool,
    /// Whether this is real work.
    pub mode: Mode,
    /// Asked again right before a request leaves.
    pub gate: Arc<Gate>,
}

impl RunContext {
    /// The key of an item, the same for every attempt and run.
    pub fn item_key(&self, index: ItemIndex) -> String {
        self.store.item_key(self.key_task(), index)
    }

    /// What the keys of its items begin with: the index follows.
    pub fn item_key_head(&self) -> String {
        self.store.item_key_head(self.key_task())
    }

    /// The traces of its items.
    pub fn traces(&self) -> Traces {
        Traces::of(&self.store, self.key_task())
    }

    /// The task in item keys.
    pub fn key_task(&self) -> TaskId {
        self.keys_of.unwrap_or(self.shard.task)
    }
}

/// The items of one call: almost always one run of neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallItems {
    /// Neighbours with the same attempt.
    One(Dispatch),
    /// A mixed batch.
    Many(Vec<Dispatch>),
}

impl CallItems {
    /// The runs with their attempts.
    pub fn dispatches(&self) -> &[Dispatch] {
        match self {
            CallItems::One(dispatch) => std::slice::from_ref(dispatch),
            CallItems::Many(dispatches) => dispatches,
        }
    }

    /// How many items.
    pub fn len(&self) -> usize {
        self.dispatches().iter().map(|d| d.run.len() as usize).sum()
    }

    /// Never: a call has at least one item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item of a call that has one only.
    pub fn only(&self) -> Option<(ItemIndex, windrow_core::ids::Attempt)> {
        self.iter().next().filter(|_| self.len() == 1)
    }

    /// Each item with its attempt, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (ItemIndex, windrow_core::ids::Attempt)> + '_ {
        self.dispatches()
            .iter()
            .flat_map(|d| d.run.iter().map(move |index| (index, d.attempt)))
    }
}

/// The data of a call's items. Empty for `range` sources.
#[derive(Clone, Debug, Default)]
pub struct CallRows {
    /// Chunks that together hold every item of the call.
    pub chunks: Vec<Arc<RowChunk>>,
    /// For a redrive: each index that the handler sees, with the position under which `chunks` hold it; ordered.
    pub positions: Option<Arc<[(ItemIndex, ItemIndex)]>>,
}

impl CallRows {
    /// The item's data as JSON text; none for a source without data.
    pub fn data(&self, index: ItemIndex) -> Option<&str> {
        let index = match &self.positions {
            Some(positions) => {
                let at = positions
                    .binary_search_by_key(&index, |(origin, _)| *origin)
                    .ok()?;
                positions[at].1
            }
            None => index,
        };
        self.chunks.iter().find_map(|chunk| chunk.row(index))
    }
}

/// One call of the handler.
#[derive(Clone, Debug)]
pub struct Call {
    /// What to do.
    pub items: CallItems,
    /// The items' data.
    pub rows: CallRows,
    /// When the pace let it go.
    pub gate_time: Moment,
    /// How long the call may take, from `gate_time` on. The lane gives up a little later by itself.
    pub timeout: Duration,
}

/// What a handler says of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemVerdict {
    /// Settled well.
    Settled(Outcome),
    /// It succeeded, and this is what it came to.
    SucceededWith(Output),
    /// The others of its call were judged; what became of this one nobody knows.
    Unclear(Failure),
    /// Not yet, or never.
    Failed {
        /// Why.
        failure: Failure,
        /// Another attempt or none.
        advice: RetryAdvice,
    },
}

/// A line that a business writes about an item or the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The item, if the line is about one.
    pub index: Option<ItemIndex>,
    /// How important.
    pub level: LogLevel,
    /// The text.
    pub message: String,
    /// More, as JSON text.
    pub extra: Option<String>,
}

/// A reply that needs words: a verdict per item, and perhaps commands and log lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemReplies {
    /// One verdict for each item of the call, in the call's order.
    pub verdicts: Vec<(ItemIndex, ItemVerdict)>,
    /// Commands to the task.
    pub commands: Vec<HandlerCommand>,
    /// Lines for the data log.
    pub logs: Vec<LogLine>,
}

/// Why a whole call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// Each item gets another attempt; whether this one is charged follows from its class.
    Failed {
        /// Whose fault it is: faulty, unreachable, unavailable or unclear.
        class: FailureClass,
        /// Why.
        failure: Failure,
        /// A wait that the handler asked for.
        after: Option<Duration>,
    },
    /// The whole call is final, for example 422: each item is failed.
    Final(Failure),
    /// An answer that is none: never charged, and three in a row stop the task.
    BadReply(Failure),
    /// The handler refuses us as such: never charged, and three in a row stop the task.
    Rejected(Failure),
    /// No worker lives long enough to take an item, and none did before: never charged, and three in a row stop the task.
    Unstarted(Failure),
    /// The handler is gone for good: the task stops; the items stay pending.
    Gone(Failure),
    /// Overload: the task pauses, the items go back uncharged.
    BackPressure {
        /// How long it asked us to wait.
        after: Option<Duration>,
        /// What it answered, for the log.
        failure: Failure,
    },
    /// The business knows a newer epoch: the run ends.
    Fenced,
    /// Its item's data can't be made a call, so nothing left; nothing is said of the handler.
    Unsendable(Failure),
    /// The call never left (the gate had shut): the items go back uncharged.
    NotSent,
}

/// What came back from one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Every item succeeded; allocates nothing.
    AllOk,
    /// A verdict per item.
    Items(Box<ItemReplies>),
    /// The call failed as a whole.
    Failed(Box<CallFailure>),
}

impl Reply {
    /// A failure of the whole call.
    pub fn failed(class: FailureClass, failure: Failure) -> Reply {
        Reply::Failed(Box::new(CallFailure::Failed {
            class,
            failure,
            after: None,
        }))
    }
}

/// The handler of one run. Hot path: one box per call, none per item of a batch.
pub trait Handler: Send + Sync {
    /// Processes the items of one call. Dropping the future aborts the call; it must then leave no work behind
    /// that would still use a connection, a worker slot or memory.
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply>;

    /// How many items it can work on at once: it bounds the concurrency, so that nothing waits inside the
    /// handler while its time runs. `None` is unbounded. 0 means "not now" (workers are starting).
    fn slots(&self) -> watch::Receiver<Option<u32>>;

    /// Whether calls are answered at once, in this process, so that more than one lane helps.
    fn answers_at_once(&self) -> bool {
        false
    }

    /// The thread on which its connections or workers are tended, so that its lane runs there too; none where it computes in
    /// this process, on whatever thread of work is free.
    fn thread(&self) -> Option<Handle> {
        None
    }

    /// Ends what the handler holds (workers, connections) after the last call. Idempotent.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A handler could not be opened at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct OpenError {
    /// Code and message, as shown to people.
    pub failure: Failure,
    /// What a person may try.
    pub hint: Option<String>,
}

/// The code of what is said of a handler and can't be.
pub const BAD_HANDLER: &str = "BAD_HANDLER";

impl OpenError {
    fn text(&self) -> String {
        match &self.hint {
            Some(hint) => say::with_hint(&self.failure.message, hint).to_string(),
            None => self.failure.message.clone(),
        }
    }
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> OpenError {
        OpenError { failure, hint: None }
    }
}

/// Makes the handler of a run.
pub trait HandlerFactory: Send + Sync {
    /// Opens the handler for one run. Must not block; slow beginnings happen behind `slots`.
    ///
    /// # Errors
    /// When it is certain that no call can ever succeed (a bad URL, a command that isn't there).
    fn open(&self, context: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError>;

    /// How its handlers are reached, for people: `http`, `command` or `rust`.
    fn kind(&self) -> &'static str {
        "rust"
    }

    /// Whether items succeeded with it in the task whose failures are done again: what it finds fault with now is the
    /// items, and not the request as such.
    fn is_proven(&self) -> bool {
        false
    }
}
