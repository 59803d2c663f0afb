//! Initial items of a new task: those of its source, none, or those appended later.

use crate::service::tasks::create::TaskPlan;
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::ItemCount;
use windrow_core::settings::Auto;
use windrow_core::task::spec::Shards;
use windrow_engine::ports::tasks::store::NewTask;

/// Rejects a source without items if the plan requires items. Otherwise an empty task is fine: there is nothing to
/// do, and nothing fails.
///
/// # Errors
/// `Unprocessable`.
pub(super) fn refuse_empty(total: ItemCount, plan: &TaskPlan) -> Result<(), ServiceError> {
    if total.0 > 0 || !plan.refuses_empty {
        return Ok(());
    }
    let fault = FieldFault::new("/source", "the source has 0 items, and `if_empty` is `error`");
    let advice = "`if_empty`: `ok` creates a task with nothing to do";
    Err(fault.advise(advice).into())
}

/// Turns a new task into an open one, which items are appended to.
///
/// # Errors
/// `Unprocessable` if it has attributes that require known items.
pub(super) fn open(task: &mut NewTask) -> Result<(), ServiceError> {
    let mut faults = Vec::new();
    if matches!(task.spec.shards.0, Auto::Fixed(shards) if shards.get() > 1) {
        faults.push(FieldFault::new("/shards", "an open task has one shard").advise("1, or leave it out"));
    }
    if task.spec.skip_first.0 > 0 {
        let text = "an open task has no items yet to exclude";
        faults.push(FieldFault::new("/skip_first", text).advise("leave it out"));
    }
    ServiceError::refuse(faults)?;
    (task.is_open, task.spec.shards) = (true, Shards::default());
    Ok(())
}
