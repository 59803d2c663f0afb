//! Waiting for a change of a task, with a progress display.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::told::Told;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::human::span;
use crate::output::table::times::parsed;
use crate::task::words;
use windrow_client::{Answer, Request};

/// Longest time that a node is asked to hold back an answer.
pub(crate) const HOLD_MAX: Duration = Duration::from_secs(10);
/// Interval between attempts to reach a node that is away.
const AGAIN_EVERY: Duration = Duration::from_secs(1);

/// Task at the end of a wait.
#[derive(Debug)]
pub(crate) struct TaskAnswer {
    /// Body of the API, verbatim.
    pub(crate) answer: Answer,
    /// Task parsed from the body.
    pub(crate) task: api::Task,
}

/// Fetches a task.
///
/// # Errors
/// Same as [`Link::send`].
pub(crate) async fn look(link: &Link<'_>, id: &str) -> Result<TaskAnswer, Fault> {
    let answer = link.get(&format!("/v1/tasks/{id}")).await?;
    let task = answer.read()?;
    Ok(TaskAnswer { answer, task })
}

/// Long polling of a task. A node that answered before may be away for as long as a request may take.
pub(crate) struct Wait<'a> {
    pub(crate) link: &'a Link<'a>,
    pub(crate) id: &'a str,
    /// Longest time that a node is asked to hold back an answer.
    pub(crate) hold: Duration,
    /// Time at which the wait ends, whatever the state of the task.
    pub(crate) deadline: Option<Instant>,
    /// Version of the task in the last answer.
    pub(crate) seen: Option<u64>,
    /// Time since which the node is away; `None` while it answers.
    pub(crate) lost: Option<Instant>,
}

impl Wait<'_> {
    /// Returns the task: at first immediately, later when it has changed or some time has passed.
    ///
    /// # Errors
    /// Same as [`Link::send`]; `Unreachable` immediately for a node that never answered.
    pub(crate) async fn next(&mut self) -> Result<TaskAnswer, Fault> {
        loop {
            match self.link.client.send(self.request()).await {
                Ok(answer) => {
                    if self.lost.take().is_some() {
                        self.link.say("the node is back");
                    }
                    let task: api::Task = answer.read()?;
                    self.seen = Some(task.version);
                    return Ok(TaskAnswer { answer, task });
                }
                Err(error) if self.seen.is_some() && error.is_passing() && self.has_hope() => {
                    sleep(AGAIN_EVERY).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn request(&self) -> Request {
        let request = Request::get(&format!("/v1/tasks/{}", self.id));
        let Some(version) = self.seen else { return request };
        let limit = self.hold.min(self.link.timeout() * 2 / 3);
        let hold = self
            .left()
            .map_or(limit, |left| left.min(limit))
            .as_millis()
            .max(1);
        request
            .query("wait", format!("{hold}ms"))
            .query("unless", version)
    }

    /// Returns the remaining time, or `None` if the wait is unlimited.
    pub(crate) fn left(&self) -> Option<Duration> {
        let deadline = self.deadline;
        deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// True if the node may be asked again.
    fn has_hope(&mut self) -> bool {
        let since = *self.lost.get_or_insert_with(|| {
            self.link.say("the node is unreachable; retrying every second");
            Instant::now()
        });
        since.elapsed() < self.link.timeout() && self.left() != Some(Duration::ZERO)
    }
}

/// Waits until the task satisfies `fits`, and shows the progress.
///
/// # Errors
/// `Interrupted` on Ctrl-C, while the task goes on; otherwise same as [`Wait::next`].
pub(crate) async fn until(
    link: &Link<'_>,
    id: &str,
    mut fits: impl FnMut(&api::Task) -> bool,
) -> Result<TaskAnswer, Fault> {
    let mut told = Told::new(link);
    let mut wait = Wait {
        link,
        id,
        hold: told.hold(),
        deadline: None,
        seen: None,
        lost: None,
    };
    let over = async {
        loop {
            let seen = wait.next().await?;
            if fits(&seen.task) {
                return Ok(seen);
            }
            told.show(&seen.task);
            wait.hold = told.hold();
        }
    };
    tokio::select! {
        over = over => over,
        _ = tokio::signal::ctrl_c() => {
            let because = format!("only the wait was interrupted; {id} continues");
            Err(Fault::new(Exit::Interrupted, "no longer waiting", because)
                .hint(format!("windrow task show {id}, or windrow task stop {id}")))
        }
    }
}

/// Formats the outcome, such as `✓ finished  1,000 / 1,000 in 2.1s   succeeded 997  …`, with the next command.
pub(crate) fn outcome(task: &api::Task) -> String {
    let id = &task.id;
    let took = took(task).map(|took| format!(" in {took}")).unwrap_or_default();
    let mut told = format!(
        "{id}  {}  {}{took}   {}",
        words::status(task).0,
        words::done_of(task),
        counts(task)
    );
    if let Some(why) = &task.status_text {
        told += &format!("\n  because {why}");
    }
    match task.status.as_str() {
        "finished" if words::is_failed_still(task) => {
            told += &format!("\n  failures: windrow task failures {id}")
        }
        "stopped" if task.stop_reason.as_deref() == Some("deadline") => {
            told += &format!(
                "\n  resume: windrow task set {id} --deadline TIME, then windrow task start \
                    {id}"
            );
        }
        "stopped" => told += &format!("\n  resume: windrow task start {id}"),
        _ => {}
    }
    told
}

/// Formats the counts of succeeded, skipped and failed items.
pub(crate) fn counts(task: &api::Task) -> String {
    words::counts(&task.counts, &words::TERMS[..3], &[])
}

/// Returns the time from the first start to the end.
fn took(task: &api::Task) -> Option<String> {
    let took = parsed(task.finished_at.as_ref()?)? - parsed(task.started_at.as_ref()?)?;
    took.to_std().ok().map(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(status: &str, failed: u64) -> api::Task {
        let mut task = api::Task {
            id: "t1".to_owned(),
            status: status.to_owned(),
            total: 5,
            result: Some("with_failures".to_owned()),
            counts: api::TaskCounts {
                succeeded: 5 - failed,
                failed,
                ..Default::default()
            },
            started_at: Some("2026-11-20T17:00:00.000Z".to_owned()),
            finished_at: Some("2026-11-20T17:00:02.100Z".to_owned()),
            ..Default::default()
        };
        (task.pace.progress.settled, task.pace.progress.of) = (5, 5);
        task
    }

    #[test]
    fn an_end_is_told_in_a_line_with_what_to_do() {
        assert_eq!(
            outcome(&task("finished", 2)),
            "t1  ✓ finished (with failures)  5 / 5 in 2.1s   succeeded 3  skipped 0  failed 2\n  failures: windrow task failures t1"
        );
        assert!(outcome(&task("stopped", 0)).ends_with("\n  resume: windrow task start t1"));
        let mut late = task("stopped", 0);
        late.stop_reason = Some("deadline".to_owned());
        assert!(
            outcome(&late).contains("windrow task set t1 --deadline TIME"),
            "{}",
            outcome(&late)
        );
    }
}
