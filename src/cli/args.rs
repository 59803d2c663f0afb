//! The command line, as clap reads it. Nothing here does anything.

use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, ArgGroup, Args, Parser, Subcommand, ValueEnum};

use crate::domain::settings::{Auto, Backoff, Burst, ErrorBudget, OnExhausted, RateLimit};
use crate::domain::settings_text::parse_span;

/// Drives the numbered items of a task through a handler at exactly the rate it was told.
#[derive(Debug, Parser)]
#[command(name = "windrow", version, disable_help_subcommand = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one job in this process: items from a file, a pipe or a count, through a command or a URL
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Call a handler with chosen items and show its verdicts; nothing is stored
    #[command(after_help = TRY_EXAMPLES)]
    Try(Box<TryArgs>),
    /// Run a node: tasks of registered businesses, steered over HTTP
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Run everything in one process, with a sample business and a task of it: for a first look, and to develop handlers
    #[command(after_help = super::dev::EXAMPLES)]
    Dev(super::dev::DevArgs),
    /// Write a small handler in a language of your choice
    #[command(after_help = super::init::EXAMPLES)]
    Init(super::init::InitArgs),
    /// Check or print a configuration
    Config(ConfigArgs),
    /// Print the completions of a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the version
    Version,
    /// Explain a command, or a topic: exit-codes
    Help {
        /// A command or a topic
        words: Vec<String>,
    },
}

const RUN_EXAMPLES: &str = "\
Examples:
  windrow run --csv users.csv --rate 500/s -- python3 -u handler.py
  windrow run --csv users.csv --url http://127.0.0.1:9000/windrow --batch 16
  windrow run --total 1000 --rate 20/s -- sh -c 'while read -r l; do echo ok; done'
  jq -c '.[]' users.json | windrow run --ndjson - --workers 4 -- ./worker

Ctrl-C stops calmly: calls under way end, then the program does. The same command resumes and repeats nothing.
Exit codes: windrow help exit-codes";

const TRY_EXAMPLES: &str = "\
Examples:
  windrow try http://127.0.0.1:9000/windrow --items 0..5 --data '{\"user_id\":\"u{index}\"}'
  windrow try --csv users.csv --items 0..3 -- python3 -u handler.py
  windrow try --cmd 'python3 -u handler.py' --items 7";

const SERVE_EXAMPLES: &str = "\
Examples:
  windrow serve --config /etc/windrow/config.toml
  windrow serve --data-dir ./data --listen 127.0.0.1:7700
  WINDROW_NODE__CAPACITY_RATE=3000/s windrow serve

It needs a directory of its own that it may write (node.data_dir, by default /var/lib/windrow: the database, its lock and
the key of stored secrets) and a free port (http.listen, by default 127.0.0.1:7700); no other server. At its first start it
writes a token for an administrator to a file and prints which (auth.bootstrap_token_file).

Without --config, ./config.toml is read if there is one; else defaults and the environment hold (WINDROW_NODE__DATA_DIR
is node.data_dir). The API is described at /docs of the address that is printed, with the file of the first token.
SIGTERM or Ctrl-C drains: no new work, calls under way end, progress is saved; a second one ends at once.
SIGHUP reads the configuration anew, SIGUSR1 prints the tree of actors.";

