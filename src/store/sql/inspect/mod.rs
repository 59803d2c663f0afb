//! Inspection of a database without serving it: schema, integrity, backup. Servers check their own pages and make
//! their own copies.
//!
//! Only reads, so all of it works while a node writes to the database.

pub mod sessions;

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use windrow_words::{Message, store as say};

use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement};

use crate::sql::{ServerAddress, dialect, error};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::durability::Durability;

/// Invariant with a query for violations that returns their number and one example.
type Rule = (fn() -> Message, &'static str);

/// Invariants of every database.
const RULES: [Rule; 8] = [
    (
        say::rule_business,
        "SELECT COUNT(*) AS n, MIN('t' || id) AS one FROM task WHERE business_id NOT IN (SELECT id FROM business)",
    ),
    (
        say::rule_task,
        "SELECT COUNT(*) AS n, MIN('t' || task_id) AS one FROM shard WHERE task_id NOT IN (SELECT id FROM task)",
    ),
    (
        say::rule_cover,
        "SELECT COUNT(*) AS n, MIN('t' || id) AS one FROM (SELECT t.id AS id FROM task t \
         LEFT JOIN shard s ON s.task_id = t.id GROUP BY t.id HAVING COUNT(s.task_id) = 0 \
         OR MIN(s.first_index) <> CASE WHEN MAX(t.skip_first) < MAX(t.total) THEN MAX(t.skip_first) ELSE MAX(t.total) END \
         OR MAX(s.range_end) <> MAX(t.total) OR SUM(s.range_end - s.first_index) <> MAX(t.total) \
         - CASE WHEN MAX(t.skip_first) < MAX(t.total) THEN MAX(t.skip_first) ELSE MAX(t.total) END) broken",
    ),
    (
        say::rule_watermark,
        "SELECT COUNT(*) AS n, MIN('t' || task_id) AS one FROM shard WHERE watermark < first_index \
         OR watermark > end_index OR end_index > range_end OR watermark > high_water",
    ),
    (
        say::rule_counts,
        "SELECT COUNT(*) AS n, MIN('t' || task_id) AS one FROM shard WHERE succeeded < 0 OR skipped < 0 \
         OR failed < 0 OR parked < 0 OR succeeded + skipped + failed > end_index - first_index",
    ),
    (
        say::rule_settled,
        "SELECT COUNT(*) AS n, MIN('t' || t.id) AS one FROM task t JOIN shard s ON s.task_id = t.id \
         WHERE t.status = 'finished' AND (s.watermark <> s.end_index OR s.parked <> 0 \
         OR s.succeeded + s.skipped + s.failed <> s.end_index - s.first_index)",
    ),
    (
        say::rule_run,
        "SELECT COUNT(*) AS n, MIN('t' || r.task_id) AS one FROM run r LEFT JOIN shard s \
         ON s.task_id = r.task_id AND s.shard_no = r.shard_no WHERE s.task_id IS NULL",
    ),
    (
        say::rule_days,
        "SELECT COUNT(*) AS n, MIN('t' || s.task_id) AS one FROM shard s LEFT JOIN (SELECT task_id, shard_no, \
         SUM(succeeded) AS succeeded, SUM(skipped) AS skipped, SUM(failed) AS failed FROM shard_day \
         GROUP BY task_id, shard_no) d ON d.task_id = s.task_id AND d.shard_no = s.shard_no \
         WHERE s.day_succeeded <> COALESCE(d.succeeded, 0) OR s.day_skipped <> COALESCE(d.skipped, 0) \
         OR s.day_failed <> COALESCE(d.failed, 0) OR s.day_succeeded > s.succeeded \
         OR s.day_skipped > s.skipped OR s.day_failed > s.failed",
    ),
];

/// Read-only connection to a database under inspection.
pub struct Inspection {
    db: DatabaseConnection,
}

/// Migration steps of a database, compared with this program's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// Steps of this program that the database has, in order.
    pub done: Vec<String>,
    /// Steps of this program that the database lacks, in order.
    pub pending: Vec<String>,
    /// Steps that only a newer program knows.
    pub unknown: Vec<String>,
}

/// Result of checking one invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Invariant in words, for people.
    pub rule: &'static str,
    /// Violations found; empty if the invariant holds.
    pub faults: Vec<String>,
}

