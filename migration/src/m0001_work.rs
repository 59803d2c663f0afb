//! Businesses, tasks, shards, runs, sessions, items: what is to be done, who does it, how far it is.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{string_len, string_len_null, string_len_uniq, text, text_null};
use sea_orm_migration::sea_orm::DbBackend;
use uuid::Uuid;

use crate::columns::{
    NewIndex, bytes, create, flag, index, key, number, number_null, sequence_key, slug, small, table,
    uuid_null,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0001_work"
    }
}

/// The tables of this step in the order in which they are made.
const TABLES: [&str; 9] = [
    "meta",
    "business",
    "token",
    "task",
    "shard",
    "run",
    "item",
    "failure_group",
    "session",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        let tables = [
            meta(),
            business(backend),
            token(),
            task(),
            shard(backend),
            run(),
            item(),
            failure_group(),
            session(),
        ];
        for table in tables {
            create(manager, table).await?;
        }
        for index in indexes() {
            index.make(manager).await?;
        }
        give_id(manager).await
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

/// Gives the store its id, once: a step that was cut short goes on here.
async fn give_id(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let known = Query::select()
        .column("val")
        .from("meta")
        .and_where(Expr::col("name").eq("store_id"))
        .to_owned();
    if manager.get_connection().query_one(&known).await?.is_some() {
        return Ok(());
    }
    let id = Query::insert()
        .into_table("meta")
        .columns(["name", "val"])
        .values_panic(["store_id".into(), store_id().into()])
        .to_owned();
    manager.execute(id).await
}

/// Six characters of `[a-z0-9]`: the first part of every item key. 36^6 is 2.2 thousand million stores.
fn store_id() -> String {
    const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut random = Uuid::new_v4().as_u128() >> 64 ^ Uuid::new_v4().as_u128();
    let mut id = String::new();
    for _ in 0..6 {
        id.push(char::from(LETTERS[(random % 36) as usize]));
        random /= 36;
    }
    id
}

fn meta() -> TableCreateStatement {
    table("meta")
        .col(string_len("name", 32).primary_key())
        .col(string_len("val", 190))
        .to_owned()
}

fn business(backend: DbBackend) -> TableCreateStatement {
    table("business")
        .col(sequence_key("id"))
        .col(string_len_uniq("slug", 64))
        .col(string_len_null("display_name", 190))
        .col(string_len_null("pool", 64))
        .col(number("revision"))
        .col(text_null("handler"))
        .col(text_null("hooks"))
        .col(text_null("defaults_json"))
        .col(text_null("limits_json"))
        .col(bytes("secrets", backend).null())
        .col(number_null("archived_at"))
        .col(number("version"))
        .col(number("created_at"))
        .col(number("updated_at"))
        .to_owned()
}

fn token() -> TableCreateStatement {
    table("token")
        .col(sequence_key("id"))
        .col(string_len_uniq("token_hash", 64))
        .col(string_len("name", 190))
        .col(slug("role", 16))
        .col(number_null("business_id"))
        .col(number_null("expires_at"))
        .col(number_null("revoked_at"))
        .col(number("created_at"))
        .to_owned()
}

fn task() -> TableCreateStatement {
    let mut task = table("task");
    task.col(sequence_key("id"))
        .col(number("business_id"))
        .col(string_len_null("name", 190))
        .col(slug("status", 20))
        .col(string_len_null("status_reason", 64))
        .col(text_null("status_text"))
        .col(string_len_null("next_action", 64))
        .col(number_null("next_at"))
        .col(number("status_since"))
        .col(slug("wish", 12))
        .col(text("tuning"))
        .col(number("control_rev"))
        .col(number("version"))
        .col(small("start_no"));
    task.col(number("total"))
        .col(number("skip_first"))
        .col(small("shards_wanted"))
        .col(number_null("source_id"))
        .col(text("source"))
        .col(text_null("params"))
        .col(number("meaning_hash"))
        .col(string_len_null("pool", 64))
        .col(small("priority"))
        .col(text_null("labels"))
        .col(number("not_before"))
        .col(number_null("deadline"))
        .col(number_null("parent_id"));
    task.col(number_null("result_version"))
        .col(number_null("schedule_id"))
        .col(number_null("fire_time"))
        .col(string_len_null("result", 16))
        .col(string_len_null("stop_reason", 24))
        .col(number("created_at"))
        .col(number("updated_at"))
        .col(number("queued_at"))
        .col(number_null("started_at"))
        .col(number_null("finished_at"))
        .to_owned()
}

fn shard(backend: DbBackend) -> TableCreateStatement {
    let mut shard = table("shard");
    shard
        .col(number("task_id"))
        .col(small("shard_no"))
        .col(number("first_index"))
        .col(number("end_index"))
        .col(number("range_end"))
        .col(slug("state", 12))
        .col(slug("wish", 12))
        .col(number("control_rev"))
        .col(small("run_no"))
        .col(number("epoch"))
        .col(uuid_null("claim_id"))
        .col(uuid_null("session_id"))
        .col(number("ckpt_seq"));
    shard
        .col(number("low_water"))
        .col(number("high_water"))
        .col(number("succeeded"))
        .col(number("skipped"))
        .col(number("abandoned"))
        .col(number("parked"))
        .col(number_null("rate_share"))
        .col(bytes("ckpt_blob", backend))
        .col(small("stall_count"))
        .col(small("recoveries"))
        .col(
            ColumnDef::new("last_claim_lw")
                .big_integer()
                .not_null()
                .default(-1_i64),
        )
        .col(number("not_before"))
        .col(number("created_at"))
        .col(number("updated_at"))
        .primary_key(&mut key(&["task_id", "shard_no"]))
        .to_owned()
}

fn run() -> TableCreateStatement {
    table("run")
        .col(number("task_id"))
        .col(small("shard_no"))
        .col(small("run_no"))
        .col(number("epoch"))
        .col(string_len("claim_id", 36))
        .col(string_len("session_id", 36))
        .col(number("started_at"))
        .col(number_null("ended_at"))
        .col(string_len_null("end_reason", 24))
        .col(number("low_water"))
        .col(number("succeeded"))
        .col(number("skipped"))
        .col(number("abandoned"))
        .col(number("parked"))
        .primary_key(&mut key(&["task_id", "shard_no", "run_no"]))
        .to_owned()
}

fn item() -> TableCreateStatement {
    table("item")
        .col(number("task_id"))
        .col(number("idx"))
        .col(small("shard_no"))
        .col(slug("state", 12))
        .col(small("attempts"))
        .col(number("due_at"))
        .col(string_len_null("code", 64))
        .col(text_null("message"))
        .col(text_null("output"))
        .col(number("epoch"))
        .col(number("first_at"))
        .col(number("last_at"))
        .primary_key(&mut key(&["task_id", "idx"]))
        .to_owned()
}

fn failure_group() -> TableCreateStatement {
    table("failure_group")
        .col(number("task_id"))
        .col(string_len("code", 64))
        .col(number("n"))
        .col(number("first_at"))
        .col(number("last_at"))
        .col(number("example_idx"))
        .col(text("example"))
        .primary_key(&mut key(&["task_id", "code"]))
        .to_owned()
}

fn session() -> TableCreateStatement {
    table("session")
        .col(string_len("id", 36).primary_key())
        .col(string_len("node", 190))
        .col(number("hb"))
        .col(flag("fenced"))
        .col(number("promise_ms"))
        .col(string_len_null("address", 190))
        .col(string_len("version", 64))
        .col(small("ckpt_version_max"))
        .col(text_null("pools"))
        .col(number_null("capacity"))
        .col(slug("state", 12))
        .col(number("started_at"))
        .to_owned()
}

fn indexes() -> Vec<NewIndex> {
    vec![
        index("task", "name", &["business_id", "name"]).unique(),
        index("task", "fire", &["schedule_id", "fire_time"]).unique(),
        index("task", "status", &["status", "id"]),
        index("shard", "state", &["state", "task_id", "shard_no", "epoch"]),
        index("shard", "session", &["session_id"]),
        index("item", "due", &["task_id", "shard_no", "state", "due_at", "idx"]),
        index("item", "code", &["task_id", "code", "idx"]),
    ]
}
