//! Output to standard error: a live bar on a terminal, plain lines elsewhere, nothing with `--quiet`; and the log,
//! which never breaks into the bar. Standard output is reserved for the outcome.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use clap::{ArgAction, Args};
use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::fs::FileType;
use rustix::io::Errno;
use serde_json::Value;
use tracing::Level;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::{fold, safe, tty};
use windrow_node::sources::IndexProgress;
use windrow_server::telemetry::{self, Style};

/// Flags for the amount of output besides the outcome.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Verbosity {
    /// Print nothing but errors and the outcome
    #[arg(short, long)]
    pub quiet: bool,
    /// Print more: -v events and the output of workers, -vv everything (WINDROW_LOG=filter wins)
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

/// Writer of everything besides the outcome.
pub(crate) struct Screen {
    bars: MultiProgress,
    quiet: bool,
    live: bool,
    /// Style of the log that the lines are part of; unset if they stand alone.
    log: OnceLock<Style>,
    /// Set if nobody asked for that style.
    is_unasked: OnceLock<()>,
}

impl Screen {
    /// Opens a screen and starts the log with the requested verbosity. A node's log is made for machines unless a
    /// terminal shows it.
    ///
    /// # Errors
    /// Fails if the log filter is invalid.
    pub(crate) fn open(talk: Verbosity, log_filter: Option<&str>, is_node: bool) -> Result<Screen, Fault> {
        let is_wanted = io::stderr().is_terminal() && !talk.quiet;
        // A terminal that can't move its cursor gets plain lines.
        let target = is_wanted.then(tty::target).flatten();
        let live = target.is_some();
        let target = target.unwrap_or_else(ProgressDrawTarget::hidden);
        let bars = MultiProgress::with_draw_target(target);
        let is_asked_for = talk.verbose > 0 || log_filter.is_some();
        start_log(bars.clone(), filter(talk, log_filter)?, is_node, is_asked_for);
        Ok(Screen {
            bars,
            quiet: talk.quiet,
            live,
            ..Screen::plain()
        })
    }

    /// Creates a screen without a bar, for a program that starts its log after reading its configuration.
    pub(crate) fn plain() -> Screen {
        Screen {
            bars: MultiProgress::with_draw_target(ProgressDrawTarget::hidden()),
            quiet: false,
            live: false,
            log: OnceLock::new(),
            is_unasked: OnceLock::new(),
        }
    }

    /// True if a bar is drawn: on a terminal, unless quiet.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Prints a line unless quiet.
    pub(crate) fn say(&self, line: &str) {
        if !self.quiet {
            self.must_say(line);
        }
    }

    /// Prints a line, even when quiet.
    pub(crate) fn must_say(&self, line: &str) {
        self.put_down(Level::INFO, line);
    }

    /// Prints an error, even when quiet.
    pub(crate) fn fail(&self, line: &str) {
        self.put_down(Level::ERROR, line);
    }

    /// Prints the fault that ends a command. If the user asked for a structured log, it is one log entry. If the log
    /// is structured only because there is no terminal, the plain text follows as with any other command, for
    /// somebody who looks at the end of the log.
    pub(crate) fn refuse(&self, fault: &Fault) {
        let text = fault.to_string();
        self.fail(&text);
        if self.is_unasked.get().is_some() {
            self.bars.suspend(|| print_error(&text));
        }
    }

    /// Sets the log's style to [`Style::Json`], although nobody asked for it.
    pub(crate) fn speak_objects_unasked(&self) {
        self.speak_as(Style::Json);
        self.is_unasked.get_or_init(|| ());
    }

    fn put_down(&self, level: Level, line: &str) {
        let line = match self.log.get() {
            Some(style @ (Style::Json | Style::Logfmt)) => telemetry::said(*style, level, line),
            Some(Style::Pretty { .. } | Style::Plain { .. }) | None => fold::to(&Term::stderr(), line),
        };
        self.bars.suspend(|| print_error(&line));
    }

