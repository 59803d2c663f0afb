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
//! A thread waits for its process by a descriptor of its own: no signal wakes all of them, and starting one, which blocks
//! until the kernel has it, holds up nobody else; `scripts/exec-race.sh` compares.
//!
//! What holds:
//! - after a call was given up, and after `close`, nothing of its process group is alive;
//! - a process's number is used for signals only while it is provably its own: until it is reaped;
//! - what processes print costs a bounded number of bytes each.

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

/// The most processes at once of one handler, however many the task would allow. Each is tended by a thread.
pub const PROCESSES_MAX: u32 = 1000;

/// How long a process that was killed may take to be gone before its call ends without its last words.
const KILLED_GRACE: Duration = Duration::from_millis(300);

/// How processes are started.
#[derive(Clone)]
pub struct Settings {
    /// The program and what an item's values become.
    pub recipe: Recipe,
    /// The most processes at once; none is what the task's concurrency allows.
    pub processes: Option<NonZeroU32>,
    /// Exit codes, beside 75, of a program that doesn't find what it needs: read as a 503 is.
    pub unavailable_exits: Vec<u8>,
    /// What they find in their environment.
    pub environment: Environment,
    /// Where they work; none is where Windrow does.
    pub cwd: Option<PathBuf>,
    /// Where live processes are written down. At most one factory at a time may use a file.
    pub records: Option<PathBuf>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where lines of stderr go.
    pub sink: Sink,
}

/// Opens handlers that start a process for each item.
pub struct ExecHandlerFactory {
    settings: Settings,
    records: OnceLock<Arc<Records>>,
}

impl ExecHandlerFactory {
    /// A factory that starts nothing yet.
    pub fn new(settings: Settings) -> ExecHandlerFactory {
        ExecHandlerFactory {
            settings,
            records: OnceLock::new(),
        }
    }

    /// The same, with one list of live processes for several factories; that of the settings isn't used.
    pub fn sharing(settings: Settings, records: Arc<Records>) -> ExecHandlerFactory {
        ExecHandlerFactory {
            settings,
            records: OnceLock::from(records),
        }
    }

    /// Looks for the program without starting it.
    ///
    /// # Errors
    /// When it isn't there or may not be executed, or there is no such directory to work in.
    pub fn check(&self) -> Result<(), OpenError> {
        let settings = &self.settings;
        match &settings.cwd {
            Some(cwd) if !cwd.is_dir() => {
                let message = format!("there is no directory {} to start processes in", cwd.display());
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

    fn kind(&self) -> &'static str {
        "exec"
    }
}

/// What all processes of a run share.
struct Shared {
    settings: Settings,
    run: Arc<RunContext>,
    program: Program,
    notes: Notes,
    records: Arc<Records>,
}

/// The processes of one run. Dropping it kills them.
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
                // Its last words belong to the failure, and it may have ended at the last moment.
                let grace = clock.now().plus(KILLED_GRACE);
                Deadline::new(clock, grace).cut_short(&mut judged).await
            }
        };
        drop(guard);
        match ended {
            Some(Ok(judged)) => judged,
            Some(Err(_)) => Judged::Lost(Failure::new(TIMEOUT, "the thread that tended the process ended")),
            None => Judged::Lost(verdict::timeout(call.timeout, None)),
        }
    }
}

/// Ends the process of a call that is given up.
struct Guard<'a>(&'a Stage);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.kill();
    }
}
