//! Several nodes over one store, on one virtual clock: each with its own way to the database and to the leases.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;
use windrow_core::capacity::{Capacity, Ledger};
use windrow_core::ids::{ItemIndex, SessionId, TaskId, WallMs};
use windrow_core::items::verdict::{Failure, FailureClass};
use windrow_core::settings::{Auto, Rate};
use windrow_core::task::Tuning;
use windrow_core::task::lifecycle::Status;
use windrow_core::task::spec::Shards;
use windrow_engine::actors::runtime::context::{
    Heartbeats, LocalBuckets, NodeContext, NodePlace, RoomBoard, RunDirectory, Serving, Times,
};
use windrow_engine::actors::runtime::handle::{NotStarted, SupervisorHandle};
use windrow_engine::actors::runtime::new_ids::NewIds;
use windrow_engine::actors::runtime::tree::Tree;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::Reply;
use windrow_engine::ports::ownership::lease_store::LeaseStore;
use windrow_engine::ports::ownership::session_store::SessionStore;
use windrow_engine::ports::tasks::store::{TaskCommand, TaskStore, TaskView};
use windrow_memory::{MemoryLeases, MemoryStore};

use crate::clock::VirtualClock;
use crate::link::{Link, Way};
use crate::patience::{PATIENCE, holds_within};
use crate::scripted::{Act, Everything, Scripted};
use crate::tasks::{self, new_task, write};

/// One call of a handler.
#[derive(Clone, Debug)]
pub struct Departure {
    pub at: Instant,
    pub node: String,
    pub index: ItemIndex,
}

pub struct Node {
    pub name: String,
    pub link: Arc<Link>,
    pub handle: SupervisorHandle,
    pub handler: Arc<Scripted>,
}

pub struct Cluster {
    pub store: Arc<MemoryStore>,
    pub leases: Option<Arc<MemoryLeases>>,
    pub clock: Arc<VirtualClock>,
    pub departures: Arc<Mutex<Vec<Departure>>>,
    pub nodes: BTreeMap<String, Node>,
    pub times: Times,
    pub serving: Serving,
    pub slow: Duration,
    /// The full names of the nodes that don't reach the business.
    pub astray: Arc<Mutex<BTreeSet<String>>>,
    /// Whether items count against the limit of their business.
    pub limited: bool,
    /// Where work and vital I/O of the next node run; none is the present runtime.
    pub runtimes: Option<(Handle, Handle)>,
    /// Goes before every name: actors are registered for the whole process.
    prefix: String,
}

impl Cluster {
    /// No nodes yet.
    pub fn new(prefix: &str, with_leases: bool) -> Cluster {
        let clock = Arc::new(VirtualClock {
            start: Instant::now(),
        });
        Cluster {
            store: Arc::new(MemoryStore::new()),
            leases: with_leases.then(|| Arc::new(MemoryLeases::new(clock.clone()))),
            clock,
            departures: Arc::default(),
            nodes: BTreeMap::new(),
            times: Times::default(),
            serving: Serving::default(),
            slow: Duration::from_millis(100),
            astray: Arc::default(),
            limited: false,
            runtimes: None,
            prefix: prefix.to_owned(),
        }
    }

    pub fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    /// From now on these nodes, and no others, don't reach the business.
    pub fn lead_astray(&self, names: &[&str]) {
        *self.astray.lock().expect("ok") = names.iter().map(|name| self.name(name)).collect();
    }

    /// Starts a node; its handler takes a while for each item.
    pub async fn boot(&mut self, name: &str) {
        self.try_boot(name).await.expect("the tree starts");
    }

    pub async fn try_boot(&mut self, name: &str) -> Result<(), NotStarted> {
        let full = self.name(name);
        let link = Link::new(self.store.clone(), self.leases.clone());
        let (departures, node, slow) = (self.departures.clone(), full.clone(), self.slow);
        let astray = self.astray.clone();
        let handler = Scripted::new(move |index, _| {
            let departure = Departure {
                at: Instant::now(),
                node: node.clone(),
                index,
            };
            departures.lock().expect("ok").push(departure);
            if astray.lock().expect("ok").contains(&node) {
                let refused = Failure::new("CONNECT", "connection refused");
                return Act::Reply(Reply::failed(FailureClass::Unreachable, refused));
            }
            Act::Slow(slow)
        });
        let clock: Arc<dyn Clock> = self.clock.clone();
        let (work, vital) = self
            .runtimes
            .clone()
            .unwrap_or_else(|| (Handle::current(), Handle::current()));
        let leases = self.leases.as_ref().map(|_| link.clone() as Arc<dyn LeaseStore>);
        let context = NodeContext {
            node: full.clone(),
            version: "test".into(),
            store_id: self.store.store_id().await.expect("memory"),
            clock: clock.clone(),
            tree: Tree::new(clock),
            work,
            vital,
            lanes_unpaced: 2,
            runs: link.clone(),
            tasks: self.store.clone(),
            sessions: link.clone(),
            limits: link.clone(),
            found: self.store.clone(),
            local_buckets: LocalBuckets::default(),
            leases,
            hints: None,
            data_log: self.store.clone(),
            provider: Arc::new(Everything {
                limited: self.limited,
                ..Everything::of(handler.clone())
            }),
            times: self.times,
            serving: self.serving.clone(),
            exclusive: false,
            directory: RunDirectory::default(),
            place: NodePlace::default(),
            hooks: None,
            schedules: None,
            sinks: None,
            upkeep: self.store.clone(),
            preparer: self.store.clone(),
            publications: self.store.clone(),
            uploads: None,
            keep: None,
            room: RoomBoard::default(),
            heartbeats: Heartbeats::default(),
            new_ids: NewIds::default(),
            meters: Arc::default(),
        };
        let ledger = Ledger::new(Capacity::Unlimited, Rate::per_second(1000).expect("not zero"));
        let handle = SupervisorHandle::start(Arc::new(context), ledger).await?;
        self.nodes.insert(
            name.to_owned(),
            Node {
                name: full,
                link,
                handle,
                handler,
            },
        );
        Ok(())
    }

