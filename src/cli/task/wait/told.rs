//! Progress of a task during a wait: in place on a terminal, elsewhere as an occasional line.

use std::time::Duration;

use tokio::time::Instant;

use super::until::HOLD_MAX;
use crate::link::Link;
use crate::output::screen::Meter;
use crate::output::table::clean;
use crate::task::words;

/// Longest time that a node may hold back an answer while a user watches.
const HOLD_SHOWN: Duration = Duration::from_secs(1);
/// Time before the first line, since most waits are over by then.
const FIRST_AFTER: Duration = Duration::from_secs(5);
/// Upper bound of the growing interval between two lines.
const LINE_EVERY_MAX: Duration = Duration::from_secs(300);
/// Width of the progress bar. Unit: terminal cells.
const BAR_CELLS: usize = 24;

/// Progress display of a wait.
pub(crate) struct Told<'a> {
    link: &'a Link<'a>,
    meter: Meter,
    /// Time of the next line; `every` is the interval from it to the one after.
    next: Instant,
    every: Duration,
}

impl<'a> Told<'a> {
    /// Creates the display of a wait that begins now.
    pub(crate) fn new(link: &'a Link<'a>) -> Told<'a> {
        Told {
            link,
            meter: link.meter(),
            next: Instant::now() + FIRST_AFTER,
            every: FIRST_AFTER,
        }
    }

    /// Returns the time that a node may hold back its next answer.
    pub(crate) fn hold(&self) -> Duration {
        if self.meter.is_live() {
            return HOLD_SHOWN;
        }
        let left = self.next.saturating_duration_since(Instant::now());
        left.clamp(HOLD_SHOWN, HOLD_MAX)
    }

    /// Shows a task that hasn't reached the wanted state.
    pub(crate) fn show(&mut self, task: &api::Task) {
        if self.meter.is_live() {
            self.meter.show(&progress(task, Some(BAR_CELLS)));
        } else if Instant::now() >= self.next {
            self.every = (self.every * 2).min(LINE_EVERY_MAX);
            self.next = Instant::now() + self.every;
            self.link.say(&format!("waiting for {}", progress(task, None)));
        }
    }
}

/// Formats the progress as `t1  ▶ running  39.0%  389,939 / 1,000,000  498.7/500  ETA 21m`, with the reason for a
/// task that isn't running.
fn progress(task: &api::Task, bar: Option<usize>) -> String {
    let share = words::percent(task);
    let share = match bar {
        Some(cells) => format!("{} {share}", words::bar(task, cells)),
        None => share,
    };
    let pace = task.pace.actual_rate.filter(|_| task.status == "running");
    let mut parts = vec![
        task.id.clone(),
        words::status(task).0,
        share,
        words::done_of(task),
    ];
    parts.extend(pace.map(windrow_core::explain::rate_text));
    parts.extend(words::eta_text(task).map(|eta| format!("ETA {eta}")));
    parts.extend(task.status_text.as_deref().map(clean));
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_says_how_far_the_task_is_and_about_when_it_ends() {
        let mut task = api::Task {
            id: "t1".to_owned(),
            status: "running".to_owned(),
            total: 1000,
            pace: api::TaskPace {
                progress: api::TaskProgress {
                    settled: 400,
                    of: 1000,
                    percent: 40.0,
                },
                actual_rate: Some(5.0),
                eta_seconds: Some(120),
            },
            counts: api::TaskCounts {
                succeeded: 400,
                pending: 600,
                ..Default::default()
            },
            ..Default::default()
        };
        assert_eq!(
            progress(&task, None),
            "t1  ▶ running  40.0%  400 / 1,000  5.0/s  ETA 2m"
        );
        assert!(progress(&task, Some(4)).contains("█▌░░ 40.0%"));
        task.status = "queued".to_owned();
        task.status_reason = Some("capacity".to_owned());
        task.status_text = Some("no node has 500/s left".to_owned());
        assert_eq!(
            progress(&task, None),
            "t1  ◌ queued (capacity)  40.0%  400 / 1,000  no node has 500/s left"
        );
    }
}
