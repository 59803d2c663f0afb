//! What the database accepted: triggers that write every change of shards, items and tasks into one table of their own.
//!
//! The rows are numbered in the order in which they were made. A shard's row is locked until the transaction that
//! changed it ends, so for one shard that is the order of commits, and item rows between two of a shard's rows belong
//! to the transaction of the first.

use std::time::Duration;

use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement};
use serde_json::Value;

use crate::evidence::{ItemWrite, ShardWrite, TaskWrite};

/// A connection of the test's own, past every proxy.
pub(crate) struct Audit {
    connection: DatabaseConnection,
}

/// What was accepted of one task.
#[derive(Default)]
pub(crate) struct Accepted {
    pub(crate) shards: Vec<ShardWrite>,
    pub(crate) items: Vec<ItemWrite>,
    pub(crate) tasks: Vec<TaskWrite>,
}

/// Columns of each table that are kept, by the names under which they are judged.
const SHARD: [(&str, &str); 15] = [
    ("task", "task_id"),
    ("shard", "shard_no"),
    ("state", "state"),
    ("epoch", "epoch"),
    ("claim", "claim_id"),
    ("session", "session_id"),
    ("seq", "ckpt_seq"),
    ("first", "first_index"),
    ("end", "end_index"),
    ("low", "watermark"),
    ("succeeded", "succeeded"),
    ("skipped", "skipped"),
    ("failed", "failed"),
    ("parked", "parked"),
    ("blob", "ckpt_blob"),
];
const ITEM: [(&str, &str); 4] = [
    ("task", "task_id"),
    ("shard", "shard_no"),
    ("index", "idx"),
    ("state", "state"),
];
const TASK: [(&str, &str); 3] = [("task", "id"), ("status", "status"), ("desired", "desired")];

impl Audit {
    /// Connects to a migrated store and makes table and triggers.
    pub(crate) async fn install(url: &str) -> Audit {
        let mut options = ConnectOptions::new(url);
        options
            .max_connections(1)
            .sqlx_logging(false)
            .acquire_timeout(Duration::from_secs(60));
        let connection = Database::connect(options)
            .await
            .expect("the test's own connection");
        let audit = Audit { connection };
        for statement in audit.statements() {
            let done = audit.connection.execute_unprepared(&statement).await;
            done.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        audit
    }

    fn statements(&self) -> Vec<String> {
        let backend = self.connection.get_database_backend();
        let mut all = vec![table(backend).to_owned()];
        for (table, columns) in [("shard", &SHARD[..]), ("item", &ITEM[..]), ("task", &TASK[..])] {
            for event in ["INSERT", "UPDATE", "DELETE"] {
                all.extend(trigger(backend, table, columns, event));
            }
        }
        all
    }

    /// Everything of a task so far.
    pub(crate) async fn accepted(&self, task: i64) -> Accepted {
        let sql = format!("SELECT id, at, who, kind, body FROM chaos_log WHERE task = {task} ORDER BY id");
        let backend = self.connection.get_database_backend();
        let rows = self
            .connection
            .query_all_raw(Statement::from_string(backend, sql))
            .await;
        let mut accepted = Accepted::default();
        for row in rows.expect("the log of the triggers") {
            let text = |name: &str| row.try_get::<String>("", name).expect("text");
            let number = |name: &str| row.try_get::<i64>("", name).expect("a number");
            let mut body: Value = serde_json::from_str(&text("body")).expect("JSON");
            body["id"] = number("id").into();
            body["at"] = number("at").into();
            body["who"] = text("who").into();
            accepted.take(&text("kind"), body);
        }
        accepted
    }

    /// The only value of the first row; empty where there is none.
    pub(crate) async fn text(&self, sql: &str) -> String {
        let asked = Statement::from_string(self.connection.get_database_backend(), sql);
        let row = self
            .connection
            .query_one_raw(asked)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let value = row.and_then(|row| row.try_get_by_index::<Option<String>>(0).expect("a text"));
        value.unwrap_or_default()
    }

    /// Runs a statement of a test that breaks the log on purpose.
    pub(crate) async fn run(&self, sql: &str) {
        let done = self.connection.execute_unprepared(sql).await;
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

impl Accepted {
    fn take(&mut self, kind: &str, body: Value) {
        let fault = format!("{body}");
        let read = match kind {
            "shard INSERT" | "shard UPDATE" => serde_json::from_value(body).map(|row| self.shards.push(row)),
            "item INSERT" | "item UPDATE" => serde_json::from_value(body).map(|row| self.items.push(row)),
            "item DELETE" => serde_json::from_value(body).map(|row: ItemWrite| {
                self.items.push(ItemWrite { state: None, ..row });
            }),
            "task INSERT" | "task UPDATE" => serde_json::from_value(body).map(|row| self.tasks.push(row)),
            // Shards are cut anew at the first start.
            "shard DELETE" => {
                self.shards.clear();
                Ok(())
            }
            other => panic!("{other} in the log"),
        };
        read.unwrap_or_else(|error| panic!("{fault}: {error}"));
    }
}

fn table(backend: DbBackend) -> &'static str {
    match backend {
        DbBackend::Postgres => {
            "CREATE TABLE chaos_log (id BIGSERIAL PRIMARY KEY, at BIGINT, who TEXT, kind TEXT, task BIGINT, body TEXT)"
        }
        DbBackend::MySql => {
            "CREATE TABLE chaos_log (id BIGINT AUTO_INCREMENT PRIMARY KEY, at BIGINT, who VARCHAR(64), \
             kind VARCHAR(32), task BIGINT, body MEDIUMTEXT)"
        }
        _ => {
            "CREATE TABLE chaos_log (id INTEGER PRIMARY KEY AUTOINCREMENT, at BIGINT, who TEXT, kind TEXT, \
             task BIGINT, body TEXT)"
        }
    }
}

/// One trigger: on PostgreSQL a function too.
fn trigger(backend: DbBackend, table: &str, columns: &[(&str, &str)], event: &str) -> Vec<String> {
    let row = if event == "DELETE" { "OLD" } else { "NEW" };
    let task = if table == "task" { "id" } else { "task_id" };
    let (now, who, object) = match backend {
        DbBackend::Postgres => (
            "(extract(epoch from clock_timestamp()) * 1000000)::bigint",
            "session_user::text",
            "json_build_object",
        ),
        DbBackend::MySql => (
            "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)",
            "SUBSTRING_INDEX(USER(), '@', 1)",
            "JSON_OBJECT",
        ),
        _ => (
            "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
            "'n1'",
            "json_object",
        ),
    };
    let value = |column: &str| match (backend, column) {
        (DbBackend::Postgres, "ckpt_blob") => format!("encode({row}.ckpt_blob, 'hex')"),
        (_, "ckpt_blob") => format!("hex({row}.ckpt_blob)"),
        _ => format!("{row}.{column}"),
    };
    let members: Vec<String> = columns
        .iter()
        .map(|(name, column)| format!("'{name}', {}", value(column)))
        .collect();
    let cast = if backend == DbBackend::Postgres {
        "::text"
    } else {
        ""
    };
    let insert = format!(
        "INSERT INTO chaos_log (at, who, kind, task, body) VALUES \
         ({now}, {who}, '{table} {event}', {row}.{task}, {object}({}){cast})",
        members.join(", ")
    );
    let name = format!("chaos_{table}_{}", event.to_lowercase());
    if backend == DbBackend::Postgres {
        let function = format!(
            "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN {insert}; RETURN NULL; END $$"
        );
        let on =
            format!("CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()");
        return vec![function, on];
    }
    vec![format!(
        "CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW BEGIN {insert}; END"
    )]
}
