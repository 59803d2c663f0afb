//! `windrow serve`: composition of a long-lived node. Starts the state directory's lock, the store, the tree, the
//! service and the API server in this order, and ends them in reverse.

mod compose;
mod error;
pub mod look;
mod secrets;
mod starting;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use self::compose::Base;
pub use self::error::ServeError;
use self::starting::Starting;
use super::bootstrap;
use super::min_level::MinLevel;
use super::traces::Tracing;
use super::{Node, Runtimes};
use windrow_config::{AuthMode, Config, Fault, Origin};
use windrow_core::capacity::Capacity;
use windrow_core::settings::Auto;
use windrow_engine::actors::runtime::context::ServingNow;
pub use windrow_handlers::rust::InProcess;
pub use windrow_server::http::dashboard::Pages;
use windrow_server::http::metrics::watch;
use windrow_server::http::schedules::maker::Maker;
use windrow_server::http::server::{self, BadTls, Limits, Listener, Server, TlsAcceptor};
use windrow_server::http::{App, Front, facade};
use windrow_server::service::{Service, stats};
use windrow_server::telemetry::{Filter, LogControl};

/// Time beyond the drain timeout for the last actor to end.
const DRAIN_MARGIN: Duration = Duration::from_secs(10);
/// Interval for checking if the tree has ended on its own.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Maximum time that a start waits for readiness. Below, the interval of its checks.
const READY_PATIENCE: Duration = Duration::from_secs(10);
const READY_LOOK_EVERY: Duration = Duration::from_millis(10);
/// Maximum length of a node's name, that of the session table's column.
const NAME_MAX: usize = 64;

/// Options of a serving node.
pub struct ServeOptions {
    /// Configuration that was already checked.
    pub config: Config,
    /// Environment inherited by command handlers.
    pub environment: Vec<(OsString, OsString)>,
    /// Handlers of the program that embeds the node.
    pub in_process: InProcess,
    /// Runtimes for the node's work.
    pub runtimes: Arc<Runtimes>,
    /// Control of this process's log.
    pub log: Option<LogControl>,
    /// Files of the dashboard.
    pub pages: Pages,
    /// True to start with an empty database even if an earlier one was lost.
    pub begins_anew: bool,
}

/// A serving node with its API server.
pub struct Serve {
    node: Node,
    service: Arc<Service>,
    front: Arc<Front>,
    address: SocketAddr,
    is_tls: bool,
    bootstrap: Option<PathBuf>,
    min_level: MinLevel,
    stop: oneshot::Sender<()>,
    server: JoinHandle<bool>,
    watchers: [JoinHandle<()>; 2],
    tracing: Tracing,
}

impl Serve {
    /// Starts the node; the caller's runtime runs the actors.
    ///
    /// # Errors
    /// See [`ServeError`]. Everything started is shut down again.
    pub async fn start(options: ServeOptions) -> Result<Serve, ServeError> {
        let (config, runtimes) = (&options.config, &options.runtimes);
        // Refuse everything that can be refused before the first task is touched.
        look::refuse(config)?;
        let tls = acceptor(config)?;
        let listener = listen(config.http.listen).await?;
        let is_tls = tls.is_some();
        let starting = begin(&listener, tls.clone(), (config, runtimes))?;
        let base = Base::of(&options, &listener, is_tls).await?;
        let (address, min_level, state) = (base.address, base.min_level.clone(), base.state.clone());
        let tracing = base.tracing.clone();
        let (node, parts) = compose::compose(base).await?;
        secrets::check(&parts).await?;
        let front = Front::new(name(config)?, node.clock().now(), node.clock().wall(), config);
        let limits = limits(config);
        let service = Arc::new(Service::new(parts, options.config));
        node.fire_with(Arc::new(Maker::new(Arc::downgrade(&service))));
        let bootstrap = bootstrap::admin(&service, state.path()).await?;
        let front = front.with_log(options.log).with_pages(options.pages);
        let front = Arc::new(front.with_token_file(bootstrap.as_deref()));
        let (stop, ending) = ending();
        let app = App {
            service: service.clone(),
            front: front.clone(),
        };
        let watchers = watchers(runtimes, app.clone());
        starting.end().await;
        let server = Server {
            listener: Listener::Tcp(listener, tls),
            router: facade(app).0,
            limits,
        };
        let server = runtimes.front().spawn(server.serve(ending));
        node.wake();
        await_ready(&service).await;
        Ok(Serve {
            node,
            service,
            front,
            address,
            is_tls,
            bootstrap,
            min_level,
            stop,
            server,
            watchers,
            tracing,
        })
    }

    /// Returns the URL of the API server.
    pub fn url(&self) -> String {
        url(self.address, self.is_tls)
    }

    /// Returns the node's name.
    pub fn name(&self) -> &str {
        &self.front.node
    }

    /// Returns the file with the first administrator's token; `None` if tokens are not used.
    pub fn bootstrap_file(&self) -> Option<&std::path::Path> {
        self.bootstrap.as_deref()
    }

