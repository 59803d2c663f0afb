//! Starts command handlers on the worker scripts of `tests/fixtures/workers`, and calls them.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::Notify;
use windrow_core::ids::{Attempt, Epoch, ItemIndex, RunNo, ShardId, StoreId, TaskId};
use windrow_core::items::run::IndexRun;
use windrow_core::items::trace::Sampling;
use windrow_core::items::verdict::{Dispatch, Failure, Outcome, RetryAdvice};
use windrow_core::meter::metering::Metering;
use windrow_core::meter::meterings::Meterings;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{
    Call, CallFailure, CallItems, CallRows, Handler, HandlerFactory, ItemVerdict, LogLine, Mode, OpenError,
    Reply, RunContext,
};
use windrow_engine::ports::ownership::gate::Gate;
use windrow_engine::ports::sources::source::RowChunk;
use windrow_handlers::command::{CommandHandlerFactory, Environment, Inherit, Settings, Sink};
use windrow_host::clock::SystemClock;

/// Long enough for anything that must happen; only a failing test waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn fixture(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/workers");
    dir.join(name).to_str().expect("the path is UTF-8").to_owned()
}

/// What workers wrote to the data log.
#[derive(Clone, Default)]
pub(crate) struct Log {
    lines: Arc<Mutex<Vec<LogLine>>>,
    grown: Arc<Notify>,
}

impl Log {
    /// What writes to it.
    pub(crate) fn sink(&self) -> Sink {
        let log = self.clone();
        Arc::new(move |line| {
            log.lines.lock().expect("no test panics while logging").push(line);
            log.grown.notify_waiters();
        })
    }

    pub(crate) fn lines(&self) -> Vec<LogLine> {
        self.lines.lock().expect("no test panics while logging").clone()
    }

    pub(crate) fn contains(&self, text: &str) -> bool {
        self.lines().iter().any(|line| line.message.contains(text))
    }

    /// Waits for a line with `text` and returns it.
    pub(crate) async fn wait_for(&self, text: &str) -> String {
        let wait = async {
            loop {
                let grown = self.grown.notified();
                if let Some(line) = self.lines().into_iter().find(|line| line.message.contains(text)) {
                    return line.message;
                }
                grown.await;
            }
        };
        tokio::time::timeout(PATIENCE, wait)
            .await
            .unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.lines()))
    }
}

/// A handler of worker processes, and everything to call it.
pub(crate) struct Rig {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) log: Log,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timeout: Duration,
    pub(crate) gate: Arc<Gate>,
}

/// What handlers are told of the run.
pub(crate) fn run(mode: Mode, gate: Arc<Gate>, metering: Arc<Meterings>) -> RunContext {
    RunContext {
        shard: ShardId {
            task: TaskId(42),
            no: 0,
        },
        task_name: Some("test".to_owned()),
        task_revision: 1,
        business: "push".to_owned(),
        params: None,
        run: RunNo(3),
        epoch: Epoch(7),
        store: StoreId("k7f3q2".to_owned()),
        keys_of: None,
        is_proven: false,
        keeps_results: false,
        mode,
        sampling: Sampling::default(),
        metering,
        gate,
    }
}

/// How a rig differs from the usual.
pub(crate) struct Setup {
    settings: Settings,
    log: Log,
    timeout: Duration,
    mode: Mode,
    metering: Arc<Meterings>,
}

impl Setup {
    pub(crate) fn new(argv: &[&str]) -> Setup {
        let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        let environment = Environment {
            inherit: Inherit::All(std::env::vars_os().collect()),
            variables: Vec::new(),
        };
        let log = Log::default();
        let mut settings = Settings::new(argv, environment, Arc::new(SystemClock::new()), log.sink());
        settings.kill_grace = Duration::from_millis(500);
        settings.startup_timeout = Duration::from_secs(30);
        Setup {
            settings,
            log,
            timeout: Duration::from_secs(30),
            mode: Mode::Live,
            metering: Arc::default(),
        }
    }

    pub(crate) fn python(script: &str, args: &[&str]) -> Setup {
        let path = fixture(script);
        Setup::new(&[&["python3", &path], args].concat())
    }

    /// The script that does what the item's data asks for.
    pub(crate) fn script(concurrency: u32) -> Setup {
        Setup::python("script.py", &[&concurrency.to_string()])
    }

    pub(crate) fn shell(script: &str, args: &[&str]) -> Setup {
        let path = fixture(script);
        Setup::new(&[&[path.as_str()], args].concat())
    }

    pub(crate) fn timeout(mut self, timeout: Duration) -> Setup {
        self.timeout = timeout;
        self
    }

    pub(crate) fn workers(mut self, workers: u32) -> Setup {
        self.settings.workers = NonZeroU32::new(workers).expect("at least one worker");
        self
    }

    pub(crate) fn with(mut self, edit: impl FnOnce(&mut Settings)) -> Setup {
        edit(&mut self.settings);
        self
    }

    pub(crate) fn metering(mut self, metering: Metering) -> Setup {
        self.metering = Arc::new(metering.into());
        self
    }

    pub(crate) fn try_open(self) -> Result<Rig, OpenError> {
        let clock = self.settings.clock.clone();
        let gate = Arc::new(Gate::always_open());
        let run = run(self.mode, gate.clone(), self.metering);
        let handler = CommandHandlerFactory::new(self.settings).open(Arc::new(run))?;
        Ok(Rig {
            handler,
            log: self.log,
            clock,
            timeout: self.timeout,
            gate,
        })
    }

    pub(crate) fn open(self) -> Rig {
        self.try_open().unwrap_or_else(|why| panic!("{why}"))
    }

