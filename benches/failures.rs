//! A million failures in SQLite: how long groups, pages, a redrive and its first block take. Each must be within 300 ms.
//! `cargo bench --bench failures` seeds them through checkpoints and prints one line a case; it fails where one is late.

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

use anyhow::{Result, bail, ensure};
use uuid::Uuid;
use windrow_config::Config;
use windrow_core::ids::{
    CheckpointSeq, ClaimId, Epoch, ItemCount, ItemIndex, SessionId, ShardId, TaskId, WallMs,
};
use windrow_core::items::counters::Counters;
use windrow_core::items::verdict::{FailingItem, Failure, SideRecord};
use windrow_core::shards::Directives;
use windrow_engine::ports::ownership::run_store::{
    ClaimOutcome, ClaimRequest, ClaimedShard, RunStore, ShardCheckpoint,
};
use windrow_engine::ports::ownership::session_store::{NewSession, SessionFace, SessionStore};
use windrow_engine::ports::sources::resolver::{
    RedrivePart, RedriveSpec, Sender, SourceRequest, SourceResolver,
};
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::tasks::failure_list::{FailureList, FailurePage};
use windrow_engine::ports::tasks::store::{Actor, NewTask, TaskCommand, TaskStore, Write};
use windrow_net::Outbound;
use windrow_sources::{Fetcher, Guard, RangeSource, RedriveSource, Resolver};
use windrow_store::sql::Store;

const NOW: WallMs = WallMs(1_790_000_000_000);
/// A multiple of what a checkpoint holds, and more than a page of each code.
fn failures() -> u64 {
    smoke::sized(1_000_000, 20_000)
}
const PER_CHECKPOINT: u64 = 10_000;
const CODES: u64 = 7;
const LIMIT: Duration = Duration::from_millis(300);

#[tokio::main]
async fn main() -> Result<()> {
    let place = std::env::temp_dir().join(format!("windrow-bench-{}", Uuid::new_v4()));
    std::fs::create_dir_all(&place)?;
    let done = measure(&place).await;
    std::fs::remove_dir_all(&place)?;
    done
}

async fn measure(place: &std::path::Path) -> Result<()> {
    let store = Arc::new(Store::open(&place.join("windrow.db")).await?);
    let run = run(&store).await?;
    let begun = Instant::now();
    for seq in 1..=failures() / PER_CHECKPOINT {
        store.checkpoint(&[checkpoint(&run, seq)]).await?;
    }
    let rate = failures() as f64 / begun.elapsed().as_secs_f64();
    println!(
        "{} failures seeded: {:>9.1?}, {rate:.0}/s",
        failures(),
        begun.elapsed()
    );
    let task = run.shard.task;
    let groups = timed("groups", store.groups(task)).await?;
    ensure!(
        groups.iter().map(|group| group.count).sum::<u64>() == failures(),
        "every failure is counted"
    );
    let pages = [
        ("page, the first", FailurePage::ByIndex(None)),
        (
            "page, in the middle",
            FailurePage::ByIndex(Some(ItemIndex(failures()))),
        ),
        (
            "page of a code, in the middle",
            FailurePage::OfGroup("C3".to_owned(), failures() / CODES / 2),
        ),
    ];
    for (what, page) in pages {
        let found = timed(what, store.page(task, &page, 501)).await?;
        ensure!(found.len() == 501, "a full page");
    }
    redrive(&store, task).await
}

