//! Table `upload_chunk`: the bytes of uploads.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "upload_chunk")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub source_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub part: i32,
    pub body: Vec<u8>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
