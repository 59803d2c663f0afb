//! Cache of recent answers, so that a second Tab sends no request. Only the owner can read its files.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::shell::Shell;

/// Age up to which an answer is reused.
const FRESH: Duration = Duration::from_secs(5);
/// Age after which an answer is deleted.
const KEPT: Duration = Duration::from_secs(60);

/// Cache file of one question.
pub(super) struct Entry {
    file: PathBuf,
}

impl Entry {
    /// Returns the entry for a question, made of node, token and query. `None` without a home directory.
    pub(super) fn of(shell: &Shell, question: &[&str]) -> Option<Entry> {
        let named = shell
            .var("XDG_CACHE_HOME")
            .map(Path::new)
            .filter(|path| path.is_absolute());
        let base = match named {
            Some(path) => path.to_owned(),
            None => Path::new(shell.var("HOME")?).join(".cache"),
        };
        // The file name is a hash, so it reveals neither the question nor the token.
        let mut hash = Sha256::new();
        for part in question {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let name: String = hash
            .finalize()
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Some(Entry {
            file: base.join("windrow/completions").join(name),
        })
    }

    /// Returns the answer if it is fresh.
    pub(super) fn read(&self) -> Option<String> {
        let age = age(&self.file)?;
        (age < FRESH)
            .then(|| fs::read_to_string(&self.file).ok())
            .flatten()
    }

    /// Stores an answer. On failure the next Tab asks again.
    pub(super) fn write(&self, body: &str) {
        if let Err(error) = self.put(body) {
            tracing::debug!(%error, "can't cache completions");
        }
    }

    fn put(&self, body: &str) -> io::Result<()> {
        let folder = self.file.parent().ok_or(io::ErrorKind::NotFound)?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        for old in fs::read_dir(folder)?.flatten() {
            if age(&old.path()).is_some_and(|age| age > KEPT) {
                fs::remove_file(old.path())?;
            }
        }
        let new = self.file.with_extension(std::process::id().to_string());
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(body.as_bytes())?;
        fs::rename(&new, &self.file)
    }
}

/// Returns the age of a file, or `None` if it doesn't exist or its time is in the future.
fn age(file: &Path) -> Option<Duration> {
    fs::metadata(file).ok()?.modified().ok()?.elapsed().ok()
}