    pub fn node(&self, name: &str) -> &Node {
        &self.nodes[name]
    }

    /// The process of a node is gone from one moment to the next.
    pub async fn crash(&mut self, name: &str) {
        let node = self.nodes.remove(name).expect("it runs");
        let cell = ractor::registry::where_is(node.name.clone()).expect("it lives");
        cell.kill();
        cell.wait(None).await.expect("it ends");
        // What it had under way goes nowhere.
        node.link.database(Way::Hangs);
        node.link.redis(Way::Hangs);
        std::mem::forget(node.link);
    }

    pub async fn task(&self, total: u64, tune: impl FnOnce(&mut Tuning)) -> TaskId {
        let now = self.clock.wall();
        self.store
            .ensure_business("run", &write(), now)
            .await
            .expect("memory");
        let new = new_task(total, None, |tuning| {
            tuning.concurrency = super::fifty();
            tune(tuning);
        });
        let task = self.store.create(&new, &write(), now).await.expect("created");
        self.command(task.id, TaskCommand::Start).await;
        task.id
    }

    /// The same, of several shards.
    pub async fn sharded(
        &self,
        total: u64,
        shards: Auto<NonZeroU32>,
        tune: impl FnOnce(&mut Tuning),
    ) -> TaskId {
        let now = self.clock.wall();
        self.store
            .ensure_business("run", &write(), now)
            .await
            .expect("memory");
        let mut new = new_task(total, None, tune);
        new.spec.shards = Shards(shards);
        let task = self.store.create(&new, &write(), now).await.expect("created");
        self.command(task.id, TaskCommand::Start).await;
        task.id
    }

    pub async fn command(&self, task: TaskId, command: TaskCommand) {
        self.store
            .command(task, &command, &write(), self.clock.wall())
            .await
            .expect("legal");
        self.nodes.values().for_each(|node| node.handle.wake());
    }

    pub async fn view(&self, task: TaskId) -> TaskView {
        tasks::view(&self.store, task).await
    }

    pub async fn until(&self, task: TaskId, status: Status) -> TaskView {
        self.until_that(task, &format!("{status:?}"), |view| view.status == status)
            .await
    }

    pub async fn until_that(&self, task: TaskId, what: &str, is: impl Fn(&TaskView) -> bool) -> TaskView {
        tasks::until_that(&self.store, task, PATIENCE, what, is, || self.trees()).await
    }

    fn trees(&self) -> String {
        self.nodes
            .values()
            .map(|node| node.handle.tree().render(""))
            .collect()
    }

    /// Waits until a node has called its handler again from now on; says after how long.
    pub async fn until_works(&self, name: &str) -> Duration {
        let (begun, full) = (Instant::now(), self.name(name));
        let last = || {
            self.departures
                .lock()
                .expect("ok")
                .iter()
                .rev()
                .find(|one| one.node == full)
                .cloned()
        };
        let works = holds_within(PATIENCE, || last().is_some_and(|last| last.at >= begun)).await;
        assert!(works, "{full} does not work\n{}", self.trees());
        begun.elapsed()
    }

    /// How often each item was delivered.
    pub fn deliveries(&self) -> BTreeMap<ItemIndex, u32> {
        let mut counts = BTreeMap::new();
        for one in self.departures.lock().expect("ok").iter() {
            *counts.entry(one.index).or_insert(0) += 1;
        }
        counts
    }

    pub fn repeats(&self) -> u64 {
        self.deliveries().values().map(|count| u64::from(count - 1)).sum()
    }

    /// The nodes in the order in which they worked: each once, unless one worked again after another.
    pub fn turns(&self) -> Vec<String> {
        let mut turns: Vec<String> = Vec::new();
        for one in self.departures.lock().expect("ok").iter() {
            if turns.last() != Some(&one.node) {
                turns.push(one.node.clone());
            }
        }
        turns
            .into_iter()
            .map(|full| full.rsplit('-').next().expect("has a prefix").to_owned())
            .collect()
    }

    pub fn clock_now(&self) -> WallMs {
        self.clock.wall()
    }

    /// How many runs are live on a node.
    pub fn owned(&self, name: &str) -> usize {
        self.node(name).handle.runs().len()
    }

    pub async fn until_owned(&self, name: &str, count: usize) {
        let owns = holds_within(Duration::from_secs(60), || self.owned(name) == count).await;
        assert!(owns, "{} of {count} owned", self.owned(name));
    }

    /// The live sessions of a node.
    pub async fn sessions(&self, name: &str) -> Vec<SessionId> {
        let full = self.name(name);
        let all = self.store.list().await.expect("memory");
        let live = all
            .into_iter()
            .filter(|session| session.node == full && !session.fenced);
        live.map(|session| session.id).collect()
    }
}
