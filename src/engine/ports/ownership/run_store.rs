//! Ownership and progress of shards: claims and fenced checkpoints.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::handling::data_log::DataLogLine;
use crate::ports::tasks::results::Segment;
use windrow_core::capacity::Rank;
use windrow_core::execution::{Horizon, Shared};
use windrow_core::ids::{CheckpointSeq, ClaimId, Epoch, ItemIndex, RunNo, SessionId, ShardId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::items::stretches::Stretches;
use windrow_core::items::verdict::{FailingItem, Outage, ParkedItem, SideRecord};
use windrow_core::settings::RateLimit;
use windrow_core::shards::{Directives, Pause, Share, Slow};
use windrow_core::task::ShardRange;
use windrow_core::task::failed_codes::FailedCodes;
use windrow_core::task::lifecycle::{Desired, ShardState};
use windrow_core::task::supply::Supply;

pub use windrow_core::life::{MOVE_PATIENCE, RunClose};

/// Maximum number of shards per call of [`RunStore::checkpoint`]: bounds the time that the write lock is held.
pub const CHECKPOINT_SHARDS_MAX: usize = 100;
/// Maximum number of failure codes of a task with a separate group; further codes are counted together.
pub const FAILURE_CODES_MAX: usize = 100;
/// Group of all codes past the first [`FAILURE_CODES_MAX`].
pub const FAILURE_CODE_OTHER: &str = "OTHER";

/// States of shards that may be claimed, in the order of a search; a `running` one only from a dead owner.
pub const CLAIMABLE: [ShardState; 3] = [ShardState::Idle, ShardState::Running, ShardState::Recovering];

/// One page of a search for runnable shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateQuery {
    /// Sessions whose shards can't be taken.
    pub alive: Vec<SessionId>,
    /// Current wall-clock time, for `not_before`.
    pub now: WallMs,
    /// Time without activity after which tasks don't restart automatically.
    pub restore_window: Duration,
    /// Pools whose tasks are searched; `None` searches all. Tasks to be stopped are found whatever their pool.
    pub pools: Option<Vec<String>>,
    /// Node that searches: a shard that people want on another node is left to that one for a while.
    pub node: String,
    /// Place where the page before ended; `None` begins.
    pub after: Option<CandidateCursor>,
    /// Maximum number of candidates on one page.
    pub limit: u32,
}

/// Place in the order of a search: by state, then by shard. It is the order of an index, so that a page costs what is
/// on it however many pages there are; the caller sorts what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateCursor {
    /// State, one of [`CLAIMABLE`].
    pub state: ShardState,
    /// Last shard of the page.
    pub shard: ShardId,
}

/// One page of a search result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CandidatePage {
    /// Candidates that were found; may be empty although there is a next page.
    pub found: Vec<Candidate>,
    /// Place where the next page begins; `None` after the last.
    pub next: Option<CandidateCursor>,
}

/// Runnable shard without a live owner, as the restorer finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Shard with its precedence: it waits since the task was last started.
    pub rank: Rank,
    /// Epoch that was seen; a claim succeeds only while it is unchanged.
    pub epoch: Epoch,
    /// Session that the row names; `None` means released.
    pub session: Option<SessionId>,
    /// Desired state of the task: a stopped one is claimed only to commit `stopped`.
    pub desired: Desired,
    /// Minimum rate of the shard, its share of the task's rate; it books that much of a node's capacity.
    pub rate: RateLimit,
    /// Share of that rate: one of as many as the task has shards. The shares of finished shards are booked once it
    /// runs, as far as there is room: otherwise a share that has grown might fit nowhere.
    pub share: Share,
    /// Slug of the business.
    pub business: Arc<str>,
    /// True if people want the shard moved to the node that searches.
    pub is_sent_here: bool,
    /// Time of the last write to its row: a checkpoint of its owner, if it has one.
    pub written_at: WallMs,
    /// Items left to do, as far as its row says; `None` for an open task, which may get more.
    pub left: Option<u64>,
}

impl Candidate {
    /// Returns the least time for the items that are left at its rate; `None` if that isn't known.
    pub fn takes(&self) -> Option<Duration> {
        match self.rate {
            RateLimit::Limited(rate) => Some(rate.time_of(self.left?)),
            RateLimit::Unlimited | RateLimit::Auto(_) => None,
        }
    }
}

