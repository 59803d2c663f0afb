//! Time, faults, people, and the tidying that makes equal states equal.

use crate::check::Sight;
use crate::rules::{Bend, Setup, Start, Witness};
use crate::state::{
    About, Answer, Broken, Lease, Left, Life, Local, Message, NODES, NONE, Node, Part, Rows, SESSIONS,
    SHARDS, SLOTS, Seen, State,
};
use crate::steps::Protocol;

impl Setup {
    /// The one state that a search begins with.
    pub(crate) fn beginning(&self) -> State {
        let bounds = self.bounds;
        let mut state = State {
            rows: Rows::default(),
            behind: None,
            leases: [Lease { token: NONE, left: 0 }; SHARDS],
            quarantine: 0,
            counter: 0,
            nodes: [Node::default(); NODES],
            net: [Message::EMPTY; SLOTS],
            next_session: 0,
            next_claim: 0,
            left: Left {
                late: bounds.late,
                repeats: bounds.repeats,
                crashes: bounds.crashes,
                wipes: bounds.wipes,
                failovers: bounds.failovers,
                stops: bounds.stops,
                handovers: bounds.handovers,
                skews: bounds.skews,
                deletions: bounds.deletions,
            },
            answered: [0; SHARDS],
            broken: Broken::default(),
        };
        for node in 0..bounds.nodes {
            self.begin(&mut state, node);
        }
        if self.start == Start::Owned {
            (0..bounds.shards).for_each(|shard| self.own(&mut state, shard));
        }
        // A second shard that the search doesn't want is out of the way.
        for row in &mut state.rows.shards[usize::from(bounds.shards)..] {
            row.life = Life::Finished;
        }
        state
    }

    /// Node 0 has just claimed this shard.
    fn own(&self, state: &mut State, shard: u8) {
        let claim = state.next_claim;
        state.next_claim += 1;
        let row = state.shard_mut(shard);
        (row.epoch, row.given, row.claim, row.newest, row.session) = (1, 2, claim, claim, 0);
        *state.local_mut(0, shard) = Local {
            part: Part::Run,
            claim,
            epoch: 1,
            ..Local::default()
        };
        let node = state.node_mut(0);
        node.trust = self.times.lease_duration[0].saturating_sub(self.times.margin);
        if self.has_leases() {
            node.cap = (self.times.lease_duration[0] + self.alone()).saturating_sub(self.times.margin);
        }
        if self.has_leases() {
            state.leases[usize::from(shard)] = Lease {
                token: claim,
                left: self.times.ttl,
            };
            state.local_mut(0, shard).lease = self.times.ttl.saturating_sub(self.times.margin);
        }
        state.counter = 1;
    }

    /// One tick of time, which the clock of `slow` may miss.
    pub(crate) fn tick(&self, state: &mut State, slow: u8) {
        let longest = self
            .times
            .lease_duration
            .iter()
            .fold(0, |most, lease_duration| self.longest(*lease_duration).max(most));
        let oldest = longest + self.alone().saturating_sub(self.times.ttl);
        for lease in &mut state.leases {
            lease.left = lease.left.saturating_sub(1);
            if lease.left == 0 {
                lease.token = NONE;
            }
        }
        state.quarantine = state.quarantine.saturating_sub(1);
        let wait = if self.witness == Witness::RedisOptional {
            longest
        } else {
            longest - self.times.ttl
        };
        for (at, node) in state.nodes.iter_mut().enumerate() {
            if at == usize::from(slow) {
                continue;
            }
            let is_carried = |local: &Local| local.part == Part::Run && local.lease > 0;
            node.unheard = if node.trust == 0 && node.shards.iter().any(is_carried) {
                (node.unheard + 1).min(self.alone())
            } else {
                0
            };
            node.trust = node.trust.saturating_sub(1);
            node.cap = node.cap.saturating_sub(1);
            for local in &mut node.shards {
                local.lease = local.lease.saturating_sub(1);
            }
            for seen in node.seen.iter_mut().filter(|seen| seen.hb != NONE) {
                seen.silence = (seen.silence + 1).min(wait);
            }
        }
        for message in state.net.iter_mut().filter(|message| message.node != slow) {
            let has_age = match message.about {
                About::Heartbeat | About::Acquire | About::Renew => true,
                About::Look => self.bend == Bend::SilenceFromSend,
                _ => false,
            };
            if has_age {
                message.age = (message.age + 1).min(oldest);
            }
        }
    }

