//! What deleted tasks of a business did in a day. Mirrors the table `business_day`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "business_day")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub business: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub day: i64,
    pub created: i64,
    pub finished: i64,
    pub cancelled: i64,
    pub succeeded: i64,
    pub skipped: i64,
    pub abandoned: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
