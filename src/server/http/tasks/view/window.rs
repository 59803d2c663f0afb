//! `GET /v1/tasks/{task}/window`: what every item is doing that may be in motion.

use std::num::NonZeroU32;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::http::App;
use crate::http::answer::silent::{SilentJson, silent};
use crate::http::guard::Params;
use crate::http::problem::HttpResult;
use crate::http::tasks::path::PathTask;
use crate::service::ServiceError;
use crate::service::tasks::window::{Cell, Head, ShardWindow, WindowOrigin};
use windrow_engine::ports::ownership::peers::Unreachable;

/// Cells of a shard when nothing is said: the width of the usual window.
const CELLS_DEFAULT: u32 = 4096;
/// Cells of a shard at most. (What a page draws one by one.)
const CELLS_MAX: u32 = 20_000;

/// How fine.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WindowQuery {
    /// Cells of a shard at most; without it 4096. A wider window has several items in each.
    #[param(minimum = 1, maximum = 20000)]
    cells: Option<u32>,
}

/// The windows of a task.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskWindow)]
pub(crate) struct WindowJson {
    /// One for each shard.
    shards: Vec<ShardJson>,
    /// Why this is not how things stand now, if so: `not_running_here` (some of it runs nowhere, and is as it was saved),
    /// `unreachable` (the same, since its node can't be asked), `checkpoint_corrupt` (what was saved can't be read).
    reason: Option<&'static str>,
    /// Nodes that run a part of it and can't be asked.
    unreachable: Vec<SilentJson>,
}

/// The window of a shard.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ShardWindow)]
pub(crate) struct ShardJson {
    /// The shard's number.
    shard: u32,
    /// The node that runs it; null while nobody does, or when it can't be asked.
    node: Option<String>,
    /// Below it every item is settled or parked.
    low_water: u64,
    /// One past the highest index dispatched.
    high_water: u64,
    /// The window's size; null where it doesn't run.
    capacity: Option<u32>,
    /// Indexes of a cell.
    items_per_cell: u64,
    /// What the indexes from low water on are doing, as letters with how many cells in a row have them: `F1S411P3`. `S`
    /// settled (where it was only saved: or parked), `P` not given out, `F` with the handler, `K` parked (waiting outside of
    /// the window for another attempt), `R` waiting for another attempt, `A` given up (once that is saved). A cell of
    /// several indexes has the last one of this list that any of them has.
    cells: String,
    /// The item that low water waits for; null when nothing is given out.
    head: Option<HeadJson>,
}

/// The item at low water.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WindowHead)]
pub(crate) struct HeadJson {
    /// Its index.
    index: u64,
    /// The attempt that is out, or the last one; 0 when there was none.
    attempt: u32,
    /// For how long low water has stood there.
    age_seconds: f64,
    /// `in_flight`, `retry_wait` or `pending`.
    state: &'static str,
}

/// See the window of a task.
///
/// Where its items stand that may be in motion, one shard at a time, and which one low water waits for.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/window", tag = "tasks", operation_id = "task_window", params(WindowQuery),
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = WindowJson))
)]
pub(crate) async fn window(
    State(app): State<App>,
    PathTask(task): PathTask,
    Params(query): Params<WindowQuery>,
) -> HttpResult<Json<WindowJson>> {
    let cells =
        NonZeroU32::new(query.cells.unwrap_or(CELLS_DEFAULT)).filter(|cells| cells.get() <= CELLS_MAX);
    let fault = || ServiceError::invalid("cells", format!("a window has 1 to {CELLS_MAX} cells"));
    let windows = &app.service.windows;
    let (windows, unreachable) = windows.of_task(task.id, cells.ok_or_else(fault)?).await?;
    Ok(Json(WindowJson {
        shards: windows.iter().map(ShardJson::of).collect(),
        reason: reason(&windows, &unreachable),
        unreachable: silent(&unreachable),
    }))
}

fn reason(windows: &[ShardWindow], unreachable: &[Unreachable]) -> Option<&'static str> {
    let any = |seen| windows.iter().any(|window| window.seen == seen);
    match (any(WindowOrigin::Damaged), any(WindowOrigin::Saved)) {
        (true, _) => Some("checkpoint_corrupt"),
        (false, true) if !unreachable.is_empty() => Some("unreachable"),
        (false, true) => Some("not_running_here"),
        (false, false) => None,
    }
}

impl ShardJson {
    fn of(window: &ShardWindow) -> ShardJson {
        ShardJson {
            shard: window.shard.no,
            node: window.node.clone(),
            low_water: window.low_water.0,
            high_water: window.high_water.0,
            capacity: window.size,
            items_per_cell: window.per_cell,
            cells: run_lengths(&window.cells),
            head: window.head.map(head),
        }
    }
}

fn head(head: Head) -> HeadJson {
    HeadJson {
        index: head.index.0,
        attempt: head.attempt,
        age_seconds: head.age.as_secs_f64(),
        state: match head.cell {
            Cell::InFlight => "in_flight",
            Cell::Retry => "retry_wait",
            Cell::Free | Cell::Settled | Cell::Parked | Cell::Abandoned => "pending",
        },
    }
}

/// `F1S411P3`.
fn run_lengths(cells: &[Cell]) -> String {
    let mut text = String::new();
    for same in cells.chunk_by(|one, next| one == next) {
        let letter = match same[0] {
            Cell::Settled => 'S',
            Cell::Free => 'P',
            Cell::InFlight => 'F',
            Cell::Parked => 'K',
            Cell::Retry => 'R',
            Cell::Abandoned => 'A',
        };
        text.push(letter);
        text.push_str(&same.len().to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_in_a_row_are_counted() {
        use Cell::{Abandoned, Free, InFlight, Parked, Retry, Settled};
        assert_eq!(run_lengths(&[]), "");
        let cells = [InFlight, Settled, Settled, Parked, Retry, Abandoned, Free, Free];
        assert_eq!(run_lengths(&cells), "F1S2K1R1A1P2");
        assert_eq!(run_lengths(&[Settled; 411]), "S411");
    }
}
