//! The state directory of an embedded store: one process at a time, by a lock that the operating system keeps.
//!
//! The lock is on a file of its own that is never unlinked, lives as long as the process (also through `kill -9`, when
//! the kernel frees it), and isn't inherited by workers: files are close-on-exec. Whoever holds it may take every older
//! session for dead (decision 0020, rule 18).

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// The file that is locked.
const LOCK_FILE: &str = "windrow.lock";
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
        let mut options = OpenOptions::new();
        // Not truncated: until the lock is ours, the text is its holder's.
        options
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .mode(0o600);
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
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_refused_and_told_who_works() {
        let place = tempfile::tempdir().expect("a directory");
        let held = StateDir::lock(&place.path().join("state")).expect("free");
        let error = StateDir::lock(held.path()).expect_err("held");
        assert!(matches!(error, LockError::LockedBy { pid: Some(pid), .. } if pid == std::process::id()));
        assert!(error.to_string().contains("is working in"), "{error}");
        let path = held.path().to_owned();
        assert!(StateDir::is_held(&path));
        drop(held);
        assert!(!StateDir::is_held(&path) && !StateDir::is_held(place.path()));
        assert!(path.join(LOCK_FILE).exists(), "the file is never unlinked");
        StateDir::lock(&path).expect("free again");
    }

    #[test]
    fn a_directory_that_is_made_is_its_owner_s_alone() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("deep/state");
        drop(StateDir::lock(&path).expect("free"));
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let lock = path.join(LOCK_FILE);
        assert_eq!((mode(&path), mode(&lock)), (0o700, 0o600));
        std::fs::set_permissions(&lock, Permissions::from_mode(0o644)).expect("as it once was");
        drop(StateDir::lock(&path).expect("free"));
        assert_eq!(mode(&lock), 0o600);
    }

    #[test]
    fn a_file_in_the_way_is_no_directory() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("state");
        std::fs::write(&path, "x").expect("written");
        for path in [path.clone(), path.join("below")] {
            let error = StateDir::lock(&path).expect_err("a file");
            assert!(matches!(error, LockError::NotADirectory { .. }), "{error:?}");
        }
    }

    #[test]
    fn a_command_line_is_kept_without_its_secrets() {
        let shown = |line: &str| shown(&line.split('|').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(
            shown(
                "windrow|run|--header|authorization: Bearer s3|--header=x-key: s3|--url|https://h/p?key=s3"
            ),
            "windrow run --header authorization --header=x-key --url https://h/p"
        );
        assert_eq!(
            shown("windrow|run|--header|s3|--total|3"),
            "windrow run --header … --total 3"
        );
        assert_eq!(
            shown("windrow|run|--total|3|--|./worker|--token|s3"),
            "windrow run --total 3 -- …"
        );
    }

    #[test]
    fn what_the_system_refuses_is_named() {
        let path = Path::new("/here");
        let denied = refuse(path, io::Error::from(io::ErrorKind::PermissionDenied));
        assert!(
            denied.to_string().contains("nothing can be written to /here"),
            "{denied}"
        );
        let full = refuse(path, io::Error::from(io::ErrorKind::StorageFull));
        assert!(matches!(full, LockError::Io { .. }));
    }

    #[test]
    fn a_child_process_does_not_inherit_the_lock() {
        let place = tempfile::tempdir().expect("a directory");
        let held = StateDir::lock(place.path()).expect("free");
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("a child");
        drop(held);
        let again = StateDir::lock(place.path());
        child.kill().expect("our own child");
        child.wait().expect("ended");
        again.expect("only this process held it");
    }
}
