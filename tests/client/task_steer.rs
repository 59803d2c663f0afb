//! `windrow task start`, `stop`, `cancel`, `finish`, `fail`, `skip`, `recover`, `set`, `delete` and `move`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::program::Person;
use crate::support::{Node, Recipe};
use crate::wire::scripted;

async fn node_with(act: impl Fn() -> Act + Send + Sync + 'static) -> (Business, Node) {
    let business = Business::start(move |_| act()).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    (business, node)
}

/// Why this was done, as the audit has it.
async fn reason(node: &Node, task: &str, action: &str) -> Value {
    let found = node
        .admin
        .get(&format!("/v1/tasks/{task}/revisions"))
        .await
        .expect(200);
    let entries = found["items"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["action"] == action);
    entry.unwrap_or_else(|| panic!("{found:#}"))["reason"].clone()
}

#[tokio::test]
async fn a_task_is_stopped_with_what_is_in_flight_and_goes_on_to_its_end() {
    let (_business, node) = node_with(|| Act::ok().after(Duration::from_millis(300))).await;
    let person = Person::admin(&node);
    node.task("push", 1_000_000, json!({"rate": "50/s", "start": true}))
        .await;
    node.until("t1", "in flight", |task| {
        task["counts"]["in_flight"].as_u64() > Some(0)
    })
    .await;
    let words = [
        "task",
        "stop",
        "t1",
        "--wait",
        "--reason",
        "complaints from region X",
    ];
    let done = person.run(&words, "").await.expect(0).stdout;
    assert!(
        done.starts_with("t1  stopping: no new calls; waiting for ")
            && done.contains(" in flight, dispatch halted at index "),
        "{done}"
    );
    assert!(
        done.contains("\ndrained in ")
            && done.contains("(no call is repeated)   resume: windrow task start t1"),
        "{done}"
    );
    assert_eq!(reason(&node, "t1", "task.stop").await, "complaints from region X");
    let again = person.windrow("task stop t1").await.expect(0).stdout;
    assert!(again.starts_with("t1  stopped at watermark "), "{again}");
    let cut = person.windrow("task finish t1 --yes").await.expect(0).stdout;
    assert!(
        cut.starts_with("t1  ✓ finished (early): items from index ") && cut.trim_end().ends_with(" items"),
        "{cut}"
    );
}

#[tokio::test]
async fn a_stop_that_cuts_calls_off_names_what_may_repeat() {
    let (_business, node) = node_with(|| Act::ok().after(Duration::from_secs(600))).await;
    let person = Person::admin(&node);
    node.task(
        "push",
        3,
        json!({"rate": "50/s", "timeout": "900s", "start": true}),
    )
    .await;
    node.until("t1", "in flight", |task| task["counts"]["in_flight"] == 3)
        .await;
    let done = person.windrow("task stop t1 --now --wait").await.expect(0).stdout;
    assert!(
        done.contains("3 items were in flight and may repeat: #0"),
        "{done}"
    );
}

#[tokio::test]
async fn a_started_task_is_awaited_and_its_end_is_the_exit_code() {
    let (business, node) = node_with(Act::ok).await;
    let person = Person::admin(&node);
    node.task("push", 20, json!({})).await;
    let done = person.windrow("task start t1 --wait").await.expect(0).stdout;
    assert!(
        done.starts_with("t1  ◌ queued") && done.contains("t1  ✓ finished  20 / 20 in "),
        "{done}"
    );
    person.windrow("task start t1").await.refused(4, &["finished"]);
    business.becomes(|_| Act::json(200, json!({"result": "fail", "code": "NO"})));
    node.task("push", 20, json!({"error_budget": "5"})).await;
    let stopped = person.windrow("task start t2 --wait").await.expect(9).stdout;
    assert!(
        stopped.contains("■ stopped (error budget)") && stopped.contains("resume: windrow task start t2"),
        "{stopped}"
    );
    let body = person.windrow("task start t2 -o json").await.expect(0).json();
    assert_eq!(body["id"], "t2");
}

