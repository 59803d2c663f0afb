//! Deadlines that can't be met and starts that nobody made: told with the task, refused when that is asked for.

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Node, Recipe, merge};

/// An hour between the two.
const BEGINS: &str = "2998-12-31T23:00:00Z";
const ENDS: &str = "2999-01-01T00:00:00Z";

async fn with(recipe: Recipe) -> (Business, Node) {
    let business = Business::start(|_| Act::ok()).await;
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({})).await;
    (business, node)
}

fn task(total: u64, rate: &str, more: Value) -> Value {
    let source = json!({"type": "range", "total": total});
    let mut body = json!({"business": "push", "source": source, "rate": rate, "start": true,
        "start_at": BEGINS, "deadline": ENDS});
    merge(&mut body, more);
    body
}

fn codes(view: &Value) -> Vec<&str> {
    let warnings = view["warnings"].as_array().into_iter().flatten();
    warnings
        .map(|warning| warning["code"].as_str().expect("a code"))
        .collect()
}

#[tokio::test]
async fn a_deadline_that_can_not_be_met_is_told_wherever_the_task_is() {
    let (_business, node) = with(Recipe::new()).await;
    let made = node
        .admin
        .post("/v1/tasks", task(10_000, "1/s", json!({})))
        .await
        .expect(201);
    let warning = &made["warnings"][0];
    assert_eq!(
        (&warning["code"], &warning["pointer"]),
        (&json!("deadline_too_early"), &json!("/deadline"))
    );
    assert_eq!(
        warning["detail"],
        "10000 items at 1/s take 2h 46m, but only 1h remain until then, enough for 3600"
    );
    assert_eq!(
        warning["advice"],
        "a rate of at least 3/s, or a deadline after 2999-01-01T01:46:40.000Z"
    );
    let shown = node.admin.get("/v1/tasks/t1").await.expect(200);
    assert_eq!(shown["warnings"], made["warnings"]);
    let previewed = node
        .admin
        .post("/v1/tasks/t1/preview", json!({}))
        .await
        .expect(200);
    assert_eq!(previewed["warnings"], made["warnings"]);
    let slower = node
        .admin
        .patch("/v1/tasks/t1?dry_run=true", json!({"rate": "1/m"}))
        .await
        .expect(200);
    assert!(
        slower["would"]["warnings"][0]["detail"]
            .as_str()
            .unwrap()
            .contains("at 1/m"),
        "{slower:#}"
    );
    let faster = node
        .admin
        .patch("/v1/tasks/t1", json!({"rate": "3/s"}))
        .await
        .expect(200);
    assert_eq!(codes(&faster), [""; 0], "{faster:#}");
    let listed = node.admin.get("/v1/tasks").await.expect(200);
    assert!(
        listed["items"][0].get("warnings").is_none(),
        "lists don't say: {listed:#}"
    );
}

#[tokio::test]
async fn what_is_asked_strictly_is_refused_and_nothing_is_made_or_changed() {
    let (_business, node) = with(Recipe::new()).await;
    let refused = node
        .admin
        .post("/v1/tasks?strict=true", task(10_000, "1/s", json!({})))
        .await;
    let problem = refused.problem(422, "validation-failed");
    assert_eq!(problem["errors"][0]["pointer"], "/deadline", "{problem:#}");
    assert!(
        problem["errors"][0]["detail"]
            .as_str()
            .unwrap()
            .contains("take 2h 46m"),
        "{problem:#}"
    );
    assert!(problem.to_string().contains("or leave out strict"), "{problem:#}");
    let dry = node
        .admin
        .post(
            "/v1/tasks?strict=true&dry_run=true",
            task(10_000, "1/s", json!({})),
        )
        .await;
    dry.problem(422, "validation-failed");
    assert_eq!(node.admin.get("/v1/tasks").await.expect(200)["items"], json!([]));

    let fits = task(3_600, "1/s", json!({}));
    let made = node.admin.post("/v1/tasks?strict=true", fits).await.expect(201);
    assert_eq!(codes(&made), [""; 0], "exactly as long as there is");
    let path = "/v1/tasks/t1";
    for change in [
        json!({"rate": "59/m"}),
        json!({"deadline": "2998-12-31T23:59:59Z"}),
    ] {
        node.admin
            .patch(&format!("{path}?strict=true"), change)
            .await
            .problem(422, "validation-failed");
    }
    let view = node.admin.get(path).await.expect(200);
    assert_eq!(
        (&view["rate"], &view["version"]),
        (&json!("1/s"), &made["version"])
    );
    node.admin
        .patch(&format!("{path}?strict=true"), json!({"rate": "2/s"}))
        .await
        .expect(200);

    let clone = json!({"rate": "1/m", "deadline": ENDS, "start_at": BEGINS});
    node.admin
        .post(&format!("{path}/clone?strict=true"), clone)
        .await
        .problem(422, "validation-failed");
    let stop = node
        .admin
        .post(&format!("{path}/stop?strict=true"), json!({}))
        .await;
    stop.problem(400, "invalid-request");
}

