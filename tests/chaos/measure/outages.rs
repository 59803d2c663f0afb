//! What gets through while something is missing: Redis, the database, processors; and the pace of a big task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::owners::finish;
use super::throughput;
use crate::check::judge;
use crate::cluster::{Cluster, Link};
use crate::evidence::{Harm, Order, now};
use crate::node::PATIENCE;
use crate::proxy::{Flow, Weather};
use crate::round::{begin, end};
use crate::settings::{Settings, number};

async fn flowing(settings: &Settings) -> (Cluster, i64) {
    let mut cluster = Cluster::start(settings).await;
    let task = begin(&mut cluster, 0).await;
    cluster.business.reaches(50).await;
    (cluster, task)
}

/// Minutes without Redis.
pub(super) async fn redis(settings: &Settings) {
    let (mut cluster, task) = flowing(settings).await;
    let before = throughput(&cluster, Duration::from_secs(10)).await;
    let span = Duration::from_secs(number("MINUTES").unwrap_or(10) * 60);
    cluster.redis.as_mut().expect("--witness redis").kill();
    cluster.faults.begin("Redis is down", Harm::Redis);
    let during = throughput(&cluster, span).await;
    cluster.redis.as_mut().expect("--witness redis").restart();
    let after = throughput(&cluster, Duration::from_secs(10)).await;
    let share = during / before * 100.0;
    println!(
        "Redis away for {span:?}: {before:.1}/s before, {during:.1}/s during ({share:.1} %), {after:.1}/s after"
    );
    cluster.faults.end_all();
    finish(&mut cluster, task).await;
}

/// Seconds without the database, in the middle of a task that must finish.
pub(super) async fn database(settings: &Settings) {
    let settings = Settings {
        items: settings.rate * 20,
        ..settings.clone()
    };
    let (mut cluster, task) = flowing(&settings).await;
    let span = Duration::from_secs(number("SECONDS").unwrap_or(60));
    let fault = cluster.faults.begin("database killed", Harm::Database);
    let before = cluster.business.count();
    cluster.database.kill();
    tokio::time::sleep(span).await;
    let during = cluster.business.count() - before;
    cluster.database.restart();
    let healed = now();
    cluster.faults.end(fault);
    let count = cluster.business.count();
    cluster.business.reaches(count + 1).await;
    let resumed = (now() - healed) / 1000;
    println!(
        "database away for {span:?}: {during} items went on, the first item {resumed} ms after it was back"
    );
    let judgement = judge(&end(&mut cluster, task).await);
    println!("{} losses, {} repeats", judgement.losses, judgement.repeats);
    assert!(judgement.findings.is_empty(), "{:#?}", judgement.findings);
}

/// One node's way to the business is cut: how long until others work on what it had.
pub(super) async fn path(settings: &Settings) {
    let settings = Settings {
        shards: settings.shards.max(3),
        ..settings.clone()
    };
    let (mut cluster, task) = flowing(&settings).await;
    let before = throughput(&cluster, Duration::from_secs(10)).await;
    let (node, span) = (
        cluster.owner(),
        Duration::from_secs(number("SECONDS").unwrap_or(60)),
    );
    // Answers still arrive, so that nothing comes again that was told once.
    let weather = Weather {
        up: Flow::Drop,
        refuses: true,
        ..Weather::default()
    };
    let (fault, cut) = (
        cluster.weather("business cut off", Link::Business, Some(node), weather),
        Instant::now(),
    );
    let mut during = 0.0;
    while during < 0.95 * before && cut.elapsed() < PATIENCE {
        during = throughput(&cluster, Duration::from_secs(2)).await;
    }
    println!(
        "one way cut: {before:.1}/s before, {during:.1}/s again after {:.0?}",
        cut.elapsed()
    );
    tokio::time::sleep(span.saturating_sub(cut.elapsed())).await;
    cluster.clear(fault, Link::Business, Some(node));
    let after = throughput(&cluster, Duration::from_secs(10)).await;
    println!("{after:.1}/s after the way was back");
    assert!(during >= 0.95 * before, "nobody else took what the node had");
    finish(&mut cluster, task).await;
}

/// Every processor busy with something else.
pub(super) async fn processors(settings: &Settings) {
    let (mut cluster, task) = flowing(settings).await;
    let before = throughput(&cluster, Duration::from_secs(10)).await;
    let span = Duration::from_secs(number("SECONDS").unwrap_or(60));
    let is_over = Arc::new(AtomicBool::new(false));
    let count = std::thread::available_parallelism().map_or(4, std::num::NonZeroUsize::get) * 2;
    let burners: Vec<_> = (0..count).map(|_| burn(is_over.clone())).collect();
    let during = throughput(&cluster, span).await;
    is_over.store(true, Ordering::Relaxed);
    for burner in burners {
        burner.join().expect("it only counts");
    }
    println!("{count} busy threads for {span:?}: {before:.1}/s before, {during:.1}/s during");
    finish(&mut cluster, task).await;
}

fn burn(is_over: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut number = 1_u64;
        while !is_over.load(Ordering::Relaxed) {
            number = std::hint::black_box(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
    })
}

/// A task of four shards at 3,000 items per second, across a crash and two changes of its rate.
pub(super) async fn rate(settings: &Settings) {
    let rate = number("RATE").unwrap_or(3_000);
    let shards = number("SHARDS").map_or(4, |shards| u32::try_from(shards).expect("few"));
    let settings = Settings {
        rate,
        shards,
        items: rate * 30,
        ..settings.clone()
    };
    let (mut cluster, task) = flowing(&settings).await;
    let full = throughput(&cluster, Duration::from_secs(8)).await;
    let owner = cluster.owner();
    cluster.kill(owner);
    let killed = throughput(&cluster, Duration::from_secs(6)).await;
    cluster.restart(owner).await;
    cluster.order(task, Order::Rate((rate / 2) as f64)).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let half = throughput(&cluster, Duration::from_secs(6)).await;
    cluster.order(task, Order::Rate(rate as f64)).await;
    let again = throughput(&cluster, Duration::from_secs(6)).await;
    println!(
        "{shards} shards at {rate}/s: {full:.0}/s, with a node killed {killed:.0}/s, at half {half:.0}/s, then {again:.0}/s"
    );
    let judgement = judge(&end(&mut cluster, task).await);
    println!(
        "pace +{:.1} of a burst of {}; {} losses",
        judgement.pace_excess,
        settings.burst(),
        judgement.losses
    );
    assert!(judgement.findings.is_empty(), "{:#?}", judgement.findings);
}
