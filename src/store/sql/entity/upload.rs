//! Table `upload`: sources that were sent to the façade.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "upload")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub source_id: Option<i64>,
    pub state: String,
    pub kind: String,
    pub format: Option<String>,
    pub byte_size: i64,
    pub part_count: i32,
    pub sha256: Option<String>,
    pub sample: Option<String>,
    pub created_by: String,
    pub created_at: i64,
    pub used_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
