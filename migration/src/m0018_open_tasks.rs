//! Open tasks: whether items are added to a task, and the blocks of items that were.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::string_len_null;

use crate::columns::{add_all, bytes, create, flag, index, key, number, remove_all, slug, table};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0018_open_tasks"
    }
}

/// One row an append.
fn appended(manager: &SchemaManager<'_>) -> TableCreateStatement {
    let mut appended = table("appended");
    appended
        .col(number("task_id"))
        .col(number("first_index"))
        // One past its last item.
        .col(number("end_index"))
        // The bytes of all blocks before, so that what waits is a difference.
        .col(number("bytes_before"))
        .col(number("byte_count"))
        // A hash of the key that it was sent with, and one of what was sent.
        .col(string_len_null("key_hash", 64))
        .col(slug("body_hash", 64))
        .col(bytes("body", manager.get_database_backend()))
        .col(number("appended_at"))
        // Kept although it is old: items of it failed for good.
        .col(flag("is_kept"))
        .primary_key(&mut key(&["task_id", "first_index"]));
    appended
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    // `open` or `sealed`; none of a task whose items were fixed when it was made.
    vec![("task", string_len_null("intake", 16))]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, appended(manager)).await?;
        index("appended", "key", &["task_id", "key_hash"])
            .unique()
            .make(manager)
            .await?;
        index("appended", "age", &["is_kept", "appended_at"])
            .make(manager)
            .await?;
        add_all(manager, columns()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        remove_all(manager, columns()).await?;
        manager
            .drop_table(Table::drop().table("appended").if_exists().to_owned())
            .await
    }
}
