//! Handler of a redrive: it works on positions `0, 1, 2 …` of the new task, while the business sees the indexes and
//! keys under which it knows the items.
//!
//! A wrapper around any handler. The rows contain the index that a position has in the first task
//! (`RowChunk::origin`). On the way out, positions become indexes; on the way back, indexes become positions:
//! verdicts by their order, log lines by the items in flight. `finish` with a total refers to indexes, which are in
//! no order here: from then on, items at or above it are answered with `skip`, without a call.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::command::Sink;
use windrow_core::ids::{ItemIndex, TaskId};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::{Dispatch, Failure, FailureClass, HandlerCommand, Outcome, RetryAdvice};
use windrow_core::meter::class::End;
use windrow_engine::ports::handling::handler::{
    Call, CallFailure, CallItems, CallRows, Handler, HandlerFactory, ItemReplies, ItemVerdict, LogLine,
    OpenError, Reply, RunContext, Workers,
};

/// Code of an item whose index in the first task isn't known: a bug in this program.
const NO_ORIGIN: &str = "NO_ORIGIN";

/// Positions of the items in flight, by the index that the handler sees.
#[derive(Debug, Default)]
struct Out(Mutex<HashMap<ItemIndex, ItemIndex>>);

impl Out {
    fn with<T>(&self, look: impl FnOnce(&mut HashMap<ItemIndex, ItemIndex>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes a line to the position of its item. If the item is not in flight, the text names its index instead.
    fn line(&self, mut line: LogLine) -> LogLine {
        let Some(origin) = line.index else { return line };
        line.index = self.with(|out| out.get(&origin).copied());
        if line.index.is_none() {
            line.message = format!("[item {} of the first task] {}", origin.0, line.message);
        }
        line
    }
}

/// Factory of the handlers of a redrive.
pub struct OriginHandlerFactory {
    inner: Arc<dyn HandlerFactory>,
    keys_of: Option<TaskId>,
    is_proven: bool,
    out: Arc<Out>,
}

/// Mapping of a redrive's items, created before its factory: a worker's log sink needs it, and must exist first.
#[derive(Debug)]
pub struct OriginView {
    keys_of: Option<TaskId>,
    is_proven: bool,
    out: Arc<Out>,
}

impl OriginView {
    /// Creates a mapping whose items carry keys of `keys_of`, or of the new task if that is `None`.
    pub fn new(keys_of: Option<TaskId>) -> OriginView {
        OriginView {
            keys_of,
            is_proven: false,
            out: Arc::default(),
        }
    }

    /// Sets if items of the first task succeeded with this handler.
    #[must_use]
    pub fn proven(self, is_proven: bool) -> OriginView {
        OriginView { is_proven, ..self }
    }

    /// Returns the value for [`HandlerFactory::is_proven`].
    pub fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// Returns the task whose keys its items carry; `None` means the new task's own.
    pub fn keys_of(&self) -> Option<TaskId> {
        self.keys_of
    }

    /// Returns the same for another run, since items in flight belong to one run.
    #[must_use]
    pub fn afresh(&self) -> OriginView {
        OriginView::new(self.keys_of).proven(self.is_proven)
    }

    /// Wraps a sink for lines that name indexes of the first task.
    pub fn sink(&self, inner: Sink) -> Sink {
        let out = self.out.clone();
        Arc::new(move |line| inner(out.line(line)))
    }

    /// Wraps a factory so that its handlers see indexes of the first task.
    pub fn wrap(self, inner: Arc<dyn HandlerFactory>) -> Arc<dyn HandlerFactory> {
        Arc::new(OriginHandlerFactory {
            inner,
            keys_of: self.keys_of,
            is_proven: self.is_proven,
            out: self.out,
        })
    }
}

impl HandlerFactory for OriginHandlerFactory {
    fn open(&self, context: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        let context = RunContext {
            keys_of: self.keys_of,
            is_proven: self.is_proven,
            ..RunContext::clone(&context)
        };
        let inner = self.inner.open(Arc::new(context))?;
        Ok(Arc::new(OriginHandler {
            inner,
            out: self.out.clone(),
            end: AtomicU64::new(u64::MAX),
        }))
    }

    fn service(&self) -> Option<String> {
        self.inner.service()
    }

    fn is_proven(&self) -> bool {
        self.is_proven
    }
}

struct OriginHandler {
    inner: Arc<dyn Handler>,
    out: Arc<Out>,
    /// First index of the first task for which nothing is to be done any more; lowered by `finish`.
    end: AtomicU64,
}

impl Handler for OriginHandler {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        let Some(mapping) = Mapping::of(&call) else {
            let text = "the item's index in the first task is unknown; please report this";
            let reply = Reply::failed(FailureClass::Faulty, Failure::new(NO_ORIGIN, text));
            return Box::pin(std::future::ready(reply));
        };
        let end = ItemIndex(self.end.load(Ordering::Acquire));
        if mapping.places.iter().any(|(_, origin)| *origin >= end) {
            return self.process_below(call, mapping, end);
        }
        Box::pin(self.forward(call, mapping))
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.inner.slots()
    }

    fn answers_at_once(&self) -> bool {
        self.inner.answers_at_once()
    }

    fn request_bytes(&self, call: &Call) -> Option<u64> {
        let mapping = Mapping::of(call)?;
        self.inner.request_bytes(&mapping.call(call.clone()))
    }

    fn workers(&self) -> Option<Workers> {
        self.inner.workers()
    }

    fn thread(&self) -> Option<Handle> {
        self.inner.thread()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

impl OriginHandler {
    async fn forward(&self, call: Call, mapping: Mapping) -> Reply {
        let _listed = Listed::new(&self.out, &mapping);
        let reply = self.inner.process(mapping.call(call)).await;
        reply.map(|reply| match reply {
            Reply::Items(replies) => Reply::Items(Box::new(self.back(*replies, &mapping))),
            other => other,
        })
    }

    /// Calls the handler only for the items below `end`, and skips the others.
    fn process_below<'a>(&'a self, call: Call, mapping: Mapping, end: ItemIndex) -> BoxFuture<'a, Reply> {
        Box::pin(async move {
            let attempts = call.items.iter();
            let below = attempts
                .zip(&mapping.places)
                .filter(|(_, (_, origin))| *origin < end);
            let kept: Vec<Dispatch> = below.map(|((index, attempt), _)| one(index, attempt)).collect();
            // Nothing is sent for items with nothing to do.
            let mut reply = Reply::Items(Box::default()).with_end(End::NeverSent);
            if !kept.is_empty() {
                let call = Call {
                    items: CallItems::Many(kept.clone()),
                    ..call.clone()
                };
                let Some(part) = Mapping::of(&call) else {
                    return Reply::failed(FailureClass::Faulty, Failure::new(NO_ORIGIN, ""));
                };
                reply = self.forward(call, part).await;
            }
            completed(reply, &kept, &mapping)
        })
    }

    /// Translates replies: verdicts by the call's order, everything else by the index it names.
    fn back(&self, replies: ItemReplies, mapping: &Mapping) -> ItemReplies {
        let ItemReplies {
            verdicts,
            commands,
            logs,
        } = replies;
        let positions = mapping.places.iter().map(|(position, _)| *position);
        let verdicts = positions
            .zip(verdicts)
            .map(|(position, (_, verdict))| (position, verdict))
            .collect();
        let commands = commands
            .into_iter()
            .filter(|command| self.is_passed_on(command))
            .collect();
        let logs = logs.into_iter().map(|line| self.out.line(line)).collect();
        ItemReplies {
            verdicts,
            commands,
            logs,
        }
    }

    fn is_passed_on(&self, command: &HandlerCommand) -> bool {
        let HandlerCommand::Finish { total: Some(total) } = command else {
            return true;
        };
        self.end.fetch_min(total.0, Ordering::AcqRel);
        false
    }
}

/// Completes the reply for the kept items of a call: the others are skipped.
fn completed(reply: Reply, kept: &[Dispatch], mapping: &Mapping) -> Reply {
    let each = |verdict: ItemVerdict| ItemReplies {
        verdicts: kept.iter().map(|d| (d.run.first(), verdict.clone())).collect(),
        ..ItemReplies::default()
    };
    let mut replies = match reply {
        Reply::Items(inner) => *inner,
        Reply::AllOk => each(ItemVerdict::Settled(Outcome::Succeeded)),
        Reply::Failed(failure) => match verdict_of_each(&failure) {
            Some(verdict) => each(verdict),
            // Items with nothing to do must not be charged for the others.
            None => return Reply::Failed(failure),
        },
        told @ Reply::Told(_) => return told.map(|reply| completed(reply, kept, mapping)),
    };
    let skipped = || ItemVerdict::Settled(Outcome::Skipped);
    let mut said: HashMap<ItemIndex, ItemVerdict> = replies.verdicts.drain(..).collect();
    let all = mapping.places.iter().map(|(position, _)| *position);
    replies.verdicts = all
        .map(|at| (at, said.remove(&at).unwrap_or_else(skipped)))
        .collect();
    Reply::Items(Box::new(replies))
}

/// Returns the meaning of a call's failure for each of its items; `None` if it means more than that.
fn verdict_of_each(failure: &CallFailure) -> Option<ItemVerdict> {
    match failure {
        CallFailure::Failed {
            class: FailureClass::Faulty,
            failure,
            after,
        } => Some(ItemVerdict::Failed {
            failure: failure.clone(),
            advice: RetryAdvice::Retry { after: *after },
        }),
        CallFailure::Failed {
            class: FailureClass::Unclear,
            failure,
            ..
        } => Some(ItemVerdict::Unclear(failure.clone())),
        CallFailure::Final(failure) | CallFailure::Unsendable(failure) => Some(ItemVerdict::Failed {
            failure: failure.clone(),
            advice: RetryAdvice::Fail,
        }),
        _ => None,
    }
}

fn one(index: ItemIndex, attempt: windrow_core::ids::Attempt) -> Dispatch {
    Dispatch {
        run: IndexRun::one(index),
        attempt,
    }
}

/// Positions of a call with their indexes in the first task, in the call's order.
struct Mapping {
    places: Vec<(ItemIndex, ItemIndex)>,
}

impl Mapping {
    fn of(call: &Call) -> Option<Mapping> {
        let origin = |at| call.rows.chunks.iter().find_map(|chunk| chunk.origin(at));
        let places = call.items.iter().map(|(at, _)| Some((at, origin(at)?)));
        Some(Mapping {
            places: places.collect::<Option<Vec<_>>>()?,
        })
    }

