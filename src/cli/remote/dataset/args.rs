//! The flags of `windrow dataset`.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use crate::link::{Named, NamedWrite, Pages, Paging, Remote, Write};
use crate::task::args::make::RowForm;

/// How they come about and are read.
pub const EXAMPLES: &str = "\
Examples:
  windrow task create scores --csv drivers.csv --publish team-board \\
    --reduce command:rank --start
  windrow dataset generations team-board
  windrow dataset get team-board
  windrow dataset get team-board --results --format csv --out board.csv
  windrow dataset rollback team-board 7
  windrow dataset set team-board --sink redis

A finished task's results become the next generation; readers see one generation or another, never a mix.";

/// `windrow dataset`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DatasetArgs {
    /// What to do; without it the datasets are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The flags of the list.
    #[command(flatten)]
    pub list: Pages,
}

/// What to do with datasets.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List datasets
    List(Pages),
    /// Show a dataset: which generation is current, and how many it keeps
    Show(Named),
    /// List the generations of a dataset, newest first
    Generations(Generations),
    /// Print the summary of a generation, its results, or what items of it came to
    Get(GetArgs),
    /// Keep a generation however many come after it
    Pin(GenerationWrite),
    /// Let a pinned generation go once it is old enough
    Unpin(GenerationWrite),
    /// Make an earlier generation current again
    Rollback(RollBackArgs),
    /// Change how many generations a dataset keeps, and where it is copied to
    #[command(visible_alias = "edit")]
    Set(SetArgs),
    /// Delete a dataset with all its generations
    Delete(NamedWrite),
}

/// `windrow dataset generations`
#[derive(Clone, Debug, Args)]
pub struct Generations {
    /// Its name
    pub name: String,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow dataset get`
#[derive(Clone, Debug, Args)]
pub struct GetArgs {
    /// Its name
    pub name: String,
    /// The generation; without it the current one
    pub generation: Option<NonZeroU64>,
    /// Its results in index order, instead of the summary
    #[arg(long, conflicts_with_all = ["item", "key"])]
    pub results: bool,
    /// What the item of this index came to
    #[arg(long, value_name = "INDEX", conflicts_with = "key")]
    pub item: Option<u64>,
    /// What the items came to that have this key
    #[arg(long, value_name = "VALUE")]
    pub key: Option<String>,
    /// How results are written; without it as -o or the name of the file says, else as NDJSON
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<RowForm>,
    /// In a CSV a column for each of these members of the outputs, separated by commas, instead of the JSON
    #[arg(long, value_name = "MEMBERS", requires = "results")]
    pub columns: Option<String>,
    /// Only what follows the item of this index: where an earlier answer was cut
    #[arg(long, value_name = "INDEX", requires = "results")]
    pub after: Option<u64>,
    /// The file of the results; without it standard output
    #[arg(long, value_name = "FILE", requires = "results")]
    pub out: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long, requires = "out")]
    pub force: bool,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// A command about one generation.
#[derive(Clone, Debug, Args)]
pub struct GenerationWrite {
    /// The dataset
    pub name: String,
    /// The generation's number
    pub generation: NonZeroU64,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// `windrow dataset rollback`
#[derive(Clone, Debug, Args)]
pub struct RollBackArgs {
    /// The dataset
    pub name: String,
    /// The number of the generation that becomes current again
    pub generation: NonZeroU64,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// Where a dataset is copied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SinkWord {
    /// Nowhere
    None,
    /// The Redis that datasets.redis_url of the nodes names
    Redis,
}

/// `windrow dataset set`
#[derive(Clone, Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).multiple(true).args(["keep", "sink"])))]
pub struct SetArgs {
    /// Its name
    pub name: String,
    /// So many of the newest generations stay
    #[arg(long, value_name = "N")]
    pub keep: Option<NonZeroU32>,
    /// Where the current generation is copied to, for readers who have it nearer there
    #[arg(long, value_enum, value_name = "WHERE")]
    pub sink: Option<SinkWord>,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}
