//! What nodes may believe of themselves: sessions, their heartbeats, and leases.

use std::time::Duration;

use windrow_core::ids::{Moment, SessionId, ShardId};
use windrow_engine::ports::ownership::lease_store::{LeaseKey, LeaseReply};

use super::{Judge, Session, Who};

/// How long a witness that others respect for `lasts` may be trusted by its owner: less max(2 s, 15 %), but at most
/// 40 %. Written down here again: the code under test is not asked.
pub(crate) fn trusted(lasts: Duration) -> Duration {
    lasts - Duration::from_secs(2).max(lasts * 3 / 20).min(lasts * 2 / 5)
}

/// What was claimed since then may not have been seen yet. Unit: nanoseconds.
const LATELY: u64 = 5_000_000_000;

impl Judge {
    pub(crate) fn on_session(&mut self, who: Who, id: SessionId, lease_duration: Duration) {
        self.note(|| format!("n{}.{} begins session {}", who.0, who.1, short(id)));
        let (trusted_until, beaten_at, has_ended) = (Moment(0), self.now(), false);
        self.sessions.insert(
            id,
            Session {
                lease_duration,
                fenced: false,
                trusted_until,
                beaten_at,
                has_ended,
                over_at: None,
            },
        );
    }

    /// A heartbeat moved in the store.
    pub(crate) fn on_beaten(&mut self, id: SessionId) {
        let now = self.now();
        if let Some(session) = self.sessions.get_mut(&id) {
            session.beaten_at = now;
        }
    }

    /// A node asks to remove its session's row.
    pub(crate) fn on_ending(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.has_ended = true;
        }
    }

    /// A heartbeat that was sent at a moment of its node's clock was answered well.
    pub(crate) fn on_beat(&mut self, id: SessionId, sent: Moment) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        session.trusted_until = session
            .trusted_until
            .max(sent.plus(trusted(session.lease_duration)));
    }

    /// Somebody is about to fence a session: where there are leases it holds one of the session's shards, or has just
    /// seen that it has none. Else a node that lost only the database would lose all its runs.
    pub(crate) fn on_fence_sent(&mut self, who: Who, id: SessionId, at: Moment) {
        let recently = self.now().saturating_sub(LATELY);
        let owned = self.shards.iter().filter_map(|(id, shard)| {
            let run = shard.runs.get(&shard.epoch).filter(|_| shard.is_open)?;
            Some((*id, run.session, run.claimed_at))
        });
        let owned: Vec<(ShardId, u64)> = owned
            .filter(|(_, session, _)| *session == id)
            .map(|(shard, _, since)| (shard, since))
            .collect();
        let is_seen = owned.iter().any(|(_, since)| *since < recently);
        let holds = owned
            .iter()
            .any(|(shard, _)| self.held.get(&(who, *shard)).is_some_and(|until| at < *until));
        self.check(!is_seen || holds, || {
            format!(
                "n{}.{} fences {} and holds none of its shards' leases",
                who.0,
                who.1,
                short(id)
            )
        });
    }

    pub(crate) fn on_fenced_heard(&mut self, id: SessionId) {
        self.note(|| format!("session {} hears that it is fenced", short(id)));
        let now = self.now();
        if let Some(session) = self.sessions.get_mut(&id) {
            session.over_at.get_or_insert(now);
        }
    }

    pub(crate) fn on_fence(&mut self, who: Who, id: SessionId, fenced: bool) {
        self.note(|| format!("n{}.{} fences {}: {fenced}", who.0, who.1, short(id)));
        self.count(!fenced, "silent owner came back before it was fenced");
        let Some(session) = self.sessions.get_mut(&id).filter(|_| fenced) else {
            return;
        };
        let is_new = !std::mem::replace(&mut session.fenced, true);
        let (lease_duration, beaten_at, has_ended) =
            (session.lease_duration, session.beaten_at, session.has_ended);
        let silent = Duration::from_nanos(self.now() - beaten_at);
        // The clock of whoever measured it may run fast by as much.
        self.check(
            !is_new || has_ended || silent * 1000 >= lease_duration * 989,
            || {
                format!(
                    "session {} was silent for {silent:?} and is fenced, promised was {lease_duration:?}",
                    short(id)
                )
            },
        );
        self.count(is_new, "session fenced");
    }

    /// What the lease store said to requests that were sent at a moment of the node's clock.
    pub(crate) fn on_leases(
        &mut self,
        who: Who,
        keys: &[LeaseKey],
        replies: &[LeaseReply],
        sent: Moment,
        ttl: Duration,
    ) {
        for (key, reply) in keys.iter().zip(replies) {
            if *reply == LeaseReply::Held {
                let until = self.leases.entry(key.claim).or_insert(Moment(0));
                *until = (*until).max(sent.plus(trusted(ttl)));
                let until = *until;
                self.held.insert((who, key.shard), until);
            }
        }
    }

    /// What a renewal did in the lease store: one that was wiped away may be set again.
    pub(crate) fn on_renewed(&mut self, keys: &[LeaseKey], replies: &[LeaseReply]) {
        for (key, reply) in keys.iter().zip(replies) {
            let is_back = *reply == LeaseReply::Held && self.wiped.remove(&key.claim);
            self.count(is_back, "lease set again");
        }
    }

    pub(crate) fn on_leases_given_back(&mut self, who: Who, keys: &[LeaseKey]) {
        for key in keys {
            self.held.remove(&(who, key.shard));
            self.wiped.remove(&key.claim);
        }
    }

    /// The lease store lost its data.
    pub(crate) fn on_wipe(&mut self) {
        self.seen("leases wiped");
        self.note(|| "the lease store lost its data".to_owned());
        self.wiped = self.leases.keys().copied().collect();
    }
}

/// The first part of an id.
pub(crate) fn short(id: SessionId) -> String {
    id.0.simple().to_string()[..6].to_owned()
}
