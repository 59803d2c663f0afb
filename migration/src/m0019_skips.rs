//! Items of tasks that people want skipped.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::text_null;

use crate::columns::{add_all, remove_all};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0019_skips"
    }
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    // `5-9,12`; none where nothing was ever named.
    vec![("task", text_null("skips"))]
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
