//! Previews: real calls with a few items, without recording anything.

use axum::Json;
use axum::extract::State;

use super::path::PathTask;
use crate::http::answer::Of;
use crate::http::front::App;
use crate::http::guard::Body;
use crate::http::problem::HttpResult;
use crate::http::tasks::warnings::show_warnings;
use crate::service::ServiceError;
use crate::service::tasks::preview::{ITEMS_MAX, PreviewedItem};
use windrow_core::ids::ItemIndex;
use windrow_core::text::quoted;

/// Default number of items in a preview.
const ITEMS_DEFAULT: u64 = 3;

/// Longest list of indexes, in bytes: room for one hundred of the largest.
const INDEXES_BYTES_MAX: usize = 4000;

impl Of<PreviewedItem> for api::PreviewedItem {
    fn of(item: PreviewedItem) -> Self {
        let (code, message) = item
            .failure
            .map(|failure| (failure.code.into_owned(), failure.message))
            .unzip();
        let latency_seconds = item.took.as_secs_f64();
        api::PreviewedItem {
            index: item.index.0,
            result: item.result.to_owned(),
            code,
            message,
            latency_seconds,
        }
    }
}

/// Preview some items of a task.
///
/// Calls the handler with them, marked as a preview. Nothing is recorded and nothing is retried.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/preview", tag = "tasks", operation_id = "preview_task",
    request_body = Option<api::PreviewTask>, security(("bearer" = ["operator", "business"])),
    responses((status = 200, body = api::Preview), (status = 409, description = "conflict"))
)]
pub(crate) async fn preview(
    State(app): State<App>,
    PathTask(task): PathTask,
    Body(body): Body<api::PreviewTask>,
) -> HttpResult<Json<api::Preview>> {
    let items: Vec<ItemIndex> = match &body.indexes {
        Some(text) => chosen(text)?,
        None => (0..ITEMS_DEFAULT.min(task.total.0)).map(ItemIndex).collect(),
    };
    let seen = app.service.previews.preview(&task, &items).await?;
    let warnings = show_warnings(app.service.tasks.warnings(&task).await);
    let items = seen.into_iter().map(api::PreviewedItem::of).collect();
    Ok(Json(api::Preview { items, warnings }))
}

/// Parses a list of indexes and keeps their order.
fn chosen(text: &str) -> Result<Vec<ItemIndex>, ServiceError> {
    let refuse = |why: String| ServiceError::invalid("/indexes", why);
    if text.len() > INDEXES_BYTES_MAX {
        return Err(refuse(format!("must be at most {INDEXES_BYTES_MAX} characters")));
    }
    let mut found = Vec::new();
    for part in text.split(',').map(str::trim) {
        let bad = || {
            refuse(format!(
                "{} is not an item or a range; try 0,17,999 or 5..9",
                quoted(part)
            ))
        };
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| bad());
        let (first, end) = match (part.split_once(".."), part.split_once('-')) {
            (Some((first, end)), _) => (number(first)?, number(end)?),
            (None, Some((first, last))) => (number(first)?, number(last)?.checked_add(1).ok_or_else(bad)?),
            (None, None) => (number(part)?, number(part)?.checked_add(1).ok_or_else(bad)?),
        };
        if first >= end {
            return Err(bad());
        }
        if end - first > (ITEMS_MAX - found.len()) as u64 {
            return Err(refuse(format!("a preview has at most {ITEMS_MAX} items")));
        }
        found.extend((first..end).map(ItemIndex));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_lists_and_ranges_of_at_most_a_hundred() {
        let of = |text| chosen(text).map(|items| items.iter().map(|item| item.0).collect::<Vec<_>>());
        assert_eq!(of("17, 0,5..8"), Ok(vec![17, 0, 5, 6, 7]));
        assert_eq!(of("5-8"), Ok(vec![5, 6, 7, 8]));
        assert_eq!(of("0..100").map(|items| items.len()), Ok(100));
        for wrong in [
            "",
            "a",
            "0..101",
            "3..3",
            "9-5",
            "1,,2",
            "18446744073709551615",
            "0..100,1",
            &"0".repeat(4001),
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
