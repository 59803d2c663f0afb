//! What happens to a cluster while a task flows; the name says it. Whoever plays one heals everything afterwards.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::cluster::Link;
use crate::evidence::{Harm, Order};
use crate::proxy::{Flow, Way, Weather};
use crate::round::Round;
use crate::script::Mood;
use crate::settings::{Settings, StoreKind};

type Acting<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One of [`ALL`].
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
    pub(crate) act: for<'a, 'b> fn(&'a mut Round<'b>) -> Acting<'a>,
}

/// Without what a scenario makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Others,
    Server,
    Redis,
}

macro_rules! scenarios {
    ($($name:ident: $needs:ident,)*) => {
        /// All of them.
        pub(crate) const ALL: &[Scenario] = &[$(Scenario {
            name: stringify!($name),
            needs: Needs::$needs,
            act: |round| Box::pin($name(round)),
        },)*];
    };
}

scenarios! {
    calm: Nothing,
    kill_9_owner: Nothing,
    kill_9_all: Nothing,
    kill_9_again_and_again: Nothing,
    stop_cont_beyond_ttl: Nothing,
    stop_cont_within_ttl: Nothing,
    sigterm_rolling_restart: Nothing,
    stop_and_start: Nothing,
    change_rate_during_kill: Nothing,
    stop_during_kill: Nothing,
    stop_during_pause: Others,
    business_misbehaves: Nothing,
    business_is_busy: Nothing,
    partition_node_business: Nothing,
    redis_kill: Redis,
    redis_hang: Redis,
    redis_flushall: Redis,
    redis_restart: Redis,
    redis_slow: Redis,
    partition_node_redis: Redis,
    one_way_redis: Redis,
    stop_during_redis_hang: Redis,
    db_kill: Server,
    db_restart: Server,
    db_hang: Server,
    db_lost_ack: Server,
    db_slow: Server,
    db_cut_connections: Server,
    db_disk_full: Server,
    partition_node_db: Server,
    partition_node_db_held: Server,
    one_way_db: Server,
    stop_during_db_hang: Server,
    kill_during_claim: Others,
    kill_during_close: Others,
    partition_and_flushall: Redis,
    redis_and_db_hang: Redis,
    kill_during_redis_outage: Redis,
    random: Nothing,
}

/// The one of this name.
pub(crate) fn named(name: &str) -> &'static Scenario {
    let known = ALL.iter().find(|scenario| scenario.name == name);
    let names: Vec<&str> = ALL.iter().map(|scenario| scenario.name).collect();
    known.unwrap_or_else(|| panic!("no scenario is named {name}; there are {}", names.join(", ")))
}

/// Whether it makes sense on such a cluster.
pub(crate) fn fits(scenario: &Scenario, settings: &Settings) -> bool {
    match scenario.needs {
        Needs::Nothing => true,
        Needs::Others => settings.nodes > 1,
        Needs::Server => settings.store != StoreKind::Sqlite,
        Needs::Redis => settings.has_redis,
    }
}

async fn calm(round: &mut Round<'_>) {
    round.wait(500, 1_000).await;
}

async fn kill_9_owner(round: &mut Round<'_>) {
    round.wait(100, 1_500).await;
    let owner = round.cluster.owner();
    round.cluster.kill(owner);
    round.taken_over_from(owner).await;
    round.wait(0, 1_000).await;
    round.cluster.restart(owner).await;
}

async fn kill_9_all(round: &mut Round<'_>) {
    round.wait(100, 1_000).await;
    for node in 0..round.cluster.nodes.len() {
        round.cluster.kill(node);
    }
    round.wait(0, 1_000).await;
}

async fn kill_9_again_and_again(round: &mut Round<'_>) {
    for _ in 0..3 {
        round.wait(100, 1_000).await;
        let owner = round.cluster.owner();
        round.cluster.kill(owner);
        round.wait(0, 500).await;
        round.cluster.restart(owner).await;
        round.flows(5).await;
    }
}

async fn stop_cont_beyond_ttl(round: &mut Round<'_>) {
    round.wait(100, 1_000).await;
    let owner = round.cluster.owner();
    let span = round.beyond_ttl();
    round.cluster.pause(owner);
    tokio::time::sleep(span).await;
    round.taken_over_from(owner).await;
    round.cluster.resume(owner);
    round.flows(20).await;
}

