//! A whole node in this process, over SQLite in a temporary directory, with a handler that does nothing or sleeps.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use sea_orm::{ConnectionTrait, DbBackend, Statement};
use tokio::sync::watch;
use windrow_config::Config;
use windrow_core::capacity::{Capacity, Ledger};
use windrow_core::ids::{ItemCount, ItemIndex, TaskId};
use windrow_core::items::output::Output;
use windrow_core::settings::{Auto, Rate, RateLimit, Results};
use windrow_core::task::lifecycle::Status;
use windrow_core::task::spec::{Shards, TaskSpec};
use windrow_engine::actors::runtime::context::Times;
use windrow_engine::ports::handling::handler::{
    Call, Handler, HandlerFactory, ItemReplies, ItemVerdict, OpenError, Reply, RunContext,
};
use windrow_engine::ports::sources::provision::{Provider, Provision, ProvisionError};
use windrow_engine::ports::tasks::store::{Actor, NewTask, TaskCommand, TaskView, Write};
use windrow_host::state_dir::StateDir;
use windrow_node::{Node, NodeOptions, Runtimes};
use windrow_sources::RangeSource;
use windrow_store::sql::Store;

pub struct Job {
    pub items: u64,
    pub batch: u32,
    pub concurrency: u32,
    /// Items between the lowest that isn't settled and the highest that may leave; without one, what the engine takes.
    pub window: Option<u32>,
    pub shards: u32,
    pub rate: RateLimit,
    pub checkpoint_interval: Duration,
    pub work: Work,
    /// Whether what items come to is kept.
    pub keeps_results: bool,
}

impl Job {
    pub fn new(work: Work, items: u64) -> Job {
        Job {
            items,
            batch: 1,
            concurrency: 1_000,
            window: None,
            shards: 1,
            rate: RateLimit::Unlimited,
            checkpoint_interval: Duration::from_secs(1),
            work,
            keeps_results: false,
        }
    }
}

/// What the handler does; the task's name says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Answers at once.
    Nothing,
    /// Sleeps 0–49 ms, uniform, as in the peers' benchmark.
    Sleep,
    /// Writes down when the pace let each item go.
    Record,
    /// Answers at once with 200 bytes, where they are kept.
    Answer,
}

