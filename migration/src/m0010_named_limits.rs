//! Limits with a name of their own, and the tasks that name them. (Of a business they stand in its `limits_json`.)

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{string_len_null, text_null};

use crate::columns::{add_all, create, number, number_null, remove_all, slug, table};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0010_named_limits"
    }
}

/// What a limit allows; how it is shared stands in `shared_limit` and `limit_part`, under `limit/` and its name.
fn named_limit() -> TableCreateStatement {
    let mut table = table("named_limit");
    table
        .col(slug("name", 40).primary_key())
        // As people write it, and items in flight; none is without a bound.
        .col(string_len_null("rate", 64))
        .col(number_null("concurrency"))
        .col(number("revision"))
        .col(number("created_at"))
        .col(number("updated_at"));
    table
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    // A list of names as JSON; none where there are none.
    vec![("task", text_null("limits"))]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, named_limit()).await?;
        add_all(manager, columns()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        remove_all(manager, columns()).await?;
        manager
            .drop_table(Table::drop().table("named_limit").if_exists().to_owned())
            .await
    }
}
