//! Implementation of `windrow task wait`, which lets scripts wait for the end of tasks.

mod told;
pub(crate) mod until;

use std::time::Duration;

use clap::Args;
use futures_util::StreamExt;
use futures_util::stream;
use tokio::time::Instant;

use self::told::Told;
use self::until::{TaskAnswer, Wait};
use super::ending::{Goal, line, worse};
use super::words;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link, Remote};
use crate::output::screen;
use crate::shell::Shell;
use crate::signals::Signals;
use windrow_core::settings::text::parse_span;

/// Examples of `wait`, for the help.
pub const EXAMPLES: &str = "Examples:
  windrow task wait t42 --timeout 2h && ./next-step.sh
  windrow task wait push/black-friday push/cyber-monday

Exit codes: 0 finished (also once redrives have recovered all failures), 8 with failures, 9 stopped or cancelled, 10 timed out; for several tasks the worst one.";

/// Number of tasks polled concurrently.
const AT_ONCE: usize = 16;
/// Arguments of `windrow task wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Tasks to wait for: t42, or business/name
    #[arg(required = true, value_name = "TASK")]
    pub tasks: Vec<String>,
    /// Wait no longer than this; 0s checks once
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub timeout: Option<Duration>,
    /// State to wait for
    #[arg(long = "for", value_enum, value_name = "GOAL", default_value_t = Goal::Finished)]
    pub goal: Goal,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Waits for tasks and prints a line for each.
///
/// # Errors
/// Same as [`Link::send`]; `Unreachable` only if the node is away for longer than a request may take.
pub(super) async fn wait(args: &WaitArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut signals = Signals::catch().map_err(|error| Fault::bug(error.to_string()))?;
    let link = Link::open(&args.remote, shell)?;
    tokio::select! {
        exit = wait_for_all(args, &link) => exit,
        () = signals.stop() => {
            link.say(&format!("only the wait ended; {} continues", args.tasks.join(", ")));
            Ok(Exit::Interrupted)
        }
    }
}

async fn wait_for_all(args: &WaitArgs, link: &Link<'_>) -> Result<Exit, Fault> {
    let deadline = args.timeout.map(|span| Instant::now() + span);
    let mut ids = Vec::new();
    for address in &args.tasks {
        ids.push(link.task(address).await?);
    }
    let waits = stream::iter(ids).map(|id| end(args, link, id, deadline));
    let mut waits = Box::pin(waits.buffer_unordered(AT_ONCE));
    let mut worst = Exit::Ok;
    while let Some(end) = waits.next().await {
        let (TaskAnswer { answer, task }, exit) = end?;
        screen::put(&match link.look.form {
            Form::Json | Form::Ndjson => answer.line(),
            Form::Name => task.id,
            Form::Table | Form::Wide | Form::Csv => line(&task),
        })?;
        if exit == Exit::TimedOut {
            link.hint("the wait timed out; the task continues");
        }
        worst = worse(worst, exit);
    }
    Ok(worst)
}

/// Returns the task at the end of the wait, and the exit code.
async fn end(
    args: &WaitArgs,
    link: &Link<'_>,
    id: String,
    deadline: Option<Instant>,
) -> Result<(TaskAnswer, Exit), Fault> {
    let mut told = Told::new(link);
    let mut wait = Wait {
        link,
        id: &id,
        hold: told.hold(),
        deadline,
        seen: None,
        lost: None,
    };
    // Code with which the calls of the task fail.
    let mut failing: Option<String> = None;
    let mut is_start_told = false;
    loop {
        let seen = wait.next().await?;
        let task = &seen.task;
        if let Some(exit) = args.goal.reached(task) {
            return Ok((seen, exit));
        }
        // Report failing calls once per code, and their recovery.
        let said = task.status_text.as_deref().filter(|_| task.status == "running");
        let code = |error: &api::LastError| error.code.clone();
        let code = said.map(|_| task.last_error.as_ref().map(code).unwrap_or_default());
        if failing != code {
            link.say(&format!("{id}: {}", said.unwrap_or("calls succeed again")));
            failing = code;
        }
        // A task that isn't started never ends by itself.
        if task.status == "created" && !std::mem::replace(&mut is_start_told, true) {
            link.say(&words::not_started(&id));
        }
        if wait.left() == Some(Duration::ZERO) {
            return Ok((seen, Exit::TimedOut));
        }
        told.show(task);
        wait.hold = told.hold();
    }
}
