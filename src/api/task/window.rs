//! Windows of a task, item by item.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::page::SilentNode;

/// Windows of a task, by shard.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskWindow {
    /// One window per shard.
    pub shards: Vec<ShardWindow>,
    /// Reason why this isn't the current state, if so: `not_running_here` (part of it isn't running and is shown as
    /// saved), `unreachable` (the same, because its node can't be asked), `checkpoint_corrupt` (the saved state can't
    /// be read).
    pub reason: Option<String>,
    /// Nodes that run part of it and can't be asked.
    pub unreachable: Vec<SilentNode>,
}

/// Window of one shard.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ShardWindow {
    /// Number of the shard.
    pub shard: u32,
    /// Node that runs it; null if none does or it can't be asked.
    pub node: Option<String>,
    /// Watermark: every item below it is settled or parked.
    pub watermark: u64,
    /// Highest dispatched index plus one.
    pub high_water: u64,
    /// Window size; null if the shard isn't running.
    pub capacity: Option<u32>,
    /// Number of indexes per cell.
    pub items_per_cell: u64,
    /// States of the indexes from the watermark on: letters, each followed by its number of consecutive cells, e.g.
    /// `F1S411P3`. `S` settled (in saved state, settled or parked), `P` not dispatched, `F` in flight, `K` parked
    /// (waiting outside the window for a retry), `R` waiting for a retry, `A` failed (once that is saved). A cell of
    /// several indexes shows whichever of these states comes last in this list.
    pub cells: String,
    /// Item that holds the watermark back; null if nothing is dispatched.
    pub head: Option<WindowHead>,
}

/// The item at the watermark.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct WindowHead {
    /// Index of the item.
    pub index: u64,
    /// Attempt in flight, or else the last one; 0 if there was none.
    pub attempt: u32,
    /// Time that the watermark has been there, in seconds.
    pub age_seconds: f64,
    /// `in_flight`, `retry_wait` or `pending`.
    pub state: String,
}
