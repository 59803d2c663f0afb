//! Items of open tasks: appended at any time until the task is sealed.

use crate::service::ServiceError;
use crate::service::tasks::{CommandOutcome, Tasks};
use windrow_core::ids::TaskId;
use windrow_core::task::supply::{AppendRefusal, Intake};
use windrow_engine::ports::sources::append::{AppendError, Appended, NewBlock};
use windrow_engine::ports::tasks::store::{TaskCommand, TaskView, Write};

impl Tasks {
    /// Appends items to a task. A run on this node learns of them immediately, on another node within a second.
    ///
    /// # Errors
    /// `Sealed` if the task accepts no more, `BacklogFull` if too many items wait, `KeyReused`, `WrongState`.
    pub async fn append(
        &self,
        id: TaskId,
        block: &NewBlock,
        write: &Write,
    ) -> Result<Appended, ServiceError> {
        let now = self.node.now();
        let added = self.appends.append_items(id, block, write, now).await?;
        if !write.dry_run && !added.is_repeat {
            self.node.look_at(id);
        }
        Ok(added)
    }

    /// Returns the size of the waiting items' rows in an open task, in bytes.
    pub async fn bytes_waiting(&self, id: TaskId) -> Result<u64, ServiceError> {
        Ok(self.appends.bytes_waiting(id).await?)
    }

    /// Seals a task: it accepts no more items and finishes once all are settled.
    ///
    /// # Errors
    /// `Conflict` if it isn't an open task; `WrongState` after its end.
    pub async fn seal(&self, id: TaskId, write: &Write) -> Result<CommandOutcome, ServiceError> {
        let there = |task: &TaskView| task.intake == Some(Intake::Sealed);
        self.obey(id, &TaskCommand::Seal, write, there).await
    }
}

impl From<AppendError> for ServiceError {
    fn from(error: AppendError) -> ServiceError {
        match error {
            AppendError::NotFound(id) => ServiceError::no_task(id),
            AppendError::KeyReused(_) => ServiceError::KeyReused,
            AppendError::Store(error) => error.into(),
            AppendError::Refused(refusal) => refused(refusal),
        }
    }
}

fn refused(refusal: AppendRefusal) -> ServiceError {
    let text = refusal.to_string();
    match refusal {
        AppendRefusal::NotOpen(_) => not_open(text),
        AppendRefusal::Sealed(_) => ServiceError::Sealed(text),
        AppendRefusal::Status(refusal) => ServiceError::WrongState(refusal),
        AppendRefusal::Size { items: 0, .. } => {
            ServiceError::unprocessable("/items", "at least one item is required")
        }
        AppendRefusal::Size { .. } => ServiceError::TooLarge(text),
        AppendRefusal::Full { .. } => ServiceError::BacklogFull(text),
    }
}

/// Returns the error for appending to a task whose items were fixed at creation.
pub(crate) fn not_open(text: String) -> ServiceError {
    ServiceError::conflict(
        text,
        "create a task with `open`: windrow task create BUSINESS --open",
    )
}
