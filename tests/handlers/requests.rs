//! Templated requests to APIs that know nothing of Windrow: what leaves, what answers mean, and what is never shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use windrow_core::business::request::RequestSpec;
use windrow_core::items::output::Output;
use windrow_core::items::verdict::{FailureClass, Outcome, RetryAdvice};
use windrow_core::template::Secrets;
use windrow_engine::ports::handling::handler::{
    Call, CallFailure, Handler, HandlerFactory, ItemVerdict, Reply, RunContext,
};
use windrow_engine::ports::ownership::gate::Gate;
use windrow_handlers::request::{RequestHandlerFactory, RequestOptions};

use crate::support_server::{
    Act, Server, answer, call, clock, context, failure, items, raw, read_request, rows, single,
};

fn to(request: impl Into<String>) -> RequestSpec {
    RequestSpec {
        call: request.into(),
        ..RequestSpec::default()
    }
}

fn open_in(options: RequestOptions, context: Arc<RunContext>) -> Arc<dyn Handler> {
    RequestHandlerFactory::sharing(options, clock(), Arc::default())
        .open(context)
        .expect("opens")
}

fn open(spec: RequestSpec) -> Arc<dyn Handler> {
    open_in(RequestOptions::new(spec), context(Gate::always_open()))
}

fn keeping() -> Arc<RunContext> {
    let context = context(Gate::always_open());
    Arc::new(RunContext {
        keeps_results: true,
        ..(*context).clone()
    })
}

/// The call for item 3817 with data.
fn with_data(data: &str) -> Call {
    Call {
        rows: rows(3817, &[data]),
        ..single()
    }
}

fn verdict(reply: Reply) -> ItemVerdict {
    match reply {
        Reply::Items(mut replies) => replies.verdicts.remove(0).1,
        other => panic!("no verdict: {other:?}"),
    }
}

