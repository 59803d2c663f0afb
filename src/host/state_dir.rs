//! State directory of an embedded store: one process at a time, by a lock that the operating system keeps.
//!
//! The lock is on a file of its own that is never unlinked. It lives as long as the process (also through `kill -9`,
//! when the kernel releases it), and isn't inherited by workers: files are close-on-exec. The holder may consider
//! every older session dead (decision 0020, rule 18).

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, OFlags};
use rustix::process::geteuid;

/// Name of the file that is locked.
const LOCK_FILE: &str = "windrow.lock";
/// Names kept in the directory by all parts of the program.
const OWN: [&str; 12] = [
    LOCK_FILE,
    "windrow.db",
    "windrow.db-wal",
    "windrow.db-shm",
    "windrow.db-journal",
    "windrow.db.restoring",
    "spool",
    "workers.json",
    "processes",
    "key",
    "admin.token",
    "control.sock",
];
/// Mode bit of a directory in which only owners remove and rename.
const STICKY: u32 = 0o1000;
/// Id of the user who may do anything.
const ROOT: u32 = 0;
/// Maximum number of bytes read of another process's lock file.
const HOLDER_BYTES_MAX: u64 = 4096;

/// State directory that this process holds until the value is dropped.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    /// Lock file; dropping it releases the lock.
    _lock: File,
}

/// Reason why a state directory can't be held.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process works in the directory.
    #[error(
        "process {} is working in {} ({command})",
        pid.map_or("?".to_owned(), |pid| pid.to_string()), path.display()
    )]
    LockedBy {
        /// Path of the state directory.
        path: PathBuf,
        /// Id of the process, if it has written it already.
        pid: Option<u32>,
        /// Command line of the process.
        command: String,
    },
    /// Nothing can be written to the directory.
    #[error("nothing can be written to {}: {cause}", path.display())]
    ReadOnly {
        /// Path of the state directory.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// Others could have planted something in the directory, or could do so.
    #[error("{} {why}", path.display())]
    Unsafe {
        /// Path of the directory, or of something in it.
        path: PathBuf,
        /// Problem found, in words that follow the path.
        why: String,
    },
    /// Something else has the name of the directory.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// Path that is not a directory.
        path: PathBuf,
    },
    /// The file system doesn't support it; locks need a local one.
    #[error("{} can't be locked: {cause}", path.display())]
    Io {
        /// Path of the state directory.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
}

impl StateDir {
    /// Creates the directory if necessary and takes its lock without waiting.
    ///
    /// # Errors
    /// See [`LockError`].
    pub fn lock(path: &Path) -> Result<StateDir, LockError> {
        let fail = |cause: io::Error| refuse(path, cause);
        // Nobody else may read the content: items, parameters, hashes of tokens.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(fail)?;
        refuse_unsafe(path)?;
        let mut options = OpenOptions::new();
        // Not truncated: until the lock is ours, the text belongs to its holder.
        options
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let mut file = options.open(path.join(LOCK_FILE)).map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(locked_by(path, &file)),
            Err(TryLockError::Error(cause)) => {
                return Err(LockError::Io {
                    path: path.to_owned(),
                    cause,
                });
            }
        }
        // A file from an older version was readable by everybody, with the command line in it.
        file.set_permissions(Permissions::from_mode(0o600))
            .map_err(fail)?;
        sign(&mut file).map_err(fail)?;
        Ok(StateDir {
            path: path.to_owned(),
            _lock: file,
        })
    }

    /// Checks that the directory could be held if nobody else holds it; creates nothing.
    ///
    /// # Errors
    /// See [`LockError`].
    pub fn look(path: &Path) -> Result<(), LockError> {
        StateDir::could_be(path)?;
        match path.is_dir() {
            true => refuse_unsafe(path),
            false => Ok(()),
        }
    }

    /// Checks that a directory exists and is writable, or could be created; creates nothing.
    ///
    /// # Errors
    /// `ReadOnly`, `NotADirectory` or `Io`.
    pub fn could_be(path: &Path) -> Result<(), LockError> {
        // It would be created below the nearest existing directory.
        let there = path.ancestors().find(|place| place.exists());
        let there = there
            .filter(|place| !place.as_os_str().is_empty())
            .unwrap_or_else(|| Path::new("."));
        if !there.is_dir() {
            return Err(LockError::NotADirectory {
                path: there.to_owned(),
            });
        }
        rustix::fs::access(there, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|cause| refuse(path, cause.into()))
    }

    /// Returns true if a process has ever held the directory; creates nothing.
    pub fn was_held(path: &Path) -> bool {
        path.join(LOCK_FILE).exists()
    }

    /// Returns true if a process holds the directory now; creates nothing. During the check nobody else can take it,
    /// so check only where the answer matters.
    pub fn is_held(path: &Path) -> bool {
        File::open(path.join(LOCK_FILE))
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the database.
    pub fn database(&self) -> PathBuf {
        StateDir::database_in(&self.path)
    }

    /// Returns the path of a directory's database, whoever holds the directory.
    pub fn database_in(directory: &Path) -> PathBuf {
        directory.join("windrow.db")
    }

    /// Returns the path for standard input while it is worked through. Not created here.
    pub fn spool(&self) -> PathBuf {
        self.path.join("spool")
    }

    /// Returns the path for the live worker processes, so that the next start can end those left by a `kill -9`.
    pub fn workers(&self) -> PathBuf {
        self.path.join("workers.json")
    }
}

