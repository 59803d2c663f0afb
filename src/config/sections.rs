//! Checked options, one type per section of `config.toml`: each key once, with its type, default and meaning.
//!
//! This table generates the types and their defaults, the reader and the list of known keys, the set of reloadable
//! keys, `config.toml`, and the reference in `docs/`. The live settings of tasks have their own table in the core.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::check::Faults;
use super::command::Command;
use super::grant::Grant;
use super::read::Reader;
use super::reload::Reload;
use super::table::{Row, built_in, sections};
use super::values::{ActorTree, AuthMode, DataLogLevel, LogFormat, StoreUrl};
use super::written::Value;
use windrow_core::business::network::Network;
use windrow_core::settings::text::{ByteSize, span_text};
use windrow_core::settings::{Auto, Backoff, Rate, RateLimit, Share};
use windrow_core::task::Tuning;

sections! {
    /// Identity and capacity of this node
    ["node"] node: Node {
        /// Name of the node, unique and stable across restarts; "auto" = host name
        id: Auto<String> = "auto";
        /// Directory for the embedded store, its lock, and spooled input
        data_dir: PathBuf = "/var/lib/windrow";
        /// Maximum total of task rates on this node, or "unlimited"
        capacity_rate: RateLimit = "2000/s", reload;
        /// Rate reserved for a task without a rate, or at "auto" without a ceiling: half a node, so that two fit
        unlimited_reserves: Rate = "1000/s";
        /// true: tasks may have rate = "unlimited" (`windrow run` always may); "auto" is always allowed
        allow_unlimited: bool = false;
        /// false: this node only serves the API and runs no tasks
        run_tasks: bool = true, reload;
        /// Pools whose businesses run on this node
        pools: Vec<String> = ["default"];
        /// Time for a shutdown after SIGTERM: stop dispatching, finish calls, hand shards over; three times `timeout`
        ///
        /// systemd: TimeoutStopSec of deploy/windrow.service must be 20 s more
        drain_timeout: Duration = "30s" above "0s";
        /// Labels shown with the node, for instance { zone = "a" }
        labels: BTreeMap<String, String> = {};
    }

    /// The node's port: API, metrics and health
    ["http"] http: Http {
        /// Address to listen on; loopback by default
        listen: SocketAddr = "127.0.0.1:7700";
        /// Address at which other nodes reach this one; "auto" = the address of `listen`
        advertise: Auto<String> = "auto";
        /// Public URL, for links and problem types behind a proxy; "" = none
        public_url: Option<String> = "";
        /// PEM file with the certificate chain; "" = plain HTTP
        tls_cert_file: Option<PathBuf> = "";
        /// PEM file with the private key
        tls_key_file: Option<PathBuf> = "";
        /// Maximum body of a request that creates or changes a task; other requests have 1 MiB, uploads
        /// `upload_limit`
        body_limit: ByteSize = "16 MiB" above "0 B";
        /// Memory for all bodies being read or processed; one caller may use a quarter, and always one whole body
        body_memory: ByteSize = "64 MiB";
        /// Maximum size of an uploaded source, both as sent and unpacked
        upload_limit: ByteSize = "20 GiB";
        /// Storage quota for the uploads of one business, including those of its tasks; others have no quota
        upload_quota: ByteSize = "50 GiB";
        /// Concurrent uploads, including copies of URLs; each uses up to 6 MiB of memory, or up to 32 MiB for
        /// unpacking; one caller may have a quarter
        max_uploads: NonZeroU32 = 16;
        /// Maximum concurrent connections; a few more are reserved for /healthz, /readyz and /version
        max_connections: NonZeroU32 = 1024;
        /// Maximum connections from one address (IPv6: /64); "auto" = a quarter
        ///
        /// With mode = "proxy", addresses in auth.proxy_trust are exempt; behind another proxy set it to
        /// max_connections
        max_connections_per_peer: Auto<NonZeroU32> = "auto";
        /// true: reject create requests without an idempotency key
        require_idempotency_key: bool = false;
        /// Additional host names under which clients call this node
        ///
        /// Always accepted are the listening address, localhost, and the hosts of advertise and public_url. This
        /// keeps a web page from binding its own name to the node
        allowed_hosts: Vec<String> = [];
    }

    /// Authentication and permissions of callers
    ["auth"] auth: Auth {
        /// "token", "proxy" (an authenticating proxy in front) or "off" (loopback only)
        mode: AuthMode = "token";
        /// File for the first administrator's token; if it can't be written, admin.token in data_dir
        bootstrap_token_file: Option<PathBuf> = "/etc/windrow/admin.token";
        /// mode = "proxy": header with the name of the user
        proxy_header: String = "X-Forwarded-User";
        /// mode = "proxy": networks whose header is trusted
        proxy_trust: Vec<Network> = ["127.0.0.1/32"];
        /// mode = "proxy": header with the user's groups, separated by commas; "" = none
        proxy_groups_header: Option<String> = "";
        /// mode = "proxy": the header is a JWT, and this claim has the groups: "groups", "realm_access.roles"
        ///
        /// The proxy must have verified the JWT; the node doesn't check its signature
        proxy_groups_claim: Option<String> = "";
        /// mode = "proxy": roles of groups, such as { ops = "operator", push-team = "business:push" }; the highest wins
        proxy_roles: BTreeMap<String, Grant> = {};
        /// mode = "proxy": role of users without such a group; "auto" = operator if proxy_roles is empty, otherwise
        /// none: they are refused (`no-role`)
        proxy_default_role: Auto<Grant> = "auto";
        /// Lifetime of a browser session; it also ends with its token
        session_life: Duration = "12h" above "0s";
        /// true: require a token for /metrics and /actors even from this machine
        ///
        /// Set it if a proxy on this machine forwards to the node and makes every caller look local
        always_token: bool = false;
        /// Maximum priority that a business's token may give its tasks; operators may give any
        business_priority_max: u32 = 0;
        /// File with 32 bytes in base64, which encrypt stored secrets and sign calls between nodes
        ///
        /// "" = created once in data_dir (SQLite only); with a database server it must be the same on every node
        key_file: Option<PathBuf> = "";
    }

    /// Storage for tasks and their progress
    ["store"] store: Store {
        /// "auto" = SQLite, windrow.db in data_dir; or "sqlite://PATH"; or a server shared by several nodes:
        /// "postgres://windrow@db/windrow", "mysql://windrow@db/windrow" (MariaDB too); TLS by parameters:
        /// "?sslmode=verify-full&sslrootcert=FILE", "?ssl-mode=VERIFY_IDENTITY&ssl-ca=FILE"
        url: StoreUrl = "auto";
        /// File with the database user's password; `url` never contains a password
        password_file: Option<PathBuf> = "";
        /// Maximum connections from this node to a database server; heartbeats have two of their own
        max_connections: NonZeroU32 = 16;
        /// For a database server: false = migrations run once for all nodes with `windrow db migrate`; SQLite always
        /// migrates on start
        migrate_on_start: bool = false;
    }

    /// Ownership of shards among nodes
    ["cluster"] cluster: Cluster {
        /// "redis://host:6379", rediss:// with TLS; "redis-sentinel://s1,s2,s3/mymaster",
        /// "redis-cluster://r1,r2,r3", "redis+unix:///path"; "" = the database is the only witness
        redis_url: Option<String> = "";
        /// File with the password of the Redis user (user@ in `redis_url`); `redis_url` never contains a password
        redis_password_file: Option<PathBuf> = "";
        /// PEM file with the authorities for a rediss:// server; "" = the system's
        redis_ca_file: Option<PathBuf> = "";
        /// First part of every key and channel; the second is the store's id
        redis_prefix: String = "windrow";
        /// PEM file with the authorities for other nodes' https addresses; "" = the system's
        ca_file: Option<PathBuf> = "";
        /// true: while Redis is configured but unreachable, the database alone decides takeovers
        takeover_without_redis: bool = false;
        /// Time without a heartbeat after which a shard's owner loses it; recovery takes one TTL
        lease_ttl: Duration = "15s" above "0s";
        /// Interval between heartbeats: at most a quarter of lease_ttl, so that some may be lost
        lease_renew: Duration = "3s" above "0s";
        /// Interval between scans for runnable shards without an owner, ± 30 %
        restore_scan: Duration = "1s" above "0s";
        /// Maximum idle time of a task for an automatic restore; after that it needs a manual start
        restore_window: Duration = "30d" above "0s";
        /// Maximum recoveries before a task is stopped (recoveries_exhausted)
        restore_max: u32 = 10;
        /// Wait between recoveries of a task
        restore_backoff: Backoff = "15s..10m x2 jitter 20%";
    }

    /// Defaults of tasks; each can be overridden per business and per task
    ["task_defaults"] task_defaults: TaskDefaults {
        /// Live settings, from the table `windrow_core::settings::table`
        tuning: Tuning = {}, reload;
        /// Number of shards, which different nodes can own, or "auto"
        shards: Auto<NonZeroU32> = 1, reload;
        /// Send a task's parameters with every call
        send_params: bool = true, reload;
        /// Maximum size of a task's parameters, as JSON
        max_params: ByteSize = "64 KiB", reload;
    }

    /// Handlers called over HTTP
    ["handler.http"] http_handler: HttpHandler {
        /// Timeout for connecting to a handler; part of the call's `timeout`
        connect_timeout: Duration = "2s" above "0s";
        /// Time to keep idle connections open
        pool_idle: Duration = "90s" above "0s";
        /// Offer HTTP/2 by ALPN; plain-text servers are always called with HTTP/1.1
        http2: bool = true;
        /// Forward proxy for callbacks and source URLs, "http://…"; "" = none
        proxy: Option<String> = "";
        /// PEM file with authorities trusted in addition to the system's
        ca_file: Option<PathBuf> = "";
        /// PEM file with the certificate that the node presents to handlers that demand one (mTLS); "" = none
        ///
        /// A business may have its own
        client_cert_file: Option<PathBuf> = "";
        /// PEM file with the private key of client_cert_file
        client_key_file: Option<PathBuf> = "";
        /// Networks that callbacks may reach; empty = all except deny_networks
        allow_networks: Vec<Network> = [];
        /// Networks that callbacks may never reach, even if in allow_networks: link-local, where cloud metadata lives
        ///
        /// Private ranges are allowed, because businesses live there
        deny_networks: Vec<Network> = ["169.254.0.0/16", "fe80::/10"];
        /// Private networks that a business's token may use in source URLs
        ///
        /// Public addresses are allowed, the node's own never. Operators may use every address that callbacks may
        /// reach
        source_networks: Vec<Network> = [];
        /// true: don't verify certificates; shown as a warning
        insecure_skip_verify: bool = false;
    }

    /// Handlers run as commands on this machine
    ["handler.command"] command_handler: CommandHandler {
        /// Enable commands, which are configured here and never through the API (`run` and `try` take theirs as
        /// arguments)
        enabled: bool = false;
        /// Time for a worker to take its first item
        startup_timeout: Duration = "10s" above "0s";
        /// Time between asking a worker to exit and killing its process group
        kill_grace: Duration = "10s";
        /// Maximum length of a line in a worker's response
        max_line: ByteSize = "1 MiB" above "1023 B";
        /// Commands that businesses may name; as a table:
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

    /// Log lines that businesses write about tasks and items
    ["data_log"] data_log: DataLog {
        /// Lowest level that is stored: "debug", "info", "warn" or "error"
        min_level: DataLogLevel = "info", reload;
        /// Maximum lines per write
        batch: NonZeroU32 = 200;
        /// Maximum time a line waits to be written
        flush: Duration = "1s" above "0s";
        /// Lines older than this are deleted
        retention: Duration = "30d" above "0s";
        /// Maximum lines per task; the oldest debug and info lines are dropped first, and the number dropped is shown
        max_per_task: u64 = 5_000_000 above 0;
    }

    /// Retention periods of stored data
    ["retention"] retention: Retention {
        /// Rows of failed items of ended tasks
        failures: Duration = "90d" above "0s";
        /// Results of items of ended tasks (`results = keep`)
        results: Duration = "90d" above "0s";
        /// Ended tasks with their state
        tasks: Duration = "365d" above "0s";
        /// Fires of schedules, at most the newest 10,000 of each
        fires: Duration = "90d" above "0s";
        /// Daily totals of deleted tasks (`windrow stats`); those of existing tasks are kept as long as the task
        statistics: Duration = "730d" above "0s";
        /// Audit log (`windrow audit`); entries about existing tasks are kept as long as the task
        audit: Duration = "1825d" above "0s";
        /// Rows appended to open tasks, once all items of their request are settled and none of them failed
        appended: Duration = "1d" above "0s";
    }

    /// Storage for the results of items
    ["results"] results: Results {
        /// Directory for result data, shared by all nodes (a mount); "" = the store
        ///
        /// Can't be changed for a store that has results: existing ones would be missing
        location: Option<PathBuf> = "";
    }

    /// Redis copies of published datasets, beside the API
    ["datasets"] datasets: Datasets {
        /// URL of the readers' Redis, in the form of cluster.redis_url; "" = none
        redis_url: Option<String> = "";
        /// File with the password of the Redis user; `redis_url` never contains a password
        redis_password_file: Option<PathBuf> = "";
        /// PEM file with the authorities for a rediss:// server; "" = the system's
        redis_ca_file: Option<PathBuf> = "";
        /// First part of every key; followed by the store's id and the dataset's name
        redis_prefix: String = "windrow";
        /// Time that a replaced generation stays readable for readers who have begun
        redis_grace: Duration = "10m" above "0s";
    }

    /// Archive of deleted tasks
    ["archive"] archive: Archive {
        /// Directory to which each task is written before it is deleted, shared by all nodes (a mount); "" = none
        ///
        /// While it can't be written, no task is deleted
        location: Option<PathBuf> = "";
    }

    /// Log of the node itself
    ["log"] log: Log {
        /// "auto" = "pretty" on a terminal, otherwise "json"; or "logfmt"
        format: LogFormat = "auto";
        /// Level, or levels per module: "info,windrow_engine=debug"
        filter: String = "info", reload;
        /// Events at which the actor tree is printed; "" = never
        actor_tree: ActorTree = "start,restart,stop";
    }

    /// Web dashboard, at the node's address
    ["dashboard"] dashboard: Dashboard {
        /// false: no dashboard, only the API
        enabled: bool = true, reload;
    }

    /// Metrics and traces for monitoring systems
    ["telemetry"] telemetry: Telemetry {
        /// false: /metrics returns 404
        metrics: bool = true;
        /// Collector to which spans of runs and calls are sent by OTLP over HTTP: "http://127.0.0.1:4318/v1/traces"; "" =
        /// none
        traces_url: Option<String> = "";
        /// Share of the items whose calls are sent, the same items on every node: "0.01%"; of runs all are sent
        traces_sample: Share = "1%";
        /// File with headers for the collector, one a line: "Authorization: Bearer ..."
        traces_headers_file: Option<PathBuf> = "";
    }
}

impl Cluster {
    /// Describes the effect of losing Redis, as the end of a sentence; `who` is "nodes take" or "this node takes".
    /// The log, the doctor and the API use the same text, so that nobody assumes takeovers still work just because
    /// the database is up.
    pub fn without_redis(&self, who: &str) -> String {
        if self.takeover_without_redis {
            format!(
                "running tasks continue, and {who} over the tasks of a dead node {} later than usual \
                 (cluster.takeover_without_redis)",
                span_text(self.lease_ttl)
            )
        } else {
            format!(
                "running tasks continue, but {who} over no tasks of a dead node until Redis is back \
                 (cluster.takeover_without_redis is off)"
            )
        }
    }
}

/// Keys of earlier versions that never had an effect.
pub(super) const REMOVED: [&str; 6] = [
    "task_defaults.stop_drain",
    "retention.success_detail",
    "telemetry.otlp_endpoint",
    "telemetry.sample",
    "dashboard.base_path",
    "dashboard.locale",
];