/// How much is printed beside the outcome.
#[derive(Clone, Copy, Debug, Args)]
pub struct Talk {
    /// Print nothing but errors and the outcome
    #[arg(short, long)]
    pub quiet: bool,
    /// Print more: -v what happens, -vv everything (WINDROW_LOG=filter wins)
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

/// Where items come from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Items")]
pub struct Items {
    /// Rows of a CSV file; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "ndjson")]
    pub csv: Option<String>,
    /// Lines of JSON; - is standard input
    #[arg(long, value_name = "FILE")]
    pub ndjson: Option<String>,
    /// Between the fields of the CSV; "tab" is a tab
    #[arg(long, value_name = "CHAR", value_parser = one_char)]
    pub delimiter: Option<char>,
    /// The first row of the CSV is data; columns are c1, c2 …
    #[arg(long)]
    pub no_header: bool,
    /// Quotes in the CSV are text
    #[arg(long)]
    pub no_quote: bool,
}

fn one_char(text: &str) -> Result<char, String> {
    let mut chars = text.chars();
    match (text, chars.next(), chars.next()) {
        ("tab" | "\\t", ..) => Ok('\t'),
        (_, Some(only), None) => Ok(only),
        _ => Err("one character is needed, such as , ; | or tab".to_owned()),
    }
}

/// How a URL is called.
#[derive(Debug, Args)]
#[command(next_help_heading = "Handler")]
pub struct HttpArgs {
    /// A header to send to the URL, as 'name: value'; may be repeated
    #[arg(long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// A file with the secrets that sign calls of the URL, one whsec_… a line, newest first
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
}

/// How items are driven; what isn't said here comes from the configuration.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pace and limits")]
pub struct Tunes {
    /// Item attempts, retries included: 500/s, 30/m, 1/2s; without it as fast as the handler answers
    #[arg(long)]
    pub rate: Option<RateLimit>,
    /// How much may leave at once above the steady rate: 100ms (of the rate) or '50 items'
    #[arg(long)]
    pub burst: Option<Burst>,
    /// Items in flight at the same time: a number or auto
    #[arg(long)]
    pub concurrency: Option<Auto<NonZeroU32>>,
    /// Items between low water and the highest that may leave: a number or auto
    #[arg(long)]
    pub window: Option<Auto<NonZeroU32>>,
    /// Items of one call
    #[arg(long)]
    pub batch: Option<NonZeroU32>,
    /// How long one call may take
    #[arg(long, value_parser = parse_span)]
    pub timeout: Option<Duration>,
    /// Attempts of one item before it is given up
    #[arg(long)]
    pub max_attempts: Option<NonZeroU32>,
    /// The wait between attempts: '1s..60s x2 jitter 20%'
    #[arg(long)]
    pub backoff: Option<Backoff>,
    /// What an item without attempts left means: abandon (it) or stop (everything)
    #[arg(long)]
    pub on_exhausted: Option<OnExhausted>,
    /// Errors that are tolerated: 10/s failed attempts (more: it pauses), 1% or 500 given up (more: it stops), none
    #[arg(long)]
    pub error_budget: Option<ErrorBudget>,
    /// One at a time, in order
    #[arg(long)]
    pub ordered: bool,
}

/// More processes than any machine is helped by; a slip of the finger must not take it down.
const WORKERS_MAX: u32 = 4096;

fn few(text: &str) -> Result<NonZeroU32, String> {
    let number = text.parse::<NonZeroU32>().ok().filter(|number| number.get() <= WORKERS_MAX);
    number.ok_or_else(|| format!("a number from 1 to {WORKERS_MAX} is needed"))
}

/// `windrow run`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("items").required(true).args(["csv", "ndjson", "total"])))]
#[command(group(ArgGroup::new("handler").required(true).args(["url", "worker"])))]
pub struct RunArgs {
    /// Where items come from.
    #[command(flatten)]
    pub items: Items,
    /// So many items without data: 0, 1, 2 …
    #[arg(long, value_name = "N", help_heading = "Items")]
    pub total: Option<NonZeroU64>,
    /// The command that does the work, after --; it reads items as lines and answers each with a line
    #[arg(last = true, value_name = "COMMAND", help_heading = "Handler")]
    pub worker: Vec<OsString>,
    /// The URL that does the work
    #[arg(long, help_heading = "Handler")]
    pub url: Option<String>,
    /// Processes of the command
    #[arg(long, value_name = "N", value_parser = few, conflicts_with = "url", help_heading = "Handler")]
    pub workers: Option<NonZeroU32>,
    /// How a URL is called.
    #[command(flatten)]
    pub http: HttpArgs,
    /// How items are driven.
    #[command(flatten)]
    pub tunes: Tunes,
    /// The job's identity; without it the source's (file path, content of the pipe, or total)
    #[arg(long, value_parser = job_name, help_heading = "Identity and state")]
    pub name: Option<String>,
    /// Forget what an earlier run of this job did and begin anew
    #[arg(long, help_heading = "Identity and state")]
    pub restart: bool,
    /// Where progress is kept; without it a directory per job in $XDG_STATE_HOME/windrow (~/.local/state/windrow)
    #[arg(long, value_name = "DIR", help_heading = "Identity and state")]
    pub state: Option<PathBuf>,
    /// A configuration file, for defaults
    #[arg(long, value_name = "FILE", help_heading = "Identity and state")]
    pub config: Option<PathBuf>,
    /// Write every failed item to this file as NDJSON when the run ends
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub failures_out: Option<PathBuf>,
    /// How the outcome is printed on standard output
    #[arg(short, long, value_enum, default_value_t = Output::Table, help_heading = "Output")]
    pub output: Output,
    /// How much is printed.
    #[command(flatten)]
    pub talk: Talk,
}

/// How an outcome is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Table,
    /// One JSON object
    Json,
}

