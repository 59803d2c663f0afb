//! What an outage of a handler leaves: since when a shard's calls go unanswered, so that a take-over knows, and how many
//! attempts of an item count against it.

use sea_orm_migration::prelude::*;

use crate::columns::{add_all, number_null, remove_all};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0009_outage"
    }
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        ("shard", number_null("circuit_since")),
        ("shard", number_null("circuit_probes")),
        // None: all attempts do, as before there was a difference.
        ("item", number_null("charged")),
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
