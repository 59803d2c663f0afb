//! Items that were given up unconfirmed: nothing showed whether the handler failed for them alone.

use sea_orm_migration::prelude::*;

use crate::columns::{add_all, number_null, remove_all};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0026_unconfirmed"
    }
}

/// None and 0: it was confirmed, or isn't given up.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![("item", number_null("unconfirmed"))]
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
