//! Column shapes that several tables share, and the few types that differ between databases.

use sea_orm_migration::prelude::{ColumnDef, Index, IndexCreateStatement, IntoIden, TableCreateStatement};
use sea_orm_migration::schema::{
    big_integer, big_integer_null, boolean, custom, integer, string_len, string_len_null,
};
use sea_orm_migration::sea_orm::DbBackend;

/// A table that may exist already only because a step was cut short on a database without transactional DDL.
pub(crate) fn table(name: &'static str) -> TableCreateStatement {
    let mut table = TableCreateStatement::new();
    table.table(name).if_not_exists();
    table
}

/// An index named `idx_{table}_{what}`.
pub(crate) fn index(table: &'static str, what: &str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut index = Index::create();
    index.name(format!("idx_{table}_{what}")).table(table).if_not_exists();
    for column in columns {
        index.col(*column);
    }
    index
}

/// The primary key over several columns.
pub(crate) fn key(columns: &[&'static str]) -> IndexCreateStatement {
    let mut key = Index::create();
    key.primary();
    for column in columns {
        key.col(*column);
    }
    key
}

/// A 64-bit number from a sequence, never reused.
pub(crate) fn sequence_key(name: &'static str) -> ColumnDef {
    let mut column = ColumnDef::new(name);
    column.big_integer().not_null().auto_increment().primary_key();
    column
}

/// Counts, indexes, times: a 64-bit number that begins at 0.
pub(crate) fn number(name: &'static str) -> ColumnDef {
    let mut column = big_integer(name);
    column.default(0_i64);
    column
}

/// A 32-bit number that begins at 0.
pub(crate) fn small(name: &'static str) -> ColumnDef {
    let mut column = integer(name);
    column.default(0);
    column
}

/// A 64-bit number, or none.
pub(crate) fn number_null(name: &'static str) -> ColumnDef {
    big_integer_null(name)
}

/// A UUID as 36 characters, so that people can compare it with a log line.
pub(crate) fn uuid_null(name: &'static str) -> ColumnDef {
    string_len_null(name, 36)
}

/// A lower-case slug.
pub(crate) fn slug(name: &'static str, length: u32) -> ColumnDef {
    string_len(name, length)
}

/// A flag that begins false.
pub(crate) fn flag(name: &'static str) -> ColumnDef {
    let mut column = boolean(name);
    column.default(false);
    column
}

/// Bytes up to 16 MiB: MariaDB's plain `BLOB` stops at 64 KiB, and the bitmap of the largest window needs 128.
pub(crate) fn bytes(name: &'static str, backend: DbBackend) -> ColumnDef {
    match backend {
        DbBackend::MySql => custom(name, "mediumblob".into_iden()),
        _ => sea_orm_migration::schema::blob(name),
    }
}
