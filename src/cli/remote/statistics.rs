//! `windrow stats`: what was done in each day, over years.

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

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  windrow stats
  windrow stats --business push --since 90d
  windrow stats --by business --since 2026-01-01 --until 2026-02-01 -o csv
  windrow stats --by task --since yesterday

Days are those of UTC. What was done is counted with each checkpoint: a crash
neither loses nor repeats anything. Deleted tasks count, but not --by task.";

/// What a row is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// A day, the newest first
    #[default]
    Day,
    /// A business
    Business,
    /// A task that is still kept, the newest first
    Task,
}

/// `windrow stats`
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Which")]
pub struct StatsArgs {
    /// Of this business only
    #[arg(long, value_name = "NAME")]
    pub business: Option<String>,
    /// Of the last 7d, 90d …, or since a time (yesterday, 2026-11-20, RFC 3339), from its day on; without it 30d
    #[arg(long, visible_alias = "from", value_name = "SPAN|TIME")]
    pub since: Option<String>,
    /// Up to a span ago, or up to a time (as --since), with its day; without it up to now
    #[arg(long, visible_alias = "to", value_name = "SPAN|TIME")]
    pub until: Option<String>,
    /// What a row is about
    #[arg(long, value_enum, default_value_t = By::Day)]
    pub by: By,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// Rows about one kind of things: its name, what else is known of it, items, and tasks.
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
            none: "nothing was done in these days",
        }
    };
}

/// Tasks of a day or a business.
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

/// Shows what was done.
///
/// # Errors
/// `Usage` for a time that is none; else as [`Link::send`].
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
