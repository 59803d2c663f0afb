//! A node over the memory store on a paused clock: time jumps whenever nobody works.

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::capacity::{Capacity, Ledger};
use windrow_core::ids::{Attempt, ItemIndex, TaskId, WallMs};
use windrow_core::meter::metering::Metering;
use windrow_core::settings::Rate;
use windrow_core::task::lifecycle::Status;
use windrow_core::task::{Canary, Tuning};
use windrow_engine::actors::runtime::context::{
    Heartbeats, HookParts, Keep, LocalBuckets, NodeContext, NodePlace, RoomBoard, RunDirectory,
    ScheduleParts, Serving, Times,
};
use windrow_engine::actors::runtime::handle::SupervisorHandle;
use windrow_engine::actors::runtime::new_ids::NewIds;
use windrow_engine::actors::runtime::tree::Tree;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::tasks::store::{NewTask, TaskCommand, TaskStore, TaskView};
use windrow_memory::MemoryStore;

use crate::clock::VirtualClock;
use crate::link::Link;
use crate::patience::{PATIENCE, holds_within};
use crate::scripted::{Act, Everything, Scripted};
use crate::tasks::{self, new_task, write};

/// One node and its store.
pub struct World {
    pub store: Arc<MemoryStore>,
    /// Its way to the runs.
    pub runs: Arc<Link>,
    pub clock: Arc<VirtualClock>,
    pub handler: Arc<Scripted>,
    pub node: Option<SupervisorHandle>,
    name: String,
    bomb: Arc<Mutex<Option<Bomb>>>,
    source: Option<Arc<dyn Source>>,
    /// What the next boot delivers hooks with.
    pub hooks: Option<HookParts>,
    /// What the next boot fires schedules with.
    pub schedules: Option<ScheduleParts>,
    /// How long things are kept after the next boot.
    pub keep: Option<Keep>,
    /// For how long what rests is restored by itself.
    pub restore_window: Duration,
    pub serving: Serving,
    pub capacity: Capacity,
    /// Whether it holds the lock of the state directory: no other node lives beside it.
    pub exclusive: bool,
    /// How often providing still panics.
    pub provider_panics: Arc<AtomicU32>,
    /// Whether items count against the limit of their business.
    pub limited: bool,
    /// Metering of named limits.
    pub metering: Option<Metering>,
}

