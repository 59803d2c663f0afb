//! The audit by its time: what is kept no longer is found without a look at all of it.

use sea_orm_migration::prelude::*;

use crate::columns::{drop_index, index};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0024_audit_age"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        index("audit", "age", &["at_ms"]).make(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_index(manager, "idx_audit_age", "audit").await
    }
}
