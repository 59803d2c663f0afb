//! Tokens of the API server: hashes, never the tokens.

use std::collections::{BTreeMap, BTreeSet};
use windrow_words::store as say;

use async_trait::async_trait;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use subtle::ConstantTimeEq;

use crate::sql::business::businesses;
use crate::sql::entity::{business, token};
use crate::sql::task::record::{self, Change};
use crate::sql::{Fetch, Run, Store, damaged, error, keep, settled};
use windrow_core::business::access::Role;
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::access::token_store::{NewToken, TokenStore, TokenView};
use windrow_engine::ports::tasks::store::Write;

#[async_trait]
impl TokenStore for Store {
    async fn add_token(&self, new: &NewToken, write: &Write, now: WallMs) -> Result<TokenView, StoreError> {
        settled(|| add(self, new, write, now)).await
    }

    async fn token(&self, hash: &str) -> Result<Option<TokenView>, StoreError> {
        // The index compares as databases do; this comparison takes constant time.
        let is_same = |row: &token::Model| bool::from(row.token_hash.as_bytes().ct_eq(hash.as_bytes()));
        match by_hash(&self.readers, hash).await?.filter(is_same) {
            Some(row) => view(&self.readers, row).await.map(Some),
            None => Ok(None),
        }
    }

    async fn tokens(&self, after: Option<i64>, limit: u32) -> Result<Vec<TokenView>, StoreError> {
        let mut found = token::Entity::find();
        if let Some(after) = after {
            found = found.filter(token::Column::Id.gt(after));
        }
        let found = found.order_by_asc(token::Column::Id).limit(u64::from(limit));
        let rows = found.rows(&self.readers).await?;
        views(&self.readers, rows).await
    }

    async fn revoke_token(
        &self,
        id: i64,
        write: &Write,
        now: WallMs,
    ) -> Result<Option<TokenView>, StoreError> {
        let transaction = self.write().await?;
        let Some(row) = token::Entity::find_by_id(id)
            .lock_exclusive()
            .row(&transaction)
            .await?
        else {
            return Ok(None);
        };
        let owner = row.business_id;
        let before = view(&transaction, row).await?;
        if before.revoked_at.is_some() {
            return Ok(Some(before));
        }
        let revoked = token::Entity::update_many()
            .col_expr(token::Column::RevokedAt, Expr::value(now.0))
            .filter(token::Column::Id.eq(id))
            .filter(token::Column::RevokedAt.is_null())
            .run(&transaction)
            .await?;
        if revoked != 1 {
            return Err(StoreError::Unavailable(say::token_revoked().to_string()));
        }
        let after = TokenView {
            revoked_at: Some(now),
            ..before.clone()
        };
        let change = change("token.revoke", owner, Some(&before), &after);
        record::audit(&transaction, &write.actor, change, now).await?;
        keep(transaction, write).await?;
        Ok(Some(after))
    }
}

async fn add(store: &Store, new: &NewToken, write: &Write, now: WallMs) -> Result<TokenView, StoreError> {
    let transaction = store.write().await?;
    if let Some(known) = by_hash(&transaction, &new.hash).await? {
        return view(&transaction, known).await;
    }
    let business_id = match &new.grant.business {
        None => None,
        Some(slug) => Some(business_id(&transaction, slug).await?),
    };
    let row = token::ActiveModel {
        id: NotSet,
        token_hash: Set(new.hash.clone()),
        name: Set(new.grant.name.clone()),
        role: Set(new.grant.role.as_str().to_owned()),
        business_id: Set(business_id),
        expires_at: Set(new.grant.expires_at.map(|at| at.0)),
        revoked_at: Set(None),
        created_at: Set(now.0),
        prefix: Set(Some(new.prefix.clone())),
        created_by: Set(Some(write.actor.name.clone())),
    };
    let id = token::Entity::insert(row).exec(&transaction).await;
    let id = id.map_err(error)?.last_insert_id;
    let made = TokenView {
        id,
        name: new.grant.name.clone(),
        prefix: new.prefix.clone(),
        role: new.grant.role,
        business: new.grant.business.clone(),
        expires_at: new.grant.expires_at,
        revoked_at: None,
        created_at: now,
        created_by: write.actor.name.clone(),
    };
    let change = change("token.create", business_id, None, &made);
    record::audit(&transaction, &write.actor, change, now).await?;
    keep(transaction, write).await?;
    Ok(made)
}

async fn by_hash(db: &impl ConnectionTrait, hash: &str) -> Result<Option<token::Model>, StoreError> {
    token::Entity::find()
        .filter(token::Column::TokenHash.eq(hash))
        .row(db)
        .await
}

async fn business_id(db: &impl ConnectionTrait, slug: &str) -> Result<i64, StoreError> {
    let row = businesses::find(db, slug)
        .await?
        .filter(|row| row.handler.is_some());
    row.map(|row| row.id)
        .ok_or_else(|| StoreError::Refused(say::no_business(slug).to_string()))
}

/// Returns the tokens with these row ids, by id.
pub(super) async fn of_rows(
    db: &impl ConnectionTrait,
    ids: BTreeSet<i64>,
) -> Result<BTreeMap<i64, TokenView>, StoreError> {
    let found = token::Entity::find().filter(token::Column::Id.is_in(ids));
    let views = views(db, found.rows(db).await?).await?;
    Ok(views.into_iter().map(|view| (view.id, view)).collect())
}