#[tokio::test]
async fn what_cant_be_undone_needs_a_yes_and_a_script_is_never_asked() {
    let (_business, node) = node_with(Act::ok).await;
    node.task("push", 20, json!({"name": "a"})).await;
    node.task("push", 20, json!({"name": "b"})).await;
    for person in [Person::admin(&node), Person::admin(&node).env("CI", "true")] {
        for words in [
            ["task", "cancel", "push/a"],
            ["task", "finish", "push/a"],
            ["task", "delete", "t1"],
        ] {
            person
                .run(&words, "y\nt1\nyes\n")
                .await
                .refused(2, &["there is no terminal to ask on", "--yes"]);
        }
        person
            .windrow("task cancel --business push")
            .await
            .refused(2, &["Cancel 2 tasks (push/a, push/b)?"]);
    }
    let person = Person::admin(&node);
    assert_eq!(
        node.admin.get("/v1/tasks/t1").await.expect(200)["status"],
        "created"
    );
    let done = person
        .windrow("task cancel push/a --yes --reason mistake")
        .await
        .expect(0)
        .stdout;
    assert!(done.starts_with("t1  ✗ cancelled: 20 items not done"), "{done}");
    assert_eq!(reason(&node, "t1", "task.cancel").await, "mistake");
    person
        .windrow("task delete t2 --yes")
        .await
        .refused(4, &["created"]);
    assert_eq!(
        person
            .windrow("task delete t1 --yes --reason tidy")
            .await
            .expect(0)
            .stdout,
        "t1  deleted\n"
    );
    assert_eq!(node.admin.get("/v1/tasks/t1").await.status, 404);
    let audit = node.admin.get("/v1/audit").await.expect(200);
    let entry = &audit["items"][0];
    assert_eq!(
        (&entry["action"], &entry["reason"], &entry["source"]),
        (&json!("task.delete"), &json!("tidy"), &json!("cli"))
    );
}

#[tokio::test]
async fn a_person_at_a_terminal_types_the_number_of_what_is_to_be_cancelled() {
    let (_business, node) = node_with(Act::ok).await;
    node.task("push", 20, json!({"name": "a"})).await;
    let person = Person::admin(&node);
    let words = ["task", "cancel", "push/a"];
    let no = person
        .at_terminal(&words, "Type t1 to continue:", "y\n")
        .await
        .expect(130);
    assert!(
        no.stdout.contains("Cancel push/a? It can't be undone.")
            && no.stdout.contains("not confirmed; nothing has changed")
    );
    assert_eq!(
        node.admin.get("/v1/tasks/t1").await.expect(200)["status"],
        "created"
    );
    let yes = person
        .at_terminal(&words, "Type t1 to continue:", "t1\n")
        .await
        .expect(0);
    assert!(yes.stdout.contains("✗ cancelled"), "{}", yes.stdout);
}

#[tokio::test]
async fn who_no_longer_waits_leaves_the_task_alone() {
    let (_business, node) = node_with(Act::ok).await;
    node.task("push", 1_000_000, json!({"rate": "10/s"})).await;
    let person = Person::admin(&node);
    let words = ["task", "start", "t1", "--wait"];
    let done = person.at_terminal(&words, "running", "\u{3}").await.expect(130);
    assert!(
        done.stdout
            .contains("only the wait was interrupted; t1 continues"),
        "{}",
        done.stdout
    );
    assert_eq!(
        node.admin.get("/v1/tasks/t1").await.expect(200)["status"],
        "running"
    );
}

#[tokio::test]
async fn many_tasks_are_steered_at_once_after_a_yes() {
    let (_business, node) = node_with(Act::ok).await;
    let person = Person::admin(&node);
    for (name, labels) in [
        ("a", json!({"team": "x"})),
        ("b", json!({"team": "x"})),
        ("c", json!({})),
    ] {
        node.task("push", 2, json!({"name": name, "labels": labels}))
            .await;
    }
    person
        .windrow("task start --label team:x")
        .await
        .refused(2, &["Start 2 tasks (push/a, push/b)?", "--yes"]);
    let started = person
        .windrow("task start --label team:x --yes --wait -o name")
        .await
        .expect(0)
        .stdout;
    assert_eq!(started, "t1\nt2\n");
    let ci = Person::admin(&node).env("CI", "1");
    let rest = ci
        .windrow("task start --business push --wait -o ndjson")
        .await
        .expect(0)
        .stdout;
    let ids: Vec<Value> = rest
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, ["t3"], "those that have ended are left alone");
    let none = person.windrow("task stop --business push --yes").await.expect(0);
    assert_eq!(
        (none.stdout.as_str(), none.stderr.as_str()),
        ("", "no task to stop\n")
    );
    let mixed = person.windrow("task clone t1 -o name").await.expect(0).stdout;
    let both = person
        .windrow(&format!("task start t1 {}", mixed.trim()))
        .await
        .expect(4);
    assert!(both.stderr.starts_with("t1  error: "), "{}", both.stderr);
    assert!(
        both.stdout.starts_with("t4  "),
        "the other one is started all the same: {}",
        both.stdout
    );
    person.windrow("task start t1 --business push").await.expect(2);
    person.windrow("task start").await.expect(2);
}

