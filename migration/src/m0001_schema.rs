//! Step that creates all tables and gives the store its id.

use sea_orm_migration::prelude::*;
use uuid::Uuid;

use crate::{schema, table};

/// Step that creates the whole schema.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0001_schema"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        table::make_all(manager, schema::tables()).await?;
        give_id(manager).await
    }
}

/// Gives the store its id, once: an interrupted step continues here.
async fn give_id(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let known = Query::select()
        .column("val")
        .from("meta")
        .and_where(Expr::col("name").eq("store_id"))
        .to_owned();
    if manager.get_connection().query_one(&known).await?.is_some() {
        return Ok(());
    }
    let id = Query::insert()
        .into_table("meta")
        .columns(["name", "val"])
        .values_panic(["store_id".into(), store_id().into()])
        .to_owned();
    manager.execute(id).await
}

/// Generates six characters of `[a-z0-9]`, the first part of every item key. 36^6 makes 2.2 billion stores.
fn store_id() -> String {
    const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut random = Uuid::new_v4().as_u128() >> 64 ^ Uuid::new_v4().as_u128();
    let mut id = String::new();
    for _ in 0..6 {
        id.push(char::from(LETTERS[(random % 36) as usize]));
        random /= 36;
    }
    id
}
