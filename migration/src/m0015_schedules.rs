//! Schedules and their fires. (The columns of a task that name its fire are as old as the table.)

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{string_len, string_len_null, text, text_null};

use crate::columns::{
    create, drop_index, flag, index, key, number, number_null, sequence_key, slug, small, table,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0015_schedules"
    }
}

fn schedule() -> TableCreateStatement {
    let mut schedule = table("schedule");
    schedule
        .col(sequence_key("id"))
        .col(number("business_id"))
        .col(slug("name", 40))
        // An expression and its zone, or a period in milliseconds.
        .col(string_len_null("cron", 200))
        .col(string_len_null("zone", 64))
        .col(number_null("every_ms"))
        .col(number_null("start_at"))
        .col(number_null("end_at"))
        .col(number("jitter_ms"))
        .col(slug("overlap", 16))
        .col(slug("missed", 16))
        // The body of a create, as JSON.
        .col(text("template"))
        .col(flag("is_guarded"))
        .col(flag("paused"))
        // None while it is paused and after its last fire; by the database's clock, as is when they were set.
        .col(number_null("next_fire"))
        .col(number_null("next_due"))
        .col(number("armed_at"));
    schedule
        .col(string_len("created_by", 190))
        .col(number("revision"))
        .col(number("created_at"))
        .col(number("updated_at"));
    schedule
}

/// One row a fire, or a run of missed ones. They outlive their tasks.
fn fire() -> TableCreateStatement {
    let mut fire = table("fire");
    fire.col(number("schedule_id"))
        .col(number("fire_time"))
        .col(slug("kind", 16))
        .col(slug("outcome", 16))
        .col(number_null("task_id"))
        .col(number("last_time"))
        .col(number("fire_count"))
        .col(number("decided_at"))
        .col(number_null("settled_at"))
        // Until when a pending one is somebody's.
        .col(number("lease_until"))
        .col(small("attempts"))
        .col(text_null("note"))
        .primary_key(&mut key(&["schedule_id", "fire_time"]));
    fire
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, schedule()).await?;
        create(manager, fire()).await?;
        let indexes = [
            index("schedule", "name", &["business_id", "name"]).unique(),
            index("schedule", "due", &["next_due"]),
            index("schedule", "armed", &["armed_at"]),
            index("fire", "open", &["outcome", "lease_until"]),
            index("fire", "age", &["decided_at"]),
            // Whether something of a schedule runs.
            index("task", "schedule", &["schedule_id", "status"]),
        ];
        for index in indexes {
            index.make(manager).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_index(manager, "idx_task_schedule", "task").await?;
        for table in ["fire", "schedule"] {
            manager
                .drop_table(Table::drop().table(table).if_exists().to_owned())
                .await?;
        }
        Ok(())
    }
}
