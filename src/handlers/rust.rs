//! Handlers in this process: the trait that an embedder implements, and its adapter to the port.
//!
//! A panic of the embedder's code is a failed attempt of the items of that call and no more. Never spawns a task: the
//! calling lane drives the embedder's future, and dropping the call drops it.
//!
//! The hot path costs one box per call, that of the port: the adapter is generic, so the embedder's future lives
//! inside it.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::answer::Answer;
pub use super::closure::{Cause, OwnedItem, handler_fn};
use super::deadline::Deadline;
use windrow_core::ids::{Attempt, Epoch, ItemIndex, Moment};
use windrow_core::items::verdict::FailureClass;
pub use windrow_core::items::verdict::{Failure, HandlerCommand, Outcome, RetryAdvice};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{
    Call, CallFailure, Handler, HandlerFactory, ItemReplies, LogLine, OpenError, Reply, RunContext,
};
pub use windrow_engine::ports::handling::handler::{ItemVerdict, LogLevel};

/// Code of an item whose handler panicked.
pub const PANIC: &str = "PANIC";
/// Code of an item that got no answer in time.
const TIMEOUT: &str = "TIMEOUT";

/// Handlers of a program that runs a node, by the names that businesses give as their `command`.
pub type InProcess = BTreeMap<String, Arc<dyn HandlerFactory>>;

/// Code of a business that processes items.
///
/// ```
/// use windrow_handlers::rust::{Batch, ItemCtx, ItemHandler, Results};
///
/// struct Push;
///
/// impl ItemHandler for Push {
///     async fn process(&self, ctx: &ItemCtx<'_>, items: Batch<'_>) -> Results {
///         for item in items.iter() {
///             println!("push {} to {:?}", ctx.idempotency_key(item.index), item.data);
///         }
///         Results::AllOk
///     }
/// }
/// ```
pub trait ItemHandler: Send + Sync + 'static {
    /// Processes the items of one call. An item may come again; its key is always the same.
    fn process(&self, ctx: &ItemCtx<'_>, items: Batch<'_>) -> impl Future<Output = Results> + Send;
}

/// Results for the items of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Results {
    /// Every item of the call succeeded.
    AllOk,
    /// A verdict for each item; a missing one means another attempt, never a success.
    Each(Vec<(ItemIndex, ItemVerdict)>),
    /// The same failure for all items.
    Failed {
        /// Code and message of the failure.
        failure: Failure,
        /// Another attempt, or no more attempts.
        advice: RetryAdvice,
    },
}

impl Results {
    /// Answers for items by their index. What they tell the task is left out; a handler of batches tells it by its
    /// [`ItemCtx`].
    pub fn each(answers: impl IntoIterator<Item = (ItemIndex, Answer)>) -> Results {
        let verdicts = answers.into_iter().map(|(index, answer)| (index, answer.verdict));
        Results::Each(verdicts.collect())
    }
}

/// Items of one call, in order.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    call: &'a Call,
}

/// Item of a call, with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Number of the item in the task, from 0.
    pub index: ItemIndex,
    /// Number of this attempt, from 1.
    pub attempt: Attempt,
    /// Data of the item as JSON text; `None` for a task that is only a count.
    pub data: Option<&'a str>,
}

impl Item<'_> {
    /// Reads the data of the item; `null` for one without data.
    ///
    /// # Errors
    /// Fails if the data has another shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        read(self.data)
    }
}

impl<'a> Batch<'a> {
    /// Iterates over the items in order.
    pub fn iter(self) -> impl Iterator<Item = Item<'a>> + Send {
        let call = self.call;
        call.items.iter().map(move |(index, attempt)| Item {
            index,
            attempt,
            data: call.rows.data(index),
        })
    }

    /// Returns the number of items, at least 1.
    pub fn len(self) -> usize {
        self.call.items.len()
    }

    /// Returns false: a call has at least one item.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Context of a call: what a handler can ask and report while it works.
pub struct ItemCtx<'a> {
    run: &'a RunContext,
    clock: &'a dyn Clock,
    deadline: Moment,
    words: Mutex<Words>,
}

/// Log lines and commands of the handler, which become part of the reply; empty until it gives any.
#[derive(Default)]
struct Words {
    commands: Vec<HandlerCommand>,
    logs: Vec<LogLine>,
}

impl ItemCtx<'_> {
    /// Returns the run that the call belongs to.
    pub fn run(&self) -> &RunContext {
        self.run
    }

    /// Returns the fencing number of the run, which grows with every new owner of the shard.
    pub fn epoch(&self) -> Epoch {
        self.run.epoch
    }

    /// Returns the key of an item, which is the same for every attempt, run and node.
    pub fn idempotency_key(&self, index: ItemIndex) -> String {
        self.run.item_key(index)
    }

    /// Returns true while this node may still believe that it owns the shard. Ask before an effect that can't be
    /// undone.
    pub fn still_owner(&self) -> bool {
        self.run.gate.is_open(self.clock.now())
    }

    /// Returns the time at which the call is over; its future is dropped then.
    pub fn deadline(&self) -> Moment {
        self.deadline
    }

    /// Writes a line about an item, or the task, to the data log.
    pub fn log(&self, index: Option<ItemIndex>, level: LogLevel, message: impl Into<String>) {
        let line = LogLine {
            index,
            level,
            message: message.into(),
            extra: None,
        };
        self.words().logs.push(line);
    }

    /// Gives the task a command, which takes effect with the reply.
    pub fn command(&self, command: HandlerCommand) {
        self.words().commands.push(command);
    }

    /// Notes what an answer tells the task, and returns its verdict.
    pub(crate) fn take_in(&self, index: ItemIndex, answer: Answer) -> ItemVerdict {
        for (level, message) in answer.logs {
            self.log(Some(index), level, message);
        }
        answer
            .commands
            .into_iter()
            .for_each(|command| self.command(command));
        answer.verdict
    }

    fn words(&self) -> std::sync::MutexGuard<'_, Words> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn read<T: DeserializeOwned>(data: Option<&str>) -> Result<T, serde_json::Error> {
    serde_json::from_str(data.unwrap_or("null"))
}

