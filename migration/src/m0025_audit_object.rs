//! The object of each audit entry, and indexes that follow the audit by time within an object, a task and a business.
//!
//! Entries of older programs get the object that their own text tells; the others keep none.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::string_len_null;
use sea_orm_migration::sea_orm::{ConnectionTrait, DbBackend};
use serde_json::Value;

use crate::columns::{add_all, drop_index, index, remove_all};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0025_audit_object"
    }
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        // `task`, `schedule`, `limit` …; none of entries whose object an older program didn't tell.
        ("audit", string_len_null("object_kind", 16)),
        ("audit", string_len_null("object_name", 190)),
    ]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        add_all(manager, columns()).await?;
        name_tasks_and_businesses(manager).await?;
        name_the_rest(manager).await?;
        let indexes = [
            index("audit", "object", &["object_kind", "object_name", "at_ms", "id"]),
            index("audit", "task_age", &["task_id", "at_ms", "id"]),
            index("audit", "business_age", &["business_id", "at_ms", "id"]),
        ];
        for index in indexes {
            index.make(manager).await?;
        }
        drop_index(manager, "idx_audit_task", "audit").await?;
        drop_index(manager, "idx_audit_business", "audit").await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        index("audit", "task", &["task_id", "id"]).make(manager).await?;
        index("audit", "business", &["business_id", "id"])
            .make(manager)
            .await?;
        for name in ["idx_audit_business_age", "idx_audit_task_age", "idx_audit_object"] {
            drop_index(manager, name, "audit").await?;
        }
        remove_all(manager, columns()).await
    }
}

/// Most entries, in two statements.
async fn name_tasks_and_businesses(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let name = match manager.get_database_backend() {
        DbBackend::MySql => "CONCAT('t', task_id)",
        _ => "'t' || task_id",
    };
    let tasks = format!(
        "UPDATE audit SET object_kind = 'task', object_name = {name} \
         WHERE object_kind IS NULL AND task_id IS NOT NULL AND action NOT LIKE 'dataset.%'"
    );
    let businesses = "UPDATE audit SET object_kind = 'business', \
         object_name = (SELECT business.slug FROM business WHERE business.id = audit.business_id) \
         WHERE object_kind IS NULL AND business_id IS NOT NULL \
         AND (action LIKE 'business.%' OR action = 'handler.try')";
    let db = manager.get_connection();
    db.execute_unprepared(&tasks).await?;
    db.execute_unprepared(businesses).await.map(drop)
}

/// Entries that are read at once.
const STEP: u64 = 500;

/// Changes of limits, tokens, datasets, schedules and nodes, which are few beside those of tasks.
async fn name_the_rest(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let db = manager.get_connection();
    let mut after = 0_i64;
    loop {
        let unnamed = Query::select()
            .columns(["id", "action", "before_json", "after_json"])
            .from("audit")
            .and_where(Expr::col("object_kind").is_null())
            .and_where(Expr::col("id").gt(after))
            .order_by("id", Order::Asc)
            .limit(STEP)
            .to_owned();
        let rows = db.query_all(&unnamed).await?;
        for row in &rows {
            after = row.try_get("", "id")?;
            let action: String = row.try_get("", "action")?;
            let text = |name| row.try_get::<Option<String>>("", name);
            let told = text("after_json")?.or(text("before_json")?).unwrap_or_default();
            if let Some((kind, name)) = object(&action, &told) {
                let named = Query::update()
                    .table("audit")
                    .value("object_kind", kind)
                    .value("object_name", name)
                    .and_where(Expr::col("id").eq(after))
                    .to_owned();
                db.execute(&named).await?;
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
    }
}

/// The object of an action, from the text of what it left or took away.
fn object(action: &str, told: &str) -> Option<(&'static str, String)> {
    let told: Value = serde_json::from_str(told).ok()?;
    let member = |name: &str| match &told[name] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let (kind, name) = match action.split_once('.')?.0 {
        "business" => ("business", member("slug")?),
        "limit" => ("limit", member("limit")?),
        "token" => ("token", member("id")?),
        "session" => ("session", member("id")?),
        "dataset" => ("dataset", member("dataset")?),
        "schedule" => ("schedule", format!("{}/{}", member("business")?, member("name")?)),
        "node" => ("node", member("node")?),
        _ => return None,
    };
    Some((kind, name))
}
