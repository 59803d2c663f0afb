//! One process for each item: programs that know nothing of Windrow.
//!
//! | file | what |
//! |---|---|
//! | `pool` | threads that each tend one process at a time |
//! | `process`, `pipes` | one process from its start to its end; what goes in and comes out |
//! | `stage` | how far it is, and who may still end it |
//! | `verdict` | what its end means |
//! | `records` | live processes on disk; those that outlived a `kill -9` |
//!
//! A thread waits for its process by a descriptor of its own: no signal wakes all threads, and starting a process,
//! which blocks until the kernel has it, holds up nobody else; `scripts/exec-race.sh` compares.
//!
//! Invariants:
//! - after a call was dropped, and after `close`, nothing of its process group is alive;
//! - a process's number is used for signals only while it is provably its own: until it is reaped;
//! - the output of each process costs a bounded number of bytes.

mod pipes;
mod pool;
mod process;
mod records;
mod stage;
mod verdict;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tokio::sync::{oneshot, watch};

use self::pool::{Job, Pool};
use self::stage::Stage;
use super::command::answer::{self, Judged};
use super::command::program::Program;
use super::command::stderr::Notes;
use super::command::{COMMAND_NOT_STARTED, Environment, Sink, TIMEOUT};
use super::deadline::Deadline;
use windrow_core::ids::{Attempt, ItemIndex};
use windrow_core::items::verdict::Failure;
use windrow_core::template::program::Recipe;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{Call, Handler, HandlerFactory, OpenError, Reply, RunContext};

pub use self::records::Records;
pub use self::verdict::{ARGUMENTS_TOO_LONG, NOT_STARTED_NOW};

/// Maximum concurrent processes of one handler, however many the task would allow. Each has its own thread.
pub const PROCESSES_MAX: u32 = 1000;

/// Time a killed process has to be gone before its call ends without its last words.
const KILLED_GRACE: Duration = Duration::from_millis(300);

/// Settings for starting processes.
#[derive(Clone)]
pub struct Settings {
    /// Program, with the template that an item's values fill.
    pub recipe: Recipe,
    /// Maximum concurrent processes; `None` leaves it to the task's concurrency.
    pub processes: Option<NonZeroU32>,
    /// Exit codes, besides 75, of a program that doesn't find what it needs: treated like a 503.
    pub unavailable_exits: Vec<u8>,
    /// Environment of the processes.
    pub environment: Environment,
    /// Working directory; `None` means Windrow's own.
    pub cwd: Option<PathBuf>,
    /// File that records live processes. At most one factory at a time may use a file.
    pub records: Option<PathBuf>,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Receiver of stderr lines.
    pub sink: Sink,
}

/// Factory of handlers that start a process for each item.
pub struct ExecHandlerFactory {
    settings: Settings,
    records: OnceLock<Arc<Records>>,
}

impl ExecHandlerFactory {
    /// Creates a factory without starting anything.
    pub fn new(settings: Settings) -> ExecHandlerFactory {
        ExecHandlerFactory {
            settings,
            records: OnceLock::new(),
        }
    }

    /// Creates a factory that shares one list of live processes with others; the file in the settings isn't used.
    pub fn sharing(settings: Settings, records: Arc<Records>) -> ExecHandlerFactory {
        ExecHandlerFactory {
            settings,
            records: OnceLock::from(records),
        }
    }

    /// Looks up the program without starting it.
    ///
    /// # Errors
    /// If it does not exist or may not be executed, or if the working directory does not exist.
    pub fn check(&self) -> Result<(), OpenError> {
        let settings = &self.settings;
        match &settings.cwd {
            Some(cwd) if !cwd.is_dir() => {
                let message = format!("the working directory {} does not exist", cwd.display());
                Err(Failure::new(COMMAND_NOT_STARTED, message).into())
            }
            _ => Program::check(
                &[OsString::from(settings.recipe.program())],
                &settings.environment,
            ),
        }
    }
}

impl HandlerFactory for ExecHandlerFactory {
    fn open(&self, run: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        let settings = &self.settings;
        let argv = [OsString::from(settings.recipe.program())];
        let program = Program::find(&argv, &settings.environment, &run)?;
        let take_over = || Arc::new(Records::take_over(settings.records.as_deref()));
        let records = self.records.get_or_init(take_over).clone();
        let processes = settings.processes.map_or(PROCESSES_MAX, NonZeroU32::get);
        let processes = processes.min(PROCESSES_MAX);
        let notes = Notes::new("exec".to_owned(), settings.sink.clone(), settings.clock.clone());
        let shared = Arc::new(Shared {
            settings: settings.clone(),
            run,
            program,
            notes,
            records,
        });
        Ok(Arc::new(ExecHandler {
            pool: Pool::new(shared.clone(), processes as usize),
            shared,
            slots: watch::Sender::new(Some(processes)),
        }))
    }

    fn service(&self) -> Option<String> {
        None
    }

    fn kind(&self) -> &'static str {
        "exec"
    }
}

/// State shared by all processes of a run.
struct Shared {
    settings: Settings,
    run: Arc<RunContext>,
    program: Program,
    notes: Notes,
    records: Arc<Records>,
}

/// Processes of one run. Dropping it kills them.
struct ExecHandler {
    shared: Arc<Shared>,
    pool: Pool,
    slots: watch::Sender<Option<u32>>,
}

impl Handler for ExecHandler {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        Box::pin(self.process_items(Arc::new(call)))
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.slots.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.pool.close().await;
            self.shared.notes.finish();
        })
    }
}

impl ExecHandler {
    async fn process_items(&self, call: Arc<Call>) -> Reply {
        let items = call.items.iter();
        let judged = items.map(async |(index, attempt)| {
            let judged = self.process_item(&call, index, attempt).await;
            (index, judged.into())
        });
        answer::into_reply(join_all(judged).await)
    }

    async fn process_item(&self, call: &Arc<Call>, index: ItemIndex, attempt: Attempt) -> Judged {
        let (sender, judged) = oneshot::channel();
        let stage = Arc::new(Stage::default());
        let guard = Guard(&stage);
        let job = Job {
            call: call.clone(),
            index,
            attempt,
            stage: stage.clone(),
            judged: sender,
        };
        if let Err(why) = self.pool.submit(job) {
            return verdict::no_room(&why);
        }
        let mut judged = judged;
        let clock = &self.shared.settings.clock;
        let until = call.gate_time.plus(call.timeout);
        let in_time = Deadline::new(clock, until).cut_short(&mut judged).await;
        let ended = match in_time {
            Some(ended) => Some(ended),
            None => {
                if !stage.kill() {
                    return Judged::NotSent;
                }
                // The last words belong to the failure, and the process may have ended at the last moment.
                let grace = clock.now().plus(KILLED_GRACE);
                Deadline::new(clock, grace).cut_short(&mut judged).await
            }
        };
        drop(guard);
        match ended {
            Some(Ok(judged)) => judged,
            Some(Err(_)) => Judged::Lost(Failure::new(TIMEOUT, "the thread supervising the process ended")),
            None => Judged::Lost(verdict::timeout(call.timeout, None)),
        }
    }
}

/// Guard that kills the process of a call that is dropped.
struct Guard<'a>(&'a Stage);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.kill();
    }
}