/// The longest name that a person may give. Unit: bytes; the column holds 190.
const NAME_BYTES_MAX: usize = 128;

fn job_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > NAME_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(format!("a name has 1 to {NAME_BYTES_MAX} bytes without control characters"));
    }
    Ok(text.to_owned())
}

/// `windrow serve`
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The configuration; without it ./config.toml if there is one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where to listen, instead of http.listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<std::net::SocketAddr>,
    /// Where the database and its lock are, instead of node.data_dir
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// `windrow try`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("handler").required(true).args(["url", "cmd", "worker"])))]
pub struct TryArgs {
    /// The URL to call
    pub url: Option<String>,
    /// The command to start, as one text that is split at blanks
    #[arg(long)]
    pub cmd: Option<String>,
    /// The command to start, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub worker: Vec<OsString>,
    /// Which items: 3, 0..5 (without 5) or 1,2,17
    #[arg(long = "items", value_name = "ITEMS", default_value = "0..3", value_parser = super::choice::parse)]
    pub chosen: super::choice::Choice,
    /// The data of each item as JSON; {index} is its number
    #[arg(long, value_name = "JSON", conflicts_with_all = ["csv", "ndjson"])]
    pub data: Option<String>,
    /// Rows of a file as data.
    #[command(flatten)]
    pub items: Items,
    /// Items of one call
    #[arg(long, default_value = "1")]
    pub batch: NonZeroU32,
    /// How long one call may take
    #[arg(long, value_parser = parse_span, default_value = "10s")]
    pub timeout: Duration,
    /// Attempts of an item that asks for another
    #[arg(long, default_value = "1")]
    pub max_attempts: NonZeroU32,
    /// How a URL is called.
    #[command(flatten)]
    pub http: HttpArgs,
    /// A configuration file, for defaults
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How much is printed.
    #[command(flatten)]
    pub talk: Talk,
}

/// `windrow config`
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub verb: ConfigVerb,
}

/// What to do with a configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Check a file and the environment for `windrow serve`; lists every fault at once, or what the node will need
    Check {
        /// The file
        file: PathBuf,
    },
    /// Print every key with its default, unit and reason
    Default,
    /// Print the live settings that tasks have by default, from a file and the environment
    Show {
        /// The file
        file: Option<PathBuf>,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_run_needs_one_source_and_one_handler() {
        let parse = |words: &str| Cli::try_parse_from(words.split(' ').filter(|word| !word.is_empty()));
        assert!(parse("windrow run --total 3 -- true").is_ok());
        assert!(parse("windrow run --csv u.csv --url http://x --rate 500/s").is_ok());
        for wrong in [
            "windrow run -- true",
            "windrow run --total 3",
            "windrow run --total 0 -- true",
            "windrow run --total 3 --csv u.csv -- true",
            "windrow run --total 3 --url http://x -- true",
            "windrow run --total 3 --rate 0/s -- true",
            "windrow run --total 3 --rate fast -- true",
            "windrow run --total 3 --timeout 3 -- true",
            "windrow run --total 3 --url http://x --workers 2",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
