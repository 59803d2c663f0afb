//! Files that hold a secret (a key, a token, a password): read only if access is restricted, written for their owner
//! alone.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use windrow_core::business::secrets::unmarked;

/// Maximum number of bytes read; more than any secret.
const BYTES_MAX: u64 = 64 << 10;

/// Kind of secret file, with its requirements.
#[derive(Clone, Copy, Debug)]
pub struct SecretFile {
    /// Name of the content in messages, such as `key`.
    pub what: &'static str,
    /// Setting that names the file.
    pub setting: &'static str,
    /// Message for a file that holds something else, following its path.
    pub form: &'static str,
    /// Permission bits with which it is refused.
    pub refused: u32,
}

/// Error for a secret file that can't be used.
#[derive(Debug)]
pub struct SecretFileError {
    kind: SecretFile,
    path: PathBuf,
    /// Reason why it can't be used.
    pub fault: SecretFault,
}

/// Reason why a secret file can't be used.
#[derive(Debug)]
pub enum SecretFault {
    /// The file can't be read or created.
    Io(io::Error),
    /// The file holds something else.
    Malformed,
    /// Others than its owner may read or change the file.
    Exposed,
}

impl fmt::Display for SecretFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, path) = (self.kind, self.path.display());
        let what = kind.what;
        match &self.fault {
            SecretFault::Io(cause) => write!(
                f,
                "the {what} {path} can't be used: {cause}; check {} and the file's permissions",
                kind.setting
            ),
            SecretFault::Malformed => write!(f, "{path} {}", kind.form),
            SecretFault::Exposed => write!(
                f,
                "other users can read or change the {what} {path}; run chmod 600 {path}"
            ),
        }
    }
}

impl std::error::Error for SecretFileError {}

impl SecretFile {
    /// Reads the whole text, without a byte order mark.
    ///
    /// # Errors
    /// If it can't be read, or others have access to it.
    pub fn read(self, path: &Path) -> Result<String, SecretFileError> {
        let fail = |cause| self.unusable(path, cause);
        let file = File::open(path).map_err(fail)?;
        let mode = file.metadata().map_err(fail)?.permissions().mode();
        if mode & self.refused != 0 {
            return Err(self.error(path, SecretFault::Exposed));
        }
        if mode & 0o040 != 0 {
            tracing::warn!(path = %path.display(), "the {} is readable by its group", self.what);
        }
        let mut text = String::new();
        file.take(BYTES_MAX).read_to_string(&mut text).map_err(fail)?;
        Ok(unmarked(&text).to_owned())
    }

    /// Returns the error for a file that can't be read or created.
    pub fn unusable(self, path: &Path, cause: io::Error) -> SecretFileError {
        self.error(path, SecretFault::Io(cause))
    }

    /// Returns the error for a file that holds something else.
    pub fn malformed(self, path: &Path) -> SecretFileError {
        self.error(path, SecretFault::Malformed)
    }

    fn error(self, path: &Path, fault: SecretFault) -> SecretFileError {
        SecretFileError {
            kind: self,
            path: path.to_owned(),
            fault,
        }
    }
}

/// Writes a new file that only its owner may read, completely or not at all. Returns false if something has that name
/// already; that stays, and its content has to be read.
///
/// Nobody knows the draft's name in advance, and neither name is followed if it is a link: a user who may write in
/// the directory can't redirect the text.
///
/// # Errors
/// The error of the system.
pub fn write(path: &Path, text: &str) -> io::Result<bool> {
    let mut name = [0; 8];
    getrandom::fill(&mut name).map_err(io::Error::other)?;
    let draft = path.with_extension(format!("new-{:016x}", u64::from_le_bytes(name)));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let written = written.and_then(|()| std::fs::hard_link(&draft, path));
    std::fs::remove_file(&draft)?;
    match written {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(cause) => Err(cause),
        Ok(()) => path
            .parent()
            .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
            .map(|()| true),
    }
}