/// How long the handler sleeps over an item. Unit: milliseconds, 0–49.
pub fn nap_of(index: ItemIndex) -> u64 {
    (index.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 50
}

/// 200 bytes of JSON as an API answers: names that come again, values that don't.
fn answer(index: ItemIndex) -> String {
    let noise = |salt: u64| {
        (index.0 ^ salt)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(23)
    };
    let start = format!(
        r#"{{"id":{},"status":"shipped","tracking":"{:016x}{:016x}","warehouse":"eu-central","weight":{}"#,
        index.0,
        noise(1),
        noise(2),
        noise(3) % 10_000
    );
    format!(r#"{start},"note":"{:x<1$}"}}"#, "", 200 - start.len() - 11)
}

/// Gate times. Unit: nanoseconds of the boot-time clock.
static GATE_TIMES: Mutex<Vec<u64>> = Mutex::new(Vec::new());

struct InProcess {
    work: Work,
    keeps_results: bool,
}

impl Handler for InProcess {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        if self.work == Work::Nothing {
            std::hint::black_box(&call.items);
            return Box::pin(std::future::ready(Reply::AllOk));
        }
        if self.work == Work::Record {
            GATE_TIMES
                .lock()
                .unwrap()
                .extend(call.items.iter().map(|_| call.gate_time.0));
        }
        if self.work == Work::Answer && self.keeps_results {
            let with = |(index, _)| {
                let output = Output::Json(answer(index).into());
                (index, ItemVerdict::SucceededWith(output))
            };
            let replies = ItemReplies {
                verdicts: call.items.iter().map(with).collect(),
                ..ItemReplies::default()
            };
            return Box::pin(std::future::ready(Reply::Items(Box::new(replies))));
        }
        if self.work != Work::Sleep {
            std::hint::black_box(&call.items);
            return Box::pin(std::future::ready(Reply::AllOk));
        }
        let index = call.items.iter().next().unwrap().0;
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(nap_of(index))).await;
            Reply::AllOk
        })
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        watch::channel(None).1
    }

    fn answers_at_once(&self) -> bool {
        true
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl HandlerFactory for InProcess {
    fn open(&self, context: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        let name = context.task_name.as_deref().unwrap_or_default();
        let works = [Work::Nothing, Work::Sleep, Work::Record, Work::Answer];
        let work = works
            .into_iter()
            .find(|work| name.starts_with(&format!("{work:?}")));
        Ok(Arc::new(InProcess {
            work: work.unwrap_or(Work::Nothing),
            keeps_results: context.keeps_results,
        }))
    }

    fn service(&self) -> Option<String> {
        None
    }
}

/// The handler that does nothing.
#[allow(dead_code, reason = "only the executor bench calls it itself")]
pub fn no_op() -> Arc<dyn Handler> {
    Arc::new(InProcess {
        work: Work::Nothing,
        keeps_results: false,
    })
}

struct Everything;

#[async_trait]
impl Provider for Everything {
    async fn provide(&self, task: &TaskView) -> Result<Provision, ProvisionError> {
        let source = Arc::new(RangeSource::new(task.total));
        Ok(Provision {
            handler: Arc::new(InProcess {
                work: Work::Nothing,
                keeps_results: false,
            }),
            source,
            limits: Vec::new(),
        })
    }
}

pub struct Engine {
    control: tokio::runtime::Runtime,
    node: Node,
    count: std::cell::Cell<u32>,
    directory: tempfile::TempDir,
    _runtimes: Arc<Runtimes>,
}

/// Nodes of this process: each has a name of its own.
static NODES: AtomicU32 = AtomicU32::new(0);

fn write() -> Write {
    Actor {
        name: "bench".into(),
        source: "cli",
        ..Actor::windrow(None)
    }
    .writes()
}

impl Engine {
    /// With a lane for each core.
    #[allow(dead_code, reason = "not every bench starts one like this")]
    pub fn start() -> Engine {
        Engine::over(Runtimes::new().unwrap())
    }

    /// With as many lanes as the runtimes have.
    pub fn over(runtimes: Runtimes) -> Engine {
        let control = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let directory = tempfile::tempdir().unwrap();
        let state = Arc::new(StateDir::lock(directory.path()).unwrap());
        let runtimes = Arc::new(runtimes);
        let node = control.block_on(async {
            let store = Arc::new(Store::open(&state.database()).await.unwrap());
            Node::start(NodeOptions {
                exclusive: true,
                name: format!("bench-{}", NODES.fetch_add(1, Ordering::Relaxed)),
                state,
                store,
                provider: Arc::new(Everything),
                ledger: Ledger::new(Capacity::Unlimited, Rate::per_second(1).unwrap()),
                times: Times::default(),
                runtimes: runtimes.clone(),
                only: None,
            })
            .await
            .unwrap()
        });
        Engine {
            control,
            node,
            count: std::cell::Cell::new(0),
            directory,
            _runtimes: runtimes,
        }
    }

    /// The gate times of the last recording job, in order.
    #[allow(dead_code, reason = "only the pace bench records")]
    pub fn gate_times(&self) -> Vec<u64> {
        let mut times = std::mem::take(&mut *GATE_TIMES.lock().unwrap());
        times.sort_unstable();
        times
    }

    /// Where its store is.
    #[allow(dead_code, reason = "only the results bench reads it from outside")]
    pub fn place(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// The size of its database, with what is still in the log. Unit: bytes.
    #[allow(dead_code, reason = "not every bench asks")]
    pub fn stored(&self) -> u64 {
        let files = std::fs::read_dir(self.directory.path()).unwrap();
        let database = |name: &str| name.starts_with("windrow.db");
        let bytes = files.filter_map(Result::ok).filter_map(|file| {
            let is_wanted = file.file_name().to_str().is_some_and(database);
            is_wanted.then(|| file.metadata().unwrap().len())
        });
        bytes.sum()
    }

    /// The checkpoints that its shards have written for a task: each is one row, written once.
    #[allow(dead_code, reason = "only the growth bench asks")]
    pub fn checkpoints(&self, task: TaskId) -> u64 {
        let path = format!("sqlite://{}", self.directory.path().join("windrow.db").display());
        self.control.block_on(async {
            let database = sea_orm::Database::connect(path).await.unwrap();
            let text = format!("SELECT SUM(ckpt_seq) FROM shard WHERE task_id = {}", task.0);
            let row = database
                .query_one_raw(Statement::from_string(DbBackend::Sqlite, text))
                .await;
            u64::try_from(row.unwrap().unwrap().try_get_by_index::<i64>(0).unwrap()).unwrap()
        })
    }

    /// Runs a job to its end; its task.
    pub fn run(&self, job: Job) -> TaskId {
        self.run_all(&[job])[0]
    }

    /// Runs jobs at the same time, each to its end; their tasks.
    pub fn run_all(&self, jobs: &[Job]) -> Vec<TaskId> {
        self.control.block_on(async {
            let mut tasks = Vec::new();
            for job in jobs {
                self.count.set(self.count.get() + 1);
                let name = format!("{:?}-{}", job.work, self.count.get());
                tasks.push(self.create(name, job).await.id);
            }
            let by = write();
            for task in &tasks {
                let now = self.node.clock().wall();
                let (tasks, start) = (self.node.tasks(), TaskCommand::Start);
                tasks.command(*task, &start, &by, now).await.unwrap();
            }
            self.node.wake();
            for (task, job) in tasks.iter().zip(jobs) {
                self.ended(*task, job).await;
            }
            tasks
        })
    }

    async fn ended(&self, task: TaskId, job: &Job) {
        loop {
            let view = self.node.tasks().get(task).await.unwrap().unwrap();
            assert_ne!(view.status, Status::Stopped, "{view:?}");
            if view.status == Status::Finished {
                return assert_eq!(view.counters.succeeded, job.items);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn create(&self, name: String, job: &Job) -> TaskView {
        let mut tuning = Config::default().task_defaults.tuning.clone();
        (tuning.rate, tuning.checkpoint_interval) = (job.rate, job.checkpoint_interval);
        if job.keeps_results {
            tuning.results = Results::Keep;
        }
        tuning.batch = NonZeroU32::new(job.batch).unwrap();
        if let Some(window) = job.window.and_then(NonZeroU32::new) {
            tuning.window = Auto::Fixed(window);
        }
        tuning.concurrency = Auto::Fixed(NonZeroU32::new(job.concurrency).unwrap());
        let now = self.node.clock().wall();
        let tasks = self.node.tasks();
        tasks.ensure_business("bench", &write(), now).await.unwrap();
        let new = NewTask {
            spec: TaskSpec {
                name: Some(name),
                shards: Shards(Auto::Fixed(NonZeroU32::new(job.shards).unwrap())),
                ..TaskSpec::default()
            },
            ..NewTask::of("bench", ItemCount(job.items), tuning)
        };
        tasks.create(&new, &write(), now).await.unwrap()
    }
}
