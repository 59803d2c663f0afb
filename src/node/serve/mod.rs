//! `windrow serve`: the composition of a long-lived node. The state directory's lock, the store, the tree, the service
//! and the façade, begun in this order and ended in the reverse one.

mod compose;
mod error;
pub mod look;
mod secrets;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use self::compose::Ingredients;
pub use self::error::ServeError;
use super::bootstrap::{self, Bootstrap};
use super::min_level::MinLevel;
use super::{Node, Runtimes, StateDir, agreement, database};
use windrow_config::{AuthMode, Config};
use windrow_core::capacity::Capacity;
use windrow_core::settings::{Auto, RateLimit};
use windrow_engine::actors::runtime::context::ServingNow;
use windrow_server::http::metrics::watch;
use windrow_server::http::server::{self, Limits, Server};
use windrow_server::http::{App, Front, facade};
use windrow_server::service::{Service, stats};
use windrow_server::telemetry::LogControl;

/// Beside the drain, until the last actor has ended.
const DRAIN_MARGIN: Duration = Duration::from_secs(10);
/// How often it is looked whether the tree has ended by itself.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long a start waits until the node is ready, and how often it looks.
const READY_PATIENCE: Duration = Duration::from_secs(10);
const READY_LOOK_EVERY: Duration = Duration::from_millis(10);
/// The longest name of a node. (The session row's column.)
const NAME_MAX: usize = 64;

/// How a node is made.
pub struct ServeOptions {
    /// The checked configuration.
    pub config: Config,
    /// What command handlers inherit.
    pub environment: Vec<(OsString, OsString)>,
    /// Where work runs.
    pub runtimes: Arc<Runtimes>,
    /// The log of this process.
    pub log: Option<LogControl>,
}

/// A node that serves.
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
}

