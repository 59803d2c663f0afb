//! `windrow run` on the command line.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Command, FromArgMatches, ValueEnum, ValueHint};

use crate::input::flags::{HttpArgs, Items};
use crate::input::settings::Settings;
use crate::link::CsvGuard;
use crate::output::screen::Verbosity;
use crate::run::handler::each::{EachArgs, WITH_PROGRAM};
use crate::run::handler::request::RequestArgs;
use crate::run::kept::place::{job_name, new_name};
use windrow_core::settings::text::parse_span;

/// clap's own is longer than a line, and doesn't show where a command stands.
pub(crate) const USAGE: &str = "\
windrow run [OPTIONS] --csv FILE|--ndjson FILE|--lines FILE
                   |--glob PATTERN|--total N
                   --request 'POST URL' | --each COMMAND | --url URL
                   | -- COMMAND…
       windrow run [OPTIONS] --resume NAME";

/// How it is used.
pub(in crate) const EXAMPLES: &str = "\
Examples:
  windrow run --csv users.csv --rate 500/s -- python3 -u handler.py
  windrow run --csv users.csv --url http://127.0.0.1:9000/windrow --batch 16
  windrow run --csv orders.csv --rate 20/s --json '{\"qty\": {qty:number}}' \\
    --request 'POST https://api.example/v1/orders/{order_id}/ship' \\
    --results-out answers.ndjson
  windrow run --total 99 --rate 9/s -- sh -c 'while read -r l; do echo ok; done'
  windrow run --glob 'in/*.png' --each 'convert {path} -resize 50% out/{name}'
  windrow run --lines urls.txt --rate 20/s --failures-out dead.ndjson \\
    --each 'curl -fsS -o /dev/null {}'
  jq -c '.[]' users.json | windrow run --ndjson - --workers 4 -- ./worker
  psql -f users.sql --csv | windrow run --csv - --name push -- ./worker
  windrow run --ndjson events.ndjson.zst --url http://127.0.0.1:9000/windrow
  windrow run --resume push

Files and pipes may be compressed: gzip, zstd, bzip2 or xz, told by their content.

