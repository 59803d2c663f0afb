//! Implementation of `windrow stats`: daily totals, kept for years.

use api::Statistics;
use clap::{Args, ValueEnum};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::moment::{self, Lean};
use crate::link::{Link, Paging, Remote, word};
use crate::output::table::times::written;
use crate::output::table::{Column, Keep, Listing, Tone};
use crate::shell::Shell;
use windrow_client::Request;

/// Examples of `windrow stats`, for the help.
pub(crate) const EXAMPLES: &str = "Examples:
  windrow stats
  windrow stats --business push --since 90d
  windrow stats --by business --since 2026-01-01 --until 2026-02-01 -o csv
  windrow stats --by task --since yesterday

Days are in UTC. Totals are saved with each checkpoint, so a crash neither
loses nor repeats any. Deleted tasks count, except with --by task.";

/// Grouping of the rows, for `--by`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// One row per day, newest first
    #[default]
    Day,
    /// One row per business
    Business,
    /// One row per task that still exists, newest first
    Task,
}

/// Arguments of `windrow stats`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Filters")]
pub struct StatsArgs {
    /// Only totals of this business
    #[arg(long, value_name = "NAME")]
    pub business: Option<String>,
    /// First day, as a time or a span ago; 7d, 90d, yesterday, 2026-11-20 or RFC 3339; defaults to 30d
    #[arg(long, visible_alias = "from", value_name = "SPAN|TIME")]
    pub since: Option<String>,
    /// Last day, included, as a time or a span ago; as for --since, defaults to now
    #[arg(long, visible_alias = "to", value_name = "SPAN|TIME")]
    pub until: Option<String>,
    /// Grouping of the rows
    #[arg(long, value_enum, default_value_t = By::Day)]
    pub by: By,
    /// Flags for the number of entries.
    #[command(flatten)]
    pub paging: Paging,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Builds the listing of one kind of row: its name, further facts, items, and tasks.
macro_rules! listing {
    ($title:literal, $least:literal, $member:ident, [$($more:expr),*], [$($tasks:expr),*]) => {
        Listing {
            columns: &[
                Column::maybe($title, Keep::Always, $least, |row: &Statistics| row.$member.as_deref()).tone(Tone::Strong),
                $($more,)*
                Column::count("SUCCEEDED", Keep::Always, 6, |row: &Statistics| Some(row.items.succeeded)).tone(Tone::Good),
                Column::count("SKIPPED", Keep::Rank(30), 6, |row| Some(row.items.skipped)),
                Column::count("FAILED", Keep::Rank(50), 6, |row| Some(row.items.failed)),
                $($tasks,)*
            ],
            name: |row| row.$member.clone().unwrap_or_default(),
            none: "no work in these days",
        }
    };
}

/// Builds the task columns of a day or a business.
macro_rules! tasks {
    ($title:literal, $rank:literal, $name:literal, $member:ident) => {
        Column::count($title, Keep::Rank($rank), 4, |row: &Statistics| {
            Some(row.tasks.as_ref()?.$member)
        })
        .named($name)
    };
}

const CREATED: Column<Statistics> = tasks!("CREATED", 20, "tasks_created", created);
const FINISHED: Column<Statistics> = tasks!("FINISHED", 25, "tasks_finished", finished);
const CANCELLED: Column<Statistics> = tasks!("CANCELLED", 10, "tasks_cancelled", cancelled);

const DAYS: Listing<Statistics> = listing!("DAY", 10, day, [], [CREATED, FINISHED, CANCELLED]);
const BUSINESSES: Listing<Statistics> = listing!("BUSINESS", 8, business, [], [CREATED, FINISHED, CANCELLED]);
const TASKS: Listing<Statistics> = listing!(
    "TASK",
    4,
    task,
    [
        Column::maybe("BUSINESS", Keep::Rank(40), 8, |row| row.business.as_deref()),
        Column::maybe("NAME", Keep::Rank(45), 8, |row| row.name.as_deref()),
        Column::maybe("STATUS", Keep::Rank(35), 8, |row| row.status.as_deref())
    ],
    []
);

/// Prints the totals.
///
/// # Errors
/// `Usage` for an invalid time; otherwise same as [`Link::send`].
pub(crate) async fn statistics(args: &StatsArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let time = |flag, text: Option<&String>| -> Result<Option<String>, Fault> {
        let given = moment::given_option(flag, text, Lean::Back, &link)?;
        Ok(given.and_then(|given| written(given.at_ms)))
    };
    let request = Request::get("/v1/statistics")
        .query("by", word(&args.by))
        .query_option("business", args.business.as_deref())
        .query_option("since", time("--since", args.since.as_ref())?)
        .query_option("until", time("--until", args.until.as_ref())?);
    let listed = link.list(request, Some(&args.paging)).await?;
    let listing = match args.by {
        By::Day => &DAYS,
        By::Business => &BUSINESSES,
        By::Task => &TASKS,
    };
    link.show_list(listing, &listed, &listed.things()?)
}
