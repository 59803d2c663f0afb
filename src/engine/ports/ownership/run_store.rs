//! Ownership and progress of shards: claims and fenced checkpoints.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::handling::data_log::DataLogLine;
use crate::ports::tasks::results::Segment;
use windrow_core::capacity::Rank;
use windrow_core::execution::{Reach, Shared};
use windrow_core::ids::{CheckpointSeq, ClaimId, Epoch, ItemIndex, RunNo, SessionId, ShardId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::items::stretches::Stretches;
use windrow_core::items::verdict::{ItemTrouble, Outage, ParkedItem, SideRecord};
use windrow_core::settings::RateLimit;
use windrow_core::shards::{Directives, Pause, Share, Slow};
use windrow_core::task::ShardRange;
use windrow_core::task::failed_codes::FailedCodes;
use windrow_core::task::lifecycle::{Desired, ShardState};
use windrow_core::task::supply::Supply;

pub use windrow_core::life::{MOVE_PATIENCE, RunClose};

/// Shards in one call of [`RunStore::checkpoint`]: bounds how long the write lock is held.
pub const CHECKPOINT_SHARDS_MAX: usize = 100;
/// Failure groups of a task that carry a code of their own; further codes are counted together.
pub const FAILURE_CODES_MAX: usize = 100;
/// The group of all codes past the first [`FAILURE_CODES_MAX`].
pub const FAILURE_CODE_OTHER: &str = "OTHER";

/// The states of shards that may be claimed, in the order in which a hunt looks through them; a `running` one only
/// from a dead owner.
pub const CLAIMABLE: [ShardState; 3] = [ShardState::Idle, ShardState::Running, ShardState::Recovering];

/// What a search for runnable shards looks for, one page of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateQuery {
    /// The sessions whose shards are not to be had.
    pub alive: Vec<SessionId>,
    /// The wall clock, for `not_before`.
    pub now: WallMs,
    /// Tasks that were not active for longer don't run by themselves.
    pub restore_window: Duration,
    /// Only tasks of these pools; none looks at all. What is to be stopped is found whatever its pool.
    pub pools: Option<Vec<String>>,
    /// The node that looks: a shard that people want on another node is left to that one for a while.
    pub node: String,
    /// Where the page before ended; none begins.
    pub after: Option<CandidateCursor>,
    /// Candidates of one page, at most.
    pub limit: u32,
}

/// A place in the order in which a hunt goes: by state, then by shard. It is the order of an index, so that a page
/// costs what is on it however many pages there are; whoever wants the line sorts what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateCursor {
    /// One of [`CLAIMABLE`].
    pub state: ShardState,
    /// The last shard seen.
    pub shard: ShardId,
}

/// One page of a hunt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CandidatePage {
    /// What was found; perhaps nothing although there is a next page.
    pub found: Vec<Candidate>,
    /// Where the next page begins; none after the last.
    pub next: Option<CandidateCursor>,
}

/// A runnable shard without a live owner, as the restorer finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The shard, and its precedence: since when it waits is when the task was last started.
    pub rank: Rank,
    /// The epoch that was seen; a claim succeeds only while it is still this one.
    pub epoch: Epoch,
    /// The session that the row names; none means released.
    pub session: Option<SessionId>,
    /// What the task wants: a stopped one is claimed only to commit `stopped`.
    pub desired: Desired,
    /// What the shard may do at least, its part of the task's rate; it books that much of a node's capacity.
    pub rate: RateLimit,
    /// That part: one of as many as the task has shards. What those that are done have left it is booked once it runs,
    /// as far as there is room: else a part that has grown might fit nowhere.
    pub share: Share,
    /// The business's slug.
    pub business: Arc<str>,
    /// Whether people want the shard moved to the node that hunts.
    pub is_sent_here: bool,
    /// When its row was last written: a checkpoint of its owner, if it has one.
    pub written_at: WallMs,
    /// Items that are to be done yet, as far as its row says; none of an open task, which may get more.
    pub left: Option<u64>,
}

impl Candidate {
    /// The least time that what is left takes at its rate; none where that isn't known.
    pub fn takes(&self) -> Option<Duration> {
        match self.rate {
            RateLimit::Limited(rate) => Some(rate.time_of(self.left?)),
            RateLimit::Unlimited => None,
        }
    }
}

