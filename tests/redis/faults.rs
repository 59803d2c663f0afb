//! Redis is lost, empty, hung, slow, restarted or fails over: nothing is claimed that isn't so, and all comes back.

use std::time::Duration;

use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::lease_store::LeaseKey;
use windrow_engine::ports::ownership::lease_store::LeaseReply::{Absent, Held, Lost};

use crate::fixture::{LONG, Node, eventually, key, options, rival, settle};
use crate::groups::{Cluster, Sentinels};
use crate::servers::{Redis, RedisOptions as Server, free_port};

const TTL: Duration = Duration::from_secs(3);

/// The sentence of a refusal.
pub fn why<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> String {
    let Err(StoreError::Unavailable(text)) = outcome else {
        panic!("{outcome:?}")
    };
    text
}

#[tokio::test]
async fn scripts_that_a_server_forgot_are_sent_again() {
    let server = Redis::start();
    let node = Node::open(options(&server.url())).await;
    let mine = key(0);
    node.leases().acquire(&[mine], LONG).await.unwrap();
    server.cli(&["SCRIPT", "FLUSH"]);
    assert_eq!(node.leases().renew(&[mine], LONG, false).await.unwrap(), [Held]);
    server.cli(&["SCRIPT", "FLUSH"]);
    node.leases().release(&[mine]).await.unwrap();
    assert_eq!(node.leases().acquire(&[rival(mine)], LONG).await.unwrap(), [Held]);
}

#[tokio::test]
async fn a_restart_is_a_loss_and_its_connection_is_made_again_in_the_same_call() {
    let mut server = Redis::start();
    let node = Node::open(options(&server.url())).await;
    let mine = key(0);
    assert_eq!(node.leases().acquire(&[mine], LONG).await.unwrap(), [Held]);
    server.restart();
    let said = node.leases().acquire(&[rival(mine)], TTL).await.unwrap();
    assert_eq!(said, [Absent], "nobody knows who held what");
    assert_eq!(node.leases().renew(&[mine], LONG, true).await.unwrap(), [Held]);
    settle(&*node.leases()).await;
}

