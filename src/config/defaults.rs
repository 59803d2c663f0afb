//! The defaults. `config.toml` repeats them with their reasons, and a test compares the two.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::sections::{
    Auth, Cluster, CommandHandler, Dashboard, DataLog, Http, HttpHandler, Log, Node, Retention, Store,
    TaskDefaults, Telemetry,
};
use super::values::{
    ActorTree, AuthMode, DataLogLevel, Locale, LogFormat, Share, StopDrain, StoreUrl, SuccessDetail,
};
use windrow_core::settings::Auto;
use windrow_core::settings::text::ByteSize;
use windrow_core::task::Tuning;

const DAY: Duration = Duration::from_secs(86_400);

/// A default in the words of `config.toml`.
fn written<T: FromStr>(text: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    text.parse()
        .expect("a default is sound; a test builds all of them")
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("a default number is not 0")
}

impl Default for Node {
    fn default() -> Node {
        Node {
            id: Auto::Auto,
            data_dir: PathBuf::from("/var/lib/windrow"),
            capacity_rate: written("2000/s"),
            unlimited_reserves: written("1000/s"),
            allow_unlimited: false,
            run_tasks: true,
            pools: vec!["default".to_owned()],
            drain_timeout: seconds(30),
            labels: BTreeMap::new(),
        }
    }
}

impl Default for Http {
    fn default() -> Http {
        Http {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7700)),
            advertise: Auto::Auto,
            public_url: None,
            tls_cert_file: None,
            tls_key_file: None,
            body_limit: ByteSize(16 << 20),
            body_memory: ByteSize(64 << 20),
            upload_limit: ByteSize(20 << 30),
            upload_quota: ByteSize(50 << 30),
            max_uploads: number(16),
            max_connections: number(1024),
            max_connections_per_peer: Auto::Auto,
            require_idempotency_key: false,
            allowed_hosts: Vec::new(),
        }
    }
}

impl Default for Auth {
    fn default() -> Auth {
        Auth {
            mode: AuthMode::Token,
            bootstrap_token_file: Some(PathBuf::from("/etc/windrow/admin.token")),
            proxy_header: "X-Forwarded-User".to_owned(),
            proxy_trust: vec![written("127.0.0.1/32")],
            always_token: false,
            key_file: None,
        }
    }
}

impl Default for Store {
    fn default() -> Store {
        Store {
            url: StoreUrl::Auto,
            password_file: None,
            max_connections: number(16),
            migrate_on_start: false,
        }
    }
}

impl Default for Cluster {
    fn default() -> Cluster {
        Cluster {
            redis_url: None,
            redis_password_file: None,
            redis_ca_file: None,
            redis_prefix: "windrow".to_owned(),
            ca_file: None,
            takeover_without_redis: false,
            lease_ttl: seconds(15),
            lease_renew: seconds(3),
            restore_scan: seconds(1),
            restore_window: 30 * DAY,
            restore_max: 10,
            restore_backoff: written("15s..10m x2 jitter 20%"),
        }
    }
}

impl Default for TaskDefaults {
    fn default() -> TaskDefaults {
        TaskDefaults {
            tuning: Tuning::default(),
            shards: Auto::Fixed(number(1)),
            stop_drain: StopDrain::Timeout,
            send_params: true,
            max_params: ByteSize(64 << 10),
        }
    }
}

impl Default for HttpHandler {
    fn default() -> HttpHandler {
        HttpHandler {
            connect_timeout: seconds(2),
            pool_idle: seconds(90),
            http2: true,
            proxy: None,
            ca_file: None,
            allow_networks: Vec::new(),
            deny_networks: vec![written("169.254.0.0/16"), written("fe80::/10")],
            source_networks: Vec::new(),
            insecure_skip_verify: false,
        }
    }
}

impl Default for CommandHandler {
    fn default() -> CommandHandler {
        CommandHandler {
            enabled: false,
            startup_timeout: seconds(10),
            kill_grace: seconds(10),
            max_line: ByteSize(1 << 20),
            commands: BTreeMap::new(),
        }
    }
}

impl Default for DataLog {
    fn default() -> DataLog {
        DataLog {
            min_level: DataLogLevel::Info,
            batch: number(200),
            flush: seconds(1),
            retention: 30 * DAY,
            max_per_task: 5_000_000,
        }
    }
}

impl Default for Retention {
    fn default() -> Retention {
        Retention {
            failures: 90 * DAY,
            success_detail: SuccessDetail::None,
            tasks: 365 * DAY,
        }
    }
}

impl Default for Log {
    fn default() -> Log {
        Log {
            format: LogFormat::Auto,
            filter: "info".to_owned(),
            actor_tree: ActorTree {
                start: true,
                restart: true,
                stop: true,
            },
        }
    }
}

impl Default for Telemetry {
    fn default() -> Telemetry {
        Telemetry {
            metrics: true,
            otlp_endpoint: None,
            sample: Share { ppm: 10_000 },
        }
    }
}

impl Default for Dashboard {
    fn default() -> Dashboard {
        Dashboard {
            enabled: true,
            base_path: "/".to_owned(),
            locale: Locale::Auto,
        }
    }
}
