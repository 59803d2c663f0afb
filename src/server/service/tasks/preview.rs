//! Previews: calls a task's handler with some of its items in mode `preview`. Nothing is recorded and nothing is
//! retried.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::service::ServiceError;
use crate::service::node::ThisNode;
use windrow_core::ids::{Attempt, Epoch, ItemIndex, RunNo, ShardId};
use windrow_core::items::run::IndexRun;
use windrow_core::items::trace::Sampling;
use windrow_core::items::verdict::{Dispatch, Failure, FailureClass, Outcome, RetryAdvice};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{
    Call, CallFailure, CallItems, CallRows, Handler, ItemVerdict, Mode, Reply, RunContext,
};
use windrow_engine::ports::ownership::gate::Gate;
use windrow_engine::ports::sources::provision::{Provider, ProvisionError};
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::tasks::store::{TaskStore, TaskView};

/// Most items per preview.
pub const ITEMS_MAX: usize = 100;
/// Time limit for a whole preview; items not called by then are reported as such.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest wait until the handler accepts a call.
pub(in crate::service) const READY_WITHIN: Duration = Duration::from_secs(20);
/// Extra time beyond the call's timeout, for the handler itself to report the timeout.
pub(in crate::service) const MARGIN: Duration = Duration::from_secs(1);

/// Outcome of a preview for one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewedItem {
    /// Index of the previewed item.
    pub index: ItemIndex,
    /// `succeeded`, `skipped`, `failed`, `retry`, `broken` or `not_called`.
    pub result: &'static str,
    /// Reason, unless the item succeeded or was skipped.
    pub failure: Option<Failure>,
    /// Duration of the call.
    pub took: Duration,
}

/// Service that calls handlers like a run, but without consequences.
pub struct Previews {
    pub(in crate::service) node: Arc<ThisNode>,
    pub(in crate::service) tasks: Arc<dyn TaskStore>,
    pub(in crate::service) provider: Arc<dyn Provider>,
}

impl Previews {
    pub(in crate::service) fn new(
        node: Arc<ThisNode>,
        tasks: Arc<dyn TaskStore>,
        provider: Arc<dyn Provider>,
    ) -> Previews {
        Previews {
            node,
            tasks,
            provider,
        }
    }

    /// Previews items of a task.
    ///
    /// # Errors
    /// `Unprocessable` for an item that doesn't exist, or if the handler can't be called at all.
    pub async fn preview(
        &self,
        task: &TaskView,
        items: &[ItemIndex],
    ) -> Result<Vec<PreviewedItem>, ServiceError> {
        check(task, items)?;
        let provision = self.provider.provide(task).await.map_err(not_provided)?;
        let context = Arc::new(self.preview_context(task).await?);
        let opened = provision.handler.open(context);
        let unusable = |text: String| ServiceError::unprocessable("/business", text);
        let handler = opened.map_err(|error| unusable(error.to_string()))?;
        let trial = Trial {
            clock: &*self.node.clock,
            task,
            handler: &*handler,
            source: &*provision.source,
        };
        let seen = trial.run(items).await;
        handler.close().await;
        seen
    }

    async fn preview_context(&self, task: &TaskView) -> Result<RunContext, ServiceError> {
        let params = task.spec.params.clone().filter(|_| task.spec.send_params);
        Ok(RunContext {
            shard: ShardId { task: task.id, no: 0 },
            task_name: task.spec.name.clone(),
            task_revision: task.control_rev,
            business: task.business.clone(),
            params: params.map(|params| params.0),
            run: RunNo(0),
            epoch: Epoch(0),
            store: self.tasks.store_id().await?,
            keys_of: None,
            is_proven: false,
            keeps_results: true,
            mode: Mode::Preview,
            sampling: Sampling::default(),
            metering: Arc::new((*task.spec.metering).clone().into()),
            gate: Arc::new(Gate::always_open()),
        })
    }
}

fn check(task: &TaskView, items: &[ItemIndex]) -> Result<(), ServiceError> {
    if items.is_empty() || items.len() > ITEMS_MAX {
        return Err(ServiceError::unprocessable(
            "/indexes",
            format!("choose 1 to {ITEMS_MAX} items"),
        ));
    }
    match items.iter().find(|index| index.0 >= task.total.0) {
        Some(index) => {
            let text = format!("no item {}: the task has {}", index.0, task.total.0);
            Err(ServiceError::unprocessable("/indexes", text))
        }
        None => Ok(()),
    }
}

pub(in crate::service) fn not_provided(error: ProvisionError) -> ServiceError {
    match error {
        ProvisionError::SourceChanged(text) => ServiceError::unprocessable("/source", text),
        ProvisionError::HandlerUnusable(text) => ServiceError::unprocessable("/business", text),
        ProvisionError::KeyMissing(text) => ServiceError::conflict(
            text,
            "use a node that has the key, or give this one the key (auth.key_file)",
        ),
        ProvisionError::Unavailable(text) => ServiceError::conflict(text, "retry in a moment"),
    }
}

struct Trial<'a> {
    clock: &'a dyn Clock,
    task: &'a TaskView,
    handler: &'a dyn Handler,
    source: &'a dyn Source,
}

