//! The contract check against handlers that keep to the protocol and handlers that don't.

use serde_json::{Value, json};

use windrow_core::business::BusinessSpec;
use windrow_core::business::secrets::BusinessSecrets;
use windrow_engine::ports::handling::hook::{CheckLine, CheckResult, HandlerChecker};
use windrow_handlers::sign::Signer;

use crate::http_hooks::{CANARY, SECRET, business, client};
use crate::support_server::{Act, Seen, Server, answer, raw, read_request};

fn verdicts(report: &[CheckLine]) -> Vec<(&'static str, CheckResult)> {
    report.iter().map(|line| (line.check, line.result)).collect()
}

fn is_signed(seen: &Seen) -> bool {
    let number = seen
        .header("webhook-timestamp")
        .and_then(|text| text.parse().ok());
    let (Some(id), Some(timestamp)) = (seen.header("webhook-id"), number) else {
        return false;
    };
    let signer = Signer::new(&[SECRET]).expect("good");
    seen.header("webhook-signature") == signer.signature(id, timestamp, &seen.body).as_deref()
}

/// Verifies signatures, tells its name.
fn good(seen: &Seen) -> Act {
    if is_signed(seen) {
        answer(200, r#"{"name":"push.py 1.2"}"#)
    } else {
        answer(401, "")
    }
}

async fn check(act: impl Fn(&Seen) -> Act + Send + Sync + 'static, more: Value) -> Vec<CheckLine> {
    let server = Server::start(act).await;
    client().check(&business(&server.url(), more, json!({}))).await
}

#[tokio::test]
async fn a_handler_that_keeps_to_the_protocol_passes_every_check() {
    use CheckResult::Ok;
    let report = check(good, json!({"require_signature": true})).await;
    let all = [
        "reachable",
        "ping",
        "unknown_member",
        "signature",
        "keep_alive",
        "latency",
    ];
    assert_eq!(verdicts(&report), all.map(|check| (check, Ok)), "{report:#?}");
    assert!(report[1].detail.contains("push.py 1.2"), "{report:#?}");
    assert!(!format!("{report:?}").contains(CANARY));
}

#[tokio::test]
async fn an_answer_that_is_none_to_a_ping_warns() {
    use CheckResult::{Ok, Warn};
    let envelope = json!({"response_pointer": "/data"});
    for (body, more, expected) in [
        (r#"{"result":"ok"}"#, json!({}), Warn),
        ("[1]", json!({}), Warn),
        ("pong", json!({}), Warn),
        ("{}", json!({}), Ok),
        ("", json!({}), Ok),
        (r#"{"code":0,"data":null}"#, envelope, Ok),
    ] {
        let report = check(move |_| answer(200, body), more).await;
        let line = report
            .iter()
            .find(|line| line.check == "ping")
            .expect("looked at");
        assert_eq!(line.result, expected, "{body}: {line:?}");
        assert!(report.len() > 2, "the other checks go on: {report:#?}");
    }
}

#[tokio::test]
async fn an_unverified_signature_warns_and_fails_only_where_it_is_required() {
    let accepts = |_: &Seen| answer(204, "");
    for (required, expected) in [(false, CheckResult::Warn), (true, CheckResult::Fail)] {
        let report = check(accepts, json!({"require_signature": required})).await;
        let line = report
            .iter()
            .find(|line| line.check == "signature")
            .expect("looked at");
        assert_eq!(line.result, expected, "{line:?}");
        assert!(
            line.advice.as_deref().is_some_and(|hint| hint.contains("401")),
            "{line:?}"
        );
    }
}

#[tokio::test]
async fn a_crash_on_an_unknown_member_fails() {
    let strict = |seen: &Seen| {
        if seen.body.windows(7).any(|part| part == b"x-probe") {
            answer(500, "KeyError")
        } else {
            good(seen)
        }
    };
    let report = check(strict, json!({})).await;
    let line = report
        .iter()
        .find(|line| line.check == "unknown_member")
        .expect("looked at");
    assert_eq!(line.result, CheckResult::Fail);
    assert!(
        line.detail.contains("500") && line.detail.contains("KeyError"),
        "{line:?}"
    );
}

#[tokio::test]
async fn a_handler_that_is_not_there_or_refuses_pings_is_looked_at_no_further() {
    let report = client()
        .check(&business("http://127.0.0.1:1/", json!({}), json!({})))
        .await;
    assert_eq!(
        verdicts(&report),
        [("reachable", CheckResult::Fail)],
        "{report:#?}"
    );
    for refusal in [
        (404, "no such page"),
        (200, "<!doctype html><title>Sign in</title>"),
    ] {
        let report = check(move |_| answer(refusal.0, refusal.1), json!({})).await;
        assert_eq!(
            verdicts(&report),
            [("reachable", CheckResult::Ok), ("ping", CheckResult::Fail)]
        );
    }
}

#[tokio::test]
async fn a_connection_that_is_closed_after_each_answer_warns() {
    let closing = |seen: &Seen| match good(seen) {
        Act::Answer(status, _, body) => Act::Answer(status, vec![("connection", "close".to_owned())], body),
        Act::Hang => Act::Hang,
    };
    let report = check(closing, json!({})).await;
    let line = report
        .iter()
        .find(|line| line.check == "keep_alive")
        .expect("looked at");
    assert_eq!(line.result, CheckResult::Warn, "{line:?}");
}

#[tokio::test]
async fn trusting_any_certificate_warns() {
    let report = check(good, json!({"insecure_skip_verify": true})).await;
    let line = report
        .iter()
        .find(|line| line.check == "certificate")
        .expect("looked at");
    assert_eq!(line.result, CheckResult::Warn, "{line:?}");
}

#[tokio::test]
async fn hooks_with_urls_of_their_own_are_called_too() {
    let (handler, hook) = (Server::start(good).await, Server::always(404, "").await);
    let hooks = json!({"validate": {}, "finished": {"url": hook.url()}});
    let report = client().check(&business(&handler.url(), json!({}), hooks)).await;
    let line = report.last().expect("a line");
    assert_eq!(
        (line.check, line.result),
        ("hook", CheckResult::Fail),
        "{report:#?}"
    );
    assert!(line.detail.contains("task.finished"), "{line:?}");
    assert_eq!(hook.seen().len(), 1);
}

/// Each member that can't be used is named, and no value of a secret header is shown.
#[test]
fn what_can_never_be_called_is_said_member_by_member() {
    let table = [
        (json!({"url": "ftp://x"}), vec!["/url"]),
        (json!({"url": "http://ann:geheim@x/"}), vec!["/url"]),
        (json!({"url": "http://x:99999/"}), vec!["/url"]),
        (json!({"url": "http://x/#top"}), vec!["/url"]),
        (json!({"headers": {"host": "x"}}), vec!["/headers/host"]),
        (
            json!({"headers": {"webhook-id": "x", "a b": "x"}}),
            vec!["/headers/a b", "/headers/webhook-id"],
        ),
        (json!({"headers": {"x": "a\r\nb"}}), vec!["/headers/x"]),
        (
            json!({"headers": {"X-Key": "1", "x-key": "2"}}),
            vec!["/headers/x-key"],
        ),
        (
            json!({"headers": {"Authorization": "1"}}),
            vec!["/secret_headers/authorization"],
        ),
        (json!({"response_pointer": "data"}), vec!["/response_pointer"]),
        (json!({"proxy": "socks5://p:1"}), vec!["/proxy"]),
        (json!({"proxy": "http://ann:geheim@p:1"}), vec!["/proxy"]),
        (json!({"ca_pem": "no certificate"}), vec!["/ca_pem"]),
    ];
    let headers = [("authorization".to_owned(), format!("Bearer {CANARY}"))].into();
    let secrets = BusinessSecrets::new(SECRET.to_owned(), headers);
    let faults = |spec: &BusinessSpec, secrets: &BusinessSecrets| client().faults(spec, secrets);
    let sound = business("http://x/", json!({}), json!({"prepare": {"url": "https://y/"}})).spec;
    assert_eq!(faults(&sound, &secrets), []);
    for (member, pointers) in table {
        let found = faults(&business("http://x/", member.clone(), json!({})).spec, &secrets);
        let found_pointers: Vec<&str> = found.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(found_pointers, pointers, "{member}: {found:?}");
        let shown = format!("{found:?}");
        assert!(!shown.contains("geheim") && !shown.contains(CANARY), "{shown}");
    }
    let hooks = business("http://x/", json!({}), json!({"stopped": {"url": "nowhere"}})).spec;
    assert_eq!(faults(&hooks, &secrets)[0].pointer, "/hooks/stopped/url");
}

#[tokio::test]
async fn of_a_handler_that_breaks_on_the_ping_it_is_told_what_was_sent() {
    let address = raw(|mut stream| async move { drop(read_request(&mut stream).await) }).await;
    let url = format!("http://127.0.0.1:{}/", address.port());
    let report = client().check(&business(&url, json!({}), json!({}))).await;
    assert_eq!(verdicts(&report), [("reachable", CheckResult::Fail)]);
    let advice = report[0].advice.as_deref().expect("an advice");
    assert!(
        advice.contains(r#"POST {"business":"push","type":"ping"}"#) && !advice.contains("TLS"),
        "{advice}"
    );
    assert!(!report[0].detail.contains("TLS"), "{}", report[0].detail);
}
