//! `windrow dev`: a node, a sample business that it calls over HTTP, and tasks of that business, in one process.
//!
//! - No file or variable configures it, so it starts the same everywhere. It listens on loopback only.
//! - The node takes no task before the new address of the sample business is stored. In a reused directory a task
//!   would otherwise call an address where nobody listens any more.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Runtimes;
use super::serve::{Pages, Serve, ServeError, ServeOptions};
use windrow_config::{AuthMode, Config};
use windrow_core::business::HandlerSpec;
use windrow_core::ids::ItemCount;
use windrow_core::settings::table::TuningPatch;
use windrow_core::settings::{Auto, RateLimit};
use windrow_core::task::lifecycle::Status;
use windrow_core::task::spec::SpecPatch;
use windrow_core::task::{Canary, CanaryThen};
use windrow_engine::ports::sources::resolver::SourceRequest;
use windrow_engine::ports::tasks::list::TaskFilter;
use windrow_engine::ports::tasks::store::{TaskView, Write};
use windrow_handlers::rust::InProcess;
use windrow_server::http::answer::sample;
use windrow_server::http::server::{Limits, Listener, Server};
use windrow_server::service::businesses::BusinessBody;
use windrow_server::service::tasks::create::{TaskPlan, TaskRequest};
use windrow_server::service::{Service, ServiceError};

/// Default port, the same as in `http.listen` of `config.toml`.
pub const PORT_DEFAULT: u16 = 7700;
/// Slug of the sample business.
pub const BUSINESS: &str = "hello";
/// Name of the sample task that stops for a review. It never counts as the task that goes on.
const REVIEW: &str = "winter-sale";
/// Items of that task, and of its canary.
const REVIEW_ITEMS: (ItemCount, NonZeroU64) = (ItemCount(200), NonZeroU64::new(20).expect("not zero"));
/// Path that marks a URL as the sample business's own, as opposed to one set by the user later.
const BUSINESS_PATH: &str = "/sample-business";
/// Name of the node; a host name may be invalid.
const NODE: &str = "dev";

/// Options of `windrow dev`.
pub struct DevOptions {
    /// Directory for all data.
    pub data_dir: PathBuf,
    /// Port to listen on; `None` tries [`PORT_DEFAULT`], then any free one.
    pub port: Option<u16>,
    /// Environment inherited by command handlers.
    pub environment: Vec<(OsString, OsString)>,
    /// Runtimes for the node's work.
    pub runtimes: Arc<Runtimes>,
    /// Task to create unless an unfinished one exists; `None` creates none.
    pub task: Option<SampleTask>,
    /// Identity of the user, for the audit log.
    pub write: Write,
}

/// Settings of the sample task.
#[derive(Clone, Copy, Debug)]
pub struct SampleTask {
    /// Number of items in the task.
    pub items: ItemCount,
    /// Rate of the task.
    pub rate: RateLimit,
}