    /// Writes all further lines in the log's style: as log entries, unless it is made for people.
    pub(crate) fn speak_as(&self, style: Style) {
        self.log.get_or_init(|| style);
    }

    /// Creates the bar of an index pass.
    pub(crate) fn indexing(&self) -> IndexBar {
        let bar = self.add("reading items  {wide_bar} {bytes} of {total_bytes}  {msg}");
        IndexBar { bar }
    }

    /// Creates a line that updates in place. It is hidden without a terminal or if `quiet`.
    pub(crate) fn meter(&self, quiet: bool) -> Meter {
        let bar = match quiet || !self.live {
            true => ProgressBar::hidden(),
            false => self.add("{wide_msg}"),
        };
        Meter { bar }
    }

    /// Creates a line that updates in place, drawn from a template.
    pub(crate) fn add(&self, template: &str) -> ProgressBar {
        let bar = self.bars.add(ProgressBar::new(0));
        let style = ProgressStyle::with_template(template);
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }
}

/// Progress bar of an index pass.
#[derive(Clone)]
pub(crate) struct IndexBar {
    bar: ProgressBar,
}

impl IndexBar {
    /// Shows the progress. Called on the thread of the pass.
    pub(crate) fn show(&self, progress: IndexProgress) {
        self.bar
            .set_length(progress.bytes_total.unwrap_or(progress.bytes));
        self.bar.set_position(progress.bytes);
        self.bar.set_message(format!("{} rows", progress.rows));
    }

