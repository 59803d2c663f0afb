//! Lease validity: how long a node may rely on its own ownership, and when it may treat another as silent. Arithmetic
//! on send times.
//!
//! Implements rules 3, 7 and 9 of decision 0020. Safety never depends on it (the database decides); it keeps two
//! nodes from working on one shard at the same time. All moments are of the node's own boot-time clock, which counts
//! suspended time.
//!
//! - Validity counts from when a request was *sent*: the witness may have counted from then on.
//! - Silence counts from when the *reply* arrived that first showed the value: the owner may have sent heartbeats
//!   until then. It counts only while it was watched: where nobody could read, nobody could write either, and owners
//!   that the same outage cut off need a moment to be heard again.

use std::collections::HashMap;
use std::time::Duration;

use crate::ids::{Moment, SessionId};

/// Minimum margin. (Clock rate error and the latency of the dispatch gate.)
const MARGIN_MIN: Duration = Duration::from_secs(2);

/// Time for which a witness (a session's heartbeat or a lease) vouches for its owner, and for which the owner relies
/// on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    lasts: Duration,
    margin: Duration,
}

impl Term {
    /// Creates the term of a witness that others respect for `lasts` (a lease's TTL, a session's lease). The margin
    /// is max(2 s, 15 %), but never more than 40 %: a short term, as in tests, must leave time to work in.
    pub fn new(lasts: Duration) -> Term {
        let margin = MARGIN_MIN.max(lasts * 3 / 20).min(lasts * 2 / 5);
        Term { lasts, margin }
    }

    /// Returns the time for which others wait.
    pub fn lasts(self) -> Duration {
        self.lasts
    }

    /// Returns the time by which the owner stops earlier.
    pub fn margin(self) -> Duration {
        self.margin
    }

    /// Returns the end of the validity that a successful request sent at `sent` has earned.
    pub fn trusted_until(self, sent: Moment) -> Moment {
        sent.plus(self.lasts - self.margin)
    }
}

/// Session value that has not changed since a reply showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watched {
    heartbeat: i64,
    /// Time of the last reply that showed it.
    last: Moment,
    /// Time for which it had been watched by then.
    watched: Duration,
    lease: Duration,
}

impl Watched {
    /// Returns the maximum that the time between two looks counts: after an outage of any length, half a lease is
    /// left in which the owner can be heard again, and however rare the looks are, a dead owner is found.
    fn step_max(&self) -> Duration {
        self.lease / 2
    }

    /// Returns the time for which it has been watched at `now`.
    fn watched(&self, now: Moment) -> Duration {
        self.watched + now.since(self.last).min(self.step_max())
    }

    /// Returns when to look at it again: its lease may be over then, or the time would no longer count.
    fn due(&self) -> Moment {
        self.last
            .plus(self.lease.saturating_sub(self.watched).min(self.step_max()))
    }
}

/// Monitor of other sessions' heartbeats that detects silence.
#[derive(Clone, Debug, Default)]
pub struct SilenceWatch {
    seen: HashMap<SessionId, Watched>,
}

impl SilenceWatch {
    /// Creates a watch that has seen nothing yet.
    pub fn new() -> SilenceWatch {
        SilenceWatch::default()
    }

    /// Records that a reply at `reply_at` showed this heartbeat of a session, and the `lease` for which its owner may
    /// live without another one.
    pub fn observe(&mut self, session: SessionId, heartbeat: i64, lease: Duration, reply_at: Moment) {
        let watched = self.seen.get(&session).filter(|seen| seen.heartbeat == heartbeat);
        let watched = watched.map_or(Duration::ZERO, |seen| seen.watched(reply_at));
        self.seen.insert(
            session,
            Watched {
                heartbeat,
                last: reply_at,
                watched,
                lease,
            },
        );
    }

    /// Forgets a session that no longer matters, or whose silence must be measured anew (rule 11).
    pub fn forget(&mut self, session: SessionId) {
        self.seen.remove(&session);
    }

    /// Forgets every session for which `keep` returns false.
    pub fn retain(&mut self, keep: impl Fn(SessionId) -> bool) {
        self.seen.retain(|session, _| keep(*session));
    }

    /// Returns the heartbeat under which a session may be fenced, because it has been silent for its owner's whole
    /// lease. Returns `None` while it may live, or if it was never seen. `extra` is waited beyond the lease: for an
    /// owner that may also live on a lease that the candidate can't see.
    pub fn silent_heartbeat(&self, session: SessionId, extra: Duration, now: Moment) -> Option<i64> {
        let seen = self.seen.get(&session)?;
        (seen.watched(now) >= seen.lease + extra).then_some(seen.heartbeat)
    }

