//! The maps.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::limits::Limit;
use windrow_core::business::{HookKind, Hooks};
use windrow_core::dataset::{GenerationNo, Pointer, Publishing};
use windrow_core::execution::Horizon;
use windrow_core::ids::{
    CheckpointSeq, ClaimId, Epoch, ItemIndex, RunNo, ScheduleId, SessionId, ShardId, StoreId, TaskId, WallMs,
};
use windrow_core::items::counters::Counters;
use windrow_core::items::stretches::Stretches;
use windrow_core::items::verdict::{FailingItem, Outage};
use windrow_core::limit::Bounds;
use windrow_core::meter::metering::Metering;
use windrow_core::shards::{Pause, Slow};
use windrow_core::stats::daily::{Cells, Settled, UtcDay};
use windrow_core::task::Tuning;
use windrow_core::task::failed_codes::FailedCodes;
use windrow_core::task::lifecycle::CutOff;
use windrow_core::task::lifecycle::{Desired, ShardState, Status, StopReason, TaskResult};
use windrow_core::task::supply::Intake;
use windrow_engine::ports::datasets::store::{Generation, SinkView};
use windrow_engine::ports::handling::data_log::{DataLogLine, DropReason, NumberedLine};
use windrow_engine::ports::ownership::found_store::FoundRow;
use windrow_engine::ports::ownership::run_store::LeftBy;
use windrow_engine::ports::ownership::session_store::SessionFace;
use windrow_engine::ports::schedules::store::{Fire, Schedule};
use windrow_engine::ports::sources::append::NewBlock;
use windrow_engine::ports::sources::store::IndexedSource;
use windrow_engine::ports::tasks::results::ItemOutput;
use windrow_engine::ports::tasks::store::{Actor, AuditEntry, FailureGroup, FireKey, NewTask};

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) id: StoreId,
    pub(super) businesses: BTreeSet<String>,
    /// What businesses want to hear.
    pub(super) hooks: BTreeMap<String, Hooks>,
    /// The hook calls that changes left, in their order.
    pub(super) outbox: Vec<LeftCall>,
    pub(super) calls_left: i64,
    /// Every start token by its hash: its task and start.
    pub(super) start_tokens: HashMap<String, (TaskId, u32)>,
    /// What the running tasks of a business may do together.
    pub(super) bounds: BTreeMap<String, Bounds>,
    /// Limits in units of named limits.
    pub(super) meterings: BTreeMap<String, Metering>,
    /// What each session has of that.
    pub(super) limits: BTreeMap<String, Limit>,
    pub(super) tasks: BTreeMap<TaskId, Task>,
    /// The highest number that a task ever had; none is used again.
    pub(super) tasks_made: i64,
    /// Idempotency keys by business.
    pub(super) keys: HashMap<(String, String), (NewTask, TaskId)>,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) witness: Option<String>,
    pub(super) sources: BTreeMap<i64, (IndexedSource, Vec<Vec<u8>>)>,
    pub(super) sources_made: i64,
    /// Oldest first.
    pub(super) log: Vec<NumberedLine>,
    pub(super) lines_made: i64,
    pub(super) lines_dropped: BTreeMap<(TaskId, DropReason), u64>,
    pub(super) audit: Vec<(Option<TaskId>, AuditEntry)>,
    pub(super) datasets: BTreeMap<String, Dataset>,
    pub(super) datasets_made: i64,
    /// Which datasets are copied, by their numbers.
    pub(super) sinks: BTreeMap<i64, StoredSink>,
    /// Results of tasks that are gone, which a generation owns.
    pub(super) owned: BTreeMap<TaskId, Outputs>,
    /// Keys of generations, by the write of a claim.
    pub(super) keys_written: BTreeMap<(TaskId, Epoch, u32), Vec<(u64, ItemIndex)>>,
    pub(super) schedules: BTreeMap<ScheduleId, StoredSchedule>,
    pub(super) schedules_made: i64,
    pub(super) fires: BTreeMap<(ScheduleId, WallMs), StoredFire>,
    /// What shards settled in each day.
    pub(super) shard_days: BTreeMap<(ShardId, UtcDay), Settled>,
    /// What deleted tasks did.
    pub(super) business_days: Cells,
    /// What autopilots found.
    pub(super) found: BTreeMap<ShardId, FoundRow>,
}

#[derive(Clone, Debug)]
pub(super) struct StoredSchedule {
    pub(super) schedule: Schedule,
    /// When its next fire was set.
    pub(super) armed_at: WallMs,
}

