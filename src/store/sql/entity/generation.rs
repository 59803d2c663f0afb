//! The results of one task, under one number of a dataset. Mirrors the table `generation`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "generation")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub dataset_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub no: i64,
    pub task_id: i64,
    pub state: String,
    pub pinned: bool,
    pub summary: Option<String>,
    pub results: i64,
    pub shards: Option<String>,
    pub key_member: Option<String>,
    pub key_epoch: Option<i64>,
    pub publication_no: Option<i64>,
    pub why: Option<String>,
    pub created_at: i64,
    pub published_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
