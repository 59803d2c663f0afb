//! Limits that tasks share, in a node and over several: in every interval no more leaves than the limit and its burst
//! allow, whatever ends, is cut off or is changed meanwhile; and what may leave is shared.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::ids::TaskId;
use windrow_core::limit::Bounds;
use windrow_core::settings::{Auto, Rate, RateLimit};
use windrow_core::stats::stall::StallReason;
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_engine::ports::ownership::limit_store::LimitStore;
use windrow_engine::ports::tasks::store::TaskCommand;

use crate::cluster::Cluster;
use crate::link::Way;
use crate::patience::holds_within;
use crate::scripted::Act;
use crate::world::World;

const STOP: TaskCommand = TaskCommand::Stop {
    reason: StopReason::Operator,
};

fn rate(text: &str) -> Rate {
    text.parse().expect("a rate")
}

pub fn of_rate(text: &str) -> Bounds {
    Bounds {
        rate: Some(rate(text)),
        concurrency: None,
    }
}

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A node under a limit, whose items take so long.
async fn limited(name: &str, bounds: Bounds, slow: Duration) -> World {
    World::start_as(
        name,
        |world| {
            world.limited = true;
            world.store.limit_business("run", bounds);
        },
        move |_, _| Act::Slow(slow),
    )
    .await
}

async fn endless(world: &World, limit: RateLimit) -> TaskId {
    world.task(100_000_000, |tuning| tuning.rate = limit).await
}

pub fn sent(world: &World, task: TaskId) -> u64 {
    world
        .node()
        .progress(task)
        .iter()
        .map(|(_, run)| run.counters.settled() + run.counters.in_flight)
        .sum()
}

/// How much each of these tasks sent in a span that begins now.
pub async fn sent_in(world: &World, tasks: &[TaskId], span: Duration) -> Vec<u64> {
    let before: Vec<u64> = tasks.iter().map(|task| sent(world, *task)).collect();
    tokio::time::sleep(span).await;
    tasks
        .iter()
        .zip(before)
        .map(|(task, before)| sent(world, *task) - before)
        .collect()
}

pub fn is_about(number: u64, wanted: u64) -> bool {
    number * 10 >= wanted * 9 && number * 10 <= wanted * 11
}

