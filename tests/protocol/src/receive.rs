//! What a node makes of a reply. Errors and time limits are replies that never come: they change nothing (rule 3).

use crate::check::Sight;
use crate::rules::Bend;
use crate::state::{About, Answer, Message, NONE, Part, SHARDS, Seen, State};
use crate::steps::Protocol;

impl Protocol {
    /// Whether the sender still waits for this reply; otherwise it is as good as lost.
    pub(crate) fn is_awaited(&self, state: &State, reply: &Message) -> bool {
        let node = state.node(reply.node);
        match reply.about {
            About::Empty | About::Return => false,
            About::Heartbeat => node.session == reply.session,
            About::Look => node.session != NONE,
            About::Fence | About::Claim | About::Acquire => {
                let local = state.local(reply.node, reply.shard);
                local.part == Part::Candidate && local.claim == reply.claim
            }
            About::Renew => {
                let local = state.local(reply.node, reply.shard);
                local.part == Part::Run && local.token() == reply.claim
            }
            About::Write => {
                let local = state.local(reply.node, reply.shard);
                local.part == Part::Run && local.claim == reply.claim
            }
        }
    }

    pub(crate) fn receive(&self, state: &mut State, reply: Message) {
        if !self.is_awaited(state, &reply) {
            return;
        }
        match reply.about {
            About::Empty | About::Return => {}
            About::Heartbeat => self.on_heartbeat(state, reply),
            About::Look => self.on_look(state, reply),
            About::Fence => self.on_fence(state, reply),
            About::Claim => self.on_claim(state, reply),
            About::Write => self.on_write(state, reply),
            About::Acquire => self.on_acquire(state, reply),
            About::Renew => self.on_renew(state, reply),
        }
    }

    /// What a witness that lasts so long and was asked so long ago still gives. (Rules 3 and 7: from the send time.)
    fn remaining(&self, lasts: u8, age: u8, counts_from_reply: bool) -> u8 {
        let margin = if self.setup.bend == Bend::NoMargin {
            0
        } else {
            self.setup.times.margin
        };
        let age = if counts_from_reply { 0 } else { age };
        lasts.saturating_sub(margin).saturating_sub(age)
    }

    fn on_heartbeat(&self, state: &mut State, reply: Message) {
        if reply.answer == Answer::Fenced {
            self.see(Sight::Fenced);
            self.lose_session(state, reply.node);
            return;
        }
        let lease_duration = self.setup.times.lease_duration[usize::from(reply.node)];
        let from_reply = self.setup.bend == Bend::HeartbeatFromReply;
        let trust = self.remaining(lease_duration, reply.age, from_reply);
        let cap = self.remaining(lease_duration + self.setup.alone(), reply.age, from_reply);
        // One that was committed before a failover is not the next good one.
        let is_from_before = reply.seq != 0;
        let node = state.node_mut(reply.node);
        node.heartbeat_lost &= is_from_before;
        node.trust = trust.max(node.trust);
        let ended = (reply.age + self.setup.times.margin).saturating_sub(lease_duration);
        node.unheard = node.unheard.min(ended);
        if self.setup.has_leases() {
            node.cap = cap.max(node.cap);
        }
        for shard in 0..SHARDS {
            let local = &mut state.nodes[usize::from(reply.node)].shards[shard];
            if local.part != Part::Run {
                continue;
            }
            let is_compared = !matches!(self.setup.bend, Bend::ForeignRowIgnored | Bend::FencedCarriesOn);
            if reply.claims[shard] != local.claim && is_compared {
                self.setup.leave(state, reply.node, shard as u8);
                continue;
            }
            local.stop_seen |= reply.stops[shard];
            local.claim_lost &= is_from_before;
        }
    }

    /// Rule 4.
    fn lose_session(&self, state: &mut State, node: u8) {
        let carries_on = self.setup.bend == Bend::FencedCarriesOn;
        let node = state.node_mut(node);
        node.session = NONE;
        node.trust = 0;
        node.cap = 0;
        node.unheard = 0;
        node.heartbeat_lost = false;
        for local in &mut node.shards {
            if !(carries_on && local.part == Part::Run) {
                *local = crate::state::Local::default();
            }
        }
    }

