//! Pages of the audit, newest first.

use std::collections::HashMap;

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};

use crate::sql::entity::{audit, business};
use crate::sql::task::tasks;
use crate::sql::{Store, error};
use windrow_core::ids::TaskId;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::list::{AuditFilter, AuditRow};

/// See [`windrow_engine::ports::tasks::list::TaskList::audits`].
pub(crate) async fn audits(
    store: &Store,
    filter: &AuditFilter,
    after: Option<i64>,
    limit: u32,
) -> Result<Vec<AuditRow>, StoreError> {
    use audit::Column as C;
    let business = match &filter.business {
        None => None,
        Some(slug) => {
            let found = business::Entity::find().filter(business::Column::Slug.eq(slug.as_str()));
            match found.one(&store.readers).await.map_err(error)? {
                Some(found) => Some(found.id),
                None => return Ok(Vec::new()),
            }
        }
    };
    let rows = audit::Entity::find()
        .apply_if(filter.task, |query, id| query.filter(C::TaskId.eq(id.0)))
        .apply_if(business, |query, id| query.filter(C::BusinessId.eq(id)))
        .apply_if(filter.actor.as_deref(), |query, actor| {
            query.filter(C::Actor.eq(actor))
        })
        .apply_if(filter.action.as_deref(), |query, action| {
            query.filter(C::Action.eq(action))
        })
        .apply_if(after, |query, id| query.filter(C::Id.lt(id)))
        .order_by_desc(C::Id)
        .limit(u64::from(limit))
        .all(&store.readers)
        .await
        .map_err(error)?;
    let slugs = slugs(store, &rows).await?;
    let shown = |row: audit::Model| AuditRow {
        id: row.id,
        task: row.task_id.map(TaskId),
        business: row.business_id.and_then(|id| slugs.get(&id).cloned()),
        request_id: row.request_id.clone(),
        entry: tasks::entry(row),
    };
    Ok(rows.into_iter().map(shown).collect())
}

async fn slugs(store: &Store, rows: &[audit::Model]) -> Result<HashMap<i64, String>, StoreError> {
    let ids = rows.iter().filter_map(|row| row.business_id);
    let owners = business::Entity::find()
        .filter(business::Column::Id.is_in(ids))
        .all(&store.readers);
    Ok(owners
        .await
        .map_err(error)?
        .into_iter()
        .map(|owner| (owner.id, owner.slug))
        .collect())
}
