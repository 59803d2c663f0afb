//! Bytes of results in a folder that all nodes of a store share.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use tokio::task::spawn_blocking;

use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::result_bytes::ResultBytes;

/// The file that says whose results are here: a folder that isn't mounted has none.
const MARKER: &str = "windrow-results";

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Folder(Arc<PathBuf>);

impl Folder {
    /// The folder, with what its marker says; a new one says `fresh`.
    ///
    /// # Errors
    /// `Refused` when it can't be made, read or written.
    pub(crate) fn open(root: &Path, fresh: &str) -> Result<(Folder, String), StoreError> {
        let refused = |error: io::Error| {
            let text = format!("results.location {} can't be used: {error}", root.display());
            StoreError::Refused(text)
        };
        fs::create_dir_all(root).map_err(refused)?;
        let folder = Folder(Arc::new(root.to_owned()));
        let marker = root.join(MARKER);
        match fs::read_to_string(&marker) {
            Ok(said) => Ok((folder, said.trim().to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                folder.write(&marker, fresh.as_bytes()).map_err(refused)?;
                Ok((folder, fresh.to_owned()))
            }
            Err(error) => Err(refused(error)),
        }
    }

    /// Whole or not at all: beside it first, on the disk, then under its name.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let parent = path.parent().unwrap_or(&self.0);
        let mut half = tempfile::Builder::new().prefix(".half").tempfile_in(parent)?;
        half.write_all(bytes)?;
        half.as_file().sync_all()?;
        half.persist(path).map_err(|failed| failed.error)?;
        File::open(parent)?.sync_all()
    }

    fn put_now(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        // A folder that was unmounted looks empty: nothing may be written beneath it.
        fs::metadata(self.0.join(MARKER))?;
        let path = self.0.join(name);
        if let Some(parent) = path.parent().filter(|parent| !parent.is_dir()) {
            fs::create_dir_all(parent)?;
            File::open(&*self.0)?.sync_all()?;
        }
        self.write(&path, bytes)
    }

    fn remove_now(&self, names: &[String]) -> io::Result<()> {
        for name in names {
            let path = self.0.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            if let Some(parent) = path.parent() {
                // It stays while there are others in it.
                fs::remove_dir(parent).ok();
            }
        }
        Ok(())
    }

    fn written_before_now(&self, before: WallMs) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for task in fs::read_dir(&*self.0)? {
            let task = task?;
            if !task.file_type()?.is_dir() {
                continue;
            }
            for file in fs::read_dir(task.path())? {
                let file = file?;
                let Ok(written) = file.metadata().and_then(|data| data.modified()) else {
                    continue;
                };
                let since = written.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
                if since < u128::from(before.0.max(0).cast_unsigned()) {
                    let (task, file) = (task.file_name(), file.file_name());
                    found.push(format!("{}/{}", task.to_string_lossy(), file.to_string_lossy()));
                }
            }
        }
        Ok(found)
    }

    /// Files are the business of threads that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(Folder) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let folder = self.clone();
        let done = spawn_blocking(move || work(folder)).await;
        let done = done.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        done.map_err(|error| {
            let place = self.0.display();
            StoreError::Unavailable(format!("results.location {place} can't be used now: {error}"))
        })
    }
}

/// What may still be written on the file system of a path. Unit: bytes.
pub(crate) fn free(path: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[async_trait]
impl ResultBytes for Folder {
    async fn put(&self, name: String, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.blocking(move |folder| folder.put_now(&name, &bytes)).await
    }

    async fn get(&self, name: String) -> Result<Vec<u8>, StoreError> {
        self.blocking(move |folder| fs::read(folder.0.join(name))).await
    }

    async fn free(&self) -> Option<u64> {
        self.blocking(|folder| free(&folder.0)).await.ok()
    }

    async fn remove(&self, names: Vec<String>) -> Result<(), StoreError> {
        self.blocking(move |folder| folder.remove_now(&names)).await
    }

    async fn written_before(&self, before: WallMs) -> Result<Vec<String>, StoreError> {
        self.blocking(move |folder| folder.written_before_now(before))
            .await
    }
}
