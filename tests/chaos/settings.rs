//! What a cluster is made of, and where a run of the script says so.

use std::fmt;
use std::path::PathBuf;
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
    /// Where everything is kept that a round leaves; none: nowhere.
    pub(crate) keep: Option<PathBuf>,
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let witness = if self.has_redis { "Redis" } else { "the database alone" };
        let (nodes, store, ttl) = (self.nodes, self.store, self.ttl);
        write!(f, "{nodes} nodes, {store:?}, {witness}, lease_ttl {ttl:?}, {} shards", self.shards)
    }
}

impl Settings {
    /// Three nodes.
    pub(crate) fn new(store: StoreKind, has_redis: bool) -> Settings {
        let (nodes, shards) = if store == StoreKind::Sqlite { (1, 1) } else { (3, 1) };
        let ttl = Duration::from_secs(3);
        Settings { store, has_redis, nodes, shards, ttl, rate: 250, items: 2_500, keep: None }
    }

    /// A directory, and what removes it.
    pub(crate) fn place(&self) -> (PathBuf, Option<tempfile::TempDir>) {
        match &self.keep {
            Some(path) => {
                let path = path.join(format!("cluster-{}", std::process::id()));
                std::fs::create_dir_all(&path).expect("a directory to keep things in");
                (path, None)
            }
            None => {
                let place = tempfile::Builder::new().prefix("windrow-chaos").tempdir().expect("a directory");
                (place.path().to_owned(), Some(place))
            }
        }
    }
}
