//! Column shapes that several tables share, and the few types that differ between databases.

use sea_orm_migration::prelude::{
    Alias, ColumnDef, ColumnType, DbErr, Index, IndexCreateStatement, IntoIden, SchemaManager, Table,
    TableCreateStatement,
};
use sea_orm_migration::schema::{
    big_integer, big_integer_null, boolean, custom, integer, string_len, string_len_null,
};
use sea_orm_migration::sea_orm::{ConnectionTrait, DbBackend, Statement};

/// A table that may exist already only because a step was cut short on a database without transactional DDL.
pub(crate) fn table(name: &'static str) -> TableCreateStatement {
    let mut table = TableCreateStatement::new();
    table.table(name).if_not_exists();
    table
}

/// Makes a table, with texts that every database compares byte by byte: `'A'` is neither `'a'` nor `'A '`, and they sort
/// everywhere as they do in SQLite. MariaDB's `TEXT` stops at 64 KiB, a source that came with a request doesn't.
pub(crate) async fn create(manager: &SchemaManager<'_>, table: TableCreateStatement) -> Result<(), DbErr> {
    let backend = manager.get_database_backend();
    if backend == DbBackend::Sqlite {
        return manager.create_table(table).await;
    }
    let mut made = TableCreateStatement::new();
    if let Some(name) = table.get_table_name() {
        made.table(name.clone());
    }
    made.if_not_exists();
    for column in table.get_columns() {
        made.col(exact(column.clone(), backend));
    }
    for index in table.get_indexes() {
        made.index(&mut index.clone());
    }
    if backend == DbBackend::MySql {
        made.engine("InnoDB")
            .character_set("utf8mb4")
            .collate(exact_collation(manager).await?);
    }
    manager.create_table(made).await
}

/// The collation that compares bytes and pads nothing: both have one, under names that the other doesn't know.
/// `utf8mb4_bin` would take `'A '` for `'A'`.
async fn exact_collation(manager: &SchemaManager<'_>) -> Result<&'static str, DbErr> {
    let ask = Statement::from_string(DbBackend::MySql, "SELECT VERSION() AS version");
    let row = manager.get_connection().query_one_raw(ask).await?;
    let version = row
        .map(|row| row.try_get::<String>("", "version"))
        .transpose()?
        .unwrap_or_default();
    Ok(if version.contains("MariaDB") {
        "utf8mb4_nopad_bin"
    } else {
        "utf8mb4_0900_bin"
    })
}

/// Gives an older table a column, unless it has it: a step that was cut short goes on here.
pub(crate) async fn add(
    manager: &SchemaManager<'_>,
    table: &'static str,
    column: ColumnDef,
) -> Result<(), DbErr> {
    if manager.has_column(table, column.get_column_name()).await? {
        return Ok(());
    }
    let column = exact(column, manager.get_database_backend());
    manager
        .alter_table(Table::alter().table(table).add_column(column).to_owned())
        .await
}

/// Takes a column away, unless it is gone.
pub(crate) async fn remove(
    manager: &SchemaManager<'_>,
    table: &'static str,
    column: &ColumnDef,
) -> Result<(), DbErr> {
    let name = column.get_column_name();
    if !manager.has_column(table, &name).await? {
        return Ok(());
    }
    manager
        .alter_table(
            Table::alter()
                .table(table)
                .drop_column(Alias::new(name))
                .to_owned(),
        )
        .await
}

/// Gives older tables these columns, each with its table. One a statement: SQLite takes no more.
pub(crate) async fn add_all(
    manager: &SchemaManager<'_>,
    columns: Vec<(&'static str, ColumnDef)>,
) -> Result<(), DbErr> {
    for (table, column) in columns {
        add(manager, table, column).await?;
    }
    Ok(())
}

/// Takes them away again, the last one first.
pub(crate) async fn remove_all(
    manager: &SchemaManager<'_>,
    columns: Vec<(&'static str, ColumnDef)>,
) -> Result<(), DbErr> {
    for (table, column) in columns.into_iter().rev() {
        remove(manager, table, &column).await?;
    }
    Ok(())
}

/// An index that is to be made.
pub(crate) struct NewIndex {
    table: &'static str,
    name: String,
    statement: IndexCreateStatement,
}

impl NewIndex {
    /// No two rows have the same values; missing ones are never the same.
    pub(crate) fn unique(mut self) -> NewIndex {
        self.statement.unique();
        self
    }

    /// Makes it, unless it is there: MySQL has no `IF NOT EXISTS` for indexes.
    pub(crate) async fn make(self, manager: &SchemaManager<'_>) -> Result<(), DbErr> {
        if manager.has_index(self.table, &self.name).await? {
            return Ok(());
        }
        manager.create_index(self.statement).await
    }
}

/// Drops an index, unless it is gone.
pub(crate) async fn drop_index(
    manager: &SchemaManager<'_>,
    name: &'static str,
    table: &'static str,
) -> Result<(), DbErr> {
    if !manager.has_index(table, name).await? {
        return Ok(());
    }
    manager
        .drop_index(Index::drop().name(name).table(table).to_owned())
        .await
}

/// The column with a text type of exact comparison, and of any length where it has no length.
fn exact(mut column: ColumnDef, backend: DbBackend) -> ColumnDef {
    let (is_long, is_text) = match column.get_column_type() {
        Some(ColumnType::Text) => (true, true),
        Some(ColumnType::String(_) | ColumnType::Char(_)) => (false, true),
        _ => (false, false),
    };
    match backend {
        DbBackend::MySql if is_long => drop(column.custom("longtext")),
        DbBackend::Postgres if is_text => drop(column.extra(r#"COLLATE "C""#)),
        _ => {}
    }
    column
}

/// An index named `idx_{table}_{what}`.
pub(crate) fn index(table: &'static str, what: &str, columns: &[&'static str]) -> NewIndex {
    let name = format!("idx_{table}_{what}");
    let mut statement = Index::create();
    statement.name(&name).table(table).if_not_exists();
    for column in columns {
        statement.col(*column);
    }
    NewIndex {
        table,
        name,
        statement,
    }
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
