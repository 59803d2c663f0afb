//! Schedules over the façade: made, looked at, changed, fired by themselves and by hand, and whose they are.

use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};

use crate::business::Business;
use crate::support::{Client, Node, PATIENCE};

/// A body of a create.
fn body(more: Value) -> Value {
    let mut body = json!({"business": "push", "name": "board", "every": "1h",
        "task": {"source": {"type": "range", "total": 3}, "rate": "100/s"}});
    crate::support::merge(&mut body, more);
    body
}

async fn made(client: &Client, more: Value) -> String {
    let made = client.post("/v1/schedules", body(more)).await.expect(201);
    format!("/v1/schedules/{}", made["id"].as_str().unwrap())
}

async fn delete(client: &Client, path: &str) -> crate::support::Answer {
    client.json(Method::DELETE, path, &[], json!({})).await
}

/// Looks at fires until they are as they shall be.
async fn fires(node: &Node, path: &str, what: &str, fits: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let list = node.admin.get(&format!("{path}/fires")).await.expect(200);
        let fires = list["items"].as_array().unwrap().clone();
        if fits(&fires) {
            return fires;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "never {what}: {fires:#?}\n{}",
            node.said()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn pointers(problem: &Value) -> Vec<&str> {
    let errors = problem["errors"].as_array().unwrap();
    errors
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect()
}

/// The name of the schedule that changes are about, as the audit has it.
fn schedule_object(audit: &Value) -> String {
    let mut objects = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["object"]);
    let found = objects.find(|object| object["kind"] == "schedule").unwrap();
    found["name"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_schedule_is_made_looked_at_changed_and_deleted() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let tried = node
        .admin
        .post("/v1/schedules?dry_run=true", body(json!({})))
        .await
        .expect(200);
    assert_eq!(
        tried["would"]["next_fires"].as_array().unwrap().len(),
        5,
        "{tried:#}"
    );
    assert_eq!(
        node.admin.get("/v1/schedules").await.expect(200)["items"],
        json!([])
    );

    let answer = node
        .admin
        .post("/v1/schedules", body(json!({"reason": "the board"})))
        .await;
    let path = answer.header("location").unwrap().to_owned();
    assert_eq!(answer.header("etag"), Some("\"1\""));
    let view = answer.expect(201);
    assert_eq!(
        (&view["every"], &view["cron"], &view["zone"]),
        (&json!("1h"), &Value::Null, &Value::Null)
    );
    assert_eq!(
        (&view["overlap"], &view["missed"], &view["jitter"]),
        (&json!("skip"), &json!("latest"), &json!("0s"))
    );
    assert_eq!(view["next_fires"][0], view["next_fire"]);
    assert!(
        view["next_fire"].as_str().unwrap().ends_with(":00:00.000Z"),
        "{view:#}"
    );
    assert_eq!(view["task"]["source"]["total"], 3);
    node.admin
        .post("/v1/schedules", body(json!({})))
        .await
        .problem(409, "name-taken");

    let changed = json!({"cron": "0 3 * * *", "zone": "Europe/Berlin", "overlap": "queue", "missed": "all 5",
        "jitter": "10m", "end": "2099-01-01T00:00:00Z"});
    let patched = node.admin.patch(&path, changed).await.expect(200);
    assert_eq!(
        (&patched["cron"], &patched["every"]),
        (&json!("0 3 * * *"), &Value::Null)
    );
    assert_eq!(
        (&patched["revision"], &patched["missed"]),
        (&json!(2), &json!("all 5"))
    );
    let stale = node
        .admin
        .json(
            Method::PATCH,
            &path,
            &[("if-match", "\"1\"")],
            json!({"jitter": "1m"}),
        )
        .await;
    stale.problem(412, "etag-mismatch");
    let unended = node.admin.patch(&path, json!({"end": null})).await.expect(200);
    assert_eq!(
        (&unended["end"], &unended["zone"]),
        (&Value::Null, &json!("Europe/Berlin"))
    );

    let paused = node
        .admin
        .post(&format!("{path}/pause"), json!({"reason": "a holiday"}))
        .await
        .expect(200);
    assert_eq!(
        (&paused["paused"], &paused["next_fire"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(
        paused["next_fires"].as_array().unwrap().len(),
        5,
        "those that it would have"
    );
    let resumed = node
        .admin
        .post(&format!("{path}/resume"), json!({}))
        .await
        .expect(200);
    assert!(resumed["next_fire"].is_string());
    let next = node
        .admin
        .get(&format!("{path}/next?count=3&after=2026-03-27T12:00:00Z"))
        .await
        .expect(200);
    let berlin = [
        "2026-03-28T02:00:00.000Z",
        "2026-03-29T01:00:00.000Z",
        "2026-03-30T01:00:00.000Z",
    ];
    assert_eq!(next["items"], json!(berlin));

    let audit = node.admin.get("/v1/audit?limit=100").await.expect(200);
    let actions: Vec<&str> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["action"].as_str())
        .filter(|action| action.starts_with("schedule."))
        .collect();
    let expected = [
        "schedule.resume",
        "schedule.pause",
        "schedule.edit",
        "schedule.edit",
        "schedule.create",
    ];
    assert_eq!(actions, expected);
    let name = schedule_object(&audit);
    let of_it = node
        .admin
        .get(&format!("/v1/audit?object=schedule:{name}"))
        .await
        .expect(200);
    assert_eq!(
        of_it["items"].as_array().unwrap().len(),
        expected.len(),
        "{of_it:#}"
    );
    assert_eq!(delete(&node.admin, &path).await.status, 204);
    node.admin.get(&path).await.problem(404, "not-found");
}

#[tokio::test]
async fn what_can_t_be_is_refused_where_it_stands() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    for (more, status, pointer) in [
        (json!({"name": "The Board"}), 422, "/name"),
        (json!({"business": "nobody"}), 422, "/business"),
        (json!({"cron": "0 3 * * *"}), 422, "/every"),
        (json!({"zone": "Europe/Berlin"}), 422, "/zone"),
        (json!({"every": "500ms"}), 422, "/every"),
        (json!({"every": "soon"}), 400, "/every"),
        (json!({"every": null, "cron": "61 * * * *"}), 422, "/cron"),
        (json!({"every": null, "cron": "0 0 30 2 *"}), 422, "/cron"),
        (
            json!({"every": null, "cron": "0 3 * * *", "zone": "Europe/Berlino"}),
            422,
            "/zone",
        ),
        (json!({"every": null}), 422, "/cron"),
        (json!({"end": "2020-01-01T00:00:00Z"}), 422, "/end"),
        (
            json!({"start": "2098-01-01T00:00:00Z", "end": "2097-01-01T00:00:00Z"}),
            422,
            "/end",
        ),
        (json!({"jitter": "1h"}), 422, "/jitter"),
        (json!({"missed": "all 1000"}), 400, "/missed"),
        (json!({"overlap": "perhaps"}), 400, "/overlap"),
        (json!({"task": {"rate": "fast"}}), 400, "/task/rate"),
        (json!({"task": {"start": true}}), 400, "/task"),
        (json!({"task": {"concurrency": 0}}), 400, "/task/concurrency"),
        (json!({"task": {"name": "board"}}), 422, "/task/name"),
        (
            json!({"task": {"labels": {"day": "{fire_time:week}"}}}),
            422,
            "/task",
        ),
        (
            json!({"task": {"source": {"type": "file", "upload": "u1", "total": null}}}),
            422,
            "/task/source/type",
        ),
        (json!({"task": {"limits": ["vendor-x"]}}), 422, "/task/limits/0"),
        (
            json!({"task": {"deadline_after": "soon"}}),
            400,
            "/task/deadline_after",
        ),
    ] {
        let answer = node.admin.post("/v1/schedules", body(more.clone())).await;
        let slug = if status == 400 {
            "invalid-request"
        } else {
            "validation-failed"
        };
        let problem = answer.problem(status, slug);
        let found = pointers(&problem);
        assert!(
            found.iter().any(|one| one.starts_with(pointer)),
            "{more}: {found:?}"
        );
    }
    let berlino = body(json!({"every": null, "cron": "0 3 * * *", "zone": "Europe/Berlino"}));
    let problem = node
        .admin
        .post("/v1/schedules", berlino)
        .await
        .problem(422, "validation-failed");
    assert!(
        problem["errors"][0]["try"]
            .as_str()
            .unwrap()
            .contains("Europe/Berlin?"),
        "{problem:#}"
    );
    assert_eq!(
        node.admin.get("/v1/schedules").await.expect(200)["items"],
        json!([])
    );
}

#[tokio::test]
async fn a_schedule_fires_by_itself_and_its_tasks_know_their_time() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let task = json!({"name": "board-{fire_time:unix}", "labels": {"day": "{fire_time:date}"},
        "params": {"since": "{previous_fire_time:ms}", "at": "{fire_time:ms}"}, "deadline_after": "1h"});
    let path = made(
        &node.admin,
        json!({"every": "1s", "overlap": "allow", "task": task}),
    )
    .await;
    let has_three = |fires: &[Value]| fires.iter().filter(|fire| fire["outcome"] == "made").count() >= 3;
    fires(&node, &path, "fired three times", has_three).await;
    node.admin
        .post(&format!("{path}/pause"), json!({}))
        .await
        .expect(200);
    let is_settled = |fires: &[Value]| fires.iter().all(|fire| fire["settled_at"].is_string());
    let all = fires(&node, &path, "settled", is_settled).await;
    let made: Vec<&Value> = all.iter().filter(|fire| fire["outcome"] == "made").collect();
    let mut previous = String::new();
    for fire in made.iter().rev() {
        let id = fire["task"].as_str().unwrap();
        let task = node.status(id, "finished").await;
        assert_eq!(
            (&task["schedule"], &task["fire_time"]),
            (&fire["schedule"], &fire["time"])
        );
        let at = task["params"]["at"].as_str().unwrap();
        assert_eq!(task["name"], format!("board-{}", &at[..at.len() - 3]));
        assert_eq!(task["params"]["since"], previous, "the one before it");
        assert!(task["deadline"].is_string());
        previous = at.to_owned();
    }
    assert_eq!(business.items().len(), made.len() * 3);
    let metrics = node.admin.get("/metrics").await.text();
    assert!(
        metrics.contains("windrow_schedule_fires_total{outcome=\"made\"}"),
        "{metrics}"
    );
}

#[tokio::test]
async fn people_fire_a_schedule_now_and_for_times_that_are_over() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let path = made(&node.admin, json!({"every": "1h", "overlap": "allow"})).await;
    let fire = node
        .admin
        .post(&format!("{path}/trigger"), json!({"reason": "now"}))
        .await
        .expect(201);
    assert_eq!(
        (&fire["kind"], &fire["outcome"]),
        (&json!("triggered"), &json!("made"))
    );
    node.status(fire["task"].as_str().unwrap(), "finished").await;

    let range = json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T05:00:00Z"});
    let tried = node
        .admin
        .post(&format!("{path}/backfill?dry_run=true"), range.clone())
        .await
        .expect(200);
    assert_eq!(tried["would"]["items"].as_array().unwrap().len(), 5, "{tried:#}");
    let ordered = node
        .admin
        .post(&format!("{path}/backfill"), range.clone())
        .await
        .expect(201);
    assert_eq!(ordered["items"].as_array().unwrap().len(), 5);
    let is_made = |fires: &[Value]| fires.len() == 6 && fires.iter().all(|fire| fire["outcome"] == "made");
    fires(&node, &path, "all made", is_made).await;
    let again = node
        .admin
        .post(&format!("{path}/backfill"), range)
        .await
        .expect(201);
    assert_eq!(again["items"], json!([]), "they have been made");
    let loud = json!({"from": "2026-01-02T00:00:00Z", "to": "2026-01-02T05:00:00Z", "publish": true});
    let refused = node.admin.post(&format!("{path}/backfill"), loud).await;
    assert_eq!(pointers(&refused.problem(422, "validation-failed")), ["/publish"]);
    for (range, pointer) in [
        (
            json!({"from": "2026-01-01T00:00:00Z", "to": "2099-01-01T00:00:00Z"}),
            "/to",
        ),
        (
            json!({"from": "2020-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}),
            "/to",
        ),
        (
            json!({"from": "2026-01-01T00:10:00Z", "to": "2026-01-01T00:20:00Z"}),
            "/from",
        ),
    ] {
        let problem = node.admin.post(&format!("{path}/backfill"), range).await;
        assert_eq!(pointers(&problem.problem(422, "validation-failed")), [pointer]);
    }
}

#[tokio::test]
async fn a_backfill_publishes_if_asked_for_and_never_after_a_later_time() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let task = json!({"source": {"type": "range", "total": 3}, "rate": "100/s", "publish": "board"});
    let body = json!({"every": "1h", "overlap": "queue", "paused": true, "task": task});
    let path = made(&node.admin, body).await;
    let range = |day: &str, publish: bool| {
        let (from, to) = (
            format!("2026-01-{day}T00:00:00Z"),
            format!("2026-01-{day}T02:00:00Z"),
        );
        json!({"from": from, "to": to, "publish": publish})
    };
    let order = format!("{path}/backfill");
    let ordered = node.admin.post(&order, range("05", true)).await.expect(201);
    assert_eq!(ordered["items"][0]["publishes"], true, "{ordered:#}");
    let are_made = |count: usize| {
        move |fires: &[Value]| fires.len() == count && fires.iter().all(|fire| fire["outcome"] == "made")
    };
    let all = fires(&node, &path, "both made", are_made(2)).await;
    node.status(all[0]["task"].as_str().unwrap(), "finished").await;
    let board = node.admin.get("/v1/datasets/board").await.expect(200);
    assert_eq!(
        (&board["generation"], &board["highest"]),
        (&json!(2), &json!(2)),
        "{board:#}"
    );
    let current = node.admin.get("/v1/datasets/board/current").await.expect(200);
    assert_eq!(current["task"], all[0]["task"], "the last of them is current");
    // What is older than that goes, and publishes nothing.
    let refused = node.admin.post(&order, range("03", true)).await;
    refused.problem(409, "conflict");
    node.admin.post(&order, range("03", false)).await.expect(201);
    let all = fires(&node, &path, "four made", are_made(4)).await;
    assert!(all[2..].iter().all(|fire| fire["publishes"] == false), "{all:#?}");
    node.status(all[2]["task"].as_str().unwrap(), "finished").await;
    let board = node.admin.get("/v1/datasets/board").await.expect(200);
    assert_eq!(
        (&board["generation"], &board["last"]),
        (&json!(2), &json!(2)),
        "{board:#}"
    );
}

#[tokio::test]
async fn a_running_task_is_in_the_way_of_who_fires_now() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let slow = json!({"source": {"total": 1_000_000}, "rate": "1/s"});
    let path = made(&node.admin, json!({"task": slow})).await;
    let fire = node
        .admin
        .post(&format!("{path}/trigger"), json!({}))
        .await
        .expect(201);
    let busy = node
        .admin
        .post(&format!("{path}/trigger"), json!({}))
        .await
        .problem(409, "conflict");
    assert!(
        busy["detail"]
            .as_str()
            .unwrap()
            .contains("overlap setting is `skip`"),
        "{busy:#}"
    );
    node.admin
        .patch(&path, json!({"overlap": "cancel_running"}))
        .await
        .expect(200);
    let second = node
        .admin
        .post(&format!("{path}/trigger"), json!({}))
        .await
        .expect(201);
    node.status(fire["task"].as_str().unwrap(), "cancelled").await;
    let is_made = |fires: &[Value]| fires.len() == 2 && fires.iter().all(|fire| fire["outcome"] == "made");
    let all = fires(&node, &path, "both made", is_made).await;
    assert_eq!(all[0]["time"], second["time"]);
    let newest = all[0]["task"].as_str().unwrap();
    node.status(newest, "running").await;
    node.admin
        .post(&format!("/v1/tasks/{newest}/stop"), json!({}))
        .await
        .expect(202);
    node.status(newest, "stopped").await;
    node.admin
        .patch(&path, json!({"overlap": "skip"}))
        .await
        .expect(200);
    let third = node
        .admin
        .post(&format!("{path}/trigger"), json!({}))
        .await
        .expect(201);
    assert_eq!(third["outcome"], "made", "a stopped task doesn't overlap");
}

/// A schedule that is made and fires at once: its path, and the fire.
async fn triggered(node: &Node, body: Value) -> (String, Value) {
    let made = node.admin.post("/v1/schedules", body).await.expect(201);
    let path = format!("/v1/schedules/{}", made["id"].as_str().unwrap());
    let fire = node.admin.post(&format!("{path}/trigger"), json!({})).await;
    (path, fire.expect(201))
}

#[tokio::test]
async fn a_fire_whose_source_isn_t_there_has_failed_with_a_reason() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let source =
        json!({"type": "url", "url": "http://127.0.0.1:9/users.csv?day={fire_time:date}", "total": null});
    let mut body = body(json!({"task": {"source": source}}));
    body["task"]["source"].as_object_mut().unwrap().remove("total");
    let (path, fire) = triggered(&node, body).await;
    assert_eq!(
        (&fire["outcome"], &fire["task"]),
        (&json!("pending"), &Value::Null)
    );
    let is_told = |fires: &[Value]| {
        fires[0]["attempts"]
            .as_u64()
            .is_some_and(|attempts| attempts >= 1)
    };
    let told = fires(&node, &path, "tried", is_told).await;
    assert!(told[0]["text"].as_str().unwrap().contains("source"), "{told:#?}");
}

