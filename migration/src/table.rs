//! Table with its keys and indexes, and the few differences between databases in creating it.

use sea_orm_migration::prelude::{
    ColumnDef, ColumnType, DbErr, Index, IndexCreateStatement, SchemaManager, TableCreateStatement,
};
use sea_orm_migration::sea_orm::{ConnectionTrait, DbBackend, Statement};

/// Table of the schema, created only if it is missing.
pub(crate) struct Table {
    name: &'static str,
    columns: Vec<ColumnDef>,
    /// Columns of the primary key; empty if a column's own definition makes it the key.
    key: &'static [&'static str],
    indexes: Vec<(String, IndexCreateStatement)>,
}

/// Creates a table whose primary key is one of its columns.
pub(crate) fn table(name: &'static str, columns: impl IntoIterator<Item = ColumnDef>) -> Table {
    Table {
        name,
        columns: columns.into_iter().collect(),
        key: &[],
        indexes: Vec::new(),
    }
}

impl Table {
    /// Sets a primary key over several columns.
    pub(crate) fn key(self, key: &'static [&'static str]) -> Table {
        Table { key, ..self }
    }

    /// Adds an index named `idx_{table}_{suffix}`.
    pub(crate) fn index(mut self, suffix: &str, columns: &[&'static str]) -> Table {
        let name = format!("idx_{}_{suffix}", self.name);
        let statement = Index::create()
            .name(&name)
            .table(self.name)
            .if_not_exists()
            .take();
        self.indexes.push((name, over(statement, columns)));
        self
    }

    /// Adds a unique index; nulls are never equal.
    pub(crate) fn unique(self, suffix: &str, columns: &[&'static str]) -> Table {
        let mut table = self.index(suffix, columns);
        if let Some((_, statement)) = table.indexes.last_mut() {
            statement.unique();
        }
        table
    }

    /// Creates what is missing: on a database without transactional DDL, the step may have been interrupted.
    async fn make(self, manager: &SchemaManager<'_>, collation: Option<&str>) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        let mut table = TableCreateStatement::new();
        table.table(self.name).if_not_exists();
        for column in self.columns {
            table.col(exact(column, backend));
        }
        if !self.key.is_empty() {
            table.primary_key(&mut over(Index::create(), self.key));
        }
        if let Some(collation) = collation {
            table.engine("InnoDB").character_set("utf8mb4").collate(collation);
        }
        manager.create_table(table).await?;
        for (name, statement) in self.indexes {
            // MySQL has no `IF NOT EXISTS` for indexes.
            if !manager.has_index(self.name, &name).await? {
                manager.create_index(statement).await?;
            }
        }
        Ok(())
    }
}

/// Creates the missing tables, with their indexes.
pub(crate) async fn make_all(manager: &SchemaManager<'_>, tables: Vec<Table>) -> Result<(), DbErr> {
    let collation = exact_collation(manager).await?;
    for table in tables {
        table.make(manager, collation).await?;
    }
    Ok(())
}

fn over(mut index: IndexCreateStatement, columns: &[&'static str]) -> IndexCreateStatement {
    for column in columns {
        index.col(*column);
    }
    index
}

/// Adapts a column so that every database compares its texts byte by byte (`'A'` is neither `'a'` nor `'A '`, and
/// they sort everywhere as in SQLite), and so that it is long enough: MariaDB's `TEXT` and `BLOB` stop at 64 KiB, but
/// a source that came with a request doesn't, and the bitmap of the largest window needs 128.
fn exact(mut column: ColumnDef, backend: DbBackend) -> ColumnDef {
    match (backend, column.get_column_type()) {
        (DbBackend::MySql, Some(ColumnType::Text)) => drop(column.custom("longtext")),
        (DbBackend::MySql, Some(ColumnType::Blob)) => drop(column.custom("mediumblob")),
        (DbBackend::Postgres, Some(ColumnType::Text | ColumnType::String(_))) => {
            column.extra(r#"COLLATE "C""#);
        }
        _ => {}
    }
    column
}

/// Returns the collation of MySQL or MariaDB that compares bytes and pads nothing: both have one, under names that
/// the other doesn't know. `utf8mb4_bin` treats `'A '` as `'A'`.
async fn exact_collation(manager: &SchemaManager<'_>) -> Result<Option<&'static str>, DbErr> {
    if manager.get_database_backend() != DbBackend::MySql {
        return Ok(None);
    }
    let ask = Statement::from_string(DbBackend::MySql, "SELECT VERSION() AS version");
    let row = manager.get_connection().query_one_raw(ask).await?;
    let version = row
        .map(|row| row.try_get::<String>("", "version"))
        .transpose()?
        .unwrap_or_default();
    Ok(Some(if version.contains("MariaDB") {
        "utf8mb4_nopad_bin"
    } else {
        "utf8mb4_0900_bin"
    }))
}
