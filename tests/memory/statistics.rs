//! What was done in each day.

use async_trait::async_trait;

use super::state::State;
use super::{Call, MemoryStore};
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::stats::daily::{Cells, Settled, TaskCounts, Totals, UtcDay};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::ShardCheckpoint;
use windrow_engine::ports::tasks::statistics::{Period, ShardDay, StatisticsStore, TaskTotals};

/// Adds what a checkpoint settled beyond what its shard had.
pub(super) fn gain(state: &mut State, checkpoint: &ShardCheckpoint, before: &Counters) {
    let gain = Settled::of(&checkpoint.counters).since(Settled::of(before));
    if gain != Settled::default() {
        let shard = checkpoint.shard;
        let own = (shard, UtcDay(i64::MIN))..=(shard, UtcDay(i64::MAX));
        let last = state.shard_days.range(own).next_back().map(|((_, day), _)| *day);
        // By a clock that is behind nothing is settled before the last day.
        let day = UtcDay::of(checkpoint.now).max(last.unwrap_or_default());
        let sum = state.shard_days.entry((checkpoint.shard, day)).or_default();
        *sum = sum.plus(gain);
    }
}

/// Moves what a task did to its business.
pub(super) fn fold(state: &mut State, id: TaskId) {
    let cells = of_task(state, id);
    for (cell, totals) in cells {
        let sum = state.business_days.entry(cell).or_default();
        *sum = sum.plus(totals);
    }
    state.shard_days.retain(|(shard, _), _| shard.task != id);
}

/// Forgets days of deleted tasks that were over before a time.
pub(super) fn expire(state: &mut State, before: WallMs) -> u64 {
    let count = state.business_days.len();
    state
        .business_days
        .retain(|(_, day), _| *day >= UtcDay::of(before));
    (count - state.business_days.len()) as u64
}

/// What a task that is kept did.
fn of_task(state: &State, id: TaskId) -> Cells {
    let mut cells = Cells::new();
    let Some(task) = state.tasks.get(&id) else {
        return cells;
    };
    let mut add = |day: UtcDay, totals: Totals| {
        let sum = cells.entry((task.new.business.clone(), day)).or_default();
        *sum = sum.plus(totals);
    };
    for ((_, day), items) in state.shard_days.iter().filter(|((shard, _), _)| shard.task == id) {
        let items = *items;
        add(
            *day,
            Totals {
                items,
                ..Totals::default()
            },
        );
    }
    let mut add_tasks = |at: WallMs, tasks: TaskCounts| {
        add(
            UtcDay::of(at),
            Totals {
                tasks,
                ..Totals::default()
            },
        )
    };
    let created = 1;
    add_tasks(
        task.created_at,
        TaskCounts {
            created,
            ..TaskCounts::default()
        },
    );
    if let Some(at) = task.finished_at {
        let ended = TaskCounts {
            finished: u64::from(task.status == Status::Finished),
            cancelled: u64::from(task.status == Status::Cancelled),
            ..TaskCounts::default()
        };
        add_tasks(at, ended);
    }
    cells
}

#[async_trait]
impl StatisticsStore for MemoryStore {
    async fn cells(&self, period: &Period) -> Result<Cells, StoreError> {
        self.act(Call::Read, |state| {
            let mut cells = state.business_days.clone();
            for id in state.tasks.keys() {
                for (cell, totals) in of_task(state, *id) {
                    let sum = cells.entry(cell).or_default();
                    *sum = sum.plus(totals);
                }
            }
            cells.retain(|(business, day), _| period.has(*day) && period.is_of(business));
            Ok(cells)
        })
        .await
    }

    async fn task_totals(
        &self,
        period: &Period,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<Vec<TaskTotals>, StoreError> {
        self.act(Call::Read, |state| {
            let totals = |id: &TaskId| {
                let task = state
                    .tasks
                    .get(id)
                    .filter(|task| period.is_of(&task.new.business))?;
                let days = state.shard_days.iter();
                let own: Vec<Settled> = days
                    .filter(|((shard, day), _)| shard.task == *id && period.has(*day))
                    .map(|(_, items)| *items)
                    .collect();
                (!own.is_empty()).then(|| TaskTotals {
                    task: *id,
                    name: task.new.spec.name.clone(),
                    business: task.new.business.clone(),
                    status: task.status,
                    items: own.into_iter().fold(Settled::default(), Settled::plus),
                })
            };
            let ids = state.tasks.keys().rev();
            let below = ids.filter(|id| after.is_none_or(|after| **id < after));
            Ok(below.filter_map(totals).take(limit as usize).collect())
        })
        .await
    }

    async fn shard_days(&self, task: TaskId) -> Result<Vec<ShardDay>, StoreError> {
        self.act(Call::Read, |state| {
            // Counters that fell again leave a day in which nothing was settled.
            let own = state
                .shard_days
                .iter()
                .filter(|((shard, _), items)| shard.task == task && **items != Settled::default());
            let day = |((shard, day), items): (&(_, UtcDay), &Settled)| ShardDay {
                shard: *shard,
                day: *day,
                items: *items,
            };
            Ok(own.map(day).collect())
        })
        .await
    }
}
