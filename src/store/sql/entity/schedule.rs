//! Work that recurs. Mirrors the table `schedule`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "schedule")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub business_id: i64,
    pub name: String,
    pub cron: Option<String>,
    pub zone: Option<String>,
    pub every_ms: Option<i64>,
    pub start_at: Option<i64>,
    pub end_at: Option<i64>,
    pub jitter_ms: i64,
    pub overlap: String,
    pub missed: String,
    pub template: String,
    pub is_guarded: bool,
    pub paused: bool,
    pub next_fire: Option<i64>,
    pub next_due: Option<i64>,
    pub armed_at: i64,
    pub created_by: String,
    pub revision: i64,
    pub created_at: i64,
    pub updated_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
