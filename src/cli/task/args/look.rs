//! Arguments of the commands that inspect a task: failures, item, log, runs, revisions, report, export, preview.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::make::RowForm;
use crate::link::{Paging, Remote, Write};
use crate::task::log::LogFlags;

/// Arguments of `windrow task failures`.
#[derive(Debug, Args)]
pub struct FailuresArgs {
    /// Task to inspect: t42, or business/name
    pub task: String,
    /// Items with this code, in the order in which they failed
    #[arg(long, value_name = "CODE")]
    pub code: Option<String>,
    /// List items instead of codes
    #[arg(long)]
    pub items: bool,
    /// Columns of the items to show, separated by commas
    #[arg(long, value_name = "COLUMNS")]
    pub key_column: Option<String>,
    /// Flags for the number of items.
    #[command(flatten)]
    pub paging: Paging,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of `windrow task item`.
#[derive(Debug, Args)]
pub struct ItemArgs {
    /// Task to inspect: t42, or business/name
    pub task: String,
    /// Index of the item
    pub index: u64,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of `windrow task log`.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Task to inspect: t42, or business/name
    pub task: String,
    /// Flags that filter and format the lines.
    #[command(flatten)]
    pub flags: LogFlags,
}

/// Arguments of `windrow task runs` and `windrow task revisions`.
#[derive(Debug, Args)]
pub struct PagesArgs {
    /// Task to inspect: t42, or business/name
    pub task: String,
    /// Flags for the number of entries.
    #[command(flatten)]
    pub paging: Paging,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Formats of a report, for `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportForm {
    /// Text for a terminal
    Text,
    /// Response body of the API
    Json,
    /// Markdown for use in documents
    Markdown,
}

/// Arguments of `windrow task report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Task to inspect: t42, or business/name
    pub task: String,
    /// Format of the report; -o json means json too
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<ReportForm>,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Data that can be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Exported {
    /// Items that failed for good
    Failures,
    /// Lines of the log
    Log,
}

/// Arguments of `windrow task export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Task to export from: t42, or business/name
    pub task: String,
    /// Data of the task to export
    #[arg(value_enum)]
    pub what: Exported,
    /// Format of the rows; defaults to that of -o, of the file's name, or NDJSON
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<RowForm>,
    /// Columns of failed items to export, separated by commas
    #[arg(long, value_name = "COLUMNS")]
    pub key_column: Option<String>,
    /// File to write; defaults to standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of `windrow task results`.
#[derive(Debug, Args)]
pub struct ResultsArgs {
    /// Task to print results of: t42, or business/name
    pub task: String,
    /// Format of the rows; defaults to that of -o, of the file's name, or NDJSON
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<RowForm>,
    /// Print only results after the item with this index; continues where an earlier answer ended
    #[arg(long, value_name = "INDEX")]
    pub after: Option<u64>,
    /// Print rows as they arrive until the task is over; continues when the node is back
    #[arg(long, conflicts_with_all = ["out", "with_redrives"])]
    pub follow: bool,
    /// Include results of redrives, and of their redrives, for failed items; all in one file, one row per item
    #[arg(long)]
    pub with_redrives: bool,
    /// Columns of the item's data to add to each result, separated by commas; '*' adds all of it as JSON
    #[arg(long, value_name = "COLUMNS")]
    pub data: Option<String>,
    /// Output members to use as CSV columns, separated by commas, instead of the JSON
    #[arg(long, value_name = "MEMBERS")]
    pub columns: Option<String>,
    /// File to write; defaults to standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of `windrow task preview`.
#[derive(Debug, Args)]
pub struct PreviewArgs {
    /// Task to preview: t42, or business/name
    pub task: String,
    /// Indexes of the items, such as 0,17,999 or 5..9; defaults to the first three
    #[arg(long, value_name = "INDEXES")]
    pub items: Option<String>,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}
