//! The flags of every command that talks to a node.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use crate::output::table::times::TimeStyle;
use clap::{ArgAction, Args, ValueEnum};
use windrow_core::settings::text::parse_span;
use windrow_core::text::csv::Guard;

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people, as wide as the terminal
    #[default]
    Table,
    /// For people, everything
    Wide,
    /// The body of the API, verbatim
    Json,
    /// One object a line
    Ndjson,
    /// Names only, one a line
    Name,
    /// Every column, for spreadsheets
    Csv,
}

impl Form {
    /// Whether a person reads it, and no program.
    pub fn is_for_people(self) -> bool {
        matches!(self, Form::Table | Form::Wide)
    }
}

/// Keeps texts from being formulas of a spreadsheet, in CSV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CsvGuard {
    /// An apostrophe before a text that a spreadsheet would compute; numbers stay numbers
    #[default]
    On,
    /// Every cell is what it is
    Off,
}

impl CsvGuard {
    /// What a node is asked for; nothing for what it does of itself.
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

/// How things are shown.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct View {
    /// How the answer is printed on standard output; --json is -o json
    #[arg(short = 'o', long, value_enum, value_name = "FORM", default_value_t = Form::Table)]
    pub output: Form,
    /// In CSV, keep texts from being formulas of a spreadsheet
    #[arg(long, value_enum, value_name = "SWITCH", default_value_t = CsvGuard::On, hide_possible_values = true)]
    pub csv_guard: CsvGuard,
    /// How times are shown
    #[arg(long, value_enum, value_name = "STYLE", default_value_t = TimeStyle::Relative)]
    pub time: TimeStyle,
    /// No hints and no progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// How the node is reached, and how its answers are shown.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server")]
pub struct Remote {
    /// The context to use instead of the current one (WINDROW_CONTEXT)
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The node's address (WINDROW_SERVER); without it and a context http://127.0.0.1:7700
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// A file with the token (WINDROW_TOKEN_FILE; WINDROW_TOKEN is the token itself)
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Authorities to trust instead of the system's, as PEM
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// How long a request may take, with all that is tried again
    #[arg(long, value_name = "SPAN", value_parser = parse_span, default_value = "30s")]
    pub request_timeout: Duration,
    /// Show each request: -v a line, -vv headers and bodies too; secrets are masked
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    /// Ask nothing; with CI set that holds of itself, but for what can't be undone
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// How things are shown.
    #[command(flatten)]
    pub view: View,
}

/// The flags of every command that changes something.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Change")]
pub struct Write {
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Change nothing; show what would be changed
    #[arg(long)]
    pub dry_run: bool,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// A command about one thing.
#[derive(Clone, Debug, Args)]
pub struct Named {
    /// Its name
    pub name: String,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// A command that changes one thing.
#[derive(Clone, Debug, Args)]
pub struct NamedWrite {
    /// Its name
    pub name: String,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// The flags of every list.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Pages")]
pub struct Paging {
    /// At most so many
    #[arg(long, value_name = "N", default_value = "50", conflicts_with = "all")]
    pub limit: NonZeroU32,
    /// All of them
    #[arg(long)]
    pub all: bool,
}

impl Paging {
    /// Everything.
    pub const ALL: Paging = Paging {
        limit: NonZeroU32::MIN,
        all: true,
    };

    /// So many of the first.
    pub fn first(limit: NonZeroU32) -> Paging {
        Paging { limit, all: false }
    }

    /// How many are wanted; none is all.
    pub fn wanted(&self) -> Option<usize> {
        (!self.all).then_some(self.limit.get() as usize)
    }
}

/// A command that lists, and nothing else.
#[derive(Clone, Debug, Args)]
pub struct Pages {
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// The word of a choice, as the command line and the API have it.
pub fn word(choice: &impl ValueEnum) -> String {
    let value = choice.to_possible_value();
    value.map(|value| value.get_name().to_owned()).unwrap_or_default()
}
