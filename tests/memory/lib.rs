//! Every store port in memory, with fault hooks, for tests and simulation.
//!
//! The naive twin of `sql`: the same facts hold (`tests/conformance`), reached by plain maps and loops. One lock
//! around everything makes each call a transaction; an effect checks before it changes, so a refusal leaves nothing.

mod append;
mod commands;
mod data_log;
mod datasets;
mod failures;
mod faults;
mod found;
mod hints;
mod history;
mod hooks;
mod items;
mod leases;
mod life;
mod limits;
mod moves;
mod outbox;
mod progress;
mod results;
mod runs;
mod schedules;
mod sessions;
mod shards;
mod shown;
mod sinks;
mod sources;
mod state;
mod statistics;
mod tasks;
mod upkeep;

use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

pub use faults::{Call, Faults, When};
pub use hints::{HintHub, MemoryHints};
pub use leases::MemoryLeases;

use state::State;
use windrow_core::business::Hooks;
use windrow_core::ids::{StoreId, TaskId, WallMs};
use windrow_core::limit::Bounds;
use windrow_core::limit::key::LimitKey;
use windrow_core::meter::metering::Metering;
use windrow_engine::ports::StoreError;

/// A store that forgets everything when it is dropped.
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<State>,
    faults: Faults,
}

impl MemoryStore {
    /// An empty store with a random id.
    pub fn new() -> MemoryStore {
        let id = Uuid::new_v4().simple().to_string()[..6].to_owned();
        MemoryStore {
            state: Mutex::new(State::new(StoreId(id))),
            faults: Faults::default(),
        }
    }

    /// Limits what the running tasks of a business may do together.
    pub fn limit_business(&self, slug: &str, bounds: Bounds) {
        self.set_limit(LimitKey::Business(slug), bounds);
    }

    /// Sets what a limit allows; a named one is made.
    pub fn set_limit(&self, key: LimitKey<'_>, bounds: Bounds) {
        self.lock().bounds.insert(key.text(), bounds);
    }

    /// Sets the limits in units of a limit.
    pub fn set_metering(&self, key: LimitKey<'_>, metering: Metering) {
        let mut state = self.lock();
        state.bounds.entry(key.text()).or_default();
        state.meterings.insert(key.text(), metering);
    }

    /// What goes wrong, on demand.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// What a business wants to hear; `ensure_business` makes one that wants nothing.
    pub fn set_hooks(&self, slug: &str, hooks: Hooks) {
        self.lock().hooks.insert(slug.to_owned(), hooks);
    }

    /// Counts one more item of a task's first shard as succeeded, as if somebody had mended its row.
    pub fn mend(&self, id: TaskId) {
        let mut state = self.lock();
        let first =
            |task: &mut state::Task| task.shards.first_mut().map(|shard| shard.counters.succeeded += 1);
        state.tasks.get_mut(&id).and_then(first);
        let days = state.shard_days.iter_mut().rev();
        if let Some((_, items)) = days.into_iter().find(|((shard, _), _)| shard.task == id) {
            items.succeeded += 1;
        }
    }

    /// The hook calls that were left so far, each with its delivery id, body and end.
    pub fn calls_left(&self) -> Vec<(String, serde_json::Value, WallMs)> {
        let left = &self.lock().outbox;
        let due = left.iter().filter(|call| call.state == state::CallState::Due);
        due.map(|call| (call.delivery.clone(), call.body.clone(), call.expires_at))
            .collect()
    }

    /// One call: waits while it is held, fails if it shall, takes effect, and perhaps loses its answer.
    async fn act<T, E: From<StoreError>>(
        &self,
        call: Call,
        effect: impl FnOnce(&mut State) -> Result<T, E>,
    ) -> Result<T, E> {
        self.faults.before(call).await?;
        let done = effect(&mut self.lock());
        self.faults.after(call)?;
        done
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in a test's other thread says nothing about the maps: effects check before they change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}