async fn stop_cont_within_ttl(round: &mut Round<'_>) {
    for _ in 0..3 {
        let owner = round.cluster.owner();
        round.cluster.pause(owner);
        round.wait(50, 900).await;
        round.cluster.resume(owner);
        round.wait(300, 1_000).await;
    }
}

async fn sigterm_rolling_restart(round: &mut Round<'_>) {
    for node in 0..round.cluster.nodes.len() {
        round.cluster.terminate(node).await;
        round.cluster.restart(node).await;
        round.flows(20).await;
    }
}

async fn stop_and_start(round: &mut Round<'_>) {
    for _ in 0..2 {
        round.wait(100, 1_000).await;
        round.stop_and_start().await;
        round.flows(5).await;
    }
}

async fn change_rate_during_kill(round: &mut Round<'_>) {
    let rate = round.cluster.settings.rate as f64;
    let owner = round.cluster.owner();
    round.cluster.kill(owner);
    round.cluster.order(round.task, Order::Rate((rate / 2.0).floor())).await;
    round.taken_over_from(owner).await;
    round.wait(200, 1_500).await;
    round.cluster.order(round.task, Order::Rate(rate * 2.0)).await;
    round.cluster.restart(owner).await;
    round.flows(20).await;
}

async fn stop_during_kill(round: &mut Round<'_>) {
    round.wait(100, 1_000).await;
    let owner = round.cluster.owner();
    round.cluster.kill(owner);
    if round.cluster.nodes.len() == 1 {
        round.cluster.restart(owner).await;
    }
    round.stop_and_start().await;
    round.cluster.restart(owner).await;
}

async fn stop_during_pause(round: &mut Round<'_>) {
    round.wait(100, 1_000).await;
    let owner = round.cluster.owner();
    round.cluster.pause(owner);
    round.stop_and_start().await;
    round.taken_over_from(owner).await;
    round.cluster.resume(owner);
}

async fn business_misbehaves(round: &mut Round<'_>) {
    let fault = round.cluster.faults.begin("the business misbehaves", Harm::Business);
    round.cluster.business.becomes(Mood { bad: 10, ..Mood::default() });
    round.wait(3_000, 5_000).await;
    round.cluster.business.becomes(Mood::default());
    // Calls that hang are still out.
    tokio::time::sleep(Duration::from_secs(4)).await;
    round.cluster.faults.end(fault);
}

async fn business_is_busy(round: &mut Round<'_>) {
    for _ in 0..2 {
        let fault = round.cluster.faults.begin("the business is busy", Harm::Business);
        round.cluster.business.becomes(Mood { is_busy: true, ..Mood::default() });
        round.wait(300, 1_500).await;
        round.cluster.business.becomes(Mood::default());
        round.cluster.faults.end(fault);
        round.flows(20).await;
    }
}

async fn partition_node_business(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let weather =
        [Weather::blackhole(), Weather::lost_replies(), Weather { refuses: true, ..Weather::blackhole() }];
    for weather in weather {
        let span = round.rng.millis(500, 1_500);
        round.storm("business cut off", Link::Business, Some(owner), weather, span).await;
        round.wait(200, 500).await;
    }
}

async fn redis_kill(round: &mut Round<'_>) {
    let fault = round.kill_redis();
    let span = round.beyond_ttl();
    tokio::time::sleep(span).await;
    round.start_redis(fault);
    round.wait(500, 2_000).await;
}

async fn redis_restart(round: &mut Round<'_>) {
    for _ in 0..2 {
        let fault = round.kill_redis();
        round.start_redis(fault);
        round.wait(500, 2_000).await;
    }
}

async fn redis_hang(round: &mut Round<'_>) {
    let span = round.beyond_ttl();
    hang_redis(round, span).await;
    round.wait(500, 1_500).await;
}

async fn hang_redis(round: &mut Round<'_>, span: Duration) {
    let fault = round.cluster.faults.begin("Redis hangs", Harm::Redis);
    if let Some(redis) = &round.cluster.redis {
        redis.signal("STOP");
        tokio::time::sleep(span).await;
        redis.signal("CONT");
    }
    round.cluster.faults.end(fault);
}

async fn redis_flushall(round: &mut Round<'_>) {
    for _ in 0..3 {
        flush(round);
        round.wait(300, 1_500).await;
    }
}

