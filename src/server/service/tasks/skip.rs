//! Skipping items of a task on request.

use crate::service::failures::fates::Window;
use crate::service::tasks::{CommandOutcome, Tasks};
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::{ItemIndex, TaskId};
use windrow_core::items::stretches::Stretches;
use windrow_core::task::lifecycle::{Standing, Verb, decide};
use windrow_engine::ports::tasks::store::{TaskCommand, TaskView, Write};

/// Outcome of a skip request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipping {
    /// Items named in the request.
    pub named: Stretches,
    /// Number of these items already settled, as far as saved; they stay unchanged.
    pub settled: u64,
    /// Number of these items that are excluded, at the head or by an early finish.
    pub excluded: u64,
}

impl Tasks {
    /// Settles unsettled items as skipped without calling them. Each run does so within a second for waiting items,
    /// and for the others when their turn comes; without a run, the next one does.
    ///
    /// # Errors
    /// `WrongState` after the task's end; `Unprocessable` if the reason is missing, if the items don't exist, or if
    /// the task would have to remember too many ranges.
    pub async fn skip(
        &self,
        id: TaskId,
        named: Stretches,
        write: &Write,
    ) -> Result<(CommandOutcome, Skipping), ServiceError> {
        let task = self.get(id).await?;
        let standing = Standing {
            desired: task.desired,
            status: task.status,
            owned: false,
        };
        decide(Verb::Skip, standing).map_err(ServiceError::WrongState)?;
        check(&task, &named, write)?;
        let skipping = Skipping {
            settled: self.settled_among(&task, &named).await?,
            excluded: excluded_among(&task, &named),
            named,
        };
        let command = TaskCommand::Skip(skipping.named.clone());
        let told = self.obey(id, &command, write, |_| false).await?;
        Ok((told, skipping))
    }

    /// Returns the number of these items that are settled, as far as saved.
    async fn settled_among(&self, task: &TaskView, named: &Stretches) -> Result<u64, ServiceError> {
        let reports = &self.failures.reports;
        let saved = reports.saved_windows(task.id).await?;
        // Items below the watermark may still be parked.
        let waiting = match task.counters.parked {
            0 => Vec::new(),
            _ => reports.waiting_items(task.id).await?,
        };
        let windows = saved.iter().filter_map(|saved| {
            let shard = task.shards.iter().find(|shard| shard.no == saved.shard.no)?;
            Some(Window::new(shard.first, shard.range_end, saved))
        });
        let of_window = |window: Window| {
            let parked = |index: &&ItemIndex| named.contains(**index) && window.has_done(**index);
            let parked = waiting.iter().filter(parked).count() as u64;
            window.done_among(named).saturating_sub(parked)
        };
        Ok(windows.map(of_window).sum())
    }
}

fn check(task: &TaskView, named: &Stretches, write: &Write) -> Result<(), ServiceError> {
    let mut faults = Vec::new();
    let reason = write.actor.reason.as_deref().map(str::trim);
    if reason.is_none_or(str::is_empty) {
        let fault = FieldFault::new(
            "/reason",
            "a reason is required: it is the only record of why these items weren't called",
        );
        faults.push(fault.advise("a sentence for the audit log"));
    }
    if named.end().0 > task.total.0 {
        let (last, total) = (named.end().0 - 1, task.total.0);
        let text = format!("no item {last}: {} has {total} items, counted from 0", task.id);
        faults.push(FieldFault::new("/indexes", text));
    }
    ServiceError::refuse(faults)
}

fn excluded_among(task: &TaskView, named: &Stretches) -> u64 {
    let cut = task
        .shards
        .iter()
        .map(|shard| named.count(shard.end, shard.range_end));
    named.count(ItemIndex(0), task.spec.skip_first) + cut.sum::<u64>()
}
