//! Health of schedules, judged by their newest fires and by the end of the last task.

use super::Schedules;
use crate::service::ServiceError;
use windrow_core::ids::{ScheduleId, TaskId};
use windrow_core::task::lifecycle::Ending;
use windrow_engine::ports::schedules::store::{Fire, FireOutcome, Schedule};

/// Number of newest fires examined.
const LOOKS: u32 = 10;
/// Consecutive skipped fires that count as a problem; a single skip may be intended.
const IDLE_MAX: u64 = 3;

/// Health of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fares {
    /// Newest fire with a known outcome or error, not one that is only waiting.
    pub last: Option<Fire>,
    /// Number of newest fires settled without a task, among those examined.
    pub idle: u64,
    /// Description of the problem, if there is one.
    pub trouble: Option<String>,
}

impl Schedules {
    /// Returns the health of a schedule.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn fares(&self, schedule: &Schedule) -> Result<Fares, ServiceError> {
        let newest = self.store.fires(schedule.id, None, None, LOOKS).await?;
        let made = newest.iter().find_map(|fire| fire.task);
        let (idle, last) = (idle(&newest), newest.into_iter().find(is_known));
        let mut trouble = last.as_ref().and_then(|last| of_fire(last, idle));
        if let Some(task) = made.filter(|_| trouble.is_none()) {
            trouble = self.of_task(task).await?;
        }
        Ok(Fares { last, idle, trouble })
    }

    /// Counts the newest fires settled without a task, among those examined.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn idle(&self, id: ScheduleId) -> Result<u64, ServiceError> {
        Ok(idle(&self.store.fires(id, None, None, LOOKS).await?))
    }

    async fn of_task(&self, id: TaskId) -> Result<Option<String>, ServiceError> {
        let Some(task) = self.tasks.get(id).await? else {
            return Ok(None);
        };
        Ok(match task.life.ending() {
            Some(Ending::WithFailures) => Some(format!("its last task, {id}, has failures")),
            Some(Ending::Stopped(reason)) => Some(format!("its last task, {id}, stopped: {}", reason.text())),
            Some(Ending::Succeeded | Ending::ByPeople | Ending::Cancelled) | None => None,
        })
    }
}

fn is_known(fire: &Fire) -> bool {
    let is_open = matches!(fire.outcome, FireOutcome::Pending | FireOutcome::Queued);
    !is_open || fire.text.is_some()
}

/// Counts the newest settled fires before one that created a task.
fn idle(newest: &[Fire]) -> u64 {
    let settled = newest.iter().filter(|fire| fire.settled_at.is_some());
    let idle = settled.take_while(|fire| fire.outcome != FireOutcome::Made);
    idle.map(|fire| fire.count).sum()
}

fn of_fire(last: &Fire, idle: u64) -> Option<String> {
    let why = last
        .text
        .as_ref()
        .map(|why| format!(": {why}"))
        .unwrap_or_default();
    match last.outcome {
        FireOutcome::Made => None,
        FireOutcome::Pending | FireOutcome::Queued => Some(format!("its last fire is being retried{why}")),
        FireOutcome::Skipped if idle < IDLE_MAX => None,
        FireOutcome::Skipped | FireOutcome::Missed | FireOutcome::Failed if idle > 1 => {
            Some(format!("its last {idle} fires created no task{why}"))
        }
        FireOutcome::Skipped | FireOutcome::Missed | FireOutcome::Failed => {
            Some(format!("its last fire {}{why}", worded(last.outcome)))
        }
    }
}

fn worded(outcome: FireOutcome) -> &'static str {
    match outcome {
        FireOutcome::Missed => "was missed",
        FireOutcome::Failed => "failed",
        _ => "created no task",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::ids::WallMs;
    use windrow_engine::ports::schedules::store::FireKind;

    fn fire(outcome: FireOutcome, count: u64) -> Fire {
        let is_open = matches!(outcome, FireOutcome::Pending | FireOutcome::Queued);
        Fire {
            schedule: ScheduleId(1),
            time: WallMs(1),
            kind: FireKind::Scheduled,
            outcome,
            task: (outcome == FireOutcome::Made).then_some(TaskId(1)),
            last: WallMs(1),
            count,
            decided_at: WallMs(1),
            settled_at: (!is_open).then_some(WallMs(1)),
            attempts: 0,
            text: Some("why".to_owned()),
            publishes: true,
        }
    }

    #[test]
    fn fires_without_a_task_are_trouble_unless_a_few_are_skipped() {
        use FireOutcome::{Failed, Made, Missed, Pending, Skipped};
        for (newest, expected_idle, said) in [
            (vec![fire(Made, 1), fire(Failed, 1)], 0, None),
            (vec![fire(Skipped, 1), fire(Skipped, 1), fire(Made, 1)], 2, None),
            (
                vec![fire(Skipped, 1), fire(Missed, 9), fire(Made, 1)],
                10,
                Some("its last 10 fires created no task: why"),
            ),
            (
                vec![fire(Failed, 1), fire(Made, 1)],
                1,
                Some("its last fire failed: why"),
            ),
            (
                vec![fire(Pending, 1), fire(Failed, 1), fire(Made, 1)],
                1,
                Some("its last fire is being retried: why"),
            ),
        ] {
            let count = idle(&newest);
            assert_eq!(count, expected_idle);
            assert_eq!(of_fire(&newest[0], count).as_deref(), said);
        }
    }
}
