//! Answers of the last seconds, so that a second Tab asks nobody: files that only their owner reads.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::shell::Shell;

/// How long an answer is as good as new.
const FRESH: Duration = Duration::from_secs(5);
/// After this an answer is deleted.
const KEPT: Duration = Duration::from_secs(60);

/// The place of an answer.
pub(super) struct Entry {
    file: PathBuf,
}

impl Entry {
    /// The place for what was asked: which node, by whom, what. None without a home.
    pub(super) fn of(shell: &Shell, question: &[&str]) -> Option<Entry> {
        let named = shell
            .var("XDG_CACHE_HOME")
            .map(Path::new)
            .filter(|path| path.is_absolute());
        let base = match named {
            Some(path) => path.to_owned(),
            None => Path::new(shell.var("HOME")?).join(".cache"),
        };
        // The name tells nothing of what was asked, a token least of all.
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

    /// The answer, if it is fresh.
    pub(super) fn read(&self) -> Option<String> {
        let age = age(&self.file)?;
        (age < FRESH)
            .then(|| fs::read_to_string(&self.file).ok())
            .flatten()
    }

    /// Keeps an answer. One that can't be kept is asked for again.
    pub(super) fn write(&self, body: &str) {
        if let Err(error) = self.put(body) {
            tracing::debug!(%error, "completions are not kept");
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

/// How old a file is; none where there is none, or it is of the future.
fn age(file: &Path) -> Option<Duration> {
    fs::metadata(file).ok()?.modified().ok()?.elapsed().ok()
}