    /// The lease store loses everything.
    pub(crate) fn wipe(&self, state: &mut State) -> Option<()> {
        state.left.wipes = state.left.wipes.checked_sub(1)?;
        state.leases = [Lease { token: NONE, left: 0 }; SHARDS];
        state.counter = 0;
        let has_quarantine = self.quarantine && self.bend != Bend::NoQuarantine;
        state.quarantine = if has_quarantine { self.times.ttl } else { 0 };
        if self.quarantine {
            return Some(());
        }
        // What the auditor excuses (rule 20a): runs on a lease that isn't there any more.
        let is_narrow = self.bend == Bend::LossNarrow;
        for node in state
            .nodes
            .iter_mut()
            .filter(|node| node.trust == 0 || !is_narrow)
        {
            node.shards
                .iter_mut()
                .for_each(|local| local.lease_lost |= local.lease > 0);
        }
        for reply in state
            .net
            .iter_mut()
            .filter(|message| message.answer != Answer::Open)
        {
            let is_of_lease = matches!(reply.about, About::Acquire | About::Renew);
            reply.value = if is_of_lease { 1 } else { reply.value };
        }
        Some(())
    }

    /// A replica stops following: whatever is committed from now on will be lost.
    pub(crate) fn fall_behind(&self, state: &mut State) -> Option<()> {
        if state.behind.is_some() || state.left.failovers == 0 {
            return None;
        }
        state.behind = Some(state.rows);
        Some(())
    }

    /// That replica becomes the database; statements under way are cut (rule 20b).
    pub(crate) fn fail_over(&self, state: &mut State) -> Option<()> {
        let older = state.behind.take()?;
        state.left.failovers -= 1;
        for node in 0..NODES {
            self.mark_lost(state, &older, node);
        }
        state.rows = older;
        for message in &mut state.net {
            if message.answer != Answer::Open {
                message.seq = if message.about == About::Heartbeat {
                    1
                } else {
                    message.seq
                };
            } else if message.is_sql() && self.bend != Bend::FailoverReplays {
                *message = Message::EMPTY;
            }
        }
        Some(())
    }

    /// What the auditor excuses (rule 20b): a claim that is lost; a session one of whose heartbeats is lost.
    fn mark_lost(&self, state: &mut State, older: &Rows, node: usize) {
        let owner = state.nodes[node];
        let Some(row) = state.rows.sessions.get(usize::from(owner.session)) else {
            return;
        };
        let mut has_lease = false;
        for (shard, local) in owner
            .shards
            .iter()
            .enumerate()
            .filter(|(_, local)| local.claim != NONE)
        {
            let lease = state.leases[shard];
            let is_own = lease.left > 0 && lease.token == local.token();
            has_lease |= is_own;
            let was_claimed = state.rows.shards[shard].claim == local.claim;
            let is_lost = was_claimed && older.shards[shard].claim != local.claim;
            let is_narrow = self.bend == Bend::ExceptionNarrow && is_own;
            state.nodes[node].shards[shard].claim_lost |= is_lost && !is_narrow;
        }
        let is_narrow = self.bend == Bend::ExceptionAtLoss && has_lease;
        let is_lost = older.sessions[usize::from(owner.session)] != *row;
        state.nodes[node].heartbeat_lost |= is_lost && !is_narrow;
    }

    /// People want it to stop (rule 17).
    pub(crate) fn stop(&self, state: &mut State, shard: u8) -> Option<()> {
        let row = *state.shard(shard);
        if row.life != Life::Runnable || row.wish_stop {
            return None;
        }
        state.left.stops = state.left.stops.checked_sub(1)?;
        let is_fenced = row.session != NONE && !state.is_live(row.session);
        let row = state.shard_mut(shard);
        row.wish_stop = true;
        if self.bend == Bend::SecondWriter {
            row.session = NONE;
        }
        if row.session == NONE || (is_fenced && self.bend == Bend::StopOfFenced) {
            row.life = Life::Stopped;
            row.session = NONE;
        }
        Some(())
    }

    /// A node dies; it may begin again.
    pub(crate) fn crash(&self, state: &mut State, node: u8) -> Option<()> {
        if state.node(node).session == NONE {
            return None;
        }
        state.left.crashes = state.left.crashes.checked_sub(1)?;
        *state.node_mut(node) = Node::default();
        Some(())
    }

