//! Remembered responses: rows of the table `idempotency` that did not create a task.

use async_trait::async_trait;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::sql::entity::idempotency::{ActiveModel, Column as C, Entity, Model};
use crate::sql::entity::session;
use crate::sql::{Fetch, Run, Store, Transaction, damaged, settled, words};
use windrow_core::ids::{SessionId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::idempotency::{IdempotencyStore, KeyState, StoredResponse};

/// Status of a key whose request is still in progress.
const OPEN: i32 = 0;

#[async_trait]
impl IdempotencyStore for Store {
    async fn take_key(
        &self,
        scope: &str,
        key: &str,
        fingerprint: &str,
        holder: Option<SessionId>,
        stale_after_ms: i64,
        now: WallMs,
    ) -> Result<KeyState, StoreError> {
        let (scope, key) = hashed(scope, key);
        let taker = Taker {
            request: words::digest(&[fingerprint]),
            session: holder.map(words::session_text),
            stale_after_ms,
            now,
        };
        // If two requests come at once, one conflicts with the other's row and reads it on the next attempt.
        settled(|| take(self, (&scope, &key), &taker)).await
    }

    async fn answer_key(&self, scope: &str, key: &str, answer: &StoredResponse) -> Result<(), StoreError> {
        let transaction = self.write().await?;
        let (scope, key) = hashed(scope, key);
        // A key freed or forgotten in the meantime stays so: the request may be repeated.
        Entity::update_many()
            .col_expr(C::Status, Expr::value(i32::from(answer.status)))
            .col_expr(C::Response, Expr::value(answer.text.as_str()))
            .filter(C::Scope.eq(scope))
            .filter(C::KeyHash.eq(key))
            .filter(C::Status.eq(OPEN))
            .run(&transaction)
            .await?;
        transaction.commit().await
    }

    async fn free_key(&self, scope: &str, key: &str) -> Result<(), StoreError> {
        let transaction = self.write().await?;
        let (scope, key) = hashed(scope, key);
        Entity::delete_many()
            .filter(C::Scope.eq(scope))
            .filter(C::KeyHash.eq(key))
            .filter(C::Status.eq(OPEN))
            .run(&transaction)
            .await?;
        transaction.commit().await
    }

    async fn forget_keys(&self, before: WallMs, limit: u32) -> Result<u64, StoreError> {
        let transaction = self.write().await?;
        let old = Entity::find()
            .filter(C::CreatedAt.lt(before.0))
            .order_by_asc(C::CreatedAt)
            .limit(u64::from(limit))
            .rows(&transaction)
            .await?;
        for row in &old {
            let key = (row.scope.clone(), row.key_hash.clone());
            Entity::delete_by_id(key).run(&transaction).await?;
        }
        transaction.commit().await?;
        Ok(old.len() as u64)
    }
}

/// Hashes scope and key to 64 digits each, so that no slug of a business equals such a scope.
fn hashed(scope: &str, key: &str) -> (String, String) {
    (words::digest(&["request", scope]), words::digest(&[key]))
}

/// Request that claims a key.
struct Taker {
    /// Digest of the request's content.
    request: String,
    /// Session that answers the request.
    session: Option<String>,
    stale_after_ms: i64,
    now: WallMs,
}

async fn take(store: &Store, (scope, key): (&str, &str), taker: &Taker) -> Result<KeyState, StoreError> {
    let transaction = store.write().await?;
    let (scope, key) = (scope.to_owned(), key.to_owned());
    let known = Entity::find_by_id((scope.clone(), key.clone()))
        .row(&transaction)
        .await?;
    let state = match known {
        None => {
            insert(&transaction, (scope, key), taker).await?;
            KeyState::New
        }
        Some(row) if row.request_hash != taker.request => KeyState::Reused,
        Some(row) if row.status != OPEN => KeyState::Answered(answer(row)?),
        Some(row) if is_answered_for(&transaction, &row, taker).await? => KeyState::InProgress,
        Some(row) => retake(&transaction, &row, taker).await?,
    };
    transaction.commit().await?;
    Ok(state)
}

async fn insert(
    transaction: &Transaction,
    (scope, key): (String, String),
    taker: &Taker,
) -> Result<(), StoreError> {
    let row = ActiveModel {
        scope: Set(scope),
        key_hash: Set(key),
        request_hash: Set(taker.request.clone()),
        task_id: Set(0),
        response: Set(None),
        created_at: Set(taker.now.0),
        status: Set(OPEN),
        session_id: Set(taker.session.clone()),
    };
    Entity::insert(row).run(transaction).await?;
    Ok(())
}

/// Returns true if the request of an open key may still be answered. `fenced` is never reset, so no lock is needed.
async fn is_answered_for(transaction: &Transaction, row: &Model, taker: &Taker) -> Result<bool, StoreError> {
    if row.created_at <= taker.now.0.saturating_sub(taker.stale_after_ms) {
        return Ok(false);
    }
    let Some(holder) = &row.session_id else {
        return Ok(true);
    };
    let holder = session::Entity::find_by_id(holder.clone())
        .row(transaction)
        .await?;
    Ok(holder.is_some_and(|session| !session.fenced))
}

/// Takes over a key whose request nobody will answer, so that it is made again.
async fn retake(transaction: &Transaction, row: &Model, taker: &Taker) -> Result<KeyState, StoreError> {
    let taken = Entity::update_many()
        .col_expr(C::CreatedAt, Expr::value(taker.now.0))
        .col_expr(C::SessionId, Expr::value(taker.session.clone()))
        .filter(C::Scope.eq(row.scope.as_str()))
        .filter(C::KeyHash.eq(row.key_hash.as_str()))
        .filter(C::Status.eq(OPEN))
        .filter(C::CreatedAt.eq(row.created_at))
        .filter(same_holder(row))
        .run(transaction)
        .await?;
    Ok(if taken == 1 {
        KeyState::New
    } else {
        KeyState::InProgress
    })
}

fn same_holder(row: &Model) -> SimpleExpr {
    match &row.session_id {
        Some(holder) => C::SessionId.eq(holder.as_str()),
        None => C::SessionId.is_null(),
    }
}

fn answer(row: Model) -> Result<StoredResponse, StoreError> {
    let status = u16::try_from(row.status).map_err(|_| damaged("status", &row.status.to_string()))?;
    Ok(StoredResponse {
        status,
        text: row.response.unwrap_or_default(),
    })
}