#[tokio::test]
async fn a_start_time_without_a_start_is_told() {
    let (_business, node) = with(Recipe::new()).await;
    let idle = task(10, "1/s", json!({"start": false, "deadline": null}));
    let refused = node.admin.post("/v1/tasks?strict=true", idle.clone()).await;
    let problem = refused.problem(422, "validation-failed");
    assert_eq!(problem["errors"][0]["pointer"], "/start_at", "{problem:#}");
    let made = node.admin.post("/v1/tasks", idle).await.expect(201);
    assert_eq!(codes(&made), ["not_started"]);
    let detail = made["warnings"][0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("it won't begin on its own at 2998-12-31T23:00:00.000Z"),
        "{detail}"
    );
    let edited = node
        .admin
        .patch("/v1/tasks/t1?strict=true", json!({"rate": "2/s"}))
        .await
        .expect(200);
    assert_eq!(
        codes(&edited),
        ["not_started"],
        "a change doesn't start it, so it isn't refused for that"
    );
    let started = node
        .admin
        .post("/v1/tasks/t1/start?strict=true", json!({}))
        .await
        .expect(202);
    assert_eq!(codes(&started), [""; 0]);
}

#[tokio::test]
async fn a_start_is_looked_at_like_a_making() {
    let (_business, node) = with(Recipe::new()).await;
    let later = task(
        7_000,
        "1/s",
        json!({"start": false, "start_at": "2998-12-31T22:00:00Z"}),
    );
    let made = node.admin.post("/v1/tasks", later).await.expect(201);
    assert_eq!(codes(&made), ["not_started"], "it would be done in time");
    let start = |at| {
        node.admin
            .post("/v1/tasks/t1/start?strict=true", json!({"start_at": at}))
    };
    start(BEGINS).await.problem(422, "validation-failed");
    let over = start("2999-01-01T00:00:01Z")
        .await
        .problem(422, "validation-failed");
    assert!(
        over.to_string().contains("it passes before the task begins"),
        "{over:#}"
    );
    assert_eq!(
        node.admin.get("/v1/tasks/t1").await.expect(200)["status"],
        "created"
    );
    let told = node
        .admin
        .post("/v1/tasks/t1/start", json!({"start_at": BEGINS}))
        .await
        .expect(202);
    assert_eq!(codes(&told), ["deadline_too_early"]);
}

#[tokio::test]
async fn the_limit_of_the_business_and_the_room_of_the_nodes_count() {
    let (_business, node) =
        with(Recipe::new().config("[node]\ncapacity_rate = \"100/s\"\nunlimited_reserves = \"10/s\"\n"))
            .await;
    let too_big = node
        .admin
        .post("/v1/tasks", task(10, "250/s", json!({})))
        .await
        .expect(201);
    assert_eq!(codes(&too_big), ["deadline_too_early"]);
    let detail = too_big["warnings"][0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("can run 250/s for a shard (the largest has 100/s)"),
        "{detail}"
    );
    let parts = node
        .admin
        .post("/v1/tasks", task(10, "250/s", json!({"shards": 3})))
        .await
        .expect(201);
    assert_eq!(codes(&parts), ["rate_beyond_reach"], "{parts:#}");
    let detail = parts["warnings"][0]["detail"].as_str().unwrap();
    assert_eq!(
        detail,
        "250/s is requested, but the node's limit is 100/s: the task reaches at most 100/s"
    );

    let made = node
        .admin
        .post("/v1/tasks", task(10_000, "50/s", json!({})))
        .await
        .expect(201);
    assert_eq!(codes(&made), [""; 0]);
    node.admin
        .patch(
            "/v1/businesses/push",
            json!({"limits": {"rate": "1/s"}, "defaults": {"rate": "1/s"}}),
        )
        .await
        .expect(200);
    let path = format!("/v1/tasks/{}", made["id"].as_str().unwrap());
    let view = node.admin.get(&path).await.expect(200);
    let detail = view["warnings"][0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("at 1/s, the limit of push, take 2h 46m"),
        "{detail}"
    );
    let advice = view["warnings"][0]["advice"].as_str().unwrap();
    assert!(advice.starts_with("a limit of push of at least 3/s"), "{advice}");
}