    /// Returns the service, for callers in the same process.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.service.config()
    }

    /// Returns the actor tree as text.
    pub fn tree(&self) -> String {
        self.node.tree().render("")
    }

    /// Applies the reloadable values of a newly read configuration. Returns the applied keys and those that need a
    /// restart.
    ///
    /// # Errors
    /// Fails if the log filter is invalid; nothing is changed then.
    pub fn reload(&self, new: &Config) -> Result<(Vec<String>, Vec<String>), String> {
        let reload = self.service.config().reloaded(new);
        if reload.applied.iter().any(|key| key == "log.filter") {
            self.front.change_log(&reload.config.log.filter)?;
        }
        let (applied, ignored) = (reload.applied, reload.ignored);
        let (capacity, run_tasks) = (capacity(&reload.config), reload.config.node.run_tasks);
        let pools = reload.config.node.pools.clone();
        self.min_level.set(reload.config.data_log.min_level);
        self.service.node.reconfigure(reload.config);
        let supervisor = self.service.supervisor();
        supervisor.set_capacity(capacity);
        supervisor.set_serving(ServingNow {
            run_tasks: run_tasks && !self.front.is_drained(),
            pools: Some(pools),
        });
        Ok((applied, ignored))
    }

    /// Completes when the tree or the API server has ended unexpectedly.
    pub async fn failed(&self) {
        while !self.node.is_over() && !self.server.is_finished() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// True while the actors are alive, as reported to the service manager.
    pub fn is_alive(&self) -> bool {
        !self.node.is_over()
    }

    /// Refuses changes, drains, then ends the API server, which serves reads until the end. True if all of it ended
    /// in time.
    pub async fn drain(self) -> bool {
        self.drain_and(async |_| ()).await.0
    }

    /// Same as `drain`, and calls `look` on the final state once nothing moves any more.
    pub async fn drain_and<T>(self, look: impl AsyncFnOnce(&Service) -> T) -> (bool, T) {
        self.front.end();
        let patience = self.service.config().node.drain_timeout + DRAIN_MARGIN;
        let drained = self.service.supervisor().drain_now(patience).await;
        let seen = look(&self.service).await;
        drop(self.stop);
        let served = self.server.await.unwrap_or_else(|error| {
            tracing::error!(%error, "API server panicked");
            false
        });
        if !served {
            tracing::warn!("connections cut off");
        }
        self.watchers.iter().for_each(JoinHandle::abort);
        self.front.close();
        drop((self.service, self.front));
        self.node.close().await;
        self.tracing.end().await;
        (drained, seen)
    }
}

/// Returns the limits on clients of the API server.
fn limits(config: &Config) -> Limits {
    let (http, usual) = (&config.http, Limits::default());
    let most = http.max_connections.get();
    let per_peer = match http.max_connections_per_peer {
        Auto::Auto => most.div_ceil(4),
        Auto::Fixed(share) => share.get(),
    };
    let proxies = match config.auth.mode {
        AuthMode::Proxy => config.auth.proxy_trust.clone(),
        AuthMode::Token | AuthMode::Off => Vec::new(),
    };
    let end_patience = config.node.drain_timeout.min(usual.end_patience);
    Limits {
        connections: most,
        per_peer,
        proxies,
        end_patience,
        ..usual
    }
}

/// Returns a sender and the end that it announces, also when it is dropped.
fn ending() -> (oneshot::Sender<()>, impl Future<Output = ()>) {
    let (stop, stopped) = oneshot::channel();
    (stop, async move { drop(stopped.await) })
}

/// Starts the periodic samplers of runs, for metrics and for the recent statistics of tasks.
fn watchers(runtimes: &Runtimes, app: App) -> [JoinHandle<()>; 2] {
    let samples = stats::watch(app.service.stats.clone());
    [runtimes.work().spawn(watch(app)), runtimes.work().spawn(samples)]
}

/// Waits for the session's first heartbeat, so that the node is ready when its start is reported. The wait is limited
/// if the store is slow; `/readyz` says what is missing.
async fn await_ready(service: &Service) {
    let ready = async {
        while !service.health.not_ready().await.is_empty() {
            tokio::time::sleep(READY_LOOK_EVERY).await;
        }
    };
    if tokio::time::timeout(READY_PATIENCE, ready).await.is_err() {
        tracing::warn!("node not ready yet; see /readyz");
    }
}

/// Returns the node's name: the configured one, or the host name.
fn name(config: &Config) -> Result<String, ServeError> {
    let name = match &config.node.id {
        Auto::Fixed(name) => name.clone(),
        Auto::Auto => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_sound = !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_plain);
    if is_sound {
        Ok(name)
    } else {
        Err(ServeError::Name(name))
    }
}

fn url(address: SocketAddr, is_tls: bool) -> String {
    format!("{}://{address}", if is_tls { "https" } else { "http" })
}

/// Returns all faults of the configuration itself, independent of this machine.
pub fn faults(config: &Config) -> Vec<Fault> {
    let mut faults = config.faults();
    if let Err(error) = config.log.filter.parse::<Filter>() {
        faults.push(Fault {
            key: "log.filter".to_owned(),
            origin: Origin::Default,
            what: format!("can't be parsed: {error}"),
            try_: "\"info\", or levels by module: \"info,windrow_engine=debug\"".to_owned(),
        });
    }
    faults
}

/// Returns the API server's TLS acceptor if a certificate is configured.
fn acceptor(config: &Config) -> Result<Option<TlsAcceptor>, BadTls> {
    match (&config.http.tls_cert_file, &config.http.tls_key_file) {
        (Some(certificates), Some(key)) => server::acceptor(certificates, key).map(Some),
        _ => Ok(None),
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address)
        .await
        .map_err(|cause| ServeError::Listen { address, cause })
}

/// Starts the server that responds on the listener until the node serves.
fn begin(
    listener: &TcpListener,
    tls: Option<TlsAcceptor>,
    of: (&Config, &Runtimes),
) -> Result<Starting, ServeError> {
    let address = of.0.http.listen;
    Starting::begin(listener, tls, of).map_err(|cause| ServeError::Listen { address, cause })
}

fn capacity(config: &Config) -> Capacity {
    let most = config.node.capacity_rate.most();
    most.map_or(Capacity::Unlimited, Capacity::Limited)
}
