//! Implementation of `windrow log`, the data log of all tasks or of one. `windrow task log` uses the same `show`.
//!
//! People read it like a file: newest line last, with the time of day unless `--time` says otherwise. Scripts get the
//! API's own order, newest first; with `--follow`, new lines are printed one by one as they are stored.

mod follow;
mod lines;

use clap::{Args, ValueEnum};

use self::follow::Place;
use self::lines::{LINES, told};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::moment::{self, Lean};
use crate::link::{Form, Link, Paging, Remote, word};
use crate::output::screen;
use crate::output::table::times::written;
use crate::shell::Shell;
use windrow_client::{Request, segment};

/// Examples of `windrow log`, for the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  windrow log --level warn --since 10m
  windrow log --task push/black-friday --index 389329
  windrow log --follow --origin business
  windrow log --text timeout --all -o ndjson | jq -r .message";

/// Levels of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Details of interest to developers
    Debug,
    /// Normal events in operation
    Info,
    /// Unusual events that were handled
    Warn,
    /// Failure of an operation
    Error,
}

/// Authors of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Origin {
    /// Lines written by the business
    Business,
    /// Lines written by Windrow itself
    System,
}

/// Arguments of `windrow log`.
#[derive(Clone, Debug, Args)]
pub struct LogArgs {
    /// Only lines of this task: t42, or business/name
    #[arg(long, help_heading = "Filters")]
    pub task: Option<String>,
    /// Flags that filter and format the lines.
    #[command(flatten)]
    pub flags: LogFlags,
}

/// Flags that filter the log, and flags for the connection and the output.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Filters")]
pub struct LogFlags {
    /// Only lines of this level or above
    #[arg(long, value_enum)]
    pub level: Option<Level>,
    /// Only lines about this item
    #[arg(long, value_name = "INDEX")]
    pub index: Option<u64>,
    /// Only lines with this text in their message, ignoring case
    #[arg(long, visible_alias = "search")]
    pub text: Option<String>,
    /// Only lines by this author
    #[arg(long, value_enum)]
    pub origin: Option<Origin>,
    /// Only lines with this code, among those that Windrow writes
    #[arg(long)]
    pub code: Option<String>,
    /// Lines since a time or a span ago; 10m, 2h, 3d, 22:00, yesterday 18:00, 2026-11-20 or RFC 3339
    #[arg(long, visible_alias = "from", value_name = "SPAN|TIME")]
    pub since: Option<String>,
    /// Lines before a time or a span ago, as for --since
    #[arg(
        long,
        visible_alias = "to",
        value_name = "SPAN|TIME",
        conflicts_with = "follow"
    )]
    pub until: Option<String>,
    /// Follow the log from now on, until Ctrl-C
    #[arg(short, long)]
    pub follow: bool,
    /// Flags for the number of lines.
    #[command(flatten)]
    pub paging: Paging,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Prints the log of all tasks, or of the one in the flags.
///
/// # Errors
/// Same as [`show`].
pub(crate) async fn log(args: &LogArgs, shell: &Shell) -> Result<Exit, Fault> {
    show(&args.flags, args.task.as_deref(), shell).await
}

/// Prints the log of one task (`t42`, `business/name`), or of all.
///
/// # Errors
/// `Usage` for an invalid time, and for a format that can't be followed; otherwise same as [`Link::send`].
pub(crate) async fn show(flags: &LogFlags, task: Option<&str>, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&flags.remote, shell)?;
    let form = link.look.form;
    if flags.follow && !matches!(form, Form::Table | Form::Wide | Form::Ndjson) {
        let because = "--follow prints lines as they arrive";
        let fault = Fault::new(Exit::Usage, "unsupported output format", because);
        return Err(fault.hint("use -o table or -o ndjson"));
    }
    let from = moment("--since", flags.since.as_ref(), &link)?;
    let to = moment("--until", flags.until.as_ref(), &link)?;
    let request = request(flags, task, &link).await?;
    let first = request.clone().query_option("from", from.and_then(written));
    let first = first.query_option("to", to.and_then(written));
    // Take the position before reading the first page, so that no line stored between the two is missed.
    let end = match flags.follow {
        true => Some(Place::end(&link, &request, from).await?),
        false => None,
    };
    let listed = link.list(first, Some(&flags.paging)).await?;
    let mut things = listed.things()?;
    if end.is_none() && !form.is_for_people() {
        return link.show_list(&LINES, &listed, &things);
    }
    things.reverse();
    let line = |line| told(&link, line, task.is_none(), listed.now_ms);
    let text: String = things.iter().map(line).collect();
    if let Some(mut end) = end {
        if !screen::put_piece(text.as_bytes())? {
            return Ok(Exit::Ok);
        }
        end.pass(&things);
        return follow::follow(&link, &request, task.is_none(), end).await;
    }
    if things.is_empty() {
        link.say(LINES.none);
    }
    screen::put(&text)?;
    if listed.has_more() {
        link.hint("older lines exist; --limit N or --all shows them");
    }
    Ok(Exit::Ok)
}

/// Builds the request without its times.
async fn request(flags: &LogFlags, task: Option<&str>, link: &Link<'_>) -> Result<Request, Fault> {
    let path = match task {
        Some(task) => format!("/v1/tasks/{}/logs", segment(&link.task(task).await?)),
        None => "/v1/logs".to_owned(),
    };
    Ok(Request::get(&path)
        .query_option("level", flags.level.as_ref().map(word))
        .query_option("index", flags.index)
        .query_option("q", flags.text.as_deref())
        .query_option("origin", flags.origin.as_ref().map(word))
        .query_option("code", flags.code.as_deref()))
}

/// Parses the time of a flag. Unit: milliseconds since 1970.
fn moment(flag: &str, text: Option<&String>, link: &Link<'_>) -> Result<Option<i64>, Fault> {
    Ok(moment::given_option(flag, text, Lean::Back, link)?.map(|given| given.at_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_the_api_reads_it() {
        assert_eq!(written(1000).as_deref(), Some("1970-01-01T00:00:01.000Z"));
    }
}
