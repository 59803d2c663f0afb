//! Output of `windrow dev`: greeting, progress of the sample task, and summary.

use std::fmt::Write;
use std::time::Duration;

use super::place::Place;
use crate::output::screen::Screen;
use crate::output::table::human::{self, counted};
use crate::run::lines::RunLines;
use crate::run::picture::Picture;
use windrow_core::execution::Progress;
use windrow_core::ids::{Moment, TaskId};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::tasks::list::TaskFilter;
use windrow_engine::ports::tasks::store::TaskView;
use windrow_node::dev::{BUSINESS, Dev, PORT_DEFAULT, SampleRun};
use windrow_node::serve::Serve;
use windrow_server::service::Service;

/// Largest number of tasks that a summary names; users with more read the task list.
const TASKS_MAX: u32 = 20;
/// Statuses of tasks that make progress, or will without a command.
const MOVING: [Status; 6] = [
    Status::Queued,
    Status::AwaitingBusiness,
    Status::Running,
    Status::Recovering,
    Status::Stopping,
    Status::Finalizing,
];

/// Returns the greeting: addresses, and commands to try.
pub(super) fn greeting(dev: &Dev, place: &Place, version: &str) -> String {
    let url = dev.serve.url();
    let kept = if place.is_kept() {
        "kept"
    } else {
        "deleted on exit; --data DIR keeps it"
    };
    let mut text = format!(
        "windrow {version} — development mode, not for production: anyone on this machine has full \
            access"
    );
    if dev.is_port_taken {
        text += &format!("\n  port {PORT_DEFAULT} is in use, so another one was chosen; --port N sets it");
    }
    let mut row = |name: &str, what: &str| text += &format!("\n  {name:<9} {what}");
    row("dashboard", &url);
    row("data", &format!("{} ({kept})", place.path().display()));
    row("api", &format!("{url}/v1"));
    row("docs", &format!("{url}/docs"));
    row("metrics", &format!("{url}/metrics"));
    row(
        "business",
        &format!("{BUSINESS}: 10 % of its items are busy at first, 2 % are skipped, 1 % fail"),
    );
    row(
        "task",
        &dev.begun.as_ref().map_or_else(|| "none".to_owned(), task_text),
    );
    if let Some(review) = &dev.review {
        row(
            "review",
            &format!("{}: stops after its canary for your review", review.id),
        );
    }
    let server = server_flag(&url);
    if let Some(begun) = dev.begun.as_ref() {
        let id = begun.task.id;
        row("next", &format!("windrow task watch {id}{server}"));
        row("", &format!("windrow task explain {id}{server}"));
        row("", &format!("curl {url}/v1/tasks/{id}"));
        row("", "windrow init python");
    } else {
        row("next", "windrow init python");
    }
    text
}

fn task_text(begun: &SampleRun) -> String {
    let task = &begun.task;
    let size = format!(
        "{}: {} at {}",
        task.id,
        counted(task.total.0, "item"),
        task.tuning.rate
    );
    match (begun.goes_on, task.status) {
        (true, Status::Stopped | Status::Created) => format!("{size} is {}, unchanged", task.status),
        (true, _) => format!("{size} continues at {}", human::count(done(task))),
        (false, _) => format!("{size} is running"),
    }
}

/// Returns the `--server` flag, empty for the default port, which clients use anyway.
fn server_flag(url: &str) -> String {
    if url.ends_with(&format!(":{PORT_DEFAULT}")) {
        String::new()
    } else {
        format!(" --server {url}")
    }
}

/// Returns the number of items that need no more work.
fn done(task: &TaskView) -> u64 {
    task.counters.settled() + task.counters.excluded
}

/// Progress display of a task until it ends.
pub(super) struct Following {
    id: TaskId,
    status: Status,
    lines: Option<RunLines>,
}

impl Following {
    /// Creates the display from the task's initial state. It draws a picture only on a terminal.
    pub(super) fn new(begun: &SampleRun, screen: &Screen) -> Following {
        Following {
            id: begun.task.id,
            status: begun.task.status,
            lines: screen.is_live().then(|| RunLines::on(screen)),
        }
    }