#[derive(Clone, Debug)]
pub(super) struct StoredFire {
    pub(super) fire: Fire,
    /// Until when a pending one is somebody's.
    pub(super) lease_until: WallMs,
}

/// By shard, epoch of the run, and number there.
pub(super) type Outputs = BTreeMap<(u32, Epoch, u32), Vec<ItemOutput>>;

#[derive(Clone, Debug)]
pub(super) struct Dataset {
    pub(super) id: i64,
    pub(super) business: String,
    pub(super) keep: u32,
    pub(super) last: GenerationNo,
    pub(super) pointer: Pointer,
    pub(super) published_at: Option<WallMs>,
    pub(super) version: u64,
    pub(super) created_at: WallMs,
    pub(super) updated_at: WallMs,
    pub(super) generations: BTreeMap<GenerationNo, (Generation, Option<Box<str>>)>,
}

/// A dataset that is, or was, copied for readers.
#[derive(Clone, Debug)]
pub(super) struct StoredSink {
    pub(super) name: String,
    pub(super) is_on: bool,
    pub(super) is_clean: bool,
    pub(super) view: SinkView,
    pub(super) epoch: u64,
    pub(super) lease_until: WallMs,
    pub(super) due_at: WallMs,
    pub(super) attempts: u32,
}

/// A hook call that a change left to be delivered.
#[derive(Clone, Debug)]
pub(super) struct LeftCall {
    pub(super) task: TaskId,
    pub(super) start_no: u32,
    pub(super) kind: HookKind,
    pub(super) body: serde_json::Value,
    pub(super) delivery: String,
    pub(super) expires_at: WallMs,
    pub(super) id: i64,
    pub(super) state: CallState,
    pub(super) created_at: WallMs,
    pub(super) due_at: WallMs,
    pub(super) attempts: u32,
    pub(super) last_error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallState {
    Due,
    Done,
    Dead,
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) node: String,
    pub(super) heartbeat: i64,
    pub(super) fenced: bool,
    pub(super) lease_duration: Duration,
    pub(super) version: String,
    pub(super) ckpt_version_max: u8,
    pub(super) started_at: WallMs,
    pub(super) face: SessionFace,
    /// People want that its node hands its work over.
    pub(super) drain: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) new: NewTask,
    pub(super) fire: Option<FireKey>,
    pub(super) status: Status,
    pub(super) status_reason: Option<String>,
    pub(super) status_text: Option<String>,
    pub(super) since: WallMs,
    pub(super) next_at: Option<WallMs>,
    pub(super) desired: Desired,
    pub(super) tuning: Tuning,
    pub(super) control_rev: u64,
    pub(super) version: u64,
    pub(super) start_no: u32,
    pub(super) result: Option<TaskResult>,
    pub(super) stop_reason: Option<StopReason>,
    pub(super) created_at: WallMs,
    pub(super) queued_at: WallMs,
    pub(super) started_at: Option<WallMs>,
    pub(super) finished_at: Option<WallMs>,
    pub(super) failed_codes: FailedCodes,
    pub(super) skips: Stretches,
    pub(super) cut_off: CutOff,
    pub(super) pause: Option<Pause>,
    pub(super) slow: Option<Slow>,
    pub(super) finish_at: Option<ItemIndex>,
    pub(super) awaiting_until: Option<WallMs>,
    /// The hash of the present start's token; none once that start is over.
    pub(super) start_token: Option<String>,
    pub(super) shards: Vec<Shard>,
    pub(super) items: BTreeMap<ItemIndex, Item>,
    pub(super) groups: BTreeMap<String, FailureGroup>,
    pub(super) results: Outputs,
    pub(super) publishing: Option<Publishing>,
    pub(super) intake: Option<Intake>,
    pub(super) appended: BTreeMap<ItemIndex, Block>,
}

