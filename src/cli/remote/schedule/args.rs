//! The flags of `windrow schedule`.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use windrow_core::settings::text::parse_span;

use crate::input::settings::Settings;
use crate::link::{Pages, Paging, Remote, Write};
use crate::task::args::make::{CanaryArgs, Content, Identity, NamedItems, PublishArgs};

/// How `create` is used, at a terminal's width.
const CREATE_USAGE: &str = "\
windrow schedule create [OPTIONS] BUSINESS SCHEDULE
                        --cron EXPRESSION|--every SPAN
                        --total N|--url URL|--items JSON";

/// How one is made and looked at.
const CREATE_EXAMPLES: &str = "\
Examples:
  windrow schedule create push team-board --every 30m --total 2000000 \\
    --rate 2000/s --overlap queue
  windrow schedule create mail nightly --cron '0 3 * * *' --zone Europe/Berlin \\
    --url 'https://crm.example/users.csv?day={fire_time:date}' \\
    --name 'nightly-{fire_time:date}'
  windrow schedule create mail nightly --cron '0 3 * * *' --total 10 --dry-run

Each fire makes a task and starts it. Texts of the task may have {fire_time} and {previous_fire_time} in them, with :date,
:time, :unix or :ms behind the name.";

/// `windrow schedule`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ScheduleArgs {
    /// What to do; without it the schedules are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The flags of the list.
    #[command(flatten)]
    pub list: ListArgs,
}

/// What to do with schedules.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List schedules
    List(ListArgs),
    /// Show a schedule and its next fires
    Show(OneArgs),
    /// Make a schedule; with --dry-run only its next fires are shown
    #[command(after_help = CREATE_EXAMPLES, override_usage = CREATE_USAGE)]
    Create(Box<CreateArgs>),
    /// Change when a schedule fires, or the task that it makes
    #[command(visible_alias = "edit")]
    Set(Box<SetArgs>),
    /// Delete a schedule with what is known of its fires; its tasks stay
    Delete(OneWrite),
    /// Let a schedule fire no more by itself
    Pause(OneWrite),
    /// Let a paused schedule fire again, from its next time on
    Resume(OneWrite),
    /// Fire a schedule now, also a paused one
    Trigger(OneWrite),
    /// Order the fires of a time that is over, one after the other
    Backfill(BackfillArgs),
    /// Give up fires that wait, or whose task can't be made yet
    Skip(SkipArgs),
    /// List the fires of a schedule and what they came to, the newest first
    Fires(FiresArgs),
    /// List the next fires of a schedule
    Next(NextArgs),
}

/// `windrow schedule list`
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Those of one business
    #[arg(long, value_name = "NAME")]
    pub business: Option<String>,
    /// How many, and how the node is reached.
    #[command(flatten)]
    pub pages: Pages,
}

/// A command about one schedule.
#[derive(Clone, Debug, Args)]
pub struct OneArgs {
    /// The schedule: s7, or business/name
    pub schedule: String,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// A command that changes one schedule.
#[derive(Clone, Debug, Args)]
pub struct OneWrite {
    /// The schedule: s7, or business/name
    pub schedule: String,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// What becomes of a fire while a task of the schedule runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OverlapWord {
    /// It makes no task
    Skip,
    /// It waits for the task to end; at most one waits
    Queue,
    /// The task is cancelled first
    CancelRunning,
    /// Both run
    Allow,
}

impl OverlapWord {
    /// As the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            OverlapWord::Skip => "skip",
            OverlapWord::Queue => "queue",
            OverlapWord::CancelRunning => "cancel_running",
            OverlapWord::Allow => "allow",
        }
    }
}

/// When it fires.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "When")]
pub struct When {
    /// 'minute hour day month weekday', such as '0 3 * * *'; or six fields with seconds first
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "every")]
    pub cron: Option<String>,
    /// The zone of its clocks, such as Europe/Berlin; without it UTC
    #[arg(long, value_name = "ZONE", conflicts_with = "every")]
    pub zone: Option<String>,
    /// A period, such as 30m: at whole multiples of it
    #[arg(long, value_name = "SPAN")]
    pub every: Option<String>,
    /// No fire before this time, by the clocks of --zone unless it says which (2026-01-05 06:00
    /// Europe/Berlin); none takes it away
    #[arg(long, value_name = "TIME")]
    pub start: Option<String>,
    /// No fire at or after this time, said as --start; none takes it away
    #[arg(long, value_name = "TIME")]
    pub end: Option<String>,
    /// Each fire is late by a time of its own, at most this one
    #[arg(long, value_name = "SPAN")]
    pub jitter: Option<String>,
    /// While a task of it runs
    #[arg(long, value_enum, value_name = "WHAT")]
    pub overlap: Option<OverlapWord>,
    /// Which missed fires are made up for: latest, none, 'all 10'
    #[arg(long, value_name = "WHICH")]
    pub missed: Option<String>,
}

