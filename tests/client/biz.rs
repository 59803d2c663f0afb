//! `windrow biz`: register, look, edit, check, archive, rotate.

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::program::Person;
use crate::support::{Node, Recipe};

/// The newest change of a business, as the audit has it.
async fn newest(node: &Node, name: &str) -> Value {
    node.admin
        .get(&format!("/v1/businesses/{name}/revisions?limit=1"))
        .await
        .expect(200)["items"][0]
        .clone()
}

/// A handler that dies of members that it doesn't know.
fn touchy(seen: &crate::business::Seen) -> Act {
    let known = [
        "type", "protocol", "business", "task", "item", "items", "at", "id", "windrow", "v", "mode",
    ];
    let is_known = |name: &String| known.contains(&name.as_str());
    let has_unknown = seen
        .body
        .as_object()
        .is_some_and(|body| !body.keys().all(is_known));
    if has_unknown { Act::status(500) } else { Act::ok() }
}

#[tokio::test]
async fn a_business_is_registered_with_the_check_on_stderr_and_the_secret_on_stdout() {
    let business = Business::willing().await;
    let node = Node::start().await;
    let person = Person::admin(&node);
    let url = business.url();
    let words = [
        "biz",
        "register",
        "push",
        "--url",
        &url,
        "--batch",
        "16",
        "--call-timeout",
        "3s",
    ];
    let more = [
        "--rate",
        "500/s",
        "--hook",
        "prepare",
        "--display-name",
        "推送",
        "--reason",
        "new customer",
    ];
    let done = person.run(&[&words[..], &more].concat(), "").await.expect(0);
    assert!(
        done.stdout.starts_with("whsec_") && done.stdout.lines().count() == 1,
        "{}",
        done.stdout
    );
    assert!(
        done.stderr.starts_with(" ✓ reachable           answered in "),
        "{}",
        done.stderr
    );
    assert!(
        done.stderr
            .contains("\n ! signature           a bad signature was accepted"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("\nregistered push\n"), "{}", done.stderr);
    let made = node.admin.get("/v1/businesses/push").await.expect(200);
    assert_eq!(
        made["defaults"],
        json!({"rate": "500/s", "batch": 16, "timeout": "3s"})
    );
    assert_eq!(
        (&made["display_name"], &made["hooks"]),
        (&json!("推送"), &json!({"prepare": {}}))
    );
    assert_eq!(newest(&node, "push").await["reason"], "new customer");
    person
        .run(&words, "")
        .await
        .refused(4, &["`windrow biz edit push` changes it"]);
}

#[tokio::test]
async fn a_handler_that_breaks_the_contract_is_not_registered_but_by_force() {
    let business = Business::start(|_| Act::status(500)).await;
    let node = Node::start().await;
    let person = Person::admin(&node);
    let words = format!("biz register push --url {}", business.url());
    let done = person
        .windrow(&words)
        .await
        .refused(11, &["push was not registered: ", "--force"]);
    assert!(done.stderr.contains("\n ✗ ping "), "{}", done.stderr);
    node.admin
        .get("/v1/businesses/push")
        .await
        .problem(404, "not-found");
    let made = person
        .windrow(&format!("{words} --force -o json"))
        .await
        .expect(0)
        .json();
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"), "{made}");
    let report = person.windrow("biz check push").await.expect(11);
    assert!(
        report.stdout.contains(" ✗ ping ") && report.stdout.contains("  try  "),
        "{}",
        report.stdout
    );
    assert!(
        report.stderr.contains("push violates the contract"),
        "{}",
        report.stderr
    );
    business.becomes(|_| Act::ok());
    person.windrow("biz check push").await.expect(0);
    let names = person.windrow("biz check push -o name").await.expect(0).stdout;
    assert!(names.starts_with("reachable\nping\n"), "{names}");
    assert_eq!(
        person.windrow("biz check push -o json").await.expect(0).json()["passed"],
        true
    );
    business.becomes(touchy);
    assert!(
        person
            .windrow("biz check push")
            .await
            .stdout
            .contains("unknown member")
    );
}

#[tokio::test]
async fn a_request_is_registered_without_a_signing_secret() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    let call = "POST http://127.0.0.1:9/{id}";
    let words = ["biz", "register", "ship", "--request", call, "--force"];
    let done = person.run(&words, "").await.expect(0);
    let said = done.stdout + &done.stderr;
    assert!(
        !said.contains("whsec_") && !said.contains("signing secret"),
        "{said}"
    );
    let rotated = person.windrow("biz rotate-secret ship").await;
    rotated.refused(
        4,
        &[
            "ship has no signing secret",
            "only businesses with a url or hooks",
        ],
    );
    let hooked = person
        .windrow("biz edit ship --hook finished=http://127.0.0.1:9/h")
        .await
        .expect(0);
    let secret = "\n  signing secret, shown only once  whsec_";
    assert!(
        hooked.stdout.contains(secret) && !hooked.stdout.contains("secret none"),
        "{}",
        hooked.stdout
    );
}

