//! Limits that several tasks share on all nodes: how much of each every session may use.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{string_len, text};

use crate::columns::{create, key, number, number_null, table};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0006_limits"
    }
}

/// A limit that is or was in use. What it allows stands with its business, whose name it has; a limit of its own would
/// have it here.
fn shared_limit() -> TableCreateStatement {
    let mut table = table("shared_limit");
    table
        .col(string_len("name", 190).primary_key())
        // Grows with each round; whoever plays one holds this row's lock.
        .col(number("round_no"));
    table
}

/// What a session may use of a limit.
fn limit_part() -> TableCreateStatement {
    let mut table = table("limit_part");
    table
        .col(string_len("name", 190))
        .col(string_len("session_id", 36))
        // Its place in the line, and the number of its last round.
        .col(number("seat"))
        .col(number("seq"))
        // None is without a bound: billionths of an item per second, items at once, items in flight.
        .col(number_null("rate"))
        .col(number_null("burst"))
        .col(number_null("slots"))
        // What its runs want, as JSON.
        .col(text("demand"))
        .primary_key(&mut key(&["name", "session_id"]));
    table
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, shared_limit()).await?;
        create(manager, limit_part()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["limit_part", "shared_limit"] {
            manager
                .drop_table(Table::drop().table(table).if_exists().to_owned())
                .await?;
        }
        Ok(())
    }
}
