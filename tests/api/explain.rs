//! Why a task is slow, asked of a real node: rigged bottlenecks are named first, the causes add up, and what is advised
//! helps. A slow source, which the façade can't rig, is in `tests/supervision/speed.rs`.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Node, PATIENCE, Recipe};

/// The rate of all tasks here. Unit: items per second.
const RATE: f64 = 100.0;
/// 100ms of it, and those that are granted and about to leave. Unit: items.
const BURST: f64 = 12.0;

fn number(of: &Value, member: &str) -> f64 {
    of[member]
        .as_f64()
        .unwrap_or_else(|| panic!("{member} of {of:#}"))
}

/// A node with one task of 100/s, and what else its settings say.
struct Rig {
    node: Node,
    task: String,
}

impl Rig {
    async fn start(business: &Business, more: Value) -> Rig {
        let node = Recipe::new()
            .config("[node]\nallow_unlimited = true")
            .start()
            .await;
        node.business("push", &business.url(), json!({})).await;
        let mut settings = json!({"rate": "100/s", "error_budget": "none", "start": true});
        crate::support::merge(&mut settings, more);
        let task = node.task("push", 1_000_000, settings).await;
        Rig { node, task }
    }

    async fn explain(&self, seconds: u32) -> Value {
        let path = format!("/v1/tasks/{}/explain?seconds={seconds}", self.task);
        self.node.admin.get(&path).await.expect(200)
    }

    /// Asks again until the answer fulfils a condition: samples come once a second.
    async fn until(&self, seconds: u32, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let answer = self.explain(seconds).await;
            if fits(&answer) {
                return answer;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "never {what}: {answer:#}\n{}",
                self.node.said()
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The explanation of ten seconds in which nothing began.
    async fn steady(&self) -> Value {
        self.until(15, "as old", |answer| number(answer, "span_seconds") > 13.5)
            .await;
        let answer = self.explain(10).await;
        add_up(&answer);
        let target = number(&answer, "target_rate");
        assert!((target - RATE).abs() <= 0.02 * RATE, "{answer:#}");
        answer
    }

    /// Makes the first change that is advised.
    async fn obey(&self, answer: &Value) -> Value {
        let change = advice(answer)["change"].clone();
        assert!(change.is_object(), "{answer:#}");
        self.node
            .admin
            .patch(&format!("/v1/tasks/{}", self.task), change.clone())
            .await
            .expect(200);
        change
    }

    /// Waits until so many attempts a second are sent over ten seconds, but for what the machine was too busy to send.
    async fn reaches(&self, rate: f64) {
        let is_reached = |answer: &Value| number(answer, "actual_rate") * undisturbed(answer) >= rate;
        let answer = self.until(10, "fast enough", is_reached).await;
        add_up(&answer);
    }
}

/// The causes are what is missing: the difference of target and actual, but for what the bucket holds.
fn add_up(answer: &Value) {
    let causes = answer["causes"].as_array().expect("a list");
    let sum: f64 = causes.iter().map(|cause| number(cause, "rate")).sum();
    let (target, actual) = (number(answer, "target_rate"), number(answer, "actual_rate"));
    let missing = number(answer, "missing_rate");
    assert!((sum - missing).abs() <= 0.0001 * target, "{sum}: {answer:#}");
    let bucket = BURST / number(answer, "span_seconds");
    assert!(
        missing >= 0.0 && (missing - (target - actual)).abs() <= bucket,
        "{answer:#}"
    );
}

/// Whether a cause, or an advice about it, is that other processes kept the processor.
fn is_of_machine(slug: &Value) -> bool {
    slug == "late" || slug == "returned"
}

/// How many times more would be sent on a machine that does nothing else: what one that is busy takes away has its causes.
fn undisturbed(answer: &Value) -> f64 {
    let causes = answer["causes"].as_array().expect("a list");
    let of_machine = causes.iter().filter(|cause| is_of_machine(&cause["slug"]));
    let lost: f64 = of_machine.map(|cause| number(cause, "rate")).sum();
    let target = number(answer, "target_rate");
    target / (target - lost).max(0.05 * target)
}

/// The first advice about the task.
fn advice(answer: &Value) -> &Value {
    let all = answer["advice"].as_array().expect("a list");
    let of_task = all.iter().find(|advice| !is_of_machine(&advice["about"]));
    of_task.unwrap_or_else(|| panic!("nothing is advised: {answer:#}"))
}

fn first_slug(answer: &Value) -> &str {
    answer["causes"][0]["slug"].as_str().expect("a slug")
}

/// The first cause, and its share of what is missing.
fn first(answer: &Value) -> (&str, f64) {
    (first_slug(answer), number(&answer["causes"][0], "share"))
}

#[tokio::test]
async fn a_small_window_is_named_first_and_a_larger_one_helps() {
    let business = Business::start(|_| Act::ok().after(Duration::from_millis(100))).await;
    let rig = Rig::start(&business, json!({"window": 4})).await;
    let answer = rig.steady().await;
    let (slug, share) = first(&answer);
    assert!(slug == "window_full" && share > 0.5, "{answer:#}");
    assert!(
        answer["why"]
            .as_str()
            .is_some_and(|why| why.contains("window is 4")),
        "{answer:#}"
    );
    let change = rig.obey(&answer).await;
    assert!(change["window"].as_u64() > Some(4), "{change}");
    rig.reaches(0.95 * RATE).await;
}

#[tokio::test]
async fn a_slow_item_at_the_head_is_named_and_a_window_that_outlasts_it_helps() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(index, _)] if index % 200 == 0 => Act::ok().after(Duration::from_secs(3)),
        _ => Act::ok().after(Duration::from_millis(5)),
    })
    .await;
    let rig = Rig::start(
        &business,
        json!({"window": 50, "concurrency": 20, "straggler_after": "10s"}),
    )
    .await;
    let answer = rig.steady().await;
    assert_eq!(first_slug(&answer), "window_full", "{answer:#}");
    let change = rig.obey(&answer).await;
    assert!(change["window"].as_u64() >= Some(300), "{change}");
    rig.reaches(0.95 * RATE).await;
}

