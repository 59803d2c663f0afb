//! The restart policy: which child, how often, how soon. One table, OTP's intensity rule.

use std::collections::VecDeque;
use std::time::Duration;

use windrow_core::ids::Moment;
use windrow_core::items::retry::doubled;
use windrow_core::slugs;

slugs! {
    /// The actors of the tree.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Kind {
        /// The root.
        Supervisor = "supervisor",
        /// Heartbeat.
        Session = "session",
        /// Finds work.
        Restorer = "restorer",
        /// Lease I/O.
        LeaseKeeper = "lease-keeper",
        /// Saves progress.
        CheckpointWriter = "checkpoint-writer",
        /// Saves log lines.
        DataLogWriter = "data-log-writer",
        /// Delivers hook calls.
        OutboxDispatcher = "outbox-dispatcher",
        /// Fires schedules.
        Scheduler = "scheduler",
        /// Copies datasets for readers.
        SinkFollower = "sink-follower",
        /// Does what time makes due.
        Maintenance = "maintenance",
        /// Owns a shard.
        Launcher = "launcher",
        /// Guards a shard's trust.
        LeaseRenewer = "lease-renewer",
        /// Owns a shard's lanes.
        WindowExecutor = "executor",
    }
}

/// How a child is restarted: at most `restarts_max` times within `within`, each time after a longer wait. Past the
/// limit its parent fails, and the failure goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Restarts within the span; 0 is never.
    pub restarts_max: u32,
    /// The span.
    pub within: Duration,
    /// The wait before the first restart, doubled with each one.
    pub wait_first: Duration,
    /// The longest wait.
    pub wait_max: Duration,
}

const MINUTE: Duration = Duration::from_secs(60);

/// The table. A launcher is not restarted in place: its shard becomes recoverable and the restorer offers it again,
/// to this node or another. The supervisor has no parent: past the limit the node ends and is started anew.
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

/// The recent restarts of one child.
#[derive(Clone, Debug, Default)]
pub struct Restarts {
    recent: VecDeque<Moment>,
}

impl Restarts {
    /// Notes a failure at `now`; the wait before the restart, or none when the limit is passed.
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

    /// Restarts within the last span.
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
