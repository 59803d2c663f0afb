//! A node over the store in memory, whose handler does nothing.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;
use windrow_core::capacity::{Capacity, Ledger};
use windrow_core::ids::{ItemCount, ItemIndex};
use windrow_core::settings::{Auto, Rate, RateLimit};
use windrow_core::task::Tuning;
use windrow_core::task::lifecycle::Status;
use windrow_engine::actors::runtime::context::{
    Heartbeats, LocalBuckets, NodeContext, NodePlace, RoomBoard, RunDirectory, Serving, Times,
};
use windrow_engine::actors::runtime::handle::SupervisorHandle;
use windrow_engine::actors::runtime::new_ids::NewIds;
use windrow_engine::actors::runtime::tree::Tree;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{Call, Handler, HandlerFactory, OpenError, Reply, RunContext};
use windrow_engine::ports::sources::provision::{Provider, Provision, ProvisionError};
use windrow_engine::ports::sources::source::{RowChunk, Source, SourceError};
use windrow_engine::ports::tasks::store::{Actor, NewTask, TaskCommand, TaskStore, TaskView, Write};
use windrow_memory::MemoryStore;

use crate::clock::VirtualClock;

/// Does nothing, at once.
struct Nothing;

impl Handler for Nothing {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        std::hint::black_box(&call.items);
        Box::pin(std::future::ready(Reply::AllOk))
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        watch::channel(None).1
    }

    fn answers_at_once(&self) -> bool {
        true
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl HandlerFactory for Nothing {
    fn open(&self, _: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        Ok(Arc::new(Nothing))
    }

    fn service(&self) -> Option<String> {
        None
    }
}

/// Indexes without rows.
struct Indexes(ItemCount);

impl Source for Indexes {
    fn total(&self) -> ItemCount {
        self.0
    }

    fn has_data(&self) -> bool {
        false
    }

    fn read(&self, _: ItemIndex) -> BoxFuture<'_, Result<Arc<RowChunk>, SourceError>> {
        unreachable!("indexes have no rows")
    }
}

#[async_trait]
impl Provider for Nothing {
    async fn provide(&self, task: &TaskView) -> Result<Provision, ProvisionError> {
        Ok(Provision {
            handler: Arc::new(Nothing),
            source: Arc::new(Indexes(task.total)),
            limits: Vec::new(),
        })
    }
}

async fn node(store: &Arc<MemoryStore>, clock: Arc<dyn Clock>) -> SupervisorHandle {
    let context = NodeContext {
        node: "n1".into(),
        version: "test".into(),
        store_id: store.store_id().await.unwrap(),
        clock: clock.clone(),
        tree: Tree::new(clock),
        work: tokio::runtime::Handle::current(),
        vital: tokio::runtime::Handle::current(),
        lanes_unpaced: 1,
        runs: store.clone(),
        tasks: store.clone(),
        sessions: store.clone(),
        limits: store.clone(),
        found: store.clone(),
        local_buckets: LocalBuckets::default(),
        leases: None,
        hints: None,
        data_log: store.clone(),
        provider: Arc::new(Nothing),
        times: Times::default(),
        serving: Serving::default(),
        exclusive: true,
        directory: RunDirectory::default(),
        place: NodePlace::default(),
        hooks: None,
        schedules: None,
        sinks: None,
        upkeep: store.clone(),
        preparer: store.clone(),
        publications: store.clone(),
        uploads: None,
        keep: None,
        room: RoomBoard::default(),
        heartbeats: Heartbeats::default(),
        new_ids: NewIds::default(),
        meters: Arc::default(),
    };
    let ledger = Ledger::new(Capacity::Unlimited, Rate::per_second(1000).unwrap());
    SupervisorHandle::start(Arc::new(context), ledger).await.unwrap()
}

fn write() -> Write {
    Actor {
        name: "instructions".into(),
        source: "cli",
        ..Actor::windrow(None)
    }
    .writes()
}

fn task(total: u64, batch: u32) -> NewTask {
    let tuning = Tuning {
        rate: RateLimit::Unlimited,
        batch: NonZeroU32::new(batch).unwrap(),
        concurrency: Auto::Fixed(NonZeroU32::new(1_024).unwrap()),
        ..Tuning::default()
    };
    NewTask::of("run", ItemCount(total), tuning)
}

/// Drives so many items, so many a call, from the start of a task to its end.
pub(crate) fn run(total: u64, batch: u32) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let store = Arc::new(MemoryStore::new());
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock {
            start: Instant::now(),
        });
        let node = node(&store, clock.clone()).await;
        let now = clock.wall();
        store.ensure_business("run", &write(), now).await.unwrap();
        let task = store.create(&task(total, batch), &write(), now).await.unwrap().id;
        store
            .command(task, &TaskCommand::Start, &write(), now)
            .await
            .unwrap();
        node.wake();
        loop {
            let view = store.get(task).await.unwrap().unwrap();
            assert_ne!(view.status, Status::Stopped, "{view:?}");
            if view.status == Status::Finished {
                assert_eq!(view.counters.succeeded, total);
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}
