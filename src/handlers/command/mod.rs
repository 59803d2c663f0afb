//! Workers: processes of the business that take items as lines on stdin and answer on stdout.
//!
//! | file | what |
//! |---|---|
//! | `program` | finds the command, makes its environment |
//! | `worker`, `life` | keep a worker alive; one life of its process |
//! | `handshake` | who answers the hello how (`docs/decisions/0002-worker-hello.md`) |
//! | `hearing`, `ending` | what its lines mean; how it ends |
//! | `pool`, `worker_state` | which worker holds which item; the announced slots |
//! | `protocol`, `lines`, `writer`, `stderr` | the lines and the pipes |
//! | `group`, `leftovers` | process groups; workers that outlived a `kill -9` |
//!
//! Invariants:
//! - an item counts as done only by an answer to that item, whatever else the worker prints;
//! - an item that was in flight in three crashes gets a worker to itself from then on, so that no other item suffers
//!   with it;
//! - a hanging item costs one slot until its patience is over; items beside it finish before the worker is killed;
//! - after `close`, and after the handler is dropped, no process of its workers' groups is alive.

pub(crate) mod answer;
mod ending;
pub(crate) mod group;
mod handshake;
mod hearing;
pub(crate) mod leftovers;
mod life;
mod lines;
mod pool;
pub(crate) mod program;
mod protocol;
pub(crate) mod stderr;
mod worker;
mod worker_state;
mod writer;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::answer::{Answer, Judged};
use self::pool::{Pool, Sending};
use self::program::Program;
use self::protocol::{CallText, ItemLine};
use self::worker::{Shared, supervise};
use self::worker_state::Oddity;
use super::deadline::Deadline;
use super::usage::LineCosts;
use windrow_core::ids::{Attempt, ItemIndex};
use windrow_core::items::verdict::Failure;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{
    Call, Handler, HandlerFactory, LogLine, OpenError, Reply, RunContext, Workers,
};

pub use self::leftovers::Leftovers;
pub use self::program::{COMMAND_NOT_STARTED, Environment, Inherit};

/// Code of an item whose worker died.
pub const WORKER_CRASH: &str = "WORKER_CRASH";
/// Code of an item whose worker had to be ended for a reason other than this item.
pub const WORKER_RESTARTED: &str = "WORKER_RESTARTED";
/// Code of an item whose worker stopped answering pings.
pub const WORKER_HUNG: &str = "WORKER_HUNG";
/// Code of an item that got no answer in time.
pub const TIMEOUT: &str = "TIMEOUT";

/// Time in which an answer may follow a line that was none, before the worker counts as out of step.
const BAD_REPLY_PATIENCE: Duration = Duration::from_secs(1);

/// Receiver of lines for the data log. Called from the workers' tasks; must not block.
pub type Sink = Arc<dyn Fn(LogLine) + Send + Sync>;

/// Settings of workers. Keys and defaults: `config.toml`, `[handler.command]`.
#[derive(Clone)]
pub struct Settings {
    /// Program, followed by its arguments.
    pub argv: Vec<OsString>,
    /// Number of worker processes.
    pub workers: NonZeroU32,
    /// Environment of the worker processes.
    pub environment: Environment,
    /// Time a worker has until it is ready for its first item.
    pub startup_timeout: Duration,
    /// Time a worker has to end, and to answer an item that was cancelled.
    pub kill_grace: Duration,
    /// Maximum length of a worker's line, in bytes.
    pub max_line: usize,
    /// Maximum concurrency that a worker may announce.
    pub max_in_flight: NonZeroU32,
    /// Interval of pings to announcing workers; `None` sends no pings.
    pub heartbeat: Option<Duration>,
    /// File that records live workers. At most one factory at a time may use a file.
    pub leftovers: Option<PathBuf>,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Receiver of stderr and `log` lines.
    pub sink: Sink,
}

