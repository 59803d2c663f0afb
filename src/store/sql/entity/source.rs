//! A source after its counting pass. Mirrors the table `source`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "source")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub kind: String,
    pub location_hash: String,
    pub location: String,
    pub format: String,
    pub byte_size: i64,
    pub modified_ns: i64,
    pub checksum: i64,
    pub row_count: i64,
    pub column_names: String,
    pub stride: i32,
    pub part_count: i32,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
