//! Opening leases and hints over a server, and waiting for what happens some time.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use uuid::Uuid;
use windrow_config::RedisUrl;
use windrow_core::ids::{ClaimId, ShardId, StoreId, TaskId};
use windrow_engine::ports::handling::meters::Meters;
use windrow_engine::ports::ownership::lease_store::{LeaseKey, LeaseReply, LeaseStore};
use windrow_host::clock::SystemClock;
use windrow_store::redis::{Redis, RedisOptions, Section};

/// Longer than any test: what must not run out meanwhile.
pub const LONG: Duration = Duration::from_secs(600);
/// How long "some time" may be on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn options(url: &str) -> RedisOptions {
    RedisOptions {
        section: Section::CLUSTER,
        url: RedisUrl::parse(url).expect("a URL"),
        password_file: None,
        ca_file: None,
        prefix: "windrow".to_owned(),
        store: StoreId("a1b2c3".to_owned()),
        lease_ttl: Duration::from_millis(50),
        when_lost: String::new(),
    }
}

/// A node's part of Redis.
pub struct Node {
    pub redis: Redis,
    pub meters: Arc<Meters>,
}

impl Node {
    /// Opens it and goes on whether or not it answers.
    pub fn begin(options: RedisOptions) -> Node {
        let meters = Arc::<Meters>::default();
        let clock = Arc::new(SystemClock::new());
        Node {
            redis: Redis::open(options, clock, meters.clone(), &Handle::current()),
            meters,
        }
    }

    /// Opens it, and waits until leases are given. After the next loss they are not for this long, whoever notices it.
    pub async fn open_for(options: RedisOptions, lease_ttl: Duration) -> Node {
        settle(&*Node::begin(options.clone()).redis.leases).await;
        Node::begin(RedisOptions { lease_ttl, ..options })
    }

    /// The same with the time that the tests of losses await.
    pub async fn open(options: RedisOptions) -> Node {
        Node::open_for(options, Duration::from_secs(3)).await
    }

    pub fn leases(&self) -> Arc<dyn LeaseStore> {
        self.redis.leases.clone()
    }
}

/// Waits until leases are given (a new server may have lost its data, as far as anybody knows).
pub async fn settle(leases: &dyn LeaseStore) {
    eventually("leases are given", async || {
        let probe = [key(u32::MAX)];
        let short = Duration::from_millis(50);
        let held = leases
            .acquire(&probe, short)
            .await
            .is_ok_and(|said| said == [LeaseReply::Held]);
        if held {
            leases.release(&probe).await.is_ok()
        } else {
            false
        }
    })
    .await;
}

/// A lease of a shard under a claim of its own.
pub fn key(no: u32) -> LeaseKey {
    LeaseKey {
        shard: ShardId { task: TaskId(7), no },
        claim: ClaimId(Uuid::new_v4()),
    }
}

/// The same shard under another claim.
pub fn rival(key: LeaseKey) -> LeaseKey {
    LeaseKey {
        claim: ClaimId(Uuid::new_v4()),
        ..key
    }
}

pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = tokio::time::Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
