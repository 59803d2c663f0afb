//! Named limits. Code that names a limit holds the lock of its row meanwhile, so that a limit about to be used is
//! never deleted. This lock is taken last of all.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use async_trait::async_trait;
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DerivePartialModel, EntityTrait, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect, Select, SqlErr,
};

use crate::sql::business::businesses;
use crate::sql::entity::{business, named_limit, task};
use crate::sql::session::limits;
use crate::sql::task::record::{self, Change};
use crate::sql::{Fetch, Pluck, Run, Store, Transaction, damaged, error, keep, words};
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::limit::Bounds;
use windrow_core::meter::metering::Metering;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::access::named_limit_store::{
    LimitUsers, LimitedTask, NamedLimit, NamedLimitError, NamedLimitStore, TASKS_SHOWN_MAX,
};
use windrow_engine::ports::tasks::store::Write;

#[async_trait]
impl NamedLimitStore for Store {
    async fn create_limit(
        &self,
        name: &str,
        (bounds, metering): (Bounds, &Metering),
        write: &Write,
        now: WallMs,
    ) -> Result<NamedLimit, NamedLimitError> {
        let transaction = self.write().await?;
        let taken = || NamedLimitError::Taken(name.to_owned());
        if find(&transaction, name).await?.is_some() {
            return Err(taken());
        }
        let made = NamedLimit {
            name: name.to_owned(),
            bounds,
            metering: metering.clone(),
            revision: 1,
            created_at: now,
            updated_at: now,
        };
        let inserted = named_limit::Entity::insert(row(&made))
            .exec_without_returning(&transaction)
            .await;
        if let Err(fault) = inserted {
            // Another connection may have created it in the meantime.
            return Err(match fault.sql_err() {
                Some(SqlErr::UniqueConstraintViolation(_)) => taken(),
                _ => error(fault).into(),
            });
        }
        record(
            &transaction,
            ("limit.create", name),
            (None, Some(&made)),
            write,
            now,
        )
        .await?;
        keep(transaction, write).await?;
        Ok(made)
    }

    async fn named_limit(&self, name: &str) -> Result<Option<NamedLimit>, StoreError> {
        find(&self.readers, name).await?.map(view).transpose()
    }

    async fn named_limits(
        &self,
        among: Option<&BTreeSet<String>>,
        after: Option<&str>,
        count: u32,
    ) -> Result<Vec<NamedLimit>, StoreError> {
        use named_limit::Column as C;
        let mut found = named_limit::Entity::find().filter(C::Name.gt(after.unwrap_or_default()));
        if let Some(names) = among {
            found = found.filter(C::Name.is_in(names.iter().map(String::as_str)));
        }
        let found = found
            .order_by_asc(C::Name)
            .limit(u64::from(count))
            .rows(&self.readers)
            .await;
        found?.into_iter().map(view).collect()
    }

    async fn change_limit(
        &self,
        name: &str,
        expected: u64,
        (bounds, metering): (Bounds, &Metering),
        write: &Write,
        now: WallMs,
    ) -> Result<NamedLimit, NamedLimitError> {
        let transaction = self.write().await?;
        let before = lock(&transaction, name).await?;
        if before.revision != expected {
            return Err(NamedLimitError::Changed {
                expected,
                found: before.revision,
            });
        }
        if (before.bounds, &before.metering) == (bounds, metering) {
            return Ok(before);
        }
        let revision = before.revision + 1;
        let after = NamedLimit {
            bounds,
            metering: metering.clone(),
            revision,
            updated_at: now,
            ..before.clone()
        };
        let mut changed = row(&after);
        changed.name = Unchanged(after.name.clone());
        changed.update(&transaction).await.map_err(error)?;
        record(
            &transaction,
            ("limit.edit", name),
            (Some(&before), Some(&after)),
            write,
            now,
        )
        .await?;
        keep(transaction, write).await?;
        Ok(after)
    }

