//! What there is at one moment. Small integers only: millions of these are kept and compared.

/// Room for nodes.
pub(crate) const NODES: usize = 3;
/// Room for shards.
pub(crate) const SHARDS: usize = 2;
/// Room for sessions.
pub(crate) const SESSIONS: usize = 5;
/// Room for late messages.
pub(crate) const SLOTS: usize = 3;
/// No session, no claim, no heartbeat.
pub(crate) const NONE: u8 = u8::MAX;

/// A row of `session`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct SessionRow {
    pub(crate) exists: bool,
    pub(crate) fenced: bool,
    /// A label: equal labels are equal values.
    pub(crate) hb: u8,
    /// G of the owner, in ticks.
    pub(crate) lease_duration: u8,
}

/// What a shard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) enum Life {
    #[default]
    Runnable,
    Stopped,
    Finished,
}

/// A row of `shard`, and below it what only the auditor sees (it falls back with the database).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardRow {
    pub(crate) epoch: u8,
    pub(crate) claim: u8,
    pub(crate) session: u8,
    pub(crate) seq: u8,
    pub(crate) progress: u8,
    pub(crate) wish_stop: bool,
    pub(crate) life: Life,
    /// Auditor: the claim that was committed last.
    pub(crate) newest: u8,
    /// Auditor: the epochs that were given, as bits.
    pub(crate) given: u8,
}

impl Default for ShardRow {
    fn default() -> ShardRow {
        ShardRow {
            epoch: 0,
            claim: NONE,
            session: NONE,
            seq: 0,
            progress: 0,
            wish_stop: false,
            life: Life::Runnable,
            newest: NONE,
            given: 0,
        }
    }
}

/// The database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Rows {
    pub(crate) sessions: [SessionRow; SESSIONS],
    pub(crate) shards: [ShardRow; SHARDS],
}

/// A lease: a token while `left` isn't 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) token: u8,
    pub(crate) left: u8,
}

/// What a node has to do with a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) enum Part {
    #[default]
    Nothing,
    /// Wants to claim it.
    Candidate,
    /// Works on it.
    Run,
    /// Is done with it; the lease isn't given back yet.
    Left,
}

/// A node's view of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) part: Part,
    /// The claim that is wanted or held; also the first token of its lease.
    pub(crate) claim: u8,
    /// Whether the lease was given back since: its token is another one.
    pub(crate) round: u8,
    /// The epoch that was seen (candidate), or is held (run).
    pub(crate) epoch: u8,
    /// Ticks for which the lease is trusted.
    pub(crate) lease: u8,
    /// Candidate: whose shard it was; `NONE` = released.
    pub(crate) owner: u8,
    /// Candidate: the heartbeat that was silent.
    pub(crate) silent: u8,
    /// Candidate: the claim was sent, so that a lease that comes now comes too late.
    pub(crate) is_claiming: bool,
    /// Candidate: the owner is known to be fenced.
    pub(crate) is_fenced: bool,
    /// Run: what is done, as far as this node knows. Candidate: what was read too early, if that rule is bent.
    pub(crate) progress: u8,
    /// Run: what is known to be saved.
    pub(crate) saved: u8,
    /// Run: the number of the last write, and what it carried.
    pub(crate) seq: u8,
    pub(crate) sent: u8,
    /// Run: a call is with the business.
    pub(crate) in_flight: bool,
    /// Run: the gate is closed for good.
    pub(crate) is_closed: bool,
    /// Run: this node has read that it is to stop.
    pub(crate) stop_seen: bool,
    /// Auditor: the last good reply about the lease is from before the leases were lost.
    pub(crate) lease_lost: bool,
    /// Auditor: a failover lost this claim, and no heartbeat has told so yet.
    pub(crate) claim_lost: bool,
}

impl Local {
    /// The token of its lease.
    pub(crate) fn token(&self) -> u8 {
        self.claim | self.round << 4
    }
}

impl Default for Local {
    fn default() -> Local {
        Local {
            part: Part::Nothing,
            claim: NONE,
            round: 0,
            epoch: 0,
            lease: 0,
            owner: NONE,
            silent: NONE,
            is_claiming: false,
            is_fenced: false,
            progress: 0,
            saved: 0,
            seq: 0,
            sent: 0,
            in_flight: false,
            is_closed: false,
            stop_seen: false,
            lease_lost: false,
            claim_lost: false,
        }
    }
}

/// What a node has seen of a session: a heartbeat, and for how long already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) hb: u8,
    pub(crate) silence: u8,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { hb: NONE, silence: 0 }
    }
}

/// A node process, or the lack of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// `NONE`: none begun, or fenced.
    pub(crate) session: u8,
    /// Ticks for which the last heartbeat is trusted.
    pub(crate) trust: u8,
    /// Ticks for which leases may carry a run at most.
    pub(crate) cap: u8,
    /// Auditor: ticks for which leases have carried a run since the trust of the last heartbeat ended.
    pub(crate) unheard: u8,
    /// Auditor: a failover lost a heartbeat of this session, or its row, and no heartbeat has succeeded since.
    pub(crate) heartbeat_lost: bool,
    pub(crate) seen: [Seen; SESSIONS],
    pub(crate) shards: [Local; SHARDS],
}

