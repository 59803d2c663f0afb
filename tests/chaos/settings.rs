//! What a cluster is made of, and where a run of the script says so.

use std::fmt;
use std::time::Duration;

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Sqlite,
    Postgres,
    Mariadb,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) store: StoreKind,
    pub(crate) has_redis: bool,
    pub(crate) nodes: usize,
    pub(crate) shards: u32,
    pub(crate) ttl: Duration,
    /// Items per second of a task, and how many it has.
    pub(crate) rate: u64,
    pub(crate) items: u64,
    /// How long each message to or from the database is under way.
    pub(crate) database_latency: Duration,
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let witness = if self.has_redis {
            "Redis"
        } else {
            "the database alone"
        };
        let (nodes, store, ttl) = (self.nodes, self.store, self.ttl);
        write!(
            f,
            "{nodes} nodes, {store:?}, {witness}, lease_ttl {ttl:?}, {} shards",
            self.shards
        )
    }
}

impl Settings {
    /// Three nodes.
    pub(crate) fn new(store: StoreKind, has_redis: bool) -> Settings {
        let (nodes, shards) = if store == StoreKind::Sqlite {
            (1, 1)
        } else {
            (3, 1)
        };
        let ttl = Duration::from_secs(3);
        Settings {
            store,
            has_redis,
            nodes,
            shards,
            ttl,
            rate: 250,
            items: 2_500,
            database_latency: Duration::ZERO,
        }
    }

    /// What may leave at once. Unit: items.
    pub(crate) fn burst(&self) -> u64 {
        (self.rate / 10).max(40)
    }

    /// The same in the words of the script.
    pub(crate) fn flags(&self) -> String {
        let store = format!("{:?}", self.store).to_lowercase();
        let witness = if self.has_redis { "redis" } else { "database" };
        format!(
            "--store {store} --witness {witness} --nodes {} --shards {} --rate {} --items {}",
            self.nodes, self.shards, self.rate, self.items
        )
    }

    /// As the script says, through the environment.
    pub(crate) fn wanted() -> Settings {
        let store = match text("STORE").as_deref() {
            None | Some("postgres") => StoreKind::Postgres,
            Some("mariadb") => StoreKind::Mariadb,
            Some("sqlite") => StoreKind::Sqlite,
            Some(other) => panic!("no store is named {other}; there are postgres, mariadb and sqlite"),
        };
        let has_redis = match text("WITNESS").as_deref() {
            None | Some("redis") => store != StoreKind::Sqlite,
            Some("database") => false,
            Some(other) => panic!("no witness is named {other}; there are redis and database"),
        };
        let mut settings = Settings::new(store, has_redis);
        settings.nodes = number("NODES").map_or(settings.nodes, |nodes| usize::try_from(nodes).expect("few"));
        settings.shards = number("SHARDS").map_or(1, |shards| u32::try_from(shards).expect("few"));
        settings.ttl = number("TTL_MS").map_or(settings.ttl, Duration::from_millis);
        settings.rate = number("RATE").unwrap_or(settings.rate);
        settings.items = number("ITEMS").unwrap_or(settings.items);
        settings.database_latency = Duration::from_millis(number("DB_RTT_MS").unwrap_or(0)) / 2;
        settings
    }
}

/// What the script says under `CHAOS_…`.
#[expect(
    clippy::disallowed_methods,
    reason = "the script speaks through the environment"
)]
pub(crate) fn text(name: &str) -> Option<String> {
    std::env::var(format!("CHAOS_{name}"))
        .ok()
        .filter(|text| !text.is_empty())
}

/// The same as a number.
pub(crate) fn number(name: &str) -> Option<u64> {
    text(name).map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("CHAOS_{name}={text} is no number"))
    })
}
