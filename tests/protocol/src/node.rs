//! What a node decides and sends. Each function says under which condition a node takes the step; `None` = not now.

use crate::rules::{Bend, Setup, Witness};
use crate::state::{About, Left, Life, Local, Message, NONE, Part, SESSIONS, SessionRow, State};

impl Setup {
    /// Whether the node's gate for this shard is open (rule 7): the next call would leave.
    pub(crate) fn is_open(&self, state: &State, node: u8, shard: u8) -> bool {
        let (owner, local) = (state.node(node), state.local(node, shard));
        let may_work = local.part == Part::Run && !local.is_closed && !local.stop_seen;
        may_work && self.is_trusted(state, node, shard) && owner.session != NONE
    }

    /// Whether a witness still vouches for the run (rule 7). A lease alone does so for a while only (rule 8).
    pub(crate) fn is_trusted(&self, state: &State, node: u8, shard: u8) -> bool {
        let owner = state.node(node);
        let is_carried = owner.cap > 0 || self.bend == Bend::LeaseCarriesAlone;
        owner.trust > 0 || (self.has_leases() && state.local(node, shard).lease > 0 && is_carried)
    }

    /// A new process life, or a new session after a fenced one.
    pub(crate) fn begin(&self, state: &mut State, node: u8) -> Option<()> {
        if state.node(node).session != NONE || state.next_session >= self.bounds.sessions {
            return None;
        }
        let session = state.next_session;
        state.next_session += 1;
        let lease_duration = self.times.lease_duration[usize::from(node)];
        state.rows.sessions[usize::from(session)] = SessionRow {
            exists: true,
            lease_duration,
            ..SessionRow::default()
        };
        state.node_mut(node).session = session;
        Some(())
    }

    /// Rule 2.
    pub(crate) fn heartbeat(&self, state: &State, node: u8) -> Option<Message> {
        let session = state.node(node).session;
        // Counted heartbeats are bounded, others repeat.
        let is_bounded = self.bend == Bend::HeartbeatPlusOne
            && session != NONE
            && state.rows.sessions[usize::from(session)].hb > 5;
        let beats = session != NONE && !is_bounded;
        beats.then_some(Message {
            about: About::Heartbeat,
            node,
            session,
            ..Message::EMPTY
        })
    }

    /// The restorer's scan, of one session that owns a shard.
    pub(crate) fn look(&self, state: &State, node: u8, session: u8) -> Option<Message> {
        let own = state.node(node).session;
        let owns = state
            .rows
            .shards
            .iter()
            .any(|row| row.session == session && row.life == Life::Runnable);
        let looks = own != NONE && own != session && owns;
        looks.then_some(Message {
            about: About::Look,
            node,
            session,
            ..Message::EMPTY
        })
    }

    /// Becomes a candidate for a shard whose owner is silent, fenced, missing, or nobody (rules 9, 10, 14).
    pub(crate) fn stand(&self, state: &mut State, node: u8, shard: u8) -> Option<()> {
        let owner = state.shard(shard).session;
        let own = state.node(node).session;
        let is_idle = matches!(state.local(node, shard).part, Part::Nothing | Part::Left);
        let is_there = state.shard(shard).life == Life::Runnable && own != NONE && owner != own;
        if !is_idle || !is_there || state.next_claim >= self.bounds.claims {
            return None;
        }
        let is_fenced = !state.is_live(owner);
        let silent = if is_fenced {
            self.seen_of(state, node, owner)
        } else {
            self.silent(state, node, owner)?
        };
        let claim = state.next_claim;
        state.next_claim += 1;
        let row = *state.shard(shard);
        *state.local_mut(node, shard) = Local {
            part: Part::Candidate,
            claim,
            epoch: row.epoch,
            owner,
            silent,
            is_fenced,
            progress: if self.bend == Bend::ReadBeforeClaim {
                row.progress
            } else {
                0
            },
            ..Local::default()
        };
        Some(())
    }

    fn seen_of(&self, state: &State, node: u8, owner: u8) -> u8 {
        let matters = owner != NONE && self.witness == Witness::RedisOptional;
        if matters {
            state.node(node).seen[usize::from(owner)].hb
        } else {
            NONE
        }
    }

