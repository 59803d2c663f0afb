//! What a search is bounded by, and which rule is bent.

/// Which witnesses say that a node lives (rule 1: a property of the store).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// The heartbeat and a lease for each shard.
    Redis,
    /// The heartbeat alone.
    Database,
    /// As `Redis`, but a node that can't reach the leases may take over without one (`takeover_without_redis`).
    RedisOptional,
}

/// How the world begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Node 0 runs every shard.
    Owned,
    /// Nobody runs any shard.
    Released,
}

/// Lengths in ticks.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// G of each node: how long its heartbeat vouches for it.
    pub lease_duration: [u8; 3],
    /// How long a lease lasts.
    pub ttl: u8,
    /// m: how much earlier an owner stops than others may begin. Covers one tick of clock error.
    pub margin: u8,
}

/// How often what may happen.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Nodes, at most 3.
    pub nodes: u8,
    /// Shards, at most 2.
    pub shards: u8,
    /// Items of each shard.
    pub items: u8,
    /// Whether items are worked on at all: what the gates do doesn't depend on it.
    pub works: bool,
    /// Claim ids that are made in all (each shard that begins owned has used one).
    pub claims: u8,
    /// Sessions that are begun in all.
    pub sessions: u8,
    /// Messages that are late, at most 3.
    pub late: u8,
    /// Late requests that are applied twice.
    pub repeats: u8,
    /// Nodes that die and come back.
    pub crashes: u8,
    /// Times that the lease store loses all data.
    pub wipes: u8,
    /// Times that the database falls back to an older moment.
    pub failovers: u8,
    /// Stop commands.
    pub stops: u8,
    /// Hand-overs: runs that are closed though they could go on.
    pub handovers: u8,
    /// Ticks that one node's clock misses.
    pub skews: u8,
    /// Rows of fenced sessions that are deleted.
    pub deletions: u8,
}

impl Bounds {
    /// Two nodes, one shard of one item, two claims more, and no fault but slowness.
    pub const SMALL: Bounds = Bounds {
        nodes: 2,
        shards: 1,
        items: 1,
        works: false,
        claims: 2,
        sessions: 2,
        late: 0,
        repeats: 0,
        crashes: 0,
        wipes: 0,
        failovers: 0,
        stops: 0,
        handovers: 0,
        skews: 0,
        deletions: 0,
    };
}

/// One search: a world, its bounds, and at most one bent rule.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// What the world is made of.
    pub bounds: Bounds,
    /// Its lengths.
    pub times: Times,
    /// Its witnesses.
    pub witness: Witness,
    /// How it begins.
    pub start: Start,
    /// After data loss the lease store gives no new lease for one TTL. Without it, exception (a) of rule 20 holds.
    pub quarantine: bool,
    /// How many lives of a lease may follow the trust of the last heartbeat. The program's two add states; that there is an
    /// end, and what comes after it, shows with one.
    pub lease_lives: u8,
    /// The rule that is bent.
    pub bend: Bend,
}

impl Setup {
    /// Lets a rule be bent.
    pub fn bent(self, bend: Bend) -> Setup {
        Setup { bend, ..self }
    }

    /// Whether there are leases at all.
    pub fn has_leases(&self) -> bool {
        self.witness != Witness::Database
    }

    /// How long a lease alone carries a run beyond the trust of the last heartbeat (rule 8).
    pub fn alone(&self) -> u8 {
        match self.witness {
            Witness::Database => 0,
            Witness::Redis => self.lease_lives * self.times.ttl,
            Witness::RedisOptional => self.times.ttl,
        }
    }

    /// How long a lease and a heartbeat together outlast the owner's last heartbeat, where either may be missing.
    pub fn longest(&self, lease_duration: u8) -> u8 {
        lease_duration + self.times.ttl
    }
}

