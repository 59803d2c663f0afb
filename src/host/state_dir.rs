//! The state directory of an embedded store: one process at a time, by a lock that the operating system keeps.
//!
//! The lock is on a file of its own that is never unlinked, lives as long as the process (also through `kill -9`, when
//! the kernel frees it), and isn't inherited by workers: files are close-on-exec. Whoever holds it may take every older
//! session for dead (decision 0020, rule 18).

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, OFlags};
use rustix::process::geteuid;

/// The file that is locked.
const LOCK_FILE: &str = "windrow.lock";
/// What is kept in the directory, by this and other parts of the program.
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
/// The mode bit of a directory in which only owners remove and rename.
const STICKY: u32 = 0o1000;
/// The user who may do anything.
const ROOT: u32 = 0;
/// Text read of another process's lock file. Unit: bytes.
const HOLDER_BYTES_MAX: u64 = 4096;

/// A state directory that this process holds until the value is dropped.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    /// Locked; dropping it frees the lock.
    _lock: File,
}

/// A state directory can't be held.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process works in it.
    #[error(
        "process {} is working in {} ({command})",
        pid.map_or("?".to_owned(), |pid| pid.to_string()), path.display()
    )]
    LockedBy {
        /// The directory.
        path: PathBuf,
        /// The process, if it has told already.
        pid: Option<u32>,
        /// What it was started as.
        command: String,
    },
    /// Nothing can be written there.
    #[error("nothing can be written to {}: {cause}", path.display())]
    ReadOnly {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Others could have put something there, or could do so.
    #[error("{} {why}", path.display())]
    Unsafe {
        /// The directory, or what is in it.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Something else has that name.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The file system doesn't cooperate; locks need a local one.
    #[error("{} can't be locked: {cause}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
}

impl StateDir {
    /// Makes the directory if need be and takes its lock without waiting.
    ///
    /// # Errors
    /// See [`LockError`].
    pub fn lock(path: &Path) -> Result<StateDir, LockError> {
        let fail = |cause: io::Error| refuse(path, cause);
        // What is kept there is nobody else's: items, parameters, hashes of tokens.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(fail)?;
        refuse_unsafe(path)?;
        let mut options = OpenOptions::new();
        // Not truncated: until the lock is ours, the text is its holder's.
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
        // One that an older version made was everybody's to read, with the command line in it.
        file.set_permissions(Permissions::from_mode(0o600))
            .map_err(fail)?;
        sign(&mut file).map_err(fail)?;
        Ok(StateDir {
            path: path.to_owned(),
            _lock: file,
        })
    }

    /// Whether the directory could be held, if nobody else holds it; makes nothing.
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

    /// Whether a directory is there and can be written, or could be made; makes nothing.
    ///
    /// # Errors
    /// `ReadOnly`, `NotADirectory` or `Io`.
    pub fn could_be(path: &Path) -> Result<(), LockError> {
        // It would be made below the nearest directory that is there.
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

    /// Whether a process has held the directory at any time; makes nothing.
    pub fn was_held(path: &Path) -> bool {
        path.join(LOCK_FILE).exists()
    }

    /// Whether a process holds the directory now; makes nothing. For the moment of the question nobody else can take it, so it
    /// is asked only where the answer matters.
    pub fn is_held(path: &Path) -> bool {
        File::open(path.join(LOCK_FILE))
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        StateDir::database_in(&self.path)
    }

    /// The database of a directory, whoever holds it.
    pub fn database_in(directory: &Path) -> PathBuf {
        directory.join("windrow.db")
    }

    /// Where standard input is kept while it is worked through. Not made here.
    pub fn spool(&self) -> PathBuf {
        self.path.join("spool")
    }

    /// The worker processes under way, so that the next start can end what a `kill -9` left.
    pub fn workers(&self) -> PathBuf {
        self.path.join("workers.json")
    }
}

/// Refuses a directory in which others could put links, or replace what is read and executed; and links in the place of
/// what is kept there, which were planted before.
fn refuse_unsafe(path: &Path) -> Result<(), LockError> {
    let (found, me) = (path.metadata().map_err(|cause| refuse(path, cause))?, geteuid());
    let unsafe_ = |path: PathBuf, why: &str| {
        let why = why.to_owned();
        Err(LockError::Unsafe { path, why })
    };
    // The system's own user can do anything anyway; volumes are often its.
    if found.uid() != me.as_raw() && found.uid() != ROOT {
        return unsafe_(
            path.to_owned(),
            "belongs to another user, who could change all that is kept there",
        );
    }
    // The group of a volume that belongs to the system is the one that its users were given for it.
    let refused = if found.uid() == me.as_raw() { 0o022 } else { 0o002 };
    if found.mode() & refused != 0 {
        return unsafe_(path.to_owned(), "can be written by other users");
    }
    let whole = path.canonicalize().map_err(|cause| refuse(path, cause))?;
    // The one above only: whoever lets others write further up, as a shared home does, has decided so.
    if let Some(above) = whole.parent() {
        let mode = above.metadata().map_err(|cause| refuse(above, cause))?.mode();
        // Where it is sticky, as /tmp is, others can't rename what isn't theirs.
        if mode & 0o002 != 0 && mode & STICKY == 0 {
            let why = "can be written by other users, who could put another directory in the place of what is below it";
            return unsafe_(above.to_owned(), why);
        }
    }
    for name in OWN {
        let own = path.join(name);
        if own.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
            return unsafe_(
                own,
                "is a link; what is kept in this directory is never read or written through one",
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

/// Two lines for whoever is refused: the process and its command.
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

/// A command line without what may be secret: it stays on the disk, and is shown to whoever is refused. Values of
/// headers, what follows the path of a URL, and the handler's own words are left out.
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
    // What can't be read isn't shown: the lock alone is the refusal.
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
