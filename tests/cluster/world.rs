//! A cluster on one virtual clock: nodes come and go as the plan says, then all is healed and must come to an end.
//!
//! One thread, one paused clock, ids from the seed: the same seed gives the same log. What the model can't show: code
//! that runs on two threads at once, and a suspension between two statements without an await.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::ids::{ItemCount, ItemIndex, TaskId};
use windrow_core::settings::{Auto, Rate, RateLimit, Results};
use windrow_core::task::lifecycle::StopReason;
use windrow_core::task::spec::{Shards, TaskSpec};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::ownership::hints::Hints;
use windrow_engine::ports::ownership::session_store::SessionStore;
use windrow_engine::ports::tasks::results::ItemOutput;
use windrow_engine::ports::tasks::store::{Actor, NewTask, TaskCommand, TaskStore, Write};
use windrow_memory::{HintHub, MemoryLeases, MemoryStore};
use windrow_server::service::results;

use crate::business::Business;
use crate::clock::NodeClock;
use crate::judge::{Judge, Tally};
use crate::link::{Fate, Link, Peer};
use crate::node::Node;
use crate::plan::{HEALED_AT, Isolation, Order, Plan, Step};
use crate::rng::Rng;
use crate::view::{View, look};

/// From the healing on, everything comes to its end within this, beside the items that are left. Unit: milliseconds.
const LIVENESS: u64 = 60_000;

/// What came of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) failures: Vec<String>,
    pub(crate) tally: Tally,
    pub(crate) log: Vec<String>,
}

/// Plays the scenario of a seed, with its log if it is wanted.
pub(crate) fn play(seed: u64, logs: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let outcome = runtime.block_on(async {
        let mut world = World::new(Plan::of(seed), logs).await;
        world.live().await;
        world.outcome()
    });
    drop(runtime);
    outcome
}

struct World {
    plan: Plan,
    start: Instant,
    clock: Arc<NodeClock>,
    store: Arc<MemoryStore>,
    leases: Option<Arc<MemoryLeases>>,
    judge: Arc<Mutex<Judge>>,
    /// What people do goes over a link of its own, on which nothing goes wrong.
    people: Arc<Link>,
    business: Arc<Business>,
    nodes: Vec<Option<Node>>,
    lives: Vec<u32>,
    tasks: Vec<TaskId>,
    rng: Rng,
    hints: Arc<HintHub>,
    /// What somebody read of results who goes on where they ended.
    read: BTreeMap<TaskId, Vec<ItemOutput>>,
}

fn person() -> Write {
    Actor {
        name: "person".into(),
        source: "cli",
        ..Actor::windrow(None)
    }
    .writes()
}

impl World {
    async fn new(plan: Plan, logs: bool) -> World {
        let start = Instant::now();
        let clock = Arc::new(NodeClock::new(start, 1, 0, 0));
        // Where shards are taken over without a look at leases, all nodes have the same term.
        let alone = plan.goes_without.then(|| plan.ttl[0]);
        let judge = Arc::new(Mutex::new(Judge::new(start, alone, logs)));
        let link = |who, rng| {
            Arc::new(Link::new(
                who,
                clock.clone(),
                judge.clone(),
                rng,
                Duration::from_secs(1),
            ))
        };
        let people = link((99, 0), Rng(plan.seed));
        let leases = plan
            .has_leases
            .then(|| Arc::new(MemoryLeases::new(clock.clone())));
        let business = Arc::new(Business::new(plan.seed, plan.manners));
        let (nodes, lives) = ((0..plan.nodes).map(|_| None).collect(), vec![0; plan.nodes]);
        let (store, tasks, rng) = (Arc::new(MemoryStore::new()), Vec::new(), Rng(plan.seed ^ 0xfeed));
        World {
            plan,
            start,
            clock,
            store,
            leases,
            judge,
            people,
            business,
            nodes,
            lives,
            tasks,
            rng,
            hints: Arc::default(),
            read: BTreeMap::new(),
        }
    }

    fn judge<T>(&self, ask: impl FnOnce(&mut Judge) -> T) -> T {
        self.people.judge(ask)
    }

