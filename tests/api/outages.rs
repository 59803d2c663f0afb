//! What goes wrong with a handler is said while it does, on every surface of a real node.

use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::business::{Act, Business};
use crate::support::{Node, Recipe};

/// Where nothing listens, until somebody does.
async fn free_address() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("an address")
}

/// The lines of the data log with this code, oldest first.
async fn logged(node: &Node, task: &str, code: &str) -> Vec<Value> {
    let page = node
        .admin
        .get(&format!("/v1/tasks/{task}/logs?code={code}"))
        .await
        .expect(200);
    let mut lines = page["items"].as_array().expect("lines").clone();
    lines.reverse();
    lines
}

/// Waits for a line of the data log.
async fn await_line(node: &Node, task: &str, code: &str) -> Value {
    let begun = std::time::Instant::now();
    loop {
        if let Some(line) = logged(node, task, code).await.pop() {
            return line;
        }
        assert!(
            begun.elapsed() < crate::support::PATIENCE,
            "{code} was never logged\n{}",
            node.said()
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

fn text(of: &Value) -> &str {
    of.as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_handler_that_nobody_answers_for_is_named_everywhere_and_nothing_is_lost() {
    let (node, address) = (Node::start().await, free_address().await);
    node.business("push", &format!("http://{address}/windrow"), json!({}))
        .await;
    let task = node
        .task("push", 40, json!({"rate": "10/s", "start": true}))
        .await;
    let mut events = node
        .admin
        .events(&format!("/v1/events?topics=task:{task}"), None)
        .await;
    events.next().await.expect("a snapshot");
    let begun = std::time::Instant::now();
    let down = node
        .until(&task, "down", |view| view["handler_down"].is_object())
        .await;
    assert!(begun.elapsed().as_secs() < 15, "{:?}", begun.elapsed());
    let note = &down["handler_down"];
    assert_eq!(
        (&down["status"], &note["class"]),
        (&json!("running"), &json!("unreachable")),
        "{down:#}"
    );
    let code = text(&note["code"]);
    assert!(
        !code.is_empty() && text(&note["example"]).contains("refused"),
        "{note:#}"
    );
    assert_eq!(
        (
            &note["nodes"].as_array().map(Vec::len),
            &down["last_error"]["code"]
        ),
        (&Some(1), &note["code"])
    );
    let said = text(&down["status_text"]);
    assert!(
        said.starts_with("handler down for ") && said.contains(code),
        "{said}"
    );
    let listed = node.admin.get("/v1/tasks").await.expect(200);
    assert_eq!(
        listed["items"][0]["handler_down"]["code"], note["code"],
        "{listed:#}"
    );
    let explained = node
        .admin
        .get(&format!("/v1/tasks/{task}/explain"))
        .await
        .expect(200);
    assert_eq!(explained["handler_down"]["since"], note["since"], "{explained:#}");
    assert!(
        text(&explained["why"]).contains("handler down for "),
        "{explained:#}"
    );
    let told = events
        .until(|told| told.kind == "handler" && told.data["data"]["handler_down"].is_object())
        .await;
    let told = &told.last().expect("one").data["data"];
    assert!(text(&told["status_text"]).contains(code), "{told:#}");
    let line = await_line(&node, &task, "HANDLER_DOWN").await;
    assert!(text(&line["message"]).contains(code), "{line:#}");
    assert_eq!(
        logged(&node, &task, code).await.len(),
        1,
        "a code is told once, however often it comes"
    );
    let page = node.admin.get("/metrics").await.text();
    let gauge = format!("windrow_handler_down{{business=\"push\",task=\"{task}\"}} 1");
    assert!(page.lines().any(|line| line == gauge), "no {gauge}");
    let counter =
        format!("windrow_failed_calls_total{{business=\"push\",class=\"unreachable\",code=\"{code}\"}}");
    assert!(page.contains(&counter), "no {counter}");

    let listener = TcpListener::bind(address).await.expect("the port is still free");
    let business = Business::on(listener, |_| Act::ok());
    let up = |told: &crate::sse::Told| told.kind == "handler" && told.data["data"]["handler_down"].is_null();
    events.until(up).await;
    let done = node.status(&task, "finished").await;
    assert_eq!(
        (&done["counts"]["succeeded"], &done["counts"]["failed"]),
        (&json!(40), &json!(0))
    );
    assert_eq!(
        (&done["handler_down"], &done["last_error"]),
        (&Value::Null, &Value::Null)
    );
    let line = await_line(&node, &task, "HANDLER_BACK").await;
    assert!(
        text(&line["message"]).starts_with("the handler responds again after "),
        "{line:#}"
    );
    assert!(business.items().len() >= 40);
}

#[tokio::test]
async fn an_api_that_refuses_everything_is_named_while_it_does_and_when_the_task_stops() {
    let business = Business::start(|_| Act::status(400)).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task("push", 1000, json!({"rate": "5/s", "start": true}))
        .await;
    let begun = std::time::Instant::now();
    let failing = node
        .until(&task, "told", |view| text(&view["status_text"]).contains("400"))
        .await;
    assert!(begun.elapsed().as_secs() < 15, "{:?}", begun.elapsed());
    if failing["status"] == "running" {
        assert_eq!(failing["last_error"]["class"], "faulty", "{failing:#}");
        let explained = node
            .admin
            .get(&format!("/v1/tasks/{task}/explain"))
            .await
            .expect(200);
        assert!(text(&explained["why"]).contains("400"), "{explained:#}");
    }
    let stopped = node.status(&task, "stopped").await;
    assert_eq!(stopped["stop_reason"], "handler_rejected", "{stopped:#}");
    assert!(text(&stopped["status_text"]).contains("400"), "{stopped:#}");
    assert_eq!(stopped["counts"]["failed"], 0, "{stopped:#}");
    let code = text(&failing["last_error"]["code"]).to_owned();
    if !code.is_empty() {
        assert_eq!(logged(&node, &task, &code).await.len(), 1);
    }
}

#[tokio::test]
async fn calls_that_fail_with_one_code_are_told_though_others_go_well() {
    let business = Business::start(
        |seen| match seen.items().iter().any(|(index, _)| index % 2 == 0) {
            true => Act::json(400, json!({"error": "no such field"})),
            false => Act::ok(),
        },
    )
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let settings = json!({"rate": "20/s", "error_budget": "none", "start": true});
    let task = node.task("push", 100_000, settings).await;
    let failing = node
        .until(&task, "told", |view| {
            view["last_error"]["count"].as_u64() > Some(3)
        })
        .await;
    let error = &failing["last_error"];
    assert_eq!(
        (&failing["handler_down"], &failing["status"]),
        (&Value::Null, &json!("running"))
    );
    assert!(
        text(&error["code"]).contains("400") && text(&failing["status_text"]).contains("400"),
        "{failing:#}"
    );
    let explained = node
        .admin
        .get(&format!("/v1/tasks/{task}/explain"))
        .await
        .expect(200);
    assert!(text(&explained["why"]).contains("400"), "{explained:#}");
    let line = await_line(&node, &task, text(&error["code"])).await;
    assert_eq!(line["origin"], "system", "{line:#}");
}

/// A node with a task of 20 items of which four wait for an hour: two with `NOT_YET`, two with `BUSY`.
async fn four_that_wait(recipe: &Recipe, business: &Business) -> (Node, String) {
    business.becomes(|seen| match seen.items()[0].0 {
        index if index < 16 => Act::ok(),
        index => {
            let code = if index < 18 { "NOT_YET" } else { "BUSY" };
            Act::json(200, json!({"result": "retry", "code": code, "retry_after": "1h"}))
        }
    });
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task("push", 20, json!({"rate": "200/s", "start": true}))
        .await;
    node.until(&task, "four wait", |view| {
        view["counts"]["succeeded"] == 16 && view["counts"]["in_flight"] == 0
    })
    .await;
    (node, task)
}

/// Asks until the node takes it: what failed is saved within seconds.
async fn give_up(node: &Node, task: &str, body: Value) -> Value {
    let begun = std::time::Instant::now();
    loop {
        let answer = node
            .admin
            .post(&format!("/v1/tasks/{task}/fail"), body.clone())
            .await;
        if answer.status == 202 {
            return answer.json();
        }
        assert!(
            answer.status == 422 && begun.elapsed() < crate::support::PATIENCE,
            "{answer:?}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn items_that_wait_are_given_up_by_their_code_while_the_task_runs() {
    let business = Business::willing().await;
    let (node, task) = four_that_wait(&Recipe::new(), &business).await;
    let path = format!("/v1/tasks/{task}/fail");
    let given_up = give_up(
        &node,
        &task,
        json!({"code": "NOT_YET", "reason": "they never will"}),
    )
    .await;
    assert_eq!(given_up["marked"]["code"], "NOT_YET", "{given_up:#}");
    let seen = node
        .until(&task, "two are given up", |view| view["counts"]["failed"] == 2)
        .await;
    assert_eq!(
        (&seen["status"], &seen["counts"]["succeeded"]),
        (&json!("running"), &json!(16))
    );
    let unknown = node
        .admin
        .post(&path, json!({"code": "NO_SUCH"}))
        .await
        .problem(422, "validation-failed");
    assert!(
        unknown.to_string().contains("BUSY (2)"),
        "it names what there is: {unknown:#}"
    );
    let dry = node
        .admin
        .post(&format!("{path}?dry_run=true"), json!({"code": "BUSY"}))
        .await
        .expect(200);
    assert_eq!(
        dry["would"]["marked"],
        json!({"code": "BUSY", "items": 2}),
        "{dry:#}"
    );
    give_up(&node, &task, json!({"code": "BUSY"})).await;
    let done = node.status(&task, "finished").await;
    assert_eq!(
        (&done["counts"]["failed"], &done["result"]),
        (&json!(4), &json!("with_failures"))
    );
    let groups = node
        .admin
        .get(&format!("/v1/tasks/{task}/failures/groups"))
        .await
        .expect(200);
    let codes: Vec<&Value> = groups["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| &group["code"])
        .collect();
    assert_eq!(codes, ["BUSY", "NOT_YET"], "each with its own reason: {groups:#}");
    let revisions = node
        .admin
        .get(&format!("/v1/tasks/{task}/revisions"))
        .await
        .expect(200);
    let all = revisions["items"].as_array().unwrap();
    let told: Vec<&Value> = all
        .iter()
        .filter(|entry| entry["action"] == "task.fail")
        .collect();
    assert_eq!(
        (told.len(), &told[1]["reason"]),
        (2, &json!("they never will")),
        "a dry run leaves none"
    );
    node.admin
        .post(&path, json!({"code": "BUSY"}))
        .await
        .problem(409, "wrong-state");
}

#[tokio::test]
async fn what_was_given_up_stays_so_although_the_node_is_killed_right_after_the_answer() {
    let (recipe, business) = (Recipe::new(), Business::willing().await);
    let (node, task) = four_that_wait(&recipe, &business).await;
    give_up(&node, &task, json!({"code": "NOT_YET"})).await;
    node.signal(rustix::process::Signal::KILL);
    node.ended().await;
    let node = recipe.start().await;
    let seen = node
        .until(&task, "two are given up", |view| view["counts"]["failed"] == 2)
        .await;
    assert_eq!(seen["counts"]["succeeded"], 16, "{seen:#}");
    node.admin
        .post(&format!("/v1/tasks/{task}/stop"), json!({}))
        .await
        .expect(202);
    node.status(&task, "stopped").await;
    let told = give_up(&node, &task, json!({"code": "BUSY"})).await;
    assert_eq!(
        (&told["status"], &told["marked"]["items"]),
        (&json!("stopped"), &json!(2)),
        "{told:#}"
    );
    node.admin
        .post(&format!("/v1/tasks/{task}/start"), json!({}))
        .await
        .expect(202);
    let done = node.status(&task, "finished").await;
    assert_eq!(done["counts"]["failed"], 4, "{done:#}");
    let calls = business
        .items()
        .into_iter()
        .filter(|(index, _)| *index >= 16)
        .count();
    assert_eq!(calls, 4, "none of them was called again");
}

#[tokio::test]
async fn a_start_that_judges_items_gives_them_up_although_none_ever_succeeded() {
    let business = Business::start(|_| Act::status(500)).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let retry = json!({"max_attempts": 2, "backoff": "50ms"});
    let task = node.task("push", 3, json!({"retry": retry, "start": true})).await;
    node.until(&task, "held", |view| {
        view["last_error"]["count"].as_u64() >= Some(6)
    })
    .await;
    node.admin
        .post(&format!("/v1/tasks/{task}/stop"), json!({}))
        .await
        .expect(202);
    let stopped = node.status(&task, "stopped").await;
    assert_eq!(
        (&stopped["counts"]["failed"], &stopped["judge_after"]),
        (&json!(0), &json!("auto"))
    );
    let body = json!({"judge": "items", "reason": "we have seen their log"});
    let started = node
        .admin
        .post(&format!("/v1/tasks/{task}/start"), body)
        .await
        .expect(202);
    assert_eq!(started["judge_after"], "0s", "{started:#}");
    let done = node.status(&task, "finished").await;
    assert_eq!(
        (&done["counts"]["failed"], &done["result"]),
        (&json!(3), &json!("with_failures"))
    );
}

#[tokio::test]
async fn a_task_that_runs_already_is_told_to_judge_its_items() {
    let business = Business::willing().await;
    let (node, task) = four_that_wait(&Recipe::new(), &business).await;
    let path = format!("/v1/tasks/{task}/start");
    let told = node
        .admin
        .post(&path, json!({"judge": "items"}))
        .await
        .expect(202);
    assert_eq!(
        (&told["status"], &told["judge_after"]),
        (&json!("running"), &json!("0s")),
        "{told:#}"
    );
    node.admin
        .post(&path, json!({"judge": "items"}))
        .await
        .expect(200);
    assert_eq!(
        node.admin.post(&path, json!({"judge": "everybody"})).await.status,
        400
    );
}

#[tokio::test]
async fn a_task_in_an_outage_goes_on_where_its_business_is_now() {
    let (node, address) = (Node::start().await, free_address().await);
    node.business("push", &format!("http://{address}/windrow"), json!({}))
        .await;
    let task = node
        .task("push", 40, json!({"rate": "1000/s", "start": true}))
        .await;
    node.until(&task, "down", |view| view["handler_down"].is_object())
        .await;
    let there = Business::start(|_| Act::ok()).await;
    node.admin
        .patch("/v1/businesses/push", json!({"url": there.url()}))
        .await
        .expect(200);
    let done = node
        .until(&task, "finished", |view| view["status"] == "finished")
        .await;
    assert_eq!(done["counts"]["succeeded"], 40, "{done:#}");
}
