//! What items came to: segments of outputs, and how many a shard has.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::string_len_null;

use crate::columns::{add_all, bytes, create, index, key, number, remove_all, small, table};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0014_results"
    }
}

/// Outputs of one run of a shard, packed. The last segment of a run is written again until it is full.
fn segment(manager: &SchemaManager<'_>) -> TableCreateStatement {
    table("result_segment")
        .col(number("task_id"))
        .col(small("shard_no"))
        .col(number("epoch"))
        .col(small("seg_no"))
        .col(number("first_index"))
        .col(number("last_index"))
        .col(number("items"))
        // Of the outputs, before they were packed.
        .col(number("byte_size"))
        .col(bytes("body", manager.get_database_backend()))
        // Where the bytes lie instead, in `results.location`; none is here.
        .col(string_len_null("location", 190))
        .primary_key(&mut key(&["task_id", "shard_no", "epoch", "seg_no"]))
        .to_owned()
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![("shard", number("results"))]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, segment(manager)).await?;
        index("result_segment", "order", &["task_id", "shard_no", "first_index"])
            .make(manager)
            .await?;
        index("result_segment", "location", &["location"])
            .make(manager)
            .await?;
        add_all(manager, columns()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        remove_all(manager, columns()).await?;
        manager
            .drop_table(Table::drop().table("result_segment").if_exists().to_owned())
            .await
    }
}
