//! Implementation of `windrow dev`: a node, a sample business and a task in one process, for a first look and for
//! developing handlers. Prints the addresses, shows the progress of the sample task, and sums up at the end.

mod place;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::time::{MissedTickBehavior, interval, sleep};

use self::place::Place;
use self::report::{Following, Summary};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::local::serve::of_serve;
use crate::output::browser;
use crate::output::screen::Verbosity;
use crate::shell::Shell;
use crate::signals::{ProcessSignal, Signals};
use windrow_core::ids::ItemCount;
use windrow_core::settings::RateLimit;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::tasks::store::Actor;
use windrow_node::dev::{Dev, DevError, DevOptions, SampleTask};
use windrow_node::{Runtimes, SystemClock};

/// Interval between two updates of the task's progress.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Drain time after which a message appears; most drains end before anyone could read it.
const TELL_AFTER: Duration = Duration::from_secs(1);
/// Largest number of items in a task. (The store's integers are signed.)
const ITEMS_MAX: u64 = i64::MAX as u64;

/// Arguments of `windrow dev`.
#[derive(Debug, Args)]
pub struct DevArgs {
    /// Directory to keep everything in and to resume from; by default a temporary one, deleted on exit
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Port on this machine, 0 for any free one; defaults to 7700, or to a free one if that is taken
    #[arg(long)]
    pub port: Option<u16>,
    /// Number of items in the sample task
    #[arg(long, value_name = "N", default_value_t = 12_000, value_parser = clap::value_parser!(u64).range(1..=ITEMS_MAX))]
    pub items: u64,
    /// Rate of item attempts in the sample task, retries included: 500/s, 30/m, unlimited
    #[arg(long, default_value = "10/s")]
    pub rate: RateLimit,
    /// Don't create the sample tasks
    #[arg(long, conflicts_with_all = ["items", "rate"])]
    pub no_task: bool,
    /// Open the dashboard in the browser
    #[arg(long)]
    pub open: bool,
    /// Flags for more or less output.
    #[command(flatten)]
    pub talk: Verbosity,
}

pub(crate) const EXAMPLES: &str = "Examples:
  windrow dev --open
  windrow dev --rate 2000/s --items 100000
  windrow dev --data ./playground --no-task

Runs in one process: a node without sign-in that only this machine can reach, a sample business \"hello\" called over HTTP
like any other, and two tasks of it: one lasts twenty minutes, the other stops after its canary for your review. As a
demonstration, 10 % of the items (4, 14, 24 …) are busy at the first attempt, 2 % (20, 70 …) are skipped and 1 % (99, 199 …)
fail. Not for production: use windrow serve.

./config.toml and WINDROW_… variables are ignored, so it starts the same everywhere. Ctrl-C drains and prints a summary;
a second Ctrl-C stops at once.";

/// Returns the default log filter, `None` if flags ask for more or less: warnings, and every change of the actor
/// tree, which shows the structure of the node.
pub(crate) fn log_filter(talk: Verbosity) -> Option<&'static str> {
    (talk.verbose == 0 && !talk.quiet).then_some("warn,windrow_engine::actors::runtime::tree=info")
}

/// Runs until a signal ends it.
///
/// # Errors
/// The reason why it can't start, with its exit code, or that the node ended unexpectedly.
pub(crate) async fn dev(args: &DevArgs, shell: &Shell, runtimes: Arc<Runtimes>) -> Result<Exit, Fault> {
    let mut signals = Signals::catch().map_err(|error| Fault::bug(error.to_string()))?;
    let place = Place::of(args.data.as_deref(), &shell.env)?;
    let dev = Box::pin(Dev::start(options(args, shell, runtimes, &place))).await?;
    shell
        .screen
        .say(&report::greeting(&dev, &place, env!("CARGO_PKG_VERSION")));
    if args.open {
        browser::open(&dev.serve.url(), &shell.screen);
    }
    let clock = SystemClock::new();
    look_on(&dev, shell, &clock, &mut signals).await?;
    let exit = end(dev, shell, &clock, &mut signals).await;
    place.close(&shell.screen);
    Ok(exit)
}

fn options(args: &DevArgs, shell: &Shell, runtimes: Arc<Runtimes>, place: &Place) -> DevOptions {
    let reason = Some("windrow dev".to_owned());
    DevOptions {
        data_dir: place.path().to_owned(),
        port: args.port,
        environment: shell.environment.clone(),
        runtimes,
        task: (!args.no_task).then_some(SampleTask {
            items: ItemCount(args.items),
            rate: args.rate,
        }),
        write: Actor {
            name: shell.user(),
            source: "cli",
            ..Actor::windrow(reason)
        }
        .writes(),
    }
}

/// Shows the progress of the task until a signal arrives.
async fn look_on(dev: &Dev, shell: &Shell, clock: &dyn Clock, signals: &mut Signals) -> Result<(), Fault> {
    let mut following = dev
        .begun
        .as_ref()
        .map(|begun| Following::new(begun, &shell.screen));
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            asked = signals.next() => match asked {
                ProcessSignal::Tree => shell.screen.must_say(dev.serve.tree().trim_end()),
                ProcessSignal::Stop | ProcessSignal::Reload => return Ok(()),
            },
            () = dev.serve.failed() => {
                return Err(Fault::new(Exit::Failed, "the node stopped unexpectedly", "its actors failed too often; -v shows why")
                    .hint("start it again; with --data DIR every task continues from its last \
                        checkpoint"));
            }
            _ = looks.tick() => {}
        }
        if let Some(followed) = &mut following {
            let is_over = followed.look(&dev.serve, &shell.screen, clock).await;
            if is_over {
                following = None;
            }
        }
    }
}

/// Drains and sums up. A second signal ends the process at once.
async fn end(dev: Dev, shell: &Shell, clock: &dyn Clock, signals: &mut Signals) -> Exit {
    let mut summary = Summary::begin(&dev, clock.now()).await;
    let drained = {
        let drain = dev.drain_and(async |service| summary.finish(service, clock.now()).await);
        tokio::pin!(drain);
        let mut is_told = false;
        loop {
            tokio::select! {
                (drained, ()) = &mut drain => break drained,
                () = signals.stop() => {
                    shell.screen.must_say("aborted: calls in flight were not waited for");
                    return Exit::Interrupted;
                }
                () = sleep(TELL_AFTER), if !is_told => {
                    shell.screen.say("draining: no new calls; waiting for those in flight; Ctrl-C again stops at once");
                    is_told = true;
                }
            }
        }
    };
    shell.screen.say(&summary.text());
    if drained {
        return Exit::Ok;
    }
    shell
        .screen
        .must_say("not everything ended in time; calls in flight were aborted");
    Exit::Failed
}

impl From<DevError> for Fault {
    fn from(error: DevError) -> Fault {
        let text = error.to_string();
        match error {
            DevError::Serve(error) => of_serve(
                &error,
                "--data directory",
                "choose another port: --port 0 picks a free one",
            ),
            DevError::Listen(_) => Fault::new(Exit::Failed, "can't start the sample business", text)
                .hint("check this machine's limits on ports and open files"),
            DevError::Service(_) => Fault::new(Exit::Failed, "can't create the sample task", text)
                .hint("omit --data, or use another directory; -v shows details"),
        }
    }
}
