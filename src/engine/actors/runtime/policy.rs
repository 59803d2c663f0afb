//! Restart policy: which child, how often, how soon. One table, OTP's intensity rule.

use std::collections::VecDeque;
use std::time::Duration;

use windrow_core::ids::Moment;
use windrow_core::items::retry::doubled;
use windrow_core::slugs;

slugs! {
    /// Kinds of actors in the tree.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Kind {
        /// Root of the tree; owns the node's capacity ledger.
        Supervisor = "supervisor",
        /// Writes the heartbeat row of the node's session.
        Session = "session",
        /// Finds runnable shards without a live owner.
        Restorer = "restorer",
        /// Does the lease I/O for all shards.
        LeaseKeeper = "lease-keeper",
        /// Saves the progress that launchers report.
        CheckpointWriter = "checkpoint-writer",
        /// Saves log lines in batches.
        DataLogWriter = "data-log-writer",
        /// Delivers hook calls from the outbox.
        OutboxDispatcher = "outbox-dispatcher",
        /// Fires schedules that are due.
        Scheduler = "scheduler",
        /// Copies datasets for readers.
        SinkFollower = "sink-follower",
        /// Does the work that time makes due.
        Maintenance = "maintenance",
        /// Owns one shard of a task.
        Launcher = "launcher",
        /// Guards the lease validity of one shard.
        LeaseRenewer = "lease-renewer",
        /// Owns the lanes of one shard.
        WindowExecutor = "executor",
    }
}

/// Restart limit of a child: at most `restarts_max` times within `within`, each time after a longer delay. Past the
/// limit its parent fails, and the failure goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Restarts within the span; 0 means never.
    pub restarts_max: u32,
    /// Span over which restarts are counted.
    pub within: Duration,
    /// Delay before the first restart, doubled with each one.
    pub wait_first: Duration,
    /// Longest delay before a restart.
    pub wait_max: Duration,
}

const MINUTE: Duration = Duration::from_secs(60);

/// Returns the policy of a kind of actor. A launcher is not restarted in place: its shard becomes recoverable and the
/// restorer offers it again, to this node or another. The supervisor has no parent: past the limit the node ends and
/// is started again.
pub fn policy(kind: Kind) -> Policy {
    let (restarts_max, wait_first, wait_max) = match kind {
        Kind::Supervisor | Kind::Launcher => (0, Duration::ZERO, Duration::ZERO),
        Kind::Session | Kind::LeaseKeeper => (20, Duration::from_millis(10), Duration::from_millis(500)),
        Kind::Restorer
        | Kind::CheckpointWriter
        | Kind::DataLogWriter
        | Kind::OutboxDispatcher
        | Kind::Scheduler
        | Kind::SinkFollower
        | Kind::Maintenance => (10, Duration::from_millis(50), Duration::from_secs(2)),
        Kind::LeaseRenewer | Kind::WindowExecutor => (5, Duration::from_millis(100), Duration::from_secs(5)),
    };
    Policy {
        restarts_max,
        within: MINUTE,
        wait_first,
        wait_max,
    }
}

/// Recent restarts of one child.
#[derive(Clone, Debug, Default)]
pub struct Restarts {
    recent: VecDeque<Moment>,
}

impl Restarts {
    /// Records a failure at `now`. Returns the delay before the restart, or `None` past the limit.
    pub fn on_failure(&mut self, policy: Policy, now: Moment) -> Option<Duration> {
        while self
            .recent
            .front()
            .is_some_and(|at| now.since(*at) > policy.within)
        {
            self.recent.pop_front();
        }
        let count = u32::try_from(self.recent.len()).unwrap_or(u32::MAX);
        if count >= policy.restarts_max {
            return None;
        }
        self.recent.push_back(now);
        Some(doubled((policy.wait_first, policy.wait_max), count))
    }

    /// Returns the restarts within the last span.
    pub fn recent(&self) -> u32 {
        u32::try_from(self.recent.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_until_the_limit_sends_the_failure_up_and_time_forgives() {
        let policy = policy(Kind::WindowExecutor);
        let mut restarts = Restarts::default();
        let waits: Vec<_> = (0..6).map(|n| restarts.on_failure(policy, Moment(n))).collect();
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(waits, [ms(100), ms(200), ms(400), ms(800), ms(1600), None]);
        let later = Moment(61_000_000_000);
        assert_eq!(restarts.on_failure(policy, later), ms(100));
    }
}
