//! What is kept beside the work: audit, data log, outbox, idempotency keys, sources and their block indexes.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{string_len, string_len_null, text, text_null};
use sea_orm_migration::sea_orm::DbBackend;

use crate::columns::{bytes, create, index, key, number, number_null, sequence_key, slug, small, table};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0002_records"
    }
}

/// The tables of this step in the order in which they are made.
const TABLES: [&str; 7] = [
    "idempotency",
    "outbox",
    "audit",
    "data_log",
    "source",
    "source_index",
    "upload_chunk",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        let tables = [
            idempotency(),
            outbox(),
            audit(),
            data_log(),
            source(),
            parts("source_index", backend),
            parts("upload_chunk", backend),
        ];
        for table in tables {
            create(manager, table).await?;
        }
        let indexes = [
            index("outbox", "due", &["state", "due_at"]),
            index("audit", "task", &["task_id", "id"]),
            index("data_log", "task", &["task_id", "level", "id"]),
            index("source", "location", &["location_hash"]).unique(),
        ];
        for index in indexes {
            index.make(manager).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for name in TABLES.iter().rev() {
            manager
                .drop_table(Table::drop().table(*name).if_exists().to_owned())
                .await?;
        }
        Ok(())
    }
}

fn idempotency() -> TableCreateStatement {
    table("idempotency")
        .col(string_len("scope", 96))
        .col(string_len("key_hash", 64))
        .col(string_len("request_hash", 64))
        .col(number("task_id"))
        .col(text_null("response"))
        .col(number("created_at"))
        .primary_key(&mut key(&["scope", "key_hash"]))
        .to_owned()
}

fn outbox() -> TableCreateStatement {
    table("outbox")
        .col(sequence_key("id"))
        .col(number("task_id"))
        .col(small("start_no"))
        .col(slug("kind", 32))
        .col(text("payload"))
        .col(slug("state", 12))
        .col(number("due_at"))
        .col(small("attempts"))
        .col(number("created_at"))
        .to_owned()
}

fn audit() -> TableCreateStatement {
    table("audit")
        .col(sequence_key("id"))
        .col(number_null("task_id"))
        .col(number("at_ms"))
        .col(string_len("actor", 190))
        .col(slug("source", 16))
        .col(slug("action", 32))
        .col(text_null("reason"))
        .col(text_null("before_json"))
        .col(text_null("after_json"))
        .col(string_len_null("request_id", 64))
        .to_owned()
}

fn data_log() -> TableCreateStatement {
    table("data_log")
        .col(sequence_key("id"))
        .col(number("task_id"))
        .col(small("shard_no"))
        .col(number("at_ms"))
        .col(number_null("idx"))
        .col(slug("origin", 12))
        .col(small("level"))
        .col(string_len_null("code", 64))
        .col(text("message"))
        .col(text_null("extra"))
        .to_owned()
}

fn source() -> TableCreateStatement {
    table("source")
        .col(sequence_key("id"))
        .col(slug("kind", 16))
        .col(string_len("location_hash", 64))
        .col(text("location"))
        .col(text("format"))
        .col(number("byte_size"))
        .col(number("modified_ns"))
        .col(number("checksum"))
        .col(number("row_count"))
        .col(text("column_names"))
        .col(small("stride"))
        .col(small("part_count"))
        .to_owned()
}

fn parts(name: &'static str, backend: DbBackend) -> TableCreateStatement {
    table(name)
        .col(number("source_id"))
        .col(small("part"))
        .col(bytes("body", backend))
        .primary_key(&mut key(&["source_id", "part"]))
        .to_owned()
}