#[tokio::test]
async fn a_task_that_its_deadline_stopped_is_not_started_before_that_is_moved() {
    let business = Business::start(|_| Act::ok().after(std::time::Duration::from_millis(5))).await;
    let node = Recipe::new().start().await;
    node.business("push", &business.url(), json!({})).await;
    let soon = time::OffsetDateTime::now_utc() + time::Duration::milliseconds(1_500);
    let soon = soon
        .format(&time::format_description::well_known::Rfc3339)
        .unwrap();
    let settings = json!({"start": true, "rate": "5/s", "deadline": soon});
    node.task("push", 100_000, settings).await;
    let stopped = node.status("t1", "stopped").await;
    assert_eq!(
        (&stopped["stop_reason"], &stopped["status_text"]),
        (&json!("deadline"), &json!("its deadline passed"))
    );
    let problem = node.admin.post("/v1/tasks/t1/start", json!({})).await;
    let problem = problem.problem(409, "conflict");
    let advice = problem["try"][0].as_str().unwrap();
    assert!(advice.contains("windrow task set t1 --deadline"), "{problem:#}");
    let explained = node.admin.get("/v1/tasks/t1/explain").await.expect(200);
    let advice = explained["advice"][0]["text"].as_str().unwrap();
    assert!(
        advice.starts_with("move or remove the deadline first"),
        "{explained:#}"
    );
    node.admin
        .patch("/v1/tasks/t1", json!({"deadline": ENDS}))
        .await
        .expect(200);
    node.admin.post("/v1/tasks/t1/start", json!({})).await.expect(202);
}

#[tokio::test]
async fn a_rate_that_can_not_be_reached_is_told_with_what_holds_it_down() {
    let (_business, node) =
        with(Recipe::new().config("[node]\ncapacity_rate = \"100/s\"\nunlimited_reserves = \"10/s\"\n"))
            .await;
    let timeless = |rate: &str, more: Value| {
        let mut body = task(10, rate, json!({"deadline": null}));
        merge(&mut body, more);
        body
    };
    let told = async |body: Value| {
        let made = node.admin.post("/v1/tasks", body).await.expect(201);
        let warnings = made["warnings"].as_array().cloned().unwrap_or_default();
        warnings
            .iter()
            .for_each(|one| assert_eq!(one["code"], "rate_beyond_reach"));
        let first = warnings
            .first()
            .map(|one| one["detail"].as_str().unwrap().to_owned());
        first.unwrap_or_default()
    };
    assert_eq!(told(timeless("100/s", json!({}))).await, "");
    let waits = told(timeless("250/s", json!({}))).await;
    assert!(
        waits.ends_with("(the largest has 100/s), so the task will wait"),
        "{waits}"
    );
    let limit = json!({"name": "vendor-x", "rate": "5/s"});
    node.admin.post("/v1/limits", limit).await.expect(201);
    let by_vendor = || timeless("15/s", json!({"limits": ["vendor-x"]}));
    assert_eq!(
        told(by_vendor()).await,
        "15/s is requested, but the limit vendor-x is 5/s: the task reaches at most 5/s"
    );
    let both = timeless("250/s", json!({"limits": ["vendor-x"]}));
    let made = node.admin.post("/v1/tasks", both).await.expect(201);
    let [room, limit] = [0, 1].map(|at| made["warnings"][at].clone());
    assert!(
        room["detail"]
            .as_str()
            .unwrap()
            .ends_with(", so the task will wait"),
        "{made:#}"
    );
    assert_eq!(
        room["advice"], "a rate of at most 5/s, because the limit vendor-x is no higher",
        "what fits on a node would be held down still"
    );
    let told = "250/s is requested, but the limit vendor-x is 5/s: the task reaches at most 5/s";
    assert_eq!(limit["detail"], told, "{made:#}");
    let strict = node
        .admin
        .post("/v1/tasks?strict=true", by_vendor())
        .await
        .problem(422, "validation-failed");
    assert_eq!(strict["errors"][0]["pointer"], "/rate", "{strict:#}");
}

#[tokio::test]
async fn a_deadline_is_told_of_the_limit_that_holds_its_task_down() {
    let (_business, node) = with(Recipe::new()).await;
    let limit = json!({"name": "shared", "rate": "1/s"});
    node.admin.post("/v1/limits", limit).await.expect(201);
    let advice = async |rate: &str| {
        let body = task(5_000, rate, json!({"limits": ["shared"]}));
        let made = node.admin.post("/v1/tasks", body).await.expect(201);
        let is_of_deadline = |one: &&Value| one["code"] == "deadline_too_early";
        let warnings = made["warnings"].as_array().expect("warnings").iter();
        let told = warnings.clone().find(is_of_deadline).expect("it can't be met");
        told["advice"].as_str().expect("advice").to_owned()
    };
    let both = advice("30/m").await;
    assert!(
        both.starts_with("a rate and a limit shared of at least 2/s, or a deadline after "),
        "{both}"
    );
    let limit = advice("100/s").await;
    assert!(
        limit.starts_with("a limit shared of at least 2/s, or a deadline after "),
        "{limit}"
    );
}
