//! How fast SQLite takes checkpoints, each a durable commit (`synchronous = FULL`): small ones in a row, and large ones
//! full of side records. `cargo bench --bench store` prints one line a case; the database lies in the system's
//! temporary directory unless `TMPDIR` says otherwise.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use uuid::Uuid;
use windrow::adapters::sql::Store;
use windrow::domain::counters::Counters;
use windrow::domain::ids::{CheckpointSeq, ClaimId, Epoch, ItemCount, ItemIndex, SessionId, ShardId, WallMs};
use windrow::domain::shards::Told;
use windrow::domain::task::Tuning;
use windrow::domain::verdict::{Failure, ItemTrouble, SideRecord};
use windrow::ports::run_store::{ClaimOutcome, ClaimRequest, ClaimedShard, RunStore, ShardCheckpoint};
use windrow::ports::session_store::{NewSession, SessionFace, SessionStore};
use windrow::ports::task_store::{Actor, NewTask, TaskCommand, TaskStore};

const NOW: WallMs = WallMs(1_790_000_000_000);
/// A bitmap of 8 KiB: a window of 64 Ki items.
const BLOB_BYTES: usize = 8192;

#[tokio::main]
async fn main() -> Result<()> {
    let place = std::env::temp_dir().join(format!("windrow-bench-{}", Uuid::new_v4()));
    std::fs::create_dir_all(&place)?;
    let done = measure(&place).await;
    std::fs::remove_dir_all(&place)?;
    done
}

async fn measure(place: &std::path::Path) -> Result<()> {
    let store = Store::open(&place.join("windrow.db")).await?;
    let mut runs = Vec::new();
    for _ in 0..100 {
        runs.push(run(&store).await?);
    }
    let mut seq = 0;
    for shards in [1, 10, 100] {
        let begun = Instant::now();
        let mut commits = 0_u32;
        while begun.elapsed() < Duration::from_secs(3) {
            seq += 1;
            let batch: Vec<_> = runs[..shards].iter().map(|run| checkpoint(run, seq, Vec::new())).collect();
            store.checkpoint(&batch).await?;
            commits += 1;
        }
        let each = begun.elapsed() / commits;
        let rate = f64::from(commits) / begun.elapsed().as_secs_f64();
        println!("{shards:>3} shards a commit: {rate:>7.0} commits/s, {each:>10.1?} each");
    }
    for (records, what) in [(1000, "parked"), (1000, "abandoned"), (20_000, "parked"), (20_000, "abandoned")]
    {
        seq += 1;
        let first = seq * 100_000;
        let side: Vec<_> = (first..first + records).map(|index| record(what, index)).collect();
        let indexes: Vec<_> = side.iter().map(SideRecord::index).collect();
        let begun = Instant::now();
        store.checkpoint(&[checkpoint(&runs[0], seq, side)]).await?;
        println!("{records:>6} side records, {what:<9}: {:>9.1?}", begun.elapsed());
        seq += 1;
        let cleared = indexes.into_iter().map(SideRecord::Cleared).collect();
        let begun = Instant::now();
        store.checkpoint(&[checkpoint(&runs[0], seq, cleared)]).await?;
        println!("{records:>6} side records, cleared  : {:>9.1?}", begun.elapsed());
    }
    Ok(store.close().await?)
}

fn record(what: &str, index: u64) -> SideRecord {
    let failure = Failure::new("TIMEOUT", "the handler did not answer within 30 s (attempt 3 of 3)");
    let trouble = ItemTrouble {
        index: ItemIndex(index),
        attempts: 3,
        failure: Some(failure),
        at: NOW,
        history: Vec::new(),
    };
    match what {
        "parked" => SideRecord::Parked { trouble, due_at: NOW },
        _ => SideRecord::Abandoned(trouble),
    }
}

fn checkpoint(run: &ClaimedShard, seq: u64, side: Vec<SideRecord>) -> ShardCheckpoint {
    ShardCheckpoint {
        shard: run.shard,
        epoch: run.epoch,
        claim: run.claim,
        seq: CheckpointSeq(seq),
        low_water: ItemIndex(seq),
        high_water: ItemIndex(seq + 64),
        counters: Counters { succeeded: seq, ..Counters::default() },
        blob: vec![0xAA; BLOB_BYTES],
        side,
        finish_at: None,
        canary_passed: false,
        told: Told::default(),
        close: None,
        now: NOW,
    }
}

async fn run(store: &Store) -> Result<ClaimedShard> {
    let actor =
        Actor { name: "bench".to_owned(), source: "cli", reason: None, request_id: None, rehearses: false };
    store.ensure_business("bench", &actor, NOW).await?;
    let made = store.create(&new_task()?, &actor, NOW).await?;
    store.command(made.id, &TaskCommand::Start, &actor, NOW).await?;
    let (id, promise) = (SessionId(Uuid::new_v4()), Duration::from_secs(15));
    let session = NewSession {
        id,
        node: "n1".to_owned(),
        version: "0".to_owned(),
        promise,
        ckpt_version_max: 1,
        started_at: NOW,
        face: SessionFace::default(),
    };
    store.begin(&session).await?;
    let shard = ShardId { task: made.id, no: 0 };
    let claim = ClaimId(Uuid::new_v4());
    let request = ClaimRequest { shard, seen: Epoch(0), claim, session: id, now: NOW };
    match store.claim(request).await? {
        ClaimOutcome::Claimed(run) => Ok(*run),
        ClaimOutcome::Lost | ClaimOutcome::Newer(_) => bail!("a fresh shard was not to be had"),
    }
}

fn new_task() -> Result<NewTask> {
    // As the store keeps settings; the values don't matter here.
    let tuning: Tuning = serde_json::from_str(
        r#"{"rate":"Unlimited","burst":{"Items":4},"concurrency":"Auto","max_concurrency":64,"window":"Auto",
        "batch":1,"batch_linger":"0s","timeout":"30s","max_attempts":3,"backoff":{"first":{"secs":1,"nanos":0},
        "max":{"secs":60,"nanos":0},"factor":2,"jitter_percent":20},"on_exhausted":"Abandon",
        "error_budget":{"failed_attempts":null,"window":{"secs":60,"nanos":0},"abandoned":null},
        "checkpoint_interval":"1s","unsaved_max":"Auto","straggler_after":"1s","park_after":"2s",
        "parked_max":10000,"ordered":false}"#,
    )?;
    Ok(NewTask {
        business: "bench".to_owned(),
        name: None,
        total: ItemCount(1_000_000_000),
        skip_first: ItemIndex(0),
        tuning,
        params: None,
        source: "{}".to_owned(),
        meaning: 0,
        idempotency_key: None,
        labels: std::collections::BTreeMap::new(),
        send_params: true,
        canary: None,
        start_at: None,
        deadline: None,
        parent: None,
        priority: 0,
        shards: windrow::domain::settings::Auto::Fixed(std::num::NonZeroU32::MIN),
    })
}
