//! Alerts, and the notices that they get: rows of the outbox, written with the change that causes them.

use async_trait::async_trait;
use sea_orm::ActiveValue::{NotSet, Set, Unchanged};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, SqlErr,
};
use std::time::Duration;

use crate::sql::business::outbox::{DUE, store_id};
use crate::sql::entity::{alert, outbox};
use crate::sql::task::record::{self, Change};
use crate::sql::{Fetch, Run, Store, Transaction, damaged, error, keep};
use windrow_core::alert::{ALERTS_MAX, AlertKind, Notice};
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::handling::alerts::{Alert, AlertDelivery, AlertError, AlertStore};
use windrow_engine::ports::tasks::store::Write;

/// Time for which an undelivered notice is retried.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Kind of a notice's row in the outbox.
const NOTICE: &str = "alert";
/// Longest name of an event, in bytes: with it, the id of a delivery fits its column.
const ABOUT_BYTES_MAX: usize = 150;

#[async_trait]
impl AlertStore for Store {
    async fn create_alert(&self, new: &Alert, write: &Write, now: WallMs) -> Result<Alert, AlertError> {
        let transaction = self.write().await?;
        let taken = || AlertError::Taken(new.name.clone());
        if find(&transaction, &new.name).await?.is_some() {
            return Err(taken());
        }
        let count = alert::Entity::find().count(&transaction).await.map_err(error)?;
        if count >= u64::from(ALERTS_MAX) {
            return Err(AlertError::TooMany(ALERTS_MAX));
        }
        let made = Alert {
            revision: 1,
            created_at: now,
            updated_at: now,
            ..new.clone()
        };
        let inserted = alert::Entity::insert(row(&made)?)
            .exec_without_returning(&transaction)
            .await;
        if let Err(fault) = inserted {
            // Another connection may have created it in the meantime.
            return Err(match fault.sql_err() {
                Some(SqlErr::UniqueConstraintViolation(_)) => taken(),
                _ => error(fault).into(),
            });
        }
        note(&transaction, "alert.create", (None, Some(&made)), write, now).await?;
        keep(transaction, write).await?;
        Ok(made)
    }

    async fn alert(&self, name: &str) -> Result<Option<Alert>, StoreError> {
        find(&self.readers, name).await?.map(view).transpose()
    }

    async fn alerts(&self, after: Option<&str>, count: u32) -> Result<Vec<Alert>, StoreError> {
        let found = alert::Entity::find()
            .filter(alert::Column::Name.gt(after.unwrap_or_default()))
            .order_by_asc(alert::Column::Name)
            .limit(u64::from(count))
            .rows(&self.readers)
            .await?;
        found.into_iter().map(view).collect()
    }

    async fn change_alert(&self, new: &Alert, write: &Write, now: WallMs) -> Result<Alert, AlertError> {
        let transaction = self.write().await?;
        let before = lock(&transaction, &new.name).await?;
        if before.revision != new.revision {
            return Err(AlertError::Changed {
                expected: new.revision,
                found: before.revision,
            });
        }
        if (&before.spec, &before.sealed) == (&new.spec, &new.sealed) {
            return Ok(before);
        }
        let after = Alert {
            revision: before.revision + 1,
            created_at: before.created_at,
            updated_at: now,
            ..new.clone()
        };
        let mut changed = row(&after)?;
        changed.name = Unchanged(after.name.clone());
        changed.update(&transaction).await.map_err(error)?;
        note(
            &transaction,
            "alert.edit",
            (Some(&before), Some(&after)),
            write,
            now,
        )
        .await?;
        keep(transaction, write).await?;
        Ok(after)
    }

    async fn delete_alert(&self, name: &str, write: &Write, now: WallMs) -> Result<Alert, AlertError> {
        let transaction = self.write().await?;
        let before = lock(&transaction, name).await?;
        alert::Entity::delete_by_id(name).run(&transaction).await?;
        let of_alert = outbox::Entity::delete_many().filter(outbox::Column::Alert.eq(name));
        of_alert.run(&transaction).await?;
        note(&transaction, "alert.delete", (Some(&before), None), write, now).await?;
        keep(transaction, write).await?;
        Ok(before)
    }

    async fn raise(&self, notice: &Notice, now: WallMs) -> Result<(), StoreError> {
        let transaction = self.write().await?;
        raise(&transaction, notice, now).await?;
        transaction.commit().await
    }

    async fn test_alert(&self, name: &str, now: WallMs) -> Result<AlertDelivery, AlertError> {
        let transaction = self.write().await?;
        lock(&transaction, name).await?;
        let body = Notice::test(name, now).to_string();
        enqueue(&transaction, name, ("test", body), now).await?;
        let made = deliveries(&transaction, name, None, 1).await?;
        transaction.commit().await?;
        let made = made.into_iter().next();
        made.ok_or_else(|| AlertError::NotFound(name.to_owned()))
    }

    async fn alert_deliveries(
        &self,
        name: &str,
        before: Option<i64>,
        count: u32,
    ) -> Result<Vec<AlertDelivery>, StoreError> {
        deliveries(&self.readers, name, before, count).await
    }
}

/// Returns true if any alert is about events of this kind.
pub(crate) async fn is_any(transaction: &Transaction, kind: AlertKind) -> Result<bool, StoreError> {
    Ok(all(transaction)
        .await?
        .iter()
        .any(|alert| alert.spec.on.contains(&kind)))
}