impl Serve {
    /// Starts it; the caller's runtime runs the actors.
    ///
    /// # Errors
    /// See [`ServeError`]. What was begun is given back.
    pub async fn start(options: ServeOptions) -> Result<Serve, ServeError> {
        let ServeOptions {
            config,
            environment,
            runtimes,
            log,
        } = options;
        // Whatever can be refused is refused before the first task is touched.
        look::refuse(&config)?;
        let name = name(&config)?;
        let tls = match (&config.http.tls_cert_file, &config.http.tls_key_file) {
            (Some(certificates), Some(key)) => Some(server::acceptor(certificates, key)?),
            _ => None,
        };
        let listener = listen(config.http.listen).await?;
        let address = listener.local_addr().map_err(|cause| ServeError::Listen {
            address: config.http.listen,
            cause,
        })?;
        let state = Arc::new(StateDir::lock(&config.node.data_dir)?);
        let store = Arc::new(database::open(&config).await?);
        agreement::agree(&*store, &config.cluster).await?;
        let min_level = MinLevel::new(config.data_log.min_level);
        let ingredients = Ingredients {
            config: &config,
            name: &name,
            environment,
            runtimes: runtimes.clone(),
            state: state.clone(),
            store,
            min_level: min_level.clone(),
            port: address.port(),
            address: advertised(&config, address, tls.is_some()),
        };
        let (node, parts) = compose::compose(ingredients).await?;
        secrets::check(&parts).await?;
        let limits = limits(&config);
        let front = Front::new(name, node.clock().now(), node.clock().wall(), &config).with_log(log);
        let (is_tls, front) = (tls.is_some(), Arc::new(front));
        let service = Arc::new(Service::new(parts, config));
        let bootstrap = match bootstrap::admin(&service, state.path()).await? {
            Bootstrap::NotNeeded => None,
            Bootstrap::Read(file) | Bootstrap::Made(file) => Some(file),
        };
        let (router, _) = facade(App {
            service: service.clone(),
            front: front.clone(),
        });
        let (stop, stopped) = oneshot::channel();
        // The sender going away is the end as well.
        let ending = async move { drop(stopped.await) };
        let watchers = watchers(
            &runtimes,
            App {
                service: service.clone(),
                front: front.clone(),
            },
        );
        let server = runtimes.work().spawn(
            Server {
                listener,
                tls,
                router,
                limits,
            }
            .serve(ending),
        );
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
        })
    }

    /// Where the façade is.
    pub fn url(&self) -> String {
        url(self.address, self.is_tls)
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.front.node
    }

    /// The file that holds the first administrator's token; none where tokens are not used.
    pub fn bootstrap_file(&self) -> Option<&std::path::Path> {
        self.bootstrap.as_deref()
    }

    /// What people can do to it, for who is in the same process.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.service.config()
    }

    /// The tree of actors, as people read it.
    pub fn tree(&self) -> String {
        self.node.tree().render("")
    }

    /// Takes over what may be changed of a configuration that was read anew; says what was and what needs a restart.
    ///
    /// # Errors
    /// When the log's filter can't be read: nothing is changed then.
    pub fn reload(&self, new: &Config) -> Result<(Vec<String>, Vec<String>), String> {
        let reload = self.service.config().reloaded(new);
        if reload.applied.iter().any(|key| key == "log.filter") {
            self.front.change_log(&reload.config.log.filter)?;
        }
        let (applied, ignored) = (reload.applied, reload.ignored);
        let (capacity, run_tasks) = (capacity(&reload.config), reload.config.node.run_tasks);
        let pools = reload.config.node.pools.clone();
        self.min_level.set(reload.config.data_log.min_level);
        self.service.reconfigure(reload.config);
        let supervisor = self.service.supervisor();
        supervisor.set_capacity(capacity);
        supervisor.set_serving(ServingNow {
            run_tasks: run_tasks && !self.front.is_drained(),
            pools: Some(pools),
        });
        Ok((applied, ignored))
    }

    /// Ends when the tree has ended without being asked, or the façade has.
    pub async fn failed(&self) {
        while !self.node.is_over() && !self.server.is_finished() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Whether the actors live: what the service manager is told.
    pub fn is_alive(&self) -> bool {
        !self.node.is_over()
    }

    /// Refuses changes, drains, then ends the façade; says whether all ended in time. Reads go on until the end.
    pub async fn drain(self) -> bool {
        self.drain_and(async |_| ()).await.0
    }

    /// The same, with a last look at what came of it once nothing moves any more.
    pub async fn drain_and<T>(self, look: impl AsyncFnOnce(&Service) -> T) -> (bool, T) {
        self.front.end();
        let patience = self.service.config().node.drain_timeout + DRAIN_MARGIN;
        let drained = self.service.supervisor().drain_now(patience).await;
        let seen = look(&self.service).await;
        drop(self.stop);
        let served = self.server.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the façade ended by a panic");
            false
        });
        if !served {
            tracing::warn!("connections were cut off");
        }
        self.watchers.iter().for_each(JoinHandle::abort);
        self.front.close();
        drop((self.service, self.front));
        self.node.close().await;
        (drained, seen)
    }
}

/// What clients may take of the façade.
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

/// What looks at the runs again and again: for metrics, and for the recent past of tasks.
fn watchers(runtimes: &Runtimes, app: App) -> [JoinHandle<()>; 2] {
    let samples = stats::watch(app.service.clone());
    [runtimes.work().spawn(watch(app)), runtimes.work().spawn(samples)]
}

/// Waits for the session's first heartbeat, so that who hears of the node finds it ready. A store that is slow delays the
/// news, not for ever: `/readyz` says what is missing.
async fn await_ready(service: &Service) {
    let ready = async {
        while !service.not_ready().await.is_empty() {
            tokio::time::sleep(READY_LOOK_EVERY).await;
        }
    };
    if tokio::time::timeout(READY_PATIENCE, ready).await.is_err() {
        tracing::warn!("the node is not ready yet; /readyz says why");
    }
}

/// The name of the node: the host's, unless one is given.
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

/// How other nodes reach this one.
fn advertised(config: &Config, address: SocketAddr, is_tls: bool) -> String {
    match &config.http.advertise {
        Auto::Fixed(address) => address.clone(),
        Auto::Auto => url(address, is_tls),
    }
}

fn url(address: SocketAddr, is_tls: bool) -> String {
    format!("{}://{address}", if is_tls { "https" } else { "http" })
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address)
        .await
        .map_err(|cause| ServeError::Listen { address, cause })
}

fn capacity(config: &Config) -> Capacity {
    match config.node.capacity_rate {
        RateLimit::Unlimited => Capacity::Unlimited,
        RateLimit::Limited(rate) => Capacity::Limited(rate),
    }
}
