//! This node: name, clock, configuration and actors.

pub mod actors;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use windrow_config::Config;
use windrow_core::explain::Spell;
use windrow_core::ids::{Moment, TaskId, WallMs};
use windrow_engine::actors::runtime::handle::SupervisorHandle;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::meters::{Meters, store_full_text};

/// Facts about this node that all parts of the service share.
pub struct ThisNode {
    /// Name of this node.
    pub name: String,
    /// Handle of the node's supervisor.
    pub supervisor: Arc<SupervisorHandle>,
    /// Clock of the node.
    pub clock: Arc<dyn Clock>,
    /// Counters of all parts of the node.
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

    /// Returns the current configuration.
    pub fn config(&self) -> Arc<Config> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the configuration. The caller must check that only reloadable settings change.
    pub fn reconfigure(&self, config: Config) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// Returns a status text for a task if the database's disk is full.
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

    /// Returns the most recent period in which this node couldn't save anything.
    pub(super) fn unsaved(&self) -> Option<Spell> {
        self.meters.unsaved(self.clock.now())
    }

    /// Returns the reason why Redis is lost and the consequences on this node, if it is.
    pub(super) fn redis_lost(&self) -> Option<String> {
        let fault = self.meters.redis()?.err()?;
        let meaning = self.config().cluster.without_redis("this node takes");
        Some(format!("{fault}; {meaning}"))
    }

    /// Returns the current wall-clock time.
    pub fn now(&self) -> WallMs {
        self.clock.wall()
    }

    /// Returns the time passed since a moment.
    pub fn uptime(&self, since: Moment) -> Duration {
        self.clock.now().since(since)
    }

    pub(super) fn wall_of(&self, moment: Moment) -> WallMs {
        WallMs(self.clock.wall_micros(moment).div_euclid(1000))
    }

    /// Converts a wall-clock time to a moment; times before the clock's start become its start.
    pub(super) fn moment_of(&self, wall: WallMs) -> Moment {
        let now = self.clock.now();
        let wall_now = self.wall_of(now);
        if wall <= wall_now {
            now.minus(wall_now.since(wall))
        } else {
            now.plus(wall.since(wall_now))
        }
    }

    /// Announces a changed task: its runs and the search for work check it immediately.
    pub(super) fn look_at(&self, task: TaskId) {
        self.supervisor.nudge(task);
        self.supervisor.wake();
    }
}