    /// Updates the display and reports if the task stops or ends. Returns true once it has ended.
    pub(super) async fn look(&mut self, serve: &Serve, screen: &Screen, clock: &dyn Clock) -> bool {
        let task = match serve.service().tasks.get(self.id).await {
            Ok(task) => task,
            Err(error) => {
                tracing::debug!(%error, task = %self.id, "can't read the task now");
                return false;
            }
        };
        if let Some(lines) = &mut self.lines {
            let live = serve.service().supervisor().progress(self.id);
            let live: Vec<Progress> = live.into_iter().map(|(_, progress)| progress).collect();
            let picture = serve.service().tasks.picture(task.clone()).await;
            lines.show(screen, &Picture::of(&picture, &live, clock.wall()), clock.now());
        }
        let changed = std::mem::replace(&mut self.status, task.status) != task.status;
        let is_over = task.status.is_terminal();
        if changed && (is_over || task.status == Status::Stopped) {
            screen.say(&rest_text(&task));
        }
        is_over
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if let Some(lines) = &self.lines {
            lines.clear();
        }
    }
}

/// Returns the line for a task that stopped or ended, with its non-zero counts.
fn rest_text(task: &TaskView) -> String {
    let counts = &task.counters;
    let mut text = format!("{} {}: {}", task.id, task.status, counted(task.total.0, "item"));
    let terms = [
        ("succeeded", counts.succeeded),
        ("skipped", counts.skipped),
        ("failed", counts.failed),
        ("excluded", counts.excluded),
        ("pending", counts.pending(task.total)),
    ];
    for (term, count) in terms.into_iter().filter(|(_, count)| *count > 0) {
        write!(text, ", {} {term}", human::count(count)).expect("a string takes any text");
    }
    text + "; the node keeps running, Ctrl-C stops it"
}

/// Summary of all tasks, taken before the drain and completed after it.
pub(super) struct Summary {
    begun: Moment,
    took: Duration,
    in_flight: u64,
    /// Sample task, and others that moved or were stopped.
    tasks: Vec<TaskView>,
    has_moved: bool,
}

impl Summary {
    /// Lists the tasks before the drain.
    pub(super) async fn begin(dev: &Dev, now: Moment) -> Summary {
        let service = dev.serve.service();
        let filter = TaskFilter {
            statuses: [&MOVING[..], &[Status::Stopped]].concat(),
            oldest_first: true,
            ..TaskFilter::default()
        };
        let moving = service
            .tasks
            .list(&filter, None, TASKS_MAX)
            .await
            .map(|page| page.tasks);
        let moving = moving.unwrap_or_else(|error| {
            tracing::warn!(%error, "can't list the tasks");
            Vec::new()
        });
        let in_flight = moving.iter().map(|picture| picture.task.counters.in_flight).sum();
        let mut tasks: Vec<TaskView> = moving.into_iter().map(|picture| picture.task).collect();
        let has_moved = tasks.iter().any(|task| task.status != Status::Stopped);
        let begun = dev.begun.as_ref().map(|begun| &begun.task);
        let is_listed = |id| tasks.iter().any(|task| task.id == id);
        if let Some(begun) = begun.filter(|begun| !is_listed(begun.id)) {
            tasks.insert(0, begun.clone());
        }
        Summary {
            begun: now,
            took: Duration::ZERO,
            in_flight,
            tasks,
            has_moved,
        }
    }

    /// Reads the tasks again after the drain, when nothing moves any more.
    pub(super) async fn finish(&mut self, service: &Service, now: Moment) {
        self.took = now.since(self.begun);
        for task in &mut self.tasks {
            match service.tasks.get(task.id).await {
                Ok(now) => *task = now,
                Err(error) => tracing::warn!(%error, task = %task.id, "can't read the task"),
            }
        }
    }

    /// Returns the last line, such as `stopped: t1 at 4,812/10,000, drained 31 in flight in 200ms. bye.`
    pub(super) fn text(&self) -> String {
        let mut parts: Vec<String> = self.tasks.iter().map(place_of).collect();
        if self.has_moved {
            parts.push(format!(
                "drained {} in flight in {}",
                human::count(self.in_flight),
                human::span(self.took)
            ));
        }
        let what = if parts.is_empty() {
            "nothing was running".to_owned()
        } else {
            parts.join(", ")
        };
        format!("stopped: {what}. bye.")
    }
}

fn place_of(task: &TaskView) -> String {
    if task.status.is_terminal() {
        return format!("{} {}", task.id, task.status);
    }
    let rests = if task.status == Status::Stopped {
        " stopped"
    } else {
        ""
    };
    format!(
        "{}{rests} at {}/{}",
        task.id,
        human::count(done(task)),
        human::count(task.total.0)
    )
}
