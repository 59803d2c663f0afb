//! Handlers whose runs and calls are recorded as spans. Recording changes no call: only the sampled flag of
//! `traceparent` says that there is a span.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::collector::Collector;
use super::span::RunFacts;
use windrow_core::ids::{Attempt, ItemIndex, Moment};
use windrow_core::items::trace::Traces;
use windrow_core::items::verdict::{FailureClass, Outcome};
use windrow_engine::ports::handling::handler::{
    BoxFuture, Call, CallFailure, Handler, HandlerFactory, ItemVerdict, Mode, OpenError, Reply, RunContext,
    Workers,
};

/// Factory of handlers that are recorded.
pub(super) struct Recorded {
    pub(super) inner: Arc<dyn HandlerFactory>,
    pub(super) collector: Arc<Collector>,
}

impl HandlerFactory for Recorded {
    fn open(&self, context: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        if context.mode == Mode::Preview {
            return self.inner.open(context);
        }
        let context = Arc::new(RunContext {
            sampling: self.collector.sampling,
            ..RunContext::clone(&context)
        });
        Ok(Arc::new(RecordedRun {
            inner: self.inner.open(context.clone())?,
            traces: context.traces(),
            facts: RunFacts::of(&context),
            collector: self.collector.clone(),
            began: self.collector.clock.now(),
            is_over: AtomicBool::new(false),
        }))
    }

    fn service(&self) -> Option<String> {
        self.inner.service()
    }

    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn is_proven(&self) -> bool {
        self.inner.is_proven()
    }
}

/// Handler of a recorded run.
struct RecordedRun {
    inner: Arc<dyn Handler>,
    traces: Traces,
    facts: RunFacts,
    collector: Arc<Collector>,
    began: Moment,
    is_over: AtomicBool,
}

impl Handler for RecordedRun {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        let mut open = self.begin(&call);
        if open.sampled.is_empty() {
            return self.inner.process(call);
        }
        Box::pin(async move {
            let reply = self.inner.process(call).await;
            open.end(&reply);
            reply
        })
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.inner.slots()
    }

    fn answers_at_once(&self) -> bool {
        self.inner.answers_at_once()
    }

    fn request_bytes(&self, call: &Call) -> Option<u64> {
        self.inner.request_bytes(call)
    }

    fn workers(&self) -> Option<Workers> {
        self.inner.workers()
    }

    fn thread(&self) -> Option<Handle> {
        self.inner.thread()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            let clock = &self.collector.clock;
            self.collector
                .take(self.facts.run((self.began, clock.now()), &**clock));
        }
        self.inner.close()
    }
}

impl RecordedRun {
    fn begin(&self, call: &Call) -> OpenCall<'_> {
        let items = call.items.iter().enumerate();
        let sampled = items.filter(|(_, (index, _))| self.traces.id(*index).is_sampled());
        OpenCall {
            run: self,
            sampled: sampled
                .map(|(place, (index, attempt))| (place, index, attempt))
                .collect(),
            size: call.items.len(),
            began: self.collector.clock.now(),
        }
    }
}

/// Call whose spans aren't finished. Dropped with its future, if the call is cut off, it says so.
struct OpenCall<'a> {
    run: &'a RecordedRun,
    /// Items with a span, each with its place in the call; none once they are finished.
    sampled: Vec<(usize, ItemIndex, Attempt)>,
    /// Number of items in the call.
    size: usize,
    began: Moment,
}

impl OpenCall<'_> {
    fn end(&mut self, reply: &Reply) {
        self.finish(|place| result(reply, place));
    }

    /// Finishes the spans. Without a result nothing was sent, and the attempt will be made again under the same id.
    fn finish(&mut self, result: impl Fn(usize) -> Option<CallResult>) {
        let RecordedRun {
            collector,
            facts,
            traces,
            ..
        } = self.run;
        let span = (self.began, collector.clock.now());
        for (place, index, attempt) in self.sampled.drain(..) {
            if let Some(result) = result(place) {
                let item = (traces.id(index), index, attempt);
                collector.take(facts.call(item, self.size, (span, &*collector.clock), result));
            }
        }
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.finish(|_| {
            Some(Err(CallError {
                code: Cow::Borrowed("CUT_OFF"),
                is_repeated: true,
            }))
        });
    }
}

/// Outcome of an item, or its failure.
pub(super) type CallResult = Result<&'static str, CallError>;

/// Failure of an item's call. Messages stay here: they may quote answers.
pub(super) struct CallError {
    pub(super) code: Cow<'static, str>,
    /// True if the item goes back uncharged: another call is made under the same number, and so the same `traceparent`.
    pub(super) is_repeated: bool,
}

/// Returns the result for the item at a place of the call; `None` if nothing was sent.
fn result(reply: &Reply, place: usize) -> Option<CallResult> {
    let failed = |code: &Cow<'static, str>, is_repeated| {
        let code = code.clone();
        Some(Err(CallError { code, is_repeated }))
    };
    match reply {
        Reply::AllOk => Some(Ok("succeeded")),
        Reply::Items(replies) => match &replies.verdicts.get(place)?.1 {
            ItemVerdict::Settled(Outcome::Skipped) => Some(Ok("skipped")),
            ItemVerdict::Settled(Outcome::Succeeded) | ItemVerdict::SucceededWith(_) => Some(Ok("succeeded")),
            ItemVerdict::Unclear(failure) | ItemVerdict::Failed { failure, .. } => {
                failed(&failure.code, false)
            }
        },
        Reply::Failed(failure) => match &**failure {
            CallFailure::Failed { class, failure, .. } => failed(
                &failure.code,
                class.is_before_work() || *class == FailureClass::Unavailable,
            ),
            CallFailure::Final(failure) => failed(&failure.code, false),
            CallFailure::BadReply(failure)
            | CallFailure::Rejected(failure)
            | CallFailure::Unstarted(failure)
            | CallFailure::Gone(failure)
            | CallFailure::BackPressure { failure, .. } => failed(&failure.code, true),
            CallFailure::Fenced => failed(&Cow::Borrowed("FENCED"), true),
            CallFailure::Unsendable(_) | CallFailure::NotSent => None,
        },
        Reply::Told(told) => result(&told.reply, place),
    }
}