async fn views(db: &impl ConnectionTrait, rows: Vec<token::Model>) -> Result<Vec<TokenView>, StoreError> {
    let ids: BTreeSet<i64> = rows.iter().filter_map(|row| row.business_id).collect();
    let mut owners = BTreeMap::new();
    if !ids.is_empty() {
        let found = business::Entity::find().filter(business::Column::Id.is_in(ids));
        let found = found.rows(db).await?;
        owners.extend(found.into_iter().map(|owner| (owner.id, owner.slug)));
    }
    let of = |row: token::Model| {
        let owner = row.business_id.and_then(|id| owners.get(&id).cloned());
        of_row(row, owner)
    };
    rows.into_iter().map(of).collect()
}

async fn view(db: &impl ConnectionTrait, row: token::Model) -> Result<TokenView, StoreError> {
    let owner = match row.business_id {
        Some(id) => business::Entity::find_by_id(id).row(db).await?,
        None => None,
    };
    of_row(row, owner.map(|owner| owner.slug))
}

fn of_row(row: token::Model, business: Option<String>) -> Result<TokenView, StoreError> {
    Ok(TokenView {
        id: row.id,
        role: Role::parse(&row.role).ok_or_else(|| damaged("token.role", &row.role))?,
        name: row.name,
        prefix: row.prefix.unwrap_or_default(),
        business,
        expires_at: row.expires_at.map(WallMs),
        revoked_at: row.revoked_at.map(WallMs),
        created_at: WallMs(row.created_at),
        created_by: row.created_by.unwrap_or_default(),
    })
}

fn change(action: &str, business: Option<i64>, before: Option<&TokenView>, after: &TokenView) -> Change {
    Change {
        object: AuditObject::new(ObjectKind::Token, after.id.to_string()),
        task: None,
        business,
        action: action.to_owned(),
        before: before.map(shown),
        after: Some(shown(after)),
    }
}

/// Formats a token for the audit.
fn shown(token: &TokenView) -> String {
    serde_json::json!({
        "id": token.id, "name": token.name, "prefix": token.prefix, "role": token.role.as_str(),
        "business": token.business, "expires_at_ms": token.expires_at.map(|at| at.0),
        "revoked_at_ms": token.revoked_at.map(|at| at.0),
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_engine::ports::access::actor::Actor;
    use windrow_engine::ports::access::business_store::BusinessStore;
    use windrow_engine::ports::access::token_store::TokenGrant;

    const NOW: WallMs = WallMs(1_000);

    async fn store() -> (tempfile::TempDir, Store) {
        let place = tempfile::tempdir().expect("a directory");
        let store = Store::open(&place.path().join("windrow.db"))
            .await
            .expect("opened");
        let spec =
            serde_json::from_str(r#"{"pool":"default","handler":{"command":"push"}}"#).expect("a spec");
        store
            .register("push", &spec, None, &ann(), NOW)
            .await
            .expect("registered");
        (place, store)
    }

    fn ann() -> Write {
        Actor {
            name: "ann".to_owned(),
            source: "api",
            ..Actor::windrow(None)
        }
        .writes()
    }

    fn new(hash: &str, role: Role, business: Option<&str>) -> NewToken {
        NewToken {
            hash: hash.to_owned(),
            prefix: "wrk_abcd".to_owned(),
            grant: TokenGrant {
                name: format!("token {hash}"),
                role,
                business: business.map(str::to_owned),
                expires_at: Some(WallMs(9)),
            },
        }
    }

    #[tokio::test]
    async fn a_token_is_found_by_its_hash_only_and_stored_once() {
        let (_place, store) = store().await;
        let made = store
            .add_token(&new("h1", Role::Business, Some("push")), &ann(), NOW)
            .await
            .expect("made");
        assert_eq!(
            (made.business.as_deref(), made.created_by.as_str()),
            (Some("push"), "ann")
        );
        assert_eq!(store.token("h1").await.expect("read"), Some(made.clone()));
        assert_eq!(store.token("h2").await.expect("read"), None);
        let again = store
            .add_token(&new("h1", Role::Admin, None), &ann(), NOW)
            .await
            .expect("left");
        assert_eq!(again, made, "a known hash keeps its role");
        let nobody = store
            .add_token(&new("h3", Role::Business, Some("nobody")), &ann(), NOW)
            .await;
        assert!(matches!(nobody, Err(StoreError::Refused(_))), "{nobody:?}");
    }

    #[tokio::test]
    async fn a_revoked_token_stays_known_and_is_revoked_once() {
        let (_place, store) = store().await;
        let made = store
            .add_token(&new("h1", Role::Viewer, None), &ann(), NOW)
            .await
            .expect("made");
        let revoked = store
            .revoke_token(made.id, &ann(), WallMs(5))
            .await
            .expect("revoked")
            .expect("known");
        assert_eq!(revoked.revoked_at, Some(WallMs(5)));
        let again = store
            .revoke_token(made.id, &ann(), WallMs(6))
            .await
            .expect("left");
        assert_eq!(again, Some(revoked.clone()));
        assert_eq!(store.token("h1").await.expect("read"), Some(revoked));
        assert_eq!(store.revoke_token(99, &ann(), NOW).await.expect("asked"), None);
    }

    #[tokio::test]
    async fn tokens_are_listed_in_the_order_in_which_they_were_made() {
        let (_place, store) = store().await;
        for hash in ["z", "y", "x"] {
            let owner = (hash == "y").then_some("push");
            let role = if owner.is_some() {
                Role::Business
            } else {
                Role::Operator
            };
            store
                .add_token(&new(hash, role, owner), &ann(), NOW)
                .await
                .expect("made");
        }
        let all = store.tokens(None, 10).await.expect("read");
        assert_eq!(
            all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
            ["token z", "token y", "token x"]
        );
        assert_eq!(all[1].business.as_deref(), Some("push"));
        assert_eq!(store.tokens(Some(all[0].id), 1).await.expect("read"), all[1..2]);
    }
}