#[tokio::test]
async fn the_last_of_many_is_not_held_up_by_the_first() {
    let (_business, node) = node_with(Act::ok).await;
    let person = Person::admin(&node);
    node.task("push", 1_000_000, json!({"rate": "10/s"})).await;
    node.task("push", 5, json!({})).await;
    let waits = person.windrow("task start t1 t2 --wait");
    let other = async {
        node.status("t2", "finished").await;
        assert_eq!(
            node.admin.get("/v1/tasks/t1").await.expect(200)["status"],
            "running"
        );
        node.admin.post("/v1/tasks/t1/stop", json!({})).await.expect(202);
    };
    let (done, ()) = tokio::join!(waits, other);
    let done = done.expect(9).stdout;
    assert!(
        done.contains("t1  ■ stopped") && done.contains("t2  ✓ finished"),
        "{done}"
    );
}

#[tokio::test]
async fn settings_are_changed_from_what_they_were_to_what_they_are() {
    let (_business, node) = node_with(Act::ok).await;
    let person = Person::admin(&node);
    node.task(
        "push",
        1_000_000,
        json!({"rate": "10/s", "labels": {"a": "1", "b": "2"}, "start": true}),
    )
    .await;
    node.status("t1", "running").await;
    let words = [
        "task",
        "set",
        "t1",
        "--rate",
        "20/s",
        "--max-attempts",
        "7",
        "--label",
        "c=3",
        "--unlabel",
        "a",
        "--reason",
        "evening",
    ];
    let done = person.run(&words, "").await.expect(0).stdout;
    for part in [
        "t1  ",
        "rate 10/s → 20/s",
        "max attempts ",
        " → 7",
        "label a 1 → none",
        "label c none → 3",
    ] {
        assert!(done.contains(part), "{part}: {done}");
    }
    let task = node.admin.get("/v1/tasks/t1").await.expect(200);
    assert_eq!(
        (&task["rate"], &task["labels"]),
        (&json!("20/s"), &json!({"b": "2", "c": "3"}))
    );
    assert_eq!(reason(&node, "t1", "task.edit").await, "evening");
    let named = person
        .windrow("task set t1 --name night --priority -3 --deadline 2099-01-01T00:00:00Z")
        .await;
    assert!(named.expect(0).stdout.contains("name none → night"));
    let bare = person
        .windrow("task set push/night --no-name --no-deadline -o json")
        .await
        .expect(0)
        .json();
    assert_eq!(
        (&bare["name"], &bare["deadline"], &bare["priority"]),
        (&Value::Null, &Value::Null, &json!(-3))
    );
    person
        .windrow("task set t1 --deadline 2099-01-01T00:00:00Z")
        .await
        .expect(0);
    let none = person
        .windrow("task set t1 --deadline none")
        .await
        .expect(0)
        .stdout;
    assert!(none.contains(" → none"), "{none}");
    person
        .windrow("task set t1")
        .await
        .refused(2, &["no setting was given"]);
    person
        .windrow("task set t1 --total 5")
        .await
        .refused(4, &["total"]);
    let many = person
        .windrow("task set --with-label b:2 --window 500 --yes")
        .await
        .expect(0)
        .stdout;
    assert!(many.contains("window auto → 500"), "{many}");
}

#[tokio::test]
async fn a_raise_that_doesnt_fit_says_what_would() {
    let business = Business::willing().await;
    let node = Recipe::new()
        .config("[node]\ncapacity_rate = \"2000/s\"")
        .start()
        .await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 1_000_000, json!({"rate": "500/s", "start": true}))
        .await;
    node.status("t1", "running").await;
    let person = Person::admin(&node);
    person
        .windrow("task set t1 --rate 5000/s")
        .await
        .refused(4, &["--rate 2000/s on "]);
}

