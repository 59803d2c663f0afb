//! From what was written to checked types, key by key, so that all faults are found at once.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use serde::de::DeserializeOwned;
use toml::Value;

use super::fault::{Fault, Origin};
use super::layers::{Entry, Layers, env_name};
use super::sections::{
    Auth, Cluster, CommandHandler, Config, Dashboard, DataLog, Http, HttpHandler, Log, Node, Retention,
    Store, TaskDefaults, Telemetry,
};
use super::shown;
use windrow_core::live_settings;
use windrow_core::settings::Auto;
use windrow_core::settings::table::{self, Written};
use windrow_core::settings::text::parse_span;
use windrow_core::task::Tuning;

/// Reads keys and collects what is wrong with them.
struct Reader {
    layers: Layers,
    /// Every key that was asked for, with the name of the type that it became.
    known: BTreeMap<String, &'static str>,
    origins: BTreeMap<String, Origin>,
    faults: Vec<Fault>,
}

/// What was read.
pub(super) struct Read {
    /// What was written, with defaults for what wasn't or can't be read.
    pub(super) config: Config,
    /// Where each key that was written stands.
    pub(super) origins: BTreeMap<String, Origin>,
    /// What can't be read.
    pub(super) faults: Vec<Fault>,
}

impl Reader {
    fn new(layers: Layers) -> Reader {
        Reader {
            layers,
            known: BTreeMap::new(),
            origins: BTreeMap::new(),
            faults: Vec::new(),
        }
    }
}

/// Reads all keys.
pub(super) fn config(layers: Layers) -> Read {
    let mut read = Reader::new(layers);
    let config = sections(&mut read);
    let origins = std::mem::take(&mut read.origins);
    Read {
        config,
        origins,
        faults: read.finish(),
    }
}

/// The keys that exist, each with the name of its type.
pub(super) fn known_keys() -> BTreeMap<String, &'static str> {
    let mut read = Reader::new(Layers::default());
    sections(&mut read);
    read.known
}

fn sections(read: &mut Reader) -> Config {
    Config {
        node: node(read),
        http: http(read),
        auth: auth(read),
        store: store(read),
        cluster: cluster(read),
        task_defaults: task_defaults(read),
        http_handler: http_handler(read),
        command_handler: command_handler(read),
        data_log: data_log(read),
        retention: retention(read),
        log: log(read),
        telemetry: telemetry(read),
        dashboard: dashboard(read),
    }
}

impl Reader {
    /// The value of a key, read by `read`, or the default.
    fn key<T>(&mut self, key: &str, default: T, read: impl Fn(&Entry) -> Result<T, String>) -> T {
        self.known.insert(key.to_owned(), std::any::type_name::<T>());
        let Some(entry) = self.layers.take(key) else {
            return default;
        };
        self.origins.insert(key.to_owned(), entry.origin.clone());
        match read(&entry) {
            Ok(value) => value,
            Err(what) => {
                let try_ = match shown::documented(key) {
                    Some(default) => {
                        format!("the default is {default}")
                    }
                    None => "`windrow config default` explains every key".to_owned(),
                };
                self.faults.push(Fault {
                    key: key.to_owned(),
                    origin: entry.origin,
                    what,
                    try_,
                });
                default
            }
        }
    }

    /// A value that serde can read.
    fn value<T: DeserializeOwned>(&mut self, key: &str, default: T) -> T {
        self.key(key, default, |entry| from_value(&entry.value))
    }

    /// A live setting of tasks.
    fn setting<T: table::Value>(&mut self, key: &str, default: T) -> T {
        self.key(key, default, |entry| {
            from_value::<Written<T>>(&entry.value).map(|Written(value)| value)
        })
    }

    /// A value that is a text.
    fn text<T: FromStr<Err: std::fmt::Display>>(&mut self, key: &str, default: T) -> T {
        self.key(key, default, |entry| {
            text_of(entry)?.parse().map_err(|error: T::Err| error.to_string())
        })
    }

    fn span(&mut self, key: &str, default: Duration) -> Duration {
        self.key(key, default, |entry| {
            parse_span(text_of(entry)?).map_err(|error| error.to_string())
        })
    }

    /// A text where "" means none.
    fn optional<T: From<String>>(&mut self, key: &str, default: Option<T>) -> Option<T> {
        self.key(key, default, |entry| {
            let text = text_of(entry)?;
            Ok((!text.is_empty()).then(|| T::from(text.to_owned())))
        })
    }

    fn auto_text(&mut self, key: &str, default: Auto<String>) -> Auto<String> {
        self.key(key, default, |entry| match text_of(entry)? {
            "" => Err("it is empty; write \"auto\" or a name".to_owned()),
            "auto" => Ok(Auto::Auto),
            text => Ok(Auto::Fixed(text.to_owned())),
        })
    }

    /// A list of texts that each must be a `T`.
    fn list<T: FromStr<Err: std::fmt::Display>>(&mut self, key: &str, default: Vec<T>) -> Vec<T> {
        self.key(key, default, |entry| {
            let texts: Vec<String> = from_value(&entry.value)?;
            texts
                .iter()
                .map(|text| text.parse().map_err(|error: T::Err| error.to_string()))
                .collect()
        })
    }

