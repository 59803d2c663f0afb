//! A round: a task flows, something happens, everything is healed, the task must finish, and all is judged.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::check::{Judgement, judge};
use crate::cluster::{Cluster, Link};
use crate::evidence::{Bounds, Command, Delivery, Evidence, Harm, Order, ShardWrite, now, say};
use crate::node::PATIENCE;
use crate::rng::Rng;
use crate::scenarios::Scenario;

/// A cluster with a task that flows, and the dice of the round.
pub(crate) struct Round<'a> {
    pub(crate) cluster: &'a mut Cluster,
    pub(crate) rng: Rng,
    pub(crate) task: i64,
}

/// Items in flight of a shard, and completions that may be unsaved.
const CONCURRENCY: u64 = 32;
const UNSAVED: u64 = 400;

/// Plays one round and says what came of it; what a bad one leaves is kept, and where is printed.
pub(crate) async fn play(cluster: &mut Cluster, scenario: &Scenario, seed: u64) -> Judgement {
    let begun = Instant::now();
    eprintln!("  {} (seed {seed})", scenario.name);
    let task = begin(cluster, seed).await;
    let mut round = Round {
        cluster,
        rng: Rng(seed),
        task,
    };
    round.flows(20).await;
    say("flows");
    (scenario.act)(&mut round).await;
    say("healing");
    cluster.heal().await;
    say("healed");
    let evidence = end(cluster, task).await;
    let judgement = judge(&evidence);
    eprintln!(
        "    {:.1} s: {} deliveries, {} losses, {} hand-overs, {} repeats (worst {} of {}), gaps {:?} ms, \
         stops {:?} ms, pace +{:.1}, excused {}, excluded {}, ended after {} ms, told after {} ms",
        begun.elapsed().as_secs_f64(),
        judgement.deliveries,
        judgement.losses,
        judgement.handovers,
        judgement.repeats,
        judgement.repeats_worst,
        judgement.repeats_allowed,
        judgement.gaps,
        judgement.stop_lags,
        judgement.pace_excess,
        judgement.excused.len(),
        judgement.excluded,
        judgement.ended_after,
        judgement.told_after,
    );
    if !judgement.findings.is_empty() {
        keep(cluster, &evidence, scenario.name, seed);
    }
    judgement
}

/// Makes and starts a task of a business of its own round.
pub(crate) async fn begin(cluster: &mut Cluster, seed: u64) -> i64 {
    cluster.faults.0.clear();
    cluster.commands.clear();
    cluster.effects.clear();
    let business =
        json!({"name": "chaos", "url": cluster.business.url(), "hooks": {"finished": {}, "stopped": {}}});
    let (_, status, answer) = cluster
        .ask("POST", "/v1/businesses?check=skip", None, &business)
        .await;
    assert!(status == 201 || status == 409, "{answer:#}");
    let settings = &cluster.settings;
    let mut body = json!({
        "business": "chaos",
        "source": {"type": "range", "total": settings.items},
        "rate": format!("{}/s", settings.rate),
        "burst": format!("{} items", settings.burst()),
        "concurrency": CONCURRENCY,
        "unsaved_max": UNSAVED,
        "checkpoint_interval": "200ms",
        "timeout": "4s",
        "park_after": "2s",
        "retry": {"max_attempts": 1000, "backoff": "100ms..2s x2"},
        "error_budget": "none",
    });
    if settings.shards > 1 {
        body["shards"] = settings.shards.into();
    }
    let key = format!("chaos-{seed}-{}", now());
    let task = cluster.create(&body, &key).await;
    cluster.order(task, Order::Start).await;
    task
}

