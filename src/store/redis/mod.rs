//! Leases and hints in Redis: a second witness of ownership, and a faster way to say "look at that row". Never an
//! authority: whatever is lost, late or forged here costs time, not safety (`docs/decisions/0019-redis.md`).
//!
//! Keys and the channel, with `cluster.redis_prefix` and the id of the store, so that clusters can share a server:
//!
//! | name | what |
//! |---|---|
//! | `windrow:{a1b2c3}:lease:t42.0` | the claim id of who holds the shard; expires |
//! | `windrow:{a1b2c3}:generation` | the run id of the server that the leases were made on |
//! | `windrow:{a1b2c3}:quarantine` | no lease is given anew while it is there; expires |
//! | `windrow:{a1b2c3}:hints` | the channel |
//!
//! The hash tag puts all of them into one slot of a cluster: a script touches many leases and the generation at once,
//! and one server says for all of them whether data was lost.
//!
//! What a user needs: `ACL SETUSER windrow on >secret ~windrow:* &windrow:* +evalsha +eval +get +set +del +exists +info
//! +publish +subscribe +ping` (`+select` for another database than 0). Without `+info` everything works, but a failover or
//! a restart from disk is taken for no loss. Sentinels are asked `SENTINEL get-master-addr-by-name`. `KEYS`, `CONFIG`,
//! `FLUSH…` and `SCRIPT` are never used.

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

/// A lease that nobody ever has: there is no task 0.
const NOBODYS: LeaseKey = LeaseKey {
    shard: ShardId {
        task: TaskId(0),
        no: 0,
    },
    claim: ClaimId(uuid::Uuid::nil()),
};

/// Which section of the configuration names a Redis, and what for: for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    name: &'static str,
    uses: &'static str,
}

impl Section {
    /// That of nodes among themselves.
    pub const CLUSTER: Section = Section {
        name: "cluster",
        uses: "leases and hints",
    };
    /// That of readers.
    pub const READERS: Section = Section {
        name: "datasets",
        uses: "copies of datasets",
    };
}

/// Where Redis is and how it is used.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// For whom it is.
    pub section: Section,
    /// Where.
    pub url: RedisUrl,
    /// The file that holds the user's password; read again for each connection.
    pub password_file: Option<PathBuf>,
    /// The authorities that are trusted; none trusts the system's.
    pub ca_file: Option<PathBuf>,
    /// The first part of keys.
    pub prefix: String,
    /// The second part of keys.
    pub store: StoreId,
    /// How long leases last.
    pub lease_ttl: Duration,
    /// What it means that it is lost, for the log.
    pub when_lost: String,
}

impl RedisOptions {
    /// From the configuration; none where it names no Redis.
    ///
    /// # Errors
    /// `Refused` when the URL can't be read.
    pub fn of(cluster: &Cluster, store: StoreId) -> Result<Option<RedisOptions>, StoreError> {
        let Some(url) = &cluster.redis_url else {
            return Ok(None);
        };
        let url = RedisUrl::parse(url)
            .map_err(|fault| StoreError::Refused(format!("cluster.redis_url: {fault}")))?;
        Ok(Some(RedisOptions {
            section: Section::CLUSTER,
            url,
            password_file: cluster.redis_password_file.clone(),
            ca_file: cluster.redis_ca_file.clone(),
            prefix: cluster.redis_prefix.clone(),
            store,
            lease_ttl: cluster.lease_ttl,
            when_lost: cluster.without_redis("this node takes"),
        }))
    }

    /// The Redis of readers; none where the configuration names none.
    ///
    /// # Errors
    /// `Refused` when the URL can't be read.
    pub fn of_readers(datasets: &Datasets, store: StoreId) -> Result<Option<RedisOptions>, StoreError> {
        let Some(url) = &datasets.redis_url else {
            return Ok(None);
        };
        let url = RedisUrl::parse(url)
            .map_err(|fault| StoreError::Refused(format!("datasets.redis_url: {fault}")))?;
        Ok(Some(RedisOptions {
            section: Section::READERS,
            url,
            password_file: datasets.redis_password_file.clone(),
            ca_file: datasets.redis_ca_file.clone(),
            prefix: datasets.redis_prefix.clone(),
            store,
            lease_ttl: Duration::ZERO,
            // Whoever copies tells what is lost.
            when_lost: String::new(),
        }))
    }

    fn key(&self, rest: &str) -> String {
        format!("{}:{{{}}}:{rest}", self.prefix, self.store.0)
    }
}

/// Redis as a node uses it: one connection for leases and for what is sent, one to hear by.
pub struct Redis {
    /// The leases.
    pub leases: Arc<RedisLeases>,
    /// The hints.
    pub hints: Arc<RedisHints>,
}

impl Redis {
    /// Begins to use it; its tasks run on `vital` until both parts are dropped. A Redis that can't be reached is no error:
    /// it is looked for from now on.
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

    /// Looks once whether it can be reached and lets its user ask for leases; nothing is changed there.
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

/// A time to live, as Redis reads it; it takes none of 0.
fn millis(ttl: Duration) -> String {
    ttl.as_millis().max(1).to_string()
}
