//! Datasets, their generations, and by which keys readers look up in them; what a task publishes.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{string_len_null, text_null};

use crate::columns::{
    add_all, bytes, create, flag, index, key, number, number_null, remove_all, sequence_key, slug, small,
    table,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0016_datasets"
    }
}

/// What readers know by a name: its pointer, and how many generations it keeps.
fn dataset() -> TableCreateStatement {
    table("dataset")
        .col(sequence_key("id"))
        .col(slug("name", 40))
        .col(number("business_id"))
        .col(small("keep_count"))
        // The number of the last generation that was begun.
        .col(number("last_no"))
        .col(number_null("current_no"))
        .col(number("highest_no"))
        .col(number("publication_no"))
        .col(number_null("published_at"))
        .col(number("version"))
        .col(number("created_at"))
        .col(number("updated_at"))
        .to_owned()
}

/// The results of one task, as one number. It owns the task's result segments from its publication on.
fn generation() -> TableCreateStatement {
    table("generation")
        .col(number("dataset_id"))
        .col(number("no"))
        .col(number("task_id"))
        .col(slug("state", 16))
        .col(flag("pinned"))
        // JSON text.
        .col(text_null("summary"))
        .col(number("results"))
        // Where the results lie, once the task may be gone: `[[shard, end, results], …]`.
        .col(text_null("shards"))
        // The member of the outputs that its keys were taken from, and the claim that wrote them.
        .col(string_len_null("key_member", 190))
        .col(number_null("key_epoch"))
        .col(number_null("publication_no"))
        .col(text_null("why"))
        .col(number("created_at"))
        .col(number_null("published_at"))
        .primary_key(&mut key(&["dataset_id", "no"]))
        .to_owned()
}

/// Hashes of keys with the indexes of their items, in the order of the hashes. Blocks of one pass overlap.
fn block(manager: &SchemaManager<'_>) -> TableCreateStatement {
    table("generation_key")
        .col(number("task_id"))
        .col(number("epoch"))
        .col(number("block_no"))
        .col(number("first_hash"))
        .col(number("last_hash"))
        .col(bytes("body", manager.get_database_backend()))
        .primary_key(&mut key(&["task_id", "epoch", "block_no"]))
        .to_owned()
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    // `{"dataset":"board","if":"all","reduce":"none","generation":7}`.
    vec![("task", text_null("publishing"))]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, dataset()).await?;
        create(manager, generation()).await?;
        create(manager, block(manager)).await?;
        index("dataset", "name", &["name"]).unique().make(manager).await?;
        index("dataset", "business", &["business_id"])
            .make(manager)
            .await?;
        index("generation", "task", &["task_id"]).make(manager).await?;
        index("generation", "state", &["state"]).make(manager).await?;
        index("generation_key", "hash", &["task_id", "epoch", "first_hash"])
            .make(manager)
            .await?;
        add_all(manager, columns()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        remove_all(manager, columns()).await?;
        for name in ["generation_key", "generation", "dataset"] {
            manager
                .drop_table(Table::drop().table(name).if_exists().to_owned())
                .await?;
        }
        Ok(())
    }
}
