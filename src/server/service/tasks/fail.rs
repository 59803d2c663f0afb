//! Failing the items of a task that wait with a certain code.

use crate::service::tasks::CommandOutcome;
use crate::service::tasks::Tasks;
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::TaskId;
use windrow_core::task::lifecycle::{Standing, Verb, decide};
use windrow_core::text::quoted;
use windrow_engine::ports::tasks::failure_list::WaitingCode;
use windrow_engine::ports::tasks::store::{TaskCommand, TaskView, Write};

/// Most codes named in a refusal.
const NAMED_MAX: usize = 10;

impl Tasks {
    /// Fails the items that wait now and whose last failure has this code. Each run does so within a second; without
    /// a run, the next one does. Also returns the number of such items that are saved.
    ///
    /// # Errors
    /// `WrongState` before the first start and after the end of the task; `Unprocessable`, with the existing codes,
    /// if no item waits with the code and it wasn't decided before.
    pub async fn fail(
        &self,
        id: TaskId,
        code: &str,
        write: &Write,
    ) -> Result<(CommandOutcome, u64), ServiceError> {
        let task = self.get(id).await?;
        let standing = Standing {
            desired: task.desired,
            status: task.status,
            owned: false,
        };
        decide(Verb::Fail, standing).map_err(ServiceError::WrongState)?;
        let waiting = self.failures.list.waiting(id).await?;
        let items = waiting
            .iter()
            .find(|one| one.code == code)
            .map_or(0, |one| one.items);
        let was_decided = task.failed_codes.iter().any(|one| one.code == code);
        if items == 0 && !was_decided {
            return Err(unknown(&task, code, &waiting));
        }
        let command = TaskCommand::Fail {
            code: code.to_owned(),
        };
        // Deciding again is allowed: it covers the items that have failed since.
        let told = self.obey(id, &command, write, |_| false).await?;
        Ok((told, items))
    }
}

fn unknown(task: &TaskView, code: &str, waiting: &[WaitingCode]) -> ServiceError {
    let fault = FieldFault::new(
        "/code",
        format!(
            "no item of {} waits after a failure with {}",
            task.id,
            quoted(code)
        ),
    );
    let named = waiting
        .iter()
        .take(NAMED_MAX)
        .map(|one| format!("{} ({})", one.code, one.items));
    let mut named: Vec<String> = named.collect();
    if waiting.len() > NAMED_MAX {
        named.push(format!("and {} more", waiting.len() - NAMED_MAX));
    }
    let advice = if named.is_empty() {
        "retry in a few seconds: recent failures aren't saved yet, and no other item waits".to_owned()
    } else {
        format!("codes of waiting items: {}", named.join(", "))
    };
    ServiceError::from(fault.advise(advice))
}
