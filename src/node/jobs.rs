//! Jobs of a process. `windrow run` has one, a program with its own node any number. A node with jobs runs nothing
//! else in its store.
//!
//! Other tasks of the store are offered only to be stopped. Tasks left running by a `kill -9` stay as they are until
//! their own command runs again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::{NodeOptions, Runtimes, StateDir, Store, times};
use windrow_config::Config;
use windrow_core::capacity::{Capacity, Ledger};
use windrow_core::ids::{ClaimId, Epoch, ItemIndex, ShardId, TaskId, WallMs};
use windrow_core::items::verdict::ParkedItem;
use windrow_core::task::lifecycle::Desired;
use windrow_engine::actors::runtime::context::Times;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::ownership::run_store::{
    CandidatePage, CandidateQuery, CheckpointAck, ClaimOutcome, ClaimRequest, Control, RunClose, RunStore,
    ShardCheckpoint,
};
use windrow_engine::ports::ownership::session_store::SessionStore;
use windrow_engine::ports::sources::provision::{Provider, Provision, ProvisionError};
use windrow_engine::ports::tasks::store::{CommandError, TaskCommand, TaskStore, TaskView, Write};
use windrow_engine::ports::tasks::upkeep::UpkeepStore;
use windrow_server::http::jobs::BegunJob;

/// Business that all jobs of a store belong to.
pub const BUSINESS: &str = "run";
/// Restore window of jobs, practically unlimited: a job that is started must run, however long it was idle.
const RESTORE_WINDOW: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Deletes a job from a store that is not in use; the caller holds its directory. An unfinished job is cancelled
/// first, after taking its shards from a process that is gone.
///
/// # Errors
/// Fails if the store fails or refuses.
pub async fn forget(
    store: &Store,
    job: &TaskView,
    write: &Write,
    clock: &dyn Clock,
) -> Result<(), CommandError> {
    if !job.status.is_terminal() {
        for session in SessionStore::list(store).await? {
            store.fence(session.id, session.heartbeat, clock.wall()).await?;
        }
        TaskStore::command(store, job.id, &TaskCommand::Cancel, write, clock.wall()).await?;
        let shards: Vec<ShardId> = (0_u32..)
            .zip(&job.shards)
            .map(|(no, _)| ShardId { task: job.id, no })
            .collect();
        store.disown(&shards, clock.wall()).await?;
    }
    TaskStore::delete(store, job.id, write, clock.wall()).await
}

/// Handlers and items of the jobs started by this process.
#[derive(Default)]
pub struct Jobs(Mutex<HashMap<TaskId, (String, Provision)>>);

impl Jobs {
    /// Adds a job, which can run from now on.
    pub fn add(&self, task: &TaskView, provision: Provision) {
        let name = task.spec.name.clone().unwrap_or_default();
        self.all().insert(task.id, (name, provision));
    }

    /// Returns the jobs started by this process.
    pub fn begun(&self) -> Vec<BegunJob> {
        let all = self.all();
        let begun = all.iter().map(|(task, (name, _))| BegunJob {
            task: task.to_string(),
            name: name.clone(),
        });
        begun.collect()
    }

    fn has(&self, task: TaskId) -> bool {
        self.all().contains_key(&task)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<TaskId, (String, Provision)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Provider for Jobs {
    async fn provide(&self, task: &TaskView) -> Result<Provision, ProvisionError> {
        let none = || ProvisionError::Unavailable("it was not started in this process".to_owned());
        let all = self.all();
        let found = all.get(&task.id).map(|(_, provision)| provision.clone());
        found.ok_or_else(none)
    }
}

impl NodeOptions {
    /// Returns the options of a job node, whose store belongs to this process alone.
    pub fn of_jobs(
        config: &Config,
        state: Arc<StateDir>,
        store: Arc<Store>,
        jobs: Arc<Jobs>,
        runtimes: Arc<Runtimes>,
    ) -> NodeOptions {
        NodeOptions {
            name: BUSINESS.to_owned(),
            state,
            store,
            provider: jobs.clone(),
            ledger: Ledger::new(Capacity::Unlimited, config.node.unlimited_reserves),
            times: Times {
                restore_window: RESTORE_WINDOW,
                takeover_without_leases: false,
                ..times(config)
            },
            runtimes,
            exclusive: true,
            only: Some(jobs),
        }
    }
}

/// Returns the run store, restricted to these jobs if given.
pub(super) fn runs(store: &Arc<Store>, only: Option<Arc<Jobs>>) -> Arc<dyn RunStore> {
    let runs = store.clone();
    match only {
        Some(jobs) => Arc::new(JobRuns { runs, jobs }),
        None => runs,
    }
}

/// Run store restricted to these jobs.
struct JobRuns {
    runs: Arc<dyn RunStore>,
    jobs: Arc<Jobs>,
}

#[async_trait]
impl RunStore for JobRuns {
    async fn candidates(&self, query: &CandidateQuery) -> Result<CandidatePage, StoreError> {
        let mut page = self.runs.candidates(query).await?;
        page.found.retain(|candidate| {
            self.jobs.has(candidate.rank.shard.task) || candidate.desired != Desired::Run
        });
        Ok(page)
    }

    async fn claim(&self, request: ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        self.runs.claim(request).await
    }

    async fn checkpoint(&self, checkpoints: &[ShardCheckpoint]) -> Result<Vec<CheckpointAck>, StoreError> {
        self.runs.checkpoint(checkpoints).await
    }

    async fn release(
        &self,
        shard: ShardId,
        epoch: Epoch,
        claim: ClaimId,
        close: &RunClose,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError> {
        self.runs.release(shard, epoch, claim, close, now).await
    }

    async fn parked_due(
        &self,
        shard: ShardId,
        before: WallMs,
        after: Option<(WallMs, ItemIndex)>,
        limit: u32,
    ) -> Result<Vec<ParkedItem>, StoreError> {
        self.runs.parked_due(shard, before, after, limit).await
    }

    async fn control(&self, shard: ShardId) -> Result<Control, StoreError> {
        self.runs.control(shard).await
    }
}
