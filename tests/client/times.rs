//! Times as people say them, wherever the client asks for one, and what is said back.

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::program::Person;
use crate::support::Node;

/// Somebody whose clocks are nine hours ahead of UTC, all year.
async fn in_tokyo() -> (Business, Node, Person) {
    let business = Business::start(|_| Act::ok()).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node).env("TZ", "JST-9");
    (business, node, person)
}

async fn shown(node: &Node, task: &str) -> Value {
    node.admin.get(&format!("/v1/tasks/{task}")).await.expect(200)
}

#[tokio::test]
async fn a_time_is_understood_in_the_zone_of_whoever_says_it_and_said_back() {
    let (_business, node, person) = in_tokyo().await;
    let begins = ["--start-at", "2998-12-31 22:00", "--deadline", "2999-01-01 06:00"];
    let words = [
        &["task", "create", "push", "--total", "3", "--start"],
        &begins[..],
    ]
    .concat();
    let done = person.run(&words, "").await.expect(0);
    for line in [
        "--start-at 2998-12-31 22:00 → 2998-12-31T22:00:00+09:00\n",
        "--deadline 2999-01-01 06:00 → 2999-01-01T06:00:00+09:00\n",
    ] {
        assert!(done.stderr.contains(line), "{}", done.stderr);
    }
    let task = shown(&node, "t1").await;
    assert_eq!(task["start_at"], "2998-12-31T13:00:00.000Z");
    assert_eq!(task["deadline"], "2998-12-31T21:00:00.000Z");

    let clock = person.windrow("task set t1 --deadline 22:00").await.expect(0);
    assert!(clock.stderr.contains("--deadline 22:00 → ") && clock.stderr.contains("T22:00:00+09:00"));
    assert!(
        shown(&node, "t1").await["deadline"]
            .as_str()
            .unwrap()
            .ends_with("T13:00:00.000Z")
    );
    let exact = person
        .windrow("task set t1 --deadline 2999-01-01T00:00:00Z")
        .await
        .expect(0);
    assert!(!exact.stderr.contains('→'), "it was exact: {}", exact.stderr);
    let script = person
        .windrow("task create push --total 3 --deadline 8h -q")
        .await
        .expect(0);
    assert_eq!(script.stderr, "");
}

#[tokio::test]
async fn a_time_that_is_over_is_refused_by_the_client_and_by_the_node() {
    let (_business, node, person) = in_tokyo().await;
    for words in [
        "task create push --total 3 --start-at yesterday",
        "task start t1 --start-at 1999-12-31",
        "task set t1 --deadline 1999-12-31",
    ] {
        let done = person.windrow(words).await;
        done.refused(
            2,
            &[
                "the time has passed",
                "T00:00:00+09:00 is in the past",
                "tomorrow 06:00",
            ],
        );
    }
    let (source, over) = (json!({"type": "range", "total": 3}), "1999-12-31T00:00:00Z");
    let body = json!({"business": "push", "source": source, "start_at": over, "start": true});
    let told = node
        .admin
        .post("/v1/tasks", body)
        .await
        .problem(422, "validation-failed");
    assert_eq!(told["errors"][0]["pointer"], "/start_at", "{told:#}");
    assert_eq!(node.admin.get("/v1/tasks").await.expect(200)["items"], json!([]));

    person.windrow("task create push --total 3").await.expect(0);
    let start = node
        .admin
        .post("/v1/tasks/t1/start", json!({"start_at": over}))
        .await;
    let told = start.problem(422, "validation-failed");
    assert_eq!(told["errors"][0]["pointer"], "/start_at", "{told:#}");
    assert_eq!(shown(&node, "t1").await["status"], "created");
}

#[tokio::test]
async fn a_task_that_waits_says_when_it_begins_in_the_zone_of_whoever_asks() {
    let (_business, _node, person) = in_tokyo().await;
    let words = [
        "task",
        "create",
        "push",
        "--total",
        "3",
        "--start",
        "--start-at",
        "2998-12-31 22:00",
    ];
    person.run(&words, "").await.expect(0);
    for (words, part) in [
        ("task list --time local", "queued (starts 2998-12-31 22:00:00)"),
        ("task show t1 --time local", "it starts at 2998-12-31 22:00:00"),
        ("task explain t1 --time local", "it starts at 2998-12-31 22:00:00"),
        ("task show t1", "queued (starts in "),
        (
            "task set t1 --deadline 2999-01-01 --time local",
            "deadline none → 2999-01-01 00:00:00",
        ),
    ] {
        let said = person.windrow(words).await.expect(0).stdout;
        assert!(said.contains(part), "{words}: {said}");
    }
}

#[tokio::test]
async fn logs_and_tokens_take_the_same_times() {
    let (_business, node, person) = in_tokyo().await;
    let since = person
        .run(&["log", "--since", "yesterday 18:00", "--until", "8h"], "")
        .await
        .expect(0);
    assert!(
        since.stderr.contains("--since yesterday 18:00 → "),
        "{}",
        since.stderr
    );
    assert!(since.stderr.contains("--until 8h → "), "{}", since.stderr);
    let token = person
        .run(
            &[
                "token",
                "create",
                "--role",
                "viewer",
                "--expires-at",
                "2999-01-01",
            ],
            "",
        )
        .await;
    assert!(token.expect(0).stderr.contains("→ 2999-01-01T00:00:00+09:00"));
    let tokens = node.admin.get("/v1/tokens").await.expect(200);
    assert!(
        tokens.to_string().contains("2998-12-31T15:00:00.000Z"),
        "{tokens:#}"
    );
}

