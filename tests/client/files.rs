//! `windrow apply` and `windrow export`.

use serde_json::{Value, json};

use crate::program::Person;
use crate::support::{Node, Recipe};

/// A program that answers each item with its number.
const COMMANDS: &str = r#"
[handler.command]
enabled = true
[handler.command.commands.number]
each = ["printf", '{{"n":%d}}', "{index}"]
"#;

/// At least two objects of every kind.
const ALL: &str = r#"
token:
- {name: ci, role: business, business: push, expires_at: "2099-01-01T00:00:00+01:00"}
- {name: wall, role: viewer}
task:
- name: first
  business: push
  source: {type: range, total: 1000}
  rate: 60/m
  labels: {team: "no"}
  priority: -3
  limits: [slow]
  canary: {items: 10, then: continue}
  publish: board
  publish_if: 99.5%
  params: {nested: [1, null, {a: "1:30"}], empty: {}}
- {name: later, business: ship, open: true, params: {}}
schedule:
- name: hourly
  business: push
  every: 1h
  task: {source: {type: range, total: 5}, publish: push.hourly, name: "board-{fire_time:time}"}
- name: nightly
  business: ship
  cron: 0 3 * * *
  zone: Europe/Berlin
  paused: true
  missed: all 10
  task: {source: {type: url, url: "http://127.0.0.1:9/a.csv", header: false}, deadline_after: 25m}
dataset:
- {name: board, business: push, keep: 3}
- {name: push.hourly, business: push}
business:
- name: push
  command: number
  limits: {rate: 50/s, named: [vendor]}
  defaults: {rate: 10/s, max_attempts: 3}
  display_name: "Push: to phones"
- name: ship
  request: {call: "POST http://127.0.0.1:9/{id}", headers: {authorization: "Bearer {secret.api}"}}
  request_secrets: {api: "env:SHIP_TOKEN"}
limit:
- {name: vendor, rate: 100/s, concurrency: 9}
- {name: slow, metering: {limits: [50k calls/min]}}
"#;

async fn node() -> (Node, Person) {
    let node = Recipe::new().config(COMMANDS).start().await;
    let person = Person::admin(&node).env("SHIP_TOKEN", "hush");
    (node, person)
}

async fn export(person: &Person, form: &str) -> String {
    let words = format!("export --format {form}");
    person.windrow(&words).await.expect(0).stdout
}