    /// The heartbeat under which a session may be fenced.
    fn silent(&self, state: &State, node: u8, owner: u8) -> Option<u8> {
        let seen = state.node(node).seen[usize::from(owner)];
        let lease_duration = match self.bend {
            Bend::OwnLeaseDuration => self.times.lease_duration[usize::from(node)],
            _ => state.rows.sessions[usize::from(owner)].lease_duration,
        };
        if seen.hb == NONE && self.bend == Bend::SilenceFromNothing {
            return Some(state.rows.sessions[usize::from(owner)].hb);
        }
        (seen.hb != NONE && seen.silence >= lease_duration).then_some(seen.hb)
    }

    /// Rule 10: the lease first, with the candidate's own token.
    pub(crate) fn acquire(&self, state: &State, node: u8, shard: u8) -> Option<Message> {
        let local = state.local(node, shard);
        let is_late = local.is_claiming && self.bend != Bend::LeaseAfterClaim;
        let wants = self.has_leases() && local.part == Part::Candidate && local.lease == 0 && !is_late;
        wants.then_some(Message {
            about: About::Acquire,
            node,
            shard,
            claim: local.claim,
            ..Message::EMPTY
        })
    }

    /// Rule 10: whether fence and claim may be sent.
    fn may_send(&self, state: &State, node: u8, shard: u8) -> bool {
        let local = state.local(node, shard);
        let without = match self.witness {
            Witness::Database => true,
            Witness::Redis => false,
            Witness::RedisOptional => self.is_silent_for_both(state, node, local),
        };
        let is_bent = match self.bend {
            Bend::NoLeaseForFenced => local.is_fenced,
            Bend::LeaseNotTrusted => local.sent > 0,
            _ => false,
        };
        local.owner == NONE || local.lease > 0 || without || is_bent
    }

    /// `takeover_without_redis`: neither witness can carry the owner any more.
    fn is_silent_for_both(&self, state: &State, node: u8, local: &Local) -> bool {
        if local.owner == NONE || (local.is_fenced && self.bend == Bend::NoSilenceForFenced) {
            return true;
        }
        let at = usize::from(local.owner);
        let seen = state.node(node).seen[at];
        let lease_duration = state.rows.sessions[at].lease_duration;
        seen.hb != NONE && seen.hb == local.silent && seen.silence >= self.longest(lease_duration)
    }

    /// Rule 11.
    pub(crate) fn fence(&self, state: &State, node: u8, shard: u8) -> Option<Message> {
        let local = state.local(node, shard);
        let wants = local.part == Part::Candidate && !local.is_fenced && local.owner != NONE;
        if !wants || !self.may_send(state, node, shard) {
            return None;
        }
        let value = match self.bend {
            Bend::FenceOfNewestHeartbeat => state.node(node).seen[usize::from(local.owner)].hb,
            _ => local.silent,
        };
        let (session, claim) = (local.owner, local.claim);
        Some(Message {
            about: About::Fence,
            node,
            shard,
            session,
            claim,
            value,
            ..Message::EMPTY
        })
    }

    /// Rule 12.
    pub(crate) fn claim(&self, state: &mut State, node: u8, shard: u8) -> Option<Message> {
        let local = *state.local(node, shard);
        let wants = local.part == Part::Candidate && (local.is_fenced || self.bend == Bend::ClaimBeforeFence);
        if !wants || !self.may_send(state, node, shard) {
            return None;
        }
        state.local_mut(node, shard).is_claiming = true;
        Some(Message {
            about: About::Claim,
            node,
            shard,
            session: state.node(node).session,
            claim: local.claim,
            epoch: local.epoch,
            seq: local.seq,
            ..Message::EMPTY
        })
    }

    /// Rule 12, unknown outcome: the row tells whether the claim is the own one; otherwise the candidate gives up.
    pub(crate) fn look_up(&self, state: &mut State, node: u8, shard: u8) -> Option<()> {
        let local = *state.local(node, shard);
        if local.part != Part::Candidate {
            return None;
        }
        let row = *state.shard(shard);
        let is_own = row.claim == local.claim && row.session == state.node(node).session;
        if is_own && row.life == Life::Runnable {
            self.start_run(state, node, shard, row.epoch, row.progress);
        } else {
            self.leave(state, node, shard);
        }
        Some(())
    }

