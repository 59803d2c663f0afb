//! The checked options, one type a section of `config.toml`: each key once, with its type, default and meaning.
//!
//! From this table come the types and their defaults, what is read and which keys are known, what a reload takes,
//! `config.toml` and the reference in `docs/`. The live settings of tasks have a table of their own in the core.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::check::Faults;
use super::command::Command;
use super::read::Reader;
use super::reload::Reload;
use super::table::{Row, built_in, sections};
use super::values::{ActorTree, AuthMode, DataLogLevel, LogFormat, StoreUrl};
use super::written::Value;
use windrow_core::business::network::Network;
use windrow_core::settings::text::{ByteSize, span_text};
use windrow_core::settings::{Auto, Backoff, Rate, RateLimit};
use windrow_core::task::Tuning;

sections! {
    /// This node
    ["node"] node: Node {
        /// The node's name: must be unique and stay the same across restarts; "auto" = host name
        id: Auto<String> = "auto";
        /// The embedded store, its lock, spooled input
        data_dir: PathBuf = "/var/lib/windrow";
        /// The sum of task rates that this node may hold; "unlimited" is possible
        capacity_rate: RateLimit = "2000/s", reload;
        /// What a task without a rate counts as: half a node, so that two fit
        unlimited_reserves: Rate = "1000/s";
        /// true: tasks may say rate = "unlimited" (`windrow run` always may)
        allow_unlimited: bool = false;
        /// false: this node serves the API only, and runs no tasks
        run_tasks: bool = true, reload;
        /// Businesses of these pools run here
        pools: Vec<String> = ["default"];
        /// SIGTERM: dispatch stops, calls end, shards are handed over, exit; three times `timeout`
        ///
        /// systemd: TimeoutStopSec of deploy/windrow.service must be 20 s more
        drain_timeout: Duration = "30s" above "0s";
        /// Shown with the node, for instance { zone = "a" }
        labels: BTreeMap<String, String> = {};
    }

    /// The node's port: API, metrics and health
    ["http"] http: Http {
        /// Where it listens; loopback until someone decides more
        listen: SocketAddr = "127.0.0.1:7700";
        /// How other nodes reach this one; "auto" = the address of `listen`
        advertise: Auto<String> = "auto";
        /// The URL that people use, for links and problem types behind a proxy; "" = none
        public_url: Option<String> = "";
        /// PEM, the certificate chain; "" = plain HTTP
        tls_cert_file: Option<PathBuf> = "";
        /// PEM, its key
        tls_key_file: Option<PathBuf> = "";
        /// Of a request that creates or changes a task; others have 1 MiB, uploads their own
        body_limit: ByteSize = "16 MiB" above "0 B";
        /// All bodies that are read or worked on at once; one caller may have a quarter, and one whole body
        body_memory: ByteSize = "64 MiB";
        /// Of an uploaded source, as it is sent and unpacked
        upload_limit: ByteSize = "20 GiB";
        /// What the uploads of one business may take, those of its tasks included; others have no quota
        upload_quota: ByteSize = "50 GiB";
        /// Uploads that arrive at once, copies of URLs among them, each with up to 6 MiB of memory, or what unpacking it takes: up to 32 MiB; one caller may have a quarter
        max_uploads: NonZeroU32 = 16;
        /// Connections at once; some more are kept for /healthz, /readyz and /version
        max_connections: NonZeroU32 = 1024;
        /// Those of one address (IPv6: /64); "auto" = a quarter
        ///
        /// Addresses in auth.proxy_trust have no share with mode = "proxy"; behind another proxy set it to max_connections
        max_connections_per_peer: Auto<NonZeroU32> = "auto";
        /// true: a create without one is refused
        require_idempotency_key: bool = false;
        /// More names under which clients call this node
        ///
        /// It answers to what it listens on, localhost and the hosts of advertise and public_url, so that no page can
        /// bind its own name to it
        allowed_hosts: Vec<String> = [];
    }

    /// Who may do what
    ["auth"] auth: Auth {
        /// "token", "proxy" (an authenticating proxy in front) or "off" (loopback only)
        mode: AuthMode = "token";
        /// The first administrator's token; admin.token in data_dir where it can't be written
        bootstrap_token_file: Option<PathBuf> = "/etc/windrow/admin.token";
        /// mode = "proxy": the header that says who it is
        proxy_header: String = "X-Forwarded-User";
        /// mode = "proxy": the networks that may say so
        proxy_trust: Vec<Network> = ["127.0.0.1/32"];
        /// How long a browser that signed in with a token is believed; it ends with the token too
        session_life: Duration = "12h" above "0s";
        /// true: /metrics and /actors ask for a token from this machine too
        ///
        /// Set it where a proxy on this machine forwards to the node, and lets everybody look as if they sat at it
        always_token: bool = false;
        /// The highest priority that a token of a business may give its tasks; operators may give any
        business_priority_max: u32 = 0;
        /// 32 bytes, base64: seals stored secrets and signs calls between nodes
        ///
        /// "" = made once in data_dir (SQLite only); with a database server the same on every node
        key_file: Option<PathBuf> = "";
    }

    /// Where tasks and their progress are kept
    ["store"] store: Store {
        /// "auto" = SQLite, windrow.db in data_dir; or "sqlite://PATH"; or a server that several nodes share:
        /// "postgres://windrow@db/windrow", "mysql://windrow@db/windrow" (MariaDB too); TLS by parameters:
        /// "?sslmode=verify-full&sslrootcert=FILE", "?ssl-mode=VERIFY_IDENTITY&ssl-ca=FILE"
        url: StoreUrl = "auto";
        /// Of the database's user; a password is never part of `url`
        password_file: Option<PathBuf> = "";
        /// To a server, of this node; heartbeats have two of their own
        max_connections: NonZeroU32 = 16;
        /// Of a server: false = `windrow db migrate` does it, once for all nodes; SQLite always does it itself
        migrate_on_start: bool = false;
    }

    /// Ownership among nodes
    ["cluster"] cluster: Cluster {
        /// "redis://host:6379", rediss:// with TLS; "redis-sentinel://s1,s2,s3/mymaster",
        /// "redis-cluster://r1,r2,r3", "redis+unix:///path"; "" = the database is the only witness
        redis_url: Option<String> = "";
        /// Of the Redis user (user@ in `redis_url`); a password is never part of `redis_url`
        redis_password_file: Option<PathBuf> = "";
        /// PEM file with the authorities of a rediss:// server; "" = those of the system
        redis_ca_file: Option<PathBuf> = "";
        /// First part of every key and channel; the store's id is the second
        redis_prefix: String = "windrow";
        /// PEM authorities of other nodes' certificates, for https addresses; "" = the system's
        ca_file: Option<PathBuf> = "";
        /// true: while Redis is configured but unreachable, the database alone decides
        takeover_without_redis: bool = false;
        /// How long the owner of a shard is believed without a sign; recovery takes one TTL
        lease_ttl: Duration = "15s" above "0s";
        /// How often it gives one: at most a quarter of lease_ttl, so that some may be lost
        lease_renew: Duration = "3s" above "0s";
        /// How often runnable shards without an owner are looked for, ± 30 %
        restore_scan: Duration = "1s" above "0s";
        /// Tasks that were not active for longer need a manual start
        restore_window: Duration = "30d" above "0s";
        /// Recoveries before a task is stopped (recoveries_exhausted)
        restore_max: u32 = 10;
        /// The wait between recoveries
        restore_backoff: Backoff = "15s..10m x2 jitter 20%";
    }

    /// What a task has that says nothing else; each one may be overridden per business and per task
    ["task_defaults"] task_defaults: TaskDefaults {
        /// The live settings: the table of `windrow_core::settings::table`
        tuning: Tuning = {}, reload;
        /// Parts of a task that different nodes can own; a number or "auto"
        shards: Auto<NonZeroU32> = 1, reload;
        /// A task's parameters go with every call
        send_params: bool = true, reload;
        /// The largest parameters, as JSON
        max_params: ByteSize = "64 KiB", reload;
    }

    /// Handlers that are called by HTTP
    ["handler.http"] http_handler: HttpHandler {
        /// Until the handler's address answers; part of the call's `timeout`
        connect_timeout: Duration = "2s" above "0s";
        /// Idle connections are kept this long
        pool_idle: Duration = "90s" above "0s";
        /// Offered by ALPN; a plain-text server is spoken to in HTTP/1.1
        http2: bool = true;
        /// "http://…", a forward proxy for callbacks and for the URLs of sources; "" = none
        proxy: Option<String> = "";
        /// PEM, in addition to the system's
        ca_file: Option<PathBuf> = "";
        /// Addresses that callbacks may reach; empty = all but deny_networks
        allow_networks: Vec<Network> = [];
        /// Addresses that they may not, whatever allow_networks says: link-local, where cloud metadata lives
        ///
        /// Private ranges are where businesses live
        deny_networks: Vec<Network> = ["169.254.0.0/16", "fe80::/10"];
        /// Private networks that a business's token may name in the URL of a source
        ///
        /// Public addresses it may, this node never. Operators may name what callbacks may reach
        source_networks: Vec<Network> = [];
        /// true: certificates aren't checked; shown as a warning
        insecure_skip_verify: bool = false;
    }

    /// Handlers that are commands on this machine
    ["handler.command"] command_handler: CommandHandler {
        /// Commands come from here, never from the API (`run` and `try` take theirs as arguments)
        enabled: bool = false;
        /// Until a worker takes its first item
        startup_timeout: Duration = "10s" above "0s";
        /// Between asking a worker to end and killing its process group
        kill_grace: Duration = "10s";
        /// The longest line of a worker's answer
        max_line: ByteSize = "1 MiB" above "1023 B";
        /// The commands that businesses may name; as a table:
        ///
        /// ```toml
        /// [handler.command.commands.push]
        /// cmd     = ["python3", "-u", "/opt/push/worker.py"]
        /// workers = 2                                    # default 1
        /// env     = { PYTHONDONTWRITEBYTECODE = "1" }    # default {}
        ///
        /// [handler.command.commands.resize]              # one process an item, as windrow run --each
        /// each      = ["convert", "{in}", "-resize", "50%", "{out}"]   # or shell = 'convert "$ROW_in" …'
        /// processes = 4                                  # at once; default: one a core
        /// cwd       = "/srv/images"                      # default: the node's
        /// unavailable_exits = [6, 7, 28]                 # beside 75: as a 503; default []
        /// ```
        commands: BTreeMap<String, Command> = {};
    }

    /// Lines that businesses write about tasks and items
    ["data_log"] data_log: DataLog {
        /// What is kept at all: "debug", "info", "warn" or "error"
        min_level: DataLogLevel = "info", reload;
        /// Lines of one write
        batch: NonZeroU32 = 200;
        /// The longest wait of a line
        flush: Duration = "1s" above "0s";
        /// Lines older than this go
        retention: Duration = "30d" above "0s";
        /// Lines of one task; the oldest debug and info go first, and what went is counted and shown
        max_per_task: u64 = 5_000_000 above 0;
    }

    /// How long things are kept
    ["retention"] retention: Retention {
        /// Rows of failed items of ended tasks
        failures: Duration = "90d" above "0s";
        /// What items of ended tasks came to (`results = keep`)
        results: Duration = "90d" above "0s";
        /// Ended tasks
        tasks: Duration = "365d" above "0s";
        /// Fires of schedules, the newest 10 000 of each
        fires: Duration = "90d" above "0s";
        /// What deleted tasks did in each day (`windrow stats`); of tasks that are kept it stays as long as they do
        statistics: Duration = "730d" above "0s";
        /// Who changed what (`windrow audit`); of tasks that are kept it stays as long as they do
        audit: Duration = "1825d" above "0s";
        /// Rows that were appended to open tasks, once the items of their request are settled and none of them failed
        appended: Duration = "1d" above "0s";
    }

    /// What items came to
    ["results"] results: Results {
        /// A folder for the bytes of results, the same on every node (a mount); "" = the store
        ///
        /// The folder of a store can't be changed: results that are there would be missed
        location: Option<PathBuf> = "";
    }

    /// Where readers find what is published, beside the API
    ["datasets"] datasets: Datasets {
        /// The Redis of readers, written as cluster.redis_url is; "" = none
        redis_url: Option<String> = "";
        /// Of the Redis user; a password is never part of `redis_url`
        redis_password_file: Option<PathBuf> = "";
        /// PEM file with the authorities of a rediss:// server; "" = those of the system
        redis_ca_file: Option<PathBuf> = "";
        /// First part of every key; the store's id and the dataset's name are the second
        redis_prefix: String = "windrow";
        /// For how long readers who have begun may go on reading what is no longer current there
        redis_grace: Duration = "10m" above "0s";
    }

    /// Tasks that are deleted
    ["archive"] archive: Archive {
        /// A folder to which each task is written before it is deleted, the same on every node (a mount); "" = none
        ///
        /// While it can't be written no task is deleted
        location: Option<PathBuf> = "";
    }

    /// The node's own log
    ["log"] log: Log {
        /// "auto" = "pretty" on a terminal, else "json"; or "logfmt"
        format: LogFormat = "auto";
        /// Level, or levels by module: "info,windrow_engine=debug"
        filter: String = "info", reload;
        /// When the tree of actors is printed; "" = never
        actor_tree: ActorTree = "start,restart,stop";
    }

    /// Pages for people, at the node's address
    ["dashboard"] dashboard: Dashboard {
        /// false: there are none, only the API
        enabled: bool = true, reload;
    }

    /// What others measure
    ["telemetry"] telemetry: Telemetry {
        /// false: /metrics answers 404
        metrics: bool = true;
    }
}

impl Cluster {
    /// What losing Redis means, as the rest of a sentence; `who` is "nodes take" or "this node takes". Said alike by the log, the
    /// doctor and the API: whoever reads that the database goes on as the witness believes that takeovers do.
    pub fn without_redis(&self, who: &str) -> String {
        if self.takeover_without_redis {
            format!(
                "what runs goes on, and {who} over what a node that dies ran {} later than usual \
                 (cluster.takeover_without_redis)",
                span_text(self.lease_ttl)
            )
        } else {
            format!(
                "what runs goes on, but {who} over nothing of a node that dies until Redis is back \
                 (cluster.takeover_without_redis is off)"
            )
        }
    }
}

/// Keys of earlier versions that nothing ever obeyed.
pub(super) const REMOVED: [&str; 6] = [
    "task_defaults.stop_drain",
    "retention.success_detail",
    "telemetry.otlp_endpoint",
    "telemetry.sample",
    "dashboard.base_path",
    "dashboard.locale",
];
