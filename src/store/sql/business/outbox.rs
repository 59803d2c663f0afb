//! Hook calls and notices that are due: taken by compare-and-set, settled under the attempt that took them.

use std::collections::{BTreeSet, HashMap};
use windrow_words::store as say;

use async_trait::async_trait;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::{Expr, ExprTrait as _};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use serde_json::Value;

use crate::sql::entity::{business, meta, outbox, task};
use crate::sql::{Fetch, Pluck, Run, Store, Transaction};
use windrow_core::business::HookKind;
use windrow_core::ids::{StoreId, TaskId, WallMs};
use windrow_core::life::HookCall;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::outbox::{Delivery, HookTarget, OutboxStore, Settlement, Target};
use windrow_host::start_token;

pub(crate) const DUE: &str = "due";
pub(crate) const DONE: &str = "done";
pub(crate) const DEAD: &str = "dead";

/// Enqueues a hook call in the transaction of the change that causes it.
pub(crate) async fn leave(
    transaction: &Transaction,
    task: TaskId,
    call: &HookCall,
    now: WallMs,
) -> Result<(), StoreError> {
    let store = store_id(transaction).await?;
    // At most one call of a kind per start: every delivery attempt has the same id.
    let delivery = format!("{}-{task}-s{}-{}", store.0, call.start_no, call.kind.as_str());
    let call = outbox::ActiveModel {
        id: NotSet,
        task_id: Set(Some(task.0)),
        start_no: Set(call.start_no.cast_signed()),
        alert: Set(None),
        about: Set(None),
        kind: Set(call.kind.as_str().to_owned()),
        payload: Set(call.body.to_string()),
        state: Set(DUE.to_owned()),
        due_at: Set(now.0),
        attempts: Set(0),
        created_at: Set(now.0),
        delivery_id: Set(Some(delivery)),
        last_error: Set(None),
        expires_at: Set(Some(call.expires_at.0)),
    };
    outbox::Entity::insert(call).run(transaction).await?;
    Ok(())
}

pub(super) async fn store_id(db: &impl ConnectionTrait) -> Result<StoreId, StoreError> {
    let store = meta::Entity::find_by_id("store_id".to_owned()).row(db).await?;
    Ok(StoreId(store.map(|fact| fact.val).unwrap_or_default()))
}

/// Slug of the business, by task.
type Owners = HashMap<i64, String>;

#[async_trait]
impl OutboxStore for Store {
    async fn take_due(&self, now: WallMs, until: WallMs, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        use outbox::Column as C;
        let rows = outbox::Entity::find()
            .filter(C::State.eq(DUE))
            .filter(C::DueAt.lte(now.0))
            .order_by_asc(C::DueAt)
            .order_by_asc(C::Id)
            .limit(u64::from(limit))
            .rows(&self.readers)
            .await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let owners = owners(self, &rows).await?;
        let mut rows = rows;
        // Dispatchers on other nodes lock the same rows, all in this order.
        rows.sort_by_key(|row| row.id);
        let transaction = self.write().await?;
        let mut taken = Vec::with_capacity(rows.len());
        for row in rows {
            let won = outbox::Entity::update_many()
                .col_expr(C::DueAt, Expr::value(until.0))
                .col_expr(C::Attempts, Expr::col(C::Attempts).add(1))
                .filter(C::Id.eq(row.id))
                .filter(C::State.eq(DUE))
                .filter(C::Attempts.eq(row.attempts))
                .filter(C::DueAt.eq(row.due_at))
                .run(&transaction)
                .await?;
            if won == 1 {
                taken.push(row);
            }
        }
        transaction.commit().await?;
        Ok(taken
            .into_iter()
            .filter_map(|row| delivery(self, row, &owners))
            .collect())
    }