/// Refuses a directory in which others could put links, or replace files that are read and executed. Also refuses
/// links in place of the program's files, which were planted before.
fn refuse_unsafe(path: &Path) -> Result<(), LockError> {
    let (found, me) = (path.metadata().map_err(|cause| refuse(path, cause))?, geteuid());
    let unsafe_ = |path: PathBuf, why: &str| {
        let why = why.to_owned();
        Err(LockError::Unsafe { path, why })
    };
    // The system's own user can do anything anyway, and often owns volumes.
    if found.uid() != me.as_raw() && found.uid() != ROOT {
        return unsafe_(
            path.to_owned(),
            "belongs to another user, who could change its content",
        );
    }
    // A volume that belongs to the system has the group that its users were given for it.
    let refused = if found.uid() == me.as_raw() { 0o022 } else { 0o002 };
    if found.mode() & refused != 0 {
        return unsafe_(path.to_owned(), "can be written by other users");
    }
    let whole = path.canonicalize().map_err(|cause| refuse(path, cause))?;
    // Only the parent: whoever lets others write further up, as in a shared home, has decided so.
    if let Some(above) = whole.parent() {
        let mode = above.metadata().map_err(|cause| refuse(above, cause))?.mode();
        // In a sticky directory such as /tmp, others can't rename what isn't theirs.
        if mode & 0o002 != 0 && mode & STICKY == 0 {
            let why = "can be written by other users, who could replace the directories below it";
            return unsafe_(above.to_owned(), why);
        }
    }
    for name in OWN {
        let own = path.join(name);
        if own.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
            return unsafe_(
                own,
                "is a symbolic link; state is never read or written through a link",
            );
        }
    }
    Ok(())
}

fn refuse(path: &Path, cause: io::Error) -> LockError {
    let path = path.to_owned();
    match cause.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            LockError::ReadOnly { path, cause }
        }
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => LockError::NotADirectory { path },
        _ => LockError::Io { path, cause },
    }
}

/// Writes two lines for whoever is refused: the process and its command.
fn sign(file: &mut File) -> io::Result<()> {
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let command = shown(&words).replace(char::is_control, " ");
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}\n{}", std::process::id(), command)?;
    file.flush()
}

/// Formats a command line without possible secrets, since it stays on disk and is shown to whoever is refused. Omits
/// values of headers, anything after the path of a URL, and the handler's own arguments.
fn shown(words: &[String]) -> String {
    let mut shown: Vec<&str> = Vec::new();
    let mut is_header = false;
    for word in words {
        let cut = if is_header || word.starts_with("--header=") {
            word.split_once(':').map_or("…", |(name, _)| name)
        } else if word.contains("://") {
            word.split_once('?').map_or(word.as_str(), |(url, _)| url)
        } else {
            word
        };
        is_header = !is_header && word == "--header";
        shown.push(cut);
        if word == "--" {
            shown.push("…");
            break;
        }
    }
    shown.join(" ")
}

fn locked_by(path: &Path, file: &File) -> LockError {
    let mut text = String::new();
    // Unreadable text isn't shown: the lock alone is the refusal.
    if file.take(HOLDER_BYTES_MAX).read_to_string(&mut text).is_err() {
        text.clear();
    }
    let mut lines = text.lines();
    let pid = lines.next().and_then(|line| line.parse().ok());
    let command = lines.next().unwrap_or("just starting").to_owned();
    LockError::LockedBy {
        path: path.to_owned(),
        pid,
        command,
    }
}

#[cfg(test)]
mod tests;