#[tokio::test]
async fn a_fire_whose_name_is_taken_fails_at_once_and_holds_no_later_one_up() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let task = json!({"name": "board-{fire_time:date}"});
    let path = made(&node.admin, json!({"every": "1s", "task": task})).await;
    // A day may end meanwhile, and begin with a name that is free.
    let failed = |fires: &[Value]| fires.iter().filter(|fire| fire["outcome"] == "failed").count() > 1;
    let told = fires(&node, &path, "failed twice", failed).await;
    let fire = told.iter().find(|fire| fire["outcome"] == "failed").unwrap();
    assert_eq!(fire["attempts"], 1, "{fire:#}");
    assert!(
        fire["text"].as_str().unwrap().contains("{fire_time:time}"),
        "{fire:#}"
    );
}

#[tokio::test]
async fn a_business_has_schedules_of_its_own_and_sees_no_others() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    node.business("mail", &business.url(), json!({})).await;
    let own = node.client("business", Some("push")).await;
    let other = node.client("business", Some("mail")).await;
    let (viewer, operator) = (
        node.client("viewer", None).await,
        node.client("operator", None).await,
    );
    let path = made(&own, json!({})).await;
    other.get(&path).await.problem(404, "not-found");
    for verb in ["pause", "resume", "trigger"] {
        other
            .post(&format!("{path}/{verb}"), json!({}))
            .await
            .problem(404, "not-found");
        viewer
            .post(&format!("{path}/{verb}"), json!({}))
            .await
            .problem(403, "forbidden");
    }
    other
        .post("/v1/schedules", body(json!({})))
        .await
        .problem(422, "validation-failed");
    other
        .get(&format!("{path}/fires"))
        .await
        .problem(404, "not-found");
    delete(&other, &path).await.problem(404, "not-found");
    let seen = async |client: &Client, query: &str| {
        let list = client.get(&format!("/v1/schedules{query}")).await.expect(200);
        list["items"].as_array().unwrap().len()
    };
    assert_eq!(
        (
            seen(&own, "").await,
            seen(&other, "").await,
            seen(&viewer, "").await
        ),
        (1, 0, 1)
    );
    assert_eq!(
        (
            seen(&other, "?business=push").await,
            seen(&viewer, "?business=mail").await
        ),
        (0, 0)
    );
    assert_eq!(seen(&own, "?name=board").await, 1);
    operator
        .post(&format!("{path}/pause"), json!({}))
        .await
        .expect(200);
    assert_eq!(delete(&own, &path).await.status, 204);

    // What a business may not have, its schedule doesn't get it: a limit of others.
    node.admin
        .post("/v1/limits", json!({"name": "vendor-x", "rate": "1/s"}))
        .await
        .expect(201);
    let greedy = body(json!({"task": {"limits": ["vendor-x"]}}));
    own.post("/v1/schedules", greedy.clone())
        .await
        .problem(422, "validation-failed");
    operator.post("/v1/schedules", greedy).await.expect(201);
    // What it wrote keeps its rights, also where an operator changes the rest; what an operator writes has an operator's.
    let path = made(&own, json!({"name": "guarded"})).await;
    let more = json!({"task": {"limits": ["vendor-x"]}});
    operator
        .patch(&path, more.clone())
        .await
        .problem(422, "validation-failed");
    let mut whole = more;
    whole["task"]["source"] = json!({"type": "range", "total": 5});
    operator.patch(&path, whole).await.expect(200);
}

