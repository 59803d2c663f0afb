//! This node: its name, its time, its configuration and its actors.

pub mod actors;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use windrow_config::Config;
use windrow_core::explain::Spell;
use windrow_core::ids::{Moment, TaskId, WallMs};
use windrow_engine::actors::runtime::handle::SupervisorHandle;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::meters::{Meters, store_full_text};

/// What every part of the service may know of the node that it runs on.
pub struct ThisNode {
    /// Its name.
    pub name: String,
    /// Its actors.
    pub supervisor: Arc<SupervisorHandle>,
    /// Its time.
    pub clock: Arc<dyn Clock>,
    /// What its parts count.
    pub meters: Arc<Meters>,
    config: RwLock<Arc<Config>>,
}

impl ThisNode {
    pub(super) fn new(
        name: String,
        supervisor: Arc<SupervisorHandle>,
        clock: Arc<dyn Clock>,
        meters: Arc<Meters>,
        config: Config,
    ) -> ThisNode {
        ThisNode {
            name,
            supervisor,
            clock,
            meters,
            config: RwLock::new(Arc::new(config)),
        }
    }

    /// The configuration as it is now.
    pub fn config(&self) -> Arc<Config> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts a reloaded configuration in place; who changes what can't be reloaded has looked before.
    pub fn reconfigure(&self, config: Config) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// What a task is to know of the full disk of the database, if it is full.
    pub(super) fn store_full(&self, task: TaskId) -> Option<String> {
        let unsaved = || {
            self.supervisor
                .progress(task)
                .into_iter()
                .map(|(_, run)| run.unsaved)
        };
        let is_full = self.meters.is_store_full(self.clock.now());
        is_full.then(|| store_full_text(unsaved().sum()))
    }

    /// The newest time in which this node could save nothing, if there was one.
    pub(super) fn unsaved(&self) -> Option<Spell> {
        self.meters.unsaved(self.clock.now())
    }

    /// Why Redis is lost and what that means here, if it is.
    pub(super) fn redis_lost(&self) -> Option<String> {
        let fault = self.meters.redis()?.err()?;
        let meaning = self.config().cluster.without_redis("this node takes");
        Some(format!("{fault}; {meaning}"))
    }

    /// The wall clock.
    pub fn now(&self) -> WallMs {
        self.clock.wall()
    }

    /// For how long something has been so.
    pub fn uptime(&self, since: Moment) -> Duration {
        self.clock.now().since(since)
    }

    pub(super) fn wall_of(&self, moment: Moment) -> WallMs {
        WallMs(self.clock.wall_micros(moment).div_euclid(1000))
    }

    /// The moment of a wall-clock time; the beginning of this clock for what lies before it.
    pub(super) fn moment_of(&self, wall: WallMs) -> Moment {
        let now = self.clock.now();
        let wall_now = self.wall_of(now);
        if wall <= wall_now {
            now.minus(wall_now.since(wall))
        } else {
            now.plus(wall.since(wall_now))
        }
    }

    /// A task was changed: what runs of it looks at once, and so does whoever looks for work.
    pub(super) fn look_at(&self, task: TaskId) {
        self.supervisor.nudge(task);
        self.supervisor.wake();
    }
}