    /// Returns the call as the handler sees it.
    fn call(&self, call: Call) -> Call {
        Call {
            items: self.items(&call.items),
            rows: CallRows {
                chunks: call.rows.chunks,
                positions: Some(self.by_origin()),
            },
            ..call
        }
    }

    /// Returns the items as the handler sees them, in the call's order.
    fn items(&self, items: &CallItems) -> CallItems {
        let mut dispatches: Vec<Dispatch> = Vec::with_capacity(self.places.len());
        for ((_, origin), (_, attempt)) in self.places.iter().zip(items.iter()) {
            let next = IndexRun::one(*origin);
            let last = dispatches.last_mut().filter(|last| last.attempt == attempt);
            if !last.is_some_and(|last| last.run.try_extend(next)) {
                dispatches.push(Dispatch { run: next, attempt });
            }
        }
        match dispatches.as_slice() {
            [single] => CallItems::One(*single),
            _ => CallItems::Many(dispatches),
        }
    }

    fn by_origin(&self) -> Arc<[(ItemIndex, ItemIndex)]> {
        let mut pairs: Vec<_> = self
            .places
            .iter()
            .map(|(position, origin)| (*origin, *position))
            .collect();
        pairs.sort_unstable();
        pairs.into()
    }
}

/// Guard that lists a call's items as in flight until it is dropped.
struct Listed<'a> {
    out: &'a Out,
    origins: Vec<ItemIndex>,
}

impl<'a> Listed<'a> {
    fn new(out: &'a Out, mapping: &Mapping) -> Listed<'a> {
        out.with(|out| {
            out.extend(
                mapping
                    .places
                    .iter()
                    .map(|(position, origin)| (*origin, *position)),
            )
        });
        Listed {
            out,
            origins: mapping.places.iter().map(|(_, origin)| *origin).collect(),
        }
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.out.with(|out| {
            for origin in &self.origins {
                out.remove(origin);
            }
        });
    }
}

#[cfg(test)]
mod tests;
