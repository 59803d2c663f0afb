//! A node over the memory store on a paused clock: time jumps whenever nobody works.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;
use windrow::actors::context::{
    Heartbeats, HookParts, Keep, NodeContext, NodePlace, RoomBoard, RunDirectory, Serving, Times,
};
use windrow::actors::handle::SupervisorHandle;
use windrow::actors::new_ids::NewIds;
use windrow::actors::tree::Tree;
use windrow::adapters::memory::MemoryStore;
use windrow::adapters::source::RangeSource;
use windrow::config::Config;
use windrow::domain::capacity::{Capacity, Ledger};
use windrow::domain::ids::{Attempt, ItemCount, ItemIndex, Moment, TaskId, WallMs};
use windrow::domain::lifecycle::Status;
use windrow::domain::settings::Rate;
use windrow::domain::task::{Canary, Tuning};
use windrow::ports::clock::Clock;
use windrow::ports::handler::{Call, Handler, HandlerFactory, OpenError, Reply, RunContext};
use windrow::ports::provision::{Provider, Provision, ProvisionError};
use windrow::ports::source::Source;
use windrow::ports::task_store::{Actor, NewTask, TaskCommand, TaskStore, TaskView};

use crate::stubborn::Stubborn;

/// Tokio's clock, which tests pause.
pub struct VirtualClock {
    pub start: Instant,
}

const BOOT_MS: i64 = 1_795_000_000_000;

impl Clock for VirtualClock {
    fn now(&self) -> Moment {
        Moment(1_000_000_000 + u64::try_from(self.start.elapsed().as_nanos()).expect("a test is short"))
    }

    fn wall(&self) -> WallMs {
        WallMs(self.wall_micros(self.now()) / 1000)
    }

    fn wall_micros(&self, moment: Moment) -> i64 {
        BOOT_MS * 1000 + i64::try_from(moment.0 / 1000).expect("a test is short")
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'static, ()> {
        let wait = moment.since(self.now());
        Box::pin(tokio::time::sleep(wait))
    }
}

/// What a scripted handler does with one item.
pub enum Act {
    Reply(Reply),
    /// Takes a while, then succeeds.
    Slow(Duration),
    /// Never answers.
    Hang,
    /// Panics in the lane: a bug of a handler's adapter.
    Panic,
}

type Script = Box<dyn Fn(ItemIndex, Attempt) -> Act + Send + Sync>;

/// A handler that follows a script and writes down every call.
pub struct Scripted {
    script: Script,
    pub calls: Mutex<Vec<(ItemIndex, Attempt)>>,
    pub opened: Mutex<u32>,
    pub closed: Mutex<u32>,
    /// How often closing still panics.
    pub close_panics: AtomicU32,
    slots: watch::Sender<Option<u32>>,
}

impl Scripted {
    pub fn new(script: impl Fn(ItemIndex, Attempt) -> Act + Send + Sync + 'static) -> Arc<Scripted> {
        Arc::new(Scripted {
            script: Box::new(script),
            calls: Mutex::default(),
            opened: Mutex::default(),
            closed: Mutex::default(),
            close_panics: AtomicU32::new(0),
            slots: watch::Sender::new(None),
        })
    }

    /// How often each item was delivered.
    pub fn deliveries(&self) -> BTreeMap<ItemIndex, u32> {
        let mut counts = BTreeMap::new();
        for (index, _) in self.calls.lock().expect("no panic while held").iter() {
            *counts.entry(*index).or_insert(0) += 1;
        }
        counts
    }
}

impl Handler for Scripted {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        let (index, attempt) = call.items.iter().next().expect("a call has an item");
        self.calls.lock().expect("no panic while held").extend(call.items.iter());
        let act = (self.script)(index, attempt);
        Box::pin(async move {
            match act {
                Act::Reply(reply) => reply,
                Act::Slow(wait) => {
                    tokio::time::sleep(wait).await;
                    Reply::AllOk
                }
                Act::Hang => std::future::pending().await,
                Act::Panic => panic!("the scripted panic"),
            }
        })
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.slots.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        *self.closed.lock().expect("no panic while held") += 1;
        assert!(!takes_one(&self.close_panics), "the scripted panic while closing");
        Box::pin(std::future::ready(()))
    }
}

