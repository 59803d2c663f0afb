//! What the database and the lease store do with a request. One request is one transaction.

use crate::rules::{Bend, Setup};
use crate::state::{About, Answer, Lease, Life, Message, NONE, SHARDS, State};

impl Setup {
    /// Applies a request and makes the reply.
    pub(crate) fn apply(&self, state: &mut State, request: Message) -> Message {
        let reply = match request.about {
            About::Empty => request,
            About::Heartbeat => self.apply_heartbeat(state, request),
            About::Look => apply_look(state, request),
            About::Fence => self.apply_fence(state, request),
            About::Claim => self.apply_claim(state, request),
            About::Write => self.apply_write(state, request),
            About::Acquire => self.apply_acquire(state, request),
            About::Renew => self.apply_renew(state, request),
            About::Return => apply_return(state, request),
        };
        debug_assert!(reply.about == About::Empty || reply.answer != Answer::Open);
        reply
    }

    /// Rule 2, and what the same round trip reads.
    fn apply_heartbeat(&self, state: &mut State, request: Message) -> Message {
        let at = usize::from(request.session);
        let row = state.rows.sessions[at];
        let is_fenced = !row.exists || (row.fenced && self.bend != Bend::HeartbeatOfFenced);
        if is_fenced {
            return Message {
                answer: Answer::Fenced,
                ..request
            };
        }
        let plain = row.hb + 1;
        let fresh = if self.bend == Bend::HeartbeatPlusOne {
            plain
        } else {
            state.fresh(request.session)
        };
        state.rows.sessions[at].hb = fresh;
        let mut reply = Message {
            answer: Answer::Yes,
            ..request
        };
        for shard in 0..SHARDS {
            let row = &state.rows.shards[shard];
            if row.session == request.session && row.life == Life::Runnable {
                reply.claims[shard] = row.claim;
                reply.stops[shard] = row.wish_stop;
            }
        }
        reply
    }

    /// Rule 11.
    fn apply_fence(&self, state: &mut State, request: Message) -> Message {
        if !state.is_live(request.session) {
            return Message {
                answer: Answer::Fenced,
                ..request
            };
        }
        let row = &mut state.rows.sessions[usize::from(request.session)];
        if row.hb == request.value || self.bend == Bend::FenceOfAnyHeartbeat {
            row.fenced = true;
            return Message {
                answer: Answer::Yes,
                ..request
            };
        }
        Message {
            answer: Answer::No,
            ..request
        }
    }

    /// Rules 12, 13 and the end of 17.
    fn apply_claim(&self, state: &mut State, request: Message) -> Message {
        let row = *state.shard(request.shard);
        if row.claim == request.claim && row.session == request.session {
            // An earlier try whose reply was lost.
            return Message {
                answer: Answer::Yes,
                value: row.progress,
                epoch: row.epoch,
                ..request
            };
        }
        let takes = row.life == Life::Runnable
            && (row.epoch == request.epoch || self.bend == Bend::ClaimOfAnyEpoch || self.counts_in_leases())
            && (!state.is_live(row.session) || self.bend == Bend::ClaimBeforeFence)
            && (state.is_live(request.session) || self.bend == Bend::ClaimOfFenced);
        if !takes {
            return Message {
                answer: Answer::No,
                ..request
            };
        }
        let epoch = if self.counts_in_leases() {
            request.seq
        } else {
            row.epoch + 1
        };
        state.broken.epoch_twice |= row.given & (1 << epoch) != 0;
        let row = state.shard_mut(request.shard);
        row.epoch = epoch;
        row.given |= 1 << epoch;
        row.claim = request.claim;
        row.newest = request.claim;
        row.seq = 0;
        row.session = request.session;
        let reply = Message {
            answer: Answer::Yes,
            value: row.progress,
            epoch,
            ..request
        };
        if row.wish_stop {
            row.session = NONE;
            row.life = Life::Stopped;
            return Message {
                answer: Answer::Stopped,
                ..reply
            };
        }
        reply
    }

    fn counts_in_leases(&self) -> bool {
        self.bend == Bend::EpochFromLeases
    }

    /// Rule 15: checkpoint, release and final.
    fn apply_write(&self, state: &mut State, request: Message) -> Message {
        let items = self.bounds.items;
        let row = *state.shard(request.shard);
        let is_claim = row.claim == request.claim || self.bend == Bend::EpochOnly;
        let is_fenced_in = row.epoch == request.epoch && is_claim;
        let is_next = row.seq < request.seq || self.bend == Bend::NoSequence;
        let is_taken =
            (is_fenced_in && is_next || self.bend == Bend::UnfencedWrites) && row.life == Life::Runnable;
        if !is_taken {
            let is_known = row.claim == request.claim && row.seq >= request.seq;
            let answer = if is_known { Answer::Yes } else { Answer::No };
            return Message { answer, ..request };
        }
        state.broken.older_write |= row.newest != request.claim;
        state.broken.progress_fell |= request.value < row.progress;
        let row = state.shard_mut(request.shard);
        row.progress = request.value;
        row.seq = request.seq;
        if request.flag {
            row.session = NONE;
            if row.progress == items {
                row.life = Life::Finished;
            } else if row.wish_stop {
                row.life = Life::Stopped;
            }
        }
        Message {
            answer: Answer::Yes,
            ..request
        }
    }

    /// `SET NX PX`.
    fn apply_acquire(&self, state: &mut State, request: Message) -> Message {
        let lease = &mut state.leases[usize::from(request.shard)];
        let is_free = lease.left == 0 && state.quarantine == 0;
        if !is_free && (lease.left == 0 || lease.token != request.claim) {
            return Message {
                answer: Answer::No,
                ..request
            };
        }
        if self.bend != Bend::LeaseLookedAt {
            *lease = Lease {
                token: request.claim,
                left: self.times.ttl,
            };
        }
        if self.counts_in_leases() {
            state.counter += 1;
        }
        Message {
            answer: Answer::Yes,
            seq: state.counter,
            ..request
        }
    }

    /// Rule 8.
    fn apply_renew(&self, state: &mut State, request: Message) -> Message {
        let lease = &mut state.leases[usize::from(request.shard)];
        let is_absent = lease.left == 0;
        let is_own = !is_absent && lease.token == request.claim;
        let answer = if is_own || (!is_absent && self.bend == Bend::RenewalTakesAnyLease) {
            Answer::Yes
        } else if !is_absent {
            Answer::Foreign
        } else if request.flag {
            Answer::SetAgain
        } else {
            Answer::No
        };
        if matches!(answer, Answer::Yes | Answer::SetAgain) {
            *lease = Lease {
                token: request.claim,
                left: self.times.ttl,
            };
        }
        Message { answer, ..request }
    }
}

fn apply_look(state: &mut State, request: Message) -> Message {
    let row = &state.rows.sessions[usize::from(request.session)];
    let answer = if state.is_live(request.session) {
        Answer::Yes
    } else {
        Answer::Fenced
    };
    Message {
        answer,
        value: if row.exists { row.hb } else { NONE },
        ..request
    }
}

fn apply_return(state: &mut State, request: Message) -> Message {
    let lease = &mut state.leases[usize::from(request.shard)];
    if lease.token == request.claim {
        *lease = Lease { token: NONE, left: 0 };
    }
    Message {
        answer: Answer::Yes,
        ..request
    }
}
