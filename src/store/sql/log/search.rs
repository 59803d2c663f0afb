//! Search of the data log, a bounded number of lines at a time.
//!
//! A page walks down the line numbers. It covers at most `COVERED_MAX` lines of a task, or that many numbers over all
//! tasks, however few match: no index helps with most queries. It compares a text with at most `LOOKED_AT_MAX` lines.
//! If a page ends early, its cursor continues from there.

use sea_orm::sea_query::Query;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use crate::sql::entity::{business, data_log, task};
use crate::sql::log::data_log as lines;
use crate::sql::{Fetch, Pluck, Store};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::data_log::{LogPage, LogQuery};

/// Lines per statement while searching for a text.
const CHUNK: u32 = 1000;
/// Maximum lines that one page compares with a text.
const LOOKED_AT_MAX: u32 = 10_000;
/// Maximum lines that one page covers.
const COVERED_MAX: u32 = 200_000;

/// Implements [`windrow_engine::ports::handling::data_log::DataLog::search`]; the text is matched regardless of case.
pub(crate) async fn search(store: &Store, query: &LogQuery) -> Result<LogPage, StoreError> {
    let mut page = LogPage::default();
    let Some(newest) = newest(store).await? else {
        return Ok(page);
    };
    let mut before = query.before.unwrap_or(i64::MAX).min(newest.saturating_add(1));
    let floor = floor(store, query, before).await?;
    let needle = query.text.as_deref().map(str::to_lowercase);
    let chunk = if needle.is_some() {
        CHUNK
    } else {
        query.limit.max(1)
    };
    let mut looked_at = 0;
    loop {
        let rows = wanted(query, before, floor)
            .limit(u64::from(chunk))
            .rows(&store.readers)
            .await?;
        let is_last = rows.len() < chunk as usize;
        for row in rows {
            before = row.id;
            if needle
                .as_ref()
                .is_none_or(|needle| row.message.to_lowercase().contains(needle))
            {
                page.lines.push(lines::numbered(row)?);
            }
            if page.lines.len() >= query.limit as usize {
                page.next = Some(before);
                return Ok(page);
            }
        }
        looked_at += chunk;
        if is_last {
            page.next = (floor > 1).then_some(floor);
            return Ok(page);
        }
        if looked_at >= LOOKED_AT_MAX {
            page.next = Some(before);
            return Ok(page);
        }
    }
}

/// Returns the lowest line number that a page covers; scans an index.
async fn floor(store: &Store, query: &LogQuery, before: i64) -> Result<i64, StoreError> {
    let Some(task) = query.task else {
        return Ok(before.saturating_sub(i64::from(COVERED_MAX)).max(0));
    };
    let lowest = data_log::Entity::find()
        .filter(data_log::Column::TaskId.eq(task.0))
        .filter(data_log::Column::Id.lt(before))
        .order_by_desc(data_log::Column::Id)
        .offset(u64::from(COVERED_MAX))
        .pluck_one([data_log::Column::Id], &store.readers)
        .await?;
    Ok(lowest.unwrap_or(0))
}

async fn newest(store: &Store) -> Result<Option<i64>, StoreError> {
    data_log::Entity::find()
        .order_by_desc(data_log::Column::Id)
        .pluck_one([data_log::Column::Id], &store.readers)
        .await
}

fn wanted(query: &LogQuery, before: i64, floor: i64) -> Select<data_log::Entity> {
    use data_log::Column as C;
    let mut select = data_log::Entity::find()
        .filter(C::Id.lt(before))
        .filter(C::Id.gte(floor));
    if let Some(task) = query.task {
        select = select.filter(C::TaskId.eq(task.0));
    }
    if let Some(slug) = &query.business {
        let owner = Query::select()
            .column(business::Column::Id)
            .from(business::Entity)
            .and_where(business::Column::Slug.eq(slug))
            .to_owned();
        let own = Query::select()
            .column(task::Column::Id)
            .from(task::Entity)
            .and_where(task::Column::BusinessId.in_subquery(owner))
            .to_owned();
        select = select.filter(C::TaskId.in_subquery(own));
    }
    if query.level as i32 > 0 {
        select = select.filter(C::Level.gte(query.level as i32));
    }
    if let Some(index) = query.index {
        select = select.filter(C::Idx.eq(index.0.cast_signed()));
    }
    if let Some(origin) = query.origin {
        select = select.filter(C::Origin.eq(lines::origin_text(origin)));
    }
    if let Some(code) = &query.code {
        select = select.filter(C::Code.eq(code.as_str()));
    }
    if let Some(from) = query.from {
        select = select.filter(C::AtMs.gte(from.0));
    }
    if let Some(to) = query.to {
        select = select.filter(C::AtMs.lt(to.0));
    }
    select.order_by_desc(C::Id)
}
