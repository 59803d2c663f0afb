//! Implementation of `windrow task watch`, which follows a task.
//!
//! `state` processes what `feed` brings from the node, `frame` draws it, `keys` interprets keys: these three are
//! pure. `live` puts them on a `terminal`; `plain` works without one.

mod feed;
mod frame;
mod keys;
mod live;
mod plain;
mod state;
mod tail;
mod terminal;

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;

use self::feed::{Changes, Feed, NodeTime};
use self::state::State;
use super::ending::{ended, line};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link, Remote};
use crate::output::screen;
use crate::shell::Shell;
use crate::signals::Signals;
use windrow_client::Request;
use windrow_core::settings::text::parse_span;

/// Examples of `watch`, for the help.
pub const EXAMPLES: &str = "Examples:
  windrow task watch t42
  windrow task watch push/black-friday --every 1m > log.txt
  windrow task watch t42 -o ndjson | grep '\"event\":\"failure\"'

Keys: q quit, s stop, g start, r rate, f failures, e explain, ? help.
Ends with the task; the live view stays open while the task is stopped. Exit codes: 0 finished (also once redrives have recovered all failures), or q; 8 with failures; 9 stopped or cancelled; 130 Ctrl-C. Neither q nor
Ctrl-C affects the task.";

/// Arguments of `windrow task watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Task to watch: t42, or business/name
    pub task: String,
    /// Interval between printed lines, if there is no terminal
    #[arg(long, value_name = "SPAN", value_parser = every, default_value = "5s")]
    pub every: Duration,
    /// Columns of failed items to show, separated by commas
    #[arg(long, value_name = "COLUMNS")]
    pub key_column: Option<String>,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

fn every(text: &str) -> Result<Duration, String> {
    match parse_span(text) {
        Ok(Duration::ZERO) => Err("must be longer than 0s".to_owned()),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}

/// Watches a task until it is over.
///
/// # Errors
/// Same as [`Link::send`]; `Unreachable` only if the node is away for longer than a request may take.
pub(super) async fn watch(args: &WatchArgs, shell: &Shell) -> Result<Exit, Fault> {
    refuse_form(args.remote.view.output)?;
    let mut signals = Signals::catch().map_err(|error| Fault::bug(error.to_string()))?;
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    let columns = args.key_column.as_deref();
    if let Some(columns) = columns {
        // Report an unknown column before anything is drawn.
        let one = Request::get(&format!("/v1/tasks/{id}/failures")).query("limit", 1);
        link.send(one.query("data", columns)).await?;
    }
    let answer = link.get(&format!("/v1/tasks/{id}")).await?;
    let time = NodeTime::new(link.now_ms(&answer));
    let state = State::new(answer.read()?, time.now_ms(), link.look.style);
    let is_live = is_live(args, &link, shell);
    let rests = state.task.status == "stopped";
    if let Some(exit) = ended(&state.task).filter(|_| is_live && !rests) {
        screen::put(&line(&state.task))?;
        return Ok(exit);
    }
    let changes = Changes::default();
    changes.on_task(&state.task);
    let feed = Feed {
        link: &link,
        id: &id,
        time,
        changes: &changes,
        columns,
    };
    let watched = async {
        match is_live {
            true => Box::pin(live::live(feed, state, shell)).await,
            false => Box::pin(plain::plain(feed, state, args.every)).await.map(Some),
        }
    };
    let goes_on = || link.say(&changes.parting(&id));
    tokio::select! {
        end = watched => Ok(end?.unwrap_or_else(|| {
            goes_on();
            Exit::Ok
        })),
        () = signals.stop() => {
            goes_on();
            Ok(Exit::Interrupted)
        }
    }
}

/// Refuses CSV, since events have no columns.
fn refuse_form(form: Form) -> Result<(), Fault> {
    if form != Form::Csv {
        return Ok(());
    }
    let because = "events have no columns";
    Err(Fault::new(Exit::Usage, "unsupported output format", because)
        .hint("use -o ndjson for one event per line; or windrow task list -o csv once"))
}

/// True if there is a terminal for a live picture and no flag asks for other output.
fn is_live(args: &WatchArgs, link: &Link<'_>, shell: &Shell) -> bool {
    let is_terminal = io::stdout().is_terminal() && io::stderr().is_terminal();
    // Lines of -v would break up the picture.
    let is_wanted = link.look.form == Form::Table && !link.look.is_quiet && args.remote.verbose == 0;
    is_terminal && is_wanted && shell.var("TERM") != Some("dumb")
}

/// Creates the fault for a task that was deleted in the meantime.
fn gone(id: &str) -> Fault {
    let because = format!("{id} was deleted");
    Fault::new(Exit::NotFound, "the task no longer exists", because).hint("windrow task list")
}