/// A request to own a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The shard.
    pub shard: ShardId,
    /// The epoch that was seen.
    pub seen: Epoch,
    /// The claim's new id, made before the request so that a lost answer can be read back.
    pub claim: ClaimId,
    /// The own session.
    pub session: SessionId,
    /// The wall clock, for `not_before` and the run's record.
    pub now: WallMs,
}

/// A shard that is owned now, with everything read in or after the claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedShard {
    /// The shard.
    pub shard: ShardId,
    /// The indexes that are to be done: without what is excluded at either end.
    pub range: ShardRange,
    /// The new epoch.
    pub epoch: Epoch,
    /// The own claim.
    pub claim: ClaimId,
    /// The number of this run.
    pub run: RunNo,
    /// What the task wants.
    pub desired: Desired,
    /// The saved watermark.
    pub watermark: ItemIndex,
    /// The saved high water.
    pub high_water: ItemIndex,
    /// How far fresh items may leave under this claim, and may have left before it.
    pub reach: Reach,
    /// The saved counters of the range; `in_flight` is 0, and so is `excluded`, which lies outside of the range.
    pub counters: Counters,
    /// The checkpoint's bytes, empty before the first one.
    pub blob: Vec<u8>,
    /// How many of the latest claims followed a claim under which watermark did not move, this one included; 0 for
    /// the first claim, after a start, and after a run that ended calmly (released or stopped).
    pub stalls: u32,
    /// How often the shard recovered by itself since its task was last started.
    pub recoveries: u32,
    /// Where an early finish cut the shard, if it did; `range` is as it was pinned.
    pub finish_at: Option<ItemIndex>,
    /// The outage of the handler that the run before was in.
    pub outage: Option<Outage>,
    /// Unsettled items in the window that failed before: their attempts survive.
    pub retrying: Vec<ItemTrouble>,
    /// How many results it has.
    pub results_kept: u64,
    /// Who had it last and left it before it was done, as far as that is kept.
    pub left_by: Option<LeftBy>,
}

/// A node that left a shard, which nobody has had since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftBy {
    /// Its name.
    pub node: String,
    /// It was fenced; else it gave the shard back calmly.
    pub is_lost: bool,
}

impl ClaimedShard {
    /// How many items at most had left without being saved as settled: they may be called again.
    pub fn may_repeat(&self) -> u64 {
        let end = self.finish_at.unwrap_or(self.range.end);
        let left = self.reach.may_have_left.max(self.high_water).min(end);
        (left.0.saturating_sub(self.range.start.0)).saturating_sub(self.counters.settled())
    }
}

/// What came of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// Owned.
    Claimed(Box<ClaimedShard>),
    /// Someone else was quicker, the shard isn't runnable, or the own session is fenced.
    Lost,
    /// Its checkpoint has this version, which this program does not read: nothing was changed, a newer node may.
    Newer(u8),
}

/// Log lines that came with replies, on their way with the checkpoint that holds what the replies said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyLines {
    /// The first checkpoint of the run that carried them. A later one carries them again while nobody has heard of the
    /// first; where a number as high as this is stored they are, and are not written twice.
    pub since: CheckpointSeq,
    /// The lines, in order.
    pub lines: Arc<[DataLogLine]>,
    /// How many there were more, which found no room.
    pub dropped: u64,
}

/// One fenced write of a run: progress and side records, atomically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardCheckpoint {
    /// The shard.
    pub shard: ShardId,
    /// The run's epoch.
    pub epoch: Epoch,
    /// The run's claim.
    pub claim: ClaimId,
    /// Grows with each write of the run; a repeat carries the same number.
    pub seq: CheckpointSeq,
    /// First index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// Fresh items may leave below it until the next checkpoint; of a run that ends, what may have left lies below it.
    pub reach: ItemIndex,
    /// The counters of the shard's range; `in_flight` and `excluded` are not stored: the one is unsaved by nature,
    /// the other follows from `finish_at`.
    pub counters: Counters,
    /// What lies above watermark (`domain::checkpoint`).
    pub blob: Vec<u8>,
    /// Changes of item rows, one per item.
    pub side: Vec<SideRecord>,
    /// Lowers the shard's end: what was not dispatched (`high_water`) at or above it is excluded for good.
    pub finish_at: Option<ItemIndex>,
    /// The canary has passed: the task has none any more.
    pub canary_passed: bool,
    /// What all shards of the task should know.
    pub told: Directives,
    /// The outage of the handler that the run is in.
    pub outage: Option<Outage>,
    /// Lines of the replies that this checkpoint is made of.
    pub lines: Vec<ReplyLines>,
    /// How many results the shard has then.
    pub results_kept: u64,
    /// What items came to that it settles, and what no stored checkpoint held yet; all under numbers of the run.
    pub results: Vec<Segment>,
    /// Ends the run.
    pub close: Option<RunClose>,
    /// The wall clock, for the rows' times.
    pub now: WallMs,
}

