//! A task as every surface shows it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::ports::tasks::shard_view::ShardView;
use windrow_core::ids::{ItemCount, ItemIndex, TaskId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::life::{Life, ShardLife};
use windrow_core::settings::Auto;
use windrow_core::shards::Share;
use windrow_core::task::abandonment::Abandonments;
use windrow_core::task::lifecycle::{CutOff, ShardState, Status, StopReason, TaskResult, Wish};
use windrow_core::task::{Canary, Tuning};

/// A task and its progress as every surface shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// `t42`.
    pub id: TaskId,
    /// The business's slug.
    pub business: String,
    /// The name, if it has one.
    pub name: Option<String>,
    /// Where it stands.
    pub status: Status,
    /// A machine slug, where the status needs a reason.
    pub status_reason: Option<String>,
    /// A sentence for people.
    pub status_text: Option<String>,
    /// Which items its present stop cut off.
    pub cut_off: CutOff,
    /// What it wants.
    pub wish: Wish,
    /// The revision of the live settings.
    pub control_rev: u64,
    /// Changes with each change of the row.
    pub version: u64,
    /// How many items.
    pub total: ItemCount,
    /// The saved counters over all shards; `in_flight` is 0.
    pub counters: Counters,
    /// The saved low water of the first shard that isn't done.
    pub low_water: ItemIndex,
    /// Its shards in the order of their ranges; one before the first start.
    pub shards: Vec<ShardView>,
    /// See [`crate::ports::tasks::store::NewTask::shards`].
    pub shards_wanted: Auto<NonZeroU32>,
    /// The live settings.
    pub tuning: Tuning,
    /// The parameters.
    pub params: Option<String>,
    /// The source's description.
    pub source: String,
    /// See [`crate::ports::tasks::store::NewTask::meaning`].
    pub meaning: u64,
    /// Only when finished.
    pub result: Option<TaskResult>,
    /// Only when stopping or stopped.
    pub stop_reason: Option<StopReason>,
    /// How often it was started.
    pub start_no: u32,
    /// When it was made.
    pub created_at: WallMs,
    /// When it was first started.
    pub started_at: Option<WallMs>,
    /// When it ended.
    pub finished_at: Option<WallMs>,
    /// Since when it has this status.
    pub since: WallMs,
    /// Only when recovering: when the first of its shards is tried again.
    pub next_at: Option<WallMs>,
    /// See [`crate::ports::tasks::store::NewTask::skip_first`].
    pub skip_first: ItemIndex,
    /// See [`crate::ports::tasks::store::NewTask::labels`].
    pub labels: BTreeMap<String, String>,
    /// See [`crate::ports::tasks::store::NewTask::priority`].
    pub priority: i32,
    /// The business's pool when the task was made.
    pub pool: String,
    /// See [`crate::ports::tasks::store::NewTask::send_params`].
    pub send_params: bool,
    /// See [`crate::ports::tasks::store::NewTask::limits`].
    pub limits: Vec<String>,
    /// See [`crate::ports::tasks::store::NewTask::canary`]; none once it is done.
    pub canary: Option<Canary>,
    /// See [`crate::ports::tasks::store::NewTask::start_at`].
    pub start_at: Option<WallMs>,
    /// See [`crate::ports::tasks::store::NewTask::deadline`].
    pub deadline: Option<WallMs>,
    /// See [`crate::ports::tasks::store::NewTask::parent`].
    pub parent: Option<TaskId>,
    /// Until when the business may answer the before-run hook; only when awaiting it.
    pub awaiting_until: Option<WallMs>,
    /// The codes with which items are given up that wait.
    pub abandonments: Abandonments,
    /// Where an early finish cuts the task, once it was asked for.
    pub finish_at: Option<ItemIndex>,
    /// How often its most troubled shard recovered by itself since the task was last started.
    pub recoveries: u32,
}

/// What is shown of a task and plays no part in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRest {
    /// The business's slug.
    pub business: String,
    /// See [`TaskView::version`].
    pub version: u64,
    /// When it was made.
    pub created_at: WallMs,
    /// See [`TaskView::pool`].
    pub pool: String,
    /// See [`crate::ports::tasks::store::NewTask::send_params`].
    pub send_params: bool,
    /// See [`crate::ports::tasks::store::NewTask::limits`].
    pub limits: Vec<String>,
    /// See [`crate::ports::tasks::store::NewTask::parent`].
    pub parent: Option<TaskId>,
}

impl TaskView {
    /// A task whose shards name their sessions, and no nodes yet.
    pub fn of(life: Life, rest: TaskRest) -> TaskView {
        let (status_reason, status_text) = life.note.as_ref().map_or((None, None), |note| {
            (note.reason.clone(), Some(life.cut_off.told_after(&note.text)))
        });
        TaskView {
            counters: life.counters(),
            low_water: low_water(&life.shards),
            shards: life.shards.iter().map(shard).collect(),
            next_at: life.shards.iter().filter_map(next_at).min(),
            recoveries: life
                .shards
                .iter()
                .map(|shard| shard.recoveries)
                .max()
                .unwrap_or_default(),
            id: life.id,
            name: life.name,
            status: life.status,
            status_reason,
            status_text,
            cut_off: life.cut_off,
            wish: life.wish,
            control_rev: life.control_rev,
            total: life.total,
            shards_wanted: life.shards_wanted,
            tuning: life.tuning,
            params: life.params,
            source: life.source,
            meaning: life.meaning,
            result: life.result,
            stop_reason: life.stop_reason,
            start_no: life.start_no,
            started_at: life.started_at,
            finished_at: life.finished_at,
            since: life.since,
            skip_first: life.skip_first,
            labels: life.labels,
            priority: life.priority,
            canary: life.canary,
            abandonments: life.abandonments,
            start_at: life.start_at,
            deadline: life.deadline,
            awaiting_until: life.awaiting_until,
            finish_at: life.finish_at,
            business: rest.business,
            version: rest.version,
            created_at: rest.created_at,
            pool: rest.pool,
            send_params: rest.send_params,
            limits: rest.limits,
            parent: rest.parent,
        }
    }
}

fn shard(shard: &ShardLife) -> ShardView {
    ShardView {
        no: shard.no,
        first: shard.first,
        end: shard.end,
        range_end: shard.range_end,
        state: shard.state,
        session: shard.session,
        node: None,
        run: shard.run,
        low_water: shard.low_water,
        high_water: shard.high_water,
        counters: Counters {
            excluded: shard.range_end.0 - shard.end.0,
            ..shard.counters
        },
        share: (shard.state != ShardState::Done).then(|| Share::read(shard.share)),
        next_at: next_at(shard),
    }
}

/// When a shard that recovers may be claimed again.
fn next_at(shard: &ShardLife) -> Option<WallMs> {
    (shard.state == ShardState::Recovering).then_some(shard.not_before)
}

/// The lowest of an unfinished shard; where none is left, the end of the last one.
fn low_water(shards: &[ShardLife]) -> ItemIndex {
    let open = shards.iter().find(|shard| shard.state != ShardState::Done);
    open.or_else(|| shards.last())
        .map_or(ItemIndex(0), |shard| shard.low_water)
}