    pub(crate) fn start_run(&self, state: &mut State, node: u8, shard: u8, epoch: u8, progress: u8) {
        let local = state.local_mut(node, shard);
        let base = if self.bend == Bend::ReadBeforeClaim {
            local.progress
        } else {
            progress
        };
        *local = Local {
            part: Part::Run,
            claim: local.claim,
            epoch,
            lease: local.lease,
            lease_lost: local.lease_lost,
            claim_lost: local.claim_lost,
            progress: base,
            saved: base,
            ..Local::default()
        };
    }

    /// Ends what this node had to do with the shard; the lease may be given back later or run out.
    pub(crate) fn leave(&self, state: &mut State, node: u8, shard: u8) {
        let Local { claim, round, .. } = *state.local(node, shard);
        let left = Local {
            part: Part::Left,
            claim,
            round,
            ..Local::default()
        };
        *state.local_mut(node, shard) = if self.has_leases() { left } else { Local::default() };
    }

    /// Rule 8. Whoever's gate has shut by itself asks for nothing.
    pub(crate) fn renew(&self, state: &State, node: u8, shard: u8) -> Option<Message> {
        let local = state.local(node, shard);
        let flag = state.node(node).trust > 0 || self.bend == Bend::SetAgainAlways;
        let asks_shut = matches!(self.bend, Bend::LeaseKeptShut | Bend::LeaseRevives);
        let is_wanted = asks_shut || self.is_trusted(state, node, shard);
        let wants = self.has_leases() && local.part == Part::Run && is_wanted;
        wants.then_some(Message {
            about: About::Renew,
            node,
            shard,
            claim: local.token(),
            flag,
            ..Message::EMPTY
        })
    }

    /// The lease goes back where it is still the own one: of a run that is over, and (once within the bounds) of one that
    /// no lease may carry any more. Such a run forgets what the lease gave it, and has another token from then on: a
    /// heartbeat may revive it, and what is under way still names the old one.
    pub(crate) fn give_back(&self, state: &mut State, node: u8, shard: u8) -> Option<Message> {
        let local = *state.local(node, shard);
        let is_early = self.bend == Bend::LeaseReturnedFirst && local.part == Part::Run && local.is_closed;
        let is_running = self.has_leases() && local.part == Part::Run;
        let is_shut = is_running
            && local.round == 0
            && local.lease > 0
            && state.node(node).trust.max(state.node(node).cap) == 0
            && self.bend != Bend::LeaseKeptShut;
        let is_open = is_running && self.bend == Bend::LeaseReturnedOpen;
        if local.part != Part::Left && !is_early && !is_shut && !is_open {
            return None;
        }
        if is_shut {
            let run = state.local_mut(node, shard);
            run.round = u8::from(self.bend != Bend::TokenKept);
            if self.bend != Bend::LeaseRemembered {
                run.lease = 0;
            }
        }
        if local.part == Part::Left {
            *state.local_mut(node, shard) = Local::default();
        }
        Some(Message {
            about: About::Return,
            node,
            shard,
            claim: local.token(),
            ..Message::EMPTY
        })
    }

    /// A call leaves through the gate.
    pub(crate) fn pass(&self, state: &mut State, node: u8, shard: u8) -> Option<()> {
        let has_item = self.bounds.works && state.local(node, shard).progress < self.bounds.items;
        if !self.is_open(state, node, shard) || state.local(node, shard).in_flight || !has_item {
            return None;
        }
        let local = state.local_mut(node, shard);
        local.in_flight = true;
        if self.bend == Bend::DoneAtDeparture {
            local.progress += 1;
        }
        Some(())
    }

    /// The business has answered a call that this run waits for.
    pub(crate) fn answer(&self, state: &mut State, node: u8, shard: u8) -> Option<()> {
        let local = state.local_mut(node, shard);
        if !local.in_flight {
            return None;
        }
        local.in_flight = false;
        if self.bend != Bend::DoneAtDeparture {
            local.progress += 1;
        }
        let done = local.progress;
        let answered = &mut state.answered[usize::from(shard)];
        *answered = done.max(*answered);
        Some(())
    }

