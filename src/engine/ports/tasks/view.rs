//! Task as every surface shows it: its life as stored, and facts that play no part in that.

use std::collections::BTreeMap;
use std::ops::Deref;

use crate::ports::tasks::create::FireKey;
use windrow_core::business::POOL_DEFAULT;
use windrow_core::ids::{ItemIndex, TaskId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::life::{Life, ShardLife};
use windrow_core::task::lifecycle::ShardState;

/// Task and its progress as every surface shows them. The members of its life are read through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Life of the task, with its shards in the order of their ranges: one before the first start.
    pub life: Life,
    /// Slug of the business.
    pub business: String,
    /// Version of the row, which changes with each change of it.
    pub version: u64,
    /// Time at which it was made.
    pub created_at: WallMs,
    /// Pool of the business when the task was made.
    pub pool: String,
    /// Task whose failures it redrives; see [`crate::ports::tasks::store::NewTask::parent`].
    pub parent: Option<TaskId>,
    /// Fire of a schedule that made it.
    pub fire: Option<FireKey>,
    /// Reason as a machine slug, if the status needs one.
    pub status_reason: Option<String>,
    /// Reason as a sentence for people.
    pub status_text: Option<String>,
    /// Counters over all shards; saved ones have nothing in flight.
    pub counters: Counters,
    /// Watermark of the first shard that isn't done.
    pub watermark: ItemIndex,
    /// Names of the nodes that own its shards, by the shards' numbers; only if a single task was read or commanded.
    pub owners: BTreeMap<u32, String>,
    /// Time at which the first of its shards is tried again; only when recovering.
    pub next_at: Option<WallMs>,
    /// Automatic recoveries of the shard that has most of them, since the task was last started.
    pub recoveries: u32,
}

impl Deref for TaskView {
    type Target = Life;

    fn deref(&self) -> &Life {
        &self.life
    }
}

impl TaskView {
    /// Returns a view of a life alone; a caller that reads it from a store adds the other facts.
    pub fn of(life: Life) -> TaskView {
        let note = life.note.as_ref();
        TaskView {
            business: String::new(),
            version: 0,
            created_at: WallMs(0),
            pool: POOL_DEFAULT.to_owned(),
            parent: None,
            fire: None,
            status_reason: note.and_then(|note| note.reason.clone()),
            status_text: note.map(|note| life.cut_off.told_after(&note.text)),
            counters: life.counters(),
            watermark: watermark(&life.shards),
            owners: BTreeMap::new(),
            next_at: life.shards.iter().filter_map(ShardLife::next_at).min(),
            recoveries: life
                .shards
                .iter()
                .map(|shard| shard.recoveries)
                .max()
                .unwrap_or_default(),
            life,
        }
    }
}

/// Returns the watermark of the first unfinished shard; if all are done, the end of the last one.
fn watermark(shards: &[ShardLife]) -> ItemIndex {
    let open = shards.iter().find(|shard| shard.state != ShardState::Done);
    open.or_else(|| shards.last())
        .map_or(ItemIndex(0), |shard| shard.watermark)
}
