//! Spans of runs and calls, as a collector gets them.

use std::os::unix::fs::PermissionsExt;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message;
use serde_json::json;

use crate::business::{Act, Business, Seen};
use crate::support::Recipe;

/// Everything that the collector got.
fn spans(collector: &Business) -> Vec<Span> {
    let requests = collector
        .seen()
        .into_iter()
        .map(|seen| ExportTraceServiceRequest::decode(seen.raw).expect("spans"));
    let resources = requests.flat_map(|request| request.resource_spans);
    let scopes = resources.flat_map(|resource| resource.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

fn attribute(span: &Span, name: &str) -> Option<String> {
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    let found = span.attributes.iter().find(|attribute| attribute.key == name)?;
    Some(match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    })
}

/// The span as the handler was told of it.
fn parent(span: &Span) -> String {
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("00-{}-{}-01", digits(&span.trace_id), digits(&span.span_id))
}

async fn recorded(batch: u32) -> (Business, Vec<Span>) {
    let collector = Business::willing().await;
    let handler = Business::start(|seen| {
        let fails = seen.items().iter().any(|(index, _)| *index == 3);
        match fails {
            true => Act::json(422, json!({"message": "a secret of the customer"})),
            false => Act::ok(),
        }
    })
    .await;
    let recipe = Recipe::new();
    let headers = recipe.path("headers");
    std::fs::write(&headers, "Authorization: Bearer of the collector\n").unwrap();
    std::fs::set_permissions(&headers, PermissionsExt::from_mode(0o600)).unwrap();
    let recipe = recipe.config(&format!(
        "[telemetry]\ntraces_url = \"http://{}/v1/traces\"\ntraces_sample = \"100%\"\ntraces_headers_file = {headers:?}",
        collector.address
    ));
    let node = recipe.start().await;
    node.business("push", &handler.url(), json!({})).await;
    let more = json!({"start": true, "batch": batch, "error_budget": "none"});
    let task = node.task("push", 6, more).await;
    node.until(&task, "done", |view| view["counts"]["pending"] == 0)
        .await;
    assert_eq!(node.stop().await, Some(0));
    let is_known = |seen: &Seen| seen.header("authorization") == "Bearer of the collector";
    assert!(collector.seen().iter().all(is_known));
    (handler, spans(&collector))
}

#[tokio::test]
async fn each_attempt_is_a_span_with_the_ids_that_its_handler_got() {
    let (handler, spans) = recorded(1).await;
    let (runs, calls): (Vec<&Span>, Vec<&Span>) = spans.iter().partition(|span| span.name == "run push");
    assert_eq!((runs.len(), calls.len()), (1, 6), "{spans:#?}");
    let told: Vec<String> = handler
        .seen()
        .iter()
        .map(|seen| seen.header("traceparent").to_owned())
        .collect();
    for call in &calls {
        assert_eq!((&*call.name, call.kind()), ("call push", SpanKind::Client));
        assert!(told.contains(&parent(call)), "{call:#?} {told:?}");
        assert!(call.start_time_unix_nano <= call.end_time_unix_nano, "{call:#?}");
        assert_eq!(call.links[0].span_id, runs[0].span_id);
        let failed = attribute(call, "windrow.item.index").as_deref() == Some("3");
        let status = call.status.as_ref().unwrap();
        assert_eq!(status.code() == StatusCode::Error, failed, "{call:#?}");
        let expected = (!failed).then(|| "succeeded".to_owned());
        assert_eq!(attribute(call, "windrow.outcome"), expected);
        assert_eq!(attribute(call, "error.type").is_some(), failed);
        assert!(!format!("{call:?}").contains("secret"), "{call:#?}");
    }
}

#[tokio::test]
async fn each_item_of_a_batch_has_its_span_and_the_first_has_that_of_the_call() {
    let (handler, spans) = recorded(3).await;
    let calls = spans.iter().filter(|span| span.name == "call push");
    let parents: Vec<String> = calls.map(parent).collect();
    assert!(parents.len() >= 6, "{spans:#?}");
    for seen in handler.seen() {
        let told = seen.header("traceparent").to_owned();
        assert!(parents.contains(&told), "{told} {parents:?}");
    }
}

#[tokio::test]
async fn an_item_that_is_not_sampled_says_so_and_has_no_span() {
    let handler = Business::willing().await;
    let collector = Business::willing().await;
    let recipe = Recipe::new().config(&format!(
        "[telemetry]\ntraces_url = \"http://{}/v1/traces\"\ntraces_sample = \"0%\"",
        collector.address
    ));
    let node = recipe.start().await;
    node.business("push", &handler.url(), json!({})).await;
    let task = node.task("push", 3, json!({"start": true})).await;
    node.status(&task, "finished").await;
    assert_eq!(node.stop().await, Some(0));
    assert!(
        handler
            .seen()
            .iter()
            .all(|seen| seen.header("traceparent").ends_with("-00"))
    );
    assert_eq!(handler.seen().len(), 3);
    assert!(collector.seen().iter().all(|seen| !seen.raw.is_empty()));
}

#[tokio::test]
async fn a_collector_that_is_gone_holds_nobody() {
    let handler = Business::willing().await;
    let recipe = Recipe::new()
        .config("[telemetry]\ntraces_url = \"http://127.0.0.1:1/v1/traces\"\ntraces_sample = \"100%\"");
    let node = recipe.start().await;
    node.business("push", &handler.url(), json!({})).await;
    let task = node.task("push", 50, json!({"start": true})).await;
    let done = node.status(&task, "finished").await;
    assert_eq!(done["counts"]["succeeded"], 50, "{done:#}");
    node.says("BatchSpanProcessor.ExportError").await;
    assert_eq!(node.stop().await, Some(0));
}

#[tokio::test]
async fn a_call_that_is_turned_away_has_a_span_below_that_of_its_attempt() {
    let collector = Business::willing().await;
    let turned = std::sync::atomic::AtomicBool::new(false);
    let handler = Business::start(
        move |_| match turned.swap(true, std::sync::atomic::Ordering::Relaxed) {
            false => Act::status(429).header("retry-after", "0"),
            true => Act::ok(),
        },
    )
    .await;
    let recipe = Recipe::new().config(&format!(
        "[telemetry]\ntraces_url = \"http://{}/v1/traces\"\ntraces_sample = \"100%\"",
        collector.address
    ));
    let node = recipe.start().await;
    node.business("push", &handler.url(), json!({})).await;
    let task = node.task("push", 1, json!({"start": true})).await;
    node.status(&task, "finished").await;
    assert_eq!(node.stop().await, Some(0));
    let seen = handler.seen();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!(seen[0].header("traceparent"), seen[1].header("traceparent"));
    let spans = spans(&collector);
    let calls: Vec<&Span> = spans.iter().filter(|span| span.name == "call push").collect();
    let [turned, counted] = calls[..] else {
        panic!("{spans:#?}")
    };
    assert_eq!(parent(counted), seen[0].header("traceparent"));
    assert_ne!(turned.span_id, counted.span_id);
    assert_eq!(turned.parent_span_id, counted.span_id);
}
