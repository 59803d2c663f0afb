//! The lease store over Redis: three scripts, each for up to 500 leases in one round trip.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use redis::Value;
use tokio::runtime::Handle;

use super::link::{Link, Request, ScriptText};
use super::{RedisOptions, millis};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::lease_store::{LeaseKey, LeaseReply, LeaseStore};

/// Leases of one script call: well under a millisecond of the one thread that Redis has for everybody.
const BATCH: usize = 500;
/// How long nothing may be asked before it is looked whether Redis is there.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// See the module. The caller's clock counts a lease from before the request was sent.
pub struct RedisLeases {
    link: Arc<Link>,
    options: Arc<RedisOptions>,
    /// The keys of the generation and of the quarantine.
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

    /// Looks whether Redis answers and does what leases need; a loss of its data is noticed here too.
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

    /// One batch of a script that guards the generation.
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
            .ok_or_else(|| {
                StoreError::Unavailable("Redis answered a script of ours with something else".to_owned())
            })
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

/// Looks now and then whether Redis is there, for as long as somebody has the leases.
pub(super) fn watch(leases: &Arc<RedisLeases>, runtime: &Handle) {
    let leases: Weak<RedisLeases> = Arc::downgrade(leases);
    runtime.spawn(async move {
        let mut is_first = true;
        while let Some(leases) = leases.upgrade() {
            if std::mem::take(&mut is_first) || leases.link.silence() >= LOOK_EVERY {
                // The link has said what there is to say.
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