    /// Returns the next moment after `now` at which a watched session must be looked at, because its time may be up.
    pub fn next_due(&self, now: Moment) -> Option<Moment> {
        self.seen
            .values()
            .map(Watched::due)
            .filter(|due| *due > now)
            .min()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn at(ms: u64) -> Moment {
        Moment(0).plus(Duration::from_millis(ms))
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_margin_is_that_of_the_rules_and_leaves_short_terms_usable() {
        assert_eq!(Term::new(ms(15_000)).margin(), ms(2_250));
        assert_eq!(Term::new(ms(6_000)).margin(), ms(2_000));
        for ttl in [1, 10, 500, 1_000, 4_000, 5_000, 600_000] {
            let term = Term::new(ms(ttl));
            assert!(
                term.margin() * 2 < ms(ttl) && !term.margin().is_zero(),
                "{ttl} ms: {:?}",
                term.margin()
            );
        }
    }

    #[test]
    fn trust_counts_from_sending_and_ends_before_others_may_take_over() {
        let term = Term::new(ms(15_000));
        assert_eq!(term.trusted_until(at(1_000)), at(13_750));
    }

    /// Replies that show the same heartbeat.
    fn observe_all(watch: &mut SilenceWatch, heartbeat: i64, replies: &[u64]) {
        for reply in replies {
            watch.observe(session(), heartbeat, ms(6_000), at(*reply));
        }
    }

    fn session() -> SessionId {
        SessionId(Uuid::from_u128(1))
    }

    fn silent(watch: &SilenceWatch, now: u64) -> Option<i64> {
        watch.silent_heartbeat(session(), Duration::ZERO, at(now))
    }

    #[test]
    fn silence_counts_from_the_first_reply_that_showed_the_value() {
        let mut watch = SilenceWatch::new();
        assert_eq!(silent(&watch, 99_999), None, "never seen is not silent");
        observe_all(&mut watch, 7, &[1_000, 3_000]);
        assert_eq!(
            watch.next_due(at(3_000)),
            Some(at(6_000)),
            "a look that still counts"
        );
        observe_all(&mut watch, 7, &[5_000]);
        assert_eq!(watch.next_due(at(5_000)), Some(at(7_000)));
        assert_eq!(silent(&watch, 6_999), None);
        assert_eq!(silent(&watch, 7_000), Some(7));
        observe_all(&mut watch, 9, &[7_100, 10_100]);
        assert_eq!(silent(&watch, 13_099), None);
        assert_eq!(silent(&watch, 13_100), Some(9));
        assert_eq!(watch.next_due(at(13_100)), None);
    }

    #[test]
    fn a_silence_that_nobody_watched_does_not_count() {
        let mut watch = SilenceWatch::new();
        observe_all(&mut watch, 7, &[0, 1_000]);
        // The database was away for a minute, for this node and for the owner alike.
        assert_eq!(silent(&watch, 60_000), None);
        observe_all(&mut watch, 7, &[61_000]);
        assert_eq!(silent(&watch, 62_999), None, "four of six seconds were watched");
        assert_eq!(silent(&watch, 63_000), Some(7));
        observe_all(&mut watch, 9, &[63_000]);
        assert_eq!(silent(&watch, 63_000), None, "its owner is heard again");
    }

    #[test]
    fn however_rarely_one_looks_a_dead_owner_is_found() {
        let mut watch = SilenceWatch::new();
        observe_all(&mut watch, 7, &[0, 100_000]);
        assert_eq!(silent(&watch, 100_000), None);
        observe_all(&mut watch, 7, &[200_000]);
        assert_eq!(silent(&watch, 200_000), Some(7));
    }

    #[test]
    fn an_owner_that_comes_back_with_an_old_value_is_measured_anew() {
        let mut watch = SilenceWatch::new();
        observe_all(&mut watch, 7, &[0]);
        observe_all(&mut watch, 9, &[1_000]);
        observe_all(&mut watch, 7, &[2_000, 5_000]);
        assert_eq!(silent(&watch, 7_999), None);
        assert_eq!(silent(&watch, 8_000), Some(7));
        watch.forget(session());
        assert_eq!(silent(&watch, 8_000), None);
    }

    #[test]
    fn an_owner_stops_before_any_candidate_may_fence_it() {
        // The owner's last good heartbeat is sent at 0; the earliest reply that can show it arrives at 0 as well.
        for lease in [ms(300), ms(1_000), ms(6_000), ms(15_000)] {
            let term = Term::new(lease);
            let session = SessionId(Uuid::from_u128(1));
            let mut watch = SilenceWatch::new();
            watch.observe(session, 1, lease, at(0));
            assert_eq!(
                watch.silent_heartbeat(session, Duration::ZERO, term.trusted_until(at(0))),
                None
            );
        }
    }
}
