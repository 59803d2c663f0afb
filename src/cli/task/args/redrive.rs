//! Arguments of the commands that redo failed items, and that replay named ones.

use clap::{ArgGroup, Args};

use super::make::{Begin, CanaryArgs, Identity};
use crate::input::attributes::{Attributes, Redriving};
use crate::input::metering::UnitLimits;
use crate::input::settings::Settings;
use crate::link::Write;
use crate::run::args::IfEmpty;

/// Usage of `redrive`, since clap's own is longer than a line.
pub(super) const REDRIVE_USAGE: &str = "\
windrow task redrive --code CODES|--indexes SET|--unconfirmed|--all TASK";

/// Exit codes of `redrive`, for the help.
pub(super) const REDRIVE_EXITS: &str =
    "The exit code with --wait is that of the redrive: 8 if some of its items failed
again. Failures of TASK outside the redrive don't count.";

/// Arguments of `windrow task redrive`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("failures").required(true).multiple(true).args(["codes", "indexes", "unconfirmed", "all"])))]
pub struct RedriveArgs {
    /// Task with the failures: t42, or business/name
    pub task: String,
    /// Failures with these codes, separated by commas
    #[arg(
        long = "code",
        id = "codes",
        value_name = "CODES",
        value_delimiter = ',',
        help_heading = "Selection"
    )]
    pub codes: Vec<String>,
    /// Only these items, such as 5,9-20
    #[arg(long, value_name = "SET", help_heading = "Selection")]
    pub indexes: Option<String>,
    /// Only unconfirmed failures: the handler may be at fault, not the item
    #[arg(long, help_heading = "Selection")]
    pub unconfirmed: bool,
    /// Redo all failed items, whatever the code
    #[arg(long, conflicts_with_all = ["codes", "indexes", "unconfirmed"], help_heading = "Selection")]
    pub all: bool,
    /// Include items that earlier redrives recovered, or are working on
    #[arg(long, help_heading = "Selection")]
    pub again: bool,
    /// Outcome if no failure is left: ok (exit 0) or error (exit 7)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = IfEmpty::Ok, help_heading = "Selection")]
    pub if_empty: IfEmpty,
    /// Give the items new idempotency keys, so that the business treats them as new
    #[arg(long, help_heading = "Content")]
    pub new_keys: bool,
    /// Flags that identify the redrive.
    #[command(flatten)]
    pub identity: Identity,
    /// Flags for attributes with plain values.
    #[command(flatten)]
    pub attributes: Attributes<Redriving>,
    /// Flags for limits in units.
    #[command(flatten)]
    pub limits: UnitLimits,
    /// Flags for the live settings.
    #[command(flatten)]
    pub settings: Settings,
    /// Flags for the canary, the first items.
    #[command(flatten)]
    pub canary: CanaryArgs,
    /// Flags that start the redrive.
    #[command(flatten)]
    pub begin: Begin,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Examples of `replay`, for the help.
pub(super) const REPLAY_EXAMPLES: &str = "\
Examples:
  windrow task replay t42 --index 7 --reason 'the customer lost the letter'
  windrow task replay t42 --index 7,12-14 --same-key --wait

The items may have succeeded, been skipped or failed. TASK keeps its result; the new task has one of its own
(windrow task results). With --same-key a service that knows the key may answer without doing the work again.";

/// Arguments of `windrow task replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Task with the items: t42, or business/name
    pub task: String,
    /// Items to send again: indexes and inclusive ranges, separated by commas
    #[arg(long, aliases = ["indexes", "items"], value_name = "INDEXES")]
    pub index: String,
    /// Keep the idempotency keys of the first calls; by default the items get new ones
    #[arg(long, alias = "same-keys")]
    pub same_key: bool,
    /// Wait for the end: exit 0, 8 with failures, 9 if it stopped
    #[arg(long)]
    pub wait: bool,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}
