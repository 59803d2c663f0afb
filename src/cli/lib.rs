//! Command line: arguments, output and exit codes.
//!
//! | module | contents |
//! |---|---|
//! | `args` | the commands; the arguments of each command are in its own folder |
//! | `run` | one job in this process; `job` controls it from another terminal |
//! | `local` | commands that need no node: `try`, `serve`, `dev`, `init`, `config`, `doctor`, `db` |
//! | `task`, `remote` | clients of a running node: one folder or file per noun, one file per verb |
//! | `link` | shared by clients: flags, contexts, the connection to a node, paging |
//! | `output` | lists and cards for people, data for scripts; standard error |
//! | `input` | flags shared by commands; parsing of items, times and typing errors |
//! | `help` | help topics and shell completion |
//! | `shell`, `signals`, `fault`, `exit` | environment, Ctrl-C, three-part errors, exit codes |
//!
//! Modules import downwards only: `args` and `help` are on top, then `local` and `remote`, `task`, `run`, `link`,
//! `input`, `output`, `fault`.
//!
//! Standard output carries only the outcome; everything else goes to standard error.
//!
//! # How to add a client command
//!
//! For a verb of an existing noun, add its flags to the noun's `args.rs` (a struct with `#[command(flatten)] remote:
//! Remote`, or with `write: Write`, which includes it, if the verb changes something), a line to the noun's `Verb`, a
//! line to the `match` in the noun's `mod.rs`, and the implementation in a file of its own: `pub(super) async fn
//! stop(args: &StopArgs, shell: &Shell) -> Result<Exit, Fault>`. There, `Link::open(&args.remote, shell)?` connects
//! to the node: `link.task("business/name")` resolves a task, `link.send(Request::post(…))` sends a request (its
//! errors are faults with exit codes), `link.list` reads pages, `link.change` makes a change or prints its dry run,
//! `link.show_list`, `link.show_one` and `link.show_done` print in the format of `-o`, `link.say` and `link.hint`
//! write to standard error, `link.confirm` asks for confirmation, `link.confirm_word` before an irreversible action.
//! One `Listing` defines the columns of a list. A change of a task is a `task::make::draft::Draft`, which handles
//! reasons and dry runs; `task::which` applies it to many tasks.
//!
//! For a new noun, add a file like `remote/limit.rs`, and a line each in `Command` (`args.rs`) and in `obey` below.
#![recursion_limit = "256"]

pub mod args;
pub mod exit;
pub mod fault;
// Short alias, since hundreds of paths use it.
extern crate windrow_api as api;

mod help;
pub mod input;
pub mod job;
pub mod link;
pub mod local;
pub mod output;
mod process;
pub mod remote;
pub mod run;
pub mod shell;
mod signals;
pub mod task;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::FromArgMatches;

use self::args::{Cli, Command};
use self::exit::Exit;
use self::fault::Fault;
use self::shell::Shell;
use crate::output::screen::{Screen, Verbosity};
use windrow_config::{process_env, process_env_os};
use windrow_node::Runtimes;

/// Time that leftovers (worker processes, blocked reads) get to end before the process exits.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// Parses the command line, executes it and returns the exit code.
pub fn main() -> ExitCode {
    if help::completion::answer(std::env::args_os().collect(), quiet_shell) {
        return ExitCode::SUCCESS;
    }
    fault::know_command_line(args::command);
    let command = args::command();
    let words = input::front::arranged(std::env::args_os().collect(), &command);
    let matches = command.try_get_matches_from(&words);
    let matches = matches.map_err(|error| input::misread::advised(error, &words));
    let read = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    let wants_json = output::failure::wants_json(&words);
    let cli = match read {
        Ok(cli) => cli,
        Err(error) => return output::failure::of_command_line(&error, wants_json).into(),
    };
    let done = catch_unwind(AssertUnwindSafe(|| execute(cli, wants_json)));
    done.unwrap_or(Exit::Bug).into()
}

/// Returns a shell without output, for completion requests.
fn quiet_shell() -> Shell {
    let screen = Arc::new(Screen::plain());
    Shell {
        env: process_env().collect(),
        environment: process_env_os(),
        colors: None,
        screen,
        here: None,
    }
}

fn execute(cli: Cli, wants_json: bool) -> Exit {
    let env: Vec<(String, String)> = process_env().collect();
    let screen = match screen(&cli.command, &env) {
        Ok(screen) => Arc::new(screen),
        Err(fault) => {
            output::screen::print_error(&fault.to_string());
            return output::failure::told(&fault, wants_json);
        }
    };
    output::screen::report_panics(screen.clone());
    if let Some(wanted) = cli.colors.wanted() {
        console::set_colors_enabled_stderr(wanted);
    }
    let shell = Shell {
        env,
        environment: process_env_os(),
        colors: cli.colors.wanted(),
        screen: screen.clone(),
        here: None,
    };
    obey(cli.command, &shell).unwrap_or_else(|fault| {
        screen.refuse(&fault);
        output::failure::told(&fault, wants_json)
    })
}

