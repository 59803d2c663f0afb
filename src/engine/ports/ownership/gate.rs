//! Dispatch gate that every item passes: open while this node may assume that it owns the shard.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use windrow_core::ids::Moment;

/// Validity of a node session; shared by the session's heartbeat and all its gates.
///
/// Only the heartbeat writes it. The validity decays by time alone: no message is needed for dispatch to stop.
#[derive(Debug, Default)]
pub struct SessionTrust {
    until: AtomicU64,
    fenced: AtomicBool,
}

impl SessionTrust {
    /// Extends the validity to `until`; never shortens it.
    pub fn extend(&self, until: Moment) {
        self.until.fetch_max(until.0, Ordering::AcqRel);
    }

    /// Ends the validity for good: this session was fenced.
    pub fn fence(&self) {
        self.fenced.store(true, Ordering::Release);
    }

    /// True if the session was fenced.
    pub fn is_fenced(&self) -> bool {
        self.fenced.load(Ordering::Acquire)
    }

    /// Returns the time until which the session is valid; zero once fenced.
    pub fn until(&self) -> Moment {
        if self.is_fenced() {
            Moment(0)
        } else {
            Moment(self.until.load(Ordering::Acquire))
        }
    }
}

/// Dispatch gate of one run: open while the session or the lease is valid and nobody closed it.
///
/// Closing is for good: a gate is never opened again under the same claim (decision 0020, rule 16).
#[derive(Debug)]
pub struct Gate {
    session: std::sync::Arc<SessionTrust>,
    lease_until: AtomicU64,
    /// Time that a lease alone may carry the run beyond the session's validity.
    alone: Duration,
    closed: AtomicBool,
}

impl Gate {
    /// Returns an open gate that depends on the session's validity alone until a lease extends it.
    pub fn new(session: std::sync::Arc<SessionTrust>) -> Gate {
        Gate {
            session,
            lease_until: AtomicU64::new(0),
            alone: Duration::ZERO,
            closed: AtomicBool::new(false),
        }
    }

    /// Allows a lease alone to carry the run for `alone` beyond the session's validity, and no longer. A run that
    /// can't be saved for long is better off on a node that can save, and others may be taking over without checking
    /// leases.
    #[must_use]
    pub fn lease_alone_for(self, alone: Duration) -> Gate {
        Gate { alone, ..self }
    }

    /// Returns a gate that is always open: for `try`, where nothing is owned.
    pub fn always_open() -> Gate {
        let session = SessionTrust::default();
        session.extend(Moment(u64::MAX));
        Gate::new(std::sync::Arc::new(session))
    }

    /// Extends the lease's validity to `until`; never shortens it. If the gate has shut by `now`, nothing changes and
    /// false is returned: a request that took long may have set the lease again after another node had it. Only a
    /// heartbeat revives the validity.
    pub fn extend_lease(&self, until: Moment, now: Moment) -> bool {
        let is_trusted = self.is_open(now);
        if is_trusted {
            self.lease_until.fetch_max(until.0, Ordering::AcqRel);
        }
        is_trusted
    }

    /// True if no lease may carry the run any more: it was closed, fenced, or not confirmed by a heartbeat for too
    /// long.
    pub fn is_lease_spent(&self, now: Moment) -> bool {
        self.is_closed() || self.session.is_fenced() || now >= self.session.until().plus(self.alone)
    }

    /// Forgets the lease, which goes back to the store. A heartbeat may revive the run, and someone else may have the
    /// lease by then.
    pub fn forget_lease(&self) {
        self.lease_until.store(0, Ordering::Release);
    }

    /// Closes the gate for good.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// True if it was closed (its validity may also have run out without that).
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns the time at which the gate shuts on its own unless it is extended.
    pub fn trusted_until(&self) -> Moment {
        if self.is_closed() || self.session.is_fenced() {
            return Moment(0);
        }
        let (session, lease) = (
            self.session.until(),
            Moment(self.lease_until.load(Ordering::Acquire)),
        );
        session.max(lease.min(session.plus(self.alone)))
    }

    /// True if the validity ran out before the gate was closed: another node may own the shard by now, and be
    /// further.
    pub fn has_lapsed(&self, now: Moment) -> bool {
        !self.is_closed() && now >= self.trusted_until()
    }

    /// True if an item may be sent at `now`.
    pub fn is_open(&self, now: Moment) -> bool {
        now < self.trusted_until()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn either_witness_keeps_the_gate_open_and_closing_is_for_good() {
        let session = Arc::new(SessionTrust::default());
        let gate = Gate::new(session.clone()).lease_alone_for(LONG);
        assert!(!gate.is_open(Moment(0)));
        session.extend(Moment(10));
        assert!(gate.is_open(Moment(9)) && !gate.is_open(Moment(10)));
        assert!(gate.extend_lease(Moment(20), Moment(9)));
        assert!(gate.is_open(Moment(19)));
        gate.close();
        assert!(!gate.extend_lease(Moment(30), Moment(10)));
        assert!(!gate.is_open(Moment(1)));
    }

    #[test]
    fn a_lease_alone_never_revives_trust_that_is_over() {
        let session = Arc::new(SessionTrust::default());
        session.extend(Moment(10));
        let gate = Gate::new(session.clone()).lease_alone_for(LONG);
        assert!(!gate.extend_lease(Moment(30), Moment(10)), "the answer came late");
        assert!(!gate.is_open(Moment(11)));
        session.extend(Moment(20));
        assert!(
            gate.extend_lease(Moment(30), Moment(12)),
            "a heartbeat revived it"
        );
        assert!(gate.is_open(Moment(29)));
    }

    #[test]
    fn a_lease_alone_carries_its_run_for_a_while_only() {
        let session = Arc::new(SessionTrust::default());
        session.extend(Moment(10));
        let gate = Gate::new(session).lease_alone_for(Duration::from_nanos(5));
        assert!(gate.extend_lease(Moment(100), Moment(9)));
        assert!(gate.is_open(Moment(14)) && !gate.is_open(Moment(15)));
        assert!(!gate.has_lapsed(Moment(14)) && gate.has_lapsed(Moment(15)));
        gate.close();
        assert!(
            !gate.has_lapsed(Moment(15)),
            "whoever closed it knows what it was"
        );
    }

    #[test]
    fn a_lease_that_was_given_back_does_not_outlast_the_heartbeat_that_revives_the_run() {
        let session = Arc::new(SessionTrust::default());
        session.extend(Moment(10));
        let gate = Gate::new(session.clone()).lease_alone_for(Duration::from_nanos(5));
        assert!(gate.extend_lease(Moment(100), Moment(9)));
        assert!(!gate.is_lease_spent(Moment(14)) && gate.is_lease_spent(Moment(15)));
        assert!(!gate.is_open(Moment(15)));
        gate.forget_lease();
        session.extend(Moment(20));
        assert!(gate.is_open(Moment(19)) && !gate.is_open(Moment(20)));
    }

    #[test]
    fn a_fenced_session_shuts_every_gate_even_with_a_lease() {
        let session = Arc::new(SessionTrust::default());
        let gate = Gate::new(session.clone()).lease_alone_for(LONG);
        session.extend(Moment(5));
        assert!(gate.extend_lease(Moment(20), Moment(1)));
        session.fence();
        session.extend(Moment(50));
        assert!(!gate.is_open(Moment(1)));
    }
}