impl Settings {
    /// Returns the defaults of `config.toml` for a command.
    pub fn new(argv: Vec<OsString>, environment: Environment, clock: Arc<dyn Clock>, sink: Sink) -> Settings {
        Settings {
            argv,
            workers: NonZeroU32::MIN,
            environment,
            startup_timeout: Duration::from_secs(10),
            kill_grace: Duration::from_secs(10),
            max_line: 1024 * 1024,
            max_in_flight: NonZeroU32::MIN.saturating_add(1023),
            heartbeat: None,
            leftovers: None,
            clock,
            sink,
        }
    }
}

/// Factory of handlers that run one command.
pub struct CommandHandlerFactory {
    settings: Arc<Settings>,
    leftovers: OnceLock<Arc<Leftovers>>,
}

impl CommandHandlerFactory {
    /// Creates a factory without starting anything.
    pub fn new(settings: Settings) -> CommandHandlerFactory {
        CommandHandlerFactory {
            settings: Arc::new(settings),
            leftovers: OnceLock::new(),
        }
    }

    /// Creates a factory that shares one list of live workers with others; the file in the settings isn't used.
    pub fn sharing(settings: Settings, leftovers: Arc<Leftovers>) -> CommandHandlerFactory {
        CommandHandlerFactory {
            settings: Arc::new(settings),
            leftovers: OnceLock::from(leftovers),
        }
    }

    /// Looks up the command without starting it.
    ///
    /// # Errors
    /// If it does not exist or may not be executed.
    pub fn check(&self) -> Result<(), OpenError> {
        check_program(&self.settings.argv, &self.settings.environment)
    }
}

/// Looks up a command without starting it.
///
/// # Errors
/// If it does not exist or may not be executed.
pub fn check_program(argv: &[OsString], environment: &Environment) -> Result<(), OpenError> {
    Program::check(argv, environment)
}

impl HandlerFactory for CommandHandlerFactory {
    /// Opens the workers of a run. Must be called on a tokio runtime, whose tasks supervise the workers.
    fn open(&self, run: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        let settings = self.settings.clone();
        let program = Program::find(&settings.argv, &settings.environment, &run)?;
        let take_over = || Arc::new(Leftovers::take_over(settings.leftovers.clone()));
        let leftovers = self.leftovers.get_or_init(take_over).clone();
        let workers = settings.workers.get() as usize;
        let pool = Pool::new(workers);
        let (traces, key_head) = (run.traces(), run.item_key_head());
        let kind = Mutex::default();
        let costs = LineCosts::of(&run.metering);
        let shared = Arc::new(Shared {
            settings,
            run,
            program,
            traces,
            key_head,
            pool,
            leftovers,
            kind,
            costs,
        });
        let mut supervisors = JoinSet::new();
        for worker in 0..workers {
            supervisors.spawn(supervise(shared.clone(), worker));
        }
        Ok(Arc::new(CommandHandler {
            shared,
            supervisors: tokio::sync::Mutex::new(supervisors),
        }))
    }

    fn service(&self) -> Option<String> {
        None
    }
}

/// Workers of one run. Dropping it kills them.
struct CommandHandler {
    shared: Arc<Shared>,
    supervisors: tokio::sync::Mutex<JoinSet<()>>,
}

impl Handler for CommandHandler {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        Box::pin(self.process_items(call))
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.shared.pool.slots()
    }

    fn workers(&self) -> Option<Workers> {
        Some(self.shared.pool.workers())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.shared.pool.close();
            let mut supervisors = self.supervisors.lock().await;
            while let Some(ended) = supervisors.join_next().await {
                if let Err(why) = ended {
                    tracing::error!(%why, "a worker's supervisor failed; its processes were killed");
                }
            }
        })
    }
}

/// Item that was sent to a worker, or refused.
enum Sent<'a> {
    Waiting(Waiting<'a>),
    Refused(Judged),
}

