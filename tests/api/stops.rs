//! Stop is calm: nothing leaves after it, what is in flight ends, and a resume repeats nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::business::{Act, Business};
use crate::support::{Node, Recipe, sum};

#[tokio::test]
async fn a_stopped_task_sends_nothing_more_counts_exactly_and_repeats_nothing_when_resumed() {
    let business = Business::start(|_| Act::ok().after(Duration::from_millis(100))).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task(
            "push",
            3_000,
            json!({"rate": "1000/s", "concurrency": 300, "start": true}),
        )
        .await;
    for round in 1..=3 {
        let wanted = round * 400;
        node.until(&task, "under way", |view| {
            view["counts"]["succeeded"].as_u64() >= Some(wanted)
        })
        .await;
        node.admin
            .post(&format!("/v1/tasks/{task}/stop"), json!({}))
            .await
            .expect(202);
        let stopped = node.status(&task, "stopped").await;
        assert_eq!(stopped["stop_reason"], "operator");
        let sent = business.items().len() as u64;
        assert_eq!(
            stopped["counts"]["succeeded"].as_u64(),
            Some(sent),
            "what left was counted: {stopped:#}"
        );
        assert_eq!(stopped["counts"]["in_flight"], 0);
        assert_eq!(sum(&stopped), 3_000);
        node.admin
            .post(&format!("/v1/tasks/{task}/start"), json!({}))
            .await
            .expect(202);
    }
    let done = node.status(&task, "finished").await;
    assert_eq!(done["counts"]["succeeded"], 3_000);
    let mut times: BTreeMap<u64, u64> = BTreeMap::new();
    for (index, _) in business.items() {
        *times.entry(index).or_default() += 1;
    }
    assert!(
        times.len() == 3_000 && times.values().all(|times| *times == 1),
        "an item was repeated"
    );
}

#[tokio::test]
async fn a_stop_now_does_not_wait_for_calls_and_says_what_may_repeat() {
    let business = Business::start(|_| Act::ok().after(Duration::from_secs(9))).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task(
            "push",
            100,
            json!({"rate": "100/s", "concurrency": 5, "start": true}),
        )
        .await;
    node.until(&task, "in flight", |view| view["counts"]["in_flight"] == 5)
        .await;
    node.admin
        .post(&format!("/v1/tasks/{task}/stop"), json!({"now": true}))
        .await
        .expect(202);
    let stopped = node.status(&task, "stopped").await;
    assert_eq!(stopped["counts"]["succeeded"], 0, "{stopped:#}");
    assert_eq!(sum(&stopped), 100);
    let text = stopped["status_text"].as_str().expect("a sentence");
    assert!(
        text.contains("5 items were in flight and may repeat: #0–#4"),
        "{text}"
    );
    assert_eq!(
        stopped["cut_off"],
        json!({"items": 5, "runs": [{"first": 0, "items": 5}]})
    );
}

#[tokio::test]
async fn a_changed_rate_is_obeyed_and_nothing_is_lost() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    // More items than any machine gets through here: a task that ended could not be changed any more.
    let task = node
        .task("push", 1_000_000, json!({"rate": "100/s", "start": true}))
        .await;
    for (rate, enough) in [("100/s", 50), ("1000/s", 1_000), ("50/s", 1_050)] {
        node.admin
            .patch(&format!("/v1/tasks/{task}"), json!({"rate": rate}))
            .await
            .expect(200);
        node.until(&task, "under way", |view| {
            view["counts"]["succeeded"].as_u64() >= Some(enough)
        })
        .await;
    }
    node.admin
        .post(&format!("/v1/tasks/{task}/stop"), json!({}))
        .await
        .expect(202);
    let stopped = node.status(&task, "stopped").await;
    let done = stopped["counts"]["succeeded"].as_u64().expect("a number");
    let mut items = business.items();
    items.sort_unstable();
    assert_eq!(items, (0..done).map(|index| (index, 1)).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_node_that_is_told_to_end_drains_and_the_next_one_goes_on_without_repeats() {
    let business = Business::start(|_| Act::ok().after(Duration::from_millis(50))).await;
    let recipe = Recipe::new();
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task(
            "push",
            2_000,
            json!({"rate": "1000/s", "concurrency": 200, "start": true}),
        )
        .await;
    node.until(&task, "under way", |view| {
        view["counts"]["succeeded"].as_u64() >= Some(300)
    })
    .await;
    assert_eq!(node.stop().await, Some(0));
    let node = recipe.start().await;
    let done = node.status(&task, "finished").await;
    assert_eq!(done["counts"]["succeeded"], 2_000);
    let mut items = business.items();
    items.sort_unstable();
    assert_eq!(
        items,
        (0..2_000).map(|index| (index, 1)).collect::<Vec<_>>(),
        "each item once"
    );
}

#[tokio::test]
async fn a_node_that_was_killed_is_followed_by_one_that_loses_nothing() {
    let business = Business::start(|_| Act::ok().after(Duration::from_millis(20))).await;
    let recipe = Recipe::new();
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task("push", 2_000, json!({"rate": "1000/s", "start": true}))
        .await;
    node.until(&task, "under way", |view| {
        view["counts"]["succeeded"].as_u64() >= Some(300)
    })
    .await;
    node.signal(rustix::process::Signal::KILL);
    node.ended().await;
    let node = recipe.start().await;
    let done = node.status(&task, "finished").await;
    assert_eq!(done["counts"]["succeeded"], 2_000);
    let mut seen: Vec<u64> = business.items().into_iter().map(|(index, _)| index).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 2_000, "each item at least once");
}