#[tokio::test]
async fn a_dry_run_changes_nothing_whether_or_not_the_node_knows_one() {
    let (business, node) = node_with(Act::ok).await;
    let person = Person::admin(&node);
    node.task("push", 20, json!({"name": "a"})).await;
    let before = node.admin.get("/v1/tasks/t1").await.expect(200);
    for words in [
        "start t1",
        "cancel t1",
        "set t1 --rate 7/s --label x=y",
        "clone t1",
        "create push --total 3",
    ] {
        let done = person.windrow(&format!("task {words} --dry-run")).await;
        assert!(matches!(done.code, Some(0 | 4)), "{words}: {done:?}");
        assert!(
            done.code == Some(0) || done.stderr.contains("support a dry run of"),
            "{words}: {done:?}"
        );
    }
    assert_eq!(node.admin.get("/v1/tasks/t1").await.expect(200), before);
    assert_eq!(person.windrow("task -o name").await.expect(0).stdout, "t1\n");
    assert_eq!(business.items(), []);
}

#[tokio::test]
async fn a_plan_is_shown_as_what_would_be_another() {
    const HEAD: &str = "HTTP/1.1 200 x\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    let (_business, node) = node_with(Act::ok).await;
    node.task("push", 20, json!({"rate": "5/s"})).await;
    let task = node.admin.get("/v1/tasks/t1").await.expect(200);
    let mut would = task.clone();
    would["rate"] = json!("7/s");
    let takes_dry_runs = json!({"/v1/tasks/{task}": {"patch": {"parameters": [{"name": "dry_run"}]}}});
    let answers = [
        task.clone(),
        json!({"paths": takes_dry_runs}),
        json!({"dry_run": true, "would": would}),
        task,
    ];
    let answers = answers.map(|body| &*Box::leak(format!("{HEAD}{body}").into_boxed_str()));
    let (url, asked) = scripted(Box::leak(Box::new(answers))).await;
    let person = Person::new().env("WINDROW_SERVER", &url);
    let done = person.windrow("task set t1 --rate 7/s --dry-run").await.expect(0);
    assert_eq!(done.stdout, "t1  rate 5/s → 7/s\n");
    assert!(
        done.stderr.contains("dry run: nothing was changed"),
        "{}",
        done.stderr
    );
    let asked = asked.await.unwrap();
    assert!(
        asked[2].starts_with("PATCH /v1/tasks/t1?dry_run=true "),
        "{}",
        asked[2]
    );
}

#[tokio::test]
async fn who_may_only_look_is_refused_and_a_task_stays_on_its_node() {
    let (_business, node) = node_with(Act::ok).await;
    node.task("push", 20, json!({})).await;
    let viewer = node.client("viewer", None).await;
    let person = Person::new()
        .env("WINDROW_SERVER", &node.url)
        .env("WINDROW_TOKEN", viewer.token.as_ref().unwrap());
    person.windrow("task start t1").await.refused(5, &[]);
    person.windrow("task stop t9").await.refused(5, &[]);
    Person::admin(&node)
        .windrow("task stop t9")
        .await
        .refused(3, &["t9"]);
    Person::admin(&node)
        .windrow("task recover t1")
        .await
        .refused(4, &["created"]);
    Person::admin(&node)
        .windrow("task move t1 --to n2")
        .await
        .refused(3, &["there is no live node n2"]);
}

