//! Sign-ins by the time at which they end: what is over is found without a look at all of them.

use sea_orm_migration::prelude::*;

use crate::columns::{drop_index, index};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0022_sign_in_expiry"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        index("sign_in", "expiry", &["expires_at"]).make(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_index(manager, "idx_sign_in_expiry", "sign_in").await
    }
}
