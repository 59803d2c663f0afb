//! Implementation of `windrow apply` and `windrow export`: the objects of a node as files.

mod apply;
mod differing;
mod export;
mod kinds;
mod plan;
mod read;
mod schema;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) use self::apply::apply;
pub(crate) use self::export::export;
use crate::link::document::FileForm;
use crate::link::{Remote, Write};

/// Examples of applying files, for the help.
pub const APPLY_EXAMPLES: &str = "\
Examples:
  windrow apply -f windrow/ --dry-run
  windrow apply -f windrow/ --prune --reason \"release 12\"
  windrow --context old export | windrow --context new apply -f -

A file has lists of objects: [[limit]], [[business]], [[dataset]], [[schedule]], [[task]], [[token]], with the members
of the API's requests. Missing objects are created, members that differ are set, other members keep their values. Every
object is checked before the first is changed, and applying unchanged files does nothing.
The value of a secret is env:NAME or @FILE; *** keeps the stored one.";

/// Examples of exporting, for the help.
pub const EXPORT_EXAMPLES: &str = "\
Examples:
  windrow export > windrow.toml
  windrow export business schedule --business push --format yaml
  windrow export | windrow --context new apply -f - --dry-run

Only what a person can declare is written, in a stable order: no numbers, times, counters or secrets. Of the tasks, those
with a name that haven't ended, without `start`.";

/// Kinds of objects in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KindWord {
    /// Limits shared by businesses and tasks
    #[value(alias = "limits")]
    Limit,
    /// Businesses without the values of their secrets
    #[value(aliases = ["businesses", "biz"])]
    Business,
    /// Datasets without their generations
    #[value(alias = "datasets")]
    Dataset,
    /// Schedules of recurring tasks
    #[value(alias = "schedules")]
    Schedule,
    /// Tasks with a name that haven't ended
    #[value(alias = "tasks")]
    Task,
    /// Valid tokens without their values
    #[value(alias = "tokens")]
    Token,
}

/// Arguments of `windrow apply`.
#[derive(Clone, Debug, Args)]
pub struct ApplyArgs {
    /// File to apply, or directory whose .toml, .yaml, .yml and .json files are; - is standard input; may be repeated
    #[arg(short, long = "file", value_name = "DIR|FILE", required = true, value_hint = clap::ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Format of standard input; by default JSON if it begins with {, TOML if with [, otherwise YAML
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<FileForm>,
    /// Remove objects that the files don't have, of the kinds that they have
    #[arg(long)]
    pub prune: bool,
    /// Register missing businesses without calling their handlers
    #[arg(long)]
    pub force: bool,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// Kinds to export; by default all
    #[arg(value_enum, value_name = "KIND")]
    pub kinds: Vec<KindWord>,
    /// Only this business, and what belongs to it
    #[arg(long, value_name = "NAME")]
    pub business: Option<String>,
    /// Format of the output; defaults to toml, with -o json to json
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<FileForm>,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}