A worker reads a line for each item and answers a line for each; flush them, stderr is free text:
  in   {\"type\":\"hello\",…}   skipped, or answered with
       {\"type\":\"ready\",\"protocol\":1,\"concurrency\":8}
  in   {\"type\":\"item\",\"id\":17,\"index\":3817,\"attempt\":1,\"key\":\"…\",\"data\":{…}}
  out  ok, skip, retry or fail, for the oldest item; or, in any order,
  out  {\"type\":\"result\",\"id\":17,\"result\":\"retry\",\"code\":\"BUSY\",\"message\":\"…\"}
  in   {\"type\":\"drain\"}, {\"type\":\"shutdown\",…}, also others: skipped, no answer
  end  of stdin: it ends. `windrow init` writes one, `windrow try` checks it

A URL gets a POST for each item (with --batch: \"items\" in, \"results\" out):
  in   {\"type\":\"item.process\",\"item\":{\"index\":7,\"key\":\"…\",\"data\":{…},…},…}
  out  any 2xx without a body: done; or {\"result\":\"retry\",\"code\":\"BUSY\"}, also
       skip and fail
  out  422 fails the item, 429 pauses for its Retry-After, 410 stops the job;
       3xx, other 4xx (404 too), 5xx and timeouts are tried again. Where nothing
       else is answered, three of 3xx, 401, 403, 404, 405, 415 or 501 in a row,
       or ten of another 4xx, stop the job: they are about all items

An API that knows nothing of Windrow gets the --request that was made of the item's
data; 2xx: done, 429 pauses, 5xx is tried again, other 4xx fail the item.

--each starts the program once for each item; exit codes say what came of it:
  0    done; stdout is the item's output, kept with --results-out
  65   the item is failed; any other code: it is tried again
  75   what it needs isn't there (also --unavailable-exit): as a 503
  126, 127  the program can't be started: three in a row stop the job
  stdin is the row as JSON, WINDROW_INDEX, WINDROW_KEY and WINDROW_ATTEMPT are
  set; as many run at once as there are cores, or --concurrency N

Without flags: as fast as the handler answers, --batch 1 --concurrency auto --call-timeout 10s --max-attempts 5 --backoff '1s..60s x2 jitter 20%' --error-budget auto

Ctrl-C stops calmly: calls under way end, then the program does. The same command resumes and repeats nothing. After a crash
or a kill -9 it does too; items that were in flight, and those of the last moments, are done again under the same keys.
What a pipe brought is kept: --resume NAME goes on with it, also where the pipe would bring other items now, and with
the handler and the settings that the job has, but for those that flags change. Secrets are not kept: files of theirs are read again,
for others it says what to type.
Exit codes: windrow help exit-codes";

/// How items are driven; what isn't said here comes from the configuration.
pub(crate) type Tunes = Settings<true>;

/// More processes than any machine is helped by; a slip of the finger must not take it down.
const WORKERS_MAX: u32 = 4096;

fn few(text: &str) -> Result<NonZeroU32, String> {
    let number = text
        .parse::<NonZeroU32>()
        .ok()
        .filter(|number| number.get() <= WORKERS_MAX);
    number.ok_or_else(|| format!("a number from 1 to {WORKERS_MAX} is needed"))
}

/// `windrow run`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("items").required(true).args(["csv", "ndjson", "lines", "glob", "total", "resume"])))]
#[command(group(ArgGroup::new(WITH_PROGRAM).multiple(true).args(["each", "resume"])))]
pub struct RunArgs {
    /// Where items come from.
    #[command(flatten)]
    pub items: Items,
    /// Files that match a pattern, sorted, each an item {"path", "name", "stem", "ext", "dir", "bytes"}; the list is made once,
    /// at the first start. Quote it: 'in/*.png', 'in/**/*.{png,jpg}'
    #[arg(long, value_name = "PATTERN", value_hint = ValueHint::AnyPath, help_heading = "Items")]
    pub glob: Option<String>,
    /// Refuse the pattern if a file can't be listed (a link that leads nowhere, a closed directory, a name that is not UTF-8);
    /// without it such files are skipped and counted
    #[arg(long, requires = "glob", help_heading = "Items")]
    pub strict: bool,
    /// An empty source: ok (nothing to do, exit 0) or error (exit 7)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = IfEmpty::Ok, help_heading = "Items")]
    pub if_empty: IfEmpty,
    /// So many items without data: 0, 1, 2 …
    #[arg(long, value_name = "N", help_heading = "Items")]
    pub total: Option<u64>,
    /// The command that does the work, after --; it reads items as lines and answers each with a line
    #[arg(last = true, conflicts_with = "request", required_unless_present_any = ["url", "each", "request", "resume"],
        value_name = "COMMAND", value_hint = ValueHint::AnyPath, help_heading = "Handler")]
    pub worker: Vec<OsString>,
    /// The URL that does the work
    #[arg(long, conflicts_with_all = ["worker", "each", "request"], help_heading = "Handler")]
    pub url: Option<String>,
    /// Processes of the command
    #[arg(long, value_name = "N", value_parser = few, conflicts_with_all = ["url", "request", "each"], help_heading = "Handler")]
    pub workers: Option<NonZeroU32>,
    /// One process an item.
    #[command(flatten)]
    pub each: EachArgs,
    /// How long a handler is tried that can't be reached (502 and 503 say so), answers every item with 4xx, or dies before it
    /// takes an item, before the job ends (exit 7). Three refusals in a row (401, 403, 404 …; more, where some items are
    /// refused all along), or ten of another 4xx before the first success, end it at once. Other 5xx, timeouts, broken
    /// connections and workers that die with an item may pass: --judge-after says how long those are tried
    #[arg(long, value_name = "SPAN", value_parser = parse_span, default_value = "30s", help_heading = "Handler")]
    pub first_contact: Duration,
    /// Wait for a handler that isn't there yet, however long it takes; one that is there and answers nothing is tried for
    /// --judge-after
    #[arg(long, conflicts_with = "first_contact", help_heading = "Handler")]
    pub wait: bool,
    /// How a URL is called.
    #[command(flatten)]
    pub http: HttpArgs,
    /// A request for each item.
    #[command(flatten)]
    pub request: RequestArgs,
    /// How items are driven.
    #[command(flatten)]
    pub tunes: Tunes,
    /// The job's identity; without it the source's (file path, content of the pipe, or total)
    #[arg(long, value_parser = new_name, help_heading = "Identity and state")]
    pub name: Option<String>,
    /// Go on with the job of this name over its own items, also those that a pipe brought, with its own handler unless
    /// another is named, and with its results where they went; takes the place of the source
    #[arg(long, value_name = "NAME", value_parser = job_name, conflicts_with = "name",
        help_heading = "Identity and state")]
    pub resume: Option<String>,
    /// Forget what an earlier run of this job did and begin anew; with --resume over the items that it has
    #[arg(long, help_heading = "Identity and state")]
    pub restart: bool,
    /// Do again what this job failed, with the same keys; done once more, what that left
    #[arg(long, conflicts_with_all = ["restart", "if_finished"], help_heading = "Identity and state")]
    pub only_failed: bool,
    /// What it means that the job has finished already: ok (exit 0), error (exit 4), restart (begin anew); without it the
    /// exit code is that of the job's end: 0, or 8 with failures; 4 if it was begun with another handler
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        conflicts_with = "restart",
        help_heading = "Identity and state"
    )]
    pub if_finished: Option<IfFinished>,
    /// Where progress is kept; without it a directory per job in $XDG_STATE_HOME/windrow (~/.local/state/windrow)
    #[arg(long, value_name = "DIR", help_heading = "Identity and state")]
    pub state: Option<PathBuf>,
    /// Whether `windrow job` may steer the run from another terminal of the same user: on or off
    #[arg(
        long,
        value_enum,
        value_name = "ON|OFF",
        default_value_t = Switch::On,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "on",
        help_heading = "Identity and state"
    )]
    pub control: Switch,
    /// Show the dashboard of this job to a browser of this machine until the job ends; its address is printed
    #[arg(long, help_heading = "Output")]
    pub page: bool,
    /// A configuration file, for defaults
    #[arg(long, value_name = "FILE", help_heading = "Identity and state")]
    pub config: Option<PathBuf>,
    /// Write every failed item to this file as NDJSON when the run ends
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub failures_out: Option<PathBuf>,
    /// What items came to.
    #[command(flatten)]
    pub results: ResultArgs,
    /// Of what failed items carry show and write these columns only, separated by commas
    #[arg(long, value_name = "COLUMNS", help_heading = "Output")]
    pub key_column: Option<String>,
    /// How the outcome is printed on standard output
    #[arg(short, long, value_enum, default_value_t = Output::Table, help_heading = "Output")]
    pub output: Output,
    /// How much is printed.
    #[command(flatten)]
    pub talk: Verbosity,
}

