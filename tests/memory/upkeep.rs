//! What time makes due, and what isn't kept longer.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::state::{CallState, Shard, State, Task};
use super::{Call, MemoryStore, append, datasets, found, progress, statistics};
use windrow_core::business::POOL_DEFAULT;
use windrow_core::handler::elsewhere::Reaching;
use windrow_core::ids::{SessionId, ShardId, TaskId, WallMs};
use windrow_core::task::lifecycle::{DORMANT, ShardState, Status};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::upkeep::{Sweep, UpkeepStore};

#[async_trait]
impl UpkeepStore for MemoryStore {
    async fn past_deadline(&self, now: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError> {
        let bound = [
            Status::Queued,
            Status::AwaitingBusiness,
            Status::Running,
            Status::Recovering,
        ];
        self.act(Call::Read, |state| {
            let late = |task: &Task| task.new.spec.deadline.filter(|deadline| *deadline <= now);
            let late = |(id, task): (&TaskId, &Task)| {
                late(task)
                    .filter(|_| bound.contains(&task.status))
                    .map(|deadline| (deadline, *id))
            };
            let mut found: Vec<(WallMs, TaskId)> = state.tasks.iter().filter_map(late).collect();
            found.sort();
            Ok(found.into_iter().map(|(_, id)| id).take(limit as usize).collect())
        })
        .await
    }

    async fn unanswered(&self, now: WallMs, limit: u32) -> Result<Vec<(TaskId, u32)>, StoreError> {
        self.act(Call::Read, |state| {
            let waits = |task: &Task| {
                task.status == Status::AwaitingBusiness
                    && task.awaiting_until.is_some_and(|until| until <= now)
            };
            let found = state.tasks.iter().filter(|(_, task)| waits(task));
            Ok(found
                .map(|(id, task)| (*id, task.start_no))
                .take(limit as usize)
                .collect())
        })
        .await
    }

    async fn is_start_due(&self, after: WallMs, upto: WallMs) -> Result<bool, StoreError> {
        self.act(Call::Read, |state| {
            let is_due = |at: WallMs| at > after && at <= upto;
            let mut queued = state.tasks.values().filter(|task| task.status == Status::Queued);
            Ok(queued.any(|task| task.new.spec.start_at.is_some_and(is_due)))
        })
        .await
    }

    async fn dormant(&self, before: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError> {
        self.act(Call::Read, |state| {
            let told_to_wait = |at: WallMs| at >= WallMs(before.0.max(1)) && at < WallMs(i64::MAX);
            let is_active = |shard: &Shard| {
                shard.session.is_some() || shard.updated_at >= before || told_to_wait(shard.not_before)
            };
            let is_dormant = |task: &Task| {
                let mut open = task.shards.iter().filter(|shard| shard.state != ShardState::Done);
                let waits = matches!(task.status, Status::Queued | Status::Recovering);
                waits && !is_asleep(task) && !open.any(is_active)
            };
            let found = state.tasks.iter().filter(|(_, task)| is_dormant(task));
            Ok(found.map(|(id, _)| *id).take(limit as usize).collect())
        })
        .await
    }

    async fn unserved(
        &self,
        served: &[String],
        now: WallMs,
        limit: u32,
    ) -> Result<Vec<(TaskId, String)>, StoreError> {
        self.act(Call::Read, |state| {
            if served.iter().any(|pool| pool == POOL_DEFAULT) {
                return Ok(Vec::new());
            }
            let is_due = |task: &Task| task.new.spec.start_at.is_none_or(|at| at <= now);
            let waits =
                |task: &Task| matches!(task.status, Status::Queued | Status::Recovering) && !is_asleep(task);
            let waiting = state.tasks.iter().filter(|(_, task)| waits(task) && is_due(task));
            Ok(waiting
                .map(|(id, _)| (*id, POOL_DEFAULT.to_owned()))
                .take(limit as usize)
                .collect())
        })
        .await
    }

    async fn orphans(
        &self,
        silent: &[SessionId],
        limit: u32,
    ) -> Result<Vec<(ShardId, SessionId)>, StoreError> {
        self.act(Call::Read, |state| {
            let of_task = |(id, task): (&TaskId, &Task)| {
                let of = |no| ShardId { task: *id, no };
                let owned = task
                    .shards
                    .iter()
                    .filter_map(|shard| Some((of(shard.no), shard.session?)));
                owned.collect::<Vec<_>>()
            };
            let owned = state.tasks.iter().flat_map(of_task);
            let is_fenced = |id: &SessionId| state.sessions.get(id).is_some_and(|session| session.fenced);
            let orphans = owned.filter(|(_, owner)| is_fenced(owner) || silent.contains(owner));
            Ok(orphans.take(limit as usize).collect())
        })
        .await
    }

    async fn reaching(
        &self,
        business: &str,
        besides: SessionId,
        limit: u32,
    ) -> Result<Vec<Reaching>, StoreError> {
        self.act(Call::Read, |state| {
            let reaches = |shard: &&Shard| {
                let is_anothers = shard.session.is_some_and(|owner| owner != besides);
                shard.state == ShardState::Running && is_anothers && shard.outage.is_none()
            };
            let of_task = |(id, task): (&TaskId, &Task)| {
                let run = |shard: &Shard| Reaching {
                    shard: ShardId {
                        task: *id,
                        no: shard.no,
                    },
                    epoch: shard.epoch,
                    succeeded: shard.counters.succeeded,
                };
                task.shards.iter().filter(reaches).map(run).collect::<Vec<_>>()
            };
            let of_business = state
                .tasks
                .iter()
                .filter(|(_, task)| task.new.business == business);
            Ok(of_business.flat_map(of_task).take(limit as usize).collect())
        })
        .await
    }

    async fn disown(&self, shards: &[ShardId], now: WallMs) -> Result<Vec<TaskId>, StoreError> {
        self.act(Call::Command, |state| {
            let mut shards = shards.to_vec();
            shards.sort_unstable();
            let taken = shards.into_iter().filter(|id| progress::disown(state, *id, now));
            Ok(taken.map(|id| id.task).collect())
        })
        .await
    }

    async fn sweep(&self, what: Sweep, before: WallMs) -> Result<u64, StoreError> {
        self.act(Call::Command, |state| Ok(sweep(state, what, before)))
            .await
    }

    async fn ended_before(&self, before: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError> {
        self.act(Call::Read, |state| {
            let ended = state
                .tasks
                .iter()
                .filter_map(|(id, task)| Some((task.finished_at?, *id)));
            let mut found: Vec<(WallMs, TaskId)> = ended.filter(|(at, _)| *at < before).collect();
            found.sort();
            Ok(found.into_iter().map(|(_, id)| id).take(limit as usize).collect())
        })
        .await
    }
}

/// Says that it is dormant.
fn is_asleep(task: &Task) -> bool {
    task.status_reason.as_deref() == Some(DORMANT)
}

fn sweep(state: &mut State, what: Sweep, before: WallMs) -> u64 {
    match what {
        // Answers, sign-ins, and bytes elsewhere are kept by SQL stores only.
        Sweep::Answers | Sweep::ResultBytes | Sweep::ArchiveHalves | Sweep::SignIns => 0,
        Sweep::Delivered => calls(state, CallState::Done, before),
        Sweep::GivenUp => calls(state, CallState::Dead, before),
        Sweep::Sessions => sessions(state, before),
        Sweep::Found => found::expire(state, before),
        Sweep::Failures => failures(state, before),
        Sweep::Results => results(state, before),
        Sweep::Generations => datasets::sweep(state),
        Sweep::Statistics => statistics::expire(state, before),
        Sweep::Appended => append::sweep(state, before),
        Sweep::AppendKeys => append::sweep_keys(state, before),
        Sweep::Audit => audits(state, before),
    }
}

fn calls(state: &mut State, wanted: CallState, before: WallMs) -> u64 {
    let count = state.outbox.len();
    state
        .outbox
        .retain(|call| call.state != wanted || call.created_at >= before);
    (count - state.outbox.len()) as u64
}

fn sessions(state: &mut State, before: WallMs) -> u64 {
    let named: Vec<_> = state
        .tasks
        .values()
        .flat_map(|task| &task.shards)
        .filter_map(|shard| shard.session)
        .collect();
    let count = state.sessions.len();
    state
        .sessions
        .retain(|id, session| !session.fenced || named.contains(id) || session.started_at >= before);
    (count - state.sessions.len()) as u64
}

fn results(state: &mut State, before: WallMs) -> u64 {
    let owned: Vec<TaskId> = datasets::owners(state)
        .map(|generation| generation.task)
        .collect();
    let ended = state
        .tasks
        .iter_mut()
        .filter(|(id, task)| task.finished_at.is_some_and(|at| at < before) && !owned.contains(id));
    ended
        .map(|(_, task)| std::mem::take(&mut task.results).len() as u64)
        .sum()
}

fn failures(state: &mut State, before: WallMs) -> u64 {
    let needed: Vec<TaskId> = state
        .tasks
        .values()
        .filter(|task| !task.status.is_terminal())
        .filter_map(|task| task.new.parent)
        .collect();
    let mut gone = 0;
    for (id, task) in &mut state.tasks {
        if task.finished_at.is_some_and(|at| at < before) && !needed.contains(id) {
            gone += task.items.len() as u64;
            task.items.clear();
        }
    }
    gone
}

/// Entries about nothing that is still there.
fn audits(state: &mut State, before: WallMs) -> u64 {
    let tasks: BTreeSet<TaskId> = state.tasks.keys().copied().collect();
    let all = state.audit.len();
    state
        .audit
        .retain(|(task, entry)| entry.at >= before || task.is_some_and(|task| tasks.contains(&task)));
    (all - state.audit.len()) as u64
}