    /// Removes the bar from the screen.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Line that updates in place and disappears on drop.
pub(crate) struct Meter {
    bar: ProgressBar,
}

impl Meter {
    /// True if the line is visible.
    pub(crate) fn is_live(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Shows a text in the line.
    pub(crate) fn show(&self, text: &str) {
        self.bar.set_message(safe::visible(text).into_owned());
        self.bar.tick();
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Prints to standard error, for people. A closed pipe or terminal is ignored, since it is no reason to end a job; nor
/// can it be logged, as the log goes there too and waits for the bar that called this.
pub(crate) fn print_error(line: &str) {
    drop(writeln!(io::stderr(), "{}", safe::visible(line)));
}

/// Set once standard output has been written to.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// True if standard output has an outcome, or the beginning of one.
pub(crate) fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// True if nobody reads standard output any more: the pipe or the terminal was closed.
fn is_unread(error: &io::Error) -> bool {
    let is_terminal = || {
        let kind = rustix::fs::fstat(io::stdout()).map(|stat| FileType::from_raw_mode(stat.st_mode));
        kind == Ok(FileType::CharacterDevice)
    };
    let is_gone = error.raw_os_error() == Some(Errno::IO.raw_os_error());
    error.kind() == io::ErrorKind::BrokenPipe || is_gone && is_terminal()
}

/// Prints an outcome to standard output as JSON.
///
/// # Errors
/// Same as [`print()`].
pub(crate) fn print_json(outcome: &Value) -> Result<(), Fault> {
    print(&safe::json(outcome))
}

/// Prints an outcome to standard output, for people. A reader that closes the pipe early (`| head`), or a closed
/// terminal, is no error: the work is done, and the exit code says so.
///
/// # Errors
/// Fails if it can't be written for another reason, such as a full disk: the outcome would be lost, and scripts have
/// to know.
pub(crate) fn print(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    PRINTED.store(true, Ordering::Relaxed);
    match writeln!(out, "{}", safe::visible(text.trim_end_matches('\n'))).and_then(|()| out.flush()) {
        Err(error) if !is_unread(&error) => {
            Err(
                Fault::new(Exit::Failed, "can't print the result", error.to_string())
                    .hint("check standard output; completed work is saved"),
            )
        }
        _ => Ok(()),
    }
}

/// Prints the answer of a client command, usually into a pipe. A reader that closes the pipe early (`| head`) is no
/// error.
///
/// # Errors
/// Fails if it can't be written for another reason, such as a full disk.
pub(crate) fn put(text: &str) -> Result<(), Fault> {
    // An empty list has no lines, not one empty line.
    if text.is_empty() {
        return Ok(());
    }
    let text = text.trim_end_matches('\n');
    let text = match io::stdout().is_terminal() {
        true => safe::visible(text),
        false => Cow::Borrowed(text),
    };
    put_bytes(format!("{text}\n").as_bytes())
}

/// Printer of untrusted bytes that arrive in pieces. A terminal gets them without control characters, everything else
/// unchanged.
#[derive(Debug, Default)]
pub(crate) struct Foreign(safe::Pieces);

impl Foreign {
    /// Prints the next piece. Returns false if the reader is gone.
    ///
    /// # Errors
    /// Same as [`put`].
    pub(crate) fn put(&mut self, piece: &[u8]) -> Result<bool, Fault> {
        match io::stdout().is_terminal() {
            true => put_piece(self.0.next(piece).as_bytes()),
            false => put_piece(piece),
        }
    }
}

/// Prints a body unchanged.
///
/// # Errors
/// Same as [`put`].
pub(crate) fn put_bytes(bytes: &[u8]) -> Result<(), Fault> {
    put_piece(bytes).map(|_| ())
}

/// Prints a piece of a long body. Returns false if the reader is gone.
///
/// # Errors
/// Same as [`put`].
pub(crate) fn put_piece(bytes: &[u8]) -> Result<bool, Fault> {
    let mut out = io::stdout().lock();
    PRINTED.store(true, Ordering::Relaxed);
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(
            Fault::new(Exit::Failed, "can't print the response", error.to_string())
                .hint("check standard output"),
        ),
    }
}

/// Default log filter. It leaves out the warnings that a run's actors exchange, because users can't act on them: the
/// screen reports late checkpoints in one line, and -v shows the cause. Warnings about unreadable data stay.
const PLAIN: &str = "warn,windrow_engine::actors=error,windrow_engine::actors::executor=warn,\
                     windrow_engine::actors::membership=off";

fn filter(talk: Verbosity, wanted: Option<&str>) -> Result<telemetry::Filter, Fault> {
    let level = match talk.verbose {
        0 => PLAIN,
        1 => "info,windrow::handler=debug",
        // Libraries at debug level would bury the relevant lines; ractor logs every message and names actors only by
        // number.
        _ => "info,windrow=debug,ractor=warn,sqlx=warn",
    };
    wanted
        .unwrap_or(level)
        .parse()
        .map_err(|error: telemetry::BadFilter| {
            Fault::new(Exit::Config, "invalid WINDROW_LOG", error.to_string())
                .hint("use a level, or levels by module: WINDROW_LOG=info,windrow_engine=debug")
        })
}

fn start_log(bars: MultiProgress, filter: telemetry::Filter, is_node: bool, is_asked_for: bool) {
    let writer = move || Between { bars: bars.clone() };
    let colours = io::stderr().is_terminal();
    let style = match (is_node, is_asked_for) {
        (true, _) if !colours => Style::Json,
        (false, false) => Style::Plain { colours },
        _ => Style::Pretty { colours },
    };
    if telemetry::start_log(filter, style, writer).is_none() {
        tracing::debug!("the log was already started");
    }
}

/// Writer of log lines between two drawings of the bar.
struct Between {
    bars: MultiProgress,
}

impl Write for Between {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bars.suspend(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Reports a panic, which is always a bug of ours, as one line instead of a trace, also in the log.
pub(crate) fn report_panics(bars: Arc<Screen>) {
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current();
        let text = panic.payload_as_str().unwrap_or("no message");
        bars.fail(&format!(
            "bug: panic at {place} in thread {}: {text}",
            thread.name().unwrap_or("unnamed")
        ));
    }));
}
