//! Column shapes that tables share.

use sea_orm_migration::prelude::ColumnDef;
use sea_orm_migration::schema::{big_integer, boolean, integer};
pub(crate) use sea_orm_migration::schema::{
    big_integer_null as number_null, blob as bytes, string_len as chars, string_len_null as chars_null,
    string_len_uniq as chars_unique, text, text_null,
};

/// Maximum length of names that people or systems give: the longest that every database indexes.
pub(crate) const NAME: u32 = 190;
/// Length of a hash in hexadecimal, and of other short texts by which rows are found.
pub(crate) const HASH: u32 = 64;
/// Maximum length of a slug.
pub(crate) const SLUG: u32 = 64;
/// Maximum length of a failure or stop code.
pub(crate) const CODE: u32 = 64;
/// Length of a UUID as text, so that people can compare it with a log line.
pub(crate) const UUID: u32 = 36;

/// Defines a primary key: a 64-bit number from a sequence, never reused.
pub(crate) fn sequence_key(name: &'static str) -> ColumnDef {
    let mut column = ColumnDef::new(name);
    column.big_integer().not_null().auto_increment().primary_key();
    column
}

/// Defines a count, index or time: a 64-bit number that starts at 0.
pub(crate) fn number(name: &'static str) -> ColumnDef {
    big_integer(name).default(0_i64).take()
}

/// Defines a 32-bit number that starts at 0.
pub(crate) fn small(name: &'static str) -> ColumnDef {
    integer(name).default(0).take()
}

/// Defines a flag that starts as false.
pub(crate) fn flag(name: &'static str) -> ColumnDef {
    boolean(name).default(false).take()
}
