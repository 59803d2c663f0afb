//! The checked options, one type a section of `config.toml`. What a key means and why its default is what it is
//! stands there; here are the types.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::values::{
    ActorTree, AuthMode, DataLogLevel, Locale, LogFormat, Share, StopDrain, StoreUrl, SuccessDetail,
};
use windrow_core::business::network::Network;
use windrow_core::settings::text::ByteSize;
use windrow_core::settings::{Auto, Backoff, Rate, RateLimit};
use windrow_core::task::Tuning;

/// Everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `[node]`
    pub node: Node,
    /// `[http]`
    pub http: Http,
    /// `[auth]`
    pub auth: Auth,
    /// `[store]`
    pub store: Store,
    /// `[cluster]`
    pub cluster: Cluster,
    /// `[task_defaults]`
    pub task_defaults: TaskDefaults,
    /// `[handler.http]`
    pub http_handler: HttpHandler,
    /// `[handler.command]`
    pub command_handler: CommandHandler,
    /// `[data_log]`
    pub data_log: DataLog,
    /// `[retention]`
    pub retention: Retention,
    /// `[log]`
    pub log: Log,
    /// `[telemetry]`
    pub telemetry: Telemetry,
    /// `[dashboard]`
    pub dashboard: Dashboard,
}

/// This node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The name; `Auto` is the host's.
    pub id: Auto<String>,
    /// Where the embedded store, its lock and spooled input are.
    pub data_dir: PathBuf,
    /// The sum of task rates that the node may hold.
    pub capacity_rate: RateLimit,
    /// What a task without a rate counts as.
    pub unlimited_reserves: Rate,
    /// Whether tasks may be unpaced.
    pub allow_unlimited: bool,
    /// Whether tasks run here at all.
    pub run_tasks: bool,
    /// Businesses of these pools run here.
    pub pools: Vec<String>,
    /// How long a shutdown may take.
    pub drain_timeout: Duration,
    /// Shown with the node.
    pub labels: BTreeMap<String, String>,
}

/// The façade's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Where it listens.
    pub listen: SocketAddr,
    /// How other nodes reach it; `Auto` is `listen`.
    pub advertise: Auto<String>,
    /// The URL that people use.
    pub public_url: Option<String>,
    /// Certificate chain, PEM.
    pub tls_cert_file: Option<PathBuf>,
    /// Its key, PEM.
    pub tls_key_file: Option<PathBuf>,
    /// The largest request, uploads excepted.
    pub body_limit: ByteSize,
    /// All bodies that are read or worked on at once; one caller may have a quarter.
    pub body_memory: ByteSize,
    /// The largest upload.
    pub upload_limit: ByteSize,
    /// What the uploads of a business may take.
    pub upload_quota: ByteSize,
    /// Uploads that arrive at once; one caller may have a quarter.
    pub max_uploads: NonZeroU32,
    /// Connections at once.
    pub max_connections: NonZeroU32,
    /// Those of one address; `Auto` is a quarter.
    pub max_connections_per_peer: Auto<NonZeroU32>,
    /// Whether a create needs a key.
    pub require_idempotency_key: bool,
    /// More names under which the node may be called.
    pub allowed_hosts: Vec<String>,
}

/// Who may do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// How callers prove who they are.
    pub mode: AuthMode,
    /// The first administrator's token; `admin.token` in the data directory where it can't be written.
    pub bootstrap_token_file: Option<PathBuf>,
    /// The header in which a proxy says who it is.
    pub proxy_header: String,
    /// The networks from which it may.
    pub proxy_trust: Vec<Network>,
    /// Whether even this machine needs a token for metrics and the tree of actors.
    pub always_token: bool,
    /// The key that seals secrets; none is made in the data directory.
    pub key_file: Option<PathBuf>,
}

/// The store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Which.
    pub url: StoreUrl,
    /// The file that holds the password.
    pub password_file: Option<PathBuf>,
    /// The size of the pool.
    pub max_connections: NonZeroU32,
    /// Whether a database server is migrated at start.
    pub migrate_on_start: bool,
}

