//! apalis over Redis or SQLite: `apalis-peer redis|sqlite ITEMS`, with REDIS_URL or the directory of the file in SQLITE_DIR.
//!
//! push_bulk of 1,000. Redis: batches of 500, 500 at once. SQLite: batches of 1,000, 1,000 at once, the pool and the pragmas
//! of its readme, which don't wait for the disk. The best of a short sweep.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use apalis::prelude::*;
use apalis_redis::RedisStorage;
use apalis_sqlite::{SqlitePool, SqliteStorage};

type Fallible<T> = Result<T, Box<dyn Error>>;

const PUSHED_AT_ONCE: u64 = 1_000;

static LEFT: AtomicU64 = AtomicU64::new(0);

/// The item: nothing but the count that ends the worker, which records its last results before it does.
async fn noop(_index: u64, worker: WorkerContext) -> Result<(), BoxDynError> {
    if LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
        worker.stop()?;
    }
    Ok(())
}

/// Seconds that this enqueues for.
macro_rules! enqueue {
    ($storage:expr, $items:expr) => {{
        let begun = Instant::now();
        for first in (0..$items).step_by(PUSHED_AT_ONCE as usize) {
            let batch = (first..$items.min(first + PUSHED_AT_ONCE)).collect();
            $storage.push_bulk(batch).await?;
        }
        begun.elapsed().as_secs_f64()
    }};
}

/// Seconds that a worker takes for all items.
macro_rules! drain {
    ($storage:expr, $concurrency:expr, $items:expr) => {{
        LEFT.store($items, Ordering::Relaxed);
        let worker = WorkerBuilder::new("noop")
            .backend($storage)
            .concurrency($concurrency)
            .build(noop);
        let begun = Instant::now();
        worker.run().await?;
        begun.elapsed().as_secs_f64()
    }};
}

/// The bytes that Redis holds for its data.
fn redis_bytes(url: &str) -> Fallible<u64> {
    let said = Command::new("redis-cli")
        .args(["-u", url, "info", "memory"])
        .output()?;
    let text = String::from_utf8(said.stdout)?;
    let line = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    Ok(line.ok_or("Redis does not say used_memory")?.trim().parse()?)
}

async fn over_redis(items: u64) -> Fallible<[f64; 3]> {
    let url = std::env::var("REDIS_URL")?;
    let config = apalis_redis::Config::default().queue("noop").batch_size(500);
    let connection = apalis_redis::connect(url.as_str()).await?;
    let mut storage = RedisStorage::<u64>::new(connection).with_config(config);
    let empty = redis_bytes(&url)?;
    let enqueue_s = enqueue!(storage, items);
    let bytes = redis_bytes(&url)? - empty;
    Ok([enqueue_s, drain!(storage, 500, items), bytes as f64])
}

async fn over_sqlite(items: u64) -> Fallible<[f64; 3]> {
    let file = Path::new(&std::env::var("SQLITE_DIR")?).join("apalis.db");
    let url = format!("sqlite://{}?mode=rwc", file.display());
    let config = apalis_sqlite::Config::default().queue("noop").batch_size(1_000);
    let pool = SqlitePool::connect(&url).await?;
    SqliteStorage::setup(&pool).await?;
    let mut storage = SqliteStorage::<u64>::new(&pool).with_config(config.clone());
    let enqueue_s = enqueue!(storage, items);
    // The last connection writes the log into the file as it closes. The next begins as that of a program
    // started again does.
    pool.close().await;
    let bytes = std::fs::metadata(&file)?.len();
    let pool = SqlitePool::connect(&url).await?;
    SqliteStorage::setup(&pool).await?;
    let storage = SqliteStorage::<u64>::new(&pool).with_config(config);
    Ok([enqueue_s, drain!(storage, 1_000, items), bytes as f64])
}

#[tokio::main]
async fn main() -> Fallible<()> {
    let mut arguments = std::env::args().skip(1);
    let store = arguments.next().unwrap_or_default();
    let items: u64 = arguments
        .next()
        .ok_or("which store, and how many items?")?
        .parse()?;
    let [enqueue_s, drain_s, bytes] = match store.as_str() {
        "redis" => over_redis(items).await?,
        "sqlite" => over_sqlite(items).await?,
        other => return Err(format!("no store is called {other}").into()),
    };
    let version = "1.0.0";
    println!(
        r#"{{"peer":"apalis-{store}","version":"{version}","n":{items},"enqueue_s":{enqueue_s},"drain_s":{drain_s},"bytes":{bytes}}}"#
    );
    Ok(())
}