    async fn live(&mut self) {
        self.make_tasks().await;
        for node in 0..self.plan.nodes {
            self.boot(node).await;
        }
        for (at, step) in self.plan.steps.clone() {
            self.until(at).await;
            if self.has_failed() {
                return;
            }
            self.judge(|judge| judge.note(|| format!("{step:?}")));
            self.step(step).await;
            self.check_rooms();
            self.read_on().await;
        }
        self.until(HEALED_AT).await;
        self.heal().await;
        self.come_to_an_end().await;
    }

    fn has_failed(&self) -> bool {
        self.judge(|judge| !judge.failures.is_empty())
    }

    async fn until(&self, at: u64) {
        tokio::time::sleep_until(self.start + Duration::from_millis(at)).await;
    }

    async fn make_tasks(&mut self) {
        let now = self.clock.wall();
        self.store
            .ensure_business("run", &person(), now)
            .await
            .expect("memory");
        for task in self.plan.tasks.clone() {
            let new = NewTask {
                spec: TaskSpec {
                    shards: Shards(Auto::Fixed(NonZeroU32::new(task.shards).expect("not zero"))),
                    ..TaskSpec::default()
                },
                ..NewTask::of("run", ItemCount(task.total), task.tuning.clone())
            };
            let made = self.store.create(&new, &person(), now).await.expect("created");
            self.judge(|judge| judge.on_made(made.id, &task.tuning, task.total));
            self.tasks.push(made.id);
        }
    }