#[tokio::test]
async fn a_command_is_registered_by_its_name_and_sealed_headers_never_show() {
    let recipe = Recipe::new()
        .config("[handler.command]\nenabled = true\n[handler.command.commands.report]\ncmd = [\"cat\"]");
    let node = recipe.start().await;
    let person = Person::admin(&node);
    person
        .windrow("biz register report --command report --pool default")
        .await
        .expect(0);
    assert!(
        person
            .windrow("biz list")
            .await
            .expect(0)
            .stdout
            .contains("command report")
    );
    let file = person.write("headers", "authorization: Bearer hush\n");
    let words = format!("biz register push --url http://127.0.0.1:9/ --secret-header-file {file} --force -v");
    person.windrow(&words).await.expect(0);
    let card = person.windrow("biz show push").await.expect(0).stdout;
    assert!(
        card.contains("authorization ***") && !card.contains("hush"),
        "{card}"
    );
    person
        .windrow("biz register x --url http://h/ --command c")
        .await
        .expect(2);
    person
        .windrow("biz register x --force")
        .await
        .refused(7, &["url"]);
    person
        .windrow("biz register x --url http://127.0.0.1:9/ --hook start")
        .await
        .refused(2, &["prepare"]);
    person
        .windrow("biz register x --url http://h/ --secret-header-file none")
        .await
        .refused(7, &["none"]);
}

#[tokio::test]
async fn an_edit_prints_what_it_changed() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business(
        "push",
        &business.url(),
        json!({"defaults": {"rate": "500/s", "batch": 4}}),
    )
    .await;
    let person = Person::admin(&node);
    let words = "biz edit push --rate 1000/s --limit-concurrency 64 --unset defaults.batch --reason peak";
    let done = person.windrow(words).await.expect(0);
    let lines: Vec<&str> = done.stdout.lines().collect();
    let expected = [
        "push  changed",
        "  defaults.batch  4 → –",
        "  defaults.rate  500/s → 1000/s",
        "  limits.concurrency  – → 64",
    ];
    assert_eq!(lines, expected);
    assert_eq!(newest(&node, "push").await["reason"], "peak");
    assert_eq!(
        person
            .windrow("biz edit push --rate 1000/s")
            .await
            .expect(0)
            .stdout,
        "push  unchanged\n"
    );
    let body = person
        .windrow("biz edit push --pool batch -o json")
        .await
        .expect(0)
        .json();
    assert_eq!((&body["pool"], &body["revision"]), (&json!("batch"), &json!(3)));
    person
        .windrow("biz edit push")
        .await
        .refused(2, &["nothing to change"]);
    person
        .windrow("biz edit gone --rate 1/s")
        .await
        .refused(3, &["gone"]);
    person
        .windrow("biz edit push --default speed=9")
        .await
        .refused(7, &["speed"]);
    person.windrow("biz edit push --rate fast").await.expect(2);
}