#[tokio::test]
async fn a_restart_that_kept_its_data_may_have_lost_the_last_of_it() {
    let mut server = Redis::start_with(Server {
        arguments: ["--appendonly", "yes", "--appendfsync", "everysec"]
            .map(str::to_owned)
            .to_vec(),
        ..Server::default()
    });
    let node = Node::open(options(&server.url())).await;
    let (mine, free) = (key(0), key(1));
    node.leases().acquire(&[mine], LONG).await.unwrap();
    // A server that is killed keeps what it wrote to its file: `kill` cuts no power.
    eventually("it is in the file", async || {
        server
            .cli(&["INFO", "persistence"])
            .contains("aof_buffer_length:0")
    })
    .await;
    server.restart();
    let said = node.leases().acquire(&[free, rival(mine)], TTL).await.unwrap();
    assert_eq!(
        said,
        [Absent, Lost],
        "what was kept is known, what is absent may have been lost"
    );
    settle(&*node.leases()).await;
    assert_eq!(node.leases().acquire(&[free], LONG).await.unwrap(), [Held]);
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_in_time_and_not_stormed_when_it_is_back() {
    let server = Redis::start();
    let node = Node::open(options(&server.url())).await;
    let (mine, late) = (key(0), key(1));
    node.leases().acquire(&[mine], LONG).await.unwrap();
    let received = |server: &Redis| {
        let info = server.cli(&["INFO", "stats"]);
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("total_connections_received:"));
        line.expect("a count").trim().parse::<u32>().expect("a number")
    };
    let before = received(&server);
    server.signal("STOP");
    let begun = tokio::time::Instant::now();
    assert!(why(node.leases().acquire(&[late], LONG).await).contains("did not answer in time"));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(matches!(node.meters.redis(), Some(Err(_))));
    let mut refused = 0;
    while begun.elapsed() < Duration::from_secs(5) {
        why(node.leases().renew(&[mine], LONG, true).await);
        refused += 1;
        // As often as a busy node asks: two hundred times a second.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.signal("CONT");
    eventually("it is back", async || {
        node.leases().renew(&[mine], LONG, false).await.is_ok()
    })
    .await;
    let made = received(&server) - before;
    println!("{refused} calls were refused in 5 s, {made} connections made");
    assert!(refused > 20, "most fail at once: {refused}");
    assert!(made < 30, "{made} connections");
    assert_eq!(node.meters.redis(), Some(Ok(())));
    // The request that was never answered may have had its effect; its answer is nobody else's.
    let said = node
        .leases()
        .acquire(&[rival(late), rival(mine), key(2)], LONG)
        .await
        .unwrap();
    assert_eq!(&said[1..], [Lost, Held], "{said:?}");
}

#[tokio::test]
async fn an_answer_that_comes_late_is_not_taken_for_another() {
    let server = Redis::start();
    let node = Node::open(options(&server.url())).await;
    let (first, second) = (key(0), key(1));
    node.leases().acquire(&[second], LONG).await.unwrap();
    server.signal("STOP");
    why(node.leases().acquire(&[first, rival(second)], LONG).await);
    server.signal("CONT");
    eventually("it is back", async || {
        node.leases().renew(&[second], LONG, false).await.is_ok()
    })
    .await;
    for _ in 0..50 {
        assert_eq!(node.leases().renew(&[second], LONG, false).await.unwrap(), [Held]);
        assert_eq!(
            node.leases().renew(&[rival(second)], LONG, false).await.unwrap(),
            [Lost]
        );
    }
}

#[tokio::test]
async fn a_node_begins_without_redis_and_finds_it_later() {
    let port = free_port();
    let node = Node::begin(options(&format!("redis://127.0.0.1:{port}")));
    let said = why(node.leases().acquire(&[key(0)], LONG).await);
    assert!(
        said.contains(&format!("Redis at 127.0.0.1:{port} takes no connections")),
        "{said}"
    );
    eventually("it is known to be down", async || {
        matches!(node.meters.redis(), Some(Err(_)))
    })
    .await;
    let server = Redis::start_with(Server {
        port: Some(port),
        ..Server::default()
    });
    eventually("it is found", async || node.meters.redis() == Some(Ok(()))).await;
    settle(&*node.leases()).await;
    drop(server);
}

#[tokio::test]
async fn after_a_failover_the_new_master_is_asked_and_gives_nothing_anew_for_one_ttl() {
    let mut group = Sentinels::start().await;
    let node = Node::open(options(&group.url())).await;
    let (mine, free) = (key(0), key(1));
    assert_eq!(node.leases().acquire(&[mine], LONG).await.unwrap(), [Held]);
    eventually("it is replicated", async || {
        group
            .replica
            .cli(&["KEYS", "windrow:*:lease:t7.0"])
            .contains("lease")
    })
    .await;
    group.master.kill();
    let mut said = None;
    eventually("the replica is master", async || {
        said = node.leases().acquire(&[free, rival(mine)], TTL).await.ok();
        said.is_some()
    })
    .await;
    assert_eq!(said, Some(vec![Absent, Lost]));
    assert_eq!(
        node.leases().renew(&[mine], LONG, true).await.unwrap(),
        [Held],
        "its owner goes on"
    );
    settle(&*node.leases()).await;
    // The old master comes back as a replica, and nobody is misled.
    group.master.restart();
    eventually("it follows", async || {
        group.master.says(&["INFO", "replication"], "role:slave")
    })
    .await;
    assert_eq!(node.leases().renew(&[mine], LONG, false).await.unwrap(), [Held]);
}

#[tokio::test]
async fn every_server_of_a_cluster_leads_to_the_one_with_the_leases() {
    let cluster = Cluster::start().await;
    let mine = key(0);
    let mut first = true;
    for url in cluster.each() {
        let mut options = options("redis://x");
        options.url = url;
        let node = Node::open(options).await;
        let expected = if std::mem::take(&mut first) { Held } else { Lost };
        let token: LeaseKey = if expected == Held { mine } else { rival(mine) };
        assert_eq!(node.leases().acquire(&[token], LONG).await.unwrap(), [expected]);
    }
    let with = |keys: &str| keys.lines().filter(|key| key.contains("lease:t7.0")).count();
    let holders = cluster
        .servers
        .iter()
        .filter(|server| with(&server.cli(&["KEYS", "*"])) == 1)
        .count();
    assert_eq!(holders, 1);
}

#[tokio::test]
async fn a_cluster_that_is_down_is_told_and_one_of_its_servers_is_enough_to_come_back() {
    let mut cluster = Cluster::start().await;
    let node = Node::open(options(&cluster.url())).await;
    let holder = {
        node.leases().acquire(&[key(0)], LONG).await.unwrap();
        let has = |server: &Redis| server.cli(&["KEYS", "*lease*"]).contains("lease");
        cluster.servers.iter().position(has).expect("a holder")
    };
    cluster.servers[holder].kill();
    why(node.leases().acquire(&[key(1)], LONG).await);
    cluster.servers[holder].restart();
    settle(&*node.leases()).await;
}

#[tokio::test]
async fn five_thousand_leases_are_renewed_in_ten_round_trips() {
    let server = Redis::start();
    let node = Node::open(options(&server.url())).await;
    let leases: Vec<LeaseKey> = (0..5_000).map(key).collect();
    assert_eq!(
        node.leases().acquire(&leases, LONG).await.unwrap(),
        vec![Held; 5_000]
    );
    let count = || node.meters.lease_trips().0.count();
    let before = count();
    let begun = tokio::time::Instant::now();
    for _ in 0..5 {
        assert_eq!(
            node.leases().renew(&leases, LONG, false).await.unwrap(),
            vec![Held; 5_000]
        );
    }
    let trips = count() - before;
    println!(
        "5,000 leases: {} calls at once, {:?} (debug build)",
        trips / 5,
        begun.elapsed() / 5
    );
    // The watch may have looked in between.
    assert!((50..=52).contains(&trips), "{trips}");
}

#[tokio::test]
async fn stores_and_prefixes_that_share_a_server_never_meet() {
    let server = Redis::start();
    let first = options(&server.url());
    let (mut store, mut prefix) = (first.clone(), first.clone());
    store.store.0 = "zzzzzz".to_owned();
    prefix.prefix = "other".to_owned();
    let mine = key(0);
    for options in [first, store, prefix] {
        let node = Node::open(options).await;
        assert_eq!(node.leases().acquire(&[rival(mine)], LONG).await.unwrap(), [Held]);
    }
    let keys = server.cli(&["KEYS", "*lease*"]);
    let mut keys: Vec<&str> = keys.lines().collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "other:{a1b2c3}:lease:t7.0",
            "windrow:{a1b2c3}:lease:t7.0",
            "windrow:{zzzzzz}:lease:t7.0"
        ]
    );
}
