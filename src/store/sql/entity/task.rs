//! One pass of a business over its items. Mirrors the table `task`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "task")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub business_id: i64,
    pub name: Option<String>,
    pub status: String,
    pub status_reason: Option<String>,
    pub status_text: Option<String>,
    pub next_action: Option<String>,
    pub next_at: Option<i64>,
    pub status_since: i64,
    pub wish: String,
    pub tuning: String,
    pub control_rev: i64,
    pub version: i64,
    pub start_no: i32,
    pub total: i64,
    pub skip_first: i64,
    pub shards_wanted: i32,
    pub source_id: Option<i64>,
    pub source: String,
    pub params: Option<String>,
    pub meaning_hash: i64,
    pub pool: Option<String>,
    pub priority: i32,
    pub labels: Option<String>,
    pub not_before: i64,
    pub deadline: Option<i64>,
    pub parent_id: Option<i64>,
    pub result_version: Option<i64>,
    pub schedule_id: Option<i64>,
    pub fire_time: Option<i64>,
    pub result: Option<String>,
    pub stop_reason: Option<String>,
    pub created_at: i64,
    pub updated_at: i64,
    pub queued_at: i64,
    pub started_at: Option<i64>,
    pub finished_at: Option<i64>,
    pub start_token_hash: Option<String>,
    pub awaiting_until: Option<i64>,
    pub canary: Option<String>,
    pub abandonments: Option<String>,
    pub finish_at: Option<i64>,
    pub send_params: bool,
    pub pause_until: Option<i64>,
    pub pause_reason: Option<String>,
    pub slow_until: Option<i64>,
    pub slow_rate: Option<i64>,
    pub limits: Option<String>,
    pub cut_off: Option<String>,
    pub publishing: Option<String>,
    pub intake: Option<String>,
    pub skips: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
