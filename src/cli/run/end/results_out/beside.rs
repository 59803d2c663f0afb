//! Supervision of a run while its results are written: stops it if they can't be written, and warns once if they
//! won't fit on the disk that keeps them.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use super::sink::partial;
use super::{ResultsOut, Written};
use crate::fault::Fault;
use crate::output::table::human::{self, counted};
use crate::run::JobRun;
use crate::run::watch::{End, Watch};
use crate::signals::Signals;
use windrow_core::ids::TaskId;
use windrow_core::items::output::OUTPUT_KEPT_MAX;
use windrow_engine::ports::tasks::store::{TaskStore, TaskView};
use windrow_server::service::results::{Results, SHORTAGE_ADVICE};

/// Interval between two checks. (The estimate changes slowly; on a disk where it doesn't, the warning would come too
/// late anyway.)
const LOOK_EVERY: Duration = Duration::from_secs(5);

impl JobRun<'_> {
    /// Follows the task to its end. Stops it if its results can't be written any more.
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
                let why = format!("{} ({why})", fault.what);
                screen.must_say(&format!("{why}, so the job stops; no data is lost"));
                watch.stops_for.set(why).ok();
                watch.stop(id).await?;
                following.await?;
                Err(fault)
            }
        }
    }

    /// Reports the number of results written, and why it may be below the number of succeeded items.
    pub(in crate::run) fn tell_results(&self, written: Option<Written>) {
        let Some(written) = written else { return };
        let place = self.args.results.out.as_deref().unwrap_or_else(|| Path::new("-"));
        let half = partial(place);
        if let Some(missing) = &written.missing {
            let screen = &self.shell.screen;
            screen.must_say(&format!("warning: {}", missing.of_all()));
        }
        if written.too_large > 0 {
            self.shell.screen.must_say(&too_large(written.too_large));
        }
        self.say(&match half.exists() {
            true => told(&written, &half.display().to_string(), " so far, in index order"),
            false => told(&written, &place.display().to_string(), ""),
        });
    }

    /// Checks the free space until a warning is due. Never returns; cancel safe.
    async fn warn_of_room(&self, id: TaskId) -> Infallible {
        let results = Results::new(self.store.clone());
        while self.args.results.out.is_some() {
            sleep(LOOK_EVERY).await;
            // A failed read is repeated next time; the writers to the store report its problems.
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

/// Returns the report, such as `260 results written to out.ndjson (300 with those of earlier runs); 40 items
/// succeeded without an output, …`.
fn told(written: &Written, place: &str, end: &str) -> String {
    let results = counted(written.now, "result");
    let all = match written.before {
        0 => String::new(),
        before => format!(
            " ({} with those of earlier runs)",
            human::count(before + written.now)
        ),
    };
    // Outputs that were too large have a sentence of their own.
    let without = match written
        .without
        .map(|items| items.saturating_sub(written.too_large))
    {
        None | Some(0) => String::new(),
        Some(items) => format!(
            "; {} succeeded without an output, so without a line",
            counted(items, "item")
        ),
    };
    format!("{results} written to {place}{all}{end}{without}")
}

fn too_large(items: u64) -> String {
    format!(
        "warning: the output of {} exceeds {} KiB and isn't kept; let the handler store such data \
            elsewhere and answer with its location",
        counted(items, "item"),
        OUTPUT_KEPT_MAX >> 10
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_told_with_what_was_there_and_what_has_no_line() {
        let written = |now, before, without| {
            let missing = None;
            let written = Written {
                now,
                before,
                without,
                too_large: 0,
                missing,
            };
            told(&written, "a.ndjson", "")
        };
        assert_eq!(written(3, 0, None), "3 results written to a.ndjson");
        assert_eq!(
            written(260, 40, Some(0)),
            "260 results written to a.ndjson (300 with those of earlier runs)"
        );
        assert_eq!(
            written(1, 0, Some(40)),
            "1 result written to a.ndjson; 40 items succeeded without an output, so without a line"
        );
    }
}
