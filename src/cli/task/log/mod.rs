//! `windrow log`: the data log of all tasks, or of one; `windrow task log` is the same with `show`.
//!
//! People read it as a file: the newest line last, with the time of day unless `--time` says otherwise. Scripts get
//! the API's own order, newest first; what follows the log comes line by line, as it is stored.

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

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  windrow log --level warn --since 10m
  windrow log --task push/black-friday --index 389329
  windrow log --follow --origin business
  windrow log --text timeout --all -o ndjson | jq -r .message";

/// How important a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// For developers
    Debug,
    /// Normal
    Info,
    /// Odd but handled
    Warn,
    /// Something failed
    Error,
}

/// Who wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Origin {
    /// The business
    Business,
    /// Windrow
    System,
}

/// `windrow log`
#[derive(Clone, Debug, Args)]
pub struct LogArgs {
    /// Lines of this task only: t42, or business/name
    #[arg(long, help_heading = "Which")]
    pub task: Option<String>,
    /// Which lines, and how.
    #[command(flatten)]
    pub flags: LogFlags,
}

/// Which lines of a log, and how the node is reached.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Which")]
pub struct LogFlags {
    /// This level or above
    #[arg(long, value_enum)]
    pub level: Option<Level>,
    /// Lines about this item
    #[arg(long, value_name = "INDEX")]
    pub index: Option<u64>,
    /// Lines with this text in their message, whatever the case of its letters
    #[arg(long, visible_alias = "search")]
    pub text: Option<String>,
    /// Who wrote it
    #[arg(long, value_enum)]
    pub origin: Option<Origin>,
    /// Lines with this code, of those that windrow writes
    #[arg(long)]
    pub code: Option<String>,
    /// Lines of the last 10m, 2h, 3d …, or since a time (22:00, yesterday 18:00, 2026-11-20, RFC 3339)
    #[arg(long, visible_alias = "from", value_name = "SPAN|TIME")]
    pub since: Option<String>,
    /// Lines before a span ago, or before a time (as --since)
    #[arg(
        long,
        visible_alias = "to",
        value_name = "SPAN|TIME",
        conflicts_with = "follow"
    )]
    pub until: Option<String>,
    /// Go on with what is written from now on, until Ctrl-C
    #[arg(short, long)]
    pub follow: bool,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// Shows the log.
///
/// # Errors
/// As [`show`].
pub(crate) async fn log(args: &LogArgs, shell: &Shell) -> Result<Exit, Fault> {
    show(&args.flags, args.task.as_deref(), shell).await
}

/// Shows the log of one task (`t42`, `business/name`), or of all.
///
/// # Errors
/// `Usage` for a time that is none, and for a form that never ends; else as [`Link::send`].
pub(crate) async fn show(flags: &LogFlags, task: Option<&str>, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&flags.remote, shell)?;
    let form = link.look.form;
    if flags.follow && !matches!(form, Form::Table | Form::Wide | Form::Ndjson) {
        let because = "--follow prints lines one by one";
        let fault = Fault::new(Exit::Usage, "unsupported output format", because);
        return Err(fault.hint("-o table or -o ndjson"));
    }
    let from = moment("--since", flags.since.as_ref(), &link)?;
    let to = moment("--until", flags.until.as_ref(), &link)?;
    let request = request(flags, task, &link).await?;
    let first = request.clone().query_option("from", from.and_then(written));
    let first = first.query_option("to", to.and_then(written));
    // Taken before the first page is read, so that what is stored between the two isn't missed.
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
        link.hint("there are older lines; --limit N or --all shows them");
    }
    Ok(Exit::Ok)
}

/// What is asked of the node, but for the times.
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

/// The time of a flag. Unit: milliseconds since 1970.
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
