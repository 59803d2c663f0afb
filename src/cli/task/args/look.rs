//! What looks at a task: failures, item, log, runs, revisions, report, export, preview.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::make::RowForm;
use crate::link::{Paging, Remote, Write};
use crate::task::log::LogFlags;

/// `windrow task failures`
#[derive(Debug, Args)]
pub struct FailuresArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// Items of this code, in the order in which they were given up
    #[arg(long, value_name = "CODE")]
    pub code: Option<String>,
    /// Items instead of codes
    #[arg(long)]
    pub items: bool,
    /// Of what items carry show these columns only, separated by commas
    #[arg(long, value_name = "COLUMNS")]
    pub key_column: Option<String>,
    /// How many items.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow task item`
#[derive(Debug, Args)]
pub struct ItemArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// The item's index
    pub index: u64,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow task log`
#[derive(Debug, Args)]
pub struct LogArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// Which lines, and how.
    #[command(flatten)]
    pub flags: LogFlags,
}

/// `windrow task runs` and `revisions`
#[derive(Debug, Args)]
pub struct PagesArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportForm {
    /// For people at a terminal
    Text,
    /// The body of the API
    Json,
    /// For documents
    Markdown,
}

/// `windrow task report`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// How it is written; -o json says json too
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<ReportForm>,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// What can be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Exported {
    /// Items that failed for good
    Failures,
    /// Lines of the log
    Log,
}

/// `windrow task export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// What
    #[arg(value_enum)]
    pub what: Exported,
    /// How it is written; without it as -o or the name of the file says, else as NDJSON
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<RowForm>,
    /// Of what failed items carry export these columns only, separated by commas
    #[arg(long, value_name = "COLUMNS")]
    pub key_column: Option<String>,
    /// The file; without it standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long, requires = "out")]
    pub force: bool,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow task results`
#[derive(Debug, Args)]
pub struct ResultsArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// How it is written; without it as -o or the name of the file says, else as NDJSON
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<RowForm>,
    /// Only what follows the item of this index: where an earlier answer ended
    #[arg(long, value_name = "INDEX")]
    pub after: Option<u64>,
    /// Rows as they come, until the task is over; goes on when the node is back
    #[arg(long, conflicts_with_all = ["out", "with_redrives"])]
    pub follow: bool,
    /// Of items that failed what redrives, and redrives of them, made of them: all in one file, one row an item
    #[arg(long)]
    pub with_redrives: bool,
    /// With what each item carries: names of its columns, separated by commas, which are columns of their own in a CSV; or '*',
    /// all of it as JSON in one column, data
    #[arg(long, value_name = "COLUMNS")]
    pub data: Option<String>,
    /// In a CSV a column for each of these members of the outputs, separated by commas, instead of the JSON
    #[arg(long, value_name = "MEMBERS")]
    pub columns: Option<String>,
    /// The file; without it standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long, requires = "out")]
    pub force: bool,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow task preview`
#[derive(Debug, Args)]
pub struct PreviewArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// Their indexes, such as 0,17,999 or 5..9; without it the first three
    #[arg(long, value_name = "INDEXES")]
    pub items: Option<String>,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}