    /// The faults, with one for each key that nobody asked for.
    fn finish(mut self) -> Vec<Fault> {
        for (key, entry) in self.layers.into_rest() {
            let (what, try_) = match (&entry.origin, key.contains('.')) {
                // Other variables of ours have one word, or several: only what a key would become is meant as one.
                (Origin::Env(_), false) => {
                    match self.known.keys().find(|known| known.replace('.', "_") == key) {
                        Some(meant) => (
                            "a variable has two underscores behind its section".to_owned(),
                            env_name(meant),
                        ),
                        None => continue,
                    }
                }
                _ => unknown(&key, &self.known),
            };
            self.faults.push(Fault {
                key,
                origin: entry.origin,
                what,
                try_,
            });
        }
        self.faults
    }
}

fn text_of(entry: &Entry) -> Result<&str, String> {
    entry
        .value
        .as_str()
        .ok_or_else(|| format!("a text in quotes was expected, not {}", entry.value.type_str()))
}

/// The environment holds texts only: one that isn't what was expected as it is may be TOML (`16`, `true`, `["a"]`).
fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    let message = |error: toml::de::Error| error.message().trim().replace('\n', " ");
    let as_is = T::deserialize(value.clone()).map_err(message);
    let Value::String(text) = value else { return as_is };
    as_is.or_else(|error| {
        let literal = format!("v = {text}")
            .parse::<toml::Table>()
            .ok()
            .and_then(|mut table| table.remove("v"));
        literal
            .filter(|literal| !literal.is_str())
            .ok_or(error)
            .and_then(|value| T::deserialize(value).map_err(message))
    })
}

/// What to say of a key that doesn't exist.
fn unknown(key: &str, known: &BTreeMap<String, &'static str>) -> (String, String) {
    if known.keys().any(|other| other.starts_with(&format!("{key}."))) {
        return ("it is a section, not a value".to_owned(), format!("[{key}]"));
    }
    let name = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let likeness = |other: &&String| {
        // The right name in a wrong section is as likely a mistake as a misspelt name.
        strsim::jaro_winkler(key, other).max(0.95 * strsim::jaro_winkler(&name(key), &name(other)))
    };
    let nearest = known.keys().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let advice = match nearest.filter(|other| likeness(other) > 0.8) {
        Some(other) => format!("did you mean {other}?"),
        None => "`windrow config default` lists every key".to_owned(),
    };
    ("there is no such key".to_owned(), advice)
}

fn node(read: &mut Reader) -> Node {
    let default = Node::default();
    Node {
        id: read.auto_text("node.id", default.id),
        data_dir: read.value("node.data_dir", default.data_dir),
        capacity_rate: read.value("node.capacity_rate", default.capacity_rate),
        unlimited_reserves: read.value("node.unlimited_reserves", default.unlimited_reserves),
        allow_unlimited: read.value("node.allow_unlimited", default.allow_unlimited),
        run_tasks: read.value("node.run_tasks", default.run_tasks),
        pools: read.value("node.pools", default.pools),
        drain_timeout: read.span("node.drain_timeout", default.drain_timeout),
        labels: read.value("node.labels", default.labels),
    }
}

fn http(read: &mut Reader) -> Http {
    let default = Http::default();
    Http {
        listen: read.text("http.listen", default.listen),
        advertise: read.auto_text("http.advertise", default.advertise),
        public_url: read.optional("http.public_url", default.public_url),
        tls_cert_file: read.optional("http.tls_cert_file", default.tls_cert_file),
        tls_key_file: read.optional("http.tls_key_file", default.tls_key_file),
        body_limit: read.value("http.body_limit", default.body_limit),
        body_memory: read.value("http.body_memory", default.body_memory),
        upload_limit: read.value("http.upload_limit", default.upload_limit),
        upload_quota: read.value("http.upload_quota", default.upload_quota),
        max_uploads: read.value("http.max_uploads", default.max_uploads),
        max_connections: read.value("http.max_connections", default.max_connections),
        max_connections_per_peer: read
            .value("http.max_connections_per_peer", default.max_connections_per_peer),
        require_idempotency_key: read.value("http.require_idempotency_key", default.require_idempotency_key),
        allowed_hosts: read.value("http.allowed_hosts", default.allowed_hosts),
    }
}

fn auth(read: &mut Reader) -> Auth {
    let default = Auth::default();
    Auth {
        mode: read.text("auth.mode", default.mode),
        bootstrap_token_file: read.optional("auth.bootstrap_token_file", default.bootstrap_token_file),
        proxy_header: read.value("auth.proxy_header", default.proxy_header),
        proxy_trust: read.list("auth.proxy_trust", default.proxy_trust),
        always_token: read.value("auth.always_token", default.always_token),
        key_file: read.optional("auth.key_file", default.key_file),
    }
}