/// Number of entries in the audit log.
async fn entries(node: &Node) -> usize {
    let page = node.admin.get("/v1/audit?limit=500").await.expect(200);
    page["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn an_export_applied_to_an_empty_node_is_exported_alike() {
    let (first, person) = node().await;
    // TOML has no null.
    person.write("all.yaml", &ALL.replace("null, ", ""));
    let done = person.windrow("apply -f all.yaml --force").await.expect(0);
    for line in [
        "+ limit/slow\n",
        "+ task/ship/later\n",
        "+ token/viewer/wall\n  token, shown only once  wrk_",
    ] {
        assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
    }
    assert!(
        done.stderr
            .contains("12 created, 0 changed, 0 removed, 0 unchanged"),
        "{}",
        done.stderr
    );
    // What the API writes in another form is the same.
    let kept = entries(&first).await;
    let again = person.windrow("apply -f all.yaml --prune").await.expect(0);
    assert_eq!(again.stdout, "= 12 unchanged\n", "{}", again.stderr);
    assert_eq!(entries(&first).await, kept);

    let told = person.windrow("export").await.expect(0);
    assert!(
        told.stderr.contains("business/ship request_secrets.api") && !told.stdout.contains("hush"),
        "{told:?}"
    );
    for part in ["created_at", "revision", "\nid ", "version", "prefix"] {
        assert!(!told.stdout.contains(part), "{part}: {}", told.stdout);
    }
    for form in ["toml", "yaml", "json"] {
        let written = export(&person, form).await;
        let (second, other) = node().await;
        // A secret is the one thing that isn't there.
        let refused = other.run(&["apply", "-f", "-"], &written).await;
        refused.refused(
            7,
            &[
                "business 2 (business/ship)",
                "request_secrets.api is ***",
                "env:NAME",
            ],
        );
        let whole = written.replace("***", "env:SHIP_TOKEN");
        other
            .run(&["apply", "--force", "-f", "-"], &whole)
            .await
            .expect(0);
        assert_eq!(export(&other, form).await, export(&person, form).await);
        let kept = entries(&second).await;
        let again = other.run(&["apply", "-f", "-"], &written).await.expect(0);
        assert_eq!(again.stdout, "= 13 unchanged\n", "{}", again.stderr);
        assert_eq!(entries(&second).await, kept);
    }
}

#[tokio::test]
async fn a_null_inside_of_params_is_kept_by_the_formats_that_have_one() {
    let (_node, person) = node().await;
    person.write("all.yaml", ALL);
    person.windrow("apply -f all.yaml --force").await.expect(0);
    person
        .windrow("export task")
        .await
        .refused(7, &["TOML can't hold a null", "--format yaml"]);
    let yaml = export(&person, "yaml").await;
    assert!(yaml.contains("- null"), "{yaml}");
    // Of one kind, and of one business with the limits that it names.
    let of_push = person
        .windrow("export business limits schedule --business push -o json")
        .await
        .expect(0)
        .json();
    assert_eq!(of_push["business"].as_array().unwrap().len(), 1);
    assert_eq!(of_push["limit"][0]["name"], "vendor");
    assert_eq!(
        (&of_push["limit"][1], &of_push["task"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn a_dry_run_says_what_would_change_and_changes_nothing() {
    let (node, person) = node().await;
    person.write("all.yaml", ALL);
    let kept = entries(&node).await;
    let dry = person
        .windrow("apply -f all.yaml --force --dry-run")
        .await
        .expect(0);
    assert!(
        dry.stdout
            .starts_with("+ limit/vendor\n+ limit/slow\n+ business/push\n"),
        "{}",
        dry.stdout
    );
    assert!(
        dry.stderr.contains("dry run, nothing was changed: 12 created"),
        "{}",
        dry.stderr
    );
    assert_eq!(entries(&node).await, kept);

    person.windrow("apply -f all.yaml --force").await.expect(0);
    let changed = ALL
        .replace("100/s", "200/s")
        .replace("keep: 3", "keep: 4")
        .replace("paused: true", "paused: false")
        .replace("total: 1000", "total: 2000")
        .replace("display_name: \"Push: to phones\"", "display_name: null");
    person.write("all.yaml", &changed);
    let kept = entries(&node).await;
    let words = "apply -f all.yaml --dry-run -o json";
    let dry = person.windrow(words).await.expect(0).json();
    let changes: Vec<&Value> = dry["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["outcome"] == "changed")
        .collect();
    let diff = |member: &str, from: Value, to: Value| json!([{"member": member, "from": from, "to": to}]);
    let expected = [
        ("limit/vendor", diff("rate", json!("100/s"), json!("200/s"))),
        (
            "business/push",
            diff("display_name", json!("Push: to phones"), Value::Null),
        ),
        ("dataset/board", diff("keep", json!(3), json!(4))),
        ("schedule/ship/nightly", diff("paused", json!(true), json!(false))),
        ("task/push/first", diff("source.total", json!(1000), json!(2000))),
    ];
    let expected =
        expected.map(|(object, diff)| json!({"object": object, "outcome": "changed", "diff": diff}));
    assert_eq!((&dry["dry_run"], json!(changes)), (&json!(true), json!(expected)));
    assert_eq!(entries(&node).await, kept);
    let told = person.windrow("apply -f all.yaml").await.expect(0).stdout;
    assert!(
        told.contains("~ limit/vendor  rate 100/s → 200/s\n") && told.ends_with("= 7 unchanged\n"),
        "{told}"
    );
    let told = person.windrow("apply -f all.yaml").await.expect(0).stdout;
    assert_eq!(told, "= 12 unchanged\n");
}

#[tokio::test]
async fn pruning_removes_what_the_files_dont_have_of_their_kinds_and_asks_first() {
    let (node, person) = node().await;
    person.write("all.yaml", ALL);
    person.windrow("apply -f all.yaml --force").await.expect(0);
    person.write(
        "less.yaml",
        "task:\n- {business: push, name: first}\nschedule:\n- {business: push, name: hourly}\n",
    );
    let kept = entries(&node).await;
    person
        .windrow("apply -f less.yaml --prune")
        .await
        .refused(2, &["schedule/ship/nightly", "--yes"]);
    assert_eq!(entries(&node).await, kept);
    let done = person.windrow("apply -f less.yaml --prune --yes").await.expect(0);
    assert_eq!(
        done.stdout,
        "- task/ship/later\n- schedule/ship/nightly\n= 2 unchanged\n"
    );
    person.windrow("task show ship/later").await.expect(3);
    // A limit in use is not removed, and nothing else either.
    person.write("less.yaml", "limit:\n- {name: slow}\n");
    person
        .windrow("apply -f less.yaml --prune --yes")
        .await
        .refused(7, &["limit/vendor", "push"]);
    // An archived business that a file has again comes back.
    person.write(
        "less.yaml",
        "business:\n- {name: push}\ntoken:\n- {name: wall, role: viewer}\n",
    );
    let done = person.windrow("apply -f less.yaml --prune --yes").await.expect(0);
    assert_eq!(
        done.stdout, "- token/business/push/ci\n- business/ship\n= 2 unchanged\n",
        "not its own token"
    );
    let done = person.windrow("apply -f all.yaml --force").await.expect(0).stdout;
    assert!(
        done.contains("~ business/ship  archived true → false\n"),
        "{done}"
    );
}

#[tokio::test]
async fn a_fault_is_told_with_its_file_and_place_before_anything_changes() {
    let (node, person) = node().await;
    std::fs::create_dir_all(person.path("place/inner")).unwrap();
    person.write("place/a.toml", "[[limit]]\nname = \"a\"\nrate = \"5/s\"\n");
    person.write(
        "place/inner/b.json",
        r#"{"limit": [{"name": "b", "rate": "5/s"}, {"name": "c", "rat": "5/s"}]}"#,
    );
    let kept = entries(&node).await;
    let told = person.windrow("apply -f place").await;
    told.refused(
        7,
        &["place/inner/b.json: limit 2 (limit/c): /rat: unknown member"],
    );
    person.write(
        "place/inner/b.json",
        r#"{"limit": [{"name": "b", "rate": "fast"}, {"name": "a", "rate": "1/s"}]}"#,
    );
    person
        .windrow("apply -f place")
        .await
        .refused(7, &["limit 2 (limit/a): limit/a is also place/a.toml: limit 1"]);
    person.write(
        "place/inner/b.json",
        r#"{"limit": [{"name": "b", "rate": "fast"}]}"#,
    );
    person
        .windrow("apply -f place")
        .await
        .refused(7, &["b.json: limit 1 (limit/b): /rate: "]);
    for (name, text, part) in [
        ("x.toml", "[[limit]]\nname = \n", "x.toml: line 2: "),
        ("x.json", "{\"limit\": 1}", "`limit` is not a list"),
        ("x.yaml", "limit:\n- name: [a\n", "x.yaml: line 2"),
        (
            "x.yaml",
            "limits: []\n",
            "unknown kind \"limits\"; kinds are limit, business",
        ),
        ("x.yaml", "limit:\n- rate: 1/s\n", "limit 1: `name` is missing"),
        (
            "x.yaml",
            "limit:\n- {name: a, concurrency: 123456789012345678901234}\n",
            "number beyond 64 bits",
        ),
        ("x.txt", "", "its name ends neither in .toml"),
        (
            "x.yaml",
            "business:\n- {name: a, url: 'http://h/', secret_headers: {k: 'env:NONE'}}\n",
            "the environment has no NONE",
        ),
    ] {
        person.write(name, text);
        person
            .windrow(&format!("apply -f {name}"))
            .await
            .refused(7, &[part]);
    }
    person.write("x.yaml", &format!("limit:\n- name: {}\n", "a".repeat(5 << 20)));
    person
        .windrow("apply -f x.yaml")
        .await
        .refused(7, &["more than 4194304 bytes"]);
    assert_eq!(entries(&node).await, kept);
    person.write(
        "place/inner/b.json",
        r#"{"limit": [{"name": "b", "rate": "5/s"}]}"#,
    );
    person.write("place/notes.md", "not ours");
    let done = person.windrow("apply -f place").await.expect(0).stdout;
    assert_eq!(done, "+ limit/a\n+ limit/b\n");
}

#[tokio::test]
async fn what_fails_in_the_middle_says_how_far_it_came_and_goes_on_the_next_time() {
    let (_node, person) = node().await;
    let text = "limit:\n- {name: a, rate: 5/s}\nbusiness:\n- {name: push, url: 'http://127.0.0.1:9/', limits: {named: [a]}}\n";
    person.write("x.yaml", text);
    let done = person.windrow("apply -f x.yaml").await.expect(11);
    assert_eq!(done.stdout, "+ limit/a\n");
    for part in [" ✗ reachable ", "1 of 2 changes were made before it", "--force"] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    let done = person.windrow("apply -f x.yaml --force").await.expect(0).stdout;
    assert!(
        done.starts_with("+ business/push\n  signing secret, shown only once  whsec_"),
        "{done}"
    );
    // What can't change is refused.
    person.write(
        "x.yaml",
        "task:\n- {business: push, name: t, source: {type: range, total: 5}}\n",
    );
    person.windrow("apply -f x.yaml").await.expect(0);
    person.write("x.yaml", "task:\n- {business: push, name: t, open: true}\n");
    person
        .windrow("apply -f x.yaml")
        .await
        .refused(7, &["/open can't change: it is –, not true"]);
}
