//! Businesses and their revisions. A row created by `windrow run` has no handler and is not a business of the
//! service.

use async_trait::async_trait;
use sea_orm::ActiveValue::{NotSet, Set, Unchanged};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect, SqlErr,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use windrow_words::store as say;

use crate::sql::entity::{audit, business};
use crate::sql::session::named_limits;
use crate::sql::task::record::{self, Change};
use crate::sql::task::{handover, tasks};
use crate::sql::{Fetch, Run, Store, Transaction, damaged, error, keep, locks};
use windrow_core::business::{BusinessSpec, POOL_DEFAULT};
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::access::business_store::{Business, BusinessChange, BusinessError, BusinessStore};
use windrow_engine::ports::tasks::store::{AuditEntry, Write};

#[async_trait]
impl BusinessStore for Store {
    async fn register(
        &self,
        slug: &str,
        spec: &BusinessSpec,
        sealed: Option<Vec<u8>>,
        write: &Write,
        now: WallMs,
    ) -> Result<Business, BusinessError> {
        let transaction = self.write().await?;
        let before = locks::business(&transaction, slug).await?;
        if before.as_ref().is_some_and(|row| row.handler.is_some()) {
            return Err(BusinessError::Taken(slug.to_owned()));
        }
        refuse_missing(&transaction, spec).await?;
        let mut row = columns(spec)?;
        row.secrets = Set(sealed);
        row.updated_at = Set(now.0);
        match &before {
            None => insert(&transaction, row, slug, now).await?,
            Some(before) => update(&transaction, row, before).await?,
        }
        let made = load(&transaction, slug).await?;
        record(&transaction, None, &made, "business.create", write, now).await?;
        keep(transaction, write).await?;
        Ok(made)
    }

    async fn business(&self, slug: &str) -> Result<Option<Business>, StoreError> {
        let row = match self.talk().await? {
            Some(mut talk) => talk.all(&of_slug(slug)).await?.into_iter().next(),
            None => find(&self.readers, slug).await?,
        };
        row.filter(|row| row.handler.is_some()).map(view).transpose()
    }

    async fn businesses(
        &self,
        archived: bool,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Business>, StoreError> {
        use business::Column as C;
        let mut found = business::Entity::find().filter(C::Handler.is_not_null());
        found = if archived {
            found.filter(C::ArchivedAt.is_not_null())
        } else {
            found.filter(C::ArchivedAt.is_null())
        };
        if let Some(after) = after {
            found = found.filter(C::Slug.gt(after));
        }
        let rows = found
            .order_by_asc(C::Slug)
            .limit(u64::from(limit))
            .rows(&self.readers)
            .await;
        rows?.into_iter().map(view).collect()
    }

    async fn change_business(
        &self,
        slug: &str,
        expected: Option<u64>,
        change: &BusinessChange,
        action: &str,
        write: &Write,
        now: WallMs,
    ) -> Result<Business, BusinessError> {
        let transaction = self.write().await?;
        let row = locks::business(&transaction, slug)
            .await?
            .filter(|row| row.handler.is_some());
        let row = row.ok_or_else(|| BusinessError::NotFound(slug.to_owned()))?;
        let found = row.revision.cast_unsigned();
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(BusinessError::Changed { expected, found });
        }
        let mut new = match &change.spec {
            Some(spec) => {
                refuse_missing(&transaction, spec).await?;
                columns(spec)?
            }
            None => business::ActiveModel::default(),
        };
        if let Some(sealed) = &change.sealed {
            new.secrets = Set(Some(sealed.clone()));
        }
        if let Some(archived) = change.archived {
            new.archived_at = Set(archived.then_some(now.0));
        }
        new.updated_at = Set(now.0);
        update(&transaction, new, &row).await?;
        let (before, after) = (view(row)?, load(&transaction, slug).await?);
        if is_run_otherwise(&before, &after) {
            handover::begin_anew(&transaction, after.id, now).await?;
        }
        record(&transaction, Some(before), &after, action, write, now).await?;
        keep(transaction, write).await?;
        Ok(after)
    }