fn store(read: &mut Reader) -> Store {
    let default = Store::default();
    Store {
        url: read.text("store.url", default.url),
        password_file: read.optional("store.password_file", default.password_file),
        max_connections: read.value("store.max_connections", default.max_connections),
        migrate_on_start: read.value("store.migrate_on_start", default.migrate_on_start),
    }
}

fn cluster(read: &mut Reader) -> Cluster {
    let default = Cluster::default();
    Cluster {
        redis_url: read.optional("cluster.redis_url", default.redis_url),
        redis_password_file: read.optional("cluster.redis_password_file", default.redis_password_file),
        redis_ca_file: read.optional("cluster.redis_ca_file", default.redis_ca_file),
        redis_prefix: read.value("cluster.redis_prefix", default.redis_prefix),
        ca_file: read.optional("cluster.ca_file", default.ca_file),
        takeover_without_redis: read.value("cluster.takeover_without_redis", default.takeover_without_redis),
        lease_ttl: read.span("cluster.lease_ttl", default.lease_ttl),
        lease_renew: read.span("cluster.lease_renew", default.lease_renew),
        restore_scan: read.span("cluster.restore_scan", default.restore_scan),
        restore_window: read.span("cluster.restore_window", default.restore_window),
        restore_max: read.value("cluster.restore_max", default.restore_max),
        restore_backoff: read.value("cluster.restore_backoff", default.restore_backoff),
    }
}

fn task_defaults(read: &mut Reader) -> TaskDefaults {
    let default = TaskDefaults::default();
    TaskDefaults {
        tuning: tuning(read, default.tuning),
        shards: read.value("task_defaults.shards", default.shards),
        stop_drain: read.text("task_defaults.stop_drain", default.stop_drain),
        send_params: read.value("task_defaults.send_params", default.send_params),
        max_params: read.value("task_defaults.max_params", default.max_params),
    }
}

macro_rules! read_tuning {
    ($($(#[doc = $about:literal])* $name:ident: $type:ty = $default:tt;)*) => {
        fn tuning(read: &mut Reader, default: Tuning) -> Tuning {
            Tuning { $($name: read.setting(concat!("task_defaults.", stringify!($name)), default.$name),)* }
        }
    };
}
live_settings!(read_tuning);

fn http_handler(read: &mut Reader) -> HttpHandler {
    let default = HttpHandler::default();
    HttpHandler {
        connect_timeout: read.span("handler.http.connect_timeout", default.connect_timeout),
        pool_idle: read.span("handler.http.pool_idle", default.pool_idle),
        http2: read.value("handler.http.http2", default.http2),
        proxy: read.optional("handler.http.proxy", default.proxy),
        ca_file: read.optional("handler.http.ca_file", default.ca_file),
        allow_networks: read.list("handler.http.allow_networks", default.allow_networks),
        deny_networks: read.list("handler.http.deny_networks", default.deny_networks),
        source_networks: read.list("handler.http.source_networks", default.source_networks),
        insecure_skip_verify: read.value("handler.http.insecure_skip_verify", default.insecure_skip_verify),
    }
}

fn command_handler(read: &mut Reader) -> CommandHandler {
    let default = CommandHandler::default();
    CommandHandler {
        enabled: read.value("handler.command.enabled", default.enabled),
        startup_timeout: read.span("handler.command.startup_timeout", default.startup_timeout),
        kill_grace: read.span("handler.command.kill_grace", default.kill_grace),
        max_line: read.value("handler.command.max_line", default.max_line),
        commands: read.value("handler.command.commands", default.commands),
    }
}

fn data_log(read: &mut Reader) -> DataLog {
    let default = DataLog::default();
    DataLog {
        min_level: read.text("data_log.min_level", default.min_level),
        batch: read.value("data_log.batch", default.batch),
        flush: read.span("data_log.flush", default.flush),
        retention: read.span("data_log.retention", default.retention),
        max_per_task: read.value("data_log.max_per_task", default.max_per_task),
    }
}

fn retention(read: &mut Reader) -> Retention {
    let default = Retention::default();
    Retention {
        failures: read.span("retention.failures", default.failures),
        success_detail: read.text("retention.success_detail", default.success_detail),
        tasks: read.span("retention.tasks", default.tasks),
    }
}

fn log(read: &mut Reader) -> Log {
    let default = Log::default();
    Log {
        format: read.text("log.format", default.format),
        filter: read.value("log.filter", default.filter),
        actor_tree: read.text("log.actor_tree", default.actor_tree),
    }
}

fn telemetry(read: &mut Reader) -> Telemetry {
    let default = Telemetry::default();
    Telemetry {
        metrics: read.value("telemetry.metrics", default.metrics),
        otlp_endpoint: read.optional("telemetry.otlp_endpoint", default.otlp_endpoint),
        sample: read.text("telemetry.sample", default.sample),
    }
}

fn dashboard(read: &mut Reader) -> Dashboard {
    let default = Dashboard::default();
    Dashboard {
        enabled: read.value("dashboard.enabled", default.enabled),
        base_path: read.value("dashboard.base_path", default.base_path),
        locale: read.text("dashboard.locale", default.locale),
    }
}
