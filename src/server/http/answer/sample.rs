//! Sample business of `windrow dev`: an ordinary HTTP handler, so that calls take the real path.
//!
//! Responses depend only on an item's index and attempt, so that every number shown can be explained: items 4, 14, 24
//! … are busy at their first attempt, items 20, 70 … are skipped, items 99, 199 … fail, all others succeed. Calls take
//! 20 to 100 ms.

use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

/// Busy items: one in this many, at this remainder.
const BUSY: (u64, u64) = (10, 4);
/// Skipped items: one in this many, at this remainder.
const UNSUBSCRIBED: (u64, u64) = (50, 20);
/// Failing items: one in this many, at this remainder.
const UNKNOWN: (u64, u64) = (100, 99);
/// Retry delay of a busy item; long enough to be visible as a retry.
const BUSY_FOR: &str = "500ms";
/// Duration of the shortest call; longer ones add up to eight steps. The average is 60 ms.
const WORK_MIN: Duration = Duration::from_millis(20);
const WORK_STEP: Duration = Duration::from_millis(10);
const WORK_STEPS: u64 = 9;

/// Returns the handler, which accepts a POST on any path.
pub fn router() -> Router {
    Router::new().fallback(answer)
}

/// Body of any call type; unused members are ignored.
#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    item: Option<Item>,
    #[serde(default)]
    items: Option<Vec<Item>>,
}

#[derive(Clone, Copy, Deserialize)]
struct Item {
    index: u64,
    attempt: u32,
}

async fn answer(body: Bytes) -> Response {
    let call: Call = match serde_json::from_slice(&body) {
        Ok(call) => call,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let items: Vec<Item> = call.items.iter().flatten().chain(&call.item).copied().collect();
    // The items of a batch run concurrently, so the slowest one counts.
    tokio::time::sleep(
        items
            .iter()
            .map(|item| work(item.index))
            .max()
            .unwrap_or_default(),
    )
    .await;
    match (call.item, call.items) {
        (Some(item), _) => result(item).map_or_else(done, |result| Json(result).into_response()),
        (None, Some(items)) => {
            let results: Vec<Value> = items.into_iter().filter_map(result).collect();
            Json(json!({ "results": results, "default": "ok" })).into_response()
        }
        // A ping, a hook, or a call type of a later version.
        (None, None) => done(),
    }
}

fn done() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

fn work(index: u64) -> Duration {
    let steps = u32::try_from(index % WORK_STEPS).unwrap_or_default();
    WORK_MIN + WORK_STEP * steps
}

/// Returns the result of an item, `None` if it succeeds.
fn result(item: Item) -> Option<Value> {
    let Item { index, attempt } = item;
    let is_one_of = |(every, at): (u64, u64)| index % every == at;
    if is_one_of(UNKNOWN) {
        let message = format!("no user {index}");
        return Some(json!({ "index": index, "result": "fail", "code": "NO_USER", "message": message }));
    }
    if is_one_of(UNSUBSCRIBED) {
        return Some(json!({ "index": index, "result": "skip" }));
    }
    let is_busy = is_one_of(BUSY) && attempt == 1;
    is_busy.then(|| {
        json!({ "index": index, "result": "retry", "retry_after": BUSY_FOR, "code": "BUSY", "message": "not now" })
    })
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    /// Code of a failure, or the result of another item that doesn't succeed.
    fn code(index: u64, attempt: u32) -> Option<String> {
        let result = result(Item { index, attempt })?;
        let said = result["code"].as_str().or_else(|| result["result"].as_str());
        Some(said.unwrap_or_default().to_owned())
    }

    #[test]
    fn one_in_ten_is_busy_once_one_in_fifty_is_skipped_and_one_in_a_hundred_fails() {
        let count = |attempt, wanted: &str| {
            (0..10_000)
                .filter(|index| code(*index, attempt).as_deref() == Some(wanted))
                .count()
        };
        let counts = |attempt| ["BUSY", "skip", "NO_USER"].map(|wanted| count(attempt, wanted));
        assert_eq!((counts(1), counts(2)), ([1000, 200, 100], [0, 200, 100]));
        assert_eq!(
            (code(4, 1).as_deref(), code(99, 1).as_deref(), code(0, 1)),
            (Some("BUSY"), Some("NO_USER"), None)
        );
    }

    #[test]
    fn the_mean_of_the_work_is_what_the_module_says() {
        let sum: Duration = (0..9).map(work).sum();
        assert_eq!(
            (work(0), work(8), sum / 9),
            (WORK_MIN, Duration::from_millis(100), Duration::from_millis(60))
        );
    }

    async fn asked(body: &str) -> (u16, Value) {
        let answer = answer(Bytes::from(body.to_owned())).await;
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    #[tokio::test(start_paused = true)]
    async fn it_speaks_the_protocol_single_batched_and_of_tomorrow() {
        assert_eq!(
            asked(r#"{"type":"item.process","item":{"index":3,"attempt":1,"x":1}}"#)
                .await
                .0,
            204
        );
        let (status, busy) = asked(r#"{"type":"item.process","item":{"index":4,"attempt":1}}"#).await;
        assert_eq!((status, &busy["result"]), (200, &json!("retry")));
        let (_, batch) =
            asked(r#"{"type":"items.process","items":[{"index":98,"attempt":1},{"index":99,"attempt":2}]}"#)
                .await;
        assert_eq!(
            (&batch["default"], &batch["results"][0]["index"]),
            (&json!("ok"), &json!(99))
        );
        assert_eq!(batch["results"].as_array().map(Vec::len), Some(1));
        assert_eq!(asked(r#"{"type":"of.tomorrow"}"#).await.0, 204);
        assert_eq!(asked("no JSON").await.0, 400);
    }
}