/// Whether there was one left.
fn takes_one(left: &AtomicU32) -> bool {
    left.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

struct Factory(Arc<Scripted>);

impl HandlerFactory for Factory {
    fn open(&self, _: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        *self.0.opened.lock().expect("no panic while held") += 1;
        Ok(self.0.clone())
    }
}

pub struct Everything {
    handler: Arc<Scripted>,
    source: Option<Arc<dyn Source>>,
    panics: Arc<AtomicU32>,
}

impl Everything {
    pub fn of(handler: Arc<Scripted>) -> Everything {
        Everything { handler, source: None, panics: Arc::default() }
    }
}

#[async_trait]
impl Provider for Everything {
    async fn provide(&self, task: &TaskView) -> Result<Provision, ProvisionError> {
        assert!(!takes_one(&self.panics), "the scripted panic while providing");
        let source: Arc<dyn Source> = match &self.source {
            Some(source) => source.clone(),
            None => Arc::new(RangeSource::new(task.total)),
        };
        Ok(Provision { handler: Arc::new(Factory(self.handler.clone())), source })
    }
}

/// One node and its store.
pub struct World {
    pub store: Arc<MemoryStore>,
    pub runs: Arc<Stubborn>,
    pub clock: Arc<VirtualClock>,
    pub handler: Arc<Scripted>,
    pub node: Option<SupervisorHandle>,
    name: String,
    bomb: Arc<Mutex<Option<Bomb>>>,
    source: Option<Arc<dyn Source>>,
    /// What the next boot delivers hooks with.
    pub hooks: Option<HookParts>,
    /// How long things are kept after the next boot.
    pub keep: Option<Keep>,
    pub serving: Serving,
    pub capacity: Capacity,
    /// Whether it holds the lock of the state directory: no other node lives beside it.
    pub exclusive: bool,
    /// How often providing still panics.
    pub provider_panics: Arc<AtomicU32>,
}

/// Lets an actor panic: the path's end, and at which message from now on.
struct Bomb {
    path: String,
    fuse: u32,
}

pub fn actor() -> Actor {
    Actor { name: "test".into(), source: "cli", reason: None, request_id: None, rehearses: false }
}

pub fn new_task(total: u64, canary: Option<Canary>, tune: impl FnOnce(&mut Tuning)) -> NewTask {
    let mut tuning = Config::default().task_defaults.tuning;
    tuning.rate = windrow::domain::settings::RateLimit::Unlimited;
    tune(&mut tuning);
    NewTask {
        business: "run".into(),
        name: None,
        total: ItemCount(total),
        skip_first: ItemIndex(0),
        tuning,
        params: None,
        source: "{}".into(),
        meaning: 0,
        idempotency_key: None,
        labels: std::collections::BTreeMap::new(),
        send_params: true,
        canary,
        start_at: None,
        deadline: None,
        parent: None,
        priority: 0,
        shards: windrow::domain::settings::Auto::Fixed(std::num::NonZeroU32::MIN),
    }
}

impl World {
    /// A node of this name (unique in the process) whose handler follows the script.
    pub async fn start(
        name: &str,
        script: impl Fn(ItemIndex, Attempt) -> Act + Send + Sync + 'static,
    ) -> World {
        World::start_with(name, None, script).await
    }

    /// The same, arranged before it boots.
    pub async fn start_as(
        name: &str,
        arrange: impl FnOnce(&mut World),
        script: impl Fn(ItemIndex, Attempt) -> Act + Send + Sync + 'static,
    ) -> World {
        let mut world = World::new(name, None, script);
        arrange(&mut world);
        world.boot().await;
        world
    }

    /// The same, with items that have data.
    pub async fn start_with(
        name: &str,
        source: Option<Arc<dyn Source>>,
        script: impl Fn(ItemIndex, Attempt) -> Act + Send + Sync + 'static,
    ) -> World {
        let mut world = World::new(name, source, script);
        world.boot().await;
        world
    }

    fn new(
        name: &str,
        source: Option<Arc<dyn Source>>,
        script: impl Fn(ItemIndex, Attempt) -> Act + Send + Sync + 'static,
    ) -> World {
        let store = Arc::new(MemoryStore::new());
        World {
            runs: Arc::new(Stubborn::new(store.clone())),
            store,
            clock: Arc::new(VirtualClock { start: Instant::now() }),
            handler: Scripted::new(script),
            node: None,
            name: name.to_owned(),
            bomb: Arc::default(),
            source,
            hooks: None,
            keep: None,
            serving: Serving::default(),
            capacity: Capacity::Unlimited,
            exclusive: true,
            provider_panics: Arc::default(),
        }
    }

    /// Another node over the same store, with the same handler.
    pub async fn beside(&self, name: &str) -> World {
        let mut other = World {
            store: self.store.clone(),
            runs: self.runs.clone(),
            clock: self.clock.clone(),
            handler: self.handler.clone(),
            node: None,
            name: name.to_owned(),
            bomb: Arc::default(),
            source: self.source.clone(),
            hooks: None,
            keep: None,
            serving: Serving::default(),
            capacity: self.capacity,
            exclusive: false,
            provider_panics: Arc::default(),
        };
        other.boot().await;
        other
    }

    /// Starts the node (again).
    pub async fn boot(&mut self) {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let context = NodeContext {
            node: self.name.clone(),
            version: "test".into(),
            store_id: self.store.store_id().await.expect("memory"),
            clock: clock.clone(),
            tree: Tree::new(clock).observed(self.observer()),
            work: tokio::runtime::Handle::current(),
            vital: tokio::runtime::Handle::current(),
            lanes_unpaced: 2,
            runs: self.runs.clone(),
            tasks: self.store.clone(),
            sessions: self.store.clone(),
            leases: None,
            hints: None,
            data_log: self.store.clone(),
            provider: Arc::new(Everything {
                handler: self.handler.clone(),
                source: self.source.clone(),
                panics: self.provider_panics.clone(),
            }),
            times: Times::default(),
            serving: self.serving.clone(),
            exclusive: self.exclusive,
            directory: RunDirectory::default(),
            place: NodePlace::default(),
            hooks: self.hooks.clone(),
            upkeep: self.store.clone(),
            uploads: None,
            keep: self.keep,
            room: RoomBoard::default(),
            heartbeats: Heartbeats::default(),
            new_ids: NewIds::default(),
            meters: Arc::default(),
        };
        let ledger = Ledger::new(self.capacity, Rate::per_second(1000).expect("not zero"));
        self.node = Some(SupervisorHandle::start(Arc::new(context), ledger).await.expect("the tree starts"));
    }

    fn observer(&self) -> Arc<dyn Fn(&str) + Send + Sync> {
        let bomb = self.bomb.clone();
        Arc::new(move |path| {
            let mut bomb = bomb.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let Some(planted) = bomb.as_mut().filter(|bomb| path.ends_with(&bomb.path)) else { return };
            planted.fuse -= 1;
            if planted.fuse == 0 {
                *bomb = None;
                drop(bomb);
                panic!("the planted panic in {path}");
            }
        })
    }

    /// Lets an actor panic at its `fuse`-th message from now on, and waits until it did.
    pub async fn panic_in(&self, path: &str, fuse: u32) {
        let lock = || self.bomb.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *lock() = Some(Bomb { path: path.to_owned(), fuse });
        for _ in 0..60_000 {
            if lock().is_none() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{path} never got {fuse} messages");
    }

    /// The wall clock after a while.
    pub fn clock_in(&self, wait: Duration) -> WallMs {
        self.clock.wall().plus(wait)
    }

    pub fn node(&self) -> &SupervisorHandle {
        self.node.as_ref().expect("the node runs")
    }

    /// Makes and starts a task of `total` items.
    pub async fn task(&self, total: u64, tune: impl FnOnce(&mut Tuning)) -> TaskId {
        self.task_of(total, None, tune).await
    }

    /// A task that was never started.
    pub async fn made(&self, total: u64, change: impl FnOnce(&mut NewTask)) -> TaskId {
        let now = self.clock.wall();
        self.store.ensure_business("run", &actor(), now).await.expect("memory");
        let mut new = new_task(total, None, |_| {});
        change(&mut new);
        self.store.create(&new, &actor(), now).await.expect("created").id
    }

    /// The same, with a canary.
    pub async fn task_of(
        &self,
        total: u64,
        canary: Option<Canary>,
        tune: impl FnOnce(&mut Tuning),
    ) -> TaskId {
        let now = self.clock.wall();
        self.store.ensure_business("run", &actor(), now).await.expect("memory");
        let new = new_task(total, canary, tune);
        let task = self.store.create(&new, &actor(), now).await.expect("created");
        self.command(task.id, TaskCommand::Start).await;
        task.id
    }

    pub async fn command(&self, task: TaskId, command: TaskCommand) {
        let now = self.clock.wall();
        self.store.command(task, &command, &actor(), now).await.expect("legal");
        self.node().wake();
    }

    pub async fn view(&self, task: TaskId) -> TaskView {
        self.store.get(task).await.expect("memory").expect("exists")
    }

    /// Waits (on the virtual clock) until the task has this status.
    pub async fn until(&self, task: TaskId, status: Status) -> TaskView {
        self.until_that(task, &format!("{status:?}"), |view| view.status == status).await
    }

    pub async fn until_that(&self, task: TaskId, what: &str, is: impl Fn(&TaskView) -> bool) -> TaskView {
        for _ in 0..60_000 {
            let view = self.view(task).await;
            if is(&view) {
                return view;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not {what} in 10 minutes: {:?}\n{}", self.view(task).await, self.node().tree().render(""));
    }

    /// The live counters and the sum that they must make.
    pub fn in_flight(&self, task: TaskId) -> u64 {
        self.node().progress(task).iter().map(|(_, progress)| progress.counters.in_flight).sum()
    }

    /// Waits until so many items are in flight.
    pub async fn until_in_flight(&self, task: TaskId, count: u64) {
        for _ in 0..60_000 {
            if self.in_flight(task) >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("never {count} in flight\n{}", self.node().tree().render(""));
    }

    /// Kills an actor by the last part(s) of its path, as `t1.0/executor`.
    pub async fn kill(&self, path: &str) {
        let full = if path.is_empty() { self.name.clone() } else { format!("{}/{path}", self.name) };
        let cell = ractor::registry::where_is(full.clone()).unwrap_or_else(|| panic!("no actor {full}"));
        cell.kill();
        cell.wait(None).await.expect("it ends");
    }

    /// Nothing is reserved, owned, live or in flight any more.
    pub async fn assert_nothing_leaks(&self) {
        assert_eq!(self.node().progress(TaskId(1)).len(), 0, "live runs");
        let tree = self.node().tree().view();
        let root = tree.iter().find(|actor| actor.path == self.name).expect("the supervisor lives");
        assert_eq!(root.text, "0 runs, 0/s reserved");
        assert_eq!(tree.len(), 8, "the supervisor and its seven: {:#?}", tree);
        let (opened, closed) =
            (*self.handler.opened.lock().expect("ok"), *self.handler.closed.lock().expect("ok"));
        assert_eq!(opened, closed, "handlers opened and closed");
    }
}
