//! How far a shard's fresh items may leave before its next checkpoint, and how far they may have left before its latest
//! claim: what an owner that died may have called.

use sea_orm_migration::prelude::*;

use crate::columns::{add_all, number, remove_all};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0012_reach"
    }
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    // 0 for rows of before: high water is the bound there, as it was.
    vec![("shard", number("reach")), ("shard", number("reach_before"))]
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