/// In no interval more departed than the limit (which had these rates, each from its moment on) and a burst allow.
fn assert_within(mut departures: Vec<Instant>, rates: &[(Instant, f64)], burst: f64) {
    departures.sort_unstable();
    let area = |upto: Instant| -> f64 {
        let ends = rates.iter().skip(1).map(|(at, _)| *at).chain([upto]);
        let piece = |(at, rate): &(Instant, f64), end: Instant| {
            end.min(upto).saturating_duration_since(*at).as_secs_f64() * rate
        };
        rates.iter().zip(ends).map(|(from, end)| piece(from, end)).sum()
    };
    // Departures j to k are k − j + 1: most of (k + 1 − area) less the least of (j − area) before.
    let mut least = f64::INFINITY;
    for (at, departed) in departures.iter().enumerate() {
        let allowed = area(*departed);
        least = least.min(at as f64 - allowed);
        let above = (at + 1) as f64 - allowed - least;
        assert!(
            above <= burst + 1e-6,
            "{above} above the limit, at most {burst}, at departure {at}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn two_tasks_share_their_limit_at_once_and_one_that_wants_less_leaves_the_rest() {
    let world = limited("limits-two", of_rate("300/s"), Duration::from_millis(20)).await;
    let begun = Instant::now();
    let one = endless(&world, RateLimit::Limited(rate("250/s"))).await;
    let two = endless(&world, RateLimit::Limited(rate("200/s"))).await;
    let three = endless(&world, RateLimit::Limited(rate("20/s"))).await;
    world.until(two, Status::Running).await;
    world.until(three, Status::Running).await;
    assert!(begun.elapsed() < seconds(3), "the second waits for nobody");
    tokio::time::sleep(seconds(3)).await;
    let sent = sent_in(&world, &[one, two, three], seconds(10)).await;
    assert!(
        is_about(sent[0], 1400) && is_about(sent[1], 1400) && is_about(sent[2], 200),
        "{sent:?}"
    );
    let stalled = world.node().progress(one)[0].1.stalled;
    assert!(stalled[StallReason::Limit as usize] > seconds(1), "{stalled:?}");
    // What one leaves falls to the others.
    world.command(two, STOP).await;
    world.until(two, Status::Stopped).await;
    tokio::time::sleep(seconds(1)).await;
    let sent = sent_in(&world, &[one, three], seconds(10)).await;
    assert!(is_about(sent[0], 2500) && is_about(sent[1], 200), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn runs_share_slots_and_take_turns_where_there_are_fewer_than_runs() {
    let bounds = Bounds {
        rate: None,
        concurrency: Some(7),
    };
    let world = limited("limits-slots", bounds, Duration::from_millis(100)).await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(endless(&world, RateLimit::Unlimited).await);
    }
    for task in &tasks {
        world.until(*task, Status::Running).await;
    }
    tokio::time::sleep(seconds(2)).await;
    let all = sent_in(&world, &tasks, seconds(30)).await;
    assert!(
        is_about(all.iter().sum(), 2100) && all.iter().all(|one| is_about(*one, 700)),
        "{all:?}"
    );
    let mut most = 0;
    for _ in 0..1000 {
        most = tasks
            .iter()
            .map(|task| world.in_flight(*task))
            .sum::<u64>()
            .max(most);
        tokio::time::sleep(Duration::from_millis(7)).await;
    }
    assert_eq!(most, 7);
    // Fewer slots than runs: calls that are in flight end, and then all have their turns.
    world.store.limit_business(
        "run",
        Bounds {
            rate: None,
            concurrency: Some(2),
        },
    );
    tokio::time::sleep(seconds(3)).await;
    let all = sent_in(&world, &tasks, seconds(30)).await;
    assert!(
        is_about(all.iter().sum(), 600) && all.iter().all(|one| is_about(*one, 200)),
        "{all:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_limit_is_set_changed_and_lifted_while_tasks_run() {
    let world = limited("limits-live", Bounds::default(), Duration::from_millis(20)).await;
    let one = endless(&world, RateLimit::Limited(rate("400/s"))).await;
    world.until(one, Status::Running).await;
    tokio::time::sleep(seconds(1)).await;
    assert!(
        is_about(sent_in(&world, &[one], seconds(5)).await[0], 2000),
        "nothing is limited"
    );
    for (limit, wanted) in [("100/s", 100), ("50/s", 50), ("200/s", 200), ("12/m", 0)] {
        world.store.limit_business("run", of_rate(limit));
        tokio::time::sleep(seconds(3)).await;
        let sent = sent_in(&world, &[one], seconds(10)).await[0];
        assert!(
            is_about(sent, wanted * 10) || limit == "12/m" && (1..=3).contains(&sent),
            "{limit}: {sent}"
        );
    }
    world.store.limit_business("run", Bounds::default());
    tokio::time::sleep(seconds(2)).await;
    assert!(
        is_about(sent_in(&world, &[one], seconds(5)).await[0], 2000),
        "nothing is limited any more"
    );
}

#[tokio::test(start_paused = true)]
async fn the_session_s_actor_may_crash_and_deals_on() {
    let world = limited("limits-actor", of_rate("100/s"), Duration::from_millis(20)).await;
    let one = endless(&world, RateLimit::Limited(rate("400/s"))).await;
    world.until(one, Status::Running).await;
    tokio::time::sleep(seconds(20)).await;
    world.kill("session").await;
    tokio::time::sleep(seconds(2)).await;
    assert!(is_about(sent_in(&world, &[one], seconds(5)).await[0], 500));
    world.store.limit_business("run", of_rate("200/s"));
    tokio::time::sleep(seconds(3)).await;
    assert!(
        is_about(sent_in(&world, &[one], seconds(5)).await[0], 1000),
        "its rounds count"
    );
}

/// Three nodes, each with a shard of a task that wants much more than the limit.
async fn three(prefix: &str, limit: &str, with_leases: bool) -> (Cluster, TaskId) {
    let mut cluster = Cluster::new(prefix, with_leases);
    cluster.limited = true;
    cluster.slow = Duration::from_millis(20);
    cluster.store.limit_business("run", of_rate(limit));
    for name in ["a", "b", "c"] {
        cluster.boot(name).await;
    }
    let shards = Auto::Fixed(NonZeroU32::new(3).expect("not zero"));
    let task = cluster
        .sharded(300_000_000, shards, |tuning| tuning.rate = RateLimit::Unlimited)
        .await;
    for name in ["a", "b", "c"] {
        cluster.until_owned(name, 1).await;
    }
    (cluster, task)
}

fn departures(cluster: &Cluster) -> Vec<Instant> {
    cluster
        .departures
        .lock()
        .expect("ok")
        .iter()
        .map(|one| one.at)
        .collect()
}

/// How many items each node sent in a span that begins now.
async fn by_node(cluster: &Cluster, span: Duration) -> Vec<u64> {
    let begun = Instant::now();
    tokio::time::sleep(span).await;
    let all = cluster.departures.lock().expect("ok");
    let of = |name: &str| {
        all.iter()
            .filter(|one| one.at >= begun && one.node.ends_with(name))
            .count() as u64
    };
    ["-a", "-b", "-c"].into_iter().map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn nodes_share_a_limit_and_never_use_more_whatever_ends_or_is_cut_off() {
    let begun = Instant::now();
    let (mut cluster, _) = three("limits-nodes", "300/s", false).await;
    tokio::time::sleep(seconds(5)).await;
    let each = by_node(&cluster, seconds(10)).await;
    assert!(each.iter().all(|sent| is_about(*sent, 1000)), "{each:?}");
    cluster.crash("a").await;
    // Its part is free once its session is fenced.
    tokio::time::sleep(seconds(30)).await;
    let each = by_node(&cluster, seconds(10)).await;
    assert!(is_about(each.iter().sum(), 3000), "{each:?}");
    cluster.node("b").link.database(Way::Hangs);
    tokio::time::sleep(seconds(40)).await;
    let each = by_node(&cluster, seconds(10)).await;
    assert!(each[1] == 0 && is_about(each[2], 3000), "{each:?}");
    cluster.node("b").link.database(Way::Open);
    tokio::time::sleep(seconds(20)).await;
    cluster.boot("a2").await;
    tokio::time::sleep(seconds(20)).await;
    assert_within(departures(&cluster), &[(begun, 300.0)], 30.0);
}

#[tokio::test(start_paused = true)]
async fn a_lowered_limit_holds_once_all_have_heard_of_it() {
    let begun = Instant::now();
    let (cluster, _) = three("limits-lower", "300/s", false).await;
    tokio::time::sleep(seconds(5)).await;
    cluster.store.limit_business("run", of_rate("60/s"));
    let lowered = Instant::now();
    tokio::time::sleep(seconds(20)).await;
    let each = by_node(&cluster, seconds(10)).await;
    assert!(is_about(each.iter().sum(), 600), "{each:?}");
    cluster.store.limit_business("run", of_rate("240/s"));
    let raised = Instant::now();
    tokio::time::sleep(seconds(5)).await;
    let each = by_node(&cluster, seconds(10)).await;
    assert!(is_about(each.iter().sum(), 2400), "{each:?}");
    let rates = [(begun, 300.0), (lowered + seconds(3), 60.0), (raised, 240.0)];
    assert_within(departures(&cluster), &rates, 30.0);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_the_database_stands_still_under_a_limit_even_with_its_lease() {
    let (cluster, _) = three("limits-lease", "300/s", true).await;
    tokio::time::sleep(seconds(5)).await;
    cluster.node("b").link.database(Way::Cut);
    tokio::time::sleep(seconds(20)).await;
    assert_eq!(cluster.owned("b"), 1, "its lease carries the run");
    let each = by_node(&cluster, seconds(20)).await;
    assert_eq!(each[1], 0, "{each:?}");
    cluster.node("b").link.database(Way::Open);
    tokio::time::sleep(seconds(10)).await;
    let each = by_node(&cluster, seconds(10)).await;
    assert!(is_about(each.iter().sum(), 3000), "{each:?}");
}

#[tokio::test(start_paused = true)]
async fn one_item_in_ten_seconds_goes_round_three_nodes() {
    let begun = Instant::now();
    let (cluster, _) = three("limits-slow", "1/10s", false).await;
    let each = by_node(&cluster, seconds(600)).await;
    let all: u64 = each.iter().sum();
    assert!((40..=60).contains(&all), "{each:?}");
    assert!(each.iter().all(|sent| *sent >= 8), "each has its turns: {each:?}");
    assert_within(departures(&cluster), &[(begun, 0.1)], 2.0);
}

#[tokio::test(start_paused = true)]
async fn demand_that_moves_is_followed_within_five_seconds() {
    let mut cluster = Cluster::new("limits-moves", false);
    cluster.limited = true;
    cluster.slow = Duration::from_millis(20);
    cluster.store.limit_business("run", of_rate("200/s"));
    cluster.boot("a").await;
    let one = cluster
        .task(100_000_000, |tuning| tuning.rate = RateLimit::Unlimited)
        .await;
    cluster.until_owned("a", 1).await;
    tokio::time::sleep(seconds(3)).await;
    assert!(is_about(by_node(&cluster, seconds(5)).await[0], 1000));
    cluster.boot("b").await;
    let two = cluster
        .task(100_000_000, |tuning| tuning.rate = RateLimit::Unlimited)
        .await;
    cluster.until(two, Status::Running).await;
    tokio::time::sleep(seconds(5)).await;
    let each = by_node(&cluster, seconds(5)).await;
    assert!(is_about(each[0] + each[1], 1000), "{each:?}");
    cluster.command(one, STOP).await;
    tokio::time::sleep(seconds(5)).await;
    let each = by_node(&cluster, seconds(5)).await;
    assert!(is_about(each[0] + each[1], 1000), "{each:?}");
    let gone = holds_within(seconds(10), || cluster.owned("a") + cluster.owned("b") == 1).await;
    assert!(gone);
    let parts = cluster.store.parts("run").await.expect("memory");
    assert!(
        parts.iter().filter(|part| part.runs > 0).count() == 1,
        "{parts:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn one_item_a_minute_goes_round_five_nodes() {
    let nodes = ["a", "b", "c", "d", "e"];
    let mut cluster = Cluster::new("limits-minute", false);
    cluster.limited = true;
    cluster.slow = Duration::from_millis(20);
    cluster.store.limit_business("run", of_rate("1/m"));
    for name in nodes {
        cluster.boot(name).await;
    }
    let shards = Auto::Fixed(NonZeroU32::new(5).expect("not zero"));
    cluster
        .sharded(1_000_000, shards, |tuning| tuning.rate = RateLimit::Unlimited)
        .await;
    for name in nodes {
        cluster.until_owned(name, 1).await;
    }
    tokio::time::sleep(seconds(15 * 60)).await;
    let all = cluster.departures.lock().expect("ok");
    let senders: BTreeSet<&str> = all.iter().map(|one| one.node.as_str()).collect();
    assert_eq!(senders.len(), 5, "{senders:?}");
    // Every turn costs a second; the burst is eight.
    assert!((11..=24).contains(&all.len()), "{} of fifteen", all.len());
}
