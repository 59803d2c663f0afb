//! How long one look at a long waiting line takes: 10,000 queued tasks in SQLite, beside as many that have ended.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(
    unreachable_pub,
    dead_code,
    reason = "a benchmark exports nothing, and doesn't use all that is shared"
)]

#[path = "shared/smoke.rs"]
mod smoke;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sea_orm::{ConnectionTrait, Database, Statement};
use uuid::Uuid;
use windrow_config::Config;
use windrow_core::capacity::{Capacity, Ledger, Request};
use windrow_core::ids::{ItemCount, Moment, WallMs};
use windrow_engine::ports::ownership::run_store::{CandidateQuery, RunStore};
use windrow_engine::ports::tasks::store::{Actor, NewTask, TaskCommand, TaskStore};
use windrow_store::sql::Store;

const NOW: WallMs = WallMs(1_790_000_000_000);
fn waiting() -> i64 {
    smoke::sized(10_000, 1_500)
}
const PAGE: u32 = 1_000;
const ROUNDS: u32 = 10;
/// Of the scan and of the admission, each.
const LIMIT: Duration = Duration::from_millis(50);

#[tokio::main]
async fn main() -> Result<()> {
    let place = std::env::temp_dir().join(format!("windrow-bench-{}", Uuid::new_v4()));
    std::fs::create_dir_all(&place)?;
    let done = measure(&place.join("windrow.db")).await;
    std::fs::remove_dir_all(&place)?;
    done
}

async fn measure(file: &Path) -> Result<()> {
    seed(file).await?;
    let store = Store::open(file).await?;
    let (mut scans, mut admissions) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let line = scan(&store).await?;
        scans = scans.min(begun.elapsed());
        ensure!(
            line.len() as i64 == waiting(),
            "{} of {} found",
            line.len(),
            waiting()
        );
        let mut ledger = Ledger::new(Capacity::Limited("50/s".parse()?), "1000/s".parse()?);
        let begun = Instant::now();
        let refused = ledger
            .admit(&line, BTreeMap::new, Moment(0))
            .iter()
            .filter(|one| one.outcome.is_err())
            .count();
        admissions = admissions.min(begun.elapsed());
        ensure!(refused as i64 == waiting(), "none fits");
    }
    let most = LIMIT.as_millis();
    for (what, took) in [("scanned", scans), ("judged", admissions)] {
        println!(
            "{} waiting, {what}, best of {ROUNDS}, ms = {:.1} (aim ≤ {most})",
            waiting(),
            took.as_secs_f64() * 1000.0
        );
    }
    Ok(())
}

async fn scan(store: &Store) -> Result<Vec<Request>> {
    let month = Duration::from_secs(30 * 86_400);
    let pools = Some(vec!["default".to_owned()]);
    let mut hunt = CandidateQuery {
        alive: Vec::new(),
        now: NOW,
        restore_window: month,
        pools,
        node: String::new(),
        after: None,
        limit: PAGE,
    };
    let mut line = Vec::new();
    loop {
        let game = store.candidates(&hunt).await?;
        line.extend(game.found.into_iter().map(|one| Request {
            rank: one.rank,
            rate: one.rate,
            share: one.share,
            takes: one.takes(),
        }));
        match game.next {
            Some(place) => hunt.after = Some(place),
            None => return Ok(line),
        }
    }
}

/// One task is made as people make it; the others are its copies.
async fn seed(file: &Path) -> Result<()> {
    let store = Store::open(file).await?;
    let actor = Actor {
        name: "bench".to_owned(),
        source: "cli",
        ..Actor::windrow(None)
    }
    .writes();
    store.ensure_business("bench", &actor, NOW).await?;
    let made = store.create(&new_task(), &actor, NOW).await?;
    store.command(made.id, &TaskCommand::Start, &actor, NOW).await?;
    store.close().await?;
    let db = Database::connect(format!("sqlite://{}?mode=rw", file.display())).await?;
    for (table, key) in [("task", "id"), ("shard", "task_id")] {
        copy(&db, table, key).await?;
        let ended = format!("UPDATE {table} SET {} WHERE {key} > {}", ended(table), waiting());
        db.execute_unprepared(&ended).await?;
    }
    db.close().await?;
    Ok(())
}

fn ended(table: &str) -> &'static str {
    if table == "task" {
        "status = 'finished', desired = 'run'"
    } else {
        "state = 'done'"
    }
}

async fn copy(db: &impl ConnectionTrait, table: &str, key: &str) -> Result<()> {
    let ask = Statement::from_string(db.get_database_backend(), format!("PRAGMA table_info({table})"));
    let mut columns = Vec::new();
    for row in db.query_all_raw(ask).await? {
        let name: String = row.try_get("", "name").context("a column has a name")?;
        columns.push(name);
    }
    let copied: Vec<String> = columns
        .iter()
        .map(|name| {
            if name == key {
                "n".to_owned()
            } else {
                format!("\"{name}\"")
            }
        })
        .collect();
    let names: Vec<String> = columns.iter().map(|name| format!("\"{name}\"")).collect();
    let sql = format!(
        "WITH RECURSIVE numbers(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < {}) \
         INSERT INTO {table} ({}) SELECT {} FROM {table}, numbers WHERE {key} = 1",
        2 * waiting(),
        names.join(", "),
        copied.join(", "),
    );
    db.execute_unprepared(&sql).await?;
    Ok(())
}

fn new_task() -> NewTask {
    NewTask::of("bench", ItemCount(1_000), Config::default().task_defaults.tuning)
}