impl When {
    /// Whether nothing is said.
    pub(super) fn is_empty(&self) -> bool {
        let texts = [
            &self.cron,
            &self.zone,
            &self.every,
            &self.start,
            &self.end,
            &self.jitter,
            &self.missed,
        ];
        texts.iter().all(|text| text.is_none()) && self.overlap.is_none()
    }

    /// The zone in which times of the schedule are meant that name none, where it had that zone before; none is this
    /// machine's: a period has no zone.
    pub(super) fn clocks<'a>(&'a self, before: Option<&'a str>) -> Option<&'a str> {
        match (&self.every, &self.zone, &self.cron, before) {
            (Some(_), ..) => None,
            (None, Some(zone), ..) => Some(zone),
            (None, None, _, Some(zone)) => Some(zone),
            (None, None, Some(_), None) => Some("UTC"),
            (None, None, None, None) => None,
        }
    }
}

/// `windrow schedule create`
#[derive(Clone, Debug, Args)]
#[command(
    group(ArgGroup::new("rows").required(true).args(["total", "url", "inline"])),
    group(ArgGroup::new("times").required(true).args(["cron", "every"])),
)]
pub struct CreateArgs {
    /// The business
    pub business: String,
    /// The schedule's name: a-z, 0-9 and -; it never changes
    pub schedule: String,
    /// When it fires.
    #[command(flatten)]
    pub when: When,
    /// Begin paused
    #[arg(long, help_heading = "When")]
    pub paused: bool,
    /// Where items come from, anew with each fire.
    #[command(flatten)]
    pub items: NamedItems,
    /// What each task is found by; a name needs a placeholder: 'board-{fire_time:time}'.
    #[command(flatten)]
    pub identity: Identity,
    /// What is given to the handler.
    #[command(flatten)]
    pub content: Content,
    /// Stop each task so long after it was made
    #[arg(long, value_name = "SPAN", help_heading = "Content")]
    pub deadline_after: Option<String>,
    /// How items are driven.
    #[command(flatten)]
    pub settings: Settings,
    /// What the results of each task become.
    #[command(flatten)]
    pub publish: PublishArgs,
    /// The first items.
    #[command(flatten)]
    pub canary: CanaryArgs,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// `windrow schedule set`
#[derive(Clone, Debug, Args)]
pub struct SetArgs {
    /// The schedule: s7, or business/name
    pub schedule: String,
    /// When it fires.
    #[command(flatten)]
    pub when: When,
    /// The name of each task, with a placeholder: 'board-{fire_time:time}'
    #[arg(long, value_name = "NAME", help_heading = "Identity")]
    pub name: Option<String>,
    /// Tasks have no name
    #[arg(long, conflicts_with = "name", help_heading = "Identity")]
    pub no_name: bool,
    /// The task of each fire: JSON as the API has it, or @FILE. What it names is set, null
    /// takes away, the rest stays
    #[arg(long, value_name = "JSON|@FILE", help_heading = "Content", conflicts_with_all = ["name", "no_name"])]
    pub task: Option<String>,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// `windrow schedule backfill`
#[derive(Clone, Debug, Args)]
pub struct BackfillArgs {
    /// The schedule: s7, or business/name
    pub schedule: String,
    /// From this time on (yesterday 18:00, 8h, RFC 3339), by the clocks of the schedule's zone
    /// unless it says which (2026-01-05 06:00 Europe/Berlin)
    #[arg(long, value_name = "TIME")]
    pub from: String,
    /// Before this time, said as --from; without it until now
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// Their tasks publish too, but for times before one that has made its task
    #[arg(long)]
    pub publish: bool,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// `windrow schedule skip`
#[derive(Clone, Debug, Args)]
pub struct SkipArgs {
    /// The schedule: s7, or business/name
    pub schedule: String,
    /// The fire of this time, as `windrow schedule fires` has it; without it all that wait or
    /// whose task is not made yet
    #[arg(long = "fire", value_name = "TIME")]
    pub fire: Option<String>,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// What became of a fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutcomeWord {
    /// A node is making its task
    Pending,
    /// It waits until nothing of the schedule runs
    Queued,
    /// Its task was made
    Made,
    /// It made none: a task ran, a newer fire took its place, or somebody gave it up
    Skipped,
    /// No node was there in time
    Missed,
    /// Its task could not be made
    Failed,
}

/// `windrow schedule fires`
#[derive(Clone, Debug, Args)]
pub struct FiresArgs {
    /// The schedule: s7, or business/name
    pub schedule: String,
    /// Those that came to this
    #[arg(long, value_enum, value_name = "WHAT")]
    pub outcome: Option<OutcomeWord>,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow schedule next`
#[derive(Clone, Debug, Args)]
pub struct NextArgs {
    /// The schedule: s7, or business/name
    pub schedule: String,
    /// So many, 100 at most
    #[arg(long, value_name = "N", default_value = "10")]
    pub count: NonZeroU32,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// A span that the node is to read, looked at before it is sent.
///
/// # Errors
/// What one looks like.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    parse_span(text).map_err(|error| error.to_string())
}
