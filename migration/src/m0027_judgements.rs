//! Grounds on which items failed for good: answers for others meanwhile, and the unconfirmed failures of each code.

use sea_orm_migration::prelude::*;

use crate::columns::{add_all, number, number_null, remove_all};

/// Step that adds their columns.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0027_judgements"
    }
}

/// `item.others_answered` is null in rows of items that are tried again, and of those that failed before it was counted.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        ("item", number_null("others_answered")),
        ("failure_group", number("unconfirmed")),
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
