//! The queue of tasks that wait for capacity: permitted priorities, and the warning that a task would wait.

use super::Tasks;
use super::outlook::{Outlook, Warning};
use crate::service::{FieldFault, ServiceError};
use windrow_core::capacity::{Obstacle, Rank, Request};
use windrow_core::ids::ShardId;
use windrow_core::settings::RateLimit;
use windrow_core::shards::Share;
use windrow_core::task::lifecycle::Status;
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::tasks::store::{TaskView, Write};

/// Warning code for a task that must wait until others end.
pub const IN_LINE: &str = "waits_in_line";

impl Tasks {
    /// Rejects a priority that the caller may not set, unless the task already has it. Businesses are limited by the
    /// operators, because a higher priority starves the other tasks.
    ///
    /// # Errors
    /// `Unprocessable` with the maximum.
    pub(super) fn check_line(
        &self,
        wanted: &TaskSpec,
        has: Option<&TaskSpec>,
        write: &Write,
    ) -> Result<(), ServiceError> {
        let (priority, most) = (wanted.priority, self.node.config().auth.business_priority_max);
        let is_new = has.is_none_or(|has| has.priority != priority);
        if !is_new || write.actor.source != "business" || i64::from(priority) <= i64::from(most) {
            return Ok(());
        }
        let text = format!("{priority} exceeds {most}, the highest priority a business may set");
        let fault = FieldFault::new("/priority", text);
        Err(fault
            .advise(format!(
                "at most {most}; or ask an operator, or raise auth.business_priority_max"
            ))
            .into())
    }

    /// Warns if the queue of this node wouldn't let the task start now. If other nodes may have capacity, nothing can
    /// be said.
    pub(super) async fn warning_of_line(&self, task: &TaskView, outlook: &Outlook) -> Option<Warning> {
        let is_made = matches!(task.status, Status::Created | Status::Queued);
        if !is_made || outlook.items == 0 || (self.cluster.parts.is_shared && self.has_others().await) {
            return None;
        }
        let share = Share::of_each(outlook.shards?.max(1) as usize);
        let rate = share.of_limit(outlook.rate);
        let request = Request {
            rank: Rank::new(
                task.spec.priority,
                self.node.now(),
                ShardId { task: task.id, no: 0 },
            ),
            rate,
            share,
            takes: match rate {
                RateLimit::Limited(rate) if task.intake.is_none() => {
                    Some(rate.time_of(share.of(outlook.items)))
                }
                _ => None,
            },
        };
        let refusal = self.node.supervisor.would_admit(request).await.err()?;
        // A task that fits nowhere gets another warning.
        let waits = matches!(refusal.obstacle, Obstacle::Full | Obstacle::Behind(_));
        let fault = FieldFault::new("/rate", refusal.foretold().to_string());
        waits.then(|| Warning {
            code: IN_LINE,
            fault: fault.advise("wait, it starts automatically; or lower the rate, or raise the priority"),
        })
    }

    async fn has_others(&self) -> bool {
        self.capacities().await.is_ok_and(|nodes| nodes.len() > 1)
    }
}
