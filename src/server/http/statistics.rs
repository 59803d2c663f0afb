//! `/v1/statistics`: items and tasks per day, over years. A business sees only its own.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::problem::HttpResult;
use crate::http::answer::page::{PageQuery, Paging};
use crate::http::front::App;
use crate::http::guard::{Caller, Params, time_option};
use crate::service::statistics::{About, By, Row, RowKey};

/// Filters and grouping of the statistics.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatisticsQuery {
    /// Only statistics of this business.
    #[param(pattern = "^[a-z0-9-]{1,40}$")]
    business: Option<String>,
    /// From the UTC day of this time; default: 30 days before the end.
    #[param(format = "date-time")]
    since: Option<String>,
    /// Up to and including the UTC day of this time; default: now.
    #[param(format = "date-time")]
    until: Option<String>,
    /// Grouping of the rows: `day`, newest first; `business`; or `task` (only tasks that still exist), newest first.
    #[param(pattern = "^(day|business|task)$")]
    by: Option<String>,
}

pub(crate) fn show_statistics(row: Row, asked: Option<&str>) -> api::Statistics {
    let mut json = api::Statistics {
        day: None,
        business: asked.map(str::to_owned),
        task: None,
        name: None,
        status: None,
        tasks: row.tasks.map(|tasks| api::StatisticsTasks {
            created: tasks.created,
            finished: tasks.finished,
            cancelled: tasks.cancelled,
        }),
        items: api::StatisticsItems {
            succeeded: row.items.succeeded,
            skipped: row.items.skipped,
            failed: row.items.failed,
        },
    };
    match row.about {
        About::Day(day) => json.day = Some(day.to_string()),
        About::Business(name) => json.business = Some(name),
        About::Task {
            id,
            name,
            business,
            status,
        } => {
            (json.task, json.name) = (Some(id.to_string()), name);
            (json.business, json.status) = (Some(business), Some(status.as_str().to_owned()));
        }
    }
    json
}

/// Cursor that points to a row.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Place {
    Number(i64),
    Name(String),
}

impl From<RowKey> for Place {
    fn from(key: RowKey) -> Place {
        match key {
            RowKey::Number(number) => Place::Number(number),
            RowKey::Name(name) => Place::Name(name),
        }
    }
}

impl Place {
    fn key(&self) -> RowKey {
        match self {
            Place::Number(number) => RowKey::Number(*number),
            Place::Name(name) => RowKey::Name(name.clone()),
        }
    }
}

/// List daily totals of items and tasks.
///
/// Counted with each checkpoint, so a crash neither loses nor repeats anything. Totals of deleted tasks are kept for
/// `retention.statistics`. Empty rows are left out.
#[utoipa::path(
    get, path = "/v1/statistics", tag = "statistics", operation_id = "statistics",
    params(StatisticsQuery, PageQuery), security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = api::Page<api::Statistics>))
)]
pub(crate) async fn statistics(
    State(app): State<App>,
    caller: Caller,
    paging: Paging<Place>,
    Params(query): Params<StatisticsQuery>,
) -> HttpResult {
    let mut business = query.business;
    if let Some(own) = caller.business {
        // A business sees only its own rows, whatever it asks for.
        if business.as_ref().is_some_and(|asked| *asked != own) {
            return Ok(paging.answer(paging.page(Vec::<api::Statistics>::new(), |_| ())));
        }
        business = Some(own);
    }
    let since = time_option("since", query.since.as_ref())?;
    let until = time_option("until", query.until.as_ref())?;
    let by = query.by.as_deref().and_then(By::parse).unwrap_or(By::Day);
    let statistics = &app.service.statistics;
    let period = statistics.period((since, until), business)?;
    let after = paging.after.as_ref().map(Place::key);
    let found = statistics.rows(by, &period, after, paging.to_read()).await?;
    let page = paging.page(found, |row| Place::from(row.key()));
    Ok(paging.answer(page.map(|row| show_statistics(row, period.business.as_deref()))))
}