    /// A checkpoint; `again` sends the last one once more, with its number.
    pub(crate) fn save(&self, state: &mut State, node: u8, shard: u8, again: bool) -> Option<Message> {
        let items = self.bounds.items;
        let local = state.local_mut(node, shard);
        let has_news = local.progress > local.saved;
        let is_unanswered = local.seq > 0 && local.sent > local.saved;
        let wants = if again {
            is_unanswered
        } else {
            has_news && local.seq < items + 1
        };
        if local.part != Part::Run || local.is_closed || !wants {
            return None;
        }
        if !again {
            local.seq += 1;
            local.sent = local.progress;
        }
        Some(write(node, shard, local, local.sent, false))
    }

    /// Closes the gate for good (rule 16): told to stop, done, or a hand-over.
    pub(crate) fn close(&self, state: &mut State, node: u8, shard: u8) -> Option<()> {
        let local = *state.local(node, shard);
        if local.part != Part::Run || local.is_closed {
            return None;
        }
        if !local.stop_seen && local.progress < self.bounds.items {
            let Left { handovers, .. } = &mut state.left;
            *handovers = handovers.checked_sub(1)?;
        }
        state.local_mut(node, shard).is_closed = true;
        Some(())
    }

    /// The bent rule 16: a gate that opens again under the same claim.
    pub(crate) fn reopen(&self, state: &mut State, node: u8, shard: u8) -> Option<()> {
        let local = state.local_mut(node, shard);
        let reopens = self.bend == Bend::GateOpensAgain && local.part == Part::Run && local.is_closed;
        reopens.then(|| local.is_closed = false)
    }

    /// Release and final, in one write.
    pub(crate) fn finish(&self, state: &mut State, node: u8, shard: u8) -> Option<Message> {
        let items = self.bounds.items;
        let can_hand_over = state.left.handovers > 0;
        let local = state.local_mut(node, shard);
        let is_early = self.bend == Bend::GateClosedByReply && can_hand_over;
        if local.part != Part::Run
            || local.in_flight
            || !(local.is_closed || is_early)
            || local.seq > items + 1
        {
            return None;
        }
        local.seq += 1;
        local.sent = local.progress;
        Some(write(node, shard, local, local.sent, true))
    }

    /// Rule 5: a shard row of this session that the node neither runs nor claims.
    pub(crate) fn release_orphan(&self, state: &State, node: u8, shard: u8) -> Option<Message> {
        let row = state.shard(shard);
        let own = state.node(node).session;
        let is_idle = matches!(state.local(node, shard).part, Part::Nothing | Part::Left);
        let is_orphan = own != NONE && row.session == own && row.life == Life::Runnable;
        if !is_idle || !is_orphan || self.bend == Bend::OrphanKept {
            return None;
        }
        let (claim, epoch, seq, value) = (row.claim, row.epoch, row.seq + 1, row.progress);
        Some(Message {
            about: About::Write,
            node,
            shard,
            claim,
            epoch,
            seq,
            value,
            flag: true,
            ..Message::EMPTY
        })
    }

    /// Rule 6, as maintenance does it.
    pub(crate) fn delete(&self, state: &mut State, node: u8, session: u8) -> Option<()> {
        let at = usize::from(session);
        let row = state.rows.sessions[at];
        let is_referred = state.rows.shards.iter().any(|shard| shard.session == session);
        let seen = state.node(node).seen[at];
        let may = match self.bend {
            Bend::SilentSessionDeleted => seen.hb != NONE && seen.silence >= row.lease_duration,
            Bend::FencedSessionDeleted => row.fenced,
            _ => row.fenced && !is_referred,
        };
        let is_other = state.node(node).session != NONE && state.node(node).session != session;
        if !row.exists || !may || !is_other || usize::from(session) >= SESSIONS {
            return None;
        }
        state.left.deletions = state.left.deletions.checked_sub(1)?;
        state.rows.sessions[at] = SessionRow::default();
        Some(())
    }
}

fn write(node: u8, shard: u8, local: &Local, value: u8, flag: bool) -> Message {
    let (claim, epoch, seq) = (local.claim, local.epoch, local.seq);
    Message {
        about: About::Write,
        node,
        shard,
        claim,
        epoch,
        seq,
        value,
        flag,
        ..Message::EMPTY
    }
}
