//! Arguments of `windrow schedule` and its verbs.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use windrow_core::settings::text::parse_span;

use crate::input::settings::Settings;
use crate::link::{Pages, Paging, Remote, Write};
use crate::task::args::make::{CanaryArgs, Content, Identity, NamedItems, PublishArgs};

/// Usage of `create`, as wide as a terminal.
const CREATE_USAGE: &str = "\
windrow schedule create [OPTIONS] BUSINESS SCHEDULE
                        --cron EXPRESSION|--every SPAN
                        --total N|--url URL|--items JSON";

/// Examples of creating and checking a schedule, for the help.
const CREATE_EXAMPLES: &str = "Examples:
  windrow schedule create push team-board --every 30m --total 2000000 \\
    --rate 2000/s --overlap queue
  windrow schedule create mail nightly --cron '0 3 * * *' --zone Europe/Berlin \\
    --url 'https://crm.example/users.csv?day={fire_time:date}' \\
    --name 'nightly-{fire_time:date}'
  windrow schedule create mail nightly --cron '0 3 * * *' --total 10 --dry-run

Each fire creates and starts a task. Its texts may contain {fire_time} and {previous_fire_time}, with an optional :date,
:time, :unix or :ms after the name.";

/// Arguments of `windrow schedule`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ScheduleArgs {
    /// Verb to execute; without one the schedules are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Flags of the list, without a verb.
    #[command(flatten)]
    pub list: ListArgs,
}

/// Verbs of `windrow schedule`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List schedules with their next fires
    List(ListArgs),
    /// Show a schedule and its next fires
    Show(OneArgs),
    /// Create a schedule; with --dry-run only show its next fires
    #[command(after_help = CREATE_EXAMPLES, override_usage = CREATE_USAGE)]
    Create(Box<CreateArgs>),
    /// Change the times of a schedule, or the task it creates
    #[command(visible_alias = "edit")]
    Set(Box<SetArgs>),
    /// Delete a schedule and the record of its fires; its tasks stay
    Delete(OneWrite),
    /// Pause a schedule, so that it no longer fires by itself
    Pause(OneWrite),
    /// Resume a paused schedule, from its next time on
    Resume(OneWrite),
    /// Fire a schedule now, even if it is paused
    Trigger(OneWrite),
    /// Backfill past fires, one after the other
    Backfill(BackfillArgs),
    /// Skip fires that are queued, or whose task can't be created yet
    Skip(SkipArgs),
    /// List the fires of a schedule with their outcomes, newest first
    Fires(FiresArgs),
    /// List the next fires of a schedule
    Next(NextArgs),
}

/// Arguments of `windrow schedule list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Only schedules of this business
    #[arg(long, value_name = "NAME")]
    pub business: Option<String>,
    /// Flags for the number of entries, the connection and the output.
    #[command(flatten)]
    pub pages: Pages,
}

/// Arguments of a command for one schedule.
#[derive(Clone, Debug, Args)]
pub struct OneArgs {
    /// Schedule to act on: s7, or business/name
    pub schedule: String,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of a command that changes one schedule.
#[derive(Clone, Debug, Args)]
pub struct OneWrite {
    /// Schedule to act on: s7, or business/name
    pub schedule: String,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Treatment of a fire while a task of the schedule is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OverlapWord {
    /// Skip the fire and create no task
    Skip,
    /// Wait for the task to end; at most one fire waits
    Queue,
    /// Cancel the running task first
    CancelRunning,
    /// Run both tasks at once
    Allow,
}

impl OverlapWord {
    /// Returns the name of the choice in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            OverlapWord::Skip => "skip",
            OverlapWord::Queue => "queue",
            OverlapWord::CancelRunning => "cancel_running",
            OverlapWord::Allow => "allow",
        }
    }
}

/// Flags for the times of a schedule.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Time")]
pub struct When {
    /// Times as 'minute hour day month weekday', such as '0 3 * * *'; or six fields with seconds first
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "every")]
    pub cron: Option<String>,
    /// Time zone of the schedule, such as Europe/Berlin; defaults to UTC
    #[arg(long, value_name = "ZONE", conflicts_with = "every")]
    pub zone: Option<String>,
    /// Period, such as 30m; fires at its multiples on the clock (:00, :30)
    #[arg(long, value_name = "SPAN")]
    pub every: Option<String>,
    /// No fire before this time, in --zone unless it names a zone (2026-01-05 06:00 Europe/Berlin); none removes it
    #[arg(long, value_name = "TIME")]
    pub start: Option<String>,
    /// No fire at or after this time, in the format of --start; none removes it
    #[arg(long, value_name = "TIME")]
    pub end: Option<String>,
    /// Delay each fire by a random time, up to this
    #[arg(long, value_name = "SPAN")]
    pub jitter: Option<String>,
    /// Action if a task of the schedule is still running
    #[arg(long, value_enum, value_name = "WHAT")]
    pub overlap: Option<OverlapWord>,
    /// Missed fires to catch up on: latest, none, 'all 10'
    #[arg(long, value_name = "WHICH")]
    pub missed: Option<String>,
}

