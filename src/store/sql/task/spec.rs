//! Attributes of a task in its row: those that statements query in columns, the rest as JSON.

use sea_orm::ActiveValue::Set;
use sea_orm::{ActiveModelTrait, Iterable, ModelTrait};

use crate::sql::entity::task;
use crate::sql::{damaged, words};
use windrow_core::ids::WallMs;
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::StoreError;

/// Columns that determine a task's place in the queue.
pub(crate) const LINE: [task::Column; 2] = [task::Column::Priority, task::Column::QueuedAt];

/// Reads the attributes from a row.
pub(crate) fn read(row: &task::Model) -> Result<TaskSpec, StoreError> {
    let rest: TaskSpec = serde_json::from_str(&row.spec).map_err(|_| damaged("task.spec", &row.spec))?;
    Ok(TaskSpec {
        name: row.name.clone(),
        skip_first: words::index(row.skip_first),
        labels: words::labels(row.labels.as_deref())?,
        limits: words::limits(row.limits.as_deref())?,
        priority: row.priority,
        start_at: Some(WallMs(row.not_before)).filter(|at| at.0 > 0),
        deadline: row.deadline.map(WallMs),
        ..rest
    })
}

/// Returns the columns that hold attributes.
pub(crate) fn columns(spec: &TaskSpec) -> Result<task::ActiveModel, StoreError> {
    let rest = spec.members(|attribute| !attribute.rule.has_column);
    let rest = serde_json::to_string(&rest).map_err(|fault| StoreError::Refused(fault.to_string()))?;
    Ok(task::ActiveModel {
        name: Set(spec.name.clone()),
        skip_first: Set(spec.skip_first.0.cast_signed()),
        labels: Set(words::labels_text(&spec.labels)?),
        limits: Set(words::limits_text(&spec.limits)?),
        priority: Set(spec.priority),
        not_before: Set(spec.start_at.map_or(0, |at| at.0)),
        deadline: Set(spec.deadline.map(|at| at.0)),
        spec: Set(rest),
        ..Default::default()
    })
}

/// Writes the attributes into a row.
pub(crate) fn write(row: &mut task::Model, spec: &TaskSpec) -> Result<(), StoreError> {
    let columns = columns(spec)?;
    for column in task::Column::iter() {
        if let Some(value) = columns.get(column).into_value() {
            row.set(column, value);
        }
    }
    Ok(())
}