#[tokio::test]
async fn while_it_drains_changes_are_refused_and_reads_are_answered() {
    let business = Business::start(|_| Act::ok().after(Duration::from_secs(4))).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task(
            "push",
            50,
            json!({"rate": "50/s", "concurrency": 5, "timeout": "9s", "start": true}),
        )
        .await;
    node.until(&task, "in flight", |view| view["counts"]["in_flight"] == 5)
        .await;
    let mut events = node.admin.events("/v1/events?topics=cluster", None).await;
    events.next().await.expect("an event");
    node.signal(rustix::process::Signal::TERM);
    let bye = events.until(|one| one.kind == "bye").await;
    assert!(
        bye.last().expect("a goodbye").data["data"]["text"]
            .as_str()
            .expect("a text")
            .contains("connect again")
    );
    let path = format!("/v1/tasks/{task}");
    let create = json!({"business": "push", "source": {"type": "range", "total": 5}});
    let refused = node.admin.post("/v1/tasks", create).await;
    assert!(refused.header("retry-after").is_some(), "{}", refused.text());
    refused.problem(503, "draining");
    node.admin
        .patch(&path, json!({"rate": "9/s"}))
        .await
        .problem(503, "draining");
    node.admin.delete(&path).await.problem(503, "draining");
    assert_eq!(node.admin.get(&path).await.expect(200)["rate"], "50/s");
    node.admin.get("/healthz").await.expect(200);
    assert_eq!(node.admin.get("/readyz").await.status, 503);
    assert_eq!(node.ended().await, Some(0));
}

/// A task is finished early around the death of its owner: whatever was called is counted for what it came to.
async fn finish_around_a_crash(acknowledged: bool) {
    let business = Business::willing().await;
    let recipe = Recipe::new();
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({})).await;
    // Half a minute between checkpoints: nothing of what was answered is saved when the owner dies.
    let tuning = json!({"rate": "100/s", "checkpoint_interval": "30s", "start": true});
    let task = node.task("push", 10_000, tuning).await;
    let path = format!("/v1/tasks/{task}/finish");
    node.until(&task, "under way", |view| {
        view["counts"]["succeeded"].as_u64() >= Some(150)
    })
    .await;
    if acknowledged {
        node.admin.post(&path, json!({})).await.expect(202);
    }
    node.signal(Signal::KILL);
    node.ended().await;
    let called: BTreeSet<u64> = business.items().into_iter().map(|(index, _)| index).collect();
    let node = recipe.start().await;
    if !acknowledged {
        node.admin.post(&path, json!({})).await.expect(202);
    }
    let done = node.status(&task, "finished").await;
    let delivered: BTreeSet<u64> = business.items().into_iter().map(|(index, _)| index).collect();
    assert!(delivered.is_superset(&called) && called.len() >= 150);
    let counted = |name: &str| done["counts"][name].as_u64();
    assert_eq!(counted("succeeded"), Some(delivered.len() as u64), "{done:#}");
    assert_eq!(counted("excluded"), Some(10_000 - delivered.len() as u64));
    assert!(
        delivered.len() < 5_000,
        "most of what was never called is left out: {}",
        delivered.len()
    );
}

#[tokio::test]
async fn an_early_finish_after_its_owner_died_excludes_nothing_that_was_called() {
    finish_around_a_crash(false).await;
}

#[tokio::test]
async fn an_early_finish_whose_owner_then_died_excludes_nothing_that_was_called() {
    finish_around_a_crash(true).await;
}