impl Default for Node {
    fn default() -> Node {
        Node {
            session: NONE,
            trust: 0,
            cap: 0,
            unheard: 0,
            heartbeat_lost: false,
            seen: [Seen::default(); SESSIONS],
            shards: [Local::default(); SHARDS],
        }
    }
}

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum About {
    #[default]
    Empty,
    Heartbeat,
    Look,
    Fence,
    Claim,
    Write,
    Acquire,
    Renew,
    Return,
}

/// What a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum Answer {
    /// It is a request still.
    #[default]
    Open,
    Yes,
    /// Nothing was changed.
    No,
    /// The session is fenced, or its row is missing.
    Fenced,
    /// The claim stopped the shard.
    Stopped,
    /// The lease was absent and was set again.
    SetAgain,
    /// The lease is someone else's.
    Foreign,
}

/// A request to the database or the leases, or the reply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Message {
    pub(crate) about: About,
    pub(crate) answer: Answer,
    pub(crate) node: u8,
    pub(crate) shard: u8,
    pub(crate) session: u8,
    pub(crate) claim: u8,
    pub(crate) epoch: u8,
    pub(crate) seq: u8,
    /// Progress, or a heartbeat's label.
    pub(crate) value: u8,
    /// A write that releases; a renewal that may set again; a stop that was read.
    pub(crate) flag: bool,
    /// Ticks since it was sent, on the sender's clock.
    pub(crate) age: u8,
    /// A heartbeat's reply: which claims the rows of this session carry, and which shards are to stop.
    pub(crate) claims: [u8; SHARDS],
    pub(crate) stops: [bool; SHARDS],
}

impl Message {
    pub(crate) const EMPTY: Message = Message {
        about: About::Empty,
        answer: Answer::Open,
        node: 0,
        shard: 0,
        session: NONE,
        claim: NONE,
        epoch: 0,
        seq: 0,
        value: 0,
        flag: false,
        age: 0,
        claims: [NONE; SHARDS],
        stops: [false; SHARDS],
    };

    pub(crate) fn is_sql(&self) -> bool {
        matches!(
            self.about,
            About::Heartbeat | About::Look | About::Fence | About::Claim | About::Write
        )
    }
}

/// What may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Left {
    pub(crate) late: u8,
    pub(crate) repeats: u8,
    pub(crate) crashes: u8,
    pub(crate) wipes: u8,
    pub(crate) failovers: u8,
    pub(crate) stops: u8,
    pub(crate) handovers: u8,
    pub(crate) skews: u8,
    pub(crate) deletions: u8,
}

/// One moment of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(crate) rows: Rows,
    /// The older moment to which a failover will fall back, once a replica has stopped following.
    pub(crate) behind: Option<Rows>,
    pub(crate) leases: [Lease; SHARDS],
    /// Ticks in which no new lease is given.
    pub(crate) quarantine: u8,
    /// The counter of the bent rule `EpochFromLeases`.
    pub(crate) counter: u8,
    pub(crate) nodes: [Node; NODES],
    pub(crate) net: [Message; SLOTS],
    pub(crate) next_session: u8,
    pub(crate) next_claim: u8,
    pub(crate) left: Left,
    /// Auditor: how many items of each shard were answered by the business.
    pub(crate) answered: [u8; SHARDS],
    /// Auditor: what must never happen and did.
    pub(crate) broken: Broken,
}

/// What the auditor saw go wrong in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Broken {
    pub(crate) epoch_twice: bool,
    pub(crate) older_write: bool,
    pub(crate) progress_fell: bool,
}

impl State {
    pub(crate) fn local(&self, node: u8, shard: u8) -> &Local {
        &self.nodes[usize::from(node)].shards[usize::from(shard)]
    }

    pub(crate) fn local_mut(&mut self, node: u8, shard: u8) -> &mut Local {
        &mut self.nodes[usize::from(node)].shards[usize::from(shard)]
    }

    pub(crate) fn node(&self, node: u8) -> &Node {
        &self.nodes[usize::from(node)]
    }

    pub(crate) fn node_mut(&mut self, node: u8) -> &mut Node {
        &mut self.nodes[usize::from(node)]
    }

    pub(crate) fn shard(&self, shard: u8) -> &ShardRow {
        &self.rows.shards[usize::from(shard)]
    }

    pub(crate) fn shard_mut(&mut self, shard: u8) -> &mut ShardRow {
        &mut self.rows.shards[usize::from(shard)]
    }

    /// A session that exists and isn't fenced.
    pub(crate) fn is_live(&self, session: u8) -> bool {
        let row = self.rows.sessions.get(usize::from(session));
        row.is_some_and(|row| row.exists && !row.fenced)
    }

    /// A heartbeat that nobody has seen.
    pub(crate) fn fresh(&self, session: u8) -> u8 {
        (0..NONE)
            .find(|label| !self.is_label_held(session, *label))
            .unwrap_or(NONE)
    }

    fn is_label_held(&self, session: u8, label: u8) -> bool {
        let at = usize::from(session);
        self.rows.sessions[at].hb == label
            || self.behind.is_some_and(|rows| rows.sessions[at].hb == label)
            || self.nodes.iter().any(|node| {
                node.seen[at].hb == label
                    || node
                        .shards
                        .iter()
                        .any(|local| local.owner == session && local.silent == label)
            })
            || self.net.iter().any(|message| {
                matches!(message.about, About::Look | About::Fence)
                    && message.session == session
                    && message.value == label
            })
    }
}
