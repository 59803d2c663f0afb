//! Stored and projected size of task results, and the free space.

use super::families as f;
use super::text::Page;
use crate::http::front::App;
use crate::service::results::Room;
use windrow_engine::ports::tasks::store::TaskView;

/// Returns the space used by unfinished tasks that keep results. Tasks whose results can't be read are left out.
pub(super) async fn rooms(app: &App, under_way: &[TaskView]) -> Vec<(String, Room)> {
    let mut rooms = Vec::new();
    for task in under_way {
        match app.service.results.room(task).await {
            Ok(room) => rooms.extend(room.map(|room| (task.id.to_string(), room))),
            Err(error) => tracing::debug!(%error, "reading results for metrics failed"),
        }
    }
    rooms
}

pub(super) fn write(page: &mut Page, rooms: &[(String, Room)]) {
    if let Some(free) = rooms.iter().find_map(|(_, room)| room.free) {
        page.one(f::RESULTS_FREE_BYTES, free);
    }
    let of = |part: fn(&Room) -> Option<u64>| {
        let known = rooms
            .iter()
            .filter_map(move |(task, room)| Some((task.as_str(), part(room)?)));
        known.collect::<Vec<_>>()
    };
    page.by(f::TASK_RESULTS_BYTES, "task", of(|room| room.stored));
    page.by(f::TASK_RESULTS_NEEDED_BYTES, "task", of(|room| room.needed));
}
