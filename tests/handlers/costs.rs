//! Use of calls, read from what services, handlers and workers answer.

use std::sync::Arc;

use serde_json::json;

use windrow_core::business::request::RequestSpec;
use windrow_core::items::output::Output;
use windrow_core::items::verdict::Outcome;
use windrow_core::meter::class::End;
use windrow_core::meter::metering::Metering;
use windrow_engine::ports::handling::handler::{
    Call, Handler, HandlerFactory, ItemVerdict, Reply, RunContext, Told,
};
use windrow_engine::ports::ownership::gate::Gate;
use windrow_handlers::http::{HttpHandlerFactory, HttpOptions};
use windrow_handlers::request::{RequestHandlerFactory, RequestOptions};

use crate::command_support::Setup;
use crate::support_server::{
    Act, Server, answer, call, clock, context, failure, items, raw, read_request, rows, single,
};

/// Answer of a model.
const CHAT: &str = r#"{"id":"c1","usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21}}"#;

fn metering(value: serde_json::Value) -> Metering {
    serde_json::from_value(value).expect("a metering")
}

/// Tokens by an expression.
fn total_tokens() -> Metering {
    metering(json!({"cost_from": ["tokens = {answer./usage/total_tokens}"]}))
}

fn metered(metering: Metering, keeps_results: bool) -> Arc<RunContext> {
    Arc::new(RunContext {
        metering: Arc::new(metering.into()),
        keeps_results,
        ..(*context(Gate::always_open())).clone()
    })
}

fn requests_to(url: &str, spec: RequestSpec, context: Arc<RunContext>) -> Arc<dyn Handler> {
    let spec = RequestSpec {
        call: format!("POST {url}"),
        ..spec
    };
    RequestHandlerFactory::sharing(RequestOptions::new(spec), clock(), Arc::default())
        .open(context)
        .expect("opens")
}

fn requests(server: &Server, metering: Metering) -> Arc<dyn Handler> {
    requests_to(&server.url(), RequestSpec::default(), metered(metering, false))
}

fn calls(server: &Server, metering: Metering, batch: u32) -> Arc<dyn Handler> {
    let options = HttpOptions {
        batch,
        ..HttpOptions::new(server.url())
    };
    HttpHandlerFactory::new(options, clock())
        .open(metered(metering, false))
        .expect("opens")
}

fn told(reply: Reply) -> Told {
    match reply {
        Reply::Told(told) => *told,
        other => panic!("nothing was told: {other:?}"),
    }
}

