//! People's decisions that the items of a task which wait with a code are given up.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::text_null;

use crate::columns::{add_all, remove_all};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0011_abandonments"
    }
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        // `[{"code":"TIMEOUT","at":1700000000000}]`; none where nothing was decided.
        ("task", text_null("abandonments")),
    ]
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
