//! How fast SQLite takes checkpoints, each a durable commit (`synchronous = FULL`): small ones in a row, and large ones
//! full of side records or of log lines. `cargo bench --bench store` prints one line a case; the database lies in the system's
//! temporary directory unless `TMPDIR` says otherwise.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(
    unreachable_pub,
    dead_code,
    reason = "a benchmark exports nothing, and doesn't use all that is shared"
)]

#[path = "shared/smoke.rs"]
mod smoke;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use uuid::Uuid;
use windrow_config::Config;
use windrow_core::ids::{CheckpointSeq, ClaimId, Epoch, ItemCount, ItemIndex, SessionId, ShardId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::items::verdict::{FailingItem, Failure, SideRecord};
use windrow_core::shards::Directives;
use windrow_engine::ports::handling::data_log::{DataLogLine, LogOrigin};
use windrow_engine::ports::handling::handler::{LogLevel, LogLine};
use windrow_engine::ports::ownership::run_store::{
    ClaimOutcome, ClaimRequest, ClaimedShard, ReplyLines, RunStore, ShardCheckpoint,
};
use windrow_engine::ports::ownership::session_store::{NewSession, SessionFace, SessionStore};
use windrow_engine::ports::tasks::store::{Actor, NewTask, TaskCommand, TaskStore};
use windrow_store::sql::Store;

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
    let session = session(&store).await?;
    for _ in 0..100 {
        runs.push(run(&store, session).await?);
    }
    let mut seq = 0;
    for shards in [1, 10, 100] {
        let begun = Instant::now();
        let mut commits = 0_u32;
        while begun.elapsed() < smoke::sized(Duration::from_secs(3), Duration::from_millis(50)) {
            seq += 1;
            let batch: Vec<_> = runs[..shards]
                .iter()
                .map(|run| checkpoint(run, seq, Vec::new()))
                .collect();
            store.checkpoint(&batch).await?;
            commits += 1;
        }
        let each = begun.elapsed() / commits;
        let rate = f64::from(commits) / begun.elapsed().as_secs_f64();
        println!("{shards:>3} shards a commit: {rate:>7.0} commits/s, {each:>10.1?} each");
    }
    let many = smoke::sized(20_000, 2_000);
    for (records, what) in [
        (1000, "parked"),
        (1000, "failed"),
        (many, "parked"),
        (many, "failed"),
    ] {
        seq += 1;
        let first = seq * 100_000;
        let side: Vec<_> = (first..first + records)
            .map(|index| record(what, index))
            .collect();
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
    for lines in [1_000, smoke::sized(10_000, 2_000)] {
        seq += 1;
        let replies = ReplyLines {
            since: CheckpointSeq(seq),
            lines: said(&runs[0], lines),
            dropped: 0,
        };
        let checkpoint = ShardCheckpoint {
            lines: vec![replies],
            ..checkpoint(&runs[0], seq, Vec::new())
        };
        let begun = Instant::now();
        store.checkpoint(&[checkpoint]).await?;
        println!("{lines:>6} log lines of replies     : {:>9.1?}", begun.elapsed());
    }
    Ok(store.close().await?)
}

/// Lines as a handler says them, one an item.
fn said(run: &ClaimedShard, lines: u64) -> Arc<[DataLogLine]> {
    let line = |index: u64| DataLogLine {
        shard: run.shard,
        at: NOW,
        origin: LogOrigin::Business,
        code: None,
        line: LogLine {
            index: Some(ItemIndex(index)),
            level: LogLevel::Info,
            message: format!("user {index} was told on the second device"),
            extra: None,
        },
    };
    (0..lines).map(line).collect()
}

fn record(what: &str, index: u64) -> SideRecord {
    let failure = Failure::new(
        "TIMEOUT",
        "the handler did not answer within 30 s (attempt 3 of 3)",
    );
    let retrying = FailingItem {
        index: ItemIndex(index),
        attempts: 3,
        charged: 3,
        is_unconfirmed: false,
        others_answered: 0,
        failure: Some(failure),
        at: NOW,
        history: Vec::new(),
    };
    match what {
        "parked" => SideRecord::Parked {
            retrying,
            due_at: NOW,
        },
        _ => SideRecord::Failed(retrying),
    }
}

fn checkpoint(run: &ClaimedShard, seq: u64, side: Vec<SideRecord>) -> ShardCheckpoint {
    ShardCheckpoint {
        shard: run.shard,
        epoch: run.epoch,
        claim: run.claim,
        seq: CheckpointSeq(seq),
        watermark: ItemIndex(seq),
        high_water: ItemIndex(seq + 64),
        horizon: ItemIndex(seq + 128),
        counters: Counters {
            succeeded: seq,
            ..Counters::default()
        },
        blob: vec![0xAA; BLOB_BYTES],
        side,
        finish_at: None,
        canary_passed: false,
        told: Directives::default(),
        outage: None,
        lines: Vec::new(),
        results_kept: 0,
        results: Vec::new(),
        close: None,
        now: NOW,
    }
}

/// The life of a node: a name has one at a time.
async fn session(store: &Store) -> Result<SessionId> {
    let (id, lease_duration) = (SessionId(Uuid::new_v4()), Duration::from_secs(15));
    let session = NewSession {
        id,
        node: "n1".to_owned(),
        version: "0".to_owned(),
        lease_duration,
        ckpt_version_max: 1,
        started_at: NOW,
        face: SessionFace::default(),
    };
    store.begin(&session).await?;
    Ok(id)
}

async fn run(store: &Store, session: SessionId) -> Result<ClaimedShard> {
    let actor = Actor {
        name: "bench".to_owned(),
        source: "cli",
        ..Actor::windrow(None)
    }
    .writes();
    store.ensure_business("bench", &actor, NOW).await?;
    let made = store.create(&new_task(), &actor, NOW).await?;
    store.command(made.id, &TaskCommand::Start, &actor, NOW).await?;
    let shard = ShardId { task: made.id, no: 0 };
    let claim = ClaimId(Uuid::new_v4());
    let request = ClaimRequest {
        shard,
        seen: Epoch(0),
        claim,
        session,
        now: NOW,
    };
    match store.claim(request).await? {
        ClaimOutcome::Claimed(run) => Ok(*run),
        ClaimOutcome::Lost | ClaimOutcome::Newer(_) => bail!("a fresh shard was not to be had"),
    }
}

fn new_task() -> NewTask {
    let tuning = Config::default().task_defaults.tuning;
    NewTask::of("bench", ItemCount(1_000_000_000), tuning)
}