impl Trial<'_> {
    async fn run(&self, items: &[ItemIndex]) -> Result<Vec<PreviewedItem>, ServiceError> {
        let end = Instant::now() + PATIENCE;
        let mut slots = self.handler.slots();
        // If no slot becomes free, call anyway: the handler's reply gives the reason.
        timeout(READY_WITHIN, slots.wait_for(|slots| *slots != Some(0)))
            .await
            .ok();
        let mut seen = Vec::with_capacity(items.len());
        for some in items.chunks(self.task.tuning.batch.get() as usize) {
            if Instant::now() >= end {
                let failure = Failure::new("NOT_CALLED", "the time for the preview is used up");
                seen.extend(
                    some.iter()
                        .map(|index| failed(*index, "not_called", &failure, Duration::ZERO)),
                );
                continue;
            }
            seen.extend(self.call(some).await?);
        }
        Ok(seen)
    }

    async fn call(&self, items: &[ItemIndex]) -> Result<Vec<PreviewedItem>, ServiceError> {
        let begun = self.clock.now();
        let limit = self.task.tuning.timeout;
        let call = Call {
            items: dispatches(items),
            rows: self.rows(items).await?,
            gate_time: begun,
            timeout: limit,
        };
        let reply = timeout(limit + MARGIN, self.handler.process(call)).await;
        let took = self.clock.now().since(begun);
        let late = || {
            Reply::failed(
                FailureClass::Unclear,
                Failure::new("TIMEOUT", "no response in time"),
            )
        };
        Ok(read(items, reply.unwrap_or_else(|_| late()), took))
    }

    async fn rows(&self, items: &[ItemIndex]) -> Result<CallRows, ServiceError> {
        let mut rows = CallRows::default();
        if self.source.has_data() {
            for index in items
                .iter()
                .filter(|index| rows.data(**index).is_none())
                .copied()
                .collect::<Vec<_>>()
            {
                let chunk = self.source.read(index).await;
                let fault = |error: windrow_engine::ports::sources::source::SourceError| {
                    ServiceError::unprocessable("/source", error.to_string())
                };
                rows.chunks.push(chunk.map_err(fault)?);
            }
        }
        Ok(rows)
    }
}

pub(in crate::service) fn dispatches(items: &[ItemIndex]) -> CallItems {
    let one = |index: &ItemIndex| Dispatch {
        run: IndexRun::one(*index),
        attempt: Attempt::FIRST,
    };
    match items {
        [only] => CallItems::One(one(only)),
        several => CallItems::Many(several.iter().map(one).collect()),
    }
}

/// Converts a reply to the outcome of each item of the call.
pub(in crate::service) fn read(items: &[ItemIndex], reply: Reply, took: Duration) -> Vec<PreviewedItem> {
    let well = |index: ItemIndex, result| PreviewedItem {
        index,
        result,
        failure: None,
        took,
    };
    match reply {
        Reply::AllOk => items.iter().map(|index| well(*index, "succeeded")).collect(),
        Reply::Items(replies) => replies
            .verdicts
            .into_iter()
            .map(|(index, verdict)| match verdict {
                ItemVerdict::Settled(Outcome::Succeeded) | ItemVerdict::SucceededWith(_) => {
                    well(index, "succeeded")
                }
                ItemVerdict::Settled(Outcome::Skipped) => well(index, "skipped"),
                ItemVerdict::Failed {
                    failure,
                    advice: RetryAdvice::Fail,
                } => failed(index, "failed", &failure, took),
                ItemVerdict::Unclear(failure)
                | ItemVerdict::Failed {
                    failure,
                    advice: RetryAdvice::Retry { .. },
                } => failed(index, "retry", &failure, took),
            })
            .collect(),
        Reply::Failed(failure) => {
            let (result, failure) = whole(&failure);
            items
                .iter()
                .map(|index| failed(*index, result, &failure, took))
                .collect()
        }
        Reply::Told(told) => read(items, told.reply, took),
    }
}

fn failed(index: ItemIndex, result: &'static str, failure: &Failure, took: Duration) -> PreviewedItem {
    PreviewedItem {
        index,
        result,
        failure: Some(failure.clone()),
        took,
    }
}

fn whole(failure: &CallFailure) -> (&'static str, Failure) {
    match failure {
        CallFailure::Failed { failure, .. } | CallFailure::BackPressure { failure, .. } => {
            ("retry", failure.clone())
        }
        CallFailure::Final(failure) | CallFailure::Unsendable(failure) => ("failed", failure.clone()),
        CallFailure::BadReply(failure)
        | CallFailure::Rejected(failure)
        | CallFailure::Unstarted(failure)
        | CallFailure::Gone(failure) => ("broken", failure.clone()),
        CallFailure::Fenced => (
            "broken",
            Failure::new("FENCED", "it reports a newer run, but this is a preview"),
        ),
        CallFailure::NotSent => ("not_called", Failure::new("NOT_CALLED", "the call was not sent")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_told_item_by_item() {
        let items = [ItemIndex(3), ItemIndex(9)];
        let told = |reply| -> Vec<(u64, &str)> {
            read(&items, reply, Duration::ZERO)
                .iter()
                .map(|item| (item.index.0, item.result))
                .collect()
        };
        assert_eq!(told(Reply::AllOk), [(3, "succeeded"), (9, "succeeded")]);
        let busy = Failure::new("BUSY", "later");
        let verdicts = vec![
            (ItemIndex(3), ItemVerdict::Settled(Outcome::Skipped)),
            (
                ItemIndex(9),
                ItemVerdict::Failed {
                    failure: busy.clone(),
                    advice: RetryAdvice::Fail,
                },
            ),
        ];
        let replies = windrow_engine::ports::handling::handler::ItemReplies {
            verdicts,
            ..Default::default()
        };
        assert_eq!(
            told(Reply::Items(Box::new(replies))),
            [(3, "skipped"), (9, "failed")]
        );
        let gone = Reply::Failed(Box::new(CallFailure::Gone(busy.clone())));
        assert_eq!(told(gone), [(3, "broken"), (9, "broken")]);
        assert_eq!(
            told(Reply::failed(FailureClass::Unclear, busy)),
            [(3, "retry"), (9, "retry")]
        );
    }
}
