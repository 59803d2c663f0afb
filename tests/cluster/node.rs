//! One life of a node: the real tree of actors over its own view of the shared stores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use uuid::Uuid;
use windrow_core::capacity::{Capacity, Ledger};
use windrow_core::settings::Rate;
use windrow_engine::actors::runtime::context::{
    Heartbeats, LocalBuckets, NodeContext, NodePlace, RoomBoard, RunDirectory, Serving, Times,
};
use windrow_engine::actors::runtime::handle::SupervisorHandle;
use windrow_engine::actors::runtime::new_ids::NewIds;
use windrow_engine::actors::runtime::tree::Tree;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::ownership::hints::Hints;
use windrow_engine::ports::ownership::lease_store::LeaseStore;
use windrow_engine::ports::tasks::store::TaskStore;

use crate::business::{Business, Office};
use crate::link::Link;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::view::View;

/// Actors have names that are unique in the process; scenarios follow one another there.
static LIVES: AtomicU64 = AtomicU64::new(0);

/// See the module.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) link: Arc<Link>,
    handle: Arc<SupervisorHandle>,
    /// Set when a drain has ended.
    drained: Arc<Mutex<bool>>,
    pub(crate) drains: bool,
}

impl Node {
    pub(crate) async fn boot(
        plan: &Plan,
        view: View,
        business: Arc<Business>,
        hints: Option<Arc<dyn Hints>>,
    ) -> Node {
        let link = view.link.clone();
        let name = format!("world{}", LIVES.fetch_add(1, Ordering::Relaxed));
        let clock: Arc<dyn Clock> = link.clock.clone();
        let office = Arc::new(Office {
            business,
            link: link.clone(),
        });
        let leases = view
            .leases
            .is_some()
            .then(|| Arc::new(view.clone()) as Arc<dyn LeaseStore>);
        let view = Arc::new(view);
        let context = NodeContext {
            node: name.clone(),
            version: "test".into(),
            store_id: view.store.store_id().await.expect("memory"),
            clock: clock.clone(),
            tree: Tree::new(clock),
            work: Handle::current(),
            vital: Handle::current(),
            lanes_unpaced: 2,
            runs: view.clone(),
            tasks: view.clone(),
            sessions: view.clone(),
            limits: view.store.clone(),
            found: view.store.clone(),
            local_buckets: LocalBuckets::default(),
            leases,
            hints,
            data_log: view.clone(),
            provider: office,
            times: times(plan, link.node),
            serving: Serving::default(),
            exclusive: false,
            directory: RunDirectory::default(),
            place: NodePlace::default(),
            hooks: None,
            preparer: view.store.clone(),
            publications: view.store.clone(),
            schedules: None,
            sinks: None,
            upkeep: view,
            uploads: None,
            keep: None,
            room: RoomBoard::default(),
            heartbeats: Heartbeats::default(),
            new_ids: ids(plan.seed, &link),
            meters: Arc::default(),
        };
        let rate = plan.capacity.and_then(Rate::per_second);
        let capacity = rate.map_or(Capacity::Unlimited, Capacity::Limited);
        let ledger = Ledger::new(capacity, Rate::per_second(1000).expect("not zero"));
        let handle = SupervisorHandle::start(Arc::new(context), ledger)
            .await
            .expect("the tree starts");
        Node {
            name,
            link,
            handle: Arc::new(handle),
            drained: Arc::default(),
            drains: false,
        }
    }

    /// The process is gone from one moment to the next.
    pub(crate) fn crash(&self) {
        self.link.die();
        if let Some(root) = ractor::registry::where_is(self.name.clone()) {
            root.kill();
        }
    }

    /// Begins to hand everything over; the node ends by itself.
    pub(crate) fn drain(&mut self) {
        self.drains = true;
        let (handle, drained, link) = (self.handle.clone(), self.drained.clone(), self.link.clone());
        tokio::spawn(async move {
            let ended = handle.drain_now(Duration::from_secs(60)).await;
            link.die();
            link.judge(|judge| judge.count(ended, "drained"));
            *drained.lock().expect("no panic while held") = true;
        });
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.link.is_dead() || *self.drained.lock().expect("no panic while held") || self.handle.is_over()
    }

    /// Something changed, as a hint tells it.
    pub(crate) fn hint(&self, task: windrow_core::ids::TaskId) {
        self.handle.wake();
        self.handle.nudge(task);
    }

    /// Whether more is booked than the node has.
    pub(crate) fn is_overbooked(&self) -> bool {
        let room = self.handle.room();
        room.capacity.is_some_and(|capacity| room.reserved > capacity)
    }

    pub(crate) fn tree(&self) -> String {
        self.handle.tree().render("")
    }
}

fn times(plan: &Plan, node: usize) -> Times {
    let lease_ttl = plan.ttl[node];
    Times {
        lease_ttl,
        lease_renew: lease_ttl / 5,
        heartbeat: plan.heartbeat,
        restore_scan: plan.scan,
        restore_window: Duration::from_secs(30 * 24 * 3600),
        restore_max: 1000,
        restore_backoff: (Duration::from_millis(500), Duration::from_secs(3)),
        data_log_flush: Duration::from_secs(1),
        drain_timeout: plan.drain_timeout,
        takeover_without_leases: plan.goes_without,
        first_contact: None,
    }
}

/// The same ids for the same seed, and never the same one twice.
fn ids(seed: u64, link: &Link) -> NewIds {
    let life = (link.node as u64) << 32 | u64::from(link.life);
    let rng = Mutex::new(Rng(seed ^ life.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    NewIds::from(move || {
        let mut rng = rng.lock().expect("no panic while held");
        Uuid::from_u64_pair(rng.next(), rng.next())
    })
}