/// Waits for the task's end and for the hook that tells it, and gathers everything.
pub(crate) async fn end(cluster: &mut Cluster, task: i64) -> Evidence {
    let begun = Instant::now();
    let mut view = Value::Null;
    let mut waking = now();
    while begun.elapsed() < PATIENCE {
        view = cluster
            .ask("GET", &format!("/v1/tasks/t{task}"), None, &Value::Null)
            .await
            .2;
        if view["status"] == "finished" && is_told(cluster, task) {
            break;
        }
        // A stop of the round was obeyed; the task is to finish all the same.
        if view["status"] == "stopped" && now() > waking {
            cluster.order(task, Order::Start).await;
            waking = now() + 2_000_000;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    gather(cluster, task, view).await
}

fn is_told(cluster: &Cluster, task: i64) -> bool {
    let record = cluster.business.record();
    record
        .hooks
        .iter()
        .any(|hook| hook.task == task && hook.kind == "task.finished")
}

/// Every run of a task, as it is told page by page.
async fn runs(cluster: &Cluster, task: i64) -> Vec<Value> {
    let (mut runs, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/tasks/t{task}/runs?limit=100{after}");
        let page = cluster.ask("GET", &path, None, &Value::Null).await.2;
        runs.extend(page["items"].as_array().cloned().unwrap_or_default());
        match page["next_cursor"].as_str() {
            Some(next) => after = format!("&cursor={next}"),
            None => return runs,
        }
    }
}

pub(crate) async fn gather(cluster: &Cluster, task: i64, view: Value) -> Evidence {
    let accepted = cluster.audit.accepted(task).await;
    let runs = runs(cluster, task).await;
    let settings = &cluster.settings;
    let included = included(cluster, task, &accepted.shards);
    let record = cluster.business.record();
    let deliveries: Vec<Delivery> = record
        .deliveries
        .iter()
        .filter(|delivery| delivery.task == task)
        .cloned()
        .collect();
    Evidence {
        task,
        bounds: Bounds {
            concurrency: CONCURRENCY,
            unsaved: UNSAVED,
            ttl: i64::try_from(settings.ttl.as_micros()).expect("short"),
            burst: settings.burst() as f64,
            rate: settings.rate as f64,
            items: settings.items,
        },
        deliveries,
        hooks: record.hooks.clone(),
        writes: accepted.shards,
        items: accepted.items,
        tasks: accepted.tasks,
        commands: cluster
            .commands
            .iter()
            .filter(|command| command.task == task)
            .cloned()
            .collect(),
        effects: cluster.effects.clone(),
        faults: cluster.faults.0.clone(),
        expected: crate::business::expected(included),
        runs,
        view,
    }
}

/// The items that count: all of them, unless somebody finished the task early.
fn included(cluster: &Cluster, task: i64, writes: &[ShardWrite]) -> Vec<u64> {
    let is_finish = |command: &Command| command.task == task && command.order == Order::Finish;
    if !cluster.commands.iter().any(is_finish) {
        return (0..cluster.settings.items).collect();
    }
    let last: BTreeMap<u32, &ShardWrite> = writes.iter().map(|write| (write.shard, write)).collect();
    let ranges = last.values();
    ranges
        .flat_map(|write| write.first.cast_unsigned()..write.end.cast_unsigned())
        .collect()
}

/// Writes evidence and the nodes' logs where they outlive the test.
fn keep(cluster: &Cluster, evidence: &Evidence, name: &str, seed: u64) {
    let place = std::env::temp_dir().join(format!("windrow-chaos-{name}-{seed}"));
    std::fs::create_dir_all(&place).expect("a directory");
    let json = serde_json::to_vec(evidence).expect("JSON");
    std::fs::write(place.join("evidence.json"), json).expect("written");
    for node in &cluster.nodes {
        let log = place.join(format!("{}.log", node.name));
        std::fs::copy(node.place.join("log"), log).expect("copied");
    }
    eprintln!("    kept in {}", place.display());
}

impl Round<'_> {
    /// Waits until so many more deliveries came, or there are no more to come: what happens may take longer than the task.
    pub(crate) async fn flows(&self, count: u64) {
        let wanted = self.cluster.business.count() + count;
        let ended = async {
            while !is_told(self.cluster, self.task) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let flowing = async {
            tokio::select! {
                () = self.cluster.business.reaches(wanted) => {}
                () = ended => {}
            }
        };
        let flowing = tokio::time::timeout(PATIENCE, flowing).await;
        assert!(flowing.is_ok(), "nothing flows: {}", self.said());
    }

    /// Lets time pass: a span of milliseconds.
    pub(crate) async fn wait(&mut self, low: u64, high: u64) {
        self.rng.moment(low, high).await;
    }

    /// Waits until another node than this one delivers, or until that should long have been.
    pub(crate) async fn taken_over_from(&self, node: usize) {
        let begun = Instant::now();
        let limit = self.cluster.settings.ttl * 2 + Duration::from_secs(4);
        while self.cluster.owner() == node && begun.elapsed() < limit && self.cluster.nodes.len() > 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Longer than anybody believes a silent owner.
    pub(crate) fn beyond_ttl(&mut self) -> Duration {
        self.cluster.settings.ttl + self.rng.millis(1_500, 3_000)
    }

    /// Stop and start, each acknowledged.
    pub(crate) async fn stop_and_start(&mut self) {
        self.cluster.order(self.task, Order::Stop).await;
        let begun = Instant::now();
        while begun.elapsed() < self.cluster.settings.ttl * 2 {
            let path = format!("/v1/tasks/t{}", self.task);
            let view = self.cluster.ask("GET", &path, None, &Value::Null).await.2;
            if view["status"] == "stopped" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.cluster.order(self.task, Order::Start).await;
    }

    /// Any node.
    pub(crate) fn any(&mut self) -> usize {
        let nodes = self.cluster.nodes.len() as u64;
        usize::try_from(self.rng.next() % nodes).expect("few")
    }

    fn said(&self) -> String {
        let logs: Vec<String> = self
            .cluster
            .nodes
            .iter()
            .map(|node| format!("{}:\n{}", node.name, node.said()))
            .collect();
        logs.join("\n\n")
    }

    /// Redis, killed; what it held is gone when it is back.
    pub(crate) fn kill_redis(&mut self) -> Option<usize> {
        let redis = self.cluster.redis.as_mut()?;
        redis.kill();
        self.cluster.is_redis_down = true;
        self.cluster.faults.begin("Redis lost its data", Harm::RedisLoss);
        Some(self.cluster.faults.begin("Redis is down", Harm::Redis))
    }

    /// Redis again, empty.
    pub(crate) fn start_redis(&mut self, fault: Option<usize>) {
        if let (Some(redis), Some(fault)) = (&mut self.cluster.redis, fault) {
            redis.restart();
            self.cluster.is_redis_down = false;
            self.cluster.faults.end(fault);
        }
    }

    /// The bad weather of a link for a while.
    pub(crate) async fn storm(
        &mut self,
        name: &str,
        link: Link,
        node: Option<usize>,
        weather: crate::proxy::Weather,
        span: Duration,
    ) {
        let fault = self.cluster.weather(name, link, node, weather);
        tokio::time::sleep(span).await;
        self.cluster.clear(fault, link, node);
    }
}