    async fn boot(&mut self, node: usize) {
        if self.nodes[node].as_ref().is_some_and(|node| !node.is_gone()) {
            return;
        }
        self.lives[node] += 1;
        let life = self.lives[node];
        let (ppm, seed) = (self.plan.ppm[node], self.plan.seed);
        let skew = self.rng.between(0, 400) as i64 - 200;
        let clock = Arc::new(NodeClock::new(
            self.start,
            100 * (node as u64 + 1) + u64::from(life),
            ppm,
            skew,
        ));
        let rng = Rng(seed ^ (node as u64 + 1).wrapping_mul(0x00c0_ffee) ^ u64::from(life) << 40);
        let link = Link::new((node, life), clock, self.judge.clone(), rng, self.plan.late_max);
        let view = View {
            link: Arc::new(link),
            store: self.store.clone(),
            leases: self.leases.clone(),
        };
        let hints = self.plan.has_hints.then(|| self.hints.join() as Arc<dyn Hints>);
        // A process that was killed by a trap still has its actors.
        self.nodes[node].take().iter().for_each(Node::crash);
        self.nodes[node] = Some(Node::boot(&self.plan, view, self.business.clone(), hints).await);
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Boot(node) => self.boot(node).await,
            Step::Crash(node) => self.crash(node),
            Step::Freeze(node, lasting) => self.with(node, |node| {
                node.link.clock.freeze(lasting);
                node.link.judge(|judge| judge.seen("suspended"));
            }),
            Step::Cut(node, peer, cut) => self.with(node, |node| node.link.cut(peer, cut)),
            Step::CutAll(peer, cut) => {
                (0..self.plan.nodes).for_each(|node| self.with(node, |node| node.link.cut(peer, cut)));
            }
            Step::Noise(node, noise) => self.with(node, |node| node.link.set_noise(noise)),
            Step::WipeLeases => {
                if let Some(leases) = &self.leases {
                    leases.wipe();
                    self.judge(Judge::on_wipe);
                }
            }
            Step::Trap(node, what) => self.with(node, |node| node.link.set_trap(what)),
            Step::Aim(node, what, times, fate) => {
                self.with(node, |node| node.link.aim(what, times, fate));
            }
            Step::Isolate(task, how) => self.isolate(self.tasks[task], how),
            Step::Faint(task, slow) => self.faint(self.tasks[task], slow),
            Step::Rejoin => (0..self.plan.nodes).for_each(|node| {
                self.with(node, |node| {
                    node.link.cut(Peer::Database, None);
                    node.link.cut(Peer::Leases, None);
                });
            }),
            Step::CutHints(cut) => self.hints.cut(cut),
            Step::Desired(node, drain) => self.desired(node, drain).await,
            Step::Move(task, shard, to) => self.move_to(self.tasks[task], shard, to).await,
            Step::Drain(node) => self.with(node, |node| {
                if !node.drains {
                    let who = (node.link.node, node.link.life);
                    node.link.judge(|judge| judge.on_drain(who));
                    node.drain();
                }
            }),
            Step::Order(task, order) => self.order(self.tasks[task], order).await,
        }
    }

    fn with(&mut self, node: usize, act: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes[node].as_mut().filter(|node| !node.is_gone()) {
            act(node);
        }
    }

    fn crash(&mut self, node: usize) {
        self.with(node, |node| {
            let who = (node.link.node, node.link.life);
            node.link.judge(|judge| judge.on_crash(who));
            node.crash();
        });
    }

    fn isolate(&mut self, task: TaskId, how: Isolation) {
        let Some(owner) = self.judge(|judge| judge.owner_of(task)) else {
            return;
        };
        for node in 0..self.plan.nodes {
            let is_owner = node == owner;
            self.with(node, |node| {
                if is_owner {
                    node.link.cut(Peer::Database, Some(how.cut));
                    how.late
                        .iter()
                        .for_each(|late| node.link.aim("renew", how.renewals, Fate::Late(*late)));
                } else if how.blinds {
                    node.link.cut(Peer::Leases, Some(how.cut));
                }
            });
        }
        self.judge(|judge| judge.seen("owner isolated"));
    }

    fn faint(&mut self, task: TaskId, slow: Duration) {
        let Some(owner) = self.judge(|judge| judge.owner_of(task)) else {
            return;
        };
        self.with(owner, |node| {
            for (what, beats) in [("beat", 8), ("renew", 16)] {
                node.link.aim(what, 1, Fate::Slow(Duration::ZERO, slow));
                node.link.aim(what, beats, Fate::Lost);
            }
        });
        self.judge(|judge| judge.seen("owner fainted"));
    }

    /// People want a node to hand everything over and to stand by, or to take work again.
    async fn desired(&mut self, node: usize, drain: bool) {
        let Some(node) = self.nodes[node].as_ref().filter(|node| !node.is_gone()) else {
            return;
        };
        let who = (node.link.node, node.link.life);
        self.judge(|judge| judge.on_drain_request(who, drain));
        self.store.request_drain(&node.name, drain).await.expect("memory");
    }

    async fn move_to(&mut self, task: TaskId, shard: Option<u32>, to: usize) {
        let Some(node) = self.nodes[to].as_ref().filter(|node| !node.is_gone()) else {
            return;
        };
        let (name, now) = (node.name.clone(), self.clock.wall());
        if self
            .store
            .move_shards(task, shard, &name, &person(), now)
            .await
            .is_ok()
        {
            self.judge(|judge| judge.on_move(task, shard, to));
        }
    }

    async fn order(&mut self, task: TaskId, order: Order) {
        let command = match order {
            Order::Start => TaskCommand::Start,
            Order::Stop => TaskCommand::Stop {
                reason: StopReason::Operator,
            },
            Order::StopNow => TaskCommand::StopNow,
            Order::Cancel => TaskCommand::Cancel,
            Order::Finish(end) => TaskCommand::Finish { end: ItemIndex(end) },
            Order::Pace(rate) => {
                let Ok(Some(view)) = self.store.get(task).await else {
                    return;
                };
                let mut tuning = view.life.tuning;
                tuning.rate = RateLimit::Limited(Rate::per_second(rate).expect("not zero"));
                TaskCommand::Tune(Box::new(tuning))
            }
        };
        let done = self
            .store
            .command(task, &command, &person(), self.clock.wall())
            .await;
        self.judge(|judge| judge.on_command(task, &command, done.is_ok()));
        look(&self.people, &self.store).await;
        for node in self.nodes.iter().flatten().filter(|node| !node.is_gone()) {
            if self.rng.chance(500) {
                node.hint(task);
            }
        }
    }

    /// No node has booked more than it may run, and what waits for room says so.
    fn check_rooms(&self) {
        for node in self
            .nodes
            .iter()
            .flatten()
            .filter(|node| !node.is_gone() && node.is_overbooked())
        {
            self.judge(|judge| judge.fail(format!("n{} has booked more than it has", node.link.node)));
        }
    }

    async fn heal(&mut self) {
        self.judge(|judge| judge.note(|| "all is healed".to_owned()));
        self.hints.cut(false);
        for node in 0..self.plan.nodes {
            if self.nodes[node].as_ref().is_some_and(|node| node.drains) {
                self.crash(node);
            }
            self.boot(node).await;
            self.desired(node, false).await;
            self.with(node, |node| node.link.heal());
        }
        // Half of what was stopped goes on, so that stops and take-overs are followed by an end.
        for task in self.tasks.clone() {
            if self.rng.chance(500) {
                self.order(task, Order::Start).await;
            }
        }
    }

    async fn come_to_an_end(&mut self) {
        let slowest = |task: &crate::plan::TaskPlan| task.total * 1000 / 5;
        let items = self.plan.tasks.iter().map(slowest).max().unwrap_or(0);
        let deadline = HEALED_AT + LIVENESS + items;
        let mut at = HEALED_AT;
        while at < deadline && !self.has_failed() {
            at += 250;
            self.until(at).await;
            self.check_rooms();
            self.read_on().await;
            let tasks = &self.tasks;
            if self.judge(|judge| tasks.iter().all(|task| judge.is_settled(*task))) {
                return self.check_end().await;
            }
        }
        for task in self.tasks.clone() {
            if !self.judge(|judge| judge.is_settled(task)) {
                let view = self.store.get(task).await.expect("memory");
                self.judge(|judge| judge.fail(format!("{task} did not come to its end: {view:?}")));
            }
        }
        let trees: String = self.nodes.iter().flatten().map(Node::tree).collect();
        self.judge(|judge| judge.note(|| trees));
    }

    /// Reads the results that have come since it was done last.
    async fn read_on(&mut self) {
        for task in self.tasks.clone() {
            let known = self.read.entry(task).or_default();
            let from = known.last().map_or(ItemIndex(0), |last| last.index.plus(1));
            let more = self.results(task, from).await;
            self.read.entry(task).or_default().extend(more);
        }
    }

    /// The results that can be read of a task, from an index on.
    async fn results(&self, task: TaskId, from: ItemIndex) -> Vec<ItemOutput> {
        let view = self.store.get(task).await.expect("memory").expect("exists");
        if view.life.tuning.results == Results::Off {
            return Vec::new();
        }
        let results = results::Results::new(self.store.clone());
        let mut reader = results.read(&view, from).await.expect("memory");
        let mut all = Vec::new();
        loop {
            let page = reader.page().await.expect("memory");
            if page.is_empty() {
                return all;
            }
            all.extend(page);
        }
    }

    async fn check_end(&mut self) {
        for task in self.tasks.clone() {
            let view = self.store.get(task).await.expect("memory").expect("exists");
            if view.life.tuning.results == Results::Keep {
                let (before, all) = (self.read.remove(&task), self.results(task, ItemIndex(0)).await);
                let before = before.unwrap_or_default();
                self.judge(|judge| judge.check_results(task, &before, &all, view.status.is_terminal()));
            }
            if view.status == windrow_core::task::lifecycle::Status::Finished {
                self.judge(|judge| judge.check_finished(task));
            }
            let audit = self.store.audit(task).await.expect("memory");
            let actions: Vec<String> = audit.into_iter().map(|entry| entry.action).collect();
            self.judge(|judge| judge.check_audit(task, &actions));
        }
        self.judge(|judge| judge.check_pace(10_100));
    }

    fn outcome(&self) -> Outcome {
        self.judge(|judge| Outcome {
            failures: judge.failures.clone(),
            tally: judge.tally.clone(),
            log: judge.take_log(),
        })
    }
}