#[tokio::test]
async fn a_restart_makes_up_for_what_was_missed_once() {
    let recipe = crate::support::Recipe::new();
    let business = Business::willing().await;
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({})).await;
    let path = made(&node.admin, json!({"every": "1s", "overlap": "allow"})).await;
    let is_made = |fires: &[Value]| fires.iter().any(|fire| fire["outcome"] == "made");
    fires(&node, &path, "made", is_made).await;
    assert_eq!(node.stop().await, Some(0));
    tokio::time::sleep(Duration::from_secs(4)).await;
    let node = recipe.start().await;
    let is_missed = |fires: &[Value]| {
        let missed = fires.iter().find(|fire| fire["outcome"] == "missed");
        missed.is_some_and(|missed| missed["count"].as_u64() >= Some(2))
    };
    let all = fires(&node, &path, "listed as missed", is_missed).await;
    let missed = all.iter().filter(|fire| fire["outcome"] == "missed").count();
    assert_eq!(missed, 1, "one row for all of them: {all:#?}");
}

#[tokio::test]
async fn a_name_that_two_fires_share_is_warned_of_with_one_that_tells_them_apart() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let named = |form: &str| json!({ "task": { "name": format!("board-{{fire_time:{form}}}") } });
    let tried = node
        .admin
        .post("/v1/schedules?dry_run=true", body(named("date")))
        .await
        .expect(200);
    let warning = &tried["would"]["warnings"][0];
    assert_eq!(
        (&warning["code"], &warning["pointer"], &warning["advice"]),
        (
            &json!("fires_share_names"),
            &json!("/task/name"),
            &json!("board-{fire_time:time}")
        ),
        "{tried:#}"
    );
    let detail = warning["detail"].as_str().unwrap();
    assert!(
        detail.contains("the second one fails because the name is already taken"),
        "{detail}"
    );
    let made = node
        .admin
        .post("/v1/schedules", body(named("time")))
        .await
        .expect(201);
    assert_eq!(made["warnings"], json!([]), "{made:#}");
    let edited = node
        .admin
        .patch("/v1/schedules/s1", json!({"every": "30s"}))
        .await
        .expect(200);
    assert_eq!(edited["warnings"][0]["advice"], "board-{fire_time:unix}");
}