    fn can_fall_back(&self, state: &State) -> bool {
        state.left.failovers > 0
    }
}

impl Protocol {
    /// Makes states equal that can't be told apart: forgets replies that nobody awaits, requests that can't have an
    /// effect any more, what was seen of fenced sessions, the order of messages, and the names of heartbeats.
    pub(crate) fn tidy(&self, state: &mut State) {
        for slot in 0..SLOTS {
            let message = state.net[slot];
            let is_reply = message.answer != Answer::Open;
            let is_useless = if is_reply {
                !self.is_awaited(state, &message)
            } else {
                self.is_spent(state, &message)
            };
            if is_useless {
                state.net[slot] = Message::EMPTY;
            }
        }
        let revives = matches!(self.setup.bend, Bend::LeaseRevives | Bend::LeaseAfterClaim);
        for (at, node) in state.nodes.iter_mut().enumerate() {
            let is_of_it = |it: &Message| it.about != About::Empty && usize::from(it.node) == at;
            if !revives || !state.net.iter().any(is_of_it) {
                forget_cap(node);
            }
        }
        if self.setup.bend == Bend::HeartbeatPlusOne {
            return;
        }
        let forgets = !self.setup.can_fall_back(state) && self.setup.witness != Witness::RedisOptional;
        for session in 0..self.setup.bounds.sessions {
            if forgets && !state.is_live(session) {
                for node in &mut state.nodes {
                    node.seen[usize::from(session)] = Seen::default();
                }
            }
            rename_heartbeats(state, session);
        }
        state.net.sort_unstable();
    }

    /// A request that will be refused whenever it arrives, and whose sender has moved on.
    fn is_spent(&self, state: &State, request: &Message) -> bool {
        let is_straight = self.setup.bend == Bend::Nothing && !self.setup.can_fall_back(state);
        if !is_straight || self.is_awaited(state, request) {
            return false;
        }
        match request.about {
            About::Heartbeat | About::Fence => !state.is_live(request.session),
            About::Look | About::Acquire => request.about == About::Look,
            About::Claim => {
                let row = state.shard(request.shard);
                row.epoch != request.epoch || row.life != Life::Runnable || !state.is_live(request.session)
            }
            About::Write => {
                let row = state.shard(request.shard);
                row.claim != request.claim || row.seq >= request.seq || row.life != Life::Runnable
            }
            About::Empty | About::Renew => false,
            About::Return => state.leases[usize::from(request.shard)].token != request.claim,
        }
    }

    pub(crate) fn note(&self, state: &State) {
        for node in 0..self.setup.bounds.nodes {
            for shard in 0..self.setup.bounds.shards {
                if !self.setup.is_open(state, node, shard) || !self.setup.has_leases() {
                    continue;
                }
                let (trust, lease) = (state.node(node).trust, state.local(node, shard).lease);
                if trust == 0 {
                    self.see(Sight::LeaseAlone);
                }
                if lease == 0 {
                    self.see(Sight::HeartbeatAlone);
                }
            }
        }
    }
}

/// Without trust and lease there is nothing that could be carried: a lease that comes now helps only with a heartbeat.
fn forget_cap(node: &mut Node) {
    if node.trust == 0 && node.shards.iter().all(|local| local.lease == 0) {
        (node.cap, node.unheard) = (0, 0);
    }
}

/// Names the heartbeats of a session by the order in which they are found, the row's first.
fn rename_heartbeats(state: &mut State, session: u8) {
    let at = usize::from(session);
    let mut names = [NONE; 16];
    let mut count = 0;
    let mut rename = |label: &mut u8| {
        if *label == NONE {
            return;
        }
        let name = &mut names[usize::from(*label)];
        if *name == NONE {
            *name = count;
            count += 1;
        }
        *label = *name;
    };
    rename(&mut state.rows.sessions[at].hb);
    if let Some(rows) = &mut state.behind {
        rename(&mut rows.sessions[at].hb);
    }
    for node in &mut state.nodes {
        rename(&mut node.seen[at].hb);
        for local in node.shards.iter_mut().filter(|local| local.owner == session) {
            rename(&mut local.silent);
        }
    }
    for message in &mut state.net {
        if matches!(message.about, About::Look | About::Fence) && message.session == session {
            rename(&mut message.value);
        }
    }
    debug_assert!(at < SESSIONS);
}
