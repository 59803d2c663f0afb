//! Pages of the audit log, newest first.

use std::collections::HashMap;

use sea_orm::sea_query::ExprTrait as _;
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
};

use crate::sql::entity::{audit, business};
use crate::sql::task::tasks;
use crate::sql::{Fetch, Store, error};
use windrow_core::ids::{TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::tasks::list::{AuditFilter, AuditRow};

/// Implements [`windrow_engine::ports::tasks::list::TaskList::audits`]; an unknown business has no entries.
pub(crate) async fn audits(
    store: &Store,
    filter: &AuditFilter,
    after: Option<(WallMs, i64)>,
    limit: u32,
) -> Result<Vec<AuditRow>, StoreError> {
    use audit::Column as C;
    let business = match &filter.business {
        None => None,
        Some(slug) => {
            let found = business::Entity::find().filter(business::Column::Slug.eq(slug.as_str()));
            match found.row(&store.readers).await? {
                Some(found) => Some(found.id),
                None => return Ok(Vec::new()),
            }
        }
    };
    let rows = wanted(filter, business)
        .apply_if(after, |query, place| query.filter(older(place)))
        .order_by_desc(C::AtMs)
        .order_by_desc(C::Id)
        .limit(u64::from(limit))
        .rows(&store.readers)
        .await?;
    let slugs = slugs(store, &rows).await?;
    let shown = |row: audit::Model| AuditRow {
        id: row.id,
        object: object(&row),
        task: row.task_id.map(TaskId),
        business: row.business_id.and_then(|id| slugs.get(&id).cloned()),
        role: row.role.clone(),
        request_id: row.request_id.clone(),
        entry: tasks::entry(row),
    };
    Ok(rows.into_iter().map(shown).collect())
}

/// Builds the query of a filter; `business` is the row id of the filter's business.
fn wanted(filter: &AuditFilter, business: Option<i64>) -> Select<audit::Entity> {
    use audit::Column as C;
    audit::Entity::find()
        .apply_if(filter.task, |query, id| query.filter(C::TaskId.eq(id.0)))
        .apply_if(business, |query, id| query.filter(C::BusinessId.eq(id)))
        .apply_if(filter.actor.as_deref(), |query, actor| {
            query.filter(C::Actor.eq(actor))
        })
        .apply_if(filter.action.as_deref(), |query, action| {
            query.filter(C::Action.eq(action))
        })
        .apply_if(filter.object.as_ref(), |query, object| {
            query
                .filter(C::ObjectKind.eq(object.kind.as_str()))
                .filter(C::ObjectName.eq(object.name.as_str()))
        })
        .apply_if(filter.since, |query, since| query.filter(C::AtMs.gte(since.0)))
        .apply_if(filter.until, |query, until| query.filter(C::AtMs.lt(until.0)))
}

/// Matches entries before one. Only the first condition bounds the index scan: no database does that for an OR.
fn older((at, id): (WallMs, i64)) -> Condition {
    use audit::Column as C;
    Condition::all()
        .add(C::AtMs.lte(at.0))
        .add(C::AtMs.lt(at.0).or(C::Id.lt(id)))
}

/// Returns the object of an entry, or `None` for a kind that only a newer program knows.
fn object(row: &audit::Model) -> Option<AuditObject> {
    let kind = ObjectKind::parse(row.object_kind.as_deref()?)?;
    Some(AuditObject::new(kind, row.object_name.as_deref()?))
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