    /// Rule 9.
    fn on_look(&self, state: &mut State, reply: Message) {
        let silence = if self.setup.bend == Bend::SilenceFromSend {
            reply.age
        } else {
            0
        };
        let seen = &mut state.node_mut(reply.node).seen[usize::from(reply.session)];
        if seen.hb != reply.value {
            *seen = Seen {
                hb: reply.value,
                silence,
            };
        }
    }

    fn on_fence(&self, state: &mut State, reply: Message) {
        if reply.answer == Answer::No {
            self.see(Sight::OwnerBack);
            state.node_mut(reply.node).seen[usize::from(reply.session)] = Seen::default();
            self.setup.leave(state, reply.node, reply.shard);
        } else {
            state.local_mut(reply.node, reply.shard).is_fenced = true;
        }
    }

    fn on_claim(&self, state: &mut State, reply: Message) {
        if reply.answer == Answer::Yes {
            let owner = state.local(reply.node, reply.shard).owner;
            self.see(if owner == NONE {
                Sight::HandOver
            } else {
                Sight::TakeOver
            });
            self.setup
                .start_run(state, reply.node, reply.shard, reply.epoch, reply.value);
        } else {
            if reply.answer == Answer::Stopped {
                self.see(Sight::StopByClaimant);
            }
            self.setup.leave(state, reply.node, reply.shard);
        }
    }

    fn on_write(&self, state: &mut State, reply: Message) {
        if reply.answer == Answer::No || reply.flag {
            self.setup.leave(state, reply.node, reply.shard);
        } else {
            let local = state.local_mut(reply.node, reply.shard);
            local.saved = local.saved.max(reply.value);
        }
    }

    fn on_acquire(&self, state: &mut State, reply: Message) {
        let from_reply = self.setup.bend == Bend::LeaseFromReply;
        let trust = self.remaining(self.setup.times.ttl, reply.age, from_reply);
        let is_heard = state.node(reply.node).trust > 0 || self.setup.bend == Bend::LeaseAfterClaim;
        if reply.answer == Answer::Yes && !is_heard {
            // Its own heart has not beaten: no claim of this session is wanted.
            self.setup.leave(state, reply.node, reply.shard);
            return;
        }
        let local = state.local_mut(reply.node, reply.shard);
        // Somebody may have taken over since the claim was committed: as with a renewal, only a heartbeat helps.
        let is_late = local.is_claiming && self.setup.bend != Bend::LeaseAfterClaim;
        if reply.answer == Answer::Yes && is_late {
            return;
        }
        if reply.answer == Answer::Yes {
            local.lease = trust;
            local.lease_lost = reply.value != 0;
            local.seq = reply.seq;
            // For the bent rule `LeaseNotTrusted`: that it was held once.
            local.sent = u8::from(self.setup.bend == Bend::LeaseNotTrusted);
        } else if local.owner != NONE {
            *local = crate::state::Local::default();
        }
    }

    fn on_renew(&self, state: &mut State, reply: Message) {
        let from_reply = self.setup.bend == Bend::LeaseFromReply;
        let trust = self.remaining(self.setup.times.ttl, reply.age, from_reply);
        // Trust that has ended begins again only with a heartbeat: whoever took over has fenced this session by then.
        let lasts = self.setup.is_trusted(state, reply.node, reply.shard);
        let counts = lasts || self.setup.bend == Bend::LeaseRevives;
        let local = state.local_mut(reply.node, reply.shard);
        match reply.answer {
            Answer::Yes | Answer::SetAgain if counts => {
                if reply.answer == Answer::SetAgain {
                    self.see(Sight::SetAgain);
                }
                local.lease = trust.max(local.lease);
                local.lease_lost &= reply.value != 0;
            }
            Answer::Foreign if self.setup.bend != Bend::ForeignTokenIgnored => {
                self.setup.leave(state, reply.node, reply.shard);
            }
            _ => {}
        }
    }
}