/// What is written of what items came to.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ResultArgs {
    /// Write what items came to, a line for each that succeeded with an output, in index order while the job runs: NDJSON,
    /// or CSV where the name ends in .csv; - is standard output. FILE.partial grows until the job ends. The job keeps
    /// them (results = keep): once it has ended, the same command writes them again, with those of --only-failed
    #[arg(long = "results-out", value_name = "FILE", id = "results_out", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Only what follows the item of this index
    #[arg(
        long = "results-after",
        value_name = "INDEX",
        id = "results_after",
        requires = "results_out"
    )]
    pub after: Option<u64>,
    /// With what each item carries: names of its columns, separated by commas, which are columns of their own in a CSV; or '*',
    /// all of it as JSON in one column, data
    #[arg(
        long = "results-data",
        value_name = "COLUMNS",
        id = "results_data",
        requires = "results_out"
    )]
    pub data: Option<String>,
    /// In a CSV a column for each of these members of the outputs, separated by commas, instead of the JSON
    #[arg(
        long = "results-columns",
        value_name = "MEMBERS",
        id = "results_columns",
        requires = "results_out"
    )]
    pub columns: Option<String>,
    /// In a CSV, keep texts from being formulas of a spreadsheet [default: on]
    #[arg(
        long = "csv-guard",
        value_enum,
        value_name = "SWITCH",
        hide_possible_values = true,
        requires = "results_out"
    )]
    pub guard: Option<CsvGuard>,
}

