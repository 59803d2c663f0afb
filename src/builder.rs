//! Windrow in this process: a folder, threads, and the tree of actors.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Runtime;
use windrow_config::Config;
use windrow_core::capacity::Capacity;
use windrow_core::ids::TaskId;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::sources::provision::{Provider, Provision, ProvisionError};
use windrow_engine::ports::tasks::store::{Actor, TaskView, Write};
use windrow_node::sources::{IndexWatch, OpenedSource, Opening, open};
use windrow_node::{Chosen, Node, NodeOptions, Runtimes, StateDir, Store, Times};
use windrow_server::service::{self, JobStart};

use crate::{Error, Job, Report, Running};

/// The business that all jobs of a folder belong to.
const BUSINESS: &str = "run";
/// Whoever runs a job wants it to run, however long it rested.
const RESTORE_WINDOW: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// How Windrow is made.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    folder: PathBuf,
}

impl Builder {
    /// The folder in which progress is kept; made if it isn't there. Without this it is `windrow` where the program runs.
    pub fn store(mut self, folder: impl AsRef<Path>) -> Builder {
        self.folder = folder.as_ref().to_owned();
        self
    }

    /// Takes the folder and starts the actors, on threads of their own.
    ///
    /// # Errors
    /// When the folder can't be used, or another program holds it.
    pub async fn build(self) -> Result<Windrow, Error> {
        let locked = StateDir::lock(&self.folder);
        let state = Arc::new(locked.map_err(|cause| Error::Folder {
            folder: self.folder.clone(),
            cause: Box::new(cause),
        })?);
        let store = Arc::new(Store::open(&state.database()).await?);
        let (threads, jobs, chosen) = (Threads::new()?, Arc::new(Jobs::default()), Chosen::default());
        let options = NodeOptions {
            name: name(),
            state: state.clone(),
            store: store.clone(),
            provider: jobs.clone(),
            capacity: Capacity::Unlimited,
            unlimited_reserves: Config::default().node.unlimited_reserves,
            times: Times {
                restore_window: RESTORE_WINDOW,
                first_contact: None,
                ..Times::default()
            },
            runtimes: threads.work.clone().ok_or(Error::Ended)?,
            exclusive: true,
            only: Some(chosen.clone()),
        };
        let node = threads.start(options).await?;
        Ok(Windrow {
            node,
            state,
            store,
            jobs,
            chosen,
            _threads: threads,
        })
    }
}

/// Runs jobs in this process. [Close](Windrow::close) it at the end: what is dropped instead is cut off, which costs
/// nothing but repeats.
pub struct Windrow {
    node: Node,
    state: Arc<StateDir>,
    store: Arc<Store>,
    jobs: Arc<Jobs>,
    chosen: Chosen,
    /// The last, so that it is dropped after what runs on it.
    _threads: Threads,
}

impl fmt::Debug for Windrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Windrow")
            .field("folder", &self.state.path())
            .finish_non_exhaustive()
    }
}

impl Windrow {
    /// Begins to make one.
    pub fn builder() -> Builder {
        Builder {
            folder: PathBuf::from("windrow"),
        }
    }

    /// Runs a job to its end, or goes on with it; several may run at a time.
    ///
    /// # Errors
    /// When it can't be begun, or the store can't be read any more. Items that fail are no error: see [`Report`].
    pub async fn run(&self, job: Job) -> Result<Report, Error> {
        self.start(job).await?.wait().await
    }

    /// Begins a job, or goes on with it, and says how it comes along.
    ///
    /// # Errors
    /// When it can't be begun.
    pub async fn start(&self, mut job: Job) -> Result<Running<'_>, Error> {
        let node = &self.node;
        let tuning = job.tuning()?;
        let make = job.handler.take().ok_or(Error::NoHandler)?;
        let opened = self.open(&job, node.clock()).await?;
        let wanted = service::Job {
            business: BUSINESS.to_owned(),
            name: job.name,
            source: opened.spec.to_text(),
            meaning: opened.meaning,
            total: opened.source.total(),
            skip_first: job.skip_first,
            tuning,
        };
        let (actor, now) = (actor(), node.clock().wall());
        let (JobStart::New(task) | JobStart::Resumed(task) | JobStart::Ended(task)) =
            service::begin(&*self.store, &wanted, false, &actor, now).await?;
        let handler = make(node.clock().clone());
        self.jobs.provide(
            task.id,
            Provision {
                handler,
                source: opened.source,
                limits: Vec::new(),
            },
        );
        self.chosen.add(task.id);
        node.wake();
        // Its last process died while it was stopping; it has to be stopped before it can be started.
        let starts_again = AtomicBool::new(task.status == Status::Stopping);
        Ok(Running {
            node,
            store: self.store.clone(),
            task: task.id,
            starts_again,
        })
    }

    async fn open(&self, job: &Job, clock: &Arc<dyn Clock>) -> Result<OpenedSource, Error> {
        let opening = Opening {
            store: &*self.store,
            spool: &self.state.spool(),
            watch: IndexWatch::default(),
            reuse: true,
            now: clock.wall(),
        };
        open(&job.items, &opening)
            .await
            .map_err(|why| Error::Items(Box::new(why)))
    }

    /// Ends: calls under way end first, then progress is saved and the folder is free for others.
    pub async fn close(self) {
        self.node.drain().await;
    }
}

/// The threads of its own on which a Windrow's actors and work run: they don't depend on the runtime of the caller. Where
/// this is dropped they are given up, since a runtime can't be awaited where others run.
struct Threads {
    actors: Option<Runtime>,
    work: Option<Arc<Runtimes>>,
}

impl Threads {
    fn new() -> std::io::Result<Threads> {
        let actors = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("windrow-actors")
            .enable_all()
            .build()?;
        Ok(Threads {
            actors: Some(actors),
            work: Some(Arc::new(Runtimes::new()?)),
        })
    }

    async fn start(&self, options: NodeOptions) -> Result<Node, Error> {
        let Some(actors) = &self.actors else {
            return Err(Error::Ended);
        };
        let started = actors.spawn(Node::start(options)).await;
        Ok(started.map_err(|_| Error::Ended)??)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(actors) = self.actors.take() {
            actors.shutdown_background();
        }
        if let Some(work) = self.work.take().and_then(Arc::into_inner) {
            work.shut_down(Duration::ZERO);
        }
    }
}

/// A name that no other Windrow of this process has.
fn name() -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    match MADE.fetch_add(1, Ordering::Relaxed) {
        0 => "run".to_owned(),
        before => format!("run-{}", before + 1),
    }
}

/// Whoever runs a job, for the audit.
pub(crate) fn actor() -> Write {
    Actor {
        name: "program".to_owned(),
        source: "cli",
        reason: None,
        request_id: None,
    }
    .writes()
}

/// The handlers and items of the jobs that were begun here.
#[derive(Default)]
struct Jobs(Mutex<HashMap<TaskId, Provision>>);

impl Jobs {
    fn provide(&self, task: TaskId, provision: Provision) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(task, provision);
    }
}

#[async_trait]
impl Provider for Jobs {
    async fn provide(&self, task: &TaskView) -> Result<Provision, ProvisionError> {
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let none = || ProvisionError::Unavailable("nobody has begun it in this process".to_owned());
        jobs.get(&task.id).cloned().ok_or_else(none)
    }
}
