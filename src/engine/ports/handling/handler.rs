//! Handler of a business: the code that does the work, whatever its transport.

use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

pub use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::watch;

pub use windrow_core::handler::log::LogLevel;

pub use super::told::Told;
use crate::ports::ownership::gate::Gate;
use crate::ports::sources::source::RowChunk;
use windrow_core::ids::{Epoch, ItemIndex, Moment, RunNo, ShardId, StoreId, TaskId};
use windrow_core::items::output::Output;
use windrow_core::items::trace::{Sampling, Traces};
use windrow_core::items::verdict::{Dispatch, Failure, FailureClass, HandlerCommand, Outcome, RetryAdvice};
use windrow_core::meter::meterings::Meterings;

/// Purpose of a run's items: real work, a preview or a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Real work of a task.
    Live,
    /// `windrow try` and `task preview`: nothing is recorded.
    Preview,
    /// First items of a task, held for a person's approval.
    Canary,
}

impl Mode {
    /// Returns the word in headers, messages and environment.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Live => "live",
            Mode::Preview => "preview",
            Mode::Canary => "canary",
        }
    }
}

/// Facts about a run that its handler is given; the same for all calls of the run.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// Task and shard of the run.
    pub shard: ShardId,
    /// Name of the task, if it has one.
    pub task_name: Option<String>,
    /// Revision of the task's settings.
    pub task_revision: u64,
    /// Slug of the business.
    pub business: String,
    /// Parameters of the task as JSON text, if they are to be sent.
    pub params: Option<Box<serde_json::value::RawValue>>,
    /// Number of this run, for people.
    pub run: RunNo,
    /// Fencing number of this run.
    pub epoch: Epoch,
    /// First part of item keys.
    pub store: StoreId,
    /// Task in item keys; `None` means the run's own. A redrive's items keep the keys of the task that failed.
    pub keys_of: Option<TaskId>,
    /// True if items succeeded with this handler in the task whose failures are redriven.
    pub is_proven: bool,
    /// True if outputs are kept; if not, a handler need not report outputs of successes.
    pub keeps_results: bool,
    /// Purpose of the items, sent along with each call.
    pub mode: Mode,
    /// Share of the items whose calls are recorded as spans.
    pub sampling: Sampling,
    /// Units in which the use of calls is counted, and where answers say it: for the task, and for its named limits.
    pub metering: Arc<Meterings>,
    /// Dispatch gate, checked again right before a request is sent.
    pub gate: Arc<Gate>,
}

impl RunContext {
    /// Returns the key of an item, the same for every attempt and run.
    pub fn item_key(&self, index: ItemIndex) -> String {
        self.store.item_key(self.key_task(), index)
    }

    /// Returns the beginning of its item keys, which the index follows.
    pub fn item_key_head(&self) -> String {
        self.store.item_key_head(self.key_task())
    }

    /// Returns the traces of its items.
    pub fn traces(&self) -> Traces {
        Traces::of(&self.store, self.key_task()).sampled(self.sampling)
    }

    /// Returns the task in item keys.
    pub fn key_task(&self) -> TaskId {
        self.keys_of.unwrap_or(self.shard.task)
    }
}

/// Items of one call: almost always one contiguous run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallItems {
    /// Contiguous items on the same attempt.
    One(Dispatch),
    /// Mixed batch of several runs.
    Many(Vec<Dispatch>),
}

impl CallItems {
    /// Returns the runs with their attempts.
    pub fn dispatches(&self) -> &[Dispatch] {
        match self {
            CallItems::One(dispatch) => std::slice::from_ref(dispatch),
            CallItems::Many(dispatches) => dispatches,
        }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.dispatches().iter().map(|d| d.run.len() as usize).sum()
    }

    /// Always false: a call has at least one item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the item of a call that has only one.
    pub fn only(&self) -> Option<(ItemIndex, windrow_core::ids::Attempt)> {
        self.iter().next().filter(|_| self.len() == 1)
    }

    /// Iterates over the items with their attempts, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (ItemIndex, windrow_core::ids::Attempt)> + '_ {
        self.dispatches()
            .iter()
            .flat_map(|d| d.run.iter().map(move |index| (index, d.attempt)))
    }
}

/// Rows of a call's items. Empty for `range` sources.
#[derive(Clone, Debug, Default)]
pub struct CallRows {
    /// Chunks that together hold every item of the call.
    pub chunks: Vec<Arc<RowChunk>>,
    /// For a redrive: each index that the handler sees, with the index under which `chunks` hold its row; ordered.
    pub positions: Option<Arc<[(ItemIndex, ItemIndex)]>>,
}

impl CallRows {
    /// Returns the item's data as JSON text; `None` for a source without data.
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
    /// Items to process in this call.
    pub items: CallItems,
    /// Rows of the items.
    pub rows: CallRows,
    /// Time at which pacing released the call.
    pub gate_time: Moment,
    /// Longest duration of the call, from `gate_time` on.
    pub timeout: Duration,
}

/// Verdict of a handler on one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemVerdict {
    /// Settled with this outcome.
    Settled(Outcome),
    /// Succeeded with this output.
    SucceededWith(Output),
    /// The other items of the call were judged; the fate of this one is unknown.
    Unclear(Failure),
    /// Failed, for now or for good.
    Failed {
        /// Reason of the failure.
        failure: Failure,
        /// Request for another attempt or for none.
        advice: RetryAdvice,
    },
}

