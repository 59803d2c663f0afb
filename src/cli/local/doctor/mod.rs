//! `windrow doctor`: looks at everything between this terminal and the handlers, and says what is wrong with it.

mod local;
mod server;

use clap::Args;
use serde_json::Value;

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::contexts::Contexts;
use crate::link::{Link, Look, Remote};
use crate::local::db::args::Place;
use crate::output::checks::{self, Outcome, line};

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  windrow doctor
  windrow doctor https://windrow.internal --no-handlers
  windrow doctor --config /etc/windrow/config.toml

With --config or --data-dir the state directory of this machine is looked at too; nothing is changed anywhere. Handlers get
the pings of `windrow biz check`.
Exit: 0 when nothing failed, 1 when something did, 6 when the server can't be reached.";

/// `windrow doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The node's address; without it the context's
    #[arg(conflicts_with = "server")]
    pub url: Option<String>,
    /// Don't call the businesses' handlers
    #[arg(long)]
    pub no_handlers: bool,
    /// The state directory of this machine.
    #[command(flatten)]
    pub place: Place,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// Looks, and prints the report.
///
/// # Errors
/// When standard output can't be written: everything else is part of the report.
pub(crate) async fn doctor(args: &DoctorArgs, shell: &Shell) -> Result<Exit, Fault> {
    let remote = Remote {
        server: args.url.clone().or_else(|| args.remote.server.clone()),
        ..args.remote.clone()
    };
    let mut report = vec![contexts(shell)];
    let mut is_unreachable = false;
    match Link::open(&remote, shell) {
        Ok(link) => is_unreachable = !server::look(&link, args.no_handlers, &mut report).await,
        Err(fault) => report.push(told("server", &fault)),
    }
    local::look(&args.place, shell, &mut report).await;
    let look = Look::new(&remote.view, shell);
    checks::show(&look, &report)?;
    Ok(match (is_unreachable, checks::passed(&report)) {
        (true, _) => Exit::Unreachable,
        (false, true) => Exit::Ok,
        (false, false) => {
            if !look.is_quiet {
                shell.screen.must_say(&checks::failed(&report));
            }
            Exit::Failed
        }
    })
}

fn contexts(shell: &Shell) -> Value {
    match Contexts::load(shell) {
        Ok(contexts) if contexts.all.is_empty() => line(
            "contexts",
            Outcome::Ok,
            "none; the environment, flags and the default say where the node is",
            None,
        ),
        Ok(contexts) => {
            let current = contexts.current.as_deref().unwrap_or("none of them");
            line(
                "contexts",
                Outcome::Ok,
                format!("{}, current is {current}", contexts.all.len()),
                None,
            )
        }
        Err(fault) => told("contexts", &fault),
    }
}

/// A fault as a line that failed.
fn told(check: &str, fault: &Fault) -> Value {
    let detail = format!("{}: {}", fault.what, fault.because.join("; "));
    // A card has one line for what to try.
    let hint = fault.hint.as_ref().map(|hint| hint.replace("\n  try  ", "; "));
    line(check, Outcome::Fail, detail, hint.as_deref())
}