/// Opens standard error and the log as the command needs them.
fn screen(command: &Command, env: &[(String, String)]) -> Result<Screen, Fault> {
    let filter = env.iter().find(|(name, _)| name == "WINDROW_LOG");
    let filter = filter.map(|(_, filter)| filter.as_str());
    match command {
        // A node starts its log after reading its configuration.
        Command::Serve(_) => Ok(Screen::plain()),
        // No environment variable may keep `dev` from starting.
        Command::Dev(args) => Screen::open(args.talk, local::dev::log_filter(args.talk), true),
        Command::Run(args) => Screen::open(args.talk, filter, false),
        Command::Try(args) => Screen::open(args.talk, filter, false),
        _ => Screen::open(Verbosity::default(), filter, false),
    }
}

fn obey(command: Command, shell: &Shell) -> Result<Exit, Fault> {
    match command {
        Command::Run(args) => on_runtimes(|runtimes| run::run(args, shell, runtimes)),
        Command::Job(args) => on_runtimes(|runtimes| job::job(args, shell, runtimes)),
        Command::Try(args) => on_runtimes(|runtimes| local::trial::trial(&args, shell, runtimes)),
        Command::Serve(args) => on_runtimes(|runtimes| local::serve::serve(&args, shell, runtimes)),
        Command::Task(args) => on_client(task::task(&args, shell)),
        Command::Biz(args) => on_client(remote::biz::biz(&args, shell)),
        Command::Schedule(args) => on_client(remote::schedule::schedule(&args, shell)),
        Command::Stats(args) => on_client(remote::statistics::statistics(&args, shell)),
        Command::Limit(args) => on_client(remote::limit::limit(&args, shell)),
        Command::Alert(args) => on_client(remote::alert::alert(&args, shell)),
        Command::Dataset(args) => on_client(remote::dataset::dataset(&args, shell)),
        Command::Node(args) => on_client(remote::node::node(&args, shell)),
        Command::Cluster(args) => on_client(remote::cluster::cluster(&args, shell)),
        Command::Token(args) => on_client(remote::token::token(&args, shell)),
        Command::Apply(args) => on_client(remote::files::apply(&args, shell)),
        Command::Export(args) => on_client(remote::files::export(&args, shell)),
        Command::Log(args) => on_client(task::log::log(&args, shell)),
        Command::Audit(args) => on_client(remote::audit::audit(&args, shell)),
        Command::Doctor(args) => on_client(local::doctor::doctor(&args, shell)),
        Command::Db(args) => on_client(local::db::db(&args, shell)),
        Command::Ctx(args) => remote::ctx::ctx(&args, shell),
        Command::Api(args) => on_client(remote::api::api(&args, shell)),
        Command::Openapi(args) => on_client(remote::openapi::openapi(&args, shell)),
        Command::Dev(args) => on_runtimes(|runtimes| local::dev::dev(&args, shell, runtimes)),
        Command::Init(args) => local::init::init(&args),
        Command::Config(args) => local::settings::settings(&args, shell),
        Command::Completions { shell } => help::completions(shell),
        Command::Man { folder } => help::man_pages(&folder),
        Command::Version(args) => on_client(local::version::version(&args, shell)),
        Command::Help { words } => help::help(&words),
    }
}

/// Runs a command on this thread, with runtimes for concurrent work, and shuts them down afterwards.
fn on_runtimes<'a, F>(work: impl FnOnce(Arc<Runtimes>) -> F) -> Result<Exit, Fault>
where
    F: Future<Output = Result<Exit, Fault>> + 'a,
{
    process::begin()?;
    let runtimes = Arc::new(Runtimes::new().map_err(cant_start)?);
    let outcome = on_client(work(runtimes.clone()));
    match Arc::into_inner(runtimes) {
        Some(runtimes) => runtimes.shut_down(END_PATIENCE),
        None => {
            tracing::warn!("runtimes are still busy; workers may outlive this process for a moment")
        }
    }
    outcome
}

/// Runs a command that only talks to a node, entirely on this thread.
fn on_client(work: impl Future<Output = Result<Exit, Fault>>) -> Result<Exit, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(cant_start)?;
    let work = async {
        process::outlive_file_limit();
        work.await
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| runtime.block_on(work)));
    // A blocked read of standard input can't be interrupted, so don't wait for it.
    runtime.shutdown_timeout(Duration::ZERO);
    outcome.unwrap_or_else(|_| Err(Fault::bug("internal error; see the panic message above")))
}

fn cant_start(error: std::io::Error) -> Fault {
    Fault::new(Exit::Failed, "can't start windrow", error.to_string())
        .hint("raise the limits on threads and open files")
}
