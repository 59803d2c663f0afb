//! `windrow task wait`: until tasks are over, for scripts.

pub(crate) mod until;

use std::time::Duration;

use clap::Args;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::ending::{Goal, line, worse};
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link, Remote};
use crate::output::body::text;
use crate::output::screen;
use crate::signals::Signals;
use windrow_client::{Answer, Request};
use windrow_core::settings::text::parse_span;

/// Examples under `--help`.
pub const EXAMPLES: &str = "\
Examples:
  windrow task wait t42 --timeout 2h && ./next-step.sh
  windrow task wait push/black-friday push/cyber-monday

Exit codes: 0 finished, 8 with failures, 9 stopped or cancelled, 10 it was waited long enough; of several tasks the worst.";

/// The longest time that a node is asked to hold an answer back.
const HOLD_MAX: Duration = Duration::from_secs(10);
/// Tasks that are asked after at the same time.
const AT_ONCE: usize = 16;
/// Between two attempts to find a node that is away.
const AGAIN_EVERY: Duration = Duration::from_secs(1);

/// `windrow task wait`
// `--timeout` is how long is waited; what a request may take has another name here.
#[derive(Debug, Args)]
#[command(mut_arg("request_timeout", |arg| arg.long("request-timeout")))]
pub struct WaitArgs {
    /// The tasks: t42, or business/name
    #[arg(required = true, value_name = "TASK")]
    pub tasks: Vec<String>,
    /// Wait no longer than this; 0s looks once
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub timeout: Option<Duration>,
    /// What is waited for
    #[arg(long = "for", value_enum, value_name = "GOAL", default_value_t = Goal::Finished)]
    pub goal: Goal,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// Waits for tasks and prints a line for each.
///
/// # Errors
/// As [`Link::send`]; `Unreachable` only when the node is away for longer than a request may take.
pub(super) async fn wait(args: &WaitArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut signals = Signals::catch().map_err(|error| Fault::bug(error.to_string()))?;
    let link = Link::open(&args.remote, shell)?;
    tokio::select! {
        exit = wait_for_all(args, &link) => exit,
        () = signals.stop() => {
            link.say(&format!("{}: untouched, it goes on", args.tasks.join(", ")));
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
    let waits = stream::iter(ids).map(|id| {
        Wait {
            args,
            link,
            id,
            deadline,
            lost: None,
            failing: None,
        }
        .end()
    });
    let mut waits = Box::pin(waits.buffer_unordered(AT_ONCE));
    let mut worst = Exit::Ok;
    while let Some(end) = waits.next().await {
        let (answer, exit) = end?;
        let task = answer.json()?;
        screen::put(&match link.look.form {
            Form::Json | Form::Ndjson => answer.line(),
            Form::Name => text(&task["id"]).to_owned(),
            Form::Table | Form::Wide | Form::Csv => line(&task),
        })?;
        if exit == Exit::TimedOut {
            link.hint("the wait timed out; the task goes on");
        }
        worst = worse(worst, exit);
    }
    Ok(worst)
}

/// The wait for one task.
struct Wait<'a> {
    args: &'a WaitArgs,
    link: &'a Link<'a>,
    id: String,
    deadline: Option<Instant>,
    /// Since when the node is away.
    lost: Option<Instant>,
    /// The code with which its calls fail.
    failing: Option<String>,
}

impl Wait<'_> {
    /// The task as it was when the wait ended, and how.
    async fn end(mut self) -> Result<(Answer, Exit), Fault> {
        let mut seen: Option<u64> = None;
        loop {
            let answer = match self.link.client.send(self.request(seen)).await {
                Ok(answer) => answer,
                // Somebody who was there a moment ago comes back; who never was, is told at once.
                Err(error) if seen.is_some() && error.is_passing() && self.has_hope() => {
                    sleep(AGAIN_EVERY).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if self.lost.take().is_some() {
                self.link.say("the node is back");
            }
            let task: Value = answer.json()?;
            if let Some(exit) = self.args.goal.reached(&task) {
                return Ok((answer, exit));
            }
            self.say_of_handler(&task);
            if self.left() == Some(Duration::ZERO) {
                return Ok((answer, Exit::TimedOut));
            }
            seen = Some(task["version"].as_u64().unwrap_or_default());
        }
    }

    /// That calls fail, once a code, and that they go well again.
    fn say_of_handler(&mut self, task: &Value) {
        let said = task["status_text"]
            .as_str()
            .filter(|_| task["status"] == "running");
        let code = said.map(|_| text(&task["last_error"]["code"]).to_owned());
        if self.failing != code {
            let said = said.unwrap_or("its calls succeed again");
            self.link.say(&format!("{}: {said}", self.id));
            self.failing = code;
        }
    }

    fn request(&self, seen: Option<u64>) -> Request {
        let request = Request::get(&format!("/v1/tasks/{}", self.id));
        let Some(version) = seen else { return request };
        let limit = HOLD_MAX.min(self.args.remote.timeout * 2 / 3);
        let hold = self
            .left()
            .map_or(limit, |left| left.min(limit))
            .as_millis()
            .max(1);
        request
            .query("wait", format!("{hold}ms"))
            .query("unless", version)
    }

    fn left(&self) -> Option<Duration> {
        self.deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether the node is worth another attempt.
    fn has_hope(&mut self) -> bool {
        let since = *self.lost.get_or_insert_with(|| {
            self.link.say("the node is away; it is asked again every second");
            Instant::now()
        });
        since.elapsed() < self.args.remote.timeout && self.left() != Some(Duration::ZERO)
    }
}