    async fn delete_limit(
        &self,
        name: &str,
        write: &Write,
        now: WallMs,
    ) -> Result<NamedLimit, NamedLimitError> {
        let transaction = self.write().await?;
        let before = lock(&transaction, name).await?;
        let users = users(&transaction, name).await?;
        if !users.is_empty() {
            return Err(NamedLimitError::InUse(name.to_owned(), Box::new(users)));
        }
        // The row in `shared_limit` stays: a new limit of the same name continues its round numbers.
        named_limit::Entity::delete_by_id(name).run(&transaction).await?;
        record(
            &transaction,
            ("limit.delete", name),
            (Some(&before), None),
            write,
            now,
        )
        .await?;
        keep(transaction, write).await?;
        Ok(before)
    }

    async fn limits_of(&self, business: &str) -> Result<BTreeSet<String>, StoreError> {
        let Some(owner) = businesses::find(&self.readers, business).await? else {
            return Ok(BTreeSet::new());
        };
        let own = owner.limits_json.as_deref().map(limits::limits_of).transpose()?;
        let mut names: BTreeSet<String> = own.unwrap_or_default().named.into_iter().collect();
        let lists: Vec<String> = open_tasks()
            .filter(task::Column::BusinessId.eq(owner.id))
            .filter(task::Column::Limits.is_not_null())
            .distinct()
            .pluck([task::Column::Limits], &self.readers)
            .await?;
        for list in lists {
            names.extend(words::limits(Some(&list))?);
        }
        Ok(names)
    }

    async fn limit_users(&self, name: &str) -> Result<LimitUsers, StoreError> {
        users(&self.readers, name).await
    }
}

/// Returns the first of these names that no limit has. Protects the existing limits from deletion until the
/// transaction ends.
pub(crate) async fn missing(
    transaction: &Transaction,
    names: &[String],
) -> Result<Option<String>, StoreError> {
    use named_limit::Column as C;
    if names.is_empty() {
        return Ok(None);
    }
    let found: Vec<String> = named_limit::Entity::find()
        .filter(C::Name.is_in(names.iter().map(String::as_str)))
        .order_by_asc(C::Name)
        .lock_shared()
        .pluck([C::Name], transaction)
        .await?;
    Ok(names.iter().find(|name| !found.contains(name)).cloned())
}

/// Parses the rate and the concurrency that a limit allows.
pub(crate) fn bounds(row: &named_limit::Model) -> Result<Bounds, StoreError> {
    let rate = row
        .rate
        .as_ref()
        .map(|text| text.parse().map_err(|_| damaged("named_limit.rate", text)));
    let concurrency = row.concurrency.map(|number| {
        let fits = u32::try_from(number).ok().and_then(NonZeroU32::new);
        fits.map(NonZeroU32::get)
            .ok_or_else(|| damaged("named_limit.concurrency", &number.to_string()))
    });
    Ok(Bounds {
        rate: rate.transpose()?,
        concurrency: concurrency.transpose()?,
    })
}

/// Parses the limits in units that a limit has.
pub(crate) fn metering(row: &named_limit::Model) -> Result<Metering, StoreError> {
    let Some(text) = &row.metering else {
        return Ok(Metering::default());
    };
    serde_json::from_str(text).map_err(|fault| damaged("named_limit.metering", &fault.to_string()))
}

async fn find(db: &impl ConnectionTrait, name: &str) -> Result<Option<named_limit::Model>, StoreError> {
    named_limit::Entity::find_by_id(name).row(db).await
}

async fn lock(transaction: &Transaction, name: &str) -> Result<NamedLimit, NamedLimitError> {
    let found = named_limit::Entity::find_by_id(name)
        .lock_exclusive()
        .one(transaction)
        .await;
    let found = found
        .map_err(error)?
        .ok_or_else(|| NamedLimitError::NotFound(name.to_owned()))?;
    Ok(view(found)?)
}

fn view(row: named_limit::Model) -> Result<NamedLimit, StoreError> {
    Ok(NamedLimit {
        bounds: bounds(&row)?,
        metering: metering(&row)?,
        name: row.name,
        revision: row.revision.cast_unsigned(),
        created_at: WallMs(row.created_at),
        updated_at: WallMs(row.updated_at),
    })
}

