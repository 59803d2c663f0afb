//! Arguments of `windrow dataset` and its verbs.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use crate::link::{Named, NamedWrite, Pages, Paging, Remote, Write};
use crate::task::args::make::RowForm;

/// Examples of publishing and reading datasets, for the help.
pub const EXAMPLES: &str = "Examples:
  windrow task create scores --csv drivers.csv --publish team-board \\
    --reduce command:rank --start
  windrow dataset generations team-board
  windrow dataset get team-board
  windrow dataset get team-board --results --format csv --out board.csv
  windrow dataset rollback team-board 7
  windrow dataset set team-board --sink redis

The results of a finished task become the next generation; readers see exactly one generation, never a mix.";

/// Arguments of `windrow dataset`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DatasetArgs {
    /// Verb to execute; without one the datasets are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Flags of the list, without a verb.
    #[command(flatten)]
    pub list: Pages,
}

/// Verbs of `windrow dataset`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List datasets with their current generations
    List(Pages),
    /// Show a dataset with its current generation, and the number it keeps
    Show(Named),
    /// Create a dataset before the first task publishes to it
    Create(CreateArgs),
    /// List the generations of a dataset, newest first
    Generations(Generations),
    /// Print the summary of a generation, its results, or the outputs of items
    Get(GetArgs),
    /// Pin a generation, so that it is kept however many follow
    Pin(GenerationWrite),
    /// Unpin a generation, so that it is deleted once it is old enough
    Unpin(GenerationWrite),
    /// Make an earlier generation current again
    Rollback(RollBackArgs),
    /// Change the number of generations to keep, or the target of copies
    #[command(visible_alias = "edit")]
    Set(SetArgs),
    /// Delete a dataset with all its generations
    Delete(NamedWrite),
}

/// Arguments of `windrow dataset create`.
#[derive(Clone, Debug, Args)]
pub struct CreateArgs {
    /// Name used in URLs: a-z, 0-9, - and dots; can't be changed later
    pub name: String,
    /// Business whose tasks publish it
    #[arg(long, value_name = "NAME")]
    pub business: String,
    /// Number of newest generations to keep; defaults to 5
    #[arg(long, value_name = "N")]
    pub keep: Option<NonZeroU32>,
    /// Target for copies of the current generation, for readers that are closer to it
    #[arg(long, value_enum, value_name = "WHERE")]
    pub sink: Option<SinkWord>,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow dataset generations`.
#[derive(Clone, Debug, Args)]
pub struct Generations {
    /// Name of the dataset
    pub name: String,
    /// Flags for the number of entries.
    #[command(flatten)]
    pub paging: Paging,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of `windrow dataset get`.
#[derive(Clone, Debug, Args)]
pub struct GetArgs {
    /// Name of the dataset
    pub name: String,
    /// Generation to read; defaults to the current one
    pub generation: Option<NonZeroU64>,
    /// Print the results in index order, instead of the summary
    #[arg(long, conflicts_with_all = ["item", "key"])]
    pub results: bool,
    /// Print the output of the item with this index
    #[arg(long, value_name = "INDEX", conflicts_with = "key")]
    pub item: Option<u64>,
    /// Print the outputs of the items with this key
    #[arg(long, value_name = "VALUE")]
    pub key: Option<String>,
    /// Format of the results; defaults to that of -o, of the file's name, or NDJSON
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<RowForm>,
    /// Output members to use as CSV columns, separated by commas, instead of the JSON
    #[arg(long, value_name = "MEMBERS", requires = "results")]
    pub columns: Option<String>,
    /// Print only results after the item with this index; continues where an earlier answer was cut
    #[arg(long, value_name = "INDEX", requires = "results")]
    pub after: Option<u64>,
    /// File for the results; defaults to standard output
    #[arg(long, value_name = "FILE", requires = "results")]
    pub out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of a command that changes one generation.
#[derive(Clone, Debug, Args)]
pub struct GenerationWrite {
    /// Name of the dataset
    pub name: String,
    /// Number of the generation
    pub generation: NonZeroU64,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow dataset rollback`.
#[derive(Clone, Debug, Args)]
pub struct RollBackArgs {
    /// Name of the dataset
    pub name: String,
    /// Number of the generation to make current again
    pub generation: NonZeroU64,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Target to which a dataset's current generation is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SinkWord {
    /// Don't copy it anywhere
    None,
    /// Redis at datasets.redis_url of the nodes
    Redis,
}

/// Arguments of `windrow dataset set`.
#[derive(Clone, Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).multiple(true).args(["keep", "sink"])))]
pub struct SetArgs {
    /// Name of the dataset
    pub name: String,
    /// Number of newest generations to keep
    #[arg(long, value_name = "N")]
    pub keep: Option<NonZeroU32>,
    /// Target for copies of the current generation, for readers that are closer to it
    #[arg(long, value_enum, value_name = "WHERE")]
    pub sink: Option<SinkWord>,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}
