//! A run beside the writing of its results: it stops where they can't be written, and says once, before it is full, that
//! they won't fit where they are kept.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use super::{ResultsOut, partial};
use crate::fault::Fault;
use crate::output::table::human::counted;
use crate::run::JobRun;
use crate::run::watch::{End, Watch};
use crate::signals::Signals;
use windrow_core::ids::TaskId;
use windrow_engine::ports::tasks::store::{TaskStore, TaskView};
use windrow_server::service::results::{Results, SHORTAGE_ADVICE};

/// Between two looks. (The estimate changes slowly, and a disk of which that isn't true is full before anybody reads it.)
const LOOK_EVERY: Duration = Duration::from_secs(5);

impl JobRun<'_> {
    /// Follows the task to its end; stops it where its results can't be written any more.
    pub(in crate::run) async fn follow(
        &self,
        watch: &Watch<'_>,
        task: TaskView,
        signals: &mut Signals,
        results: &mut Option<ResultsOut>,
    ) -> Result<End, Fault> {
        let id = task.id;
        let mut following = std::pin::pin!(watch.follow(task, signals));
        let broken = async {
            match results {
                Some(results) => results.broken().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            end = &mut following => end,
            never = self.warn_of_room(id) => match never {},
            fault = broken => {
                let why = fault.because.first().map(String::as_str).unwrap_or_default();
                let screen = &self.shell.screen;
                screen.must_say(&format!("{} ({why}), so the job stops; nothing is lost", fault.what));
                watch.stop(id).await?;
                following.await?;
                Err(fault)
            }
        }
    }

    pub(in crate::run) fn tell_results(&self, written: Option<u64>) {
        let Some(written) = written else { return };
        let place = self.args.results.out.as_deref().unwrap_or_else(|| Path::new("-"));
        let results = counted(written, "result");
        let half = partial(place);
        self.say(&match half.exists() {
            true => format!("{results} written to {} so far, in index order", half.display()),
            false => format!("{results} written to {}", place.display()),
        });
    }

    /// Looks until there is something to say. Never ends; cancel safe.
    async fn warn_of_room(&self, id: TaskId) -> Infallible {
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