#[tokio::test]
async fn a_request_is_made_of_the_items_data() {
    let server = Server::always(204, "").await;
    let headers = [
        ("authorization", "Bearer {secret.vendor}"),
        ("x-note", "{note}"),
        ("x-fixed", "1"),
    ];
    let spec = RequestSpec {
        headers: headers
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        json: Some(
            r#"{"qty": {qty:number}, "note": {note}, "n": {index}, "t": {param.template}}"#.to_owned(),
        ),
        ..to(format!(
            "PUT http://{}/v1/orders/{{id}}/ship?by={{by}}&a={{attempt}}",
            server.address
        ))
    };
    let options = RequestOptions {
        secrets: Secrets([("vendor".to_owned(), "geheim".to_owned())].into()),
        ..RequestOptions::new(spec)
    };
    let handler = open_in(options, context(Gate::always_open()));
    let data = r#"{"id":"a/b ü","by":"x&y=1","qty":"3","note":"say \"hi\""}"#;
    assert_eq!(handler.process(with_data(data)).await, Reply::AllOk);
    let seen = server.seen().remove(0);
    assert_eq!(seen.method, "PUT");
    assert_eq!(
        seen.uri.to_string(),
        "/v1/orders/a%2Fb%20%C3%BC/ship?by=x%26y%3D1&a=2"
    );
    assert_eq!(
        seen.body,
        r#"{"qty": 3, "note": "say \"hi\"", "n": 3817, "t": "bf26"}"#
    );
    for (name, value) in [
        ("authorization", "Bearer geheim"),
        ("x-note", "say \"hi\""),
        ("x-fixed", "1"),
        ("content-type", "application/json"),
        ("idempotency-key", "k7f3q2-t1042-3817"),
        ("content-length", "56"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    let ours = seen
        .headers
        .keys()
        .filter(|name| name.as_str().starts_with("windrow-"));
    assert_eq!(
        ours.count(),
        0,
        "an API of somebody else is told nothing of this run"
    );
}

#[tokio::test]
async fn a_template_may_set_what_would_be_set_anyway() {
    let server = Server::always(200, "").await;
    let headers = [
        ("Idempotency-Key", "o-{id}"),
        ("content-type", "text/xml"),
        ("user-agent", "me"),
    ];
    let spec = RequestSpec {
        headers: headers
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        text: Some("<order id='{id}'/>".to_owned()),
        ..to(format!("POST http://{}/", server.address))
    };
    assert_eq!(open(spec).process(with_data(r#"{"id":"7"}"#)).await, Reply::AllOk);
    let seen = server.seen().remove(0);
    assert_eq!(seen.body, "<order id='7'/>");
    for (name, value) in [
        ("idempotency-key", "o-7"),
        ("content-type", "text/xml"),
        ("user-agent", "me"),
    ] {
        assert_eq!(seen.header(name), Some(value));
        assert_eq!(seen.headers.get_all(name).iter().count(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_request_without_a_body_leaves_as_one() {
    let server = Server::always(200, "").await;
    for (method, length) in [
        ("GET", None),
        ("DELETE", None),
        ("POST", Some("0")),
        ("PUT", Some("0")),
    ] {
        let handler = open(to(format!("{method} http://{}/x", server.address)));
        assert_eq!(handler.process(single()).await, Reply::AllOk, "{method}");
        let seen = server.seen().pop().expect("seen");
        assert_eq!(
            (seen.method.as_str(), seen.header("content-length")),
            (method, length)
        );
        assert!(seen.body.is_empty() && seen.header("transfer-encoding").is_none());
    }
}

#[tokio::test]
async fn an_item_that_fills_no_template_is_failed_unsent() {
    let server = Server::always(200, "").await;
    let handler = open(to(format!("GET http://{}/{{id}}", server.address)));
    for (data, why) in [
        (r#"{"ID":"7"}"#, "\"id\" is missing"),
        (r#"{"id":".."}"#, "leads elsewhere"),
        (r#"{"id":""}"#, "leads elsewhere"),
        (r#"{"id":null}"#, "is null"),
        (r#"[1,2]"#, "\"id\" is missing"),
        ("5", "\"id\" is missing"),
    ] {
        let (kind, failure) = failure(handler.process(with_data(data)).await);
        assert_eq!(
            (kind, failure.code.as_ref()),
            ("unsendable", "TEMPLATE_VALUE"),
            "{data}"
        );
        assert!(failure.message.contains(why), "{}", failure.message);
    }
    let (kind, _) = failure(handler.process(single()).await);
    assert_eq!(kind, "unsendable", "an item without data");
    assert!(server.seen().is_empty() && server.connections() == 0);
}

#[tokio::test]
async fn each_status_has_its_meaning() {
    let table = [
        (429, "back pressure"),
        (502, "unavailable"),
        (503, "unavailable"),
        (408, "unclear"),
        (425, "unclear"),
        (500, "unclear"),
        (504, "unclear"),
        (507, "unclear"),
        (401, "rejected"),
        (403, "rejected"),
        (404, "rejected"),
        (405, "rejected"),
        (407, "rejected"),
        (415, "rejected"),
        (501, "rejected"),
        (301, "rejected"),
        (304, "rejected"),
        (400, "faulty"),
        (409, "faulty"),
        (410, "faulty"),
        (422, "faulty"),
        (451, "faulty"),
    ];
    for (status, kind) in table {
        let server = Server::always(status, r#"{"error":"because of that"}"#).await;
        let handler = open(to(format!("POST http://{}/", server.address)));
        let (found, failure) = failure(handler.process(single()).await);
        assert_eq!(
            (found, failure.code.as_ref()),
            (kind, format!("HTTP_{status}").as_str())
        );
        if status != 304 {
            assert!(failure.message.contains("because of that"), "{}", failure.message);
        }
    }
    for status in [200, 201, 202, 204] {
        let server = Server::always(status, "").await;
        let handler = open(to(format!("POST http://{}/", server.address)));
        assert_eq!(handler.process(single()).await, Reply::AllOk, "{status}");
    }
}

#[tokio::test]
async fn nothing_is_there_until_something_was() {
    let status = Arc::new(AtomicU16::new(404));
    let told = status.clone();
    let server = Server::start(move |_| answer(told.load(Ordering::SeqCst), "no such order")).await;
    let handler = open(to(format!("POST http://{}/", server.address)));
    assert_eq!(failure(handler.process(single()).await).0, "rejected");
    status.store(422, Ordering::SeqCst);
    assert_eq!(failure(handler.process(single()).await).0, "faulty");
    status.store(200, Ordering::SeqCst);
    assert_eq!(handler.process(single()).await, Reply::AllOk);
    status.store(422, Ordering::SeqCst);
    assert_eq!(failure(handler.process(single()).await).0, "failed");
    status.store(404, Ordering::SeqCst);
    let (kind, failure) = failure(handler.process(single()).await);
    assert_eq!(kind, "failed");
    assert!(
        failure
            .message
            .starts_with("the API answered 404 Not Found `no such order`"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn people_may_say_what_a_status_means() {
    let server = Server::start(|seen| {
        let status = seen.uri.path()[1..].parse().expect("a status");
        Act::Answer(status, vec![("retry-after", "7".to_owned())], "{}".to_owned())
    })
    .await;
    let process = async |status: u16| {
        let mut spec = to(format!("POST http://{}/{status}", server.address));
        spec.statuses.ok = "409,304".parse().expect("codes");
        spec.statuses.skip = "404,500".parse().expect("codes");
        spec.statuses.retry = "420-423,202".parse().expect("codes");
        open(spec).process(single()).await
    };
    assert_eq!(
        (process(409).await, process(304).await),
        (Reply::AllOk, Reply::AllOk)
    );
    for status in [404, 500] {
        assert_eq!(
            verdict(process(status).await),
            ItemVerdict::Settled(Outcome::Skipped)
        );
    }
    for status in [202, 423] {
        let ItemVerdict::Failed { failure, advice } = verdict(process(status).await) else {
            panic!("no failure")
        };
        let after = Some(Duration::from_secs(7));
        assert_eq!(
            (failure.code.as_ref(), advice),
            (format!("HTTP_{status}").as_str(), RetryAdvice::Retry { after })
        );
    }
    assert_eq!(process(200).await, Reply::AllOk);
    assert_eq!(failure(process(424).await).0, "faulty");
}

#[tokio::test]
async fn pace_and_absence_carry_the_wait_that_was_asked_for() {
    for status in [429, 503] {
        let act = Act::Answer(status, vec![("retry-after", "7".to_owned())], String::new());
        let server = Server::start(move |_| act.clone()).await;
        let Reply::Failed(failed) = open(to(format!("POST http://{}/", server.address)))
            .process(single())
            .await
        else {
            panic!("not failed")
        };
        let after = match *failed {
            CallFailure::BackPressure { after, .. } if status == 429 => after,
            CallFailure::Failed {
                class: FailureClass::Unavailable,
                after,
                ..
            } => after,
            other => panic!("{other:?}"),
        };
        assert_eq!(after, Some(Duration::from_secs(7)), "{status}");
    }
}

async fn output(body: &str, pointer: &str) -> Reply {
    let server = Server::always(200, body).await;
    let spec = RequestSpec {
        result: pointer.to_owned(),
        ..to(format!("GET http://{}/", server.address))
    };
    open_in(RequestOptions::new(spec), keeping())
        .process(single())
        .await
}

#[tokio::test]
async fn the_output_is_the_answer_or_the_part_that_was_named() {
    let table = [
        (r#"{ "data": {"id": 7} }"#, "", r#"{"data":{"id":7}}"#),
        (r#"{ "data": {"id": 7} }"#, "/data/id", "7"),
        (r#"{"data":null}"#, "/data", "null"),
        ("", "", "null"),
        ("  \n", "", "null"),
        ("plain\ntext", "", r#""plain\ntext""#),
        ("<html>", "", r#""<html>""#),
    ];
    for (body, pointer, json) in table {
        let wanted = ItemVerdict::SucceededWith(Output::Json(json.into()));
        assert_eq!(verdict(output(body, pointer).await), wanted, "{body}");
    }
    for (body, pointer) in [(r#"{"data":1}"#, "/id"), ("text", "/id"), ("", "/id")] {
        let (kind, failure) = failure(output(body, pointer).await);
        assert_eq!(
            (kind, failure.code.as_ref()),
            ("bad reply", "BAD_REPLY"),
            "{body}"
        );
    }
    let server = Server::always(200, "not looked at").await;
    let spec = RequestSpec {
        result: "/id".to_owned(),
        ..to(format!("GET http://{}/", server.address))
    };
    assert_eq!(
        open(spec).process(single()).await,
        Reply::AllOk,
        "nobody keeps it"
    );
}

#[tokio::test]
async fn an_answer_that_is_too_large_still_settles_its_item() {
    let large = format!("\"{}\"", "x".repeat(2 << 20));
    let told = verdict(output(&large, "").await);
    assert!(
        matches!(told, ItemVerdict::SucceededWith(Output::TooLarge(_))),
        "{told:?}"
    );
    let (kind, failure) = failure(output(&large, "/id").await);
    assert_eq!((kind, failure.code.as_ref()), ("bad reply", "REPLY_TOO_BIG"));
}

#[tokio::test]
async fn an_api_that_says_back_what_it_was_sent_does_not_make_a_secret_known() {
    let server = Server::start(|seen| {
        let (sent, path) = (
            seen.header("authorization").unwrap_or_default(),
            seen.uri.to_string(),
        );
        let status = path[1..4].parse().expect("a status");
        let body = serde_json::json!({"sent": sent, "path": path, "pad": "x"}).to_string();
        let encoding = if status == 201 { sent } else { "identity" };
        Act::Answer(
            status,
            vec![
                ("location", format!("http://other/?k={sent}")),
                ("content-encoding", encoding.to_owned()),
            ],
            body,
        )
    })
    .await;
    let secret = r#"ge"heim/42 tokenvalue99"#;
    for status in [200, 201, 302, 401, 409, 429, 500, 503] {
        let spec = RequestSpec {
            headers: [("authorization".to_owned(), "{secret.v}".to_owned())].into(),
            ..to(format!("GET http://{}/{status}/x?k={{secret.v}}", server.address))
        };
        let options = RequestOptions {
            secrets: Secrets([("v".to_owned(), secret.to_owned())].into()),
            ..RequestOptions::new(spec)
        };
        assert!(!format!("{options:?}").contains("heim"));
        let said = format!("{:?}", open_in(options, keeping()).process(single()).await);
        assert_eq!(
            server
                .seen()
                .last()
                .and_then(|seen| seen.header("authorization").map(str::to_owned))
                .as_deref(),
            Some(secret)
        );
        assert!(said.contains("••••"), "{status}: {said}");
        assert!(
            !said.contains("heim") && !said.contains("tokenvalue99"),
            "{status}: {said}"
        );
    }
}

#[tokio::test]
async fn what_never_left_and_what_may_have_are_told_apart() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("bound");
    let (kind, said) = failure(open(to(format!("POST http://{nobody}/"))).process(single()).await);
    assert_eq!((kind, said.code.as_ref()), ("unreachable", "CONNECT"));
    for request in ["POST", "GET"] {
        let silent = raw(|mut stream| async move {
            drop(read_request(&mut stream).await);
            std::future::pending::<()>().await;
        })
        .await;
        let late = Call {
            timeout: Duration::from_millis(300),
            ..single()
        };
        let (kind, said) = failure(
            open(to(format!("{request} http://{silent}/")))
                .process(late)
                .await,
        );
        assert_eq!((kind, said.code.as_ref()), ("unclear", "TIMEOUT"), "{request}");
        let broken = raw(|mut stream| async move { drop(read_request(&mut stream).await) }).await;
        let (kind, said) = failure(
            open(to(format!("{request} http://{broken}/")))
                .process(single())
                .await,
        );
        assert_eq!((kind, said.code.as_ref()), ("unclear", "RESET"), "{request}");
    }
}

#[tokio::test]
async fn nothing_leaves_once_the_gate_is_shut() {
    let server = Server::always(200, "").await;
    for request in ["POST", "GET"] {
        let gate = Gate::always_open();
        gate.close();
        let options = RequestOptions::new(to(format!("{request} http://{}/", server.address)));
        let reply = open_in(options, context(gate)).process(single()).await;
        assert_eq!(reply, Reply::Failed(Box::new(CallFailure::NotSent)));
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn several_items_are_refused_and_nothing_leaves() {
    let server = Server::always(200, "").await;
    let handler = open(to(format!("POST http://{}/", server.address)));
    let (kind, failure) = failure(handler.process(call(items(&[(1, 2, 1)]))).await);
    assert_eq!((kind, failure.code.as_ref()), ("rejected", "ONE_ITEM"));
    assert!(failure.message.contains("batch"), "{}", failure.message);
    let options = RequestOptions {
        batch: 2,
        ..RequestOptions::new(to("POST http://127.0.0.1/"))
    };
    assert!(
        RequestHandlerFactory::sharing(options, clock(), Arc::default())
            .check()
            .is_err()
    );
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn what_can_never_be_made_is_told_before_the_first_call() {
    let refused = |spec: RequestSpec, secrets: &[(&str, &str)]| {
        let secrets = secrets
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let options = RequestOptions {
            secrets: Secrets(secrets),
            ..RequestOptions::new(spec)
        };
        let factory = RequestHandlerFactory::sharing(options, clock(), Arc::default());
        factory
            .open(context(Gate::always_open()))
            .err()
            .expect("refused")
            .to_string()
    };
    for (request, secrets, why) in [
        ("POST http://user:pass@h/", vec![], "user or password"),
        ("POST ftp://h/", vec![], "neither http nor https"),
        ("POST http://h:99999/", vec![], "port"),
        (
            "POST http://h/{secret.a}",
            vec![],
            "the secret \"a\" of {secret.a} is not set",
        ),
        (
            "POST http://h/",
            vec![("a", "geheim")],
            "nothing uses the secret \"a\"",
        ),
        ("POST http://h/{secret.a}", vec![("a", "abc")], "shorter than 4"),
        ("POST http://h/{param.a}", vec![], "no parameter \"a\""),
    ] {
        let said = refused(to(request), &secrets);
        assert!(said.contains(why), "{request}: {said}");
    }
}