/// Lets an actor panic: the path's end, and at which message from now on.
struct Bomb {
    path: String,
    fuse: u32,
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
            runs: Link::new(store.clone(), None),
            store,
            clock: Arc::new(VirtualClock {
                start: Instant::now(),
            }),
            handler: Scripted::new(script),
            node: None,
            name: name.to_owned(),
            bomb: Arc::default(),
            source,
            hooks: None,
            schedules: None,
            keep: None,
            restore_window: Times::default().restore_window,
            serving: Serving::default(),
            capacity: Capacity::Unlimited,
            exclusive: true,
            provider_panics: Arc::default(),
            limited: false,
            metering: None,
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
            schedules: None,
            keep: None,
            restore_window: Times::default().restore_window,
            serving: Serving::default(),
            capacity: self.capacity,
            exclusive: false,
            provider_panics: Arc::default(),
            limited: self.limited,
            metering: self.metering.clone(),
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
            limits: self.store.clone(),
            found: self.store.clone(),
            local_buckets: LocalBuckets::default(),
            leases: None,
            hints: None,
            data_log: self.store.clone(),
            provider: Arc::new(Everything {
                handler: self.handler.clone(),
                source: self.source.clone(),
                panics: self.provider_panics.clone(),
                limited: self.limited,
                metering: self.metering.clone(),
            }),
            times: Times {
                restore_window: self.restore_window,
                ..Times::default()
            },
            serving: self.serving.clone(),
            exclusive: self.exclusive,
            directory: RunDirectory::default(),
            place: NodePlace::default(),
            hooks: self.hooks.clone(),
            schedules: self.schedules.clone(),
            sinks: None,
            upkeep: self.store.clone(),
            preparer: self.store.clone(),
            publications: self.store.clone(),
            uploads: None,
            keep: self.keep,
            room: RoomBoard::default(),
            heartbeats: Heartbeats::default(),
            new_ids: NewIds::default(),
            meters: Arc::default(),
        };
        let ledger = Ledger::new(self.capacity, Rate::per_second(1000).expect("not zero"));
        self.node = Some(
            SupervisorHandle::start(Arc::new(context), ledger)
                .await
                .expect("the tree starts"),
        );
    }

    fn observer(&self) -> Arc<dyn Fn(&str) + Send + Sync> {
        let bomb = self.bomb.clone();
        Arc::new(move |path| {
            let mut bomb = bomb.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let Some(planted) = bomb.as_mut().filter(|bomb| path.ends_with(&bomb.path)) else {
                return;
            };
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
        let lock = || {
            self.bomb
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        };
        *lock() = Some(Bomb {
            path: path.to_owned(),
            fuse,
        });
        let went_off = holds_within(PATIENCE, || lock().is_none()).await;
        assert!(went_off, "{path} never got {fuse} messages");
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
        self.store
            .ensure_business("run", &write(), now)
            .await
            .expect("memory");
        let mut new = new_task(total, None, |_| {});
        change(&mut new);
        self.store.create(&new, &write(), now).await.expect("created").id
    }

    /// The same, with a canary.
    pub async fn task_of(
        &self,
        total: u64,
        canary: Option<Canary>,
        tune: impl FnOnce(&mut Tuning),
    ) -> TaskId {
        let now = self.clock.wall();
        self.store
            .ensure_business("run", &write(), now)
            .await
            .expect("memory");
        let new = new_task(total, canary, tune);
        let task = self.store.create(&new, &write(), now).await.expect("created");
        self.command(task.id, TaskCommand::Start).await;
        task.id
    }

    pub async fn command(&self, task: TaskId, command: TaskCommand) {
        let now = self.clock.wall();
        self.store
            .command(task, &command, &write(), now)
            .await
            .expect("legal");
        self.node().wake();
    }

    pub async fn view(&self, task: TaskId) -> TaskView {
        tasks::view(&self.store, task).await
    }

    /// Waits (on the virtual clock) until the task has this status.
    pub async fn until(&self, task: TaskId, status: Status) -> TaskView {
        self.until_that(task, &format!("{status:?}"), |view| view.status == status)
            .await
    }

    pub async fn until_that(&self, task: TaskId, what: &str, is: impl Fn(&TaskView) -> bool) -> TaskView {
        self.until_within(PATIENCE, task, what, is).await
    }

    pub async fn until_within(
        &self,
        limit: Duration,
        task: TaskId,
        what: &str,
        is: impl Fn(&TaskView) -> bool,
    ) -> TaskView {
        tasks::until_that(&self.store, task, limit, what, is, || {
            self.node().tree().render("")
        })
        .await
    }

    /// The live counters and the sum that they must make.
    pub fn in_flight(&self, task: TaskId) -> u64 {
        self.node()
            .progress(task)
            .iter()
            .map(|(_, progress)| progress.counters.in_flight)
            .sum()
    }

    /// Waits until so many items are in flight.
    pub async fn until_in_flight(&self, task: TaskId, count: u64) {
        let is_busy = holds_within(Duration::from_secs(60), || self.in_flight(task) >= count).await;
        assert!(
            is_busy,
            "never {count} in flight\n{}",
            self.node().tree().render("")
        );
    }

    /// Waits for a moment at which something is saved and so many completions aren't.
    pub async fn until_unsaved(&self, task: TaskId, count: u64) {
        let unsaved = || -> u64 {
            self.node()
                .progress(task)
                .iter()
                .map(|(_, run)| run.unsaved)
                .sum()
        };
        let is_saved = |view: &TaskView| view.counters.succeeded > 0 && unsaved() >= count;
        self.until_that(
            task,
            &format!("{count} completions behind its checkpoint"),
            is_saved,
        )
        .await;
    }

    /// Kills an actor by the last part(s) of its path, as `t1.0/executor`.
    pub async fn kill(&self, path: &str) {
        let full = if path.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{path}", self.name)
        };
        let cell = ractor::registry::where_is(full.clone()).unwrap_or_else(|| panic!("no actor {full}"));
        cell.kill();
        cell.wait(None).await.expect("it ends");
    }

    /// The process of the node is gone from one moment to the next; [`World::boot`] starts another.
    pub async fn crash(&mut self) {
        self.kill("").await;
        let node = self.node.take().expect("it ran");
        assert!(
            holds_within(PATIENCE, || node.is_over()).await,
            "its tree goes with it"
        );
    }

    /// Waits until nothing is reserved, owned, live or in flight any more, which is soon if nothing leaks.
    pub async fn assert_nothing_leaks(&self) {
        let leaks_none = holds_within(Duration::from_secs(3), || self.leaks().is_empty()).await;
        assert!(
            leaks_none,
            "{:#?}\n{}",
            self.leaks(),
            self.node().tree().render("")
        );
    }

    fn leaks(&self) -> Vec<String> {
        let (runs, tree) = (self.node().progress(TaskId(1)).len(), self.node().tree().view());
        let root = tree
            .iter()
            .find(|actor| actor.path == self.name)
            .expect("the supervisor lives");
        let count = |handlers: &Mutex<u32>| *handlers.lock().expect("no panic while held");
        let (opened, closed) = (count(&self.handler.opened), count(&self.handler.closed));
        let mut leaks = Vec::new();
        let mut expect = |holds: bool, leak: String| leaks.extend((!holds).then_some(leak));
        expect(runs == 0, format!("{runs} live runs"));
        expect(root.text == "0 runs, 0/s reserved", root.text.clone());
        expect(
            tree.len() == 10,
            format!("{} actors, not the supervisor and its nine", tree.len()),
        );
        expect(
            opened == closed,
            format!("{opened} handlers opened, {closed} closed"),
        );
        leaks
    }
}