/// Request to own a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Shard to be claimed.
    pub shard: ShardId,
    /// Epoch that was seen.
    pub seen: Epoch,
    /// New id of the claim, made before the request so that a lost answer can be read back.
    pub claim: ClaimId,
    /// Session that claims the shard.
    pub session: SessionId,
    /// Current wall-clock time, for `not_before` and the run's record.
    pub now: WallMs,
}

/// Shard that is owned now, with everything read in or after the claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedShard {
    /// Shard that was claimed.
    pub shard: ShardId,
    /// Indexes to be done, without those excluded at either end.
    pub range: ShardRange,
    /// New epoch of the shard.
    pub epoch: Epoch,
    /// Claim that owns it.
    pub claim: ClaimId,
    /// Number of this run.
    pub run: RunNo,
    /// Desired state of the task.
    pub desired: Desired,
    /// Saved watermark of the shard.
    pub watermark: ItemIndex,
    /// Saved high-water mark: one past the highest index dispatched.
    pub high_water: ItemIndex,
    /// Dispatch horizon: fresh items may be sent up to it under this claim, and may have been sent before it.
    pub horizon: Horizon,
    /// Saved counters of the range; `in_flight` is 0, and so is `excluded`, which lies outside of the range.
    pub counters: Counters,
    /// Bytes of the checkpoint, empty before the first one.
    pub blob: Vec<u8>,
    /// Number of latest claims, this one included, that followed a claim under which the watermark did not move; 0
    /// for the first claim, after a start, and after a run that ended cleanly (released or stopped).
    pub stalls: u32,
    /// Number of automatic recoveries of the shard since its task was last started.
    pub recoveries: u32,
    /// Index at which an early finish cut the shard, if it did; `range` is as it was pinned.
    pub finish_at: Option<ItemIndex>,
    /// Set if the handler was down in the run before.
    pub outage: Option<Outage>,
    /// Unsettled items in the window that failed before: their attempts survive.
    pub retrying: Vec<FailingItem>,
    /// Number of its results.
    pub results_kept: u64,
    /// Last owner, if it left the shard before it was done and that is recorded.
    pub left_by: Option<LeftBy>,
}

/// Node that left a shard, which nobody has had since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftBy {
    /// Name of the node.
    pub node: String,
    /// True if it was fenced; false if it gave the shard back cleanly.
    pub is_lost: bool,
}

impl ClaimedShard {
    /// Returns the largest number of items that were sent without being saved as settled: they may be called again.
    pub fn may_repeat(&self) -> u64 {
        let end = self.finish_at.unwrap_or(self.range.end);
        let left = self.horizon.may_have_left.max(self.high_water).min(end);
        (left.0.saturating_sub(self.range.start.0)).saturating_sub(self.counters.settled())
    }
}

/// Outcome of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// The shard is owned now.
    Claimed(Box<ClaimedShard>),
    /// Someone else was quicker, the shard isn't runnable, or this session is fenced.
    Lost,
    /// The checkpoint has this version, which this program does not read: nothing was changed, and a newer node may
    /// claim it.
    Newer(u8),
}

/// Log lines that came with replies, on their way with the checkpoint that holds the reports of these replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyLines {
    /// First checkpoint of the run that carried them. A later one carries them again while the first is
    /// unacknowledged. If a number as high as this is stored they are, too, and are not written twice.
    pub since: CheckpointSeq,
    /// The lines, in order.
    pub lines: Arc<[DataLogLine]>,
    /// Number of further lines, which were dropped for lack of room.
    pub dropped: u64,
}