impl When {
    /// True if none of these flags is given.
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

    /// Returns the zone for times that name none. `before` is the schedule's present zone. `None` means this
    /// machine's zone, since a period has none.
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

/// Arguments of `windrow schedule create`.
#[derive(Clone, Debug, Args)]
#[command(
    group(ArgGroup::new("rows").required(true).args(["total", "url", "inline"])),
    group(ArgGroup::new("times").required(true).args(["cron", "every"])),
)]
pub struct CreateArgs {
    /// Name of the business
    pub business: String,
    /// Name of the schedule: a-z, 0-9 and -; can't be changed later
    pub schedule: String,
    /// Flags for the times of the schedule.
    #[command(flatten)]
    pub when: When,
    /// Create the schedule paused
    #[arg(long, help_heading = "Time")]
    pub paused: bool,
    /// Flags for the source of items, which is read anew for each fire.
    #[command(flatten)]
    pub items: NamedItems,
    /// Flags that identify each task; a name needs a placeholder: 'board-{fire_time:time}'.
    #[command(flatten)]
    pub identity: Identity,
    /// Flags for the data given to the handler.
    #[command(flatten)]
    pub content: Content,
    /// Stop each task this long after its creation
    #[arg(long, value_name = "SPAN", help_heading = "Content")]
    pub deadline_after: Option<String>,
    /// Flags for the live settings.
    #[command(flatten)]
    pub settings: Settings,
    /// Flags for publishing the results of each task.
    #[command(flatten)]
    pub publish: PublishArgs,
    /// Flags for the canary, the first items.
    #[command(flatten)]
    pub canary: CanaryArgs,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow schedule set`.
#[derive(Clone, Debug, Args)]
pub struct SetArgs {
    /// Schedule to change: s7, or business/name
    pub schedule: String,
    /// Flags for the times of the schedule.
    #[command(flatten)]
    pub when: When,
    /// Name of each task, with a placeholder: 'board-{fire_time:time}'
    #[arg(long, value_name = "NAME", help_heading = "Identity")]
    pub name: Option<String>,
    /// Give the tasks no name
    #[arg(long, conflicts_with = "name", help_heading = "Identity")]
    pub no_name: bool,
    /// Task of each fire, as JSON of the API or @FILE; named members are set, null removes one, the rest stays
    #[arg(long, value_name = "JSON|@FILE", help_heading = "Content", conflicts_with_all = ["name", "no_name"])]
    pub task: Option<String>,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow schedule backfill`.
#[derive(Clone, Debug, Args)]
pub struct BackfillArgs {
    /// Schedule to backfill: s7, or business/name
    pub schedule: String,
    /// First time to backfill; yesterday 18:00, 8h or RFC 3339, in the schedule's zone unless it names one
    #[arg(long, value_name = "TIME")]
    pub from: String,
    /// End of the times to backfill, not included, as for --from; defaults to now
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// Let the tasks publish, except for times before a fire that has already created its task
    #[arg(long)]
    pub publish: bool,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow schedule skip`.
#[derive(Clone, Debug, Args)]
pub struct SkipArgs {
    /// Schedule to act on: s7, or business/name
    pub schedule: String,
    /// Time of the fire to skip, as in `windrow schedule fires`; by default all that are queued or have no task yet
    #[arg(long = "fire", value_name = "TIME")]
    pub fire: Option<String>,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Outcomes of a fire, for `--outcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutcomeWord {
    /// A node is creating the task
    Pending,
    /// Waiting until no task of the schedule is running
    Queued,
    /// The task was created
    Made,
    /// No task: one was running, a newer fire took its place, or a user skipped it
    Skipped,
    /// No node was available in time
    Missed,
    /// The task could not be created
    Failed,
}

/// Arguments of `windrow schedule fires`.
#[derive(Clone, Debug, Args)]
pub struct FiresArgs {
    /// Schedule to inspect: s7, or business/name
    pub schedule: String,
    /// Only fires with this outcome
    #[arg(long, value_enum, value_name = "WHAT")]
    pub outcome: Option<OutcomeWord>,
    /// Flags for the number of entries.
    #[command(flatten)]
    pub paging: Paging,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of `windrow schedule next`.
#[derive(Clone, Debug, Args)]
pub struct NextArgs {
    /// Schedule to inspect: s7, or business/name
    pub schedule: String,
    /// Number of fires to list, at most 100
    #[arg(long, value_name = "N", default_value = "10")]
    pub count: NonZeroU32,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Parses a span, to check it before it is sent to the node as text.
///
/// # Errors
/// The message shows the accepted form.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    parse_span(text).map_err(|error| error.to_string())
}
