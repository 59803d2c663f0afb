//! Results that won't fit where they are kept: said once, before it is full.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::sleep;

use crate::run::JobRun;
use windrow_core::ids::TaskId;
use windrow_engine::ports::tasks::store::TaskStore;
use windrow_server::service::results::{Results, SHORTAGE_ADVICE};

/// Between two looks. (The estimate changes slowly, and a disk of which that isn't true is full before anybody reads it.)
const LOOK_EVERY: Duration = Duration::from_secs(5);

impl JobRun<'_> {
    /// Looks until there is something to say. Never ends; cancel safe.
    pub(super) async fn warn_of_room(&self, id: TaskId) -> Infallible {
        let results = Results::new(self.store.clone());
        while self.args.results.out.is_some() {
            sleep(LOOK_EVERY).await;
            // What can't be read now is read the next time; whoever writes to the store tells what is wrong with it.
            let Ok(Some(task)) = TaskStore::get(&*self.store, id).await else {
                continue;
            };
            let Ok(Some(room)) = results.room(&task).await else {
                continue;
            };
            if let Some(short) = room.shortage() {
                let screen = &self.shell.screen;
                screen.must_say(&format!("warning: {short}; try: {SHORTAGE_ADVICE}"));
                break;
            }
        }
        std::future::pending().await
    }
}
