//! What is said on standard error: a live bar on a terminal, plain lines elsewhere, nothing with `--quiet`; and the
//! log, which never breaks into the bar. Standard output is for the outcome only.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use clap::{ArgAction, Args};
use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use tracing::Level;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::{fold, safe};
use windrow_node::sources::IndexProgress;
use windrow_server::telemetry::{self, Style};

/// How much is printed beside the outcome.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Verbosity {
    /// Print nothing but errors and the outcome
    #[arg(short, long)]
    pub quiet: bool,
    /// Print more: -v what happens and what workers print, -vv everything (WINDROW_LOG=filter wins)
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

/// Everything that is said beside the outcome.
pub(crate) struct Screen {
    bars: MultiProgress,
    quiet: bool,
    live: bool,
    /// How the lines of the log look among which these lines stand; none stands alone.
    log: OnceLock<Style>,
    /// Whether nobody asked for that.
    is_unasked: OnceLock<()>,
}

impl Screen {
    /// A screen for how much was asked for; also where the log goes. A node's log is for machines where nobody looks.
    ///
    /// # Errors
    /// When the log's filter can't be read.
    pub(crate) fn open(talk: Verbosity, log_filter: Option<&str>, is_node: bool) -> Result<Screen, Fault> {
        let stderr = ProgressDrawTarget::stderr();
        // Hidden also where the terminal can't move its cursor (TERM=dumb): plain lines then.
        let live = io::stderr().is_terminal() && !talk.quiet && !stderr.is_hidden();
        let target = if live {
            stderr
        } else {
            ProgressDrawTarget::hidden()
        };
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

    /// A screen without a bar, for a program whose log is started when its configuration is known.
    pub(crate) fn plain() -> Screen {
        Screen {
            bars: MultiProgress::with_draw_target(ProgressDrawTarget::hidden()),
            quiet: false,
            live: false,
            log: OnceLock::new(),
            is_unasked: OnceLock::new(),
        }
    }

    /// Whether a bar is drawn: on a terminal, unless quiet.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Says a line.
    pub(crate) fn say(&self, line: &str) {
        if !self.quiet {
            self.must_say(line);
        }
    }

    /// Says a line even when quiet.
    pub(crate) fn must_say(&self, line: &str) {
        self.put_down(Level::INFO, line);
    }

    /// Says what went wrong.
    pub(crate) fn fail(&self, line: &str) {
        self.put_down(Level::ERROR, line);
    }

    /// Says why a command can't go on. Who asked for a log of objects gets nothing else; where it is one only because nobody
    /// looks at a terminal, somebody may look at its end, and reads there what any other command ends with.
    pub(crate) fn refuse(&self, fault: &Fault) {
        let text = fault.to_string();
        self.fail(&text);
        if self.is_unasked.get().is_some() {
            self.bars.suspend(|| print_error(&text));
        }
    }

    /// The style of the log is [`Style::Json`] though nobody asked for it.
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

    /// From now on what is said stands in a log of this style: its lines are for machines, unless it is pretty.
    pub(crate) fn speak_as(&self, style: Style) {
        self.log.get_or_init(|| style);
    }

    /// A bar for an index pass.
    pub(crate) fn indexing(&self) -> IndexBar {
        let bar = self.add("reading items  {wide_bar} {bytes} of {total_bytes}  {msg}");
        IndexBar { bar }
    }

    /// A line that changes in place; nothing where there is no terminal, or when it is to be quiet.
    pub(crate) fn meter(&self, quiet: bool) -> Meter {
        let bar = match quiet || !self.live {
            true => ProgressBar::hidden(),
            false => self.add("{wide_msg}"),
        };
        Meter { bar }
    }

    /// A line that changes in place, drawn by a template.
    pub(crate) fn add(&self, template: &str) -> ProgressBar {
        let bar = self.bars.add(ProgressBar::new(0));
        let style = ProgressStyle::with_template(template);
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }
}

/// The bar of an index pass.
#[derive(Clone)]
pub(crate) struct IndexBar {
    bar: ProgressBar,
}

impl IndexBar {
    /// Shows how far it is; called on the thread of the pass.
    pub(crate) fn show(&self, progress: IndexProgress) {
        self.bar
            .set_length(progress.bytes_total.unwrap_or(progress.bytes));
        self.bar.set_position(progress.bytes);
        self.bar.set_message(format!("{} rows", progress.rows));
    }

