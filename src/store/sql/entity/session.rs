//! One life of a node process. Mirrors the table `session`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "session")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub node: String,
    pub hb: i64,
    pub fenced: bool,
    pub promise_ms: i64,
    pub address: Option<String>,
    pub version: String,
    pub ckpt_version_max: i32,
    pub pools: Option<String>,
    pub capacity: Option<i64>,
    pub state: String,
    pub started_at: i64,
    pub labels: Option<String>,
    pub drain: bool,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
