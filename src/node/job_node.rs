//! Node for a directory that runs the jobs started by this process, with its API server.
//!
//! The API is reachable from this process, from other terminals of the same user by a socket in the directory, and
//! from one browser by a port. All callers count as that user, without a token.

use std::fs::{self, File, Permissions};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::DuplexStream;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::jobs::Jobs;
use crate::provider::{HookClient, KeyVault, Transports};
use crate::sources::{Fetcher, Guard, Resolver, StoredSources, open_stored, stored_sources};
use crate::{Node, NodeOptions, Runtimes, StartError, StateDir, Store, SystemClock};
use windrow_config::{AuthMode, Config};
use windrow_core::business::access::Role;
use windrow_core::ids::WallMs;
use windrow_core::settings::Auto;
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::HandlerFactory;
use windrow_engine::ports::ownership::peers::{Peer, PeerReply, Peers, Question, Unreachable};
use windrow_engine::ports::sources::provision::{BusinessHandlers, ProvisionError, TaskItems};
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::tasks::store::TaskView;
use windrow_net::Outbound;
use windrow_net::peers::PeerKey;
use windrow_server::http::jobs::Token;
use windrow_server::http::server::{Limits, Listener, Server};
use windrow_server::http::{App, Front, Router, facade, jobs};
use windrow_server::service::access::Everybody;
use windrow_server::service::cluster::ClusterParts;
use windrow_server::service::{Parts, Service, stats};

/// Name of the socket in the state directory.
const SOCKET: &str = "control.sock";
/// Maximum length of a socket path on every system, in bytes (107 on Linux, 103 elsewhere).
const ADDRESS_BYTES_MAX: usize = 100;
/// Buffer per direction of an in-process connection, in bytes.
const WIRE_BYTES: usize = 64 << 10;
/// Maximum number of in-process connections waiting to be accepted.
const WAITING_MAX: usize = 16;
/// Time for requests to finish after the node has ended; longer ones are cut off.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// Options of a job node.
pub struct JobNodeOptions {
    /// Name of the node, the root of every actor's path.
    pub name: String,
    /// Configuration of the node.
    pub config: Config,
    /// State directory held by this process.
    pub state: Arc<StateDir>,
    /// Store in that directory.
    pub store: Arc<Store>,
    /// Threads for jobs and requests.
    pub runtimes: Arc<Runtimes>,
    /// User name recorded for all callers in the audit log.
    pub user: String,
    /// Time to keep trying a handler that was never reached; `None` doesn't wait for it.
    pub first_contact: Option<Duration>,
}

/// Node that runs the jobs of this process.
pub struct JobNode {
    node: Node,
    jobs: Arc<Jobs>,
    app: App,
    state: Arc<StateDir>,
    front: Handle,
    wires: mpsc::Sender<DuplexStream>,
    samples: JoinHandle<()>,
    facade: Arc<OnceLock<Router>>,
    servers: Vec<(oneshot::Sender<()>, JoinHandle<bool>)>,
    socket: Option<SocketFile>,
}

/// Socket file, removed on drop.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::debug!(%error, path = %self.0.display(), "socket file not removed");
        }
    }
}

impl JobNode {
    /// Starts the node. It runs the jobs that are added, and serves this process.
    ///
    /// # Errors
    /// Fails if the store can't be read or the actors don't start.
    pub async fn start(options: JobNodeOptions) -> Result<JobNode, StartError> {
        let (state, runtimes) = (options.state.clone(), options.runtimes.clone());
        let (jobs, began) = (Arc::new(Jobs::default()), SystemClock::new().wall());
        let mut config = options.config.clone();
        let mut made = NodeOptions::of_jobs(
            &config,
            state.clone(),
            options.store.clone(),
            jobs.clone(),
            runtimes.clone(),
        );
        made.name.clone_from(&options.name);
        made.times.first_contact = options.first_contact;
        let node = Node::start(made).await?;
        config.auth.mode = AuthMode::Off;
        config.node.id = Auto::Fixed(options.name.clone());
        let shown = Front::new(&options.name, node.clock().now(), node.clock().wall(), &config);
        let app = App {
            service: Arc::new(Service::new(parts(&node, options, jobs.clone(), began), config)),
            front: Arc::new(shown),
        };
        let samples = runtimes.work().spawn(stats::watch(app.service.stats.clone()));
        let (wires, coming) = mpsc::channel(WAITING_MAX);
        let mut made = JobNode {
            node,
            jobs,
            app,
            state,
            front: runtimes.front().clone(),
            wires,
            samples,
            facade: Arc::default(),
            servers: Vec::new(),
            socket: None,
        };
        let router = made.router();
        made.serve(Listener::Memory(coming), router);
        Ok(made)
    }