    async fn business_revisions(
        &self,
        slug: &str,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(i64, AuditEntry)>, StoreError> {
        use audit::Column as C;
        let Some(row) = find(&self.readers, slug).await? else {
            return Ok(Vec::new());
        };
        let mut found = audit::Entity::find().filter(C::BusinessId.eq(row.id));
        if let Some(before) = before {
            found = found.filter(C::Id.lt(before));
        }
        let found = found
            .filter(C::Action.like("business.%"))
            .order_by_desc(C::Id)
            .limit(u64::from(limit));
        Ok(found
            .rows(&self.readers)
            .await?
            .into_iter()
            .map(|row| (row.id, tasks::entry(row)))
            .collect())
    }
}

/// Returns the row of a slug, with or without a handler.
pub(crate) async fn find(
    db: &impl ConnectionTrait,
    slug: &str,
) -> Result<Option<business::Model>, StoreError> {
    of_slug(slug).row(db).await
}

fn of_slug(slug: &str) -> sea_orm::Select<business::Entity> {
    business::Entity::find().filter(business::Column::Slug.eq(slug))
}

async fn load(transaction: &Transaction, slug: &str) -> Result<Business, StoreError> {
    let row = find(transaction, slug).await?;
    view(row.ok_or_else(|| damaged("business", slug))?)
}

/// Fails if a business names a limit that does not exist.
async fn refuse_missing(transaction: &Transaction, spec: &BusinessSpec) -> Result<(), BusinessError> {
    match named_limits::missing(transaction, &spec.limits.named).await? {
        Some(name) => Err(BusinessError::NoLimit(name)),
        None => Ok(()),
    }
}

/// Converts a specification to the columns of its row.
fn columns(spec: &BusinessSpec) -> Result<business::ActiveModel, StoreError> {
    Ok(business::ActiveModel {
        display_name: Set(spec.display_name.clone()),
        pool: Set(Some(spec.pool.clone())),
        handler: Set(Some(json(&spec.handler)?)),
        hooks: Set(Some(json(&spec.hooks)?)),
        defaults_json: Set(Some(json(&spec.defaults)?)),
        limits_json: Set(Some(json(&spec.limits)?)),
        ..business::ActiveModel::default()
    })
}

async fn insert(
    transaction: &Transaction,
    mut row: business::ActiveModel,
    slug: &str,
    now: WallMs,
) -> Result<(), BusinessError> {
    row.id = NotSet;
    row.slug = Set(slug.to_owned());
    row.revision = Set(1);
    row.version = Set(1);
    row.archived_at = Set(None);
    row.created_at = Set(now.0);
    let inserted = business::Entity::insert(row)
        .exec_without_returning(transaction)
        .await;
    inserted.map(drop).map_err(|cause| taken_or(cause, slug))
}

/// Returns `Taken` for a unique violation: without a write lock on the whole database, another connection may take
/// the slug first.
fn taken_or(cause: DbErr, slug: &str) -> BusinessError {
    match cause.sql_err() {
        Some(SqlErr::UniqueConstraintViolation(_)) => BusinessError::Taken(slug.to_owned()),
        _ => error(cause).into(),
    }
}

/// Writes columns by compare-and-set on the version; revision and version go up by one.
async fn update(
    transaction: &Transaction,
    mut new: business::ActiveModel,
    before: &business::Model,
) -> Result<(), StoreError> {
    new.id = Unchanged(before.id);
    new.revision = Set(before.revision + 1);
    new.version = Set(before.version + 1);
    let written = business::Entity::update_many()
        .set(new)
        .filter(business::Column::Id.eq(before.id))
        .filter(business::Column::Version.eq(before.version))
        .run(transaction)
        .await?;
    match written {
        1 => Ok(()),
        _ => Err(StoreError::Unavailable(
            say::changed_meanwhile(&before.slug).to_string(),
        )),
    }
}

/// Returns true if runs must reopen what they opened when they began: the handler, the named limits or the secrets
/// changed. A merely rotated secret must sign the calls of all nodes too, since a business may forget the previous
/// one.
fn is_run_otherwise(before: &Business, after: &Business) -> bool {
    before.spec.handler != after.spec.handler
        || before.spec.limits.named != after.spec.limits.named
        || before.sealed != after.sealed
}

/// Writes the audit entry. Of secrets, it says only that they changed.
async fn record(
    transaction: &Transaction,
    before: Option<Business>,
    after: &Business,
    action: &str,
    write: &Write,
    now: WallMs,
) -> Result<(), StoreError> {
    let secrets_before = before.as_ref().and_then(|was| was.sealed.as_ref());
    let secrets_changed = secrets_before != after.sealed.as_ref();
    let change = Change {
        object: AuditObject::new(ObjectKind::Business, &after.slug),
        task: None,
        business: Some(after.id),
        action: action.to_owned(),
        before: before.map(|was| shown(&was, false)).transpose()?,
        after: Some(shown(after, secrets_changed)?),
    };
    record::audit(transaction, &write.actor, change, now).await
}

#[derive(Serialize)]
struct Shown<'a> {
    slug: &'a str,
    revision: u64,
    archived: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    secrets_changed: bool,
    spec: &'a BusinessSpec,
}

fn shown(business: &Business, secrets_changed: bool) -> Result<String, StoreError> {
    json(&Shown {
        slug: &business.slug,
        revision: business.revision,
        archived: business.archived_at.is_some(),
        secrets_changed,
        spec: &business.spec,
    })
}

fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|cause| StoreError::Refused(format!("a business: {cause}")))
}

fn read<T: DeserializeOwned>(text: Option<&str>, what: &str) -> Result<T, StoreError> {
    serde_json::from_str(text.unwrap_or("{}")).map_err(|cause| damaged(what, &cause.to_string()))
}

fn view(row: business::Model) -> Result<Business, StoreError> {
    Ok(Business {
        id: row.id,
        spec: BusinessSpec {
            display_name: row.display_name,
            pool: row.pool.unwrap_or_else(|| POOL_DEFAULT.to_owned()),
            handler: read(row.handler.as_deref(), "a business's handler")?,
            hooks: read(row.hooks.as_deref(), "a business's hooks")?,
            defaults: read(row.defaults_json.as_deref(), "a business's defaults")?,
            limits: read(row.limits_json.as_deref(), "a business's limits")?,
        },
        slug: row.slug,
        sealed: row.secrets,
        revision: row.revision.cast_unsigned(),
        archived_at: row.archived_at.map(WallMs),
        created_at: WallMs(row.created_at),
        updated_at: WallMs(row.updated_at),
    })
}

#[cfg(test)]
mod tests;