/// Line that a business writes about an item or the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Item that the line is about, if any.
    pub index: Option<ItemIndex>,
    /// Severity of the line.
    pub level: LogLevel,
    /// Text of the line.
    pub message: String,
    /// More data as JSON text.
    pub extra: Option<String>,
}

/// Detailed reply: a verdict per item, with optional commands and log lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemReplies {
    /// One verdict for each item of the call, in the call's order.
    pub verdicts: Vec<(ItemIndex, ItemVerdict)>,
    /// Commands to the task.
    pub commands: Vec<HandlerCommand>,
    /// Lines for the data log.
    pub logs: Vec<LogLine>,
}

/// Reason why a whole call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// Each item gets another attempt; the class decides whether this one is charged.
    Failed {
        /// Class of the failure: faulty, unreachable, unavailable or unclear.
        class: FailureClass,
        /// Reason of the failure.
        failure: Failure,
        /// Delay that the handler asked for.
        after: Option<Duration>,
    },
    /// The whole call is final, for example 422: each item fails for good.
    Final(Failure),
    /// The answer was not a valid reply: never charged, and three in a row stop the task.
    BadReply(Failure),
    /// The handler rejects every request: never charged, and three in a row stop the task.
    Rejected(Failure),
    /// No worker lives long enough to take an item, and none did before: never charged, and three in a row stop the task.
    Unstarted(Failure),
    /// The handler is gone for good: the task stops; the items stay pending.
    Gone(Failure),
    /// Overload: the task pauses, and the items go back uncharged.
    BackPressure {
        /// Delay that the handler asked for.
        after: Option<Duration>,
        /// Answer of the handler, for the log.
        failure: Failure,
    },
    /// The business knows a newer epoch: the run ends.
    Fenced,
    /// The item's data can't be made a call, so nothing was sent; this says nothing about the handler.
    Unsendable(Failure),
    /// The call was never sent (the dispatch gate had shut): the items go back uncharged.
    NotSent,
}

/// Result of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Every item succeeded; allocates nothing.
    AllOk,
    /// A verdict per item.
    Items(Box<ItemReplies>),
    /// The call failed as a whole.
    Failed(Box<CallFailure>),
    /// Any of these, with what else the response says.
    Told(Box<Told>),
}

impl Reply {
    /// Returns a failure of the whole call.
    pub fn failed(class: FailureClass, failure: Failure) -> Reply {
        Reply::Failed(Box::new(CallFailure::Failed {
            class,
            failure,
            after: None,
        }))
    }
}

/// Handler of one run. Hot path: one box per call, none per item of a batch.
pub trait Handler: Send + Sync {
    /// Processes the items of one call. Dropping the future aborts the call; it must then leave no work behind that
    /// would still use a connection, a worker slot or memory.
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply>;

    /// Returns the number of items it can work on at once. It bounds the concurrency, so that nothing waits inside
    /// the handler while its time runs. `None` is unbounded; 0 means "not now" (workers are starting).
    fn slots(&self) -> watch::Receiver<Option<u32>>;

    /// True if calls are answered at once, in this process, so that more than one lane helps.
    fn answers_at_once(&self) -> bool {
        false
    }

    /// Returns the length of the request body that a call would have, for estimates of its cost; `None` if a call is no
    /// request. It is built for this alone, so it is asked for only where an estimate names it. Unit: bytes.
    fn request_bytes(&self, _call: &Call) -> Option<u64> {
        None
    }

    /// Returns its worker processes and how many of them work; `None` if it has none of its own.
    fn workers(&self) -> Option<Workers> {
        None
    }

    /// Returns the thread that tends its connections or workers, so that its lane runs there too; `None` if it
    /// computes in this process, on any free work thread.
    fn thread(&self) -> Option<Handle> {
        None
    }

    /// Ends the handler's workers and connections after the last call. Idempotent.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Worker processes that are connected, by what they do now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workers {
    /// Processes that hold an item.
    pub busy: u32,
    /// Processes that wait for one.
    pub idle: u32,
}

impl Workers {
    /// Returns the workers of both.
    #[must_use]
    pub fn plus(self, other: Workers) -> Workers {
        Workers {
            busy: self.busy.saturating_add(other.busy),
            idle: self.idle.saturating_add(other.idle),
        }
    }
}

/// Error of opening a handler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct OpenError {
    /// Code and message, as shown to people.
    pub failure: Failure,
    /// Hint for people to try.
    pub hint: Option<String>,
}

/// Code for a handler whose description can't be used.
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

/// Factory of the handlers of runs.
pub trait HandlerFactory: Send + Sync {
    /// Opens the handler for one run. Must not block; slow starts happen behind `slots`.
    ///
    /// # Errors
    /// If it is certain that no call can ever succeed (a bad URL, a missing command).
    fn open(&self, context: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError>;

    /// Returns the origin of the service that its handlers call, such as `https://api.example.com`. More calls may slow
    /// a service down, so the autopilot may lower their number. `None` if the items are processed on this machine.
    fn service(&self) -> Option<String>;

    /// Returns the kind of its handlers, for people: `http`, `command` or `rust`.
    fn kind(&self) -> &'static str {
        "rust"
    }

    /// True if items succeeded with it in the task whose failures are redriven: if it rejects now, the items are at
    /// fault, not every request.
    fn is_proven(&self) -> bool {
        false
    }
}