    /// Returns the node itself.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the service, for callers in the same process.
    pub fn service(&self) -> &Service {
        &self.app.service
    }

    /// Returns the jobs that run here.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Also serves other terminals. Replaces a socket left by a `kill -9`, which is safe because the directory is
    /// held.
    ///
    /// # Errors
    /// Fails if the socket can't be created, for example on a file system without sockets.
    pub fn listen(&mut self) -> io::Result<()> {
        let path = self.state.path().join(SOCKET);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(Address::of(self.state.path())?.path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        self.socket = Some(SocketFile(path));
        let router = self.router();
        self.serve(Listener::Unix(listener), router);
        Ok(())
    }

    /// Returns a way to connect from this process.
    pub fn door(&self) -> Door {
        Door(self.wires.clone())
    }

    /// Serves one browser of this machine on a free port. Returns the address, and the query that grants access.
    ///
    /// # Errors
    /// Fails if there is no free port or the system has no random numbers.
    pub async fn page(&mut self) -> io::Result<(String, String)> {
        let token = Token::random()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = format!("http://{}", listener.local_addr()?);
        let query = token.query();
        let router = jobs::for_one_browser(self.router(), token);
        self.serve(Listener::Tcp(listener, None), router);
        Ok((address, query))
    }

    /// Returns the router for every listener. The API is built on the first request: most jobs get none, and building
    /// its document takes longer than a short job.
    fn router(&self) -> Router {
        let (app, jobs, made) = (self.app.clone(), self.jobs.clone(), self.facade.clone());
        jobs::router(
            move || jobs.begun(),
            move || made.get_or_init(|| facade(app.clone()).0).clone(),
        )
    }

    fn serve(&mut self, listener: Listener, router: Router) {
        let server = Server {
            listener,
            router,
            limits: Limits {
                end_patience: END_PATIENCE,
                ..Limits::default()
            },
        };
        let (stop, stopped) = oneshot::channel();
        // A dropped sender also ends it.
        let ending = async move { drop(stopped.await) };
        self.servers.push((stop, self.front.spawn(server.serve(ending))));
    }

    /// Ends the node: first the calls in flight, then the event streams of followers. True if all of it ended in
    /// time. Dropping the node cuts everything off.
    pub async fn drain(self) -> bool {
        let drained = self.node.drain().await;
        self.app.front.end();
        self.samples.abort();
        drop(self.socket);
        for (stop, server) in self.servers {
            drop(stop);
            match server.await {
                Ok(true) => {}
                Ok(false) => tracing::debug!("connections of other terminals cut off"),
                Err(error) => tracing::error!(%error, "API server of the job panicked"),
            }
        }
        self.app.front.close();
        drained
    }
}

/// In-process connection to the API server.
#[derive(Clone, Debug)]
pub struct Door(mpsc::Sender<DuplexStream>);

impl Door {
    /// Opens a connection.
    ///
    /// # Errors
    /// Fails if the API server has ended.
    pub async fn connect(&self) -> io::Result<DuplexStream> {
        let (own, others) = tokio::io::duplex(WIRE_BYTES);
        let sent = self.0.send(others).await;
        sent.map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused))?;
        Ok(own)
    }
}

/// Address of the node that holds a directory.
#[derive(Debug)]
pub struct Address {
    path: PathBuf,
    /// Kept open while the address is used.
    _directory: Option<File>,
}

impl Address {
    /// Returns the socket's own path, or a shorter one through the open directory if the path is too long for an
    /// address.
    ///
    /// # Errors
    /// Fails if the directory can't be opened.
    pub fn of(state: &Path) -> io::Result<Address> {
        let path = state.join(SOCKET);
        if path.as_os_str().len() <= ADDRESS_BYTES_MAX {
            return Ok(Address {
                path,
                _directory: None,
            });
        }
        let directory = File::open(state)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()));
        Ok(Address {
            path,
            _directory: Some(directory),
        })
    }

    /// Connects to the node, if there is one.
    ///
    /// # Errors
    /// The error of the system's connect.
    pub async fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(&self.path).await
    }
}

