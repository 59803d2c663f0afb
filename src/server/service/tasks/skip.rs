//! Skipping items of a task because people say so.

use crate::service::failures::fates::Window;
use crate::service::tasks::{CommandOutcome, Tasks};
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::{ItemIndex, TaskId};
use windrow_core::items::stretches::Stretches;
use windrow_core::task::lifecycle::{Standing, Verb, decide};
use windrow_engine::ports::tasks::store::{TaskCommand, TaskView, Write};

/// What becomes of the items that were named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipping {
    /// What was named.
    pub named: Stretches,
    /// How many of them were settled when it was asked for, as far as that was saved: they stay as they are.
    pub settled: u64,
    /// How many of them are left out, at the head or by an early finish.
    pub excluded: u64,
}

impl Tasks {
    /// Settles items as skipped that aren't settled, without calling them: each run does it within a second with those that
    /// wait and with the others when their turn comes, and the next run where there is none.
    ///
    /// # Errors
    /// `WrongState` after the task's end; `Unprocessable` without a reason, for items that there aren't, and where the task
    /// would have to remember too many ranges.
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

    /// How many of these items are settled, as far as is saved.
    async fn settled_among(&self, task: &TaskView, named: &Stretches) -> Result<u64, ServiceError> {
        let reports = &self.failures.reports;
        let saved = reports.saved_windows(task.id).await?;
        // Below watermark an item may still be parked.
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
            "a reason is needed: nothing else tells later why nobody called these items",
        );
        faults.push(fault.advise("a sentence for the audit"));
    }
    if named.end().0 > task.total.0 {
        let (last, total) = (named.end().0 - 1, task.total.0);
        let text = format!(
            "there is no item {last}: {} has {total} items, counted from 0",
            task.id
        );
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