    async fn settle(&self, delivery: &Delivery, settlement: &Settlement) -> Result<bool, StoreError> {
        use outbox::Column as C;
        let update = outbox::Entity::update_many()
            .filter(C::Id.eq(delivery.id))
            .filter(C::State.eq(DUE))
            .filter(C::Attempts.eq(delivery.attempts.cast_signed()));
        let update = match settlement {
            Settlement::Done => update.col_expr(C::State, Expr::value(DONE)),
            Settlement::Again { due_at, error } => {
                let update = update.col_expr(C::DueAt, Expr::value(due_at.0));
                match error {
                    Some(error) => update.col_expr(C::LastError, Expr::value(error.as_str())),
                    None => update,
                }
            }
            Settlement::Dead { error } => update
                .col_expr(C::State, Expr::value(DEAD))
                .col_expr(C::LastError, Expr::value(error.as_str())),
        };
        let over = !matches!(settlement, Settlement::Again { .. });
        let has_token = matches!(&delivery.target, Target::Hook(hook) if hook.kind == HookKind::Prepare);
        let update = if over && has_token {
            // The payload is the only place that holds the start token, sealed: erase it.
            update.col_expr(C::Payload, Expr::value("{}"))
        } else {
            update
        };
        Ok(update.run(&self.writer).await? == 1)
    }
}

async fn owners(store: &Store, rows: &[outbox::Model]) -> Result<Owners, StoreError> {
    let tasks: BTreeSet<i64> = rows.iter().filter_map(|row| row.task_id).collect();
    if tasks.is_empty() {
        return Ok(Owners::new());
    }
    let tasks: Vec<(i64, i64)> = task::Entity::find()
        .filter(task::Column::Id.is_in(tasks))
        .pluck([task::Column::Id, task::Column::BusinessId], &store.readers)
        .await?;
    let ids: BTreeSet<i64> = tasks.iter().map(|(_, business)| *business).collect();
    let slugs: Vec<(i64, String)> = business::Entity::find()
        .filter(business::Column::Id.is_in(ids))
        .pluck([business::Column::Id, business::Column::Slug], &store.readers)
        .await?;
    let slugs: HashMap<i64, String> = slugs.into_iter().collect();
    Ok(tasks
        .into_iter()
        .filter_map(|(task, owner)| Some((task, slugs.get(&owner)?.clone())))
        .collect())
}

/// Builds a delivery. Returns `None` for a task that is being deleted, for a kind that only a newer program knows, or
/// for a token sealed with another key: a node that can deliver it may take it later.
fn delivery(store: &Store, row: outbox::Model, owners: &Owners) -> Option<Delivery> {
    let (target, body) = match row.alert {
        Some(alert) => (Target::Alert(alert), row.payload),
        None => {
            let found = hook(store, &row, owners).inspect_err(
                |why| tracing::error!(delivery = row.id, kind = row.kind, %why, "hook call can't be delivered by this node"),
            );
            let (hook, body) = found.ok()?;
            (Target::Hook(hook), body)
        }
    };
    Some(Delivery {
        id: row.id,
        target,
        delivery_id: row
            .delivery_id
            .unwrap_or_else(|| format!("{}-{}", row.kind, row.id)),
        body,
        attempts: row.attempts.cast_unsigned() + 1,
        expires_at: WallMs(row.expires_at.unwrap_or(i64::MAX)),
    })
}

/// Returns the hook that a row is about, and the body to send.
fn hook(store: &Store, row: &outbox::Model, owners: &Owners) -> Result<(HookTarget, String), String> {
    let owned = row.task_id.and_then(|task| Some((task, owners.get(&task)?)));
    let found = HookKind::parse(&row.kind).zip(owned);
    let (kind, (task, business)) = found.ok_or_else(|| say::no_hook_task().to_string())?;
    let task = TaskId(task);
    let body = match kind {
        HookKind::Prepare => opened(store, task, &row.payload)?,
        _ => row.payload.clone(),
    };
    let target = HookTarget {
        task,
        start_no: row.start_no.cast_unsigned(),
        business: business.clone(),
        kind,
    };
    Ok((target, body))
}

/// Returns the body with the start token opened, as the business is to see it.
fn opened(store: &Store, task: TaskId, payload: &str) -> Result<String, String> {
    let mut body: Value = serde_json::from_str(payload).map_err(|why| why.to_string())?;
    let token = body["start_token"].as_str().unwrap_or_default();
    let vault = store.vault.as_ref().ok_or_else(|| say::no_key().to_string())?;
    let plain = start_token::open(&**vault, task, token).map_err(|why| why.to_string())?;
    body["start_token"] = plain.into();
    Ok(body.to_string())
}
