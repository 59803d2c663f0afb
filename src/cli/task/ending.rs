//! Exit codes for a task that a command waits for: the contract of `wait` and `watch` with scripts.

use super::words;
use crate::exit::Exit;
use crate::output::table::clean;
use clap::ValueEnum;

/// States of a task to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Goal {
    /// The task is over
    #[default]
    Finished,
    /// The task is running or over
    Running,
    /// The task is stopped
    Stopped,
}

impl Goal {
    /// Returns the exit code for a task in this state, or `None` while the command must wait. A state that can't be
    /// reached any more isn't waited for: a stopped task doesn't finish by itself.
    pub(super) fn reached(self, task: &api::Task) -> Option<Exit> {
        let is_wanted = match self {
            Goal::Finished => false,
            Goal::Running => task.status == "running",
            Goal::Stopped => task.status == "stopped",
        };
        if is_wanted { Some(Exit::Ok) } else { ended(task) }
    }
}

/// Returns the exit code for a task that makes no more progress by itself, `None` for any other.
pub(super) fn ended(task: &api::Task) -> Option<Exit> {
    match task.status.as_str() {
        "finished" if words::is_failed_still(task) => Some(Exit::WithFailures),
        "finished" => Some(Exit::Ok),
        "stopped" | "cancelled" => Some(Exit::Stopped),
        _ => None,
    }
}

/// Returns the more serious of two exit codes.
pub(super) fn worse(one: Exit, other: Exit) -> Exit {
    const ORDER: [Exit; 4] = [Exit::Ok, Exit::WithFailures, Exit::Stopped, Exit::TimedOut];
    let rank = |exit| ORDER.iter().position(|known| *known == exit);
    if rank(one) >= rank(other) { one } else { other }
}

/// Formats a task as one line.
pub(super) fn line(task: &api::Task) -> String {
    // Present problem with the handler.
    let said = task.status_text.as_deref().filter(|_| task.status == "running");
    clean(&format!(
        "{}  {}  {}  {}  {}{}",
        words::address(task),
        task.id,
        words::status(task).0,
        words::percent(task),
        words::counts(&task.counts, &words::TERMS, &words::RARE),
        said.map(|said| format!("  {said}")).unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(status: &str, failed: u64) -> api::Task {
        let mut task = api::Task {
            id: "t1".into(),
            business: "push".into(),
            status: status.into(),
            total: 10,
            ..Default::default()
        };
        (task.counts.succeeded, task.counts.failed) = (10 - failed, failed);
        task.pace.progress.percent = 100.0;
        task
    }

    #[test]
    fn a_task_that_is_over_says_how_the_command_ends() {
        assert_eq!(ended(&task("finished", 0)), Some(Exit::Ok));
        assert_eq!(ended(&task("finished", 2)), Some(Exit::WithFailures));
        assert_eq!(ended(&task("stopped", 2)), Some(Exit::Stopped));
        assert_eq!(ended(&task("cancelled", 0)), Some(Exit::Stopped));
        for status in [
            "created",
            "queued",
            "awaiting_business",
            "running",
            "recovering",
            "stopping",
        ] {
            assert_eq!(ended(&task(status, 2)), None, "{status}");
        }
    }

    #[test]
    fn a_task_whose_failures_are_all_recovered_ends_well() {
        let redriven = |still_failed: u64| {
            let mut task = task("finished", 2);
            task.beside.redriven = Some(api::TaskRedriven {
                recovered: 2 - still_failed,
                still_failed,
                exact: true,
            });
            task
        };
        assert_eq!(ended(&redriven(0)), Some(Exit::Ok));
        assert_eq!(ended(&redriven(1)), Some(Exit::WithFailures));
    }

    #[test]
    fn what_cant_come_any_more_isnt_waited_for() {
        assert_eq!(Goal::Running.reached(&task("running", 0)), Some(Exit::Ok));
        assert_eq!(
            Goal::Running.reached(&task("finished", 1)),
            Some(Exit::WithFailures)
        );
        assert_eq!(Goal::Running.reached(&task("stopped", 0)), Some(Exit::Stopped));
        assert_eq!(Goal::Running.reached(&task("queued", 0)), None);
        assert_eq!(Goal::Stopped.reached(&task("stopped", 0)), Some(Exit::Ok));
        assert_eq!(Goal::Stopped.reached(&task("finished", 0)), Some(Exit::Ok));
        assert_eq!(Goal::Finished.reached(&task("running", 0)), None);
    }

    #[test]
    fn the_worst_end_is_told() {
        assert_eq!(worse(Exit::Ok, Exit::WithFailures), Exit::WithFailures);
        assert_eq!(worse(Exit::Stopped, Exit::WithFailures), Exit::Stopped);
        assert_eq!(worse(Exit::Stopped, Exit::TimedOut), Exit::TimedOut);
        assert_eq!(worse(Exit::Ok, Exit::Ok), Exit::Ok);
    }

    #[test]
    fn a_line_says_what_goes_wrong_with_the_handler() {
        let mut task = task("running", 0);
        task.handler_down = Some(api::HandlerDown::default());
        let text = "handler down for 4s (CONNECT at item 0: refused); next probe in 2s";
        task.status_text = Some(text.into());
        assert_eq!(
            line(&task),
            "push t1  t1  ▶ running (handler down)  100%  succeeded 10  skipped 0  failed 0  in flight 0  pending 0  \
             handler down for 4s (CONNECT at item 0: refused); next probe in 2s"
        );
    }

    #[test]
    fn a_line_has_the_name_the_status_and_the_numbers() {
        assert_eq!(
            line(&task("finished", 2)),
            "push t1  t1  ✓ finished  100%  succeeded 8  skipped 0  failed 2  in flight 0  pending 0"
        );
    }
}