#[tokio::test]
async fn fires_by_hand_on_one_day_make_tasks_of_different_names() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let task = json!({"name": "board-{fire_time:date}"});
    let spec = json!({"every": null, "cron": "0 3 * * *", "overlap": "allow", "task": task});
    let path = made(&node.admin, spec).await;
    let mut names = Vec::new();
    for _ in 0..3 {
        let fire = node.admin.post(&format!("{path}/trigger"), json!({})).await;
        let fire = fire.expect(201);
        assert_eq!(fire["outcome"], "made", "{fire:#}");
        let path = format!("/v1/tasks/{}", fire["task"].as_str().unwrap());
        let task = node.admin.get(&path).await.expect(200);
        names.push(task["name"].as_str().unwrap().to_owned());
    }
    let day = &fire_time(&node, &path).await[..10];
    assert!(
        names
            .iter()
            .all(|name| name.starts_with(&format!("board-{day}-at-"))),
        "{names:?}"
    );
    names.dedup();
    assert_eq!(names.len(), 3, "{names:?}");
}

/// The time of the newest fire.
async fn fire_time(node: &Node, path: &str) -> String {
    let fires = node.admin.get(&format!("{path}/fires?limit=1")).await.expect(200);
    fires["items"][0]["time"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_misspelt_placeholder_is_refused_in_a_name_and_warned_of_elsewhere() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    for (name, advice) in [
        ("board-{fire_tme:date}", json!("did you mean {fire_time:date}?")),
        ("board-{fire_time:dat}", json!("did you mean {fire_time:date}?")),
        ("board-{date}", json!("did you mean {fire_time:date}?")),
        ("board-{fire_time}-{item}", Value::Null),
    ] {
        let wrong = body(json!({ "task": { "name": name } }));
        let refused = node.admin.post("/v1/schedules", wrong).await;
        let problem = refused.problem(422, "validation-failed");
        assert_eq!(pointers(&problem), ["/task/name"], "{name}");
        let fault = &problem["errors"][0];
        assert_eq!(fault.get("try").unwrap_or(&Value::Null), &advice, "{name}");
        assert!(
            fault["detail"]
                .as_str()
                .unwrap()
                .contains("there is no placeholder {"),
            "{fault:#}"
        );
    }
    let task = json!({"labels": {"day": "{fire_tme:date}"}, "params": {"text": "{item}"}});
    let made = node
        .admin
        .post("/v1/schedules", body(json!({ "task": task })))
        .await;
    let made = made.expect(201);
    let warning = &made["warnings"][0];
    assert_eq!(
        (&warning["code"], &warning["pointer"], &warning["advice"]),
        (
            &json!("placeholder_misspelt"),
            &json!("/task/labels/day"),
            &json!("{fire_time:date}")
        ),
        "{made:#}"
    );
    assert_eq!(made["warnings"].as_array().unwrap().len(), 1, "{made:#}");
    let wrong = json!({"task": {"name": "b-{fire_time:week}"}});
    let refused = node.admin.patch("/v1/schedules/s1", wrong).await;
    assert_eq!(
        pointers(&refused.problem(422, "validation-failed")),
        ["/task/name"]
    );
}

#[tokio::test]
async fn a_change_of_the_task_is_merged_into_it() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let task = json!({"labels": {"team": "growth", "day": "mon"}, "params": {"a": 1}});
    let path = made(&node.admin, json!({ "task": task })).await;
    let change = json!({"task": {"name": "board-{fire_time:time}", "labels": {"day": null}, "rate": "5/s"}});
    let changed = node.admin.patch(&path, change).await.expect(200);
    let task = &changed["task"];
    assert_eq!(
        (&task["name"], &task["labels"], &task["params"], &task["rate"]),
        (
            &json!("board-{fire_time:time}"),
            &json!({"team": "growth"}),
            &json!({"a": 1}),
            &json!("5/s")
        ),
        "{changed:#}"
    );
    let source = json!({"type": "inline", "items": [1, 2]});
    let changed = node
        .admin
        .patch(&path, json!({"task": {"source": source, "name": null}}))
        .await;
    let changed = changed.expect(200);
    assert_eq!(
        (&changed["task"]["source"], &changed["task"]["name"]),
        (&source, &Value::Null),
        "one source takes the place of another: {changed:#}"
    );
    let refused = node.admin.patch(&path, json!({"task": {"rte": "5/s"}})).await;
    assert_eq!(pointers(&refused.problem(400, "invalid-request")), ["/task/rte"]);
    let old = [("if-match", "\"1\"")];
    let change = json!({"task": {"rate": "9/s"}});
    let stale = node.admin.json(Method::PATCH, &path, &old, change).await;
    stale.problem(412, "etag-mismatch");
}

