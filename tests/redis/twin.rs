//! Redis against the memory twin: the same random calls get the same answers.

use std::sync::Arc;

use uuid::Uuid;
use windrow_core::ids::{ClaimId, ShardId, TaskId};
use windrow_engine::ports::ownership::lease_store::{LeaseKey, LeaseStore};
use windrow_host::clock::SystemClock;
use windrow_memory::MemoryLeases;

use crate::fixture::{LONG, Node, options};
use crate::servers::Redis;

const SHARDS: u64 = 6;
const CLAIMS: u64 = 4;
const STEPS: usize = 600;

/// SplitMix64: enough for dice, and the same everywhere.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }

    fn keys(&mut self) -> Vec<LeaseKey> {
        (0..self.roll(5)).map(|_| self.key()).collect()
    }

    fn key(&mut self) -> LeaseKey {
        let shard = ShardId {
            task: TaskId(1),
            no: self.roll(SHARDS) as u32,
        };
        LeaseKey {
            shard,
            claim: ClaimId(Uuid::from_u128(u128::from(self.roll(CLAIMS)) + 1)),
        }
    }
}

/// Quarantines end at times that two clocks don't share, so a loss closes for longer than the test takes.
#[tokio::test]
async fn redis_and_its_twin_say_the_same() {
    let server = Redis::start();
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| Uuid::new_v4().as_u64_pair().0);
    println!("seed {seed}: repeat with SEED={seed}");
    let mut dice = Dice(seed);
    for round in 0..3 {
        let mut options = options(&server.url());
        options.store.0 = format!("round{round}");
        let node = Node::open_for(options, LONG).await;
        let redis = node.leases();
        let memory = MemoryLeases::new(Arc::new(SystemClock::new()));
        for step in 0..STEPS {
            let keys = dice.keys();
            let told = format!("seed {seed}, round {round}, step {step}, {keys:?}");
            match dice.roll(100) {
                0..40 => assert_eq!(
                    redis.acquire(&keys, LONG).await.unwrap(),
                    memory.acquire(&keys, LONG).await.unwrap(),
                    "acquire: {told}"
                ),
                40..70 => {
                    let reassert = dice.roll(2) == 0;
                    assert_eq!(
                        redis.renew(&keys, LONG, reassert).await.unwrap(),
                        memory.renew(&keys, LONG, reassert).await.unwrap(),
                        "renew, {reassert}: {told}"
                    );
                }
                70..99 => {
                    redis.release(&keys).await.unwrap();
                    memory.release(&keys).await.unwrap();
                }
                _ if step > STEPS / 2 => {
                    server.cli(&["FLUSHALL"]);
                    memory.wipe();
                    // The same call begins the quarantine on both sides, before the watch's short one could.
                    let keys = [dice.key()];
                    assert_eq!(
                        redis.acquire(&keys, LONG).await.unwrap(),
                        memory.acquire(&keys, LONG).await.unwrap(),
                        "after a loss: {told}"
                    );
                }
                _ => {}
            }
        }
    }
}
