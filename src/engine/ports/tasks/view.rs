//! A task as every surface shows it: its life as it is stored, and what plays no part in that.

use std::collections::BTreeMap;
use std::ops::Deref;

use crate::ports::tasks::create::FireKey;
use windrow_core::business::POOL_DEFAULT;
use windrow_core::ids::{ItemIndex, TaskId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::life::{Life, ShardLife};
use windrow_core::task::lifecycle::ShardState;

/// A task and its progress as every surface shows them. What its life says is read through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Its life, with its shards in the order of their ranges: one before the first start.
    pub life: Life,
    /// The business's slug.
    pub business: String,
    /// Changes with each change of the row.
    pub version: u64,
    /// When it was made.
    pub created_at: WallMs,
    /// The business's pool when the task was made.
    pub pool: String,
    /// See [`crate::ports::tasks::store::NewTask::parent`].
    pub parent: Option<TaskId>,
    /// The fire of a schedule that made it.
    pub fire: Option<FireKey>,
    /// A machine slug, where the status needs a reason.
    pub status_reason: Option<String>,
    /// A sentence for people.
    pub status_text: Option<String>,
    /// The counters over all shards; saved ones have nothing in flight.
    pub counters: Counters,
    /// The watermark of the first shard that isn't done.
    pub watermark: ItemIndex,
    /// The names of the nodes that own its shards, by the shards' numbers; where a single task was asked for or commanded.
    pub owners: BTreeMap<u32, String>,
    /// Only when recovering: when the first of its shards is tried again.
    pub next_at: Option<WallMs>,
    /// How often its most troubled shard recovered by itself since the task was last started.
    pub recoveries: u32,
}

impl Deref for TaskView {
    type Target = Life;

    fn deref(&self) -> &Life {
        &self.life
    }
}

impl TaskView {
    /// A view of a life alone: whoever reads it from a store adds what stands beside it there.
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

/// The lowest of an unfinished shard; where none is left, the end of the last one.
fn watermark(shards: &[ShardLife]) -> ItemIndex {
    let open = shards.iter().find(|shard| shard.state != ShardState::Done);
    open.or_else(|| shards.last())
        .map_or(ItemIndex(0), |shard| shard.watermark)
}