/// Items that were added to a task together.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) block: NewBlock,
    pub(super) at: WallMs,
    /// Only its key is kept.
    pub(super) is_forgotten: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Shard {
    pub(super) no: u32,
    pub(super) first: ItemIndex,
    /// One past the last index that is to be done; lower than `range_end` after finishing early.
    pub(super) end: ItemIndex,
    pub(super) range_end: ItemIndex,
    pub(super) state: ShardState,
    pub(super) run: RunNo,
    pub(super) epoch: Epoch,
    pub(super) claim: Option<ClaimId>,
    pub(super) session: Option<SessionId>,
    pub(super) seq: CheckpointSeq,
    pub(super) watermark: ItemIndex,
    pub(super) high_water: ItemIndex,
    pub(super) horizon: Horizon,
    pub(super) counters: Counters,
    pub(super) blob: Vec<u8>,
    pub(super) results: u64,
    pub(super) stalls: u32,
    pub(super) recoveries: u32,
    /// Watermark at the last claim; none forgives: the next claim is no stall.
    pub(super) claimed_at: Option<ItemIndex>,
    pub(super) not_before: WallMs,
    pub(super) updated_at: WallMs,
    /// The node that people want it on, and until when others leave it to that one.
    pub(super) moves: Option<(String, WallMs)>,
    /// As the table has it.
    pub(super) share: Option<i64>,
    pub(super) outage: Option<Outage>,
    /// The node of its newest run.
    pub(super) node: Option<String>,
    /// The node that gave it back calmly, until the next claim.
    pub(super) left_by: Option<LeftBy>,
}

impl Shard {
    /// One past the highest index that a run which is over may have sent.
    pub(super) fn may_have_left(&self) -> ItemIndex {
        self.horizon.may_leave.max(self.high_water)
    }

    /// How many items at most had left without being saved as settled.
    pub(super) fn may_repeat(&self) -> u64 {
        let left = self.may_have_left().min(self.end).0 - self.first.0;
        left.saturating_sub(self.counters.settled())
    }
}

#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) shard: u32,
    pub(super) state: ItemState,
    pub(super) retrying: FailingItem,
    pub(super) first_at: WallMs,
    /// The group and the place in it; only of failed ones.
    pub(super) group: Option<(String, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemState {
    Retrying,
    Parked(WallMs),
    Failed,
}

impl State {
    pub(super) fn new(id: StoreId) -> State {
        State {
            id,
            businesses: BTreeSet::new(),
            hooks: BTreeMap::new(),
            outbox: Vec::new(),
            calls_left: 0,
            start_tokens: HashMap::new(),
            bounds: BTreeMap::new(),
            meterings: BTreeMap::new(),
            limits: BTreeMap::new(),
            tasks: BTreeMap::new(),
            tasks_made: 0,
            keys: HashMap::new(),
            sessions: BTreeMap::new(),
            witness: None,
            sources: BTreeMap::new(),
            sources_made: 0,
            log: Vec::new(),
            lines_made: 0,
            lines_dropped: BTreeMap::new(),
            audit: Vec::new(),
            datasets: BTreeMap::new(),
            datasets_made: 0,
            sinks: BTreeMap::new(),
            owned: BTreeMap::new(),
            keys_written: BTreeMap::new(),
            schedules: BTreeMap::new(),
            schedules_made: 0,
            fires: BTreeMap::new(),
            shard_days: BTreeMap::new(),
            business_days: Cells::new(),
            found: BTreeMap::new(),
        }
    }

    /// Whether a session exists and isn't fenced.
    pub(super) fn is_live(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|session| !session.fenced)
    }

    pub(super) fn shard(&self, id: ShardId) -> Option<(&Task, &Shard)> {
        let task = self.tasks.get(&id.task)?;
        Some((task, task.shards.iter().find(|shard| shard.no == id.no)?))
    }

    pub(super) fn shard_mut(&mut self, id: ShardId) -> Option<&mut Shard> {
        self.tasks
            .get_mut(&id.task)?
            .shards
            .iter_mut()
            .find(|shard| shard.no == id.no)
    }

    /// Appends lines to the data log.
    pub(super) fn write_lines(&mut self, lines: impl IntoIterator<Item = DataLogLine>) {
        for line in lines {
            self.lines_made += 1;
            self.log.push((self.lines_made, line));
        }
    }

    /// Counts lines of a task that were not kept.
    pub(super) fn count_dropped(&mut self, task: TaskId, reason: DropReason, lines: u64) {
        *self.lines_dropped.entry((task, reason)).or_default() += lines;
    }

    pub(super) fn record(
        &mut self,
        task: Option<TaskId>,
        actor: &Actor,
        now: WallMs,
        action: String,
        change: (Option<String>, Option<String>),
    ) {
        let entry = AuditEntry {
            at: now,
            actor: actor.name.clone(),
            source: actor.source.to_owned(),
            action,
            reason: actor.reason.clone(),
            before: change.0,
            after: change.1,
        };
        self.audit.push((task, entry));
    }
}