/// One fenced write of a run: progress and side records, atomically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardCheckpoint {
    /// Shard that is written.
    pub shard: ShardId,
    /// Epoch of the run.
    pub epoch: Epoch,
    /// Claim of the run.
    pub claim: ClaimId,
    /// Number that grows with each write of the run; a repeat carries the same number.
    pub seq: CheckpointSeq,
    /// First index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// Dispatch horizon: fresh items may be sent below it until the next checkpoint. For a run that ends, everything
    /// that may have been sent lies below it.
    pub horizon: ItemIndex,
    /// Counters of the shard's range. `in_flight` and `excluded` are not stored: the first is unsaved by nature, the
    /// second follows from `finish_at`.
    pub counters: Counters,
    /// State of the items above the watermark (`core::checkpoint`).
    pub blob: Vec<u8>,
    /// Changes of item rows, one per item.
    pub side: Vec<SideRecord>,
    /// Lowered end of the shard: items at or above it that were not dispatched (`high_water`) are excluded for good.
    pub finish_at: Option<ItemIndex>,
    /// True if the canary has passed: the task has none any more.
    pub canary_passed: bool,
    /// Directives for all shards of the task.
    pub told: Directives,
    /// Set while the handler is down.
    pub outage: Option<Outage>,
    /// Log lines of the replies in this checkpoint.
    pub lines: Vec<ReplyLines>,
    /// Number of results of the shard with this checkpoint.
    pub results_kept: u64,
    /// Outputs of the items that it settles, and those that no stored checkpoint held yet; all under numbers of the
    /// run.
    pub results: Vec<Segment>,
    /// Set if this checkpoint ends the run.
    pub close: Option<RunClose>,
    /// Current wall-clock time, for the rows' times.
    pub now: WallMs,
}

impl ShardCheckpoint {
    /// Returns the lines that are not stored yet, if `stored` is the run's stored number: a repeat writes none twice.
    pub fn unwritten_lines(&self, stored: CheckpointSeq) -> impl Iterator<Item = &ReplyLines> {
        self.lines.iter().filter(move |one| one.since > stored)
    }

    /// Returns the number of log lines that it carries.
    pub fn line_count(&self) -> usize {
        self.lines.iter().map(|one| one.lines.len()).sum()
    }
}

/// Answer to one checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointAck {
    /// Durable (or was already: a repeat of the same number).
    Stored,
    /// Another claim owns the shard, it isn't runnable any more, or the write goes backwards (number or watermark):
    /// drop this shard only.
    Fenced,
}

/// Live settings of a task, read when `control_rev` changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Desired state of the task.
    pub desired: Desired,
    /// Revision of the settings.
    pub rev: u64,
    /// Settings of the task.
    pub tuning: windrow_core::task::Tuning,
    /// Index at which an early finish cuts the task, if a person or the business requested it.
    pub finish_at: Option<ItemIndex>,
    /// First items, which are run and settled before any other is sent; `None` once that is done.
    pub canary: Option<windrow_core::task::Canary>,
    /// Codes whose retrying items fail for good.
    pub failed_codes: FailedCodes,
    /// Items that people want skipped.
    pub skips: Stretches,
    /// Known state of the rest of the task.
    pub shared: Shared,
    /// Pause before whose end no shard dispatches; it may be over.
    pub pause: Option<Pause>,
    /// Upper bound on the rate of the task; it may be over.
    pub slow: Option<Slow>,
    /// Time at which the task is stopped although not done.
    pub deadline: Option<WallMs>,
    /// Extent of the items of a task to which more are added; `None` if its items were fixed when it was made.
    pub supply: Option<Supply>,
}

/// Store that claims, reads and writes shards (decision 0020, rules 12–17).
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait RunStore: Send + Sync {
    /// Returns shards that should run or be stopped and whose session is released, fenced, missing, or not in
    /// [`CandidateQuery::alive`], in the order of [`CandidateCursor`].
    async fn candidates(&self, hunt: &CandidateQuery) -> Result<CandidatePage, StoreError>;

    /// Claims a shard by compare-and-set under a live session and reads its progress. A request to move it is over
    /// then.
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

    /// Releases a shard without progress: a row of this session that the node does not run (decision 0020, rule 5),
    /// or a run whose state is lost. What was saved stays; `close` says what the shard does next.
    ///
    /// # Errors
    /// `Unavailable`: ask again; `Fenced` in the answer means that someone else owns it by now.
    async fn release(
        &self,
        shard: ShardId,
        epoch: Epoch,
        claim: ClaimId,
        close: &RunClose,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError>;

    /// Returns the parked items of a shard that are due at or before a time and after `after` in (due time, index)
    /// order.
    async fn parked_due(
        &self,
        shard: ShardId,
        before: WallMs,
        after: Option<(WallMs, ItemIndex)>,
        limit: u32,
    ) -> Result<Vec<ParkedItem>, StoreError>;

    /// Returns the live settings of the shard's task.
    ///
    /// # Errors
    /// If the store can't be read, or the task is gone.
    async fn control(&self, shard: ShardId) -> Result<Control, StoreError>;
}
