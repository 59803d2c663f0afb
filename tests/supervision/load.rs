//! Load never costs the lease: what heartbeats and leases need runs on a thread of its own.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;
use windrow_core::ids::{ClaimId, ShardId};
use windrow_engine::ports::ownership::lease_store::{LeaseKey, LeaseReply, LeaseStore};
use windrow_engine::ports::ownership::session_store::SessionStore;

use crate::cluster::Cluster;

const TTL: Duration = Duration::from_secs(6);
/// Much longer than a lease lives.
const BLOCKED: Duration = Duration::from_secs(16);

fn runtime(threads: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .expect("threads")
}

#[test]
fn a_node_whose_actors_and_workers_are_all_blocked_keeps_its_lease_and_its_heartbeat() {
    let (actors, work, vital, probe) = (runtime(1), runtime(2), runtime(1), runtime(1));
    let (cluster, task) = actors.block_on(async {
        let mut cluster = Cluster::new("load", true);
        (cluster.times.lease_ttl, cluster.times.lease_renew) = (TTL, Duration::from_secs(1));
        cluster.runtimes = Some((work.handle().clone(), vital.handle().clone()));
        // On the runtime whose only thread is blocked below, not on this one.
        let booted = tokio::spawn(async move {
            cluster.boot("a").await;
            let task = cluster.task(1_000_000, |_| {}).await;
            cluster.until_works("a").await;
            (cluster, task)
        });
        booted.await.expect("it boots")
    });
    let (begins, begun) = std::sync::mpsc::channel();
    let threads = [actors.handle(), work.handle(), work.handle()];
    for handle in threads {
        let begins = begins.clone();
        handle.spawn(async move {
            begins.send(()).expect("the test waits");
            std::thread::sleep(BLOCKED);
        });
    }
    for _ in threads {
        begun.recv_timeout(BLOCKED).expect("a thread is blocked");
    }
    let heartbeat = || probe.block_on(cluster.store.list()).expect("memory")[0].heartbeat;
    let before = heartbeat();
    // The lease would be over twice.
    std::thread::sleep(TTL * 2);
    let thief = LeaseKey {
        shard: ShardId { task, no: 0 },
        claim: ClaimId(Uuid::new_v4()),
    };
    let leases = cluster.leases.clone().expect("there are");
    let reply = probe.block_on(leases.acquire(&[thief], TTL)).expect("memory");
    assert_eq!(reply, [LeaseReply::Lost], "the lease was renewed all the time");
    assert_ne!(heartbeat(), before, "the heart beat all the time");
    for runtime in [actors, work, vital, probe] {
        runtime.shutdown_background();
    }
}
