//! Implementation of `windrow doctor`: checks everything between this terminal and the handlers, and reports faults.

mod local;
mod server;

use api::Check;
use clap::Args;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::checks::{self, Outcome, line};
use crate::link::contexts::Contexts;
use crate::link::{Link, Look, Remote};
use crate::local::db::args::Place;
use crate::shell::Shell;

/// Examples of `windrow doctor`, for the help.
pub(crate) const EXAMPLES: &str = "Examples:
  windrow doctor
  windrow doctor https://windrow.internal --no-handlers
  windrow doctor --config /etc/windrow/config.toml
  windrow doctor --ready

--config or --data-dir also checks the state directory of this machine; nothing is changed anywhere. Handlers get the pings
of `windrow biz check`.
Exit: 0 if nothing failed, 1 if a check failed, 6 if the server can't be reached.";

/// Arguments of `windrow doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Address of the node; defaults to the context's
    #[arg(conflicts_with = "server")]
    pub url: Option<String>,
    /// Check only that the node accepts work, without a token; for the probes of a container
    #[arg(long, conflicts_with_all = ["no_handlers", "config", "data_dir"])]
    pub ready: bool,
    /// Don't call the businesses' handlers
    #[arg(long)]
    pub no_handlers: bool,
    /// State directory on this machine, checked if named.
    #[command(flatten)]
    pub place: Place,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Runs the checks and prints the report.
///
/// # Errors
/// Fails only if standard output can't be written: all other errors are part of the report.
pub(crate) async fn doctor(args: &DoctorArgs, shell: &Shell) -> Result<Exit, Fault> {
    let remote = Remote {
        server: args.url.clone().or_else(|| args.remote.server.clone()),
        ..args.remote.clone()
    };
    let mut report = Report::default();
    if !args.ready {
        contexts(shell, &mut report);
    }
    let mut is_unreachable = false;
    match Link::open(&remote, shell) {
        Ok(link) if args.ready => is_unreachable = !server::ready(&link, &mut report).await,
        Ok(link) => is_unreachable = !server::look(&link, args.no_handlers, &mut report).await,
        Err(fault) => report.fault("server", &fault),
    }
    // Looks at nothing unless a place is named, so `--ready` needs no condition.
    local::look(&args.place, shell, &mut report).await;
    let (look, report) = (Look::new(&remote.view, shell), report.0);
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

fn contexts(shell: &Shell, report: &mut Report) {
    match Contexts::load(shell) {
        Ok(contexts) if contexts.all.is_empty() => {
            report.ok(
                "contexts",
                "none; the address comes from the environment, flags and the default",
            );
        }
        Ok(contexts) => {
            let current = contexts.current.as_deref().unwrap_or("none of them");
            report.ok("contexts", format!("{}, current: {current}", contexts.all.len()));
        }
        Err(fault) => report.fault("contexts", &fault),
    }
}

/// Completed checks in order.
#[derive(Default)]
struct Report(Vec<Check>);

impl Report {
    fn ok(&mut self, check: &str, detail: impl Into<String>) {
        self.0.push(line(check, Outcome::Ok, detail, None));
    }

    fn warn(&mut self, check: &str, detail: impl Into<String>, advice: &str) {
        self.0.push(line(check, Outcome::Warn, detail, Some(advice)));
    }

    fn fail(&mut self, check: &str, detail: impl Into<String>, advice: &str) {
        self.0.push(line(check, Outcome::Fail, detail, Some(advice)));
    }

    /// Adds the check that a power cut of the database's machine doesn't undo acknowledged commits.
    fn durability(&mut self, is_durable: bool, setting: &str) {
        let detail = match is_durable {
            true => setting.to_owned(),
            false => format!("{setting}: a power cut on the database's machine can lose commits"),
        };
        let outcome = if is_durable { Outcome::Ok } else { Outcome::Warn };
        let advice = "set synchronous_commit = on or innodb_flush_log_at_trx_commit = 1";
        self.came_out("durability", outcome, detail, advice);
    }

    /// Adds a check with its outcome; drops the advice if the outcome is ok.
    fn came_out(&mut self, check: &str, outcome: Outcome, detail: impl Into<String>, advice: &str) {
        let advice = (outcome != Outcome::Ok).then_some(advice);
        self.0.push(line(check, outcome, detail, advice));
    }

    /// Adds a fault as a failed check.
    fn fault(&mut self, check: &str, fault: &Fault) {
        let detail = format!("{}: {}", fault.what, fault.because.join("; "));
        // A card has a single line for advice.
        let advice = fault.hint.as_ref().map(|hint| hint.replace("\n  try  ", "; "));
        self.0.push(line(check, Outcome::Fail, detail, advice.as_deref()));
    }
}
