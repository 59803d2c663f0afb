//! Arguments of `windrow try`.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueHint};

use crate::input::choice::{self, Choice};
use crate::input::flags::{HttpArgs, Items};
use crate::input::metering::UnitLimits;
use crate::output::screen::Verbosity;
use crate::run::handler::each::{EachArgs, WITH_PROGRAM};
use crate::run::handler::request::RequestArgs;
use windrow_core::settings::text::parse_span;

/// Usage line of the help, since clap's own is longer than a line.
pub(crate) const USAGE: &str = "\
windrow try [OPTIONS] URL | --url URL | --request 'POST URL'
                   | --cmd TEXT | -- COMMAND…";

/// Examples of `windrow try`, for the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  windrow try http://127.0.0.1:9000/windrow --items 0..5 \\
    --data '{\"user_id\":\"u{index}\"}'
  windrow try --csv users.csv --items 0..3 -- python3 -u handler.py
  windrow try --csv orders.csv \\
    --request 'GET https://api.example/v1/orders/{order_id}'
  windrow try --csv images.csv --each 'convert {in} -resize 50% {out}'
  windrow try --cmd 'python3 -u handler.py' --items 7";

/// Arguments of `windrow try`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("handler").required(true).multiple(true).args(["url", "address", "cmd", "worker", "each", "request"])))]
#[command(group(ArgGroup::new(WITH_PROGRAM).arg("each")))]
pub struct TryArgs {
    /// URL of the handler to call
    #[arg(conflicts_with_all = ["address", "cmd", "worker", "each", "request"])]
    pub url: Option<String>,
    /// URL of the handler, given as for `windrow run`
    #[arg(long = "url", value_name = "URL", conflicts_with_all = ["cmd", "worker", "each", "request"])]
    pub address: Option<String>,
    /// Command to start, as a single text that is split at blanks
    #[arg(long, conflicts_with_all = ["worker", "each", "request"])]
    pub cmd: Option<String>,
    /// Command to start, after --
    #[arg(last = true, conflicts_with = "request", value_name = "COMMAND", value_hint = ValueHint::AnyPath)]
    pub worker: Vec<OsString>,
    /// Flags for one process per item.
    #[command(flatten)]
    pub each: EachArgs,
    /// Items to call: 3, 0..5 (without 5) or 1,2,17; defaults to the first three, or to fewer if there are no more
    #[arg(long = "items", value_name = "ITEMS", value_parser = choice::parse)]
    pub chosen: Option<Choice>,
    /// JSON data of each item; {index} is the item's number
    #[arg(long, value_name = "JSON", conflicts_with_all = ["csv", "ndjson", "lines"])]
    pub data: Option<String>,
    /// Files that match a quoted pattern ('in/*.png'), as items with path, name, stem, ext, dir and bytes
    #[arg(long, value_name = "PATTERN", value_hint = ValueHint::AnyPath, conflicts_with_all = ["csv", "ndjson", "lines", "data"])]
    pub glob: Option<String>,
    /// Flags for data from the rows of a file.
    #[command(flatten)]
    pub items: Items,
    /// Number of items per call
    #[arg(long, default_value = "1")]
    pub batch: NonZeroU32,
    /// Timeout of one handler call
    #[arg(long, value_name = "SPAN", value_parser = parse_span, default_value = "10s")]
    pub call_timeout: Duration,
    /// Maximum attempts of an item that asks for a retry
    #[arg(long, default_value = "1")]
    pub max_attempts: NonZeroU32,
    /// Flags for calls to a URL.
    #[command(flatten)]
    pub http: HttpArgs,
    /// Flags for the request made for each item.
    #[command(flatten)]
    pub request: RequestArgs,
    /// Flags for limits in units, whose costs are shown; nothing is held back.
    #[command(flatten)]
    pub limits: UnitLimits,
    /// Configuration file that provides defaults
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Flags for more or less output.
    #[command(flatten)]
    pub talk: Verbosity,
}
