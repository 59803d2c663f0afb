//! What the long-lived node adds: hooks and canaries of tasks, timelines and ordinals of failures, uploads, tokens'
//! prefixes, counted drops of the data log, recorded answers of repeated requests.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{boolean, string_len, string_len_null, text_null};

use crate::columns::{
    NewIndex, add_all, create, drop_index, index, key, number, number_null, remove_all, sequence_key, slug,
    small, table,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0003_service"
    }
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    let mut send_params = boolean("send_params");
    send_params.default(true);
    vec![
        // A task's present start: the hash of its token, and until when the business may answer the before-run hook.
        ("task", string_len_null("start_token_hash", 64)),
        ("task", number_null("awaiting_until")),
        // `{"items":100,"then":"stop"}` while the canary is not done.
        ("task", text_null("canary")),
        // Where an early finish cuts the task: nothing undispatched at or above it leaves any more.
        ("task", number_null("finish_at")),
        ("task", send_params),
        // Failed attempts of a troubled item as JSON; and the ordinals of an abandoned one within its group.
        ("item", text_null("history")),
        ("item", string_len_null("grp", 64)),
        ("item", number_null("grp_no")),
        // A hook call: the id that the business sees, its error, and when it is given up.
        ("outbox", string_len_null("delivery_id", 96)),
        ("outbox", text_null("last_error")),
        ("outbox", number_null("expires_at")),
        ("token", string_len_null("prefix", 16)),
        ("token", string_len_null("created_by", 190)),
        ("audit", number_null("business_id")),
        // The recorded answer of a repeated request; 0 while the first one is being answered.
        ("idempotency", small("status")),
        ("session", text_null("labels")),
    ]
}

/// The tables of this step.
const TABLES: [&str; 3] = ["upload", "data_log_drop", "start_token"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        add_all(manager, columns()).await?;
        create(manager, upload()).await?;
        create(manager, data_log_drop()).await?;
        create(manager, start_token()).await?;
        for index in indexes() {
            index.make(manager).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, table) in INDEXES {
            drop_index(manager, name, table).await?;
        }
        for name in TABLES.iter().rev() {
            manager
                .drop_table(Table::drop().table(*name).if_exists().to_owned())
                .await?;
        }
        remove_all(manager, columns()).await
    }
}

fn upload() -> TableCreateStatement {
    table("upload")
        .col(sequence_key("id"))
        // The number under which its chunks and, once ready, its index are stored.
        .col(number_null("source_id"))
        .col(slug("state", 12))
        .col(slug("kind", 16))
        .col(text_null("format"))
        .col(number("byte_size"))
        .col(small("part_count"))
        .col(string_len_null("sha256", 64))
        .col(text_null("sample"))
        .col(string_len("created_by", 190))
        .col(number("created_at"))
        .col(number("used_at"))
        .to_owned()
}

fn data_log_drop() -> TableCreateStatement {
    table("data_log_drop")
        .col(number("task_id"))
        .col(slug("reason", 16))
        .col(number("n"))
        .primary_key(&mut key(&["task_id", "reason"]))
        .to_owned()
}

/// Every token that a start of a task had, so that one of an earlier start can be told from one that never was.
fn start_token() -> TableCreateStatement {
    table("start_token")
        .col(string_len("token_hash", 64).primary_key())
        .col(number("task_id"))
        .col(small("start_no"))
        .to_owned()
}

/// The indexes of older tables, by name and table.
const INDEXES: [(&str, &str); 10] = [
    ("idx_item_grp", "item"),
    ("idx_task_business", "task"),
    ("idx_task_parent", "task"),
    ("idx_task_source", "task"),
    ("idx_task_deadline", "task"),
    ("idx_idempotency_created", "idempotency"),
    ("idx_data_log_seq", "data_log"),
    ("idx_audit_business", "audit"),
    ("idx_outbox_task", "outbox"),
    ("idx_start_token_task", "start_token"),
];

fn indexes() -> Vec<NewIndex> {
    vec![
        index("item", "grp", &["task_id", "grp", "grp_no"]),
        index("task", "business", &["business_id", "id"]),
        index("task", "parent", &["parent_id", "id"]),
        index("task", "source", &["source_id"]),
        // Ended tasks keep their deadlines; those that are open are looked for each second.
        index("task", "deadline", &["status", "deadline"]),
        index("idempotency", "created", &["created_at"]),
        index("data_log", "seq", &["task_id", "id"]),
        index("audit", "business", &["business_id", "id"]),
        index("outbox", "task", &["task_id", "id"]),
        index("start_token", "task", &["task_id", "start_no"]),
    ]
}
