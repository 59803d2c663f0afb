//! What was done in each day, and why runs ended.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{string_len, text_null};
use sea_orm_migration::sea_orm::{ConnectionTrait, Statement};

use crate::columns::{add_all, create, drop_index, index, key, number, remove_all, small, table};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0017_statistics"
    }
}

/// What a shard settled in a day that is over for it. The day in which it settled last is in its own row.
fn shard_day() -> TableCreateStatement {
    table("shard_day")
        .col(number("task_id"))
        .col(small("shard_no"))
        // Days since 1970-01-01, in UTC.
        .col(number("day"))
        .col(number("succeeded"))
        .col(number("skipped"))
        .col(number("abandoned"))
        .primary_key(&mut key(&["task_id", "shard_no", "day"]))
        .to_owned()
}

/// What deleted tasks of a business did in a day. It has the business's name, so that it stays whatever becomes of that.
fn business_day() -> TableCreateStatement {
    table("business_day")
        .col(string_len("business", 64))
        .col(number("day"))
        .col(number("created"))
        .col(number("finished"))
        .col(number("cancelled"))
        .col(number("succeeded"))
        .col(number("skipped"))
        .col(number("abandoned"))
        .primary_key(&mut key(&["business", "day"]))
        .to_owned()
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        ("run", text_null("end_text")),
        // In which a shard settled last, and its counters when that began.
        ("shard", number("day")),
        ("shard", number("day_succeeded")),
        ("shard", number("day_skipped")),
        ("shard", number("day_abandoned")),
    ]
}

/// What was settled before there were days lies in the day of its shard's last change.
const OLDER: &str = "UPDATE shard SET day = (updated_at - updated_at % 86400000) / 86400000 \
    WHERE day = 0 AND succeeded + skipped + abandoned > 0";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, shard_day()).await?;
        create(manager, business_day()).await?;
        add_all(manager, columns()).await?;
        let indexes = [
            index("shard_day", "day", &["day"]),
            index("shard", "day", &["day"]),
            index("business_day", "day", &["day"]),
            index("task", "created", &["created_at"]),
            index("task", "finished", &["finished_at"]),
        ];
        for index in indexes {
            index.make(manager).await?;
        }
        let db = manager.get_connection();
        let older = Statement::from_string(manager.get_database_backend(), OLDER);
        db.execute_raw(older).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_index(manager, "idx_shard_day", "shard").await?;
        remove_all(manager, columns()).await?;
        for name in ["idx_task_finished", "idx_task_created"] {
            drop_index(manager, name, "task").await?;
        }
        for table in ["business_day", "shard_day"] {
            manager
                .drop_table(Table::drop().table(table).if_exists().to_owned())
                .await?;
        }
        Ok(())
    }
}