impl ShardCheckpoint {
    /// The lines that are not stored yet, where `stored` is the run's stored number: a repeat writes none twice.
    pub fn unwritten_lines(&self, stored: CheckpointSeq) -> impl Iterator<Item = &ReplyLines> {
        self.lines.iter().filter(move |one| one.since > stored)
    }

    /// How many log lines it carries.
    pub fn line_count(&self) -> usize {
        self.lines.iter().map(|one| one.lines.len()).sum()
    }
}

/// What came of one checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointAck {
    /// Durable (or was already: a repeat of the same number).
    Stored,
    /// Another claim owns the shard, it isn't runnable any more, or the write goes backwards (number or watermark):
    /// drop this shard only.
    Fenced,
}

/// The live settings of a task, read when `control_rev` changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// The wish.
    pub desired: Desired,
    /// The revision.
    pub rev: u64,
    /// The settings.
    pub tuning: windrow_core::task::Tuning,
    /// Where an early finish cuts the task, if a person or the business asked for it.
    pub finish_at: Option<ItemIndex>,
    /// The first items, which are run and settled before any other leaves; none once that is done.
    pub canary: Option<windrow_core::task::Canary>,
    /// Items that wait with these codes are given up.
    pub failed_codes: FailedCodes,
    /// Items that people want skipped.
    pub skips: Stretches,
    /// What is known of the rest of the task.
    pub shared: Shared,
    /// No shard dispatches before this; it may be over.
    pub pause: Option<Pause>,
    /// The task has at most this rate; it may be over.
    pub slow: Option<Slow>,
    /// When the task is stopped although not done.
    pub deadline: Option<WallMs>,
    /// How far its items go, where more are added; none of a task whose items were fixed when it was made.
    pub supply: Option<Supply>,
}

/// Claims, reads and writes shards (decision 0020, rules 12–17).
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait RunStore: Send + Sync {
    /// Shards that should run or be stopped and whose session is released, fenced, missing, or not in
    /// [`CandidateQuery::alive`]; in the order of [`CandidateCursor`].
    async fn candidates(&self, hunt: &CandidateQuery) -> Result<CandidatePage, StoreError>;

    /// Claims a shard by compare-and-set under a live session and reads its progress. A wish to move it is over then.
    ///
    /// # Errors
    /// `Unavailable` with an unknown outcome: call again with the same request; it recognises its own claim.
    async fn claim(&self, request: ClaimRequest) -> Result<ClaimOutcome, StoreError>;

    /// Writes checkpoints of at most [`CHECKPOINT_SHARDS_MAX`] shards in one transaction; one answer each, in order.
    /// A fenced one leaves nothing and doesn't disturb the others. A failed item is final and counted once.
    ///
    /// # Errors
    /// `Unavailable`: write again with the same numbers.
    async fn checkpoint(&self, checkpoints: &[ShardCheckpoint]) -> Result<Vec<CheckpointAck>, StoreError>;

    /// Gives a shard back without progress: a row of the own session that this node does not run (decision 0020,
    /// rule 5), or a run whose state is lost. What was saved stays; `close` says what the shard does next.
    ///
    /// # Errors
    /// `Unavailable`: ask again; `Fenced` in the answer means that somebody else owns it by now.
    async fn release(
        &self,
        shard: ShardId,
        epoch: Epoch,
        claim: ClaimId,
        close: &RunClose,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError>;

    /// Parked items of a shard that are due at or before a time and after `after` in (due time, index) order.
    async fn parked_due(
        &self,
        shard: ShardId,
        before: WallMs,
        after: Option<(WallMs, ItemIndex)>,
        limit: u32,
    ) -> Result<Vec<ParkedItem>, StoreError>;

    /// The live settings of the shard's task.
    ///
    /// # Errors
    /// When the store can't be read, or the task is gone.
    async fn control(&self, shard: ShardId) -> Result<Control, StoreError>;
}
