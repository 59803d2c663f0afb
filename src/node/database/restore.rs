//! Restore of an embedded database from a backup: checked and marked first, then replaced as a whole or not at all.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{BackupError, Inspection, Restored, Store, restoring};
use crate::StateDir;
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_host::secret_file::SecretFileError;
use windrow_host::vault::KeyVault;

/// Suffixes of the files that SQLite leaves beside a database that was not closed.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Error that keeps a backup from being restored. Existing data is still there.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The file is not an intact database of this program.
    #[error("can't restore {}: {why}", file.display())]
    Unusable {
        /// Path of the backup.
        file: PathBuf,
        /// Description of the fault.
        why: String,
    },
    /// The file was written by a newer program.
    #[error("{} was written by a newer windrow (schema step {step})", file.display())]
    Newer {
        /// Path of the backup.
        file: PathBuf,
        /// First migration step that this program doesn't know.
        step: String,
    },
    /// A file can't be written.
    #[error("can't write {}: {cause}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The copy can't be migrated or marked.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A backup that was copied next to the database, checked and marked. Nothing is replaced yet.
#[derive(Debug)]
pub struct Prepared {
    copy: PathBuf,
    /// Outcome of marking the copy.
    pub restored: Restored,
}

/// Checks a backup without changing anything.
///
/// # Errors
/// `Unusable` or `Newer`, if it can't be restored.
pub async fn look(file: &Path) -> Result<(), RestoreError> {
    let unusable = |why: String| RestoreError::Unusable {
        file: file.to_owned(),
        why,
    };
    let read = |cause: StoreError| unusable(cause.to_string());
    let backup = Inspection::open(file).await.map_err(read)?;
    let seen = async {
        let faults = backup.quick_check().await?;
        Ok((backup.schema().await?, faults, backup.strangers().await?))
    };
    let seen: Result<_, StoreError> = seen.await;
    backup.close().await.map_err(read)?;
    let (schema, faults, strangers) = seen.map_err(read)?;
    if let Some(step) = schema.unknown.first() {
        return Err(RestoreError::Newer {
            file: file.to_owned(),
            step: step.clone(),
        });
    }
    if let Some(fault) = faults.first() {
        return Err(unusable(format!("it is damaged: {fault}")));
    }
    // A foreign trigger or view would run with the node's rights whenever a row is written or read.
    if let Some(stranger) = strangers.first() {
        return Err(unusable(format!("it contains {stranger}")));
    }
    match schema.done.is_empty() {
        true => Err(unusable("it is a database, but not one of windrow".to_owned())),
        false => Ok(()),
    }
}

/// True if two databases belong to the same store.
///
/// # Errors
/// `Unusable` if one of them can't be read.
pub async fn is_same_store(one: &Path, other: &Path) -> Result<bool, RestoreError> {
    Ok(store_id(one).await? == store_id(other).await?)
}

async fn store_id(file: &Path) -> Result<Option<String>, RestoreError> {
    let read = |cause: StoreError| RestoreError::Unusable {
        file: file.to_owned(),
        why: cause.to_string(),
    };
    let database = Inspection::open(file).await.map_err(read)?;
    let id = database.store_id().await;
    database.close().await.map_err(read)?;
    id.map_err(read)
}

/// Copies a backup next to the database, migrates its schema and marks it. The caller holds the directory.
///
/// # Errors
/// See [`RestoreError`]; the copy is removed then.
pub async fn prepare(
    file: &Path,
    (database, _held): (&Path, &StateDir),
    (pauses, now): (bool, WallMs),
) -> Result<Prepared, RestoreError> {
    look(file).await?;
    let copy = restoring(database);
    discard(&copy)?;
    let restored = match marked_copy(file, &copy, (pauses, now)).await {
        Ok(restored) => restored,
        Err(cause) => {
            discard(&copy)?;
            return Err(cause);
        }
    };
    Ok(Prepared { copy, restored })
}

