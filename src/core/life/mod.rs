//! The life of a task, written once: what each command, each end of a run and each answer of a hook makes of a task and its
//! shards, with the audit entries and hook calls that follow.
//!
//! A store reads a task into a [`Life`] under the task's lock, has it changed here, and writes what is different. It decides
//! nothing itself. What is legal in which status stands in `lifecycle::transitions`; this is what a legal verb does.

mod command;
mod edit;
mod hooks;
mod intake;
mod obey;
mod parts;
mod run_end;
mod shard;
mod skip;
mod start;
mod status;
pub mod succession;

pub use command::{CommandRefusal, TaskCommand, TaskEdit, is_start_over};
pub use hooks::{HookCall, Listener};
pub use obey::Circumstances;
pub use run_end::{MOVE_PATIENCE, OWNER_GONE, RunClose};
pub use shard::ShardLife;
pub use skip::SKIPPED_BY_OPERATOR;
pub use start::StartToken;
pub use status::{COORDINATOR_DOWN, Evidence};

use super::ids::{ItemCount, ItemIndex, TaskId, WallMs};
use super::shards::{Pause, Slow};
use super::task::{ShardRange, Tuning};
use crate::dataset::Publishing;
use crate::items::stretches::Stretches;
use crate::task::failed_codes::FailedCodes;
use crate::task::lifecycle::{CutOff, Note, Standing, Status, StopReason, TaskResult, Desired};
use crate::task::spec::TaskSpec;
use crate::task::supply::Intake;

/// A task and its shards, as far as its life depends on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// Which task.
    pub id: TaskId,
    /// Its attributes; the canary goes once it has passed.
    pub spec: TaskSpec,
    /// How many items.
    pub total: ItemCount,
    /// The source's description as JSON text.
    pub source: String,
    /// A hash of what the source means.
    pub meaning: u64,
    /// The live settings.
    pub tuning: Tuning,
    /// Codes that people gave up.
    pub failed_codes: FailedCodes,
    /// Items that people want skipped, as far as they aren't settled.
    pub skips: Stretches,
    /// What it wants.
    pub desired: Desired,
    /// What it is.
    pub status: Status,
    /// Since when it is that.
    pub since: WallMs,
    /// What is said beside the status.
    pub note: Option<Note>,
    /// Which items its present stop cut off.
    pub cut_off: CutOff,
    /// When something happens by itself.
    pub next_at: Option<WallMs>,
    /// Why it is stopping or stopped.
    pub stop_reason: Option<StopReason>,
    /// How it finished.
    pub result: Option<TaskResult>,
    /// The number of its newest start; 0 before the first.
    pub start_no: u32,
    /// Since when it waits in line.
    pub queued_at: WallMs,
    /// First claim of a shard: a start alone only asks for that.
    pub started_at: Option<WallMs>,
    /// The end for good.
    pub finished_at: Option<WallMs>,
    /// Until when the business may answer that it is ready.
    pub awaiting_until: Option<WallMs>,
    /// The hash of the present start's token; none once that start is over.
    pub start_token: Option<String>,
    /// Goes up with all that owners have to read again.
    pub control_rev: u64,
    /// Lowest end that an early finish asked for; what had left before stays ([`Life::cut_at`]).
    pub finish_at: Option<ItemIndex>,
    /// A pause of all shards, which may be over.
    pub pause: Option<Pause>,
    /// A lower rate of all shards, which may be over.
    pub slow: Option<Slow>,
    /// Whether items are added to it; none where they were fixed when it was made.
    pub intake: Option<Intake>,
    /// What its results become, with the number of their generation.
    pub publishing: Option<Publishing>,
    /// The shards in the order of their numbers.
    pub shards: Vec<ShardLife>,
}

/// What a change leaves beside the task and its shards, to be kept in the same transaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deeds {
    /// Audit entries, in their order.
    pub records: Vec<Record>,
    /// The call by which the business is asked to prepare a start.
    pub call: Option<HookCall>,
    /// Whether a start took the token that it was given ([`Circumstances::token`]).
    pub takes_token: bool,
    /// Whether a start has ended, of which the business may want to hear ([`Life::announcement`]).
    pub ends_start: bool,
    /// Why its results will never be published, where they were to be.
    pub withholds: Option<String>,
}

/// An audit entry, but for when it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who did it.
    pub by: Author,
    /// What was done.
    pub action: String,
    /// What was, as JSON text.
    pub before: String,
    /// What is, as JSON text.
    pub after: String,
}

/// Who made a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// Whoever gave the command.
    Caller,
    /// Windrow itself, for this reason.
    Windrow(Option<StopReason>),
}

impl Life {
    /// Where it stands.
    pub fn standing(&self) -> Standing {
        let owned = self.shards.iter().any(ShardLife::is_running);
        Standing {
            desired: self.desired,
            status: self.status,
            owned,
        }
    }

    /// The indexes that are not left out at its head.
    pub fn whole(&self) -> ShardRange {
        ShardRange::of_task(self.total, self.spec.skip_first)
    }

    /// The shard that publishes its results, once all others are done.
    pub fn publication(&self) -> Option<&ShardLife> {
        self.shards.iter().find(|shard| shard.is_publication())
    }

    /// Whether all that is left of it is to publish its results.
    fn awaits_publication(&self) -> bool {
        self.publication().is_some_and(|shard| !shard.is_done())
    }

    /// Whether a run ever owned a shard of it, so that items may have left.
    fn has_run(&self) -> bool {
        self.shards.iter().any(|shard| shard.run.0 > 0)
    }

    /// Whether it was finished early.
    fn is_cut(&self) -> bool {
        self.finish_at.is_some() || self.shards.iter().any(|shard| shard.end < shard.range_end)
    }

    /// First index that an early finish left out, or will once each run has heard of it; none without one.
    pub fn cut_at(&self) -> Option<ItemIndex> {
        let is_cut = |shard: &&ShardLife| shard.end < shard.range_end && shard.end > shard.first;
        let kept = self.shards.iter().filter(is_cut).map(|shard| shard.end).max();
        self.finish_at.max(kept)
    }

    /// Tells owners that they have something to read.
    fn bump_control(&mut self) {
        self.control_rev += 1;
    }

    /// Sets what it wants; shards that nobody owns follow at once.
    fn set_desired(&mut self, desired: Desired, now: WallMs) {
        self.desired = desired;
        self.shards.iter_mut().for_each(|shard| shard.follow(desired, now));
    }

    /// Sets a status with what belongs to it. Nothing that belonged to the old one stays.
    fn enter(&mut self, status: Status, (note, next_at): (Option<Note>, Option<WallMs>), now: WallMs) {
        (self.status, self.since) = (status, now);
        (self.note, self.next_at) = (note, next_at);
        if !matches!(status, Status::Stopping | Status::Stopped) {
            self.stop_reason = None;
        }
        if !matches!(status, Status::Stopping | Status::Stopped | Status::Cancelled) {
            self.cut_off = CutOff::default();
        }
        if status != Status::AwaitingBusiness {
            self.awaiting_until = None;
        }
        if status == Status::Stopped || status.is_terminal() {
            // The start is over, and with it what its token was for.
            self.start_token = None;
        }
        if status.is_terminal() {
            self.finished_at = Some(now);
        }
    }
}

/// A status as the audit shows it.
pub fn status_json(status: Status) -> String {
    format!("{{\"status\":\"{status}\"}}")
}