/// Enqueues a notice for each alert that wants it, in the transaction of the change that causes it.
pub(crate) async fn raise(transaction: &Transaction, notice: &Notice, now: WallMs) -> Result<(), StoreError> {
    for alert in all(transaction).await? {
        let wants = alert.spec.wants(notice.kind, notice.business.as_deref());
        if wants && !is_told(transaction, &alert.name, notice, now).await? {
            let body = notice.body(now).to_string();
            enqueue(transaction, &alert.name, (about(&notice.about), body), now).await?;
        }
    }
    Ok(())
}

async fn all(db: &impl ConnectionTrait) -> Result<Vec<Alert>, StoreError> {
    let rows = alert::Entity::find()
        .limit(u64::from(ALERTS_MAX))
        .rows(db)
        .await?;
    rows.into_iter().map(view).collect()
}

fn about(name: &str) -> &str {
    &name[..name.floor_char_boundary(ABOUT_BYTES_MAX)]
}

async fn is_told(
    transaction: &Transaction,
    alert: &str,
    notice: &Notice,
    now: WallMs,
) -> Result<bool, StoreError> {
    use outbox::Column as C;
    let since = notice.quiet.map_or(i64::MIN, |quiet| now.minus(quiet).0);
    let told = outbox::Entity::find()
        .filter(C::Alert.eq(alert))
        .filter(C::About.eq(about(&notice.about)))
        .filter(C::CreatedAt.gt(since))
        .row(transaction)
        .await?;
    Ok(told.is_some())
}

async fn enqueue(
    transaction: &Transaction,
    alert: &str,
    (about, body): (&str, String),
    now: WallMs,
) -> Result<(), StoreError> {
    let store = store_id(transaction).await?;
    let row = outbox::ActiveModel {
        id: NotSet,
        task_id: Set(None),
        start_no: Set(0),
        kind: Set(NOTICE.to_owned()),
        alert: Set(Some(alert.to_owned())),
        about: Set(Some(about.to_owned())),
        // Two events of one name differ in their time; each attempt has the same id.
        delivery_id: Set(Some(format!("{}-{alert}-{about}-{}", store.0, now.0))),
        payload: Set(body),
        state: Set(DUE.to_owned()),
        due_at: Set(now.0),
        attempts: Set(0),
        last_error: Set(None),
        expires_at: Set(Some(now.plus(GIVEN_UP_AFTER).0)),
        created_at: Set(now.0),
    };
    outbox::Entity::insert(row).run(transaction).await?;
    Ok(())
}

async fn deliveries(
    db: &impl ConnectionTrait,
    name: &str,
    before: Option<i64>,
    count: u32,
) -> Result<Vec<AlertDelivery>, StoreError> {
    use outbox::Column as C;
    let found = outbox::Entity::find()
        .filter(C::Alert.eq(name))
        .filter(C::Id.lt(before.unwrap_or(i64::MAX)))
        .order_by_desc(C::Id)
        .limit(u64::from(count))
        .rows(db)
        .await?;
    let delivery = |row: outbox::Model| AlertDelivery {
        id: row.id,
        delivery_id: row.delivery_id.unwrap_or_default(),
        notice: row.payload,
        state: row.state,
        attempts: row.attempts.cast_unsigned(),
        last_error: row.last_error,
        created_at: WallMs(row.created_at),
        due_at: WallMs(row.due_at),
    };
    Ok(found.into_iter().map(delivery).collect())
}

async fn find(db: &impl ConnectionTrait, name: &str) -> Result<Option<alert::Model>, StoreError> {
    alert::Entity::find_by_id(name).row(db).await
}

async fn lock(transaction: &Transaction, name: &str) -> Result<Alert, AlertError> {
    let found = alert::Entity::find_by_id(name)
        .lock_exclusive()
        .one(transaction)
        .await;
    let found = found
        .map_err(error)?
        .ok_or_else(|| AlertError::NotFound(name.to_owned()))?;
    Ok(view(found)?)
}

fn view(row: alert::Model) -> Result<Alert, StoreError> {
    let spec = serde_json::from_str(&row.spec).map_err(|fault| damaged("alert.spec", &fault.to_string()));
    Ok(Alert {
        spec: spec?,
        name: row.name,
        sealed: row.secrets,
        revision: row.revision.cast_unsigned(),
        created_at: WallMs(row.created_at),
        updated_at: WallMs(row.updated_at),
    })
}

fn row(alert: &Alert) -> Result<alert::ActiveModel, StoreError> {
    let spec = serde_json::to_string(&alert.spec).map_err(|fault| StoreError::Refused(fault.to_string()))?;
    Ok(alert::ActiveModel {
        name: Set(alert.name.clone()),
        spec: Set(spec),
        secrets: Set(alert.sealed.clone()),
        revision: Set(alert.revision.cast_signed()),
        created_at: Set(alert.created_at.0),
        updated_at: Set(alert.updated_at.0),
    })
}

async fn note(
    transaction: &Transaction,
    action: &str,
    (before, after): (Option<&Alert>, Option<&Alert>),
    write: &Write,
    now: WallMs,
) -> Result<(), StoreError> {
    let name = before
        .or(after)
        .map(|alert| alert.name.clone())
        .unwrap_or_default();
    let shown = |alert: &Alert| {
        serde_json::json!({"alert": alert.name, "revision": alert.revision, "spec": alert.spec}).to_string()
    };
    let change = Change {
        object: AuditObject::new(ObjectKind::Alert, name),
        task: None,
        business: None,
        action: action.to_owned(),
        before: before.map(shown),
        after: after.map(shown),
    };
    record::audit(transaction, &write.actor, change, now).await
}