fn used(reply: Reply) -> Vec<Option<String>> {
    let used = told(reply).used;
    used.iter()
        .map(|amount| amount.map(|amount| amount.to_string()))
        .collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

fn with_row(row: &str) -> Call {
    Call {
        rows: rows(3817, &[row]),
        ..single()
    }
}

#[tokio::test]
async fn a_request_says_what_it_used_by_body_header_row_and_its_own_length() {
    let act = Act::Answer(200, vec![("X-Cost", "0.0021".to_owned())], CHAT.to_owned());
    let server = Server::start(move |_| act.clone()).await;
    let metering = metering(json!({"cost_from": [
        "tokens = {answer./usage/prompt_tokens} + 4*{answer./usage/completion_tokens}",
        "eur = {answer.header.x-cost}",
        "sent = {request:bytes}",
        "chars = {prompt:chars}",
    ]}));
    let spec = RequestSpec {
        json: Some(r#"{"p": {prompt}}"#.to_owned()),
        ..RequestSpec::default()
    };
    let handler = requests_to(&server.url(), spec, metered(metering, false));
    let before = handler.request_bytes(&with_row(r#"{"prompt":"häuf"}"#));
    let told = told(handler.process(with_row(r#"{"prompt":"häuf"}"#)).await);
    assert_eq!(told.reply, Reply::AllOk);
    let length = server.seen()[0].body.len();
    assert_eq!(before, Some(length as u64), "it is known before the call too");
    let length = length.to_string();
    let texts: Vec<String> = told
        .used
        .iter()
        .flatten()
        .map(|amount| amount.to_string())
        .collect();
    // Meters are in the order of their names.
    assert_eq!(texts, ["4", "0.0021", &length, "57"]);
}

#[tokio::test]
async fn a_fault_of_the_request_says_its_use_and_a_refusal_or_an_outage_none() {
    for (status, kind) in [(400, "faulty"), (409, "faulty"), (422, "faulty")] {
        let server = Server::always(status, CHAT).await;
        let told = told(requests(&server, total_tokens()).process(single()).await);
        assert_eq!(failure(told.reply).0, kind, "{status}");
        assert_eq!(told.used.iter().flatten().count(), 1, "{status}");
    }
    for status in [429, 500, 502, 503, 504] {
        let server = Server::always(status, CHAT).await;
        for handler in [
            requests(&server, total_tokens()),
            calls(&server, total_tokens(), 1),
        ] {
            let reply = handler.process(single()).await;
            assert!(matches!(reply, Reply::Failed(_)), "{status}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn a_value_that_is_missing_is_no_error_of_its_item() {
    for body in [
        "",
        "plain text",
        "{}",
        r#"{"usage":null}"#,
        r#"{"usage":{"total_tokens":"many"}}"#,
    ] {
        let server = Server::always(200, body).await;
        let told = told(requests(&server, total_tokens()).process(single()).await);
        assert_eq!((told.reply, told.used), (Reply::AllOk, vec![None]), "{body}");
    }
}

#[tokio::test]
async fn an_output_that_is_kept_says_its_use_too() {
    let server = Server::always(200, CHAT).await;
    let spec = RequestSpec {
        result: "/id".to_owned(),
        ..RequestSpec::default()
    };
    let handler = requests_to(&server.url(), spec, metered(total_tokens(), true));
    let told = told(handler.process(single()).await);
    let Reply::Items(replies) = told.reply else {
        panic!("no verdicts: {:?}", told.reply)
    };
    let output = Output::Json(r#""c1""#.into());
    assert_eq!(replies.verdicts[0].1, ItemVerdict::SucceededWith(output));
    assert_eq!(told.used.iter().flatten().count(), 1);
}

#[tokio::test]
async fn a_body_that_is_only_wanted_for_its_use_never_fails_its_item() {
    let large = format!(
        r#"{{"x":"{}","usage":{{"total_tokens":3}}}}"#,
        "x".repeat(2 << 20)
    );
    let fits = format!(
        r#"{{"x":"{}","usage":{{"total_tokens":3}}}}"#,
        "x".repeat(900_000)
    );
    for (body, tokens) in [(&large, None), (&fits, Some("3".to_owned()))] {
        let server = Server::always(200, body).await;
        let told = told(requests(&server, total_tokens()).process(single()).await);
        let found = told.used[0].map(|amount| amount.to_string());
        assert_eq!((told.reply, found), (Reply::AllOk, tokens));
    }
    let broken = raw(async |mut stream| {
        read_request(&mut stream).await.expect("read");
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"usage\":";
        tokio::io::AsyncWriteExt::write_all(&mut stream, head)
            .await
            .expect("written");
    })
    .await;
    let url = format!("http://{broken}/");
    let handler = requests_to(&url, RequestSpec::default(), metered(total_tokens(), false));
    let told = told(handler.process(single()).await);
    assert_eq!((told.reply, told.used), (Reply::AllOk, vec![None]));
}

#[tokio::test]
async fn nothing_is_told_where_nothing_is_counted_by_answers() {
    let server = Server::always(200, CHAT).await;
    for metering in [
        Metering::default(),
        metering(json!({"limits": ["300/min", "20 at once"]})),
        metering(json!({"limits": ["5 eur"], "cost": ["eur = 0.01"]})),
    ] {
        assert_eq!(requests(&server, metering).process(single()).await, Reply::AllOk);
    }
    let good = Server::always(200, r#"{"result":"ok","costs":{"tokens":3}}"#).await;
    let plain = calls(&good, metering(json!({"limits": ["300/min"]})), 1);
    assert_eq!(plain.process(single()).await, Reply::AllOk);
}

#[tokio::test]
async fn tokens_that_nobody_described_are_found_and_their_place_is_named_once() {
    let server = Server::always(200, CHAT).await;
    let handler = requests(&server, metering(json!({"limits": ["90k tokens/min"]})));
    for place in [Some("{answer./usage/total_tokens}"), None] {
        let told = told(handler.process(single()).await);
        assert_eq!(
            told.used[0].map(|amount| amount.to_string()),
            Some("21".to_owned())
        );
        assert_eq!(told.place.as_ref().map(|(_, place)| place.as_str()), place);
    }
}

#[tokio::test]
async fn a_status_with_a_meaning_of_its_own_ends_as_what_it_is() {
    for (status, end) in [
        (404, Some(End::RequestFault)),
        (429, Some(End::RequestFault)),
        (500, Some(End::ServerError)),
        (504, Some(End::TimedOut)),
        (202, None),
    ] {
        let server = Server::always(status, CHAT).await;
        let mut spec = RequestSpec::default();
        spec.statuses.skip = status.to_string().parse().expect("a status");
        let handler = requests_to(&server.url(), spec, metered(total_tokens(), false));
        let (reply, found) = match handler.process(single()).await {
            Reply::Told(told) => (told.reply, told.end),
            reply => (reply, None),
        };
        let Reply::Items(replies) = reply else {
            panic!("no verdicts: {reply:?}")
        };
        assert_eq!(
            replies.verdicts[0].1,
            ItemVerdict::Settled(Outcome::Skipped),
            "{status}"
        );
        assert_eq!(found, end, "{status}");
    }
}

#[tokio::test]
async fn a_result_names_its_costs_and_those_of_a_batch_are_added_up() {
    let tokens = || metering(json!({"limits": ["90k tokens/min"]}));
    let server = Server::always(200, r#"{"result":"ok","costs":{"tokens":12}}"#).await;
    let reply = calls(&server, tokens(), 1).process(single()).await;
    assert_eq!(used(reply), some(&["12"]));
    let body = r#"{"results":[{"index":10,"result":"ok","costs":{"tokens":2.5}},
        {"index":11,"result":"fail","costs":{"tokens":3}}],"default":"ok"}"#;
    let server = Server::always(200, body).await;
    let reply = calls(&server, tokens(), 3)
        .process(call(items(&[(10, 3, 1)])))
        .await;
    assert_eq!(used(reply), some(&["5.5"]));
    let server = Server::start(|_| answer(422, r#"{"result":"fail","costs":{"tokens":4}}"#)).await;
    let reply = calls(&server, tokens(), 1).process(single()).await;
    assert_eq!(used(reply), some(&["4"]));
}

#[tokio::test]
async fn workers_name_costs_which_are_added_up_for_their_call() {
    let rig = Setup::script(2)
        .metering(metering(json!({"limits": ["90k tokens/min"]})))
        .open();
    rig.slots_at_least(2).await;
    let data = [2, 3].map(|n| json!({"do": "reply", "reply": {"result": "ok", "costs": {"tokens": n}}}));
    let told = told(rig.batch(0, &data).await);
    assert_eq!(told.reply, Reply::AllOk);
    assert_eq!(
        told.used[0].map(|amount| amount.to_string()),
        Some("5".to_owned())
    );
    rig.close().await;
}