impl ResultArgs {
    /// Whether standard output takes them.
    pub(crate) fn is_onto_stdout(&self) -> bool {
        self.out.as_deref().is_some_and(|path| path.as_os_str() == "-")
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// What it means that a job has finished already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IfFinished {
    /// All is well, whatever its end: exit 0
    Ok,
    /// Something is wrong: exit 4
    Error,
    /// It begins anew
    Restart,
}

/// The end of a run over an empty source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IfEmpty {
    /// Nothing is to be done, and nothing failed
    Ok,
    /// Something is wrong: exit 7
    Error,
}

/// How an outcome is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Table,
    /// One JSON object
    Json,
}

impl RunArgs {
    /// The flags of a run, without the program around them.
    pub(in crate::run) fn command() -> Command {
        RunArgs::augment_args(Command::new("run"))
    }

    /// Reads words of which the first is `run`.
    pub(in crate::run) fn read<W: Into<OsString> + Clone>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<RunArgs, clap::Error> {
        RunArgs::from_arg_matches(&RunArgs::command().try_get_matches_from(words)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_config::TaskDefaults;
    use windrow_core::settings::text::span_text;

    #[test]
    fn the_help_has_the_defaults() {
        let tuning = TaskDefaults::default().tuning;
        let flags = format!(
            "--batch {} --concurrency {} --call-timeout {} --max-attempts {} --backoff '{}' --error-budget {}",
            tuning.batch,
            tuning.concurrency,
            span_text(tuning.timeout),
            tuning.max_attempts,
            tuning.backoff,
            tuning.error_budget
        );
        assert!(EXAMPLES.contains(&flags), "{flags}");
    }

    #[test]
    fn a_run_needs_one_source_and_one_handler() {
        let parse = |words: &str| RunArgs::read(words.split(' ').skip(1).filter(|word| !word.is_empty()));
        assert!(parse("windrow run --total 3 -- true").is_ok());
        assert!(parse("windrow run --total 0 --if-empty error -- true").is_ok());
        assert!(parse("windrow run --csv u.csv --url http://x --rate 500/s").is_ok());
        assert!(parse("windrow run --resume push --if-finished restart -- true").is_ok());
        assert!(parse("windrow run --resume push").is_ok());
        assert!(parse("windrow run --resume push --restart").is_ok());
        assert!(parse("windrow run --resume push --only-failed --allow-dashes").is_ok());
        assert!(parse("windrow run --total 3 --each true --concurrency 4").is_ok());
        assert!(parse("windrow run --each --total 3 -- true {index}").is_ok());
        assert!(parse("windrow run --total 3 --each true --shell --allow-dashes").is_ok());
        for wrong in [
            "windrow run -- true",
            "windrow run --total 3",
            "windrow run --resume push --csv - -- true",
            "windrow run --resume push --name push -- true",
            "windrow run --total 3 --name ../x -- true",
            "windrow run --total 3 --name=bad\tname -- true",
            "windrow run --total 3 --restart --if-finished ok -- true",
            "windrow run --total 3 --if-finished perhaps -- true",
            "windrow run --total 3 --csv u.csv -- true",
            "windrow run --lines u.txt --csv u.csv -- true",
            "windrow run --lines u.txt --glob * -- true",
            "windrow run --total 3 --url http://x -- true",
            "windrow run --total 3 --each true --url http://x",
            "windrow run --total 3 --each true --workers 2",
            "windrow run --total 3 --shell -- true",
            "windrow run --total 3 --allow-dashes -- true",
            "windrow run --total 3 --rate 0/s -- true",
            "windrow run --total 3 --rate fast -- true",
            "windrow run --total 3 --call-timeout 3 -- true",
            "windrow run --total 3 --url http://x --workers 2",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