/// What the service does for a redrive of everything, and the first block that its run reads.
async fn redrive(store: &Arc<Store>, origin: TaskId) -> Result<()> {
    let guard = Guard {
        networks: Vec::new(),
        own_port: 0,
        own_urls: Vec::new(),
    };
    let desk = Resolver {
        sources: store.clone(),
        uploads: store.clone(),
        fetcher: Fetcher::new(Outbound::default(), guard),
    };
    let parts = timed("redrive creation", async {
        let groups = store.groups(origin).await?;
        let places = groups.into_iter().map(|group| RedrivePart::Places {
            code: group.code,
            first: 0,
            count: group.count,
        });
        let parts: Vec<RedrivePart> = places.collect();
        let spec = RedriveSpec {
            is_replay: false,
            origin,
            keys_of: Some(origin),
            parts: parts.clone(),
        };
        let sender = Sender {
            by: "bench",
            bytes_max: 0,
            quota: None,
        };
        let source = desk.resolve(&SourceRequest::Redrive(spec), &sender, NOW).await?;
        let new = NewTask {
            total: source.total,
            source: source.json,
            meaning: source.meaning,
            parent: Some(origin),
            ..new_task()
        };
        let made = store.create(&new, &write(), NOW).await?;
        store.command(made.id, &TaskCommand::Start, &write(), NOW).await?;
        ensure!(made.total == ItemCount(failures()), "all of them");
        anyhow::Ok(parts)
    })
    .await?;
    let spec = RedriveSpec {
        is_replay: false,
        origin,
        keys_of: Some(origin),
        parts,
    };
    let source = RedriveSource::new(
        spec,
        store.clone(),
        Arc::new(RangeSource::new(ItemCount(2 * failures()))),
    );
    for (what, at) in [
        ("first block of the redrive", 0),
        ("last block of the redrive", failures() - 1),
    ] {
        let chunk = timed(what, source.read(ItemIndex(at))).await?;
        ensure!(chunk.origin(ItemIndex(at)).is_some(), "the item is known");
    }
    Ok(())
}

async fn timed<T, E>(what: &str, work: impl Future<Output = Result<T, E>>) -> Result<T>
where
    anyhow::Error: From<E>,
{
    let begun = Instant::now();
    let done = work.await?;
    let took = begun.elapsed();
    println!("{what:<30}: {took:>9.1?}");
    if took > LIMIT && !smoke::is_smoke() {
        bail!("{what} took {took:.1?}; {LIMIT:?} are allowed");
    }
    Ok(done)
}

fn write() -> Write {
    Actor {
        name: "bench".to_owned(),
        source: "cli",
        ..Actor::windrow(None)
    }
    .writes()
}

/// Every other item fails, with codes in turn.
fn checkpoint(run: &ClaimedShard, seq: u64) -> ShardCheckpoint {
    let (first, end) = ((seq - 1) * PER_CHECKPOINT, seq * PER_CHECKPOINT);
    let side = (first..end).map(|number| {
        let code = format!("C{}", number % CODES);
        let failure = Failure::new(code, "the handler did not answer within 30 s (attempt 3 of 3)");
        SideRecord::Failed(FailingItem {
            index: ItemIndex(number * 2),
            attempts: 3,
            charged: 3,
            is_unconfirmed: false,
            others_answered: 0,
            failure: Some(failure),
            at: NOW,
            history: Vec::new(),
        })
    });
    ShardCheckpoint {
        shard: run.shard,
        epoch: run.epoch,
        claim: run.claim,
        seq: CheckpointSeq(seq),
        watermark: ItemIndex(end * 2),
        high_water: ItemIndex(end * 2),
        horizon: ItemIndex(end * 2),
        counters: Counters {
            succeeded: end,
            failed: end,
            ..Counters::default()
        },
        blob: Vec::new(),
        side: side.collect(),
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

async fn run(store: &Store) -> Result<ClaimedShard> {
    let write = write();
    store.ensure_business("bench", &write, NOW).await?;
    let made = store.create(&new_task(), &write, NOW).await?;
    store.command(made.id, &TaskCommand::Start, &write, NOW).await?;
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
    let shard = ShardId { task: made.id, no: 0 };
    let claim = ClaimId(Uuid::new_v4());
    let request = ClaimRequest {
        shard,
        seen: Epoch(0),
        claim,
        session: id,
        now: NOW,
    };
    match store.claim(request).await? {
        ClaimOutcome::Claimed(run) => Ok(*run),
        ClaimOutcome::Lost | ClaimOutcome::Newer(_) => bail!("a fresh shard was not to be had"),
    }
}

fn new_task() -> NewTask {
    let tuning = Config::default().task_defaults.tuning;
    NewTask::of("bench", ItemCount(2 * failures()), tuning)
}
