//! Lease store over Redis: three scripts, each handling up to 500 leases per round trip.

use std::sync::{Arc, Weak};
use std::time::Duration;
use windrow_words::store as say;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use redis::Value;
use tokio::runtime::Handle;

use super::link::{Link, Request, ScriptText};
use super::{RedisOptions, millis};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::lease_store::{LeaseKey, LeaseReply, LeaseStore};

/// Leases per script call, which takes well under a millisecond of Redis' only thread.
const BATCH: usize = 500;
/// Idle time after which Redis is checked.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Leases of this store in Redis. On the caller's clock, a lease counts from before the request was sent.
pub struct RedisLeases {
    link: Arc<Link>,
    options: Arc<RedisOptions>,
    /// Keys of the generation and the quarantine, passed to every guarded script.
    guards: [String; 2],
    acquire: Arc<ScriptText>,
    renew: Arc<ScriptText>,
    release: Arc<ScriptText>,
}

impl RedisLeases {
    pub(super) fn new(link: Arc<Link>, options: Arc<RedisOptions>) -> RedisLeases {
        let guarded = |body: &str| ScriptText::new(format!("{}{body}", include_str!("generation.lua")));
        RedisLeases {
            guards: [options.key("generation"), options.key("quarantine")],
            acquire: guarded(include_str!("acquire.lua")),
            renew: guarded(include_str!("renew.lua")),
            release: ScriptText::new(include_str!("release.lua").to_owned()),
            link,
            options,
        }
    }

    /// Checks that Redis answers and supports what leases need. Also detects a loss of its data.
    ///
    /// # Errors
    /// `Unavailable`, with the reason.
    pub async fn look(&self) -> Result<(), StoreError> {
        let arguments = vec![millis(self.options.lease_ttl)];
        self.ask(&self.acquire, self.guards.to_vec(), arguments)
            .await
            .map(|_| ())
    }

    fn lease(&self, key: &LeaseKey) -> String {
        self.options.key(&format!("lease:{}", key.shard))
    }

    async fn ask(
        &self,
        script: &Arc<ScriptText>,
        keys: Vec<String>,
        arguments: Vec<String>,
    ) -> Result<Value, StoreError> {
        let asked_at = self.link.clock().now();
        let answer = self
            .link
            .call(Request::Script {
                script: script.clone(),
                keys,
                arguments,
            })
            .await;
        self.link
            .meters()
            .lease_trip(self.link.clock().now().since(asked_at), answer.is_ok());
        answer
    }

    /// Runs a script that guards the generation, for one batch of leases.
    async fn guarded(
        &self,
        script: &Arc<ScriptText>,
        leases: &[LeaseKey],
        head: &[String],
    ) -> Result<Vec<LeaseReply>, StoreError> {
        let keys = self
            .guards
            .iter()
            .cloned()
            .chain(leases.iter().map(|key| self.lease(key)))
            .collect();
        let arguments = head.iter().cloned().chain(leases.iter().map(token)).collect();
        let answer = self.ask(script, keys, arguments).await?;
        replies(&answer)
            .filter(|replies| replies.len() == leases.len())
            .ok_or_else(|| StoreError::Unavailable(say::redis_strange().to_string()))
    }
}

#[async_trait]
impl LeaseStore for RedisLeases {
    async fn acquire(&self, keys: &[LeaseKey], ttl: Duration) -> Result<Vec<LeaseReply>, StoreError> {
        let head = [millis(ttl)];
        let batches = keys
            .chunks(BATCH)
            .map(|batch| self.guarded(&self.acquire, batch, &head));
        Ok(try_join_all(batches).await?.concat())
    }

    async fn renew(
        &self,
        keys: &[LeaseKey],
        ttl: Duration,
        reassert: bool,
    ) -> Result<Vec<LeaseReply>, StoreError> {
        let head = [millis(ttl), u8::from(reassert).to_string()];
        let batches = keys
            .chunks(BATCH)
            .map(|batch| self.guarded(&self.renew, batch, &head));
        Ok(try_join_all(batches).await?.concat())
    }

    async fn release(&self, keys: &[LeaseKey]) -> Result<(), StoreError> {
        let batches = keys.chunks(BATCH).map(|batch| {
            let leases = batch.iter().map(|key| self.lease(key)).collect();
            self.ask(&self.release, leases, batch.iter().map(token).collect())
        });
        try_join_all(batches).await.map(|_| ())
    }
}

/// Spawns a task that checks Redis whenever the link is idle, until the leases are dropped.
pub(super) fn watch(leases: &Arc<RedisLeases>, runtime: &Handle) {
    let leases: Weak<RedisLeases> = Arc::downgrade(leases);
    runtime.spawn(async move {
        let mut is_first = true;
        while let Some(leases) = leases.upgrade() {
            if std::mem::take(&mut is_first) || leases.link.silence() >= LOOK_EVERY {
                // The link has already logged the outcome.
                leases.look().await.ok();
            }
            drop(leases);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
}

fn token(key: &LeaseKey) -> String {
    key.claim.0.simple().to_string()
}

fn replies(answer: &Value) -> Option<Vec<LeaseReply>> {
    let Value::Array(said) = answer else { return None };
    let reply = |value: &Value| match value {
        Value::Int(0) => Some(LeaseReply::Lost),
        Value::Int(1) => Some(LeaseReply::Held),
        Value::Int(2) => Some(LeaseReply::Absent),
        _ => None,
    };
    said.iter().map(reply).collect()
}
