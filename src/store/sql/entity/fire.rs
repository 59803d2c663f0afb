//! A time at which a schedule fired or should have. Mirrors the table `fire`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "fire")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub schedule_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub fire_time: i64,
    pub kind: String,
    pub outcome: String,
    pub task_id: Option<i64>,
    pub last_time: i64,
    pub fire_count: i64,
    pub decided_at: i64,
    pub settled_at: Option<i64>,
    pub lease_until: i64,
    pub attempts: i32,
    pub note: Option<String>,
    pub publishes: bool,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