#[tokio::test]
async fn an_edit_of_a_handler_that_fails_warns_of_it() {
    let (business, node) = (Business::willing().await, Node::start().await);
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let edit = async |words: &str| person.windrow(&format!("biz edit push {words}")).await.expect(0);
    let told = edit("--url http://127.0.0.1:1/w --dry-run").await;
    assert!(!told.stderr.contains("warning"), "{}", told.stderr);
    let told = edit("--url http://127.0.0.1:1/w").await;
    assert!(told.stdout.starts_with("push  changed\n"), "{}", told.stdout);
    for part in [
        "warning: the handler of push fails",
        "reachable: ",
        "; windrow biz check push\n",
    ] {
        assert!(told.stderr.contains(part), "{}", told.stderr);
    }
    assert_eq!(told.stderr.matches("warning").count(), 1, "{}", told.stderr);
    for quiet in [
        "--url http://127.0.0.1:2/w -q".to_owned(),
        "--batch 3".to_owned(),
        format!("--url {}", business.url()),
    ] {
        let told = edit(&quiet).await;
        assert!(!told.stderr.contains("warning"), "{quiet}: {}", told.stderr);
    }
}

#[tokio::test]
async fn a_business_is_shown_as_a_card_and_verbatim() {
    let business = Business::willing().await;
    let node = Node::start().await;
    let more = json!({"display_name": "Push", "headers": {"x-team": "growth"}, "hooks": {"prepare": {"timeout": "30m"}}});
    node.business("push", &business.url(), more).await;
    let person = Person::admin(&node);
    let card = person.windrow("biz show push").await.expect(0).stdout;
    assert!(card.starts_with("push  Push\n"), "{card}");
    assert!(
        card.contains("x-team growth") && card.contains("prepare (timeout 30m)"),
        "{card}"
    );
    let body = person.windrow("biz show push -o json").await.expect(0).stdout;
    assert_eq!(
        body.trim_end().as_bytes(),
        &node.admin.get("/v1/businesses/push").await.body[..],
        "verbatim"
    );
    person.windrow("biz show gone").await.refused(3, &["gone"]);
    node.business("plain", &business.url(), json!({})).await;
    let plain = person.windrow("biz show plain").await.expect(0).stdout;
    assert!(plain.starts_with("plain\n"), "{plain}");
    let table = person.windrow("biz list").await.expect(0).stdout;
    assert!(table.starts_with("NAME   DISPLAY NAME  HANDLER "), "{table}");
    let rows = person.windrow("biz list -o csv").await.expect(0).stdout;
    assert!(
        rows.contains("name,display_name,handler,pool,revision,updated,archived\nplain,,")
            && rows.contains("\npush,Push,"),
        "{rows}"
    );
}

#[tokio::test]
async fn a_business_is_archived_shown_again_and_given_a_new_secret() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let done = person.windrow("biz archive push --reason season").await.expect(0);
    assert!(done.stdout.starts_with("archived push: "), "{}", done.stdout);
    assert_eq!(newest(&node, "push").await["reason"], "season");
    assert_eq!(person.windrow("biz list -o name").await.expect(0).stdout, "");
    assert_eq!(
        person
            .windrow("biz list --archived -o name")
            .await
            .expect(0)
            .stdout,
        "push\n"
    );
    person.windrow("biz unarchive push").await.expect(0);
    let secret = person.windrow("biz rotate-secret push").await.expect(0);
    assert!(
        secret.stdout.starts_with("whsec_") && secret.stderr.contains("24 hours"),
        "{secret:?}"
    );
    let named = person
        .windrow("biz rotate-secret push -o name --quiet")
        .await
        .expect(0);
    assert_eq!(named.stdout, "push\n");
    assert!(
        named.stderr.contains("whsec_"),
        "a secret is never lost: {}",
        named.stderr
    );
    let revisions = person.windrow("biz revisions push").await.expect(0).stdout;
    assert!(revisions.starts_with("REVISION  AT "), "{revisions}");
    for part in ["business.archive", "season", "a secret"] {
        assert!(revisions.contains(part), "{part:?} is not in\n{revisions}");
    }
    let last = person
        .windrow("biz revisions push -o name --limit 1 --quiet")
        .await
        .expect(0);
    assert_eq!((last.stdout.as_str(), last.stderr.as_str()), ("5\n", ""));
    person.windrow("biz archive gone").await.refused(3, &["gone"]);
}