#[tokio::test]
async fn items_that_wait_are_given_up_by_their_code_and_a_wrong_one_names_those_that_there_are() {
    let retry = || {
        Act::json(
            200,
            json!({"result": "retry", "code": "NOT_YET", "retry_after": "1h"}),
        )
    };
    let (business, node) = node_with(retry).await;
    let person = Person::admin(&node);
    node.task("push", 3, json!({"start": true})).await;
    node.until("t1", "parked", |task| task["counts"]["parked"] == 3)
        .await;
    person.windrow("task stop t1 --wait").await.expect(0);
    person
        .windrow("task fail t1 --code NO_SUCH")
        .await
        .refused(7, &["NO_SUCH", "codes of waiting items: NOT_YET (3)"]);
    let plan = person
        .windrow("task fail t1 --code NOT_YET --dry-run")
        .await
        .expect(0);
    assert!(
        plan.stdout.contains("marked none → ") && plan.stdout.contains("NOT_YET"),
        "{}",
        plan.stdout
    );
    let told = person
        .windrow("task fail t1 --code NOT_YET --reason late")
        .await
        .expect(0)
        .stdout;
    assert!(told.starts_with("t1  ■ stopped"), "{told}");
    assert!(
        told.contains("retrying after NOT_YET are marked failed, 3 as last saved"),
        "{told}"
    );
    assert!(told.contains("at the next run: windrow task start t1"), "{told}");
    assert_eq!(reason(&node, "t1", "task.fail").await, "late");
    let done = person
        .windrow("task start t1 --judge items --wait")
        .await
        .expect(8)
        .stdout;
    assert!(done.contains("t1  ✓ finished (with failures)"), "{done}");
    assert_eq!(
        node.admin.get("/v1/tasks/t1").await.expect(200)["judge_after"],
        "0s"
    );
    assert_eq!(business.items().len(), 3, "nothing was called again");
    let list = person
        .windrow("task failures t1 --code NOT_YET")
        .await
        .expect(0)
        .stdout;
    assert_eq!(list.matches("NOT_YET").count(), 3, "{list}");
}

#[tokio::test]
async fn items_that_nobody_should_call_are_skipped_with_a_reason() {
    let retry = || {
        Act::json(
            200,
            json!({"result": "retry", "code": "NOT_YET", "retry_after": "1h"}),
        )
    };
    let (business, node) = node_with(retry).await;
    let person = Person::admin(&node);
    node.task("push", 4, json!({"start": true})).await;
    node.until("t1", "parked", |task| task["counts"]["parked"] == 4)
        .await;
    let without = person.windrow("task skip t1 --indexes 0-1").await.expect(2);
    assert!(without.stderr.contains("--reason"), "{}", without.stderr);
    person
        .windrow("task skip t1 --indexes 0-4 --reason late")
        .await
        .refused(7, &["no item 4", "4 items"]);
    person
        .windrow("task skip t1 --indexes 1..2 --reason late")
        .await
        .refused(7, &["is neither an index nor a range such as 9-20"]);
    let told = person
        .windrow("task skip t1 --indexes 1,0 --reason withdrawn")
        .await
        .expect(0)
        .stdout;
    assert!(told.contains("2 items skipped; items in flight"), "{told}");
    node.until("t1", "skipped", |task| task["counts"]["skipped"] == 2)
        .await;
    assert_eq!(reason(&node, "t1", "task.skip").await, "withdrawn");
    person.windrow("task stop t1 --wait").await.expect(0);
    let plan = person
        .windrow("task skip t1 --indexes 2 --reason late --dry-run -o json")
        .await
        .expect(0)
        .json();
    assert_eq!(plan["would"]["skips"]["indexes"], "0-2", "{plan:#}");
    let answer = person
        .windrow("task skip t1 --indexes 0-3 --reason late -o json")
        .await
        .expect(0)
        .json();
    let expected = json!({"indexes": "0-3", "items": 4, "already_settled": 2, "excluded": 0, "skipped": 2,
        "code": "skipped_by_operator"});
    assert_eq!(answer["skipping"], expected);
    let shown = person.windrow("task show t1").await.expect(0).stdout;
    assert!(shown.contains("4 items on request: 0-3"), "{shown}");
    let why = person.windrow("task explain t1").await.expect(0).stdout;
    assert!(why.contains("4 items are skipped without a call"), "{why}");
    let item = person.windrow("task item t1 3").await.expect(0).stdout;
    assert!(item.contains("skipped_by_operator"), "{item}");
    business.becomes(|_| Act::ok());
    let calls = business.items().len();
    person.windrow("task start t1 --wait").await.expect(0);
    let task = node.admin.get("/v1/tasks/t1").await.expect(200);
    assert_eq!(
        (&task["counts"]["skipped"], &task["result"]),
        (&json!(4), &json!("succeeded"))
    );
    assert_eq!(business.items().len(), calls, "nothing was called");
    person
        .windrow("task item t1 3")
        .await
        .refused(3, &["skipped_by_operator"]);
    person
        .windrow("task skip t1 --indexes 0 --reason late")
        .await
        .refused(4, &["finished"]);
}
