//! Leases and hints in Redis: a second witness of ownership, and a faster way to say "look at that row". Never an
//! authority: data that is lost, late or forged here costs time, not safety (`docs/decisions/0019-redis.md`).
//!
//! Keys and channel carry `cluster.redis_prefix` and the store id, so clusters can share a server:
//!
//! | name | what |
//! |---|---|
//! | `windrow:{a1b2c3}:lease:t42.0` | the claim id of who holds the shard; expires |
//! | `windrow:{a1b2c3}:generation` | the run id of the server that the leases were made on |
//! | `windrow:{a1b2c3}:quarantine` | no lease is given anew while it is there; expires |
//! | `windrow:{a1b2c3}:hints` | the channel |
//!
//! The hash tag keeps all of them in one slot of a cluster: a script touches many leases and the generation at once,
//! and one server decides for all of them whether data was lost.
//!
//! Required permissions: `ACL SETUSER windrow on >secret ~windrow:* &windrow:* +evalsha +eval +get +set +del +exists
//! +info +publish +subscribe +ping` (`+select` for a database other than 0). Everything works without `+info`, but a
//! failover or a restart from disk is then not seen as a loss. Sentinels receive `SENTINEL get-master-addr-by-name`.
//! `KEYS`, `CONFIG`, `FLUSH…` and `SCRIPT` are never used.

mod fault;
mod hint_text;
mod hints;
mod leases;
mod link;
mod locate;
mod sink;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use windrow_words::{Message, store as say};

use tokio::runtime::Handle;

pub use hints::RedisHints;
pub use leases::RedisLeases;
pub use sink::{Begun, CopyPlace, Finished, RedisSink};

use self::link::{Link, Manner};
use self::locate::Servers;
use windrow_config::{Cluster, Datasets, RedisUrl};
use windrow_core::ids::{ClaimId, ShardId, StoreId, TaskId};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::meters::Meters;
use windrow_engine::ports::ownership::lease_store::{LeaseKey, LeaseStore};

/// Lease that nobody can hold: there is no task 0.
const NOBODYS: LeaseKey = LeaseKey {
    shard: ShardId {
        task: TaskId(0),
        no: 0,
    },
    claim: ClaimId(uuid::Uuid::nil()),
};

/// Configuration section that names a Redis, and the uses of that Redis, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    name: &'static str,
    uses: fn() -> Message,
}

impl Section {
    /// Section of the nodes' Redis, for leases and hints.
    pub const CLUSTER: Section = Section {
        name: "cluster",
        uses: say::uses_cluster,
    };
    /// Section of the readers' Redis, for copies of datasets.
    pub const READERS: Section = Section {
        name: "datasets",
        uses: say::uses_readers,
    };
}

/// Address of a Redis and the settings to use it.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// Configuration section these options come from.
    pub section: Section,
    /// Servers, user, database and TLS, from the URL.
    pub url: RedisUrl,
    /// File with the user's password; read again for each connection.
    pub password_file: Option<PathBuf>,
    /// File with the trusted certificate authorities; `None` trusts the system's.
    pub ca_file: Option<PathBuf>,
    /// First part of every key.
    pub prefix: String,
    /// Second part of every key, in the hash tag.
    pub store: StoreId,
    /// Time to live of a lease; zero for readers, who hold none.
    pub lease_ttl: Duration,
    /// Consequence of losing this Redis, for the log; empty for readers.
    pub when_lost: String,
}

impl RedisOptions {
    /// Reads the options for nodes; `None` if `cluster` names no Redis.
    ///
    /// # Errors
    /// `Refused` if the URL cannot be parsed.
    pub fn of(cluster: &Cluster, store: StoreId) -> Result<Option<RedisOptions>, StoreError> {
        let Some(url) = &cluster.redis_url else {
            return Ok(None);
        };
        let url = RedisUrl::parse(url)
            .map_err(|fault| StoreError::Refused(say::bad_setting("cluster.redis_url", fault).to_string()))?;
        Ok(Some(RedisOptions {
            section: Section::CLUSTER,
            url,
            password_file: cluster.redis_password_file.clone(),
            ca_file: cluster.redis_ca_file.clone(),
            prefix: cluster.redis_prefix.clone(),
            store,
            lease_ttl: cluster.lease_ttl,
            when_lost: cluster.without_redis(say::this_node().english()),
        }))
    }

    /// Reads the options for readers; `None` if `datasets` names no Redis.
    ///
    /// # Errors
    /// `Refused` if the URL cannot be parsed.
    pub fn of_readers(datasets: &Datasets, store: StoreId) -> Result<Option<RedisOptions>, StoreError> {
        let Some(url) = &datasets.redis_url else {
            return Ok(None);
        };
        let url = RedisUrl::parse(url).map_err(|fault| {
            StoreError::Refused(say::bad_setting("datasets.redis_url", fault).to_string())
        })?;
        Ok(Some(RedisOptions {
            section: Section::READERS,
            url,
            password_file: datasets.redis_password_file.clone(),
            ca_file: datasets.redis_ca_file.clone(),
            prefix: datasets.redis_prefix.clone(),
            store,
            lease_ttl: Duration::ZERO,
            // The copier reports losses itself.
            when_lost: String::new(),
        }))
    }

    fn key(&self, rest: &str) -> String {
        format!("{}:{{{}}}:{rest}", self.prefix, self.store.0)
    }
}

/// Redis as a node uses it: one connection for leases and outgoing hints, one to listen on.
pub struct Redis {
    /// Lease store, also used to check the connection.
    pub leases: Arc<RedisLeases>,
    /// Hints to and from other nodes.
    pub hints: Arc<RedisHints>,
}

impl Redis {
    /// Starts using Redis; its tasks run on `vital` until both parts are dropped. An unreachable Redis is not an
    /// error: it is retried from now on.
    pub fn open(options: RedisOptions, clock: Arc<dyn Clock>, meters: Arc<Meters>, vital: &Handle) -> Redis {
        let options = Arc::new(options);
        let servers = Arc::new(Servers::new(options.clone()));
        let link = Link::new(
            (servers.clone(), Manner::WITNESS),
            clock,
            meters.clone(),
            vital.clone(),
        );
        let leases = Arc::new(RedisLeases::new(link.clone(), options.clone()));
        leases::watch(&leases, vital);
        let hints = Arc::new(RedisHints::open(
            servers,
            link,
            options.key("hints"),
            meters,
            vital,
        ));
        Redis { leases, hints }
    }

    /// Checks once that Redis is reachable and lets its user run a lease script; changes nothing.
    ///
    /// # Errors
    /// `Unavailable`, with the reason.
    pub async fn reach(options: RedisOptions, clock: Arc<dyn Clock>) -> Result<(), StoreError> {
        let options = Arc::new(options);
        let servers = Arc::new(Servers::new(options.clone()));
        let link = Link::new(
            (servers, Manner::WITNESS),
            clock,
            Arc::default(),
            Handle::current(),
        );
        RedisLeases::new(link, options).release(&[NOBODYS]).await
    }
}

/// Formats a time to live in milliseconds, at least 1, since Redis rejects 0.
fn millis(ttl: Duration) -> String {
    ttl.as_millis().max(1).to_string()
}