    /// What the handler says of a command that can't work.
    pub(crate) fn refusal(self) -> String {
        match self.try_open() {
            Ok(_) => panic!("the command was accepted"),
            Err(why) => why.to_string(),
        }
    }
}

impl Rig {
    /// A call for neighbouring items from `first` on, each with its data.
    pub(crate) fn call(&self, first: u64, data: &[Value]) -> Call {
        let len = u32::try_from(data.len()).expect("few items");
        let run = IndexRun::new(ItemIndex(first), len).expect("at least one item");
        let (mut buffer, mut ends) = (Vec::new(), Vec::new());
        for row in data {
            buffer.extend_from_slice(row.to_string().as_bytes());
            ends.push(u32::try_from(buffer.len()).expect("little data"));
        }
        let chunk = RowChunk::new(ItemIndex(first), Bytes::from(buffer), ends);
        Call {
            items: CallItems::One(Dispatch {
                run,
                attempt: Attempt::FIRST,
            }),
            rows: CallRows {
                chunks: vec![Arc::new(chunk)],
                positions: None,
            },
            gate_time: self.clock.now(),
            timeout: self.timeout,
        }
    }

    /// Waits for a slot, as the core does, then calls with one item.
    pub(crate) async fn item(&self, index: u64, data: Value) -> Reply {
        self.slots_at_least(1).await;
        self.send(index, data).await
    }

    /// Calls with one item at once.
    pub(crate) async fn send(&self, index: u64, data: Value) -> Reply {
        self.batch(index, &[data]).await
    }

    pub(crate) async fn batch(&self, first: u64, data: &[Value]) -> Reply {
        let reply = self.handler.process(self.call(first, data));
        tokio::time::timeout(PATIENCE, reply)
            .await
            .expect("every call ends")
    }

    pub(crate) async fn slots_at_least(&self, slots: u32) {
        self.slots_where(|announced| announced >= slots).await;
    }

    pub(crate) async fn slots_where(&self, fits: impl Fn(u32) -> bool) {
        let mut announced = self.handler.slots();
        let wait = announced.wait_for(|slots| fits(slots.unwrap_or(u32::MAX)));
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        waited
            .unwrap_or_else(|_| panic!("the slots never came; log: {:?}", self.log.lines()))
            .expect("the handler lives");
    }

    pub(crate) async fn close(&self) {
        tokio::time::timeout(PATIENCE, self.handler.close())
            .await
            .expect("closing ends");
    }

    /// The process id of a worker that runs `script.py`.
    pub(crate) async fn worker_pid(&self, index: u64) -> i32 {
        message_of(&self.item(index, serde_json::json!({"do": "pid"})).await)
            .parse()
            .expect("a process id")
    }
}

/// The only verdict of a reply.
pub(crate) fn verdict(reply: &Reply) -> ItemVerdict {
    match reply {
        Reply::AllOk => ItemVerdict::Settled(Outcome::Succeeded),
        Reply::Items(items) => {
            assert_eq!(items.verdicts.len(), 1, "{items:?}");
            items.verdicts[0].1.clone()
        }
        Reply::Told(told) => verdict(&told.reply),
        Reply::Failed(failure) => panic!("no verdict, but {failure:?}"),
    }
}

/// The failure of the only item and what is to become of the item.
pub(crate) fn failed(reply: &Reply) -> (Failure, RetryAdvice) {
    match verdict(reply) {
        ItemVerdict::Failed { failure, advice } => (failure, advice),
        ItemVerdict::Unclear(failure) => (failure, RetryAdvice::Retry { after: None }),
        settled @ (ItemVerdict::Settled(_) | ItemVerdict::SucceededWith(_)) => {
            panic!("no failure, but {settled:?}")
        }
    }
}

/// The message of the only item's failure.
pub(crate) fn message_of(reply: &Reply) -> String {
    failed(reply).0.message
}

/// The failure of a call that another attempt is charged for.
pub(crate) fn charged(reply: &Reply) -> Failure {
    match reply {
        Reply::Failed(failure) => match &**failure {
            CallFailure::Failed { failure, .. } => failure.clone(),
            other => panic!("not charged, but {other:?}"),
        },
        other => panic!("not charged, but {other:?}"),
    }
}

/// The failure of a call whose answer was none.
pub(crate) fn bad_reply(reply: &Reply) -> Failure {
    match reply {
        Reply::Failed(failure) => match &**failure {
            CallFailure::BadReply(failure) => failure.clone(),
            other => panic!("no bad reply, but {other:?}"),
        },
        other => panic!("no bad reply, but {other:?}"),
    }
}

/// The failure of a call that the handler refuses as such, if it is one.
pub(crate) fn rejected(reply: &Reply) -> Option<Failure> {
    match reply {
        Reply::Failed(failure) => match &**failure {
            CallFailure::Rejected(failure) | CallFailure::Unstarted(failure) => Some(failure.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a process exists and is more than a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'))
    })
}

/// Waits until a process is gone. There is no event for a process that is not our child, so this looks.
pub(crate) async fn gone(pid: i32) {
    over(&format!("process {pid}"), || !is_alive(pid)).await;
}

/// Waits until something that tells nobody is over.
pub(crate) async fn over(what: &str, is_over: impl Fn() -> bool) {
    let wait = async {
        while !is_over() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("{what} is still there"));
}

/// A directory for one test.
pub(crate) fn scratch() -> (tempfile::TempDir, impl Fn(&str) -> PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let root = dir.path().to_owned();
    (dir, move |name| root.join(name))
}