impl CommandHandler {
    async fn process_items(&self, call: Call) -> Reply {
        let settings = &self.shared.settings;
        let mut deadline = Deadline::new(&settings.clock, call.gate_time.plus(call.timeout));
        // An item sent at the last moment would be charged with a timeout that its worker had no time to avoid.
        let mut patience = Deadline::new(&settings.clock, call.gate_time.plus(call.timeout / 2));
        let common = (self.shared.key_head.as_str(), self.shared.traces);
        let text = CallText::new(settings.clock.wall_micros(call.gate_time), call.timeout, common);
        let mut sent = Vec::with_capacity(call.items.len());
        for (index, attempt) in call.items.iter() {
            sent.push((
                index,
                self.send(&call, &text, index, attempt, &mut patience).await,
            ));
        }
        let mut answers = Vec::with_capacity(sent.len());
        for (index, sent) in sent {
            let answer = match sent {
                Sent::Refused(judged) => judged.into(),
                Sent::Waiting(waiting) => waiting.answer(&mut deadline).await,
            };
            answers.push((index, answer));
        }
        answer::into_reply(answers)
    }

    /// Gives the item to a worker, or back if none has room within `patience`. Core's concurrency is bounded by the
    /// slots, so a wait is rare: a worker died, or was reserved, after the item was dispatched.
    async fn send(
        &self,
        call: &Call,
        text: &CallText,
        index: ItemIndex,
        attempt: Attempt,
        patience: &mut Deadline<'_>,
    ) -> Sent<'_> {
        let shared = &*self.shared;
        let (pool, run) = (&shared.pool, &shared.run);
        let id = pool.next_id();
        let data = call.rows.data(index);
        let mut line = text.item(&ItemLine {
            id,
            index,
            attempt,
            data,
        });
        let reservation = Reservation { pool, id };
        loop {
            let freed = pool.freed();
            if !run.gate.is_open(shared.settings.clock.now()) {
                return Sent::Refused(Judged::NotSent);
            }
            match pool.try_send(id, index, &mut line) {
                Sending::Refused(judged) => return Sent::Refused(judged),
                Sending::Sent { worker, answer } => {
                    std::mem::forget(reservation);
                    return Sent::Waiting(Waiting {
                        shared: &self.shared,
                        worker,
                        id,
                        timeout: call.timeout,
                        answer,
                        is_over: false,
                    });
                }
                Sending::Wait => {}
            }
            if patience.cut_short(freed).await.is_none() {
                return Sent::Refused(Judged::NotSent);
            }
        }
    }
}

/// Reservation of an empty worker for an item; removed on drop, however the wait ends.
struct Reservation<'a> {
    pool: &'a Pool,
    id: u64,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.pool.unreserve(self.id);
    }
}

/// Item that a worker holds. Dropping it takes the item back.
struct Waiting<'a> {
    shared: &'a Shared,
    worker: usize,
    id: u64,
    timeout: Duration,
    answer: tokio::sync::oneshot::Receiver<Answer>,
    is_over: bool,
}

impl Waiting<'_> {
    async fn answer(mut self, deadline: &mut Deadline<'_>) -> Answer {
        let answer = deadline.cut_short(&mut self.answer).await;
        match answer {
            Some(Ok(answer)) => {
                self.is_over = true;
                answer
            }
            Some(Err(_)) => {
                self.is_over = true;
                Judged::Lost(Failure::new(
                    WORKER_CRASH,
                    "the worker's supervisor ended before the item was answered",
                ))
                .into()
            }
            None => self.on_timeout(),
        }
    }

    fn on_timeout(&mut self) -> Answer {
        let oddity = self.give_up();
        // The answer may have come at the last moment; then it counts.
        if let Ok(answer) = self.answer.try_recv() {
            return answer;
        }
        let timeout = humantime::format_duration(self.timeout);
        let message = match oddity {
            Oddity::None => format!("no answer within {timeout}"),
            Oddity::Silent => format!(
                "no answer within {timeout}, and no output since the worker started; did you flush \
                 stdout? (python3 -u)"
            ),
            Oddity::StrangeId(id) => format!(
                "the worker answered the unknown id {id}, but not this item within {timeout}; copy the \
                 item's id into its answer"
            ),
        };
        Judged::Lost(Failure::new(TIMEOUT, message)).into()
    }

    fn give_up(&mut self) -> Oddity {
        self.is_over = true;
        let settings = &self.shared.settings;
        let patience = self.timeout.min(settings.kill_grace);
        self.shared
            .pool
            .give_up(self.worker, self.id, settings.clock.now().plus(patience))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.give_up();
        }
    }
}