pub(crate) fn retry(failure: Failure) -> ItemVerdict {
    ItemVerdict::Failed {
        failure,
        advice: RetryAdvice::Retry { after: None },
    }
}

/// Runs the embedder's code. A panic, either when making the future or when polling it, is returned as a failure.
pub(crate) async fn guarded<Fut: Future>(make: impl FnOnce() -> Fut) -> Result<Fut::Output, Failure> {
    // Unwind safe: whatever the code leaves half done is the embedder's own state, protected by its own locks.
    let work = std::panic::catch_unwind(AssertUnwindSafe(make)).map_err(|payload| panicked(&*payload))?;
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .map_err(|payload| panicked(&*payload))
}

fn panicked(payload: &(dyn std::any::Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    Failure::new(
        PANIC,
        format!(
            "the handler panicked: {}",
            text.unwrap_or("(the panic payload is not text)")
        ),
    )
}

/// Factory of handlers that call an embedder's code.
pub struct RustHandlerFactory<H> {
    code: Arc<H>,
    clock: Arc<dyn Clock>,
}

impl<H: ItemHandler> RustHandlerFactory<H> {
    /// Creates a factory; every run of the task calls `code`.
    pub fn new(code: H, clock: Arc<dyn Clock>) -> RustHandlerFactory<H> {
        RustHandlerFactory {
            code: Arc::new(code),
            clock,
        }
    }
}

impl<H: ItemHandler> HandlerFactory for RustHandlerFactory<H> {
    fn open(&self, run: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        let slots = watch::Sender::new(None);
        Ok(Arc::new(RustHandler {
            code: self.code.clone(),
            clock: self.clock.clone(),
            run,
            slots,
        }))
    }

    fn service(&self) -> Option<String> {
        None
    }
}

struct RustHandler<H> {
    code: Arc<H>,
    clock: Arc<dyn Clock>,
    run: Arc<RunContext>,
    slots: watch::Sender<Option<u32>>,
}

impl<H: ItemHandler> Handler for RustHandler<H> {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        Box::pin(self.run_call(call))
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.slots.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl<H: ItemHandler> RustHandler<H> {
    async fn run_call(&self, call: Call) -> Reply {
        if !self.run.gate.is_open(self.clock.now()) {
            return Reply::Failed(Box::new(CallFailure::NotSent));
        }
        let deadline = call.gate_time.plus(call.timeout);
        let ctx = ItemCtx {
            run: &self.run,
            clock: &*self.clock,
            deadline,
            words: Mutex::default(),
        };
        let work = guarded(|| self.code.process(&ctx, Batch { call: &call }));
        let Some(results) = Deadline::new(&self.clock, deadline).cut_short(work).await else {
            let timeout = humantime::format_duration(call.timeout);
            return Reply::failed(
                FailureClass::Unclear,
                Failure::new(TIMEOUT, format!("no answer within {timeout}")),
            );
        };
        let words = std::mem::take(&mut *ctx.words());
        reply(&call, results, words)
    }
}

fn reply(call: &Call, results: Result<Results, Failure>, words: Words) -> Reply {
    let is_wordless = words.commands.is_empty() && words.logs.is_empty();
    let verdicts = match results {
        Ok(Results::AllOk) if is_wordless => return Reply::AllOk,
        Ok(Results::AllOk) => for_all(call, &ItemVerdict::Settled(Outcome::Succeeded)),
        Ok(Results::Each(verdicts)) => in_order(call, verdicts),
        Ok(Results::Failed { failure, advice }) => for_all(call, &ItemVerdict::Failed { failure, advice }),
        Err(failure) if is_wordless => return Reply::failed(FailureClass::Unclear, failure),
        Err(failure) => for_all(call, &ItemVerdict::Unclear(failure)),
    };
    Reply::Items(Box::new(ItemReplies {
        verdicts,
        commands: words.commands,
        logs: words.logs,
    }))
}

fn for_all(call: &Call, verdict: &ItemVerdict) -> Vec<(ItemIndex, ItemVerdict)> {
    call.items
        .iter()
        .map(|(index, _)| (index, verdict.clone()))
        .collect()
}

/// Returns one verdict for each item in the call's order, as the port requires. The first of several verdicts for an
/// item counts, and indexes that are not in this call are ignored.
fn in_order(call: &Call, mut verdicts: Vec<(ItemIndex, ItemVerdict)>) -> Vec<(ItemIndex, ItemVerdict)> {
    let is_in_order = verdicts.len() == call.items.len()
        && call
            .items
            .iter()
            .zip(&verdicts)
            .all(|((index, _), (other, _))| index == *other);
    if is_in_order {
        return verdicts;
    }
    verdicts.reverse();
    let mut given: std::collections::HashMap<ItemIndex, ItemVerdict> = verdicts.into_iter().collect();
    let missing = || {
        let message = "the handler's results don't name this item; return one for each item of the batch";
        retry(Failure::new(super::wire::MISSING_RESULT, message))
    };
    call.items
        .iter()
        .map(|(index, _)| (index, given.remove(&index).unwrap_or_else(missing)))
        .collect()
}
