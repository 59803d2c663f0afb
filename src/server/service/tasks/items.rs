//! Items of open tasks: appended while they run, until a task is sealed.

use crate::service::ServiceError;
use crate::service::tasks::{CommandOutcome, Tasks};
use windrow_core::ids::TaskId;
use windrow_core::task::supply::{AppendRefusal, Intake};
use windrow_engine::ports::sources::append::{AppendError, Appended, NewBlock};
use windrow_engine::ports::tasks::store::{TaskCommand, TaskView, Write};

impl Tasks {
    /// Adds items behind a task's last one. Its run hears of it at once, on another node within a second.
    ///
    /// # Errors
    /// `Sealed` when it takes no more, `BacklogFull` when too many wait, `KeyReused`, `WrongState`.
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

    /// The rows of items that wait in an open task. Unit: bytes.
    pub async fn bytes_waiting(&self, id: TaskId) -> Result<u64, ServiceError> {
        Ok(self.appends.bytes_waiting(id).await?)
    }

    /// Takes no more items: the task finishes once those that it has are settled.
    ///
    /// # Errors
    /// `Conflict` where it was not made open; `WrongState` after its end.
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
            ServiceError::unprocessable("/items", "at least one item is expected")
        }
        AppendRefusal::Size { .. } => ServiceError::TooLarge(text),
        AppendRefusal::Full { .. } => ServiceError::BacklogFull(text),
    }
}

/// The items of a task were fixed when it was made.
pub(crate) fn not_open(text: String) -> ServiceError {
    ServiceError::conflict(
        text,
        "make a task with `open`: windrow task create BUSINESS --open",
    )
}