#[tokio::test]
async fn a_handler_that_turns_calls_away_is_named_and_its_own_rate_is_reached() {
    // It takes 40 calls in each second.
    let second = Mutex::new((Instant::now(), 0));
    let business = Business::start(move |seen| {
        if seen.items().is_empty() {
            return Act::ok();
        }
        let mut second = second.lock().expect("not poisoned");
        if second.0.elapsed() >= Duration::from_secs(1) {
            *second = (Instant::now(), 0);
        }
        second.1 += 1;
        if second.1 > 40 {
            Act::status(429).header("retry-after", "1")
        } else {
            Act::ok()
        }
    })
    .await;
    let rig = Rig::start(&business, json!({})).await;
    let answer = rig.steady().await;
    let (slug, share) = first(&answer);
    assert!(slug == "back_pressure" && share > 0.5, "{answer:#}");
    let why_not = answer["advice"][0]["hindrance"].as_str();
    assert!(
        why_not.is_some_and(|text| text.contains("no setting makes the handler faster")),
        "{answer:#}"
    );
    rig.obey(&answer).await;
    let reached = |answer: &Value| {
        let target = number(answer, "target_rate");
        target < 0.5 * RATE && number(answer, "actual_rate") >= 0.95 * target
    };
    add_up(&rig.until(10, "at the lower rate", reached).await);
}

#[tokio::test]
async fn a_small_concurrency_is_named_first_and_what_littles_law_asks_for_helps() {
    let business = Business::start(|_| Act::ok().after(Duration::from_millis(100))).await;
    let rig = Rig::start(&business, json!({"concurrency": 4})).await;
    let answer = rig.steady().await;
    let (slug, share) = first(&answer);
    assert!(slug == "concurrency" && share > 0.5, "{answer:#}");
    let change = rig.obey(&answer).await;
    assert!(change["concurrency"].as_u64() >= Some(10), "{change}");
    rig.reaches(0.95 * RATE).await;
}

#[tokio::test]
async fn retries_are_named_with_what_fails_and_a_rate_that_pays_for_them_helps() {
    // Half of all calls, but never many in a row, whatever leaves at once after a pause: that would be an outage. And each
    // item succeeds in the end.
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(index, attempt @ 1..5)] if index >> (attempt - 1) & 1 == 1 => Act::status(500),
        _ => Act::ok(),
    })
    .await;
    let more = json!({"retry": {"backoff": "20ms..20ms x1 jitter 0%"}});
    let rig = Rig::start(&business, more).await;
    let answer = rig.steady().await;
    let of = |answer: &Value, member: &str| number(answer, member) * undisturbed(answer);
    assert!(
        of(&answer, "actual_rate") >= 0.95 * RATE && of(&answer, "repeat_rate") > 0.45 * RATE,
        "what is sent keeps the rate, and half of it are repeats: {answer:#}"
    );
    assert_eq!(advice(&answer)["about"], "retries", "{answer:#}");
    assert!(
        answer["why"].as_str().is_some_and(|why| why.contains("HTTP_500")),
        "{answer:#}"
    );
    rig.obey(&answer).await;
    let settles = |answer: &Value| of(answer, "actual_rate") - of(answer, "repeat_rate");
    rig.until(10, "fast enough", |answer| settles(answer) >= 0.95 * RATE)
        .await;
}

