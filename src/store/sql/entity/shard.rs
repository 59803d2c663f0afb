//! A contiguous index range of a task, the unit one node owns. Mirrors the table `shard`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "shard")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub task_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub shard_no: i32,
    pub first_index: i64,
    pub end_index: i64,
    pub range_end: i64,
    pub state: String,
    pub wish: String,
    pub control_rev: i64,
    pub run_no: i32,
    pub epoch: i64,
    pub claim_id: Option<String>,
    pub session_id: Option<String>,
    pub ckpt_seq: i64,
    pub low_water: i64,
    pub high_water: i64,
    pub succeeded: i64,
    pub skipped: i64,
    pub abandoned: i64,
    pub parked: i64,
    pub rate_share: Option<i64>,
    pub ckpt_blob: Vec<u8>,
    pub stall_count: i32,
    pub recoveries: i32,
    pub last_claim_lw: i64,
    pub not_before: i64,
    pub created_at: i64,
    pub updated_at: i64,
    pub move_to: Option<String>,
    pub move_until: Option<i64>,
    pub circuit_since: Option<i64>,
    pub circuit_probes: Option<i64>,
    pub reach: i64,
    pub reach_before: i64,
    pub results: i64,
    pub day: i64,
    pub day_succeeded: i64,
    pub day_skipped: i64,
    pub day_abandoned: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
