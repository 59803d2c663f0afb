//! Table `sign_in`: what the cookies of browsers stand for.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "sign_in")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub cookie_hash: String,
    pub token_id: i64,
    pub address: Option<String>,
    pub created_at: i64,
    pub expires_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
