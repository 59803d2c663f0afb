//! Windows of a task, item by item.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::page::SilentNode;

/// The windows of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskWindow {
    /// One for each shard.
    pub shards: Vec<ShardWindow>,
    /// Why this is not how things stand now, if so: `not_running_here` (some of it runs nowhere, and is as it was saved),
    /// `unreachable` (the same, since its node can't be asked), `checkpoint_corrupt` (what was saved can't be read).
    pub reason: Option<String>,
    /// Nodes that run a part of it and can't be asked.
    pub unreachable: Vec<SilentNode>,
}

/// The window of a shard.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ShardWindow {
    /// The shard's number.
    pub shard: u32,
    /// The node that runs it; null while nobody does, or when it can't be asked.
    pub node: Option<String>,
    /// Below it every item is settled or parked.
    pub watermark: u64,
    /// One past the highest index dispatched.
    pub high_water: u64,
    /// The window's size; null where it doesn't run.
    pub capacity: Option<u32>,
    /// Indexes of a cell.
    pub items_per_cell: u64,
    /// What the indexes from watermark on are doing, as letters with how many cells in a row have them: `F1S411P3`. `S`
    /// settled (where it was only saved: or parked), `P` not given out, `F` with the handler, `K` parked (waiting outside of
    /// the window for another attempt), `R` waiting for another attempt, `A` given up (once that is saved). A cell of
    /// several indexes has the last one of this list that any of them has.
    pub cells: String,
    /// The item that watermark waits for; null when nothing is given out.
    pub head: Option<WindowHead>,
}

/// The item at watermark.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct WindowHead {
    /// Its index.
    pub index: u64,
    /// The attempt that is out, or the last one; 0 when there was none.
    pub attempt: u32,
    /// For how long watermark has stood there.
    pub age_seconds: f64,
    /// `in_flight`, `retry_wait` or `pending`.
    pub state: String,
}