/// A rule left out or bent. The number is that of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bend {
    /// All rules as they are.
    Nothing,
    /// 1: a candidate waits for its own G instead of the owner's.
    OwnLeaseDuration,
    /// 2: `hb = hb + 1`.
    HeartbeatPlusOne,
    /// 2: the heartbeat doesn't ask whether the session is fenced, so a fenced one is never told.
    HeartbeatOfFenced,
    /// 4: a fenced session's runs go on under the next session.
    FencedCarriesOn,
    /// 5: a shard that isn't this run's any more isn't dropped.
    ForeignRowIgnored,
    /// 5: a shard of this session that the node doesn't run isn't released.
    OrphanKept,
    /// 6: the row of a session that was silent is deleted, though shards refer to it.
    SilentSessionDeleted,
    /// 6: the row of a *fenced* session is deleted, though shards refer to it.
    FencedSessionDeleted,
    /// 7: a heartbeat's trust counts from its reply.
    HeartbeatFromReply,
    /// 7: a lease's trust counts from its reply, so a late reply extends what has ended.
    LeaseFromReply,
    /// 7: a lease's reply begins trust anew after it has ended, and a run that nobody vouches for asks for it.
    LeaseRevives,
    /// 7: the margin is 0.
    NoMargin,
    /// 8: renewing sets the own token whoever's token is there.
    RenewalTakesAnyLease,
    /// 8: a lease found absent is set again without a fresh heartbeat.
    SetAgainAlways,
    /// 8: a token of someone else doesn't end the run.
    ForeignTokenIgnored,
    /// 8: a run that nobody vouches for renews its lease all the same, and never gives it back.
    LeaseKeptShut,
    /// 8: the lease is given back while the gate is open.
    LeaseReturnedOpen,
    /// 8: a run that gave its lease back still counts on it.
    LeaseRemembered,
    /// 8: a run that gave its lease back takes it again under the same token.
    TokenKept,
    /// 9: silence counts from when the read was sent.
    SilenceFromSend,
    /// 9: a session that was never seen before counts as silent.
    SilenceFromNothing,
    /// 10: a lease that is taken after the claim was sent carries the run.
    LeaseAfterClaim,
    /// 10: the lease is looked at, not taken.
    LeaseLookedAt,
    /// 10: no lease is needed where the session is already fenced.
    NoLeaseForFenced,
    /// 10: fence and claim are sent although the own lease isn't trusted any more.
    LeaseNotTrusted,
    /// 11: the fence doesn't ask for the silent heartbeat.
    FenceOfAnyHeartbeat,
    /// 11: the fence asks for the newest heartbeat that was read.
    FenceOfNewestHeartbeat,
    /// 12: the claim doesn't ask whether the owner is fenced, and nobody fences first.
    ClaimBeforeFence,
    /// 12: the claim doesn't ask whether the own session lives.
    ClaimOfFenced,
    /// 12: the claim doesn't ask for the epoch that was seen.
    ClaimOfAnyEpoch,
    /// 12: the epoch comes from a counter in the lease store.
    EpochFromLeases,
    /// 13: the checkpoint is read before the claim.
    ReadBeforeClaim,
    /// 15: writes ask for nothing.
    UnfencedWrites,
    /// 15: writes ask for the epoch, not for the claim.
    EpochOnly,
    /// 15: writes aren't numbered.
    NoSequence,
    /// 16: a gate opens again when the release wasn't answered.
    GateOpensAgain,
    /// 16: the gate is closed when the release was answered.
    GateClosedByReply,
    /// 16: the lease is given back before the row.
    LeaseReturnedFirst,
    /// 17: a stop clears the shard's session.
    SecondWriter,
    /// 17: a stop is complete where the session is fenced.
    StopOfFenced,
    /// 19: an item counts as done when its call leaves.
    DoneAtDeparture,
    /// 20: after data loss leases are given at once, and nothing is excused.
    NoQuarantine,
    /// 20a as it was written: only an owner whose heartbeat wasn't fresh at the loss is excused.
    LossNarrow,
    /// 20b as it was written: a lost claim is excused only where no lease is live.
    ExceptionNarrow,
    /// 20b as it was written: a lost heartbeat is excused only where no lease was live at the failover.
    ExceptionAtLoss,
    /// 20b: a failover doesn't cut the statements that are under way.
    FailoverReplays,
    /// 8: a lease carries its owner for as long as it is renewed; with `takeover_without_redis` candidates wait TTL + G.
    LeaseCarriesAlone,
    /// `takeover_without_redis`: no silence is needed where the session is already fenced.
    NoSilenceForFenced,
}
