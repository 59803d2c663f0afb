//! One suite of facts for every lease store.

use std::sync::Arc;
use std::time::Duration;

use windrow_engine::ports::ownership::lease_store::LeaseReply::{Absent, Held, Lost};
use windrow_engine::ports::ownership::lease_store::{LeaseKey, LeaseStore};
use windrow_host::clock::SystemClock;
use windrow_memory::MemoryLeases;

use crate::fixture::{LONG, Node, eventually, key, options, rival, settle};
use crate::groups::{Cluster, Sentinels, secured};
use crate::servers::Redis;

/// Everything that holds of any lease store. `lose` loses all data.
async fn facts(leases: Arc<dyn LeaseStore>, lose: impl AsyncFn()) {
    a_lease_is_held_by_one(&*leases).await;
    an_absent_lease_is_set_again_only_where_that_is_asked_for(&*leases).await;
    a_lease_runs_out(&*leases).await;
    replies_stand_in_the_order_of_the_keys(&*leases).await;
    lose().await;
    after_a_loss_owners_go_on_and_nobody_comes_new(&*leases).await;
    settle(&*leases).await;
}

async fn a_lease_is_held_by_one(leases: &dyn LeaseStore) {
    let (mine, free) = (key(0), key(1));
    let theirs = rival(mine);
    assert_eq!(leases.acquire(&[mine, free], LONG).await.unwrap(), [Held, Held]);
    assert_eq!(leases.acquire(&[theirs, mine], LONG).await.unwrap(), [Lost, Held]);
    assert_eq!(
        leases.renew(&[theirs, mine], LONG, true).await.unwrap(),
        [Lost, Held]
    );
    leases.release(&[theirs]).await.unwrap();
    assert_eq!(
        leases.renew(&[mine], LONG, false).await.unwrap(),
        [Held],
        "a rival can't give it back"
    );
    leases.release(&[mine, free]).await.unwrap();
    leases.release(&[mine]).await.unwrap();
    assert_eq!(leases.acquire(&[theirs], LONG).await.unwrap(), [Held]);
    assert_eq!(leases.renew(&[mine], LONG, true).await.unwrap(), [Lost]);
    leases.release(&[theirs]).await.unwrap();
    assert_eq!(leases.acquire(&[], LONG).await.unwrap(), []);
    assert_eq!(leases.renew(&[], LONG, true).await.unwrap(), []);
    leases.release(&[]).await.unwrap();
}

async fn an_absent_lease_is_set_again_only_where_that_is_asked_for(leases: &dyn LeaseStore) {
    let mine = key(2);
    assert_eq!(leases.renew(&[mine], LONG, false).await.unwrap(), [Absent]);
    assert_eq!(leases.renew(&[mine], LONG, true).await.unwrap(), [Held]);
    assert_eq!(leases.renew(&[mine], LONG, false).await.unwrap(), [Held]);
    leases.release(&[mine]).await.unwrap();
}

async fn a_lease_runs_out(leases: &dyn LeaseStore) {
    let mine = key(3);
    let theirs = rival(mine);
    leases.acquire(&[mine], LONG).await.unwrap();
    // The last word counts, also where it is the shorter one.
    assert_eq!(
        leases
            .renew(&[mine], Duration::from_millis(100), false)
            .await
            .unwrap(),
        [Held]
    );
    eventually("it runs out", async || {
        leases.acquire(&[theirs], LONG).await.unwrap() == [Held]
    })
    .await;
    assert_eq!(leases.renew(&[mine], LONG, true).await.unwrap(), [Lost]);
    leases.release(&[theirs]).await.unwrap();
}

async fn replies_stand_in_the_order_of_the_keys(leases: &dyn LeaseStore) {
    let all: Vec<LeaseKey> = (10..1_310).map(key).collect();
    let odd: Vec<LeaseKey> = all.iter().copied().filter(|key| key.shard.no % 2 == 1).collect();
    assert_eq!(leases.acquire(&odd, LONG).await.unwrap(), vec![Held; odd.len()]);
    let theirs: Vec<LeaseKey> = all.iter().copied().map(rival).collect();
    let expected: Vec<_> = all
        .iter()
        .map(|key| if key.shard.no % 2 == 1 { Lost } else { Absent })
        .collect();
    assert_eq!(leases.renew(&theirs, LONG, false).await.unwrap(), expected);
    leases.release(&all).await.unwrap();
    assert_eq!(
        leases.acquire(&theirs, LONG).await.unwrap(),
        vec![Held; all.len()]
    );
    leases.release(&theirs).await.unwrap();
}

async fn after_a_loss_owners_go_on_and_nobody_comes_new(leases: &dyn LeaseStore) {
    let (mine, free) = (key(4), key(5));
    // Whoever asks first begins the quarantine, of a TTL from then on.
    let ttl = Duration::from_secs(3);
    let said = leases.acquire(&[rival(mine), free], ttl).await.unwrap();
    assert_eq!(said, [Absent, Absent], "no new lease after a loss");
    assert_eq!(leases.renew(&[mine], LONG, false).await.unwrap(), [Absent]);
    assert_eq!(
        leases.renew(&[mine], LONG, true).await.unwrap(),
        [Held],
        "its owner goes on"
    );
    assert_eq!(leases.acquire(&[rival(mine)], LONG).await.unwrap(), [Lost]);
    eventually("the quarantine ends", async || {
        leases.acquire(&[free], ttl).await.unwrap() == [Held]
    })
    .await;
    leases.release(&[mine, free]).await.unwrap();
}

#[tokio::test]
async fn the_facts_hold_of_the_memory_twin() {
    let leases = Arc::new(MemoryLeases::new(Arc::new(SystemClock::new())));
    facts(leases.clone(), async || leases.wipe()).await;
}

#[tokio::test]
async fn the_facts_hold_of_one_server() {
    let server = Redis::start();
    let node = Node::open(options(&server.url())).await;
    facts(node.leases(), async || drop(server.cli(&["FLUSHALL"]))).await;
}

#[tokio::test]
async fn the_facts_hold_over_tls_with_a_user_of_few_rights() {
    let (server, options) = secured();
    let node = Node::open(options).await;
    facts(node.leases(), async || drop(server.cli(&["FLUSHALL"]))).await;
}

#[tokio::test]
async fn the_facts_hold_of_what_sentinels_name() {
    let group = Sentinels::start().await;
    let node = Node::open(options(&group.url())).await;
    facts(node.leases(), async || drop(group.master.cli(&["FLUSHALL"]))).await;
}

#[tokio::test]
async fn the_facts_hold_of_a_cluster() {
    let cluster = Cluster::start().await;
    let node = Node::open(options(&cluster.url())).await;
    facts(node.leases(), async || cluster.flush()).await;
}