#[tokio::test]
async fn a_fire_that_can_t_be_made_is_given_up_by_hand() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let mut body = body(json!({"every": "366d"}));
    // Nobody listens there.
    body["task"]["source"] = json!({"type": "url", "url": "http://127.0.0.1:9/users.csv"});
    let (path, fire) = triggered(&node, body).await;
    assert_eq!(fire["outcome"], "pending", "{fire:#}");
    let shown = node.admin.get(&path).await.expect(200);
    assert_eq!(shown["pending"], 1, "{shown:#}");
    let skip = format!("{path}/skip");
    let dry = node
        .admin
        .post(&format!("{skip}?dry_run=true"), json!({}))
        .await
        .expect(200);
    assert_eq!(dry["would"]["items"][0]["outcome"], "skipped", "{dry:#}");
    let skipped = node
        .admin
        .post(&skip, json!({"time": fire["time"]}))
        .await
        .expect(200);
    let text = skipped["items"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("given up by ") && text.contains("an earlier try: "),
        "{text}"
    );
    node.admin
        .post(&skip, json!({"time": fire["time"]}))
        .await
        .problem(409, "conflict");
    let none = node.admin.post(&skip, json!({})).await.expect(200);
    assert_eq!(none["items"], json!([]));
    let shown = node.admin.get(&path).await.expect(200);
    assert_eq!(
        (&shown["pending"], &shown["last_fire"]["outcome"]),
        (&json!(0), &json!("skipped")),
        "{shown:#}"
    );
}

