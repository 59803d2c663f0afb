//! Changes that meet: none is lost, none is made by halves.

use std::time::Duration;

use serde_json::json;

use crate::business::{Act, Business};
use crate::support::{Node, Recipe};

/// A business that takes a while to agree to a change, so that changes meet.
async fn pensive(span: Duration) -> Business {
    Business::start(move |seen| match seen.kind() {
        "task.validate" => Act::json(200, json!({})).after(span),
        _ => Act::ok().after(Duration::from_millis(50)),
    })
    .await
}

#[tokio::test]
async fn of_changes_that_meet_none_is_lost() {
    let business = pensive(Duration::from_millis(300)).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({"hooks": {"validate": {}}}))
        .await;
    let task = node.task("push", 1_000_000, json!({"rate": "10/s"})).await;
    let path = format!("/v1/tasks/{task}");
    let change = |body| node.admin.patch(&path, body);
    let answers = tokio::join!(
        change(json!({"rate": "77/s"})),
        change(json!({"concurrency": 7})),
        change(json!({"timeout": "7s"})),
        change(json!({"retry": {"max_attempts": 7}})),
    );
    for answer in [answers.0, answers.1, answers.2, answers.3] {
        answer.expect(200);
    }
    let view = node.admin.get(&path).await.expect(200);
    let found = (
        &view["rate"],
        &view["concurrency"],
        &view["timeout"],
        &view["retry"]["max_attempts"],
    );
    assert_eq!(
        found,
        (&json!("77/s"), &json!(7), &json!("7s"), &json!(7)),
        "{view:#}"
    );
}

#[tokio::test]
async fn settings_of_retries_have_their_own_names_and_stand_in_retry_too() {
    let node = Node::start().await;
    node.business("push", "http://127.0.0.1:1/", json!({})).await;
    let more = json!({"max_attempts": 3, "retry": {"on_exhausted": "stop"}});
    let path = format!("/v1/tasks/{}", node.task("push", 5, more).await);
    let change = json!({"backoff": "2s jitter 0%", "retry": {"max_attempts": 4}});
    let task = node.admin.patch(&path, change).await.expect(200);
    let retry = json!({"max_attempts": 4, "backoff": "2s jitter 0%", "on_exhausted": "stop"});
    assert_eq!(task["retry"], retry);
    for (name, value) in retry.as_object().unwrap() {
        assert_eq!(&task[name], value, "{name}");
    }
    for (wrong, pointer) in [
        (json!({"retry": {"rate": "1/s"}}), "/retry/rate"),
        (json!({"backof": "1s"}), "/backof"),
        (json!({"backoff": "1s..400d"}), "/backoff"),
        (json!({"timeout": "fast"}), "/timeout"),
    ] {
        let problem = node.admin.patch(&path, wrong).await.json();
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem:#}");
    }
}

#[tokio::test]
async fn a_change_is_made_whole_although_its_client_hung_up() {
    let business = pensive(Duration::from_secs(1)).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({"hooks": {"validate": {}}}))
        .await;
    let task = node.task("push", 1_000_000, json!({"rate": "10/s"})).await;
    let path = format!("/v1/tasks/{task}");
    let impatient = node.admin.patch(&path, json!({"rate": "77/s"}));
    tokio::time::timeout(Duration::from_millis(300), impatient)
        .await
        .expect_err("it hung up");
    node.until(&task, "changed", |view| view["rate"] == "77/s").await;
}

#[tokio::test]
async fn a_start_that_waits_for_its_time_is_given_another_and_now_is_one() {
    let business = pensive(Duration::ZERO).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let (one, other) = ("2999-01-01T00:00:00Z", "2998-01-01T00:00:00Z");
    let task = node
        .task("push", 10, json!({"start": true, "start_at": one}))
        .await;
    let start = format!("/v1/tasks/{task}/start");
    node.admin
        .post(&start, json!({"start_at": one}))
        .await
        .expect(200);
    let moved = node
        .admin
        .post(&start, json!({"start_at": other}))
        .await
        .expect(202);
    assert_eq!(moved["start_at"], "2998-01-01T00:00:00.000Z", "{moved:#}");
    node.admin.post(&start, json!({"now": true})).await.expect(202);
    node.until(&task, "done", |view| view["status"] == "finished")
        .await;
}