fn flush(round: &mut Round<'_>) {
    let fault = round.cluster.faults.begin("FLUSHALL", Harm::RedisLoss);
    if let Some(redis) = &round.cluster.redis {
        redis.cli(&["FLUSHALL"]);
        redis.cli(&["SCRIPT", "FLUSH"]);
    }
    round.cluster.faults.end(fault);
}

async fn redis_slow(round: &mut Round<'_>) {
    let latency = round.rng.millis(200, 1_200);
    let span = round.beyond_ttl();
    round.storm("Redis is slow", Link::Redis, None, Weather { latency, ..Weather::default() }, span).await;
}

async fn partition_node_redis(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let span = round.beyond_ttl();
    round.storm("no Redis", Link::Redis, Some(owner), Weather::blackhole(), span).await;
    round.wait(300, 1_000).await;
}

async fn one_way_redis(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    for weather in [Weather::lost_replies(), Weather::held_requests()] {
        let span = round.beyond_ttl();
        round.storm("half of Redis", Link::Redis, Some(owner), weather, span).await;
    }
}

async fn stop_during_redis_hang(round: &mut Round<'_>) {
    let fault = round.cluster.faults.begin("Redis hangs", Harm::Redis);
    if let Some(redis) = &round.cluster.redis {
        redis.signal("STOP");
    }
    round.wait(100, 1_000).await;
    round.stop_and_start().await;
    if let Some(redis) = &round.cluster.redis {
        redis.signal("CONT");
    }
    round.cluster.faults.end(fault);
}

async fn db_kill(round: &mut Round<'_>) {
    let fault = round.cluster.faults.begin("database killed", Harm::Database);
    round.cluster.database.kill();
    round.wait(0, 4_000).await;
    round.cluster.database.restart();
    round.cluster.faults.end(fault);
    round.flows(20).await;
}

async fn db_restart(round: &mut Round<'_>) {
    let fault = round.cluster.faults.begin("database restarts", Harm::Database);
    round.cluster.database.restart();
    round.cluster.faults.end(fault);
    round.flows(20).await;
}

async fn db_hang(round: &mut Round<'_>) {
    let span = round.beyond_ttl();
    hang_database(round, span).await;
    round.flows(20).await;
}

async fn hang_database(round: &mut Round<'_>, span: Duration) {
    let fault = round.cluster.faults.begin("database hangs", Harm::Database);
    round.cluster.database.signal("STOP");
    tokio::time::sleep(span).await;
    round.cluster.database.signal("CONT");
    round.cluster.faults.end(fault);
}

/// Statements are obeyed and nobody hears of it, again and again: at each kind of statement sooner or later.
async fn db_lost_ack(round: &mut Round<'_>) {
    for _ in 0..6 {
        let owner = round.cluster.owner();
        let span = round.rng.millis(20, 700);
        round
            .storm("answers of the database lost", Link::Database, Some(owner), Weather::lost_replies(), span)
            .await;
        round.wait(100, 600).await;
    }
}

async fn db_slow(round: &mut Round<'_>) {
    let latency = round.rng.millis(50, 300);
    let span = round.beyond_ttl();
    round
        .storm("database is slow", Link::Database, None, Weather { latency, ..Weather::default() }, span)
        .await;
}

/// Connections end in the middle of whatever is said.
async fn db_cut_connections(round: &mut Round<'_>) {
    for _ in 0..8 {
        let node = round.any();
        let way = if round.rng.next().is_multiple_of(2) { Way::Up } else { Way::Down };
        let bytes = u32::try_from(round.rng.next() % 3_000).expect("small");
        let fault = round.cluster.faults.begin("database connections cut", Harm::Database);
        for proxy in round.cluster.links(Link::Database, Some(node)) {
            match bytes % 3 {
                0 => proxy.reset(),
                1 => proxy.half_close(way),
                _ => proxy.cut_after(way, bytes),
            }
        }
        round.wait(100, 500).await;
        round.cluster.faults.end(fault);
    }
}

/// Not a byte more can be written, for longer than anybody is believed without one.
async fn db_disk_full(round: &mut Round<'_>) {
    let fault = round.cluster.faults.begin("the database's disk is full", Harm::Database);
    if !round.cluster.database.fill_disk() {
        eprintln!("    NOT PLAYED: this machine doesn't let the database have a small disk of its own");
        return;
    }
    let span = round.beyond_ttl();
    tokio::time::sleep(span).await;
    round.cluster.database.spare_disk();
    round.cluster.faults.end(fault);
    round.flows(20).await;
}

