//! Sign-ins of browsers: hashes, never cookies. A sign-in that has ended has no row.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::ExprTrait as _;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use subtle::ConstantTimeEq;

use crate::sql::business::tokens;
use crate::sql::entity::sign_in;
use crate::sql::entity::sign_in::Column as C;
use crate::sql::task::record::{self, Change};
use crate::sql::{Fetch, Pluck, Run, Store, error, keep, settled};
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::access::sign_in_store::{NewSignIn, SIGN_INS_MAX, SignInStore, SignInView};
use windrow_engine::ports::access::token_store::TokenView;
use windrow_engine::ports::tasks::store::Write;
use windrow_engine::ports::tasks::upkeep::SWEEP_MAX;

#[async_trait]
impl SignInStore for Store {
    async fn add_sign_in(
        &self,
        token: &TokenView,
        new: &NewSignIn,
        write: &Write,
        now: WallMs,
    ) -> Result<SignInView, StoreError> {
        settled(|| add(self, token, new, write, now)).await
    }

    async fn sign_in(&self, hash: &str) -> Result<Option<SignInView>, StoreError> {
        // The index compares as databases do; this comparison takes constant time.
        let is_same = |row: &sign_in::Model| bool::from(row.cookie_hash.as_bytes().ct_eq(hash.as_bytes()));
        let found = sign_in::Entity::find().filter(C::CookieHash.eq(hash));
        let found = found.row(&self.readers).await?;
        view(&self.readers, found.filter(is_same)).await
    }

    async fn sign_in_of_row(&self, id: i64) -> Result<Option<SignInView>, StoreError> {
        let found = sign_in::Entity::find_by_id(id).row(&self.readers).await;
        view(&self.readers, found?).await
    }

    async fn sign_ins(&self, after: Option<i64>, limit: u32) -> Result<Vec<SignInView>, StoreError> {
        let found = sign_in::Entity::find()
            .filter(C::Id.gt(after.unwrap_or_default()))
            .order_by_asc(C::Id)
            .limit(u64::from(limit));
        let rows = found.rows(&self.readers).await?;
        views(&self.readers, rows).await
    }

    async fn end_sign_in(&self, ended: &SignInView, write: &Write, now: WallMs) -> Result<(), StoreError> {
        let transaction = self.write().await?;
        let gone = sign_in::Entity::delete_by_id(ended.id).run(&transaction).await;
        if gone? == 0 {
            return Ok(());
        }
        let change = Change {
            before: Some(shown(ended)),
            ..change(ended.id, "session.end")
        };
        record::audit(&transaction, &write.actor, change, now).await?;
        keep(transaction, write).await
    }
}

async fn add(
    store: &Store,
    token: &TokenView,
    new: &NewSignIn,
    write: &Write,
    now: WallMs,
) -> Result<SignInView, StoreError> {
    let transaction = store.write().await?;
    make_room(&transaction, token.id, now).await?;
    let row = sign_in::ActiveModel {
        id: NotSet,
        cookie_hash: Set(new.hash.clone()),
        token_id: Set(token.id),
        address: Set(new.address.clone()),
        created_at: Set(now.0),
        expires_at: Set(new.expires_at.0),
    };
    let inserted = sign_in::Entity::insert(row).exec(&transaction).await;
    let made = SignInView {
        id: inserted.map_err(error)?.last_insert_id,
        token: token.clone(),
        address: new.address.clone(),
        created_at: now,
        expires_at: new.expires_at,
    };
    let change = Change {
        after: Some(shown(&made)),
        ..change(made.id, "session.begin")
    };
    record::audit(&transaction, &write.actor, change, now).await?;
    keep(transaction, write).await?;
    Ok(made)
}

/// Deletes sign-ins that expired before a time.
pub(crate) async fn expire(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    let over: Vec<i64> = sign_in::Entity::find()
        .filter(C::ExpiresAt.lt(before.0))
        .limit(SWEEP_MAX)
        .pluck([C::Id], &store.readers)
        .await?;
    if over.is_empty() {
        return Ok(0);
    }
    let gone = sign_in::Entity::delete_many().filter(C::Id.is_in(over));
    gone.run(&store.writer).await
}

/// Deletes the expired sign-ins of a token, and the oldest above the maximum.
async fn make_room(db: &impl ConnectionTrait, token: i64, now: WallMs) -> Result<(), StoreError> {
    let of_token = || sign_in::Entity::find().filter(C::TokenId.eq(token));
    let newest_that_goes = of_token().order_by_desc(C::Id).offset(SIGN_INS_MAX - 1).limit(1);
    let newest_that_goes = newest_that_goes.row(db).await?;
    let mut goes = C::ExpiresAt.lte(now.0);
    if let Some(row) = newest_that_goes {
        goes = goes.or(C::Id.lte(row.id));
    }
    let gone = sign_in::Entity::delete_many()
        .filter(C::TokenId.eq(token))
        .filter(goes)
        .exec(db)
        .await;
    gone.map(drop).map_err(error)
}

async fn view(
    db: &impl ConnectionTrait,
    row: Option<sign_in::Model>,
) -> Result<Option<SignInView>, StoreError> {
    Ok(views(db, row.into_iter().collect()).await?.pop())
}

/// Returns the sign-ins of these rows. A sign-in whose token row is gone grants nothing, so it is left out.
async fn views(db: &impl ConnectionTrait, rows: Vec<sign_in::Model>) -> Result<Vec<SignInView>, StoreError> {
    let ids: BTreeSet<i64> = rows.iter().map(|row| row.token_id).collect();
    let tokens: BTreeMap<i64, TokenView> = tokens::of_rows(db, ids).await?;
    let view = |row: sign_in::Model| {
        Some(SignInView {
            token: tokens.get(&row.token_id)?.clone(),
            id: row.id,
            address: row.address,
            created_at: WallMs(row.created_at),
            expires_at: WallMs(row.expires_at),
        })
    };
    Ok(rows.into_iter().filter_map(view).collect())
}

fn change(id: i64, action: &str) -> Change {
    Change {
        object: AuditObject::new(ObjectKind::Session, id.to_string()),
        task: None,
        business: None,
        action: action.to_owned(),
        before: None,
        after: None,
    }
}

/// Formats a sign-in for the audit.
fn shown(sign_in: &SignInView) -> String {
    serde_json::json!({
        "id": sign_in.id, "token": sign_in.token.id, "name": sign_in.token.name, "address": sign_in.address,
        "expires_at_ms": sign_in.expires_at.0,
    })
    .to_string()
}
