//! Appending to and sealing open tasks: `POST /v1/tasks/{task}/items` and `/seal`.

use std::fmt;

use axum::Extension;
use axum::http::StatusCode;
use serde::Deserializer as _;
use serde::de::{SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::changes::key;
use super::commanded;
use super::path::PathTask;
use crate::http::guard::idempotency::TakenKey;
use crate::http::guard::{Body, Call, DryRunQuery};
use crate::http::problem::HttpResult;
use crate::service::ServiceError;
use crate::service::tasks::settings::check_depth;
use windrow_core::task::supply::{APPEND_BYTES_MAX, APPEND_ITEMS_MAX};
use windrow_engine::ports::handling::meters::AppendFate;
use windrow_engine::ports::sources::append::{Appended, NewBlock};

/// Append items to an open task.
///
/// Appends all items or none. Acknowledged items are processed even if this node or the running node crashes.
/// Repeated requests with the same `Idempotency-Key` append the items once; each key is remembered per task for at
/// least a week. Returns 429 if too many items are waiting.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/items", tag = "tasks", operation_id = "append_items", request_body = api::AppendItems,
    params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = api::AppendedItems, description = "Already appended with this key"),
        (status = 201, body = api::AppendedItems),
        (status = 409, description = "task-sealed, wrong-state, conflict"),
        (status = 422, description = "validation-failed, idempotency-key-reused"),
        (status = 429, description = "backlog-full"),
    )
)]
pub(crate) async fn append(
    call: Call,
    PathTask(task): PathTask,
    taken: Option<Extension<TakenKey>>,
    Body(body): Body<api::AppendItems>,
) -> HttpResult {
    let block = block(&body.items, key(taken))?;
    let write = call.write(None);
    let added = call.service.tasks.append(task.id, &block, &write).await;
    if !call.is_dry {
        call.service
            .health
            .meters
            .append_asked(fate(&added), block.items());
    }
    let added = added?;
    let status = match added.is_repeat {
        true => StatusCode::OK,
        false => StatusCode::CREATED,
    };
    let answer = api::AppendedItems {
        first_index: added.first.0,
        items: added.items,
        repeated: added.is_repeat,
        total: added.total.0,
    };
    Ok(call.changed(answer, |answer| (status, answer))?)
}

fn fate(added: &Result<Appended, ServiceError>) -> AppendFate {
    match added {
        Ok(added) if added.is_repeat => AppendFate::Repeated,
        Ok(_) => AppendFate::Appended,
        Err(ServiceError::BacklogFull(_)) => AppendFate::Full,
        Err(ServiceError::StoreUnavailable | ServiceError::StoreFull | ServiceError::Internal(_)) => {
            AppendFate::Failed
        }
        Err(_) => AppendFate::Refused,
    }
}

/// Seal an open task.
///
/// The task accepts no more items and finishes once all of them are settled.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/seal", tag = "tasks", operation_id = "seal_task",
    request_body = Option<api::Reason>, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = api::Task, headers(("etag" = String)), description = "Already sealed"),
        (status = 202, body = api::Task, headers(("etag" = String))),
        (status = 409, description = "wrong-state, conflict"),
    )
)]
pub(crate) async fn seal(call: Call, PathTask(task): PathTask, Body(body): Body<api::Reason>) -> HttpResult {
    let write = call.write(body.reason);
    let told = call.service.tasks.seal(task.id, &write).await?;
    commanded(&call, told).await
}

/// Splits a list into items, each kept as raw text. Items aren't parsed into values, so a long list stays cheap.
fn block(items: &RawValue, key: Option<String>) -> Result<NewBlock, ServiceError> {
    let inner = items
        .get()
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    check_depth("/items", inner.unwrap_or_default())?;
    let mut reader = serde_json::Deserializer::from_str(items.get());
    let read = reader.deserialize_seq(Rows(NewBlock::new(key)));
    read.map_err(|_| ServiceError::invalid("/items", "must be a list"))
}

struct Rows(NewBlock);

impl<'de> Visitor<'de> for Rows {
    type Value = NewBlock;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<NewBlock, A::Error> {
        while let Some(item) = list.next_element::<&'de RawValue>()? {
            // The first item above a limit is enough to reject the list; skip the rest.
            if self.0.items() <= APPEND_ITEMS_MAX && self.0.bytes() <= APPEND_BYTES_MAX {
                self.0.push(item.get());
            }
        }
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<NewBlock, ServiceError> {
        let body: api::AppendItems = serde_json::from_str(text).expect("a body");
        block(&body.items, None)
    }

    #[test]
    fn items_are_kept_as_they_were_written_one_a_line() {
        let block = read("{\"items\":[12345678901234567890123,{\"a\" :\n1}, \"x\"]}").expect("a list");
        assert_eq!(block.rows(), "12345678901234567890123\n{\"a\" : 1}\n\"x\"\n");
        assert_eq!(block.items(), 3);
        assert!(matches!(
            read(r#"{"items":{"a":1}}"#),
            Err(ServiceError::Invalid(_))
        ));
        assert_eq!(read(r#"{"items":[]}"#).expect("a list").items(), 0);
    }
}