async fn partition_node_db(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let span = round.beyond_ttl();
    round.storm("no database", Link::Database, Some(owner), Weather::blackhole(), span).await;
    round.flows(20).await;
}

/// What was said during the partition arrives after it: late checkpoints, late claims.
async fn partition_node_db_held(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let span = round.beyond_ttl();
    round.storm("database held", Link::Database, Some(owner), Weather::held(), span).await;
    round.flows(20).await;
}

async fn one_way_db(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let weather = [
        Weather::lost_replies(),
        Weather { down: Flow::Hold, ..Weather::default() },
        Weather::held_requests(),
    ];
    let at = usize::try_from(round.rng.next() % 3).expect("few");
    let span = round.beyond_ttl();
    round.storm("half of the database", Link::Database, Some(owner), weather[at], span).await;
    round.flows(20).await;
}

async fn stop_during_db_hang(round: &mut Round<'_>) {
    let fault = round.cluster.faults.begin("database hangs", Harm::Database);
    round.cluster.database.signal("STOP");
    round.wait(100, 2_000).await;
    // Nobody acknowledges it before the database is back.
    let port = round.cluster.nodes[0].port;
    let path = format!("/v1/tasks/t{}/stop", round.task);
    let answer = crate::api::call(port, "POST", &path, None, &serde_json::json!({})).await;
    assert!(!matches!(answer, Ok((200..=299, _))), "acknowledged without a database: {answer:?}");
    round.cluster.database.signal("CONT");
    round.cluster.faults.end(fault);
    round.stop_and_start().await;
}

/// The owner dies, and whoever is about to follow it too.
async fn kill_during_claim(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    round.cluster.kill(owner);
    let span = round.cluster.settings.ttl + round.rng.millis(0, 800);
    tokio::time::sleep(span).await;
    let next = (owner + 1 + usize::try_from(round.rng.next() % 2).expect("few")) % round.cluster.nodes.len();
    if next != owner {
        round.cluster.kill(next);
    }
    round.wait(500, 1_500).await;
}

/// The owner dies while it gives its shard back.
async fn kill_during_close(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let fault = round.cluster.faults.begin("SIGTERM, then SIGKILL", Harm::Node);
    round.cluster.nodes[owner].signal(rustix::process::Signal::TERM);
    round.wait(0, 120).await;
    round.cluster.kill(owner);
    round.cluster.faults.end(fault);
    round.taken_over_from(owner).await;
    round.cluster.restart(owner).await;
}

/// Both witnesses at once: the owner can't reach the database, and Redis forgets it.
async fn partition_and_flushall(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let fault = round.cluster.weather("no database", Link::Database, Some(owner), Weather::blackhole());
    round.wait(100, 2_000).await;
    flush(round);
    let span = round.beyond_ttl();
    tokio::time::sleep(span).await;
    round.cluster.clear(fault, Link::Database, Some(owner));
    round.flows(20).await;
}

async fn redis_and_db_hang(round: &mut Round<'_>) {
    let fault = round.cluster.faults.begin("Redis hangs", Harm::Redis);
    if let Some(redis) = &round.cluster.redis {
        redis.signal("STOP");
    }
    let span = round.beyond_ttl();
    hang_database(round, span).await;
    if let Some(redis) = &round.cluster.redis {
        redis.signal("CONT");
    }
    round.cluster.faults.end(fault);
    round.flows(20).await;
}

async fn kill_during_redis_outage(round: &mut Round<'_>) {
    let fault = round.kill_redis();
    round.wait(200, 1_500).await;
    let owner = round.cluster.owner();
    round.cluster.kill(owner);
    let span = round.beyond_ttl();
    tokio::time::sleep(span).await;
    round.start_redis(fault);
    round.taken_over_from(owner).await;
    round.cluster.restart(owner).await;
}

/// Several of the others, one after the other, chosen by the dice.
async fn random(round: &mut Round<'_>) {
    let settings = &round.cluster.settings;
    let is_one = |scenario: &&Scenario| scenario.name != "random" && fits(scenario, settings);
    let fitting: Vec<&Scenario> = ALL.iter().filter(is_one).collect();
    for _ in 0..3 {
        let at = usize::try_from(round.rng.next() % fitting.len() as u64).expect("few");
        eprintln!("   · {}", fitting[at].name);
        (fitting[at].act)(round).await;
        round.wait(0, 500).await;
    }
}
