//! Life cycle of a task, written once: the effect of each command, run end and hook answer on a task and its shards,
//! with the audit entries and hook calls that follow.
//!
//! A store reads a task into a [`Life`] under the task's lock, applies the change here, and writes the differences.
//! It decides nothing itself. `lifecycle::transitions` defines which verb is legal in which status; this module
//! defines what a legal verb does.

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
pub use run_end::{MOVE_PATIENCE, RunClose};
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
use crate::task::lifecycle::{CutOff, Desired, Note, Standing, Status, StopReason, TaskResult};
use crate::task::spec::TaskSpec;
use crate::task::supply::Intake;

/// Task and shards, limited to the state that their life cycle depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// Id of the task.
    pub id: TaskId,
    /// Attributes of the task; `canary` is cleared once it has passed.
    pub spec: TaskSpec,
    /// Total number of items.
    pub total: ItemCount,
    /// Description of the source as JSON text.
    pub source: String,
    /// Hash of the source's meaning.
    pub meaning: u64,
    /// Live settings currently in force.
    pub tuning: Tuning,
    /// Failure codes whose retrying items people have failed.
    pub failed_codes: FailedCodes,
    /// Items that people want skipped, unless they are settled.
    pub skips: Stretches,
    /// Desired state of the task.
    pub desired: Desired,
    /// Current status of the task.
    pub status: Status,
    /// Time at which the status was entered.
    pub since: WallMs,
    /// Note that is shown with the status.
    pub note: Option<Note>,
    /// Items that the present stop cut off.
    pub cut_off: CutOff,
    /// Time of the next automatic change, if there is one.
    pub next_at: Option<WallMs>,
    /// Reason why the task is stopping or stopped.
    pub stop_reason: Option<StopReason>,
    /// Result of a finished task.
    pub result: Option<TaskResult>,
    /// Number of the latest start; 0 before the first.
    pub start_no: u32,
    /// Time since which the task waits in line.
    pub queued_at: WallMs,
    /// Time of the first claim of a shard. A start alone only requests it.
    pub started_at: Option<WallMs>,
    /// Time at which the task ended for good.
    pub finished_at: Option<WallMs>,
    /// Deadline for the business to answer that it is ready.
    pub awaiting_until: Option<WallMs>,
    /// Hash of the present start's token; `None` once that start is over.
    pub start_token: Option<String>,
    /// Revision that increases with each change that owners must read.
    pub control_rev: u64,
    /// Lowest end that an early finish asked for. Items dispatched before stay ([`Life::cut_at`]).
    pub finish_at: Option<ItemIndex>,
    /// Latest pause of all shards, which may be over.
    pub pause: Option<Pause>,
    /// Latest lower rate of all shards, which may be over.
    pub slow: Option<Slow>,
    /// State of the intake of an open task, or `None` if the items were fixed when the task was created.
    pub intake: Option<Intake>,
    /// Publication of the results, with its generation number.
    pub publishing: Option<Publishing>,
    /// Shards in the order of their numbers.
    pub shards: Vec<ShardLife>,
}

/// Side effects of a change, to be stored in the same transaction as the task and its shards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deeds {
    /// Audit entries, in order.
    pub records: Vec<Record>,
    /// Call that asks the business to prepare a start.
    pub call: Option<HookCall>,
    /// True if a start used the token that it was given ([`Circumstances::token`]).
    pub takes_token: bool,
    /// True if a start has ended and the business may have to be called ([`Life::announcement`]).
    pub ends_start: bool,
    /// Reason why the results will never be published, if they were to be.
    pub withholds: Option<String>,
}

/// Audit entry without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Author of the change.
    pub by: Author,
    /// Name of the action.
    pub action: String,
    /// State before the change, as JSON text.
    pub before: String,
    /// State after the change, as JSON text.
    pub after: String,
}

/// Author of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The caller who gave the command.
    Caller,
    /// Windrow itself, for this reason.
    Windrow(Option<StopReason>),
}

impl Life {
    /// Returns the desired state, the status and if a run owns a shard.
    pub fn standing(&self) -> Standing {
        let owned = self.shards.iter().any(ShardLife::is_running);
        Standing {
            desired: self.desired,
            status: self.status,
            owned,
        }
    }

    /// Returns the range of the task without the indexes skipped at its head.
    pub fn whole(&self) -> ShardRange {
        ShardRange::of_task(self.total, self.spec.skip_first)
    }

    /// Returns the shard that publishes the results, once all others are done.
    pub fn publication(&self) -> Option<&ShardLife> {
        self.shards.iter().find(|shard| shard.is_publication())
    }

    /// Returns true if only the publication of the results is left.
    fn awaits_publication(&self) -> bool {
        self.publication().is_some_and(|shard| !shard.is_done())
    }

    /// Returns true if a run ever owned a shard, so that items may have been dispatched.
    fn has_run(&self) -> bool {
        self.shards.iter().any(|shard| shard.run.0 > 0)
    }

    /// Returns true if the task was finished early.
    fn is_cut(&self) -> bool {
        self.finish_at.is_some() || self.shards.iter().any(|shard| shard.end < shard.range_end)
    }

    /// Returns the first index that an early finish excludes, now or once each run has read it; `None` without one.
    pub fn cut_at(&self) -> Option<ItemIndex> {
        let is_cut = |shard: &&ShardLife| shard.end < shard.range_end && shard.end > shard.first;
        let kept = self.shards.iter().filter(is_cut).map(|shard| shard.end).max();
        self.finish_at.max(kept)
    }

    /// Increases the control revision, so that owners read their control again.
    fn bump_control(&mut self) {
        self.control_rev += 1;
    }

    /// Sets the desired state; shards without an owner follow at once.
    fn set_desired(&mut self, desired: Desired, now: WallMs) {
        self.desired = desired;
        self.shards
            .iter_mut()
            .for_each(|shard| shard.follow(desired, now));
    }

    /// Enters a status with its note and next change, and clears the fields that belonged to the old one.
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
            // The start is over, so its token is no longer valid.
            self.start_token = None;
        }
        if status.is_terminal() {
            self.finished_at = Some(now);
        }
    }
}

/// Returns a status in the JSON form of the audit.
pub fn status_json(status: Status) -> String {
    format!("{{\"status\":\"{status}\"}}")
}