#[tokio::test]
async fn nothing_is_shown_as_running_that_no_node_runs() {
    let business = pensive(Duration::ZERO).await;
    let recipe = Recipe::new();
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task("push", 1_000_000, json!({"rate": "80/s", "start": true}))
        .await;
    let halted = node
        .task("push", 1_000_000, json!({"rate": "10/s", "start": true}))
        .await;
    for task in [&task, &halted] {
        node.until(task, "under way", |view| {
            view["counts"]["succeeded"].as_u64() > Some(0)
        })
        .await;
    }
    node.signal(rustix::process::Signal::KILL);
    node.ended().await;
    let node = recipe.config("[node]\nrun_tasks = false").start().await;
    node.until(&task, "explained", |view| {
        view["status"] == "queued" && view["status_reason"] == "no_node"
    })
    .await;
    node.admin
        .post(&format!("/v1/tasks/{halted}/stop"), json!({}))
        .await
        .expect(202);
    node.status(&halted, "stopped").await;
}

/// A lower rate may still be more than any node has: the change is stored, so it isn't refused.
#[tokio::test]
async fn a_rate_that_is_lowered_and_still_fits_no_node_is_changed_and_not_refused() {
    let business = Business::start(|_| Act::ok()).await;
    let node = Recipe::new()
        .config("[node]\ncapacity_rate = \"100/s\"\nunlimited_reserves = \"50/s\"")
        .start()
        .await;
    node.business("push", &business.url(), json!({})).await;
    let big = json!({"rate": "900/s", "start": true});
    let path = format!("/v1/tasks/{}", node.task("push", 5, big).await);
    let lowered = node
        .admin
        .patch(&path, json!({"rate": "500/s"}))
        .await
        .expect(200);
    assert_eq!(lowered["rate"], "500/s");
    assert_eq!(node.admin.get(&path).await.expect(200)["rate"], "500/s");
}

#[tokio::test]
async fn a_rate_can_be_left_to_the_autopilot_within_what_the_business_allows() {
    let node = Recipe::new()
        .config("[task_defaults]\nrate = \"auto up to 70/s\"")
        .start()
        .await;
    let url = "http://127.0.0.1:9/";
    node.business("free", url, json!({})).await;
    let bounds = json!({"limits": {"rate": "50/s"}, "defaults": {"rate": "auto"}});
    node.business("push", url, bounds).await;
    let rate =
        async |task: &str| node.admin.get(&format!("/v1/tasks/{task}")).await.expect(200)["rate"].clone();
    let of_node = node.task("free", 9, json!({})).await;
    assert_eq!(rate(&of_node).await, "auto up to 70/s");
    let asked = node.task("free", 9, json!({"rate": "auto"})).await;
    assert_eq!(
        rate(&asked).await,
        "auto",
        "it is not an unlimited rate, which this node refuses"
    );
    let task = node.task("push", 9, json!({})).await;
    assert_eq!(rate(&task).await, "auto up to 50/s", "the limit is the ceiling");
    let path = format!("/v1/tasks/{task}");
    let refused = node.admin.patch(&path, json!({"rate": "auto up to 51/s"})).await;
    let refused = refused.problem(422, "validation-failed").to_string();
    assert!(refused.contains("auto up to 50/s"), "{refused}");
    for (wanted, stored) in [
        ("7/s", "7/s"),
        ("auto up to 7/s", "auto up to 7/s"),
        ("auto", "auto up to 50/s"),
    ] {
        node.admin.patch(&path, json!({"rate": wanted})).await.expect(200);
        assert_eq!(rate(&task).await, stored);
    }
    let request = json!({"source": {"type": "range", "total": 9}, "rate": "auto"});
    let schedule = json!({"business": "free", "name": "nightly", "every": "1h", "task": request});
    let made = node.admin.post("/v1/schedules", schedule).await.expect(201);
    assert_eq!(made["task"]["rate"], "auto", "{made:#}");
    let nodes = node.admin.get("/v1/nodes").await.expect(200);
    let own = format!("/v1/nodes/{}", nodes["items"][0]["id"].as_str().expect("a name"));
    let capacity = node.admin.patch(&own, json!({"capacity_rate": "auto"})).await;
    let capacity = capacity.problem(422, "validation-failed").to_string();
    assert!(capacity.contains("\\\"auto\\\" is for tasks"), "{capacity}");
}