    /// Takes it off the screen.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A line that changes in place, and goes when it is dropped.
pub(crate) struct Meter {
    bar: ProgressBar,
}

impl Meter {
    /// Whether anybody sees it.
    pub(crate) fn is_live(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Shows a text.
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

/// Prints to standard error, for people. Nobody may be reading any more (a closed pipe); that is no reason to end a job.
pub(crate) fn print_error(line: &str) {
    if writeln!(io::stderr(), "{}", safe::visible(line)).is_err() {
        tracing::trace!("standard error is closed");
    }
}

/// Set once standard output has something.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Something was printed on standard output: an outcome, or its beginning.
pub(crate) fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// Prints an outcome to standard output as JSON.
///
/// # Errors
/// As [`print()`].
pub(crate) fn print_json(outcome: &Value) -> Result<(), Fault> {
    print(&safe::json(outcome))
}

/// Prints an outcome to standard output, for people. A reader that has seen enough (`| head`) is no error: what was done is done, and
/// the exit code says it.
///
/// # Errors
/// When it can't be written for another reason, e.g. a full disk: then the outcome is lost, and a script has to know.
pub(crate) fn print(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    PRINTED.store(true, Ordering::Relaxed);
    match writeln!(out, "{}", safe::visible(text.trim_end_matches('\n'))).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(
                Fault::new(Exit::Failed, "the outcome can't be printed", error.to_string())
                    .hint("check where standard output goes; what was done is saved"),
            )
        }
        _ => Ok(()),
    }
}

/// The same for clients, whose output goes through pipes: a reader that has seen enough (`| head`) is no error.
///
/// # Errors
/// When it can't be written for another reason, e.g. a full disk.
pub(crate) fn put(text: &str) -> Result<(), Fault> {
    // An empty list has no lines, not an empty one.
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

/// The bytes of strangers, in pieces: as they are, but for what would steer a terminal.
#[derive(Debug, Default)]
pub(crate) struct Foreign(safe::Pieces);

impl Foreign {
    /// Prints the next piece; false when nobody reads any more.
    ///
    /// # Errors
    /// As [`put`].
    pub(crate) fn put(&mut self, piece: &[u8]) -> Result<bool, Fault> {
        match io::stdout().is_terminal() {
            true => put_piece(self.0.next(piece).as_bytes()),
            false => put_piece(piece),
        }
    }
}

/// The same for a body as it is.
///
/// # Errors
/// As [`put`].
pub(crate) fn put_bytes(bytes: &[u8]) -> Result<(), Fault> {
    put_piece(bytes).map(|_| ())
}

/// The same for a piece of a long body; false when nobody reads any more.
///
/// # Errors
/// As [`put`].
pub(crate) fn put_piece(bytes: &[u8]) -> Result<bool, Fault> {
    let mut out = io::stdout().lock();
    PRINTED.store(true, Ordering::Relaxed);
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(
            Fault::new(Exit::Failed, "the answer can't be printed", error.to_string())
                .hint("check where standard output goes"),
        ),
    }
}

/// What a run's actors warn of one another is nothing that whoever waits for it could act on: the screen says in a line
/// that progress is saved late, and -v shows why. What they can't read is told.
const PLAIN: &str = "warn,windrow_engine::actors=error,windrow_engine::actors::executor=warn,\
                     windrow_engine::actors::membership=off";

fn filter(talk: Verbosity, wanted: Option<&str>) -> Result<telemetry::Filter, Fault> {
    let level = match talk.verbose {
        0 => PLAIN,
        1 => "info,windrow::handler=debug",
        // Libraries at debug would bury what is looked for; ractor logs every message, and names each actor by a number.
        _ => "info,windrow=debug,ractor=warn,sqlx=warn",
    };
    wanted
        .unwrap_or(level)
        .parse()
        .map_err(|error: telemetry::BadFilter| {
            Fault::new(Exit::Config, "WINDROW_LOG can't be used", error.to_string())
                .hint("a level, or levels by module: WINDROW_LOG=info,windrow_engine=debug")
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
        tracing::debug!("the log was started before");
    }
}

/// Writes log lines between two drawings of the bar.
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

/// A panic is a mistake of ours: one line instead of a trace, to the log as well.
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
