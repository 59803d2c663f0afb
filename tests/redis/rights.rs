//! Wrong passwords, missing rights, replicas, full and locked servers: each is told in a sentence that says what to check.

use windrow_engine::ports::handling::meters::HintFate;
use windrow_engine::ports::ownership::hints::{Hint, Hints};
use windrow_engine::ports::ownership::lease_store::LeaseReply::{Absent, Held};

use crate::faults::why;
use crate::fixture::{LONG, Node, eventually, key, options, settle};
use crate::groups::add_user;
use crate::servers::{Redis, RedisOptions as Server};

fn password(text: &str) -> Option<std::path::PathBuf> {
    let file = tempfile::NamedTempFile::new()
        .expect("a file")
        .into_temp_path()
        .keep()
        .expect("kept");
    std::fs::write(&file, text).expect("written");
    Some(file)
}

fn as_user(server: &Redis) -> String {
    format!("redis://windrow@127.0.0.1:{}", server.port())
}

#[tokio::test]
async fn a_wrong_password_names_the_key_and_a_right_one_is_taken_without_a_restart() {
    let server = Redis::start();
    add_user(&server);
    let mut options = options(&as_user(&server));
    options.password_file = password("wrong");
    let node = Node::begin(options.clone());
    let said = why(node.leases().acquire(&[key(0)], LONG).await);
    assert!(said.contains("cluster.redis_password_file"), "{said}");
    std::fs::write(options.password_file.expect("a file"), "wind-row").expect("written");
    settle(&*node.leases()).await;
}

#[tokio::test]
async fn a_server_that_wants_a_password_says_which_key_to_check() {
    let server = Redis::start_with(Server {
        arguments: vec!["--requirepass".to_owned(), "x y".to_owned()],
        client: vec!["-a".to_owned(), "x y".to_owned(), "--no-auth-warning".to_owned()],
        ..Server::default()
    });
    let mut options = options(&server.url());
    let said = why(Node::begin(options.clone())
        .leases()
        .acquire(&[key(0)], LONG)
        .await);
    assert!(
        said.contains("requires a password; check cluster.redis_password_file"),
        "{said}"
    );
    options.password_file = password("x y\n");
    Node::open(options.clone()).await;
    options.password_file = Some("/nowhere/password".into());
    let said = why(Node::begin(options).leases().acquire(&[key(0)], LONG).await);
    assert!(
        said.starts_with("cluster.redis_password_file: /nowhere/password can't be read"),
        "{said}"
    );
}

#[tokio::test]
async fn a_missing_right_is_named() {
    let server = Redis::start();
    add_user(&server);
    let mut options = options(&as_user(&server));
    options.password_file = password("wind-row");
    let node = Node::open(options).await;
    server.cli(&["ACL", "SETUSER", "windrow", "-evalsha"]);
    let said = why(node.leases().acquire(&[key(0)], LONG).await);
    assert!(
        said.contains("cluster.redis_url") && said.contains("evalsha"),
        "{said}"
    );
    server.cli(&["ACL", "SETUSER", "windrow", "+evalsha", "-set"]);
    let said = why(node.leases().acquire(&[key(0)], LONG).await);
    assert!(said.contains("doesn't let the user"), "{said}");
    server.cli(&["ACL", "SETUSER", "windrow", "+set"]);
    assert_eq!(node.leases().acquire(&[key(0)], LONG).await.unwrap(), [Held]);
}

#[tokio::test]
async fn without_the_right_to_ask_who_it_is_a_server_still_gives_leases() {
    let server = Redis::start();
    add_user(&server);
    server.cli(&["ACL", "SETUSER", "windrow", "-info"]);
    let mut options = options(&as_user(&server));
    options.password_file = password("wind-row");
    let node = Node::open(options.clone()).await;
    assert_eq!(node.leases().acquire(&[key(0)], LONG).await.unwrap(), [Held]);
    // A node that may ask doesn't take the other's word for a loss, nor the other way round, for more than once.
    server.cli(&["ACL", "SETUSER", "windrow", "+info"]);
    settle(&*node.leases()).await;
    server.cli(&["ACL", "SETUSER", "windrow", "-info"]);
    assert_eq!(node.leases().acquire(&[key(1)], LONG).await.unwrap(), [Held]);
    server.cli(&["FLUSHALL"]);
    assert_eq!(node.leases().acquire(&[key(2)], LONG).await.unwrap(), [Absent]);
}

#[tokio::test]
async fn without_the_right_to_a_channel_hints_are_dropped_and_leases_work() {
    let server = Redis::start();
    add_user(&server);
    server.cli(&["ACL", "SETUSER", "windrow", "resetchannels"]);
    let mut options = options(&as_user(&server));
    options.password_file = password("wind-row");
    let node = Node::open(options).await;
    node.redis.hints.send(Hint::Work);
    eventually("the hint is dropped", async || {
        node.meters.hints(HintFate::Dropped) == 1
    })
    .await;
    assert_eq!(node.leases().acquire(&[key(0)], LONG).await.unwrap(), [Held]);
}

#[tokio::test]
async fn replicas_and_full_servers_refuse_in_a_sentence() {
    let server = Redis::start();
    let node = Node::open(options(&server.url())).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let said = why(node.leases().acquire(&[key(0)], LONG).await);
    assert!(said.contains("out of memory"), "{said}");
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let said = why(node.leases().acquire(&[key(0)], LONG).await);
    assert!(said.contains("too few replicas"), "{said}");
    server.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    let said = why(node.leases().acquire(&[key(0)], LONG).await);
    assert!(said.contains("is a replica"), "{said}");
    server.cli(&["REPLICAOF", "NO", "ONE"]);
    settle(&*node.leases()).await;
}

#[tokio::test]
async fn a_certificate_of_nobody_trusted_is_refused_and_a_missing_file_named() {
    let (_server, mut options) = crate::groups::secured();
    let ca_file = options.ca_file.take();
    let said = why(Node::begin(options.clone())
        .leases()
        .acquire(&[key(0)], LONG)
        .await);
    assert!(
        said.contains("can't be reached") && said.contains("certificate"),
        "{said}"
    );
    options.ca_file = Some("/nowhere/ca.pem".into());
    let said = why(Node::begin(options.clone())
        .leases()
        .acquire(&[key(0)], LONG)
        .await);
    assert!(
        said.starts_with("cluster.redis_ca_file: /nowhere/ca.pem can't be read"),
        "{said}"
    );
    options.ca_file = ca_file;
    Node::open(options).await;
}