#[tokio::test]
async fn an_open_fire_says_what_its_task_will_be_called() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let task = json!({"name": "board-{fire_time:date}"});
    let spec = json!({"every": null, "cron": "0 3 * * *", "overlap": "queue", "task": task});
    let path = made(&node.admin, spec).await;
    let range = json!({"from": "2026-01-05T00:00:00Z", "to": "2026-01-07T00:00:00Z"});
    let dry = node
        .admin
        .post(&format!("{path}/backfill?dry_run=true"), range)
        .await;
    let dry = dry.expect(200);
    let names: Vec<&Value> = dry["would"]["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fire| &fire["name"])
        .collect();
    assert_eq!(names, [&json!("board-2026-01-05"), &json!("board-2026-01-06")]);
}

#[tokio::test]
async fn a_schedule_is_checked_as_its_tasks_are_and_says_when_they_are_in_its_way() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let task = json!({"source": {"type": "range", "total": 20_000}, "rate": "1000000/s"});
    let wanted = body(json!({"every": "1s", "task": task}));
    for path in ["/v1/schedules?dry_run=true", "/v1/schedules"] {
        let said = node
            .admin
            .post(path, wanted.clone())
            .await
            .expect(if path.contains('?') { 200 } else { 201 });
        let warnings = said.get("would").unwrap_or(&said)["warnings"]
            .as_array()
            .unwrap()
            .clone();
        assert_eq!(warnings[0]["pointer"], "/task/rate", "{said:#}");
    }
    let path = "/v1/schedules/s1";
    let is_idle = |fires: &[Value]| fires.iter().filter(|fire| fire["outcome"] == "skipped").count() >= 4;
    let all = fires(&node, path, "skipped four times", is_idle).await;
    let text = all[0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("t1 of the schedule had not ended; it is queued: it needs 1000000/s, more than"),
        "{text}"
    );
    let listed = node.admin.get("/v1/schedules").await.expect(200);
    let trouble = listed["items"][0]["trouble"].as_str().unwrap();
    assert!(
        trouble.contains("fires created no task: t1 of the schedule"),
        "{trouble}"
    );
    let metrics = node.admin.get("/metrics").await.text();
    let gauge = metrics
        .lines()
        .find(|line| line.starts_with("windrow_schedule_idle_fires{business=\"push\",schedule=\"board\"}"))
        .unwrap_or_else(|| panic!("no gauge in {metrics}"));
    let idle: f64 = gauge.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(idle >= 4.0, "{gauge}");
}

