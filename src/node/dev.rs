//! `windrow dev`: a node, a sample business that it calls over HTTP, and a task of that business, in one process.
//!
//! - No file and no variable configures it, so that it begins everywhere in the same way; it listens to this machine only.
//! - The node takes no task before the address of the sample business is stored: in a directory that is used again, a
//!   task would call where nobody listens any more.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
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
use windrow_engine::ports::sources::resolver::SourceRequest;
use windrow_engine::ports::tasks::list::TaskFilter;
use windrow_engine::ports::tasks::store::{TaskView, Write};
use windrow_handlers::rust::InProcess;
use windrow_server::http::answer::sample;
use windrow_server::http::server::{Limits, Listener, Server};
use windrow_server::service::businesses::BusinessBody;
use windrow_server::service::tasks::create::{TaskPlan, TaskRequest};
use windrow_server::service::{Service, ServiceError};

/// Where it listens unless that is taken. (`http.listen` of `config.toml`.)
pub const PORT_DEFAULT: u16 = 7700;
/// The sample business.
pub const BUSINESS: &str = "hello";
/// By this path an address of a sample business is told from one that somebody gave the business later.
const BUSINESS_PATH: &str = "/sample-business";
/// The name of the node; a host's may be none.
const NODE: &str = "dev";

/// How it is made.
pub struct DevOptions {
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// Where to listen; none takes [`PORT_DEFAULT`], or a free one where that is taken.
    pub port: Option<u16>,
    /// What command handlers inherit.
    pub environment: Vec<(OsString, OsString)>,
    /// Where work runs.
    pub runtimes: Arc<Runtimes>,
    /// The task to make unless there is one that isn't over; none makes none.
    pub task: Option<SampleTask>,
    /// Who starts it, for the audit.
    pub write: Write,
}

/// A task of the sample business.
#[derive(Clone, Copy, Debug)]
pub struct SampleTask {
    /// How many items.
    pub items: ItemCount,
    /// How fast.
    pub rate: RateLimit,
}

/// It can't begin; nothing runs then.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    /// The node.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The sample business has no port.
    #[error("the sample business can't listen: {0}")]
    Listen(#[from] io::Error),
    /// The business or the task can't be made.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// The task to look at.
#[derive(Clone, Debug)]
pub struct SampleRun {
    /// As it was at the start.
    pub task: TaskView,
    /// Whether it was there before.
    pub goes_on: bool,
}

/// The node with what was put into it.
pub struct Dev {
    /// The node.
    pub serve: Serve,
    business: SampleBusiness,
    /// The task to look at; none if none was asked for.
    pub begun: Option<SampleRun>,
    /// Whether [`PORT_DEFAULT`] was taken, and another one was chosen.
    pub is_port_taken: bool,
}

impl Dev {
    /// Starts everything; the caller's runtime runs the actors.
    ///
    /// # Errors
    /// See [`DevError`]. What was begun is given back.
    pub async fn start(options: DevOptions) -> Result<Dev, DevError> {
        let (serve, is_port_taken) = serve(&options).await?;
        match furnish(&serve, &options).await {
            Ok((business, begun)) => Ok(Dev {
                serve,
                business,
                begun,
                is_port_taken,
            }),
            Err(error) => {
                if !serve.drain().await {
                    tracing::warn!("the node did not end in time");
                }
                Err(error)
            }
        }
    }

    /// Drains, looks at what came of it, and ends everything; says whether all ended in time.
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
    // Whatever rate is asked for fits.
    config.node.capacity_rate = RateLimit::Unlimited;
    config.node.run_tasks = false;
    config.http.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    config.auth.mode = AuthMode::Off;
    config
}

/// The node, and whether it had to take another port than the usual one.
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

/// Puts in what a fresh node lacks, and lets it work.
async fn furnish(
    serve: &Serve,
    options: &DevOptions,
) -> Result<(SampleBusiness, Option<SampleRun>), DevError> {
    let business = SampleBusiness::start(&options.runtimes).await?;
    let service = serve.service();
    introduce(service, &business.url(), &options.write).await?;
    let begun = match unfinished(service).await? {
        Some(task) => Some(SampleRun { task, goes_on: true }),
        None => match options.task {
            Some(wanted) => Some(SampleRun {
                task: make(service, wanted, &options.write).await?,
                goes_on: false,
            }),
            None => None,
        },
    };
    let mut config = (*service.config()).clone();
    config.node.run_tasks = true;
    serve.reload(&config).map_err(ServiceError::Internal)?;
    Ok((business, begun))
}

/// Registers the sample business, or tells where it is now. One that somebody has given another handler keeps that.
async fn introduce(service: &Service, url: &str, write: &Write) -> Result<(), ServiceError> {
    let known = match service.businesses.get(BUSINESS).await {
        Ok(known) => known,
        Err(ServiceError::NotFound { .. }) => {
            // It fails on purpose, which no budget shall punish.
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

/// The newest task of the sample business that isn't over.
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
    let page = service.tasks.list(&filter, None, 1).await?;
    Ok(page.tasks.into_iter().next().map(|picture| picture.task))
}

async fn make(service: &Service, wanted: SampleTask, write: &Write) -> Result<TaskView, ServiceError> {
    let tuning = TuningPatch {
        rate: Some(wanted.rate),
        ..TuningPatch::default()
    };
    let request = TaskRequest {
        business: BUSINESS.to_owned(),
        source: SourceRequest::Range { total: wanted.items },
        plan: TaskPlan {
            tuning,
            start: true,
            ..TaskPlan::default()
        },
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
        // The sender going away is the end as well.
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
            Ok(false) => tracing::debug!("connections of the sample business were cut off"),
            Err(error) => tracing::error!(%error, "the sample business ended by a panic"),
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