/// Error that keeps `windrow dev` from starting; nothing runs then.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    /// The node can't start.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The sample business can't listen on a port.
    #[error("the sample business can't listen: {0}")]
    Listen(#[from] io::Error),
    /// The business or the task can't be created.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// The sample task to watch.
#[derive(Clone, Debug)]
pub struct SampleRun {
    /// State of the task at the start.
    pub task: TaskView,
    /// True if the task existed before.
    pub goes_on: bool,
}

/// The running node with its sample business.
pub struct Dev {
    /// The serving node itself.
    pub serve: Serve,
    business: SampleBusiness,
    /// Task to watch; `None` if none was requested.
    pub begun: Option<SampleRun>,
    /// Task that waits, or will wait, for a person's review of its canary.
    pub review: Option<TaskView>,
    /// True if [`PORT_DEFAULT`] was taken and another port was chosen.
    pub is_port_taken: bool,
}

impl Dev {
    /// Starts everything; the caller's runtime runs the actors.
    ///
    /// # Errors
    /// See [`DevError`]. Everything started is shut down again.
    pub async fn start(options: DevOptions) -> Result<Dev, DevError> {
        let (serve, is_port_taken) = serve(&options).await?;
        match furnish(&serve, &options).await {
            Ok((business, begun, review)) => Ok(Dev {
                serve,
                business,
                begun,
                review,
                is_port_taken,
            }),
            Err(error) => {
                if !serve.drain().await {
                    tracing::warn!("node didn't end in time");
                }
                Err(error)
            }
        }
    }

    /// Drains, calls `look` on the final state, and ends everything. The bool is true if all of it ended in time.
    pub async fn drain_and<T>(self, look: impl AsyncFnOnce(&Service) -> T) -> (bool, T) {
        let outcome = self.serve.drain_and(look).await;
        self.business.end().await;
        outcome
    }
}

fn config(data_dir: PathBuf, port: u16) -> Config {
    let mut config = Config::default();
    config.node.id = Auto::Fixed(NODE.to_owned());
    config.node.data_dir = data_dir;
    // Any requested rate must fit.
    config.node.capacity_rate = RateLimit::Unlimited;
    config.node.run_tasks = false;
    config.http.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    config.auth.mode = AuthMode::Off;
    config
}

/// Starts the node. The bool is true if it had to use another port.
async fn serve(options: &DevOptions) -> Result<(Serve, bool), ServeError> {
    let start = |port| {
        Serve::start(ServeOptions {
            config: config(options.data_dir.clone(), port),
            environment: options.environment.clone(),
            in_process: InProcess::new(),
            runtimes: options.runtimes.clone(),
            log: None,
            pages: Pages::default(),
            begins_anew: false,
        })
    };
    match start(options.port.unwrap_or(PORT_DEFAULT)).await {
        Err(ServeError::Listen { cause, .. })
            if cause.kind() == ErrorKind::AddrInUse && options.port.is_none() =>
        {
            Ok((start(0).await?, true))
        }
        started => Ok((started?, false)),
    }
}

/// Creates what a new node lacks, then enables it to run tasks.
async fn furnish(
    serve: &Serve,
    options: &DevOptions,
) -> Result<(SampleBusiness, Option<SampleRun>, Option<TaskView>), DevError> {
    let business = SampleBusiness::start(&options.runtimes).await?;
    let service = serve.service();
    introduce(service, &business.url(), &options.write).await?;
    let begun = match unfinished(service).await? {
        Some(task) => Some(SampleRun { task, goes_on: true }),
        None => match options.task {
            Some(wanted) => Some(SampleRun {
                task: make(service, plan(wanted.rate), wanted.items, &options.write).await?,
                goes_on: false,
            }),
            None => None,
        },
    };
    let review = review(service, options).await?;
    let mut config = (*service.config()).clone();
    config.node.run_tasks = true;
    serve.reload(&config).map_err(ServiceError::Internal)?;
    Ok((business, begun, review.filter(|task| !task.status.is_terminal())))
}

/// Registers the sample business, or updates its address. If the user changed its handler, that is kept.
async fn introduce(service: &Service, url: &str, write: &Write) -> Result<(), ServiceError> {
    let known = match service.businesses.get(BUSINESS).await {
        Ok(known) => known,
        Err(ServiceError::NotFound { .. }) => {
            // The sample fails on purpose, which must not exhaust an error budget.
            let body = json!({ "name": BUSINESS, "display_name": "Sample of windrow dev", "url": url,
                "defaults": { "error_budget": "none" } });
            service
                .businesses
                .register(&BusinessBody::from_json(body)?, true, write)
                .await?;
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if known.archived_at.is_some() {
        service.businesses.archive(BUSINESS, false, write).await?;
    }
    if matches!(&known.spec.handler, HandlerSpec::Http(http) if http.url.ends_with(BUSINESS_PATH)) {
        service
            .businesses
            .edit(BUSINESS, &json!({ "url": url }), None, write)
            .await?;
    }
    Ok(())
}

/// Returns the latest unfinished task of the sample business, other than the one that stops for a review.
async fn unfinished(service: &Service) -> Result<Option<TaskView>, ServiceError> {
    let filter = TaskFilter {
        business: Some(BUSINESS.to_owned()),
        statuses: Status::ALL
            .iter()
            .copied()
            .filter(|status| !status.is_terminal())
            .collect(),
        ..TaskFilter::default()
    };
    let page = service.tasks.list(&filter, None, 2).await?;
    let mut tasks = page.tasks.into_iter().map(|picture| picture.task);
    Ok(tasks.find(|task| task.spec.name.as_deref() != Some(REVIEW)))
}

/// Returns the task that stops for a review; creates it once in a directory.
async fn review(service: &Service, options: &DevOptions) -> Result<Option<TaskView>, ServiceError> {
    let known = service.tasks.store.find(BUSINESS, REVIEW).await?;
    let Some(wanted) = options.task.filter(|_| known.is_none()) else {
        return Ok(known);
    };
    let (total, items) = REVIEW_ITEMS;
    let mut plan = plan(wanted.rate);
    plan.spec = SpecPatch {
        name: Some(Some(REVIEW.to_owned())),
        canary: Some(Some(Canary {
            items,
            then: CanaryThen::Stop,
        })),
        ..SpecPatch::default()
    };
    make(service, plan, total, &options.write).await.map(Some)
}

fn plan(rate: RateLimit) -> TaskPlan {
    TaskPlan {
        tuning: TuningPatch {
            rate: Some(rate),
            ..TuningPatch::default()
        },
        start: true,
        ..TaskPlan::default()
    }
}

async fn make(
    service: &Service,
    plan: TaskPlan,
    total: ItemCount,
    write: &Write,
) -> Result<TaskView, ServiceError> {
    let request = TaskRequest {
        business: BUSINESS.to_owned(),
        source: SourceRequest::Range { total },
        plan,
    };
    service.tasks.create(request, write).await
}

/// The sample business while it listens.
struct SampleBusiness {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<bool>,
}

impl SampleBusiness {
    async fn start(runtimes: &Runtimes) -> io::Result<SampleBusiness> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        // A dropped sender also ends it.
        let ending = async move { drop(stopped.await) };
        let server = Server {
            listener: Listener::Tcp(listener, None),
            router: sample::router(),
            limits: Limits::default(),
        };
        Ok(SampleBusiness {
            address,
            stop,
            server: runtimes.work().spawn(server.serve(ending)),
        })
    }

    fn url(&self) -> String {
        format!("http://{}{BUSINESS_PATH}", self.address)
    }

    async fn end(self) {
        drop(self.stop);
        match self.server.await {
            Ok(true) => {}
            Ok(false) => tracing::debug!("connections of the sample business cut off"),
            Err(error) => tracing::error!(%error, "sample business panicked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_one_that_serve_would_take() {
        let config = config(PathBuf::from("x"), 0);
        assert_eq!(config.faults(), []);
        assert!(config.http.listen.ip().is_loopback());
    }
}