async fn marked_copy(
    file: &Path,
    copy: &Path,
    (pauses, now): (bool, WallMs),
) -> Result<Restored, RestoreError> {
    let backup = Inspection::open(file).await?;
    let copied = backup.backup(copy).await;
    backup.close().await?;
    copied.map_err(|cause| match cause {
        BackupError::Io { path, cause } => RestoreError::Io { path, cause },
        BackupError::Exists(path) => io_fault(&path, ErrorKind::AlreadyExists.into()),
        BackupError::Store(cause) => cause.into(),
    })?;
    let store = Store::open(copy).await?;
    let marked = store.mark_restored(pauses, now).await;
    store.close().await?;
    let restored = marked?;
    let synced = File::open(copy).and_then(|file| file.sync_all());
    synced.map_err(|cause| io_fault(copy, cause))?;
    Ok(restored)
}

impl Prepared {
    /// Replaces the database with the copy. The old database is kept as a whole under another name, including
    /// unmerged changes.
    ///
    /// # Errors
    /// `Io`; the old database is then still there, or under its other name.
    pub fn put(self, database: &Path, kept: &Path) -> Result<(), RestoreError> {
        self.try_put(database, kept).inspect_err(|_| {
            // People need to know the first fault.
            discard(&self.copy).ok();
        })
    }

    fn try_put(&self, database: &Path, kept: &Path) -> Result<(), RestoreError> {
        if database.exists() {
            keep(database, kept)?;
        }
        for end in COMPANIONS {
            remove(&named(database, end))?;
        }
        fs::rename(&self.copy, database).map_err(|cause| io_fault(database, cause))?;
        let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|cause| io_fault(folder, cause))
    }

    /// Discards the copy and leaves everything as it was.
    ///
    /// # Errors
    /// `Io` if the copy can't be removed.
    pub fn give_up(self) -> Result<(), RestoreError> {
        discard(&self.copy)
    }
}

/// Gives a database a second name. With hard links, the first name stays until the new database is renamed over it,
/// so that there is always a database in place.
fn keep(database: &Path, kept: &Path) -> Result<(), RestoreError> {
    for end in COMPANIONS.into_iter().filter(|end| *end != "-shm") {
        second_name(&named(database, end), &named(kept, end))?;
    }
    second_name(database, kept)
}

fn second_name(of: &Path, name: &Path) -> Result<(), RestoreError> {
    match fs::hard_link(of, name) {
        Ok(()) => Ok(()),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(()),
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => Err(io_fault(name, cause)),
        Err(_) => fs::rename(of, name).map_err(|cause| io_fault(name, cause)),
    }
}

/// Removes the remains of an earlier copy.
fn discard(copy: &Path) -> Result<(), RestoreError> {
    for end in COMPANIONS {
        remove(&named(copy, end))?;
    }
    remove(copy)
}

fn remove(path: &Path) -> Result<(), RestoreError> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => Err(io_fault(path, cause)),
        _ => Ok(()),
    }
}

/// Returns the path with a suffix appended.
fn named(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn io_fault(path: &Path, cause: io::Error) -> RestoreError {
    RestoreError::Io {
        path: path.to_owned(),
        cause,
    }
}

/// Checks that a file has a key for encrypting secrets.
///
/// # Errors
/// See [`SecretFileError`].
pub fn look_at_key(file: &Path) -> Result<(), SecretFileError> {
    KeyVault::look(Some(file), Path::new("."))
}

/// Copies a key to the path used by the node, and keeps an existing one under another name.
///
/// # Errors
/// `Io` if a file can't be written.
pub fn put_key(file: &Path, key: &Path, kept: &Path) -> Result<(), RestoreError> {
    let text = fs::read(file).map_err(|cause| io_fault(file, cause))?;
    let copy = named(key, ".restoring");
    remove(&copy)?;
    let made = fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&copy);
    let written = made.and_then(|mut made| made.write_all(&text).and_then(|()| made.sync_all()));
    written.map_err(|cause| io_fault(&copy, cause))?;
    second_name(key, kept)?;
    fs::rename(&copy, key).map_err(|cause| io_fault(key, cause))
}