fn parts(node: &Node, options: JobNodeOptions, jobs: Arc<Jobs>, began: WallMs) -> Parts<Store> {
    let (clock, store) = (node.clock().clone(), options.store.clone());
    let config = &options.config;
    let vault = Arc::new(KeyVault::with_key([0; 32]));
    let calls = Arc::new(HookClient {
        http: config.http_handler.clone(),
        commands: config.command_handler.clone(),
        in_process: Default::default(),
        environment: Vec::new(),
        node: options.name.clone(),
        vault: vault.clone(),
        clock: clock.clone(),
        transports: Arc::new(Transports::default()),
    });
    let items = Arc::new(JobItems(stored_sources(&store, &options.state, &clock)));
    Parts {
        data_log: store.clone(),
        meters: store.meters().clone(),
        resolver: resolver(config, &store),
        hooks: calls.clone(),
        handlers: calls,
        provider: jobs,
        tries: items.clone(),
        items,
        cluster: ClusterParts {
            node: options.name,
            began,
            is_shared: false,
            address: None,
            database: "sqlite",
            sessions: store.clone(),
            shards: store.clone(),
            durable: store.clone(),
            peers: Arc::new(NoPeers),
            seal: Arc::new(PeerKey::new(vault.peers_key())),
        },
        vault,
        store,
        supervisor: node.supervisor().clone(),
        clock,
        // Not an administrator: a business with secrets would have them encrypted with a publicly known key.
        everybody: Everybody {
            name: options.user,
            role: Role::Operator,
        },
    }
}

fn resolver(config: &Config, store: &Arc<Store>) -> Arc<Resolver> {
    let guard = Guard {
        networks: config.http_handler.source_networks.clone(),
        own_port: 0,
        own_urls: Vec::new(),
    };
    Arc::new(Resolver {
        sources: store.clone(),
        uploads: store.clone(),
        fetcher: Fetcher::new(Outbound::of(&config.http_handler), guard),
    })
}

/// Items of the jobs in a directory. Their handlers are built by whoever starts them.
struct JobItems(StoredSources);

#[async_trait]
impl TaskItems for JobItems {
    async fn source(&self, task: &TaskView) -> Result<Arc<dyn Source>, ProvisionError> {
        open_stored(&self.0, task, None).await
    }
}

impl BusinessHandlers for JobItems {
    fn handler_of(&self, business: &Business) -> Result<Arc<dyn HandlerFactory>, ProvisionError> {
        let text = format!("{} has no handler outside its jobs", business.slug);
        Err(ProvisionError::HandlerUnusable(text))
    }
}

/// Peers of a directory's node: none.
struct NoPeers;

#[async_trait]
impl Peers for NoPeers {
    async fn ask(&self, peer: &Peer, _: &Question) -> Result<PeerReply, Unreachable> {
        Err(Unreachable {
            node: peer.node.clone(),
            why: "the node of a directory has no peers".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::ids::ItemCount;
    use windrow_core::task::Tuning;
    use windrow_engine::ports::tasks::store::{Actor, NewTask, TaskStore};
    use windrow_server::service::ServiceError;
    use windrow_server::service::tasks::StartHow;

    use super::*;
    use crate::jobs::BUSINESS;

    #[test]
    fn a_job_is_started_by_a_run_and_not_by_the_api_of_its_directory() {
        let runtimes = Arc::new(Runtimes::new().expect("threads"));
        let runtime = tokio::runtime::Runtime::new().expect("threads");
        runtime.block_on(refused(runtimes.clone()));
        let runtimes = Arc::into_inner(runtimes).expect("nothing else works on them");
        runtimes.shut_down(Duration::from_secs(1));
    }

    async fn refused(runtimes: Arc<Runtimes>) {
        let place = tempfile::tempdir().expect("a directory");
        let state = Arc::new(StateDir::lock(place.path()).expect("nobody holds it"));
        let store = Arc::new(Store::open(&state.database()).await.expect("a store"));
        let options = JobNodeOptions {
            name: BUSINESS.to_owned(),
            config: Config::default(),
            state,
            store: store.clone(),
            runtimes,
            user: "ann".to_owned(),
            first_contact: None,
        };
        let made = JobNode::start(options).await.expect("a node");
        let (write, now) = (Actor::windrow(None).writes(), made.node().clock().wall());
        store
            .ensure_business(BUSINESS, &write, now)
            .await
            .expect("stored");
        let task = NewTask::of(BUSINESS, ItemCount(3), Tuning::default());
        let task = TaskStore::create(&*store, &task, &write, now)
            .await
            .expect("made");
        let tasks = &made.app.service.tasks;
        let started = tasks.start(task.id, StartHow::default(), &write).await;
        let Err(ServiceError::Conflict { advice, .. }) = started else {
            panic!("{started:?}");
        };
        assert!(advice.starts_with("windrow run --resume"), "{advice}");
        assert!(made.drain().await);
        store.close().await.expect("closed");
    }
}
