//! Live state of tasks on all nodes: one query of the store, and one request to each node that owns shards.

use std::collections::BTreeMap;

use super::Stats;
use crate::service::cluster::{Reach, amiss};
use windrow_core::execution::Progress;
use windrow_core::ids::{SessionId, ShardId, TaskId};
use windrow_core::stats::speed::Speed;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::handler::Workers;
use windrow_engine::ports::ownership::peers::{LiveShard, LiveTask, Peer, PeerReply, Question, Unreachable};
use windrow_engine::ports::tasks::shard_map::StoredShard;
use windrow_engine::ports::tasks::store::TaskView;

/// Most tasks per request to a node.
const TASKS_MAX: usize = 500;

/// Live state of a task's runs.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    /// Live runs, each with its node.
    pub shards: Vec<(String, LiveShard)>,
    /// Rates on each node with runs, `None` while unknown.
    pub speeds: Vec<Option<Speed>>,
    /// Shards as stored; empty if all of the task runs on this node.
    pub stored: Vec<StoredShard>,
    /// Owners that can't be reached.
    pub silent: Vec<Unreachable>,
    /// True if the store didn't provide the owners of the shards that aren't on this node.
    pub is_blind: bool,
}

impl Stats {
    /// Returns the live state of a task's runs on this node. A run without a valid lease is left out: after a
    /// partition, another node may be ahead of it.
    pub(in crate::service) fn live_here(&self, task: TaskId) -> Option<LiveTask> {
        let shards: Vec<LiveShard> = self
            .node
            .supervisor
            .trusted_progress(task)
            .into_iter()
            .map(live_shard)
            .collect();
        let speed = self.speed(task);
        (!shards.is_empty()).then(|| LiveTask {
            task,
            shards,
            actual_rate: speed.map(|speed| speed.sent),
            settled_rate: speed.map(|speed| speed.settled),
        })
    }

    /// Returns the live state of a task's runs on all nodes.
    pub(in crate::service) async fn lives_of(&self, task: &TaskView) -> Lives {
        self.lives(std::slice::from_ref(task))
            .await
            .remove(&task.id)
            .unwrap_or_default()
    }

    /// Returns the live state of several tasks on all nodes; tasks without runs are left out.
    pub(in crate::service) async fn lives(&self, tasks: &[TaskView]) -> BTreeMap<TaskId, Lives> {
        let mut lives: BTreeMap<TaskId, Lives> = BTreeMap::new();
        let mut elsewhere = Vec::new();
        for task in tasks.iter().filter(|task| !task.status.is_terminal()) {
            let here = self.live_here(task.id);
            let covered: u64 = here
                .iter()
                .flat_map(|live| &live.shards)
                .map(|shard| shard.total.0)
                .sum();
            let is_whole = match task.intake {
                // An open task has one shard, whose run may not know the latest items yet.
                Some(_) => here.is_some(),
                None => covered + task.spec.skip_first.0.min(task.total.0) == task.total.0,
            };
            if let Some(here) = here {
                take_in(&mut lives, self.node.name.clone(), here);
            }
            if !is_whole && task.start_no > 0 {
                elsewhere.push(task.id);
            }
        }
        if self.cluster.parts.is_shared && !elsewhere.is_empty() {
            for ids in elsewhere.chunks(TASKS_MAX) {
                if let Err(error) = self.ask_owners(ids, &mut lives).await {
                    tracing::debug!(%error, "owners of tasks not available");
                    ids.iter()
                        .for_each(|id| lives.entry(*id).or_default().is_blind = true);
                }
            }
        }
        lives
    }

    async fn ask_owners(
        &self,
        tasks: &[TaskId],
        lives: &mut BTreeMap<TaskId, Lives>,
    ) -> Result<(), StoreError> {
        let stored = self.cluster.parts.shards.shards_of(tasks).await?;
        let sessions = self.cluster.sessions().await?;
        let mut owned: BTreeMap<SessionId, Vec<TaskId>> = BTreeMap::new();
        for shard in stored {
            let task = shard.shard.task;
            if let Some(session) = shard.life.session {
                let tasks = owned.entry(session).or_default();
                if tasks.last() != Some(&task) {
                    tasks.push(task);
                }
            }
            lives.entry(task).or_default().stored.push(shard);
        }
        let mut asked: Vec<(Peer, Question)> = Vec::new();
        for (session, tasks) in owned {
            match self.cluster.reach(session, &sessions) {
                Reach::Here => {}
                Reach::There(peer) => asked.push((peer, Question::Tasks(tasks))),
                Reach::Nowhere(silent) => note(lives, &tasks, &silent),
            }
        }
        let questions: Vec<Question> = asked.iter().map(|(_, question)| question.clone()).collect();
        for ((peer, answer), question) in self.cluster.ask_all(asked).await.into_iter().zip(questions) {
            let Question::Tasks(tasks) = question else {
                continue;
            };
            match answer {
                Ok(PeerReply::Tasks(found)) => {
                    found
                        .into_iter()
                        .for_each(|live| take_in(lives, peer.node.clone(), live));
                }
                Ok(_) => note(lives, &tasks, &amiss(&peer)),
                Err(silent) => note(lives, &tasks, &silent),
            }
        }
        Ok(())
    }
}

fn take_in(lives: &mut BTreeMap<TaskId, Lives>, node: String, live: LiveTask) {
    let task = lives.entry(live.task).or_default();
    // Nodes of an earlier version report one number for both.
    task.speeds.push(live.actual_rate.map(|sent| Speed {
        sent,
        settled: live.settled_rate.unwrap_or(sent),
    }));
    for shard in live.shards {
        // During a handover two nodes may report the same shard; the first one, this node's if it has it, counts.
        if task.shards.iter().all(|(_, known)| known.shard != shard.shard) {
            task.shards.push((node.clone(), shard));
        }
    }
}

fn note(lives: &mut BTreeMap<TaskId, Lives>, tasks: &[TaskId], silent: &Unreachable) {
    for task in tasks {
        lives.entry(*task).or_default().silent.push(silent.clone());
    }
}

fn live_shard((shard, progress, workers): (ShardId, Progress, Option<Workers>)) -> LiveShard {
    LiveShard {
        shard,
        total: progress.total,
        counters: progress.counters,
        watermark: progress.watermark,
        high_water: progress.high_water,
        window: progress.window,
        concurrency: progress.concurrency,
        latency_p95: progress.latency_p95,
        stall: progress.stall,
        autopilot: progress.autopilot,
        costs: progress.costs,
        handler: progress.handler,
        workers,
    }
}