#[tokio::test]
async fn a_business_gives_no_priority_that_operators_do_not_allow() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let push = node.client("business", Some("push")).await;
    let task = |priority: i64| json!({"business": "push", "source": {"type": "range", "total": 1}, "priority": priority});
    let problem = push
        .post("/v1/tasks", task(i64::from(i32::MAX)))
        .await
        .problem(422, "validation-failed");
    assert_eq!(pointers(&problem), ["/priority"]);
    push.post("/v1/tasks", task(-1)).await.expect(201);
    let made = node.admin.post("/v1/tasks", task(7)).await.expect(201);
    let clone = format!("/v1/tasks/{}/clone", made["id"].as_str().unwrap());
    push.post(&clone, json!({}))
        .await
        .problem(422, "validation-failed");
    push.post(&clone, json!({"priority": 0})).await.expect(201);
    let path = format!("/v1/tasks/{}", made["id"].as_str().unwrap());
    let problem = push
        .patch(&path, json!({"priority": 8}))
        .await
        .problem(422, "validation-failed");
    assert_eq!(pointers(&problem), ["/priority"]);
    // What operators gave stays while other things change.
    push.patch(&path, json!({"priority": 7, "rate": "5/s"}))
        .await
        .expect(200);
    let url = json!({"source": {"type": "url", "url": "https://example.com/rows.csv", "format": "csv"}, "priority": 1});
    let schedule = json!({"business": "push", "name": "board", "every": "1h", "task": url});
    let problem = push
        .post("/v1/schedules", schedule)
        .await
        .problem(422, "validation-failed");
    assert_eq!(pointers(&problem), ["/task/priority"]);
}