#[tokio::test]
async fn a_viewer_looks_and_changes_nothing() {
    let node = Node::start().await;
    node.business("push", "http://127.0.0.1:9/", json!({})).await;
    let viewer = node.client("viewer", None).await;
    let viewer = Person::new()
        .env("WINDROW_SERVER", &node.url)
        .env("WINDROW_TOKEN", viewer.token.as_ref().unwrap());
    viewer.windrow("biz show push").await.expect(0);
    for words in [
        "edit push --rate 1/s",
        "archive push",
        "rotate-secret push",
        "register x --url http://h/",
    ] {
        viewer
            .windrow(&format!("biz {words}"))
            .await
            .refused(5, &["admin"]);
    }
}

#[tokio::test]
async fn what_is_only_tried_changes_nothing() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let before = node.admin.get("/v1/businesses/push").await.expect(200);
    let person = Person::admin(&node);
    for words in [
        "edit push --rate 7/s",
        "archive push",
        "register new --url http://127.0.0.1:9/",
    ] {
        let done = person.windrow(&format!("biz {words} --dry-run")).await.expect(0);
        assert!(
            done.stderr.contains("dry run: nothing was changed"),
            "{words}: {}",
            done.stderr
        );
        assert!(
            serde_json::from_str::<Value>(&done.stdout).unwrap()["name"].is_string(),
            "{words}: {}",
            done.stdout
        );
        let plan = person
            .windrow(&format!("biz {words} --dry-run -o json"))
            .await
            .expect(0)
            .json();
        assert_eq!(plan["dry_run"], true, "{words}");
    }
    let list =
        json!([{"name": "push", "pool": "batch"}, {"name": "new", "url": "http://127.0.0.1:9/"}]).to_string();
    let done = person
        .run(&["biz", "apply", "-f", "-", "--dry-run"], &list)
        .await
        .expect(0);
    assert!(
        done.stdout.contains("\"batch\"") && done.stdout.contains("\"new\""),
        "{}",
        done.stdout
    );
    assert_eq!(node.admin.get("/v1/businesses/push").await.expect(200), before);
    node.admin
        .get("/v1/businesses/new")
        .await
        .problem(404, "not-found");
    assert_eq!(business.seen().len(), 0, "no handler was called");
    person
        .windrow("biz edit push --default speed=9 --dry-run")
        .await
        .refused(7, &["speed"]);
    // A secret can't be tried: the node says so, or would really make it.
    person
        .windrow("biz rotate-secret push --dry-run")
        .await
        .refused(4, &["support a dry run of"]);
}

#[tokio::test]
async fn who_may_not_change_a_business_hears_the_role_that_may() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    for role in ["reader", "viewer", "operator"] {
        let client = node.client(role, None).await;
        let person = Person::new()
            .env("WINDROW_SERVER", &node.url)
            .env("WINDROW_TOKEN", client.token.as_ref().unwrap());
        person
            .windrow("biz edit push --limit-rate 5/s")
            .await
            .refused(5, &[&format!("has the role {role}; this requires admin")]);
    }
}

#[tokio::test]
async fn a_business_that_looks_for_another_is_sent_to_its_own() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let client = node.client("business", Some("push")).await;
    let person = Person::new()
        .env("WINDROW_SERVER", &node.url)
        .env("WINDROW_TOKEN", client.token.as_ref().unwrap());
    let done = person.windrow("biz show mail").await;
    assert!(!done.stderr.contains("biz list"), "{done:?}");
    done.refused(3, &["`windrow biz show push`", "this token is limited to push"]);
    person.windrow("biz show push").await.expect(0);
}
