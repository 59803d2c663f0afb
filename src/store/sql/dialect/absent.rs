//! Driver of a server for which this program is not built. A configuration that needs it is refused before; here its
//! connections fail.

use sea_orm::sqlx::{self, error::DatabaseError};
use sea_orm::{ConnectOptions, DatabaseConnection};

use super::server::{Limits, ServerAddress};
use super::{Reply, Sort};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::durability::Durability;
use windrow_words::store as say;

/// Connection that can't exist.
pub(super) enum Wire {}

impl Wire {
    pub(super) async fn acquire(_: &DatabaseConnection) -> Result<Wire, sqlx::Error> {
        Err(refused())
    }

    pub(super) async fn say(&mut self, _: String) -> Result<Vec<Reply>, sqlx::Error> {
        match *self {}
    }
}

pub(super) fn prepare(_: &mut ConnectOptions, _: &ServerAddress, _: Limits) {}

pub(super) async fn knock(_: &str, _: &ServerAddress) -> Result<(), sqlx::Error> {
    Err(refused())
}

pub(super) async fn durability(_: &DatabaseConnection) -> Result<Durability, StoreError> {
    Err(StoreError::Refused(say::no_driver().to_string()))
}

pub(super) fn lacks_database(_: &dyn DatabaseError) -> bool {
    false
}

pub(super) fn sorted(_: &dyn DatabaseError) -> Option<Sort> {
    None
}

fn refused() -> sqlx::Error {
    sqlx::Error::Configuration(say::no_driver().to_string().into())
}
