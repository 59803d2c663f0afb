//! `GET /v1/tasks/{task}/window`: state of every item in the dispatch window.

use std::num::NonZeroU32;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::http::answer::Of;
use crate::http::answer::silent::silent;
use crate::http::front::App;
use crate::http::guard::Params;
use crate::http::problem::HttpResult;
use crate::http::tasks::path::PathTask;
use crate::service::ServiceError;
use crate::service::tasks::window::{Cell, Head, ShardWindow, WindowOrigin};
use windrow_engine::ports::ownership::peers::Unreachable;

/// Default number of cells per shard: the size of the usual window.
const CELLS_DEFAULT: u32 = 4096;
/// Maximum number of cells per shard, as many as a page can draw one by one.
const CELLS_MAX: u32 = 20_000;

/// Resolution of the window.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WindowQuery {
    /// Maximum number of cells per shard; default 4096. In a wider window, each cell covers several items.
    #[param(minimum = 1, maximum = 20000)]
    cells: Option<u32>,
}

/// Get the window of a task.
///
/// Returns the state of each item in the dispatch window, shard by shard, and the item that holds back the watermark.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/window", tag = "tasks", operation_id = "task_window", params(WindowQuery),
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = api::TaskWindow))
)]
pub(crate) async fn window(
    State(app): State<App>,
    PathTask(task): PathTask,
    Params(query): Params<WindowQuery>,
) -> HttpResult<Json<api::TaskWindow>> {
    let cells =
        NonZeroU32::new(query.cells.unwrap_or(CELLS_DEFAULT)).filter(|cells| cells.get() <= CELLS_MAX);
    let fault = || ServiceError::invalid("cells", format!("must be 1 to {CELLS_MAX} cells"));
    let windows = &app.service.windows;
    let (windows, unreachable) = windows.of_task(task.id, cells.ok_or_else(fault)?).await?;
    Ok(Json(api::TaskWindow {
        shards: windows.iter().map(api::ShardWindow::of).collect(),
        reason: reason(&windows, &unreachable).map(str::to_owned),
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

impl Of<&ShardWindow> for api::ShardWindow {
    fn of(window: &ShardWindow) -> Self {
        api::ShardWindow {
            shard: window.shard.no,
            node: window.node.clone(),
            watermark: window.watermark.0,
            high_water: window.high_water.0,
            capacity: window.size,
            items_per_cell: window.per_cell,
            cells: run_lengths(&window.cells),
            head: window.head.map(head),
        }
    }
}

fn head(head: Head) -> api::WindowHead {
    api::WindowHead {
        index: head.index.0,
        attempt: head.attempt,
        age_seconds: head.age.as_secs_f64(),
        state: match head.cell {
            Cell::InFlight => "in_flight".to_owned(),
            Cell::Retry => "retry_wait".to_owned(),
            Cell::Free | Cell::Settled | Cell::Parked | Cell::Failed => "pending".to_owned(),
        },
    }
}

/// Encodes cells as run lengths, such as `F1S411P3`.
fn run_lengths(cells: &[Cell]) -> String {
    let mut text = String::new();
    for same in cells.chunk_by(|one, next| one == next) {
        let letter = match same[0] {
            Cell::Settled => 'S',
            Cell::Free => 'P',
            Cell::InFlight => 'F',
            Cell::Parked => 'K',
            Cell::Retry => 'R',
            Cell::Failed => 'A',
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
        use Cell::{Failed, Free, InFlight, Parked, Retry, Settled};
        assert_eq!(run_lengths(&[]), "");
        let cells = [InFlight, Settled, Settled, Parked, Retry, Failed, Free, Free];
        assert_eq!(run_lengths(&cells), "F1S2K1R1A1P2");
        assert_eq!(run_lengths(&[Settled; 411]), "S411");
    }
}
