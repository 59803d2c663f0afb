//! Flags of every command that talks to a node.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use crate::output::table::times::TimeStyle;
use clap::{ArgAction, Args, ValueEnum};
use windrow_core::settings::text::parse_span;
use windrow_core::text::csv::Guard;

/// Output formats of `--output`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Table as wide as the terminal
    #[default]
    Table,
    /// Table with everything, at any width
    Wide,
    /// Response body of the API, verbatim
    Json,
    /// One JSON object per line
    Ndjson,
    /// Names only, one per line
    Name,
    /// CSV with every column, for spreadsheets
    Csv,
}

impl Form {
    /// True for formats that people read, false for those of programs.
    pub fn is_for_people(self) -> bool {
        matches!(self, Form::Table | Form::Wide)
    }
}

/// Protection against CSV texts that a spreadsheet would run as formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CsvGuard {
    /// Put an apostrophe before text that a spreadsheet would evaluate; numbers stay numbers
    #[default]
    On,
    /// Write every cell unchanged
    Off,
}

impl CsvGuard {
    /// Returns the value to send to a node, or `None` for the node's default.
    pub(crate) fn asked(self) -> Option<&'static str> {
        (self == CsvGuard::Off).then_some("off")
    }
}

impl From<CsvGuard> for Guard {
    fn from(asked: CsvGuard) -> Guard {
        match asked {
            CsvGuard::On => Guard::On,
            CsvGuard::Off => Guard::Off,
        }
    }
}

/// Flags for the output format.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct View {
    /// Format of the answer on standard output; --json is -o json
    #[arg(short = 'o', long, value_enum, value_name = "FORM", default_value_t = Form::Table)]
    pub output: Form,
    /// Escape CSV text that spreadsheets take for a formula; on or off
    #[arg(long, value_enum, value_name = "SWITCH", default_value_t = CsvGuard::On, hide_possible_values = true)]
    pub csv_guard: CsvGuard,
    /// Format of times in the output
    #[arg(long, value_enum, value_name = "STYLE", default_value_t = TimeStyle::Relative)]
    pub time: TimeStyle,
    /// Print no hints and no progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// Flags for the connection to the node, and for the output.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server")]
pub struct Remote {
    /// Context to use instead of the current one (WINDROW_CONTEXT)
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Address of the node (WINDROW_SERVER); defaults to the context's, without one to http://127.0.0.1:7700
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// File with the access token (WINDROW_TOKEN_FILE); WINDROW_TOKEN holds the token itself
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// PEM file of authorities to trust, instead of the system's
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Time limit of a request, including its retries
    #[arg(long, value_name = "SPAN", value_parser = parse_span, default_value = "30s")]
    pub request_timeout: Duration,
    /// Show each request: -v one line, -vv with headers and bodies; secrets are masked
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    /// Don't ask for confirmation; implied if CI is set, except before what can't be undone
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Flags for the output format.
    #[command(flatten)]
    pub view: View,
}

impl Remote {
    /// True if the command line names a node.
    pub(crate) fn is_named(&self) -> bool {
        self.server.is_some() || self.context.is_some()
    }
}

/// Flags of every command that changes something.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Change")]
pub struct Write {
    /// Reason for the change, for the audit log
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Show what would change, without changing anything
    #[arg(long)]
    pub dry_run: bool,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of a command for one named object.
#[derive(Clone, Debug, Args)]
pub struct Named {
    /// Name of the object
    pub name: String,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of a command that changes one named object.
#[derive(Clone, Debug, Args)]
pub struct NamedWrite {
    /// Name of the object
    pub name: String,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Flags of every list.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Pages")]
pub struct Paging {
    /// Maximum number of entries to list
    #[arg(long, value_name = "N", default_value = "50", conflicts_with = "all")]
    pub limit: NonZeroU32,
    /// List all entries, however many
    #[arg(long)]
    pub all: bool,
}

impl Paging {
    /// Paging that reads the complete list.
    pub const ALL: Paging = Paging {
        limit: NonZeroU32::MIN,
        all: true,
    };

    /// Limits a list to its first entries.
    pub fn first(limit: NonZeroU32) -> Paging {
        Paging { limit, all: false }
    }

    /// Returns the wanted number of entries, or `None` for all.
    pub fn wanted(&self) -> Option<usize> {
        (!self.all).then_some(self.limit.get() as usize)
    }
}

/// Arguments of a command that only lists.
#[derive(Clone, Debug, Args)]
pub struct Pages {
    /// Flags for the number of entries.
    #[command(flatten)]
    pub paging: Paging,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Returns the name of a choice, as the command line and the API spell it.
pub fn word(choice: &impl ValueEnum) -> String {
    let value = choice.to_possible_value();
    value.map(|value| value.get_name().to_owned()).unwrap_or_default()
}
