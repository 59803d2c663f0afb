//! A node with handlers of its own: its API, its tasks, and the names that businesses give its handlers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::tempdir;
use windrow::{Error, Item, Node, NodeBuilder, Windrow};
use windrow_client::{Client, ClientError, Depth, EnvironmentProxies, Options, Request, Tap};

/// How often each key was seen.
type Seen = Arc<Mutex<BTreeMap<String, u64>>>;

fn builder(folder: &Path) -> NodeBuilder {
    Windrow::builder().store(folder).node().listen("127.0.0.1:0")
}

/// A node whose handler `push` notes each call.
async fn node(folder: &Path, seen: &Seen) -> Node {
    let seen = seen.clone();
    let push = move |item: Item| {
        *seen.lock().expect("not poisoned").entry(item.key).or_default() += 1;
        async { Ok::<_, String>(()) }
    };
    builder(folder)
        .handler("push", push)
        .serve()
        .await
        .expect("a folder that nobody holds")
}

/// A client with the first administrator's token.
fn client(node: &Node) -> Client {
    let token = node
        .token_file()
        .map(|file| std::fs::read_to_string(file).expect("a token"));
    Client::new(Options {
        server: node.url(),
        token: token.map(|token| token.trim().to_owned()),
        timeout: Duration::from_secs(10),
        ca_file: None,
        proxies: EnvironmentProxies::default(),
        tap: Tap::new(Depth::Nothing, |_| {}),
    })
    .expect("an address")
}

async fn post(client: &Client, path: &str, body: &Value) -> Result<Value, ClientError> {
    client.send(Request::post(path).json(body)).await?.json()
}

async fn until(client: &Client, task: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let answer = client.send(Request::get(&format!("/v1/tasks/{task}"))).await;
        let view = answer.expect("a task").json().expect("JSON");
        if wanted(&view) {
            return view;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_task_of_the_api_runs_through_the_closure_and_goes_on_after_a_restart() {
    let (folder, seen) = (tempdir().expect("a folder"), Seen::default());
    let first = node(folder.path(), &seen).await;
    let asks = client(&first);
    let business = json!({"name": "campaign", "command": "push"});
    post(&asks, "/v1/businesses", &business)
        .await
        .expect("registered");
    let body = json!({"business": "campaign", "source": {"type": "range", "total": 400}, "rate": "200/s", "start": true});
    let task = post(&asks, "/v1/tasks", &body).await.expect("made");
    let id = task["id"].as_str().expect("an id").to_owned();
    until(&asks, &id, |view| view["counts"]["succeeded"].as_u64() > Some(20)).await;
    first.close().await;
    assert!(
        seen.lock().expect("not poisoned").len() < 400,
        "it was in the middle"
    );

    let second = node(folder.path(), &seen).await;
    let view = until(&client(&second), &id, |view| view["status"] == "finished").await;
    assert_eq!(view["counts"]["succeeded"], 400, "{view}");
    second.close().await;
    let seen = seen.lock().expect("not poisoned");
    let calls: u64 = seen.values().sum();
    assert_eq!((seen.len(), calls), (400, 400), "nothing twice");
}

#[tokio::test]
async fn a_business_names_a_handler_that_the_node_has_and_no_other() {
    let folder = tempdir().expect("a folder");
    let first = node(folder.path(), &Seen::default()).await;
    let asks = client(&first);
    let unknown = json!({"name": "campaign", "command": "pull"});
    let refused = post(&asks, "/v1/businesses", &unknown)
        .await
        .expect_err("no such handler");
    let ClientError::Problem(problem) = refused else {
        panic!("{refused}");
    };
    let [fault] = problem.errors.as_slice() else {
        panic!("{problem:?}");
    };
    assert_eq!((problem.status, fault.pointer.as_str()), (422, "/command"));
    assert_eq!(fault.advice.as_deref(), Some("one of push"));

    let known = json!({"name": "campaign", "command": "push"});
    post(&asks, "/v1/businesses", &known).await.expect("registered");
    let report = post(&asks, "/v1/businesses/campaign/check", &json!({}))
        .await
        .expect("checked");
    assert_eq!(report["passed"], true, "{report}");
    first.close().await;

    // A node without that handler says so, and loses nothing.
    let second = builder(folder.path()).serve().await.expect("it serves");
    let asks = client(&second);
    let body = json!({"business": "campaign", "source": {"type": "range", "total": 3}, "start": true});
    let task = post(&asks, "/v1/tasks", &body).await.expect("made");
    let id = task["id"].as_str().expect("an id").to_owned();
    let view = until(&asks, &id, |view| view["status"] == "stopped").await;
    assert_eq!(view["counts"]["pending"], 3, "{view}");
    assert!(
        view["status_text"]
            .as_str()
            .is_some_and(|text| text.contains("push")),
        "{view}"
    );
    second.close().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_node_is_said_before_it_serves() {
    let folder = tempdir().expect("a folder");
    let open = builder(folder.path()).listen("0.0.0.0:0").without_sign_in();
    let faults = open.serve().await.expect_err("open to everybody");
    assert!(
        matches!(&faults, Error::Config(_)) && faults.to_string().contains("auth.mode"),
        "{faults}"
    );
    let nowhere = builder(folder.path())
        .listen("7700")
        .serve()
        .await
        .expect_err("no address");
    assert!(nowhere.to_string().contains("127.0.0.1:7700"), "{nowhere}");
    let held = builder(folder.path())
        .without_sign_in()
        .serve()
        .await
        .expect("it serves");
    assert_eq!(held.token_file(), None);
    let second = builder(folder.path()).serve().await.expect_err("it is held");
    assert!(matches!(&second, Error::Serve(_)), "{second}");
    held.close().await;
}