/// Error of copying a database.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The target file exists already.
    #[error("{}", say::exists(.0.display().to_string()))]
    Exists(PathBuf),
    /// The copy cannot be written.
    #[error("{}", say::not_written(path.display().to_string(), cause.to_string()))]
    Io {
        /// Path of the copy.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The database cannot be read, or the copy is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Inspection {
    /// Opens an existing database file.
    ///
    /// # Errors
    /// `Refused` if it does not exist or is not a database.
    pub async fn open(path: &Path) -> Result<Inspection, StoreError> {
        let db = dialect::sqlite::look(path).await.map_err(|cause| match cause {
            StoreError::Refused(text) => {
                StoreError::Refused(say::cant_open(path.display().to_string(), text).to_string())
            }
            other => other,
        })?;
        Ok(Inspection { db })
    }

    /// Connects to a database server.
    ///
    /// # Errors
    /// `Unavailable` if it doesn't answer, `Refused` if it rejects this user.
    pub async fn connect(address: &ServerAddress) -> Result<Inspection, StoreError> {
        Ok(Inspection {
            db: dialect::open_to_look(address).await?,
        })
    }

    fn is_file(&self) -> bool {
        self.db.get_database_backend() == DbBackend::Sqlite
    }

    /// Reads how durable commits are.
    ///
    /// # Errors
    /// If the settings cannot be read.
    pub async fn durability(&self) -> Result<Durability, StoreError> {
        dialect::durability(&self.db).await
    }

    /// Closes the connection to the database.
    ///
    /// # Errors
    /// If the connection cannot be closed.
    pub async fn close(self) -> Result<(), StoreError> {
        self.db.close().await.map_err(error)
    }

    /// Compares the database's migration steps with this program's.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn schema(&self) -> Result<Schema, StoreError> {
        let (known, has) = (dialect::steps_known(), dialect::steps_done(&self.db).await?);
        let unknown = has.iter().filter(|step| !known.contains(step)).cloned().collect();
        let (done, pending) = known.into_iter().partition(|step| has.contains(step));
        Ok(Schema {
            done,
            pending,
            unknown,
        })
    }

    /// Checks pages and indexes, without comparing each index with its table. Servers do this themselves, so nothing
    /// is checked there.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn quick_check(&self) -> Result<Vec<String>, StoreError> {
        if !self.is_file() {
            return Ok(Vec::new());
        }
        self.pragma_faults("quick_check").await
    }

    /// Checks every invariant. If the schema is not this program's, checks only what holds for any database.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let mut found = Vec::new();
        if self.is_file() {
            let faults = self.pragma_faults("integrity_check").await?;
            found.push(Finding {
                rule: say::rule_pages().english(),
                faults,
            });
            found.push(Finding {
                rule: say::rule_references().english(),
                faults: self.dangling().await?,
            });
            found.push(Finding {
                rule: say::rule_triggers().english(),
                faults: self.strangers().await?,
            });
        }
        let schema = self.schema().await?;
        if !(schema.pending.is_empty() && schema.unknown.is_empty()) {
            return Ok(found);
        }
        for (rule, query) in RULES {
            found.push(Finding {
                rule: rule().english(),
                faults: self.broken(query).await?.into_iter().collect(),
            });
        }
        Ok(found)
    }

    /// Copies one snapshot to a file that doesn't exist yet, and reads the copy back.
    ///
    /// # Errors
    /// See [`BackupError`]; no file is left behind then.
    pub async fn backup(&self, to: &Path) -> Result<(), BackupError> {
        if fs::symlink_metadata(to).is_ok() {
            return Err(BackupError::Exists(to.to_owned()));
        }
        let mut name = to.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let part = to.with_file_name(name);
        let fault = |cause: io::Error| BackupError::Io {
            path: to.to_owned(),
            cause,
        };
        // Only for the owner, like the database itself.
        let made = fs::OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&part);
        drop(made.map_err(fault)?);
        let copied = self.copy(&part).await;
        let done = copied.and_then(|()| publish(&part, to));
        // After a success the file has its final name.
        match fs::remove_file(&part) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => {
                tracing::warn!(%cause, file = %part.display(), "partial backup not deleted");
            }
            _ => {}
        }
        done
    }

    async fn copy(&self, part: &Path) -> Result<(), BackupError> {
        let text = part.to_str().ok_or_else(|| BackupError::Io {
            path: part.to_owned(),
            cause: io::Error::new(ErrorKind::InvalidInput, say::utf8_only().english()),
        })?;
        let backend = self.db.get_database_backend();
        let statement = Statement::from_sql_and_values(backend, "VACUUM INTO ?", [text.into()]);
        self.db.execute_raw(statement).await.map_err(error)?;
        let copy = Inspection::open(part).await?;
        let faults = copy.quick_check().await?;
        let same = copy.schema().await? == self.schema().await?;
        copy.close().await?;
        match faults.first() {
            None if same => Ok(()),
            None => Err(StoreError::Refused(say::copy_schema().to_string()).into()),
            Some(fault) => Err(StoreError::Refused(say::copy_damaged(fault).to_string()).into()),
        }
    }

    /// Returns the problems found by one of SQLite's own checks.
    async fn pragma_faults(&self, pragma: &str) -> Result<Vec<String>, StoreError> {
        let rows = self.rows(&format!("PRAGMA {pragma}")).await?;
        let texts = rows
            .iter()
            .map(|row| row.try_get_by_index::<String>(0).map_err(error));
        let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
        Ok(texts.into_iter().filter(|text| text != "ok").collect())
    }

    /// Lists triggers and views, which act on their own when rows are read or written; no version of this program
    /// creates any.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn strangers(&self) -> Result<Vec<String>, StoreError> {
        if !self.is_file() {
            return Ok(Vec::new());
        }
        let rows = self
            .rows("SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view') ORDER BY name")
            .await?;
        let told = rows.iter().map(|row| {
            let kind: String = row.try_get_by_index(0).map_err(error)?;
            let name: String = row.try_get_by_index(1).map_err(error)?;
            Ok(say::stranger(kind, format!("{name:?}")).to_string())
        });
        told.collect()
    }

    /// Returns the id of the store, or `None` if the database has none of this program's tables.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn store_id(&self) -> Result<Option<String>, StoreError> {
        if dialect::steps_done(&self.db).await?.is_empty() {
            return Ok(None);
        }
        let rows = self.rows("SELECT val FROM meta WHERE name = 'store_id'").await?;
        let id = rows.first().map(|row| row.try_get("", "val").map_err(error));
        id.transpose()
    }

    async fn dangling(&self) -> Result<Vec<String>, StoreError> {
        let rows = self.rows("PRAGMA foreign_key_check").await?;
        let tables = rows.iter().map(|row| {
            let table: String = row.try_get_by_index(0).map_err(error)?;
            let parent: String = row.try_get_by_index(2).map_err(error)?;
            Ok(say::dangling(table, parent).to_string())
        });
        tables.collect()
    }

    async fn broken(&self, query: &str) -> Result<Option<String>, StoreError> {
        let rows = self.rows(query).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let count: i64 = row.try_get("", "n").map_err(error)?;
        let one: Option<String> = row.try_get("", "one").map_err(error)?;
        Ok(one.filter(|_| count > 0).map(|one| match count {
            1 => say::broken(one).to_string(),
            more => say::broken_more(one, more.unsigned_abs() - 1).to_string(),
        }))
    }

    async fn rows(&self, query: &str) -> Result<Vec<sea_orm::QueryResult>, StoreError> {
        let backend = self.db.get_database_backend();
        self.db
            .query_all_raw(Statement::from_string(backend, query))
            .await
            .map_err(error)
    }
}

/// Gives a finished copy its name, unless the name was taken in the meantime.
fn publish(part: &Path, to: &Path) -> Result<(), BackupError> {
    let fault = |cause: io::Error| match cause.kind() {
        ErrorKind::AlreadyExists => BackupError::Exists(to.to_owned()),
        _ => BackupError::Io {
            path: to.to_owned(),
            cause,
        },
    };
    File::open(part).and_then(|file| file.sync_all()).map_err(fault)?;
    match fs::hard_link(part, to) {
        Ok(()) => {}
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => return Err(fault(cause)),
        // On a file system without hard links, the name can be taken between check and rename.
        Err(_) if fs::symlink_metadata(to).is_err() => fs::rename(part, to).map_err(fault)?,
        Err(cause) => return Err(fault(cause)),
    }
    let folder = to
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(fault)
}

#[cfg(test)]
mod tests;
