//! Which session answers the request that took an idempotency key: with the session its open keys are free.

use sea_orm_migration::prelude::*;

use crate::columns::{add_all, remove_all, uuid_null};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0023_key_holders"
    }
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    // None where an older program took the key.
    vec![("idempotency", uuid_null("session_id"))]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        add_all(manager, columns()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        remove_all(manager, columns()).await
    }
}
