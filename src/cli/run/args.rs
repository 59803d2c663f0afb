//! Arguments of `windrow run`.

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

/// Usage line of the help, since clap's own is longer than a line and doesn't show where a command goes.
pub(crate) const USAGE: &str = "\
windrow run [OPTIONS] --csv FILE|--ndjson FILE|--lines FILE
                   |--glob PATTERN|--total N
                   --request 'POST URL' | --each COMMAND | --url URL
                   | -- COMMAND…
       windrow run [OPTIONS] --resume NAME";

/// Examples of `windrow run`, for the help.
pub(in crate) const EXAMPLES: &str = "Examples:
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

Files and pipes may be compressed (gzip, zstd, bzip2 or xz, detected by content).

A worker reads one line per item and answers one line per item, flushed; stderr is free text:
  in   {\"type\":\"hello\",…}   ignore it, or answer
       {\"type\":\"ready\",\"protocol\":1,\"concurrency\":8}
  in   {\"type\":\"item\",\"id\":17,\"index\":3817,\"attempt\":1,\"key\":\"…\",\"data\":{…}}
  out  ok, skip, retry or fail, for the oldest item; or, in any order,
  out  {\"type\":\"result\",\"id\":17,\"result\":\"retry\",\"code\":\"BUSY\",\"message\":\"…\"}
  in   {\"type\":\"drain\"}, {\"type\":\"shutdown\",…} and others: ignore, no answer
  end  of stdin: exit. `windrow init` writes a worker, `windrow try` checks it

A URL gets a POST per item (with --batch: \"items\" in, \"results\" out):
  in   {\"type\":\"item.process\",\"item\":{\"index\":7,\"key\":\"…\",\"data\":{…},…},…}
  out  any 2xx without a body: done; or {\"result\":\"retry\",\"code\":\"BUSY\"}, also
       skip and fail
  out  422 fails the item, 429 pauses for its Retry-After, 410 stops the job;
       3xx, other 4xx (also 404), 5xx and timeouts are retried. If there is no
       other response, three in a row of 3xx, 401, 403, 404, 405, 415 or 501,
       or ten of another 4xx, stop the job: they concern all items

--request calls any other API with a request built from the item's data;
2xx: done, 429 pauses, 5xx is retried, other 4xx fail the item.

--each starts the program once per item; its exit code is the result:
  0    done; stdout is the item's output, kept with --results-out
  65   the item fails; any other code: retried
  75   a dependency is down (also --unavailable-exit): like a 503
  126, 127  the program can't be started: three in a row stop the job
  stdin is the row as JSON; WINDROW_INDEX, WINDROW_KEY and WINDROW_ATTEMPT are
  set; one process per core runs at once, or --concurrency N

Defaults: --rate auto for --request and --url, otherwise as fast as the handler answers, --batch 1 --concurrency auto --call-timeout 10s --max-attempts 5 --backoff '1s..60s x2 jitter 20%' --error-budget auto

Ctrl-C stops gracefully: calls in flight end, then the program exits. The same command resumes without repeating anything.
It also resumes after a crash or kill -9; items in flight and those of the last moments are then repeated with the same keys.
Piped input is stored: --resume NAME resumes it even if the pipe would now bring other items, with
the job's handler and settings except for the given flags. Secrets are not stored: their files are read again,
otherwise the command to type is shown.
Exit codes: windrow help exit-codes";

/// Flags for the live settings. Omitted ones come from the configuration.
pub(crate) type Tunes = Settings<true>;

/// Largest number of workers, far above any useful one: a typing error must not take the machine down.
const WORKERS_MAX: u32 = 4096;

fn few(text: &str) -> Result<NonZeroU32, String> {
    let number = text
        .parse::<NonZeroU32>()
        .ok()
        .filter(|number| number.get() <= WORKERS_MAX);
    number.ok_or_else(|| format!("must be a number from 1 to {WORKERS_MAX}"))
}

/// Arguments of `windrow run`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("items").required(true).args(["csv", "ndjson", "lines", "glob", "total", "resume"])))]
#[command(group(ArgGroup::new(WITH_PROGRAM).multiple(true).args(["each", "resume"])))]
pub struct RunArgs {
    /// Flags for the source of the items.
    #[command(flatten)]
    pub items: Items,
    /// Files that match a quoted pattern ('in/*.png'), as items with path, name, stem, ext, dir and bytes
    #[arg(long, value_name = "PATTERN", value_hint = ValueHint::AnyPath, help_heading = "Items")]
    pub glob: Option<String>,
    /// Fail if a file of the pattern can't be listed, instead of skipping and counting it
    #[arg(long, requires = "glob", help_heading = "Items")]
    pub strict: bool,
    /// Outcome for an empty source: ok (nothing to do, exit 0) or error (exit 7)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = IfEmpty::Ok, help_heading = "Items")]
    pub if_empty: IfEmpty,
    /// Run this many items without data, numbered 0, 1, 2 …
    #[arg(long, value_name = "N", help_heading = "Items")]
    pub total: Option<u64>,
    /// Command that does the work, after --; it reads items as lines and answers each with a line
    #[arg(last = true, conflicts_with = "request", required_unless_present_any = ["url", "each", "request", "resume"],
        value_name = "COMMAND", value_hint = ValueHint::AnyPath, help_heading = "Handler")]
    pub worker: Vec<OsString>,
    /// URL of the handler that does the work
    #[arg(long, conflicts_with_all = ["worker", "each", "request"], help_heading = "Handler")]
    pub url: Option<String>,
    /// Number of processes that run the command
    #[arg(long, value_name = "N", value_parser = few, conflicts_with_all = ["url", "request", "each"], help_heading = "Handler")]
    pub workers: Option<NonZeroU32>,
    /// Flags for one process per item.
    #[command(flatten)]
    pub each: EachArgs,
    /// Stop the job (exit 7) if the handler can't be reached, or rejects everything, for this long
    #[arg(long, value_name = "SPAN", value_parser = parse_span, default_value = "30s", help_heading = "Handler")]
    pub first_contact: Duration,
    /// Wait for a handler that isn't running yet, however long it takes
    #[arg(long, conflicts_with = "first_contact", help_heading = "Handler")]
    pub wait: bool,
    /// Flags for calls to a URL.
    #[command(flatten)]
    pub http: HttpArgs,
    /// Flags for the request made for each item.
    #[command(flatten)]
    pub request: RequestArgs,
    /// Flags for the live settings.
    #[command(flatten)]
    pub tunes: Tunes,
    /// Name of the job; by default it is derived from the source (file path, content of the pipe, or total)
    #[arg(long, value_parser = new_name, help_heading = "Identity and state")]
    pub name: Option<String>,
    /// Resume the job of this name, even if its items came from a pipe; keeps its handler unless another is given
    #[arg(long, value_name = "NAME", value_parser = job_name, conflicts_with = "name",
        help_heading = "Identity and state")]
    pub resume: Option<String>,
    /// Discard an earlier run of this job and start anew; with --resume, over the job's items
    #[arg(long, help_heading = "Identity and state")]
    pub restart: bool,
    /// Redo the failed items of this job, with the same keys; repeat it for items that fail again
    #[arg(long, conflicts_with_all = ["restart", "if_finished"], help_heading = "Identity and state")]
    pub only_failed: bool,
    /// Outcome if the job has already finished: ok (exit 0), error (exit 4), restart; default: its exit code
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        conflicts_with = "restart",
        help_heading = "Identity and state"
    )]
    pub if_finished: Option<IfFinished>,
    /// Directory for the progress; defaults to one per job in $XDG_STATE_HOME/windrow (~/.local/state/windrow)
    #[arg(long, value_name = "DIR", help_heading = "Identity and state")]
    pub state: Option<PathBuf>,
    /// Let `windrow job` control the run from another terminal of the same user: on or off
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
    /// Serve the job's dashboard to browsers on this machine, until the job ends; prints its address
    #[arg(long, help_heading = "Output")]
    pub page: bool,
    /// Configuration file that provides defaults
    #[arg(long, value_name = "FILE", help_heading = "Identity and state")]
    pub config: Option<PathBuf>,
    /// Write every failed item to this file as NDJSON when the run ends
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub failures_out: Option<PathBuf>,
    /// Flags for the results file.
    #[command(flatten)]
    pub results: ResultArgs,
    /// Columns of failed items to show and write, separated by commas; by default all
    #[arg(long, value_name = "COLUMNS", help_heading = "Output")]
    pub key_column: Option<String>,
    /// Format of the outcome on standard output
    #[arg(short, long, value_enum, default_value_t = Output::Table, help_heading = "Output")]
    pub output: Output,
    /// Flags for more or less output.
    #[command(flatten)]
    pub talk: Verbosity,
}

/// Flags for the results file.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ResultArgs {
    /// Write outputs in index order to this file as NDJSON, or CSV if it ends in .csv; - is standard output
    #[arg(long = "results-out", value_name = "FILE", id = "results_out", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Write only results after the item with this index
    #[arg(
        long = "results-after",
        value_name = "INDEX",
        id = "results_after",
        requires = "results_out"
    )]
    pub after: Option<u64>,
    /// Columns of the item's data to add to each result, separated by commas; '*' adds all of it as JSON
    #[arg(
        long = "results-data",
        value_name = "COLUMNS",
        id = "results_data",
        requires = "results_out"
    )]
    pub data: Option<String>,
    /// Output members to use as CSV columns, separated by commas, instead of the JSON
    #[arg(
        long = "results-columns",
        value_name = "MEMBERS",
        id = "results_columns",
        requires = "results_out"
    )]
    pub columns: Option<String>,
    /// Escape CSV text that spreadsheets take for a formula; on or off [default: on]
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
    /// True if results go to standard output.
    pub(crate) fn is_onto_stdout(&self) -> bool {
        self.out.as_deref().is_some_and(|path| path.as_os_str() == "-")
    }
}

/// Positions of an on/off switch, for `--control`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Turn the feature on
    On,
    /// Turn the feature off
    Off,
}

/// Outcomes for a job that has already finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IfFinished {
    /// Success, whatever its end: exit 0
    Ok,
    /// Treat it as an error: exit 4
    Error,
    /// Start the job anew
    Restart,
}

/// Outcomes for an empty source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IfEmpty {
    /// Success with nothing to do: exit 0
    Ok,
    /// Treat it as an error: exit 7
    Error,
}

/// Formats of the outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Table for people to read
    Table,
    /// A single JSON object
    Json,
}

impl RunArgs {
    /// Returns the flags of `run` as a separate command, without the rest of the program.
    pub(in crate::run) fn command() -> Command {
        RunArgs::augment_args(Command::new("run"))
    }

    /// Parses words that start with `run`.
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
