//! Windrow inside a program: a state folder, threads, and the actor tree.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Runtime;
use windrow_config::Config;
use windrow_core::meter::metering::Metering;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::sources::provision::Provision;
use windrow_engine::ports::tasks::store::{Actor, Write};
use windrow_node::job_node::{JobNode, JobNodeOptions};
use windrow_node::jobs::BUSINESS;
use windrow_node::sources::{Expansion, IndexWatch, OpenedSource, Opening, open, open_rows};
use windrow_node::{Runtimes, StateDir, Store};
use windrow_server::service::{self, JobStart};

use crate::job::Items;
use crate::{Error, Job, NodeBuilder, Report, Running};

/// Builder for [`Windrow`], an instance in this process.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    folder: Option<PathBuf>,
}

/// Default folder for progress.
pub(crate) const FOLDER_DEFAULT: &str = "windrow";

impl Builder {
    /// Sets the folder for progress, which is created if missing. By default it is `windrow` in the working
    /// directory.
    pub fn store(mut self, folder: impl AsRef<Path>) -> Builder {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Builds a node instead, with an HTTP API, registered businesses and your own handlers.
    pub fn node(self) -> NodeBuilder {
        NodeBuilder::of(self.folder)
    }

    /// Locks the folder and starts the actors on their own threads.
    ///
    /// # Errors
    /// Fails if the folder can't be used or another program holds it.
    pub async fn build(self) -> Result<Windrow, Error> {
        let folder = self.folder.unwrap_or_else(|| FOLDER_DEFAULT.into());
        let state = StateDir::lock(&folder).map_err(|cause| Error::Folder {
            folder,
            cause: Box::new(cause),
        })?;
        let state = Arc::new(state);
        let store = Arc::new(Store::open(&state.database()).await?);
        let threads = Threads::new()?;
        let options = JobNodeOptions {
            name: name(),
            config: Config::default(),
            state: state.clone(),
            store: store.clone(),
            runtimes: threads.runtimes()?,
            user: actor().actor.name,
            first_contact: None,
        };
        let node = threads.run(JobNode::start(options)).await??;
        Ok(Windrow {
            node,
            state,
            store,
            _threads: threads,
        })
    }
}

/// Runs jobs in this process. [Close](Windrow::close) it at the end; dropping it cuts calls off, which costs nothing
/// but repeats.
pub struct Windrow {
    node: JobNode,
    state: Arc<StateDir>,
    store: Arc<Store>,
    /// Last field, so that it is dropped after everything that runs on it.
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
    /// Creates a builder for an instance.
    pub fn builder() -> Builder {
        Builder { folder: None }
    }

    /// Runs a job to its end, or resumes it; several may run at a time.
    ///
    /// # Errors
    /// Fails if the job can't be started or the store can't be read any more. Failed items are not an error: see
    /// [`Report`].
    pub async fn run(&self, job: Job) -> Result<Report, Error> {
        self.start(job).await?.wait().await
    }

    /// Starts a job, or resumes it, and returns a handle to follow it.
    ///
    /// # Errors
    /// Fails if the job can't be started.
    pub async fn start(&self, mut job: Job) -> Result<Running<'_>, Error> {
        let node = self.node.node();
        let tuning = job.tuning()?;
        let handler = job.handler.take().ok_or(Error::NoHandler)?;
        let opened = self.open(job.items, node.clock()).await?;
        let wanted = service::Job {
            business: BUSINESS.to_owned(),
            name: job.name,
            source: opened.spec.to_text(),
            meaning: opened.meaning,
            total: opened.source.total(),
            skip_first: job.skip_first,
            tuning,
            metering: Metering::default(),
            labels: BTreeMap::new(),
            parent: None,
        };
        let (actor, now) = (actor(), node.clock().wall());
        let (JobStart::New(task) | JobStart::Resumed(task) | JobStart::Ended(task)) =
            service::begin(&*self.store, &wanted, false, &actor, now).await?;
        let provision = Provision {
            handler,
            source: opened.source,
            limits: Vec::new(),
        };
        self.node.jobs().add(&task, provision);
        node.wake();
        // The last process died while stopping the job, so it must be stopped before it can be started.
        let starts_again = AtomicBool::new(task.status == Status::Stopping);
        Ok(Running {
            node,
            store: self.store.clone(),
            task: task.id,
            starts_again,
        })
    }

    async fn open(&self, items: Items, clock: &Arc<dyn Clock>) -> Result<OpenedSource, Error> {
        let opening = Opening {
            store: &*self.store,
            spool: &self.state.spool(),
            watch: IndexWatch::default(),
            reuse: true,
            expansion: Expansion::default(),
            now: clock.wall(),
        };
        let opened = match items {
            Items::Spec(spec) => open(&spec, &opening).await,
            Items::Rows(rows) => open_rows(rows, &opening).await,
        };
        opened.map_err(|why| Error::Items(Box::new(why)))
    }

    /// Finishes the calls in flight, saves the progress, and releases the folder.
    pub async fn close(self) {
        self.node.drain().await;
    }
}

/// Threads for the actors and work of an instance, independent of the caller's runtime. Dropping it abandons them,
/// since a runtime can't be awaited inside another one.
pub(crate) struct Threads {
    actors: Option<Runtime>,
    work: Option<Arc<Runtimes>>,
}

impl Threads {
    pub(crate) fn new() -> std::io::Result<Threads> {
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

    pub(crate) fn runtimes(&self) -> Result<Arc<Runtimes>, Error> {
        self.work.clone().ok_or(Error::Ended)
    }

    /// Runs a future on the actors' runtime.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Error> {
        let actors = self.actors.as_ref().ok_or(Error::Ended)?;
        actors.spawn(work).await.map_err(|_| Error::Ended)
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

/// Returns a name that is unique among the instances of this process.
fn name() -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    match MADE.fetch_add(1, Ordering::Relaxed) {
        0 => "run".to_owned(),
        before => format!("run-{}", before + 1),
    }
}

/// Returns the identity recorded in the audit log for jobs of a program.
pub(crate) fn actor() -> Write {
    Actor {
        name: "program".to_owned(),
        source: "cli",
        ..Actor::windrow(None)
    }
    .writes()
}