#[tokio::test]
async fn what_is_no_time_is_told_with_what_would_be_one_and_nothing_is_made() {
    let (_business, node, person) = in_tokyo().await;
    for words in [
        "task create push --total 3 --deadline soon",
        "task create push --total 3 --start-at 25:00",
        "task start t1 --start-at 8",
        "task set t1 --deadline 10pm",
        "log --since whenever",
        "token create --role viewer --expires-at never",
    ] {
        let done = person.windrow(words).await;
        done.refused(2, &["invalid time", "not a valid time", "22:00, ", "T22:00:00Z"]);
    }
    assert_eq!(node.admin.get("/v1/tasks").await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn a_time_may_end_with_its_zone() {
    let (_business, _node, person) = in_tokyo().await;
    let words = ["task", "create", "push", "--total", "3", "--start", "--start-at"];
    let zoned = person
        .run(&[&words[..], &["2998-12-01 09:00 Europe/Berlin"]].concat(), "")
        .await
        .expect(0);
    assert!(
        zoned
            .stderr
            .contains("--start-at 2998-12-01 09:00 → 2998-12-01T09:00:00+01:00 (Europe/Berlin)"),
        "{}",
        zoned.stderr
    );
    person
        .run(&[&words[..], &["2998-12-01 09:00 Europe/Atlantis"]].concat(), "")
        .await
        .refused(2, &["no time zone \"Europe/Atlantis\""]);
}

#[tokio::test]
async fn a_deadline_that_can_not_be_met_is_warned_of_and_strictly_refused() {
    let (_business, node, person) = in_tokyo().await;
    let plan = "--rate 1/s --start-at 2998-12-31T23:00:00Z --deadline 2999-01-01T00:00:00Z";
    let strict = person
        .windrow(&format!("task create push --total 10000 {plan} --start --strict"))
        .await;
    strict.refused(7, &["take 2h 46m", "at least 3/s", "strict"]);
    assert_eq!(node.admin.get("/v1/tasks").await.expect(200)["items"], json!([]));
    let dry = person
        .windrow(&format!("task create push --total 10000 {plan} --dry-run"))
        .await
        .expect(0);
    assert!(
        dry.stderr
            .contains("warning: deadline: 10000 items at 1/s take 2h 46m"),
        "{}",
        dry.stderr
    );
    assert!(
        dry.stderr
            .contains("try --start; the task then waits until that time"),
        "{}",
        dry.stderr
    );

    let made = person
        .windrow(&format!("task create push --total 10000 {plan} -q"))
        .await
        .expect(0);
    assert!(
        made.stderr.contains("warning: t1  deadline: 10000 items at 1/s"),
        "also when quiet: {}",
        made.stderr
    );
    let idle = "warning: t1  start at: it isn't started";
    assert!(made.stderr.contains(idle), "{}", made.stderr);
    assert!(
        made.stderr
            .contains("try windrow task start t1; the task then waits until that time"),
        "{}",
        made.stderr
    );
    let card = person.windrow("task show t1").await.expect(0);
    assert!(
        card.stdout.contains("  warning ") && card.stdout.contains("  not before "),
        "{}",
        card.stdout
    );

    person
        .windrow("task start t1 --strict")
        .await
        .refused(7, &["take 2h 46m"]);
    person
        .windrow("task set t1 --rate 2/s --strict")
        .await
        .refused(7, &["at least 3/s"]);
    let faster = person.windrow("task set t1 --rate 3/s --strict").await.expect(0);
    assert_eq!(faster.stdout, "t1  rate 1/s → 3/s\n");
    let started = person.windrow("task start t1 --strict").await.expect(0);
    assert!(!started.stderr.contains("warning"), "{}", started.stderr);
    let slower = person.windrow("task set t1 --rate 1/s").await.expect(0);
    assert!(
        slower.stderr.contains("warning: t1  deadline: "),
        "{}",
        slower.stderr
    );
    assert_eq!(slower.stdout, "t1  rate 3/s → 1/s\n");
}

#[tokio::test]
async fn a_file_that_is_applied_is_looked_at_like_flags() {
    let (_business, node, person) = in_tokyo().await;
    let file = person.write(
        "task.toml",
        "business = \"push\"\nname = \"x\"\nrate = \"1/s\"\nstart = true\nstart_at = \"2998-12-31T23:00:00Z\"\n\
         deadline = 2999-01-01T00:00:00Z\n[source]\ntype = \"range\"\ntotal = 10000\n",
    );
    let apply = format!("task apply -f {file}");
    person
        .windrow(&format!("{apply} --strict"))
        .await
        .refused(7, &["take 2h 46m"]);
    let made = person.windrow(&apply).await.expect(0);
    assert!(made.stderr.contains("warning: t1  deadline: "), "{}", made.stderr);
    assert_eq!(shown(&node, "t1").await["status"], "queued");
}
