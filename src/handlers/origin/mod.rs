//! A redrive's handler: it works for positions `0, 1, 2 …` of the new task, while the business sees the indexes and
//! keys under which it knows the items.
//!
//! A wrapper around any handler. Which index a position has in the first task comes with the rows
//! (`RowChunk::origin`). On the way out positions become indexes, on the way back indexes become positions: verdicts by
//! their order, log lines by the items that are out. `finish` with a total speaks of indexes, which are in no order
//! here: from then on items at or above it are answered `skip` without a call.

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
use windrow_engine::ports::handling::handler::{
    Call, CallFailure, CallItems, CallRows, Handler, HandlerFactory, ItemReplies, ItemVerdict, LogLine,
    OpenError, Reply, RunContext,
};

/// The code of an item whose index in the first task isn't known: a mistake of this program.
const NO_ORIGIN: &str = "NO_ORIGIN";

/// Positions of the items that are out, by the index that the handler sees.
#[derive(Debug, Default)]
struct Out(Mutex<HashMap<ItemIndex, ItemIndex>>);

impl Out {
    fn with<T>(&self, look: impl FnOnce(&mut HashMap<ItemIndex, ItemIndex>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same line about the item's position; one about an item that isn't out says so in its text.
    fn line(&self, mut line: LogLine) -> LogLine {
        let Some(origin) = line.index else { return line };
        line.index = self.with(|out| out.get(&origin).copied());
        if line.index.is_none() {
            line.message = format!("[item {} of the first task] {}", origin.0, line.message);
        }
        line
    }
}

/// Makes the handlers of a redrive.
pub struct OriginHandlerFactory {
    inner: Arc<dyn HandlerFactory>,
    keys_of: Option<TaskId>,
    is_proven: bool,
    out: Arc<Out>,
}

/// Begins with what a worker's own log lines need, since a sink must be there before its factory is.
#[derive(Debug)]
pub struct OriginView {
    keys_of: Option<TaskId>,
    is_proven: bool,
    out: Arc<Out>,
}

impl OriginView {
    /// Items carry keys of `keys_of`; none gives them keys of the new task.
    pub fn new(keys_of: Option<TaskId>) -> OriginView {
        OriginView {
            keys_of,
            is_proven: false,
            out: Arc::default(),
        }
    }

    /// The same, where items of the first task succeeded with this handler, or didn't.
    #[must_use]
    pub fn proven(self, is_proven: bool) -> OriginView {
        OriginView { is_proven, ..self }
    }

    /// See [`HandlerFactory::is_proven`].
    pub fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// The task whose keys its items carry; none are the new task's own.
    pub fn keys_of(&self) -> Option<TaskId> {
        self.keys_of
    }

    /// The same for another run: what is out belongs to one.
    #[must_use]
    pub fn afresh(&self) -> OriginView {
        OriginView::new(self.keys_of).proven(self.is_proven)
    }

    /// A sink for lines that name indexes of the first task.
    pub fn sink(&self, inner: Sink) -> Sink {
        let out = self.out.clone();
        Arc::new(move |line| inner(out.line(line)))
    }

    /// The factory whose handlers see indexes of the first task.
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

    fn is_proven(&self) -> bool {
        self.is_proven
    }
}

struct OriginHandler {
    inner: Arc<dyn Handler>,
    out: Arc<Out>,
    /// From this index of the first task on nothing is to be done any more.
    end: AtomicU64,
}

impl Handler for OriginHandler {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        let Some(mapping) = Mapping::of(&call) else {
            let text = "the item's index in the first task is not known; please report it";
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
        let call = Call {
            items: mapping.items(&call.items),
            rows: CallRows {
                chunks: call.rows.chunks,
                positions: Some(mapping.by_origin()),
            },
            ..call
        };
        match self.inner.process(call).await {
            Reply::Items(replies) => Reply::Items(Box::new(self.back(*replies, &mapping))),
            other => other,
        }
    }

    /// Calls the handler for the items below `end` only; the others have nothing to do.
    fn process_below<'a>(&'a self, call: Call, mapping: Mapping, end: ItemIndex) -> BoxFuture<'a, Reply> {
        Box::pin(async move {
            let skipped = || ItemVerdict::Settled(Outcome::Skipped);
            let attempts = call.items.iter();
            let below = attempts
                .zip(&mapping.places)
                .filter(|(_, (_, origin))| *origin < end);
            let kept: Vec<Dispatch> = below.map(|((index, attempt), _)| one(index, attempt)).collect();
            let mut replies = ItemReplies::default();
            if !kept.is_empty() {
                let call = Call {
                    items: CallItems::Many(kept.clone()),
                    ..call.clone()
                };
                let Some(part) = Mapping::of(&call) else {
                    return Reply::failed(FailureClass::Faulty, Failure::new(NO_ORIGIN, ""));
                };
                match self.forward(call, part).await {
                    Reply::Items(inner) => replies = *inner,
                    Reply::AllOk => {
                        let ok = kept
                            .iter()
                            .map(|d| (d.run.first(), ItemVerdict::Settled(Outcome::Succeeded)));
                        replies.verdicts = ok.collect();
                    }
                    Reply::Failed(failure) => {
                        // What has nothing to do must not be charged for the others.
                        let Some(verdict) = verdict_of_each(&failure) else {
                            return Reply::Failed(failure);
                        };
                        replies.verdicts = kept.iter().map(|d| (d.run.first(), verdict.clone())).collect();
                    }
                }
            }
            let mut said: HashMap<ItemIndex, ItemVerdict> = replies.verdicts.drain(..).collect();
            let all = mapping.places.iter().map(|(position, _)| *position);
            replies.verdicts = all
                .map(|at| (at, said.remove(&at).unwrap_or_else(skipped)))
                .collect();
            Reply::Items(Box::new(replies))
        })
    }

    /// Verdicts come in the call's order; whatever else names an index is translated.
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

/// What a failure of a whole call means for each of its items; none where it means more than that.
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

/// Each position of a call with its index in the first task, in the call's order.
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

    /// The items as the handler sees them, in the call's order.
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

/// Lists a call's items as out until it is dropped.
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
