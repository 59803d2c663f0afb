//! What does failures again.

use clap::{ArgGroup, Args};

use super::make::{Begin, CanaryArgs, Identity};
use crate::input::attributes::{Attributes, Redriving};
use crate::input::settings::Settings;
use crate::link::Write;
use crate::run::args::IfEmpty;

/// How `redrive` is called; clap's own is longer than a line.
pub(super) const REDRIVE_USAGE: &str = "\
windrow task redrive --code CODES|--indexes SET|--unconfirmed|--all TASK";

/// The exit codes of `redrive`.
pub(super) const REDRIVE_EXITS: &str = "\
Exit with --wait: that of the redrive, 8 where some of its items failed again.
Failures of TASK that it left alone don't count.";

/// `windrow task redrive`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("failures").required(true).multiple(true).args(["codes", "indexes", "unconfirmed", "all"])))]
pub struct RedriveArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// Failures of these codes
    #[arg(
        long = "code",
        id = "codes",
        value_name = "CODES",
        value_delimiter = ',',
        help_heading = "Which"
    )]
    pub codes: Vec<String>,
    /// Only these items, such as 5,9-20
    #[arg(long, value_name = "SET", help_heading = "Which")]
    pub indexes: Option<String>,
    /// Only unconfirmed failures: nothing showed whether the handler failed for them alone
    #[arg(long, help_heading = "Which")]
    pub unconfirmed: bool,
    /// All failures
    #[arg(long, conflicts_with_all = ["codes", "indexes", "unconfirmed"], help_heading = "Which")]
    pub all: bool,
    /// Also what earlier redrives recovered or have under way
    #[arg(long, help_heading = "Which")]
    pub again: bool,
    /// No failure left to do again: ok (exit 0) or error (exit 7)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = IfEmpty::Ok, help_heading = "Which")]
    pub if_empty: IfEmpty,
    /// Give the items new idempotency keys, so that the business takes them for new ones
    #[arg(long, help_heading = "Content")]
    pub new_keys: bool,
    /// What it is found by.
    #[command(flatten)]
    pub identity: Identity,
    /// What has a plain value.
    #[command(flatten)]
    pub attributes: Attributes<Redriving>,
    /// How items are driven.
    #[command(flatten)]
    pub settings: Settings,
    /// The first items.
    #[command(flatten)]
    pub canary: CanaryArgs,
    /// Whether it begins.
    #[command(flatten)]
    pub begin: Begin,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}
