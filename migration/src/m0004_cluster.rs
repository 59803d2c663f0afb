//! What several nodes need: where a shard is wanted, which node is to hand its work over, and what one shard of a task
//! tells the others (a pause, a slower rate).

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::string_len_null;

use crate::columns::{add_all, flag, number_null, remove_all};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0004_cluster"
    }
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        // People's wish that a node hands its work over; its session reads it with each heartbeat.
        ("session", flag("drain")),
        // The node that people want a shard on, and until when the others leave it to that node.
        ("shard", string_len_null("move_to", 190)),
        ("shard", number_null("move_until")),
        // No shard of the task dispatches before this time, and why (`429`, a reply's `pause`).
        ("task", number_null("pause_until")),
        ("task", string_len_null("pause_reason", 64)),
        // Until when the task has this rate at most (millionths of an item per second).
        ("task", number_null("slow_until")),
        ("task", number_null("slow_rate")),
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