/// Ownership among nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The second witness.
    pub redis_url: Option<String>,
    /// The file that holds its password.
    pub redis_password_file: Option<PathBuf>,
    /// The file with the authorities that its certificate may come from; none trusts those of the system.
    pub redis_ca_file: Option<PathBuf>,
    /// The first part of its keys.
    pub redis_prefix: String,
    /// Certificates (PEM) of authorities that other nodes' certificates come from; none is the system's.
    pub ca_file: Option<PathBuf>,
    /// Whether the database alone decides while Redis is unreachable.
    pub takeover_without_redis: bool,
    /// How long an owner is believed without a sign.
    pub lease_ttl: Duration,
    /// How often it gives one; at most a quarter of the TTL.
    pub lease_renew: Duration,
    /// How often ownerless shards are looked for.
    pub restore_scan: Duration,
    /// Tasks idle for longer need a manual start.
    pub restore_window: Duration,
    /// Recoveries before a task is stopped.
    pub restore_max: u32,
    /// The wait between recoveries.
    pub restore_backoff: Backoff,
}

/// What a task has that says nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskDefaults {
    /// The live settings.
    pub tuning: Tuning,
    /// Parts that different nodes can own.
    pub shards: Auto<NonZeroU32>,
    /// How long a stop waits for calls.
    pub stop_drain: StopDrain,
    /// Whether parameters go with each call.
    pub send_params: bool,
    /// The largest parameters, as JSON.
    pub max_params: ByteSize,
}

/// HTTP callbacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpHandler {
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long an idle one is kept.
    pub pool_idle: Duration,
    /// Whether HTTP/2 is offered.
    pub http2: bool,
    /// A forward proxy.
    pub proxy: Option<String>,
    /// Certificates in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Addresses that may be reached; empty is all.
    pub allow_networks: Vec<Network>,
    /// Addresses that may not; wins.
    pub deny_networks: Vec<Network>,
    /// Private networks that URL sources of businesses may lie in.
    pub source_networks: Vec<Network>,
    /// Whether certificates go unchecked.
    pub insecure_skip_verify: bool,
}

/// Worker subprocesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandHandler {
    /// Whether the node starts any.
    pub enabled: bool,
    /// Until a worker takes its first item.
    pub startup_timeout: Duration,
    /// Between asking to end and killing.
    pub kill_grace: Duration,
    /// The longest line of an answer.
    pub max_line: ByteSize,
    /// The commands that businesses may name.
    pub commands: BTreeMap<String, Command>,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The program and its arguments; not a shell line.
    pub cmd: Vec<String>,
    /// How many processes.
    #[serde(default = "one")]
    pub workers: NonZeroU32,
    /// Variables in addition to the node's.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

/// Lines that businesses write about tasks and items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataLog {
    /// What is kept at all.
    pub min_level: DataLogLevel,
    /// Lines of one write.
    pub batch: NonZeroU32,
    /// The longest wait of a line.
    pub flush: Duration,
    /// How long lines are kept.
    pub retention: Duration,
    /// Lines of one task.
    pub max_per_task: u64,
}

/// How long things are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Rows of abandoned items of ended tasks.
    pub failures: Duration,
    /// What is kept of items that succeeded.
    pub success_detail: SuccessDetail,
    /// Ended tasks.
    pub tasks: Duration,
}

/// The node's own log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// How lines look.
    pub format: LogFormat,
    /// Which lines.
    pub filter: String,
    /// When the tree of actors is printed.
    pub actor_tree: ActorTree,
}

/// Metrics and traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Whether `/metrics` is served.
    pub metrics: bool,
    /// Where traces go; none turns them off.
    pub otlp_endpoint: Option<String>,
    /// The share of items that are traced when they succeed.
    pub sample: Share,
}

/// The dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dashboard {
    /// Whether it is served.
    pub enabled: bool,
    /// Under which path.
    pub base_path: String,
    /// In which language.
    pub locale: Locale,
}