fn row(limit: &NamedLimit) -> named_limit::ActiveModel {
    named_limit::ActiveModel {
        name: Set(limit.name.clone()),
        rate: Set(limit.bounds.rate.map(|rate| rate.to_string())),
        concurrency: Set(limit.bounds.concurrency.map(i64::from)),
        metering: Set(metering_json(limit)),
        revision: Set(limit.revision.cast_signed()),
        created_at: Set(limit.created_at.0),
        updated_at: Set(limit.updated_at.0),
    }
}

fn metering_json(limit: &NamedLimit) -> Option<String> {
    let metering = Some(&limit.metering).filter(|metering| !metering.is_empty())?;
    serde_json::to_string(metering).ok()
}

async fn users(db: &impl ConnectionTrait, name: &str) -> Result<LimitUsers, StoreError> {
    // Names are slugs: none of their characters is special to LIKE.
    let quoted = format!("%\"{name}\"%");
    let businesses = businesses(db, name, &quoted).await?;
    let open = open_tasks().filter(task::Column::Limits.like(quoted));
    let tasks_total = open.clone().count(db).await.map_err(error)?;
    let tasks = tasks(db, open).await?;
    Ok(LimitUsers {
        businesses,
        tasks,
        tasks_total,
    })
}

/// Selects tasks that have not ended.
fn open_tasks() -> Select<task::Entity> {
    let ended = [Status::Finished, Status::Cancelled].map(Status::as_str);
    task::Entity::find().filter(task::Column::Status.is_not_in(ended))
}

/// Returns the businesses that name a limit. The text match alone may also hit a member of the same name.
async fn businesses(db: &impl ConnectionTrait, name: &str, quoted: &str) -> Result<Vec<String>, StoreError> {
    use business::Column as C;
    let found: Vec<(String, String)> = business::Entity::find()
        .filter(C::LimitsJson.like(quoted))
        .order_by_asc(C::Slug)
        .pluck([C::Slug, C::LimitsJson], db)
        .await?;
    let mut slugs = Vec::new();
    for (slug, limits) in found {
        if limits::limits_of(&limits)?.named.iter().any(|one| one == name) {
            slugs.push(slug);
        }
    }
    Ok(slugs)
}

/// Columns of a task that names a limit.
#[derive(DerivePartialModel)]
#[sea_orm(entity = "task::Entity")]
struct Limited {
    id: i64,
    business_id: i64,
    status: String,
}

async fn tasks(
    db: &impl ConnectionTrait,
    open: Select<task::Entity>,
) -> Result<Vec<LimitedTask>, StoreError> {
    use task::Column as C;
    let found: Vec<Limited> = open.order_by_asc(C::Id).limit(TASKS_SHOWN_MAX).parts(db).await?;
    let owners: BTreeSet<i64> = found.iter().map(|row| row.business_id).collect();
    let owners: Vec<(i64, String)> = business::Entity::find()
        .filter(business::Column::Id.is_in(owners))
        .pluck([business::Column::Id, business::Column::Slug], db)
        .await?;
    let owners: BTreeMap<i64, String> = owners.into_iter().collect();
    let task = |row: Limited| {
        Ok(LimitedTask {
            id: TaskId(row.id),
            business: owners.get(&row.business_id).cloned().unwrap_or_default(),
            status: Status::parse(&row.status).ok_or_else(|| damaged("status", &row.status))?,
        })
    };
    found.into_iter().map(task).collect()
}

/// Formats a limit for the audit.
fn shown(limit: &NamedLimit) -> String {
    let Bounds { rate, concurrency } = limit.bounds;
    let rate = rate.map(|rate| rate.to_string());
    let mut shown = serde_json::json!({
        "limit": limit.name, "revision": limit.revision, "rate": rate, "concurrency": concurrency,
    });
    if !limit.metering.is_empty() {
        shown["metering"] = serde_json::json!(limit.metering);
    }
    shown.to_string()
}

async fn record(
    transaction: &Transaction,
    (action, name): (&str, &str),
    (before, after): (Option<&NamedLimit>, Option<&NamedLimit>),
    write: &Write,
    now: WallMs,
) -> Result<(), StoreError> {
    let change = Change {
        object: AuditObject::new(ObjectKind::Limit, name),
        task: None,
        business: None,
        action: action.to_owned(),
        before: before.map(shown),
        after: after.map(shown),
    };
    record::audit(transaction, &write.actor, change, now).await
}