#[tokio::test]
async fn a_task_at_its_rate_without_a_rate_and_without_a_run_is_explained_too() {
    let business = Business::start(|_| Act::ok().after(Duration::from_millis(20))).await;
    let rig = Rig::start(&business, json!({})).await;
    let path = format!("/v1/tasks/{}", rig.task);
    let reader = rig.node.client("viewer", None).await;
    for wrong in ["4", "901", "x"] {
        let answer = reader.get(&format!("{path}/explain?seconds={wrong}")).await;
        answer.problem(400, "invalid-request");
    }
    reader
        .get("/v1/tasks/t99/explain")
        .await
        .problem(404, "not-found");
    let answer = rig
        .until(5, "at its rate", |answer| {
            number(answer, "actual_rate") >= 0.95 * RATE
        })
        .await;
    add_up(&answer);

    rig.node
        .admin
        .patch(&path, json!({"rate": "10/s"}))
        .await
        .expect(200);
    let young = |answer: &Value| number(answer, "span_seconds") < 10.0;
    rig.until(60, "the new rate alone", |answer| {
        young(answer) && number(answer, "target_rate") < 12.0
    })
    .await;

    rig.node
        .admin
        .patch(&path, json!({"rate": "unlimited", "concurrency": 2}))
        .await
        .expect(200);
    let answer = rig
        .until(5, "bounded", |answer| {
            // Over less than two seconds nothing is advised.
            answer["waits"][0]["slug"] == "concurrency" && answer["advice"] != json!([])
        })
        .await;
    assert!(
        answer["target_rate"].is_null() && answer["missing_rate"].is_null(),
        "{answer:#}"
    );
    assert_eq!(answer["causes"], json!([]));
    assert!(
        answer["advice"][0]["change"]["concurrency"].as_u64() > Some(2),
        "{answer:#}"
    );

    rig.node
        .admin
        .post(&format!("{path}/stop"), json!({"reason": "lunch"}))
        .await
        .expect(202);
    rig.node.status(&rig.task, "stopped").await;
    rig.node
        .admin
        .patch(&path, json!({"rate": "100/s"}))
        .await
        .expect(200);
    let answer = rig.explain(5).await;
    assert_eq!(
        (&answer["status"], &answer["advice"][0]["about"]),
        (&json!("stopped"), &json!("stopped"))
    );
    assert!(
        answer["why"]
            .as_str()
            .is_some_and(|why| why.starts_with("stopped by command")),
        "{answer:#}"
    );
    assert_eq!(
        (&answer["target_rate"], &answer["causes"]),
        (&Value::Null, &json!([])),
        "nothing is missed"
    );
}

#[tokio::test]
async fn people_get_it_as_text_with_a_command_to_paste() {
    let business = Business::start(|_| Act::ok().after(Duration::from_millis(100))).await;
    let rig = Rig::start(&business, json!({"concurrency": 2})).await;
    let known = |answer: &Value| number(answer, "span_seconds") > 3.0;
    rig.until(5, "slow", |answer| {
        known(answer) && answer["causes"][0]["slug"] == "concurrency"
    })
    .await;
    let path = format!("/v1/tasks/{}/explain", rig.task);
    let answer = rig.node.admin.send(
        hyper::Method::GET,
        &path,
        &[("accept", "text/plain")],
        bytes::Bytes::new(),
    );
    let answer = answer.await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("text/plain; charset=utf-8"))
    );
    let text = answer.text();
    let mut lines = text.lines();
    let head = lines.next().expect("a line");
    for word in ["target ", "actual ", "below target ", "(last "] {
        assert!(head.contains(word), "{text}");
    }
    assert!(
        lines
            .next()
            .is_some_and(|line| line.starts_with("  concurrency  ")),
        "{text}"
    );
    assert!(text.contains("\nwhy: 100/s × p95 "), "{text}");
    assert!(
        text.contains(&format!("\ntry: windrow task set {} --concurrency ", rig.task)),
        "{text}"
    );
}

#[tokio::test]
async fn a_task_that_waits_for_room_is_told_which_rate_would_fit_and_runs_at_it() {
    let node = Recipe::new()
        .config("[node]\ncapacity_rate = \"100/s\"\nunlimited_reserves = \"50/s\"")
        .start()
        .await;
    let business = Business::willing().await;
    node.business("push", &business.url(), json!({})).await;
    let first = node
        .task("push", 1_000_000, json!({"rate": "80/s", "start": true}))
        .await;
    node.status(&first, "running").await;
    let task = node
        .task("push", 1_000_000, json!({"rate": "60/s", "start": true}))
        .await;
    node.until(&task, "explained", |view| view["status_reason"] == "capacity")
        .await;
    let rig = Rig { node, task };
    let answer = rig
        .until(5, "old enough", |answer| number(answer, "span_seconds") > 0.5)
        .await;
    add_up(&answer);
    assert_eq!(
        (first_slug(&answer), number(&answer, "actual_rate")),
        ("queued", 0.0),
        "{answer:#}"
    );
    assert!(
        answer["why"]
            .as_str()
            .is_some_and(|why| why.starts_with("the task is queued (capacity): "))
    );
    let change = rig.obey(&answer).await;
    assert_eq!(change, json!({"rate": "20/s"}));
    rig.node.status(&rig.task, "running").await;
}
