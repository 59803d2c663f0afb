//! Folders shared by all nodes of a store: one for result bytes, one for archived tasks.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::UNIX_EPOCH;
use windrow_words::store as say;

use async_trait::async_trait;
use tokio::task::spawn_blocking;

use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::result_bytes::ResultBytes;

/// Name prefix of files that are still being written.
const HALF: &str = ".half";
/// Interval between two scans for partial files.
const LOOK_EVERY_MS: i64 = 3_600_000;
/// Default compression level of zstd.
const PACKED_LEVEL: i32 = 3;

/// Purpose of a shared folder, with the names that belong to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FolderKind {
    /// Configuration key that names the folder.
    pub(crate) setting: &'static str,
    /// Fact in the store's `meta` table whose value must equal the marker's content.
    pub(crate) fact: &'static str,
    /// Marker file that identifies the folder; missing while the folder is not mounted.
    marker: &'static str,
}

/// Folder for the bytes of results.
pub(crate) const RESULTS: FolderKind = FolderKind {
    setting: "results.location",
    fact: "results_place",
    marker: "windrow-results",
};
/// Folder for tasks archived before deletion.
pub(crate) const ARCHIVE: FolderKind = FolderKind {
    setting: "archive.location",
    fact: "archive_place",
    marker: "windrow-archive",
};

impl FolderKind {
    /// Returns the error for a folder that is not the one this store knows.
    pub(crate) fn other(self, folder: &Path) -> StoreError {
        let place = folder.display().to_string();
        StoreError::Refused(say::other_folder(self.setting, place, self.marker).to_string())
    }
}

/// Handle to an opened shared folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    kind: FolderKind,
    root: Arc<PathBuf>,
    /// Cutoff of the last scan for partial files, in milliseconds since the Unix epoch; shared by clones.
    looked: Arc<AtomicI64>,
}

impl Folder {
    /// Opens the folder and returns it with the content of its marker. A missing marker is written with `fresh`;
    /// without `fresh` the content is empty.
    ///
    /// # Errors
    /// `Refused` if the folder cannot be created, read or written.
    pub(crate) fn open(
        kind: FolderKind,
        root: &Path,
        fresh: Option<&str>,
    ) -> Result<(Folder, String), StoreError> {
        let refused = |error: io::Error| {
            let (place, why) = (root.display().to_string(), error.to_string());
            StoreError::Refused(say::folder_unusable(kind.setting, place, why).to_string())
        };
        fs::create_dir_all(root).map_err(refused)?;
        let folder = Folder {
            kind,
            root: Arc::new(root.to_owned()),
            looked: Arc::default(),
        };
        let marker = root.join(kind.marker);
        match (fs::read_to_string(&marker), fresh) {
            (Ok(said), _) => Ok((folder, said.trim().to_owned())),
            (Err(error), Some(fresh)) if error.kind() == ErrorKind::NotFound => {
                folder.write(&marker, fresh.as_bytes()).map_err(refused)?;
                Ok((folder, fresh.to_owned()))
            }
            (Err(error), None) if error.kind() == ErrorKind::NotFound => Ok((folder, String::new())),
            (Err(error), _) => Err(refused(error)),
        }
    }

    /// Writes atomically: to a temporary file in the same folder, synced, then renamed.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let parent = path.parent().unwrap_or(&self.root);
        let mut half = tempfile::Builder::new().prefix(HALF).tempfile_in(parent)?;
        half.write_all(bytes)?;
        half.as_file().sync_all()?;
        half.persist(path).map_err(|failed| failed.error)?;
        File::open(parent)?.sync_all()
    }

    fn put_now(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.room_for(name)?;
        self.write(&path, bytes)
    }

    /// Returns the path for a name, creating its parent. Fails if the folder is not mounted.
    fn room_for(&self, name: &str) -> io::Result<PathBuf> {
        // An unmounted folder looks empty: never write beneath the mount point.
        fs::metadata(self.root.join(self.kind.marker))?;
        let path = self.root.join(name);
        if let Some(parent) = path.parent().filter(|parent| !parent.is_dir()) {
            fs::create_dir_all(parent)?;
            File::open(&*self.root)?.sync_all()?;
        }
        Ok(path)
    }

    /// Begins a file that gets this name once it is complete.
    ///
    /// # Errors
    /// `Unavailable` while the folder cannot be written.
    pub(crate) async fn begin(&self, name: String) -> Result<PackedFile, StoreError> {
        let begun = self.blocking(move |folder| {
            let path = folder.room_for(&name)?;
            let parent = path.parent().unwrap_or(&folder.root);
            let half = tempfile::Builder::new().prefix(HALF).tempfile_in(parent)?;
            let mut packer = zstd::stream::write::Encoder::new(half, PACKED_LEVEL)?;
            packer.include_checksum(true)?;
            Ok((path, packer))
        });
        let (path, packer) = begun.await?;
        Ok(PackedFile {
            folder: self.clone(),
            path,
            packer,
        })
    }

    fn remove_now(&self, names: &[String]) -> io::Result<()> {
        for name in names {
            let path = self.root.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            if let Some(parent) = path.parent() {
                // Fails, and so keeps the folder, while other files are in it.
                fs::remove_dir(parent).ok();
            }
        }
        Ok(())
    }

    /// Removes partial files last written before a time. Scans at most once per [`LOOK_EVERY_MS`], since a scan lists
    /// every file.
    ///
    /// # Errors
    /// `Unavailable` while the folder cannot be read or written.
    pub(crate) async fn remove_halves(&self, before: WallMs) -> Result<u64, StoreError> {
        let looked = self.looked.load(Ordering::Relaxed);
        if before.0.saturating_sub(looked) < LOOK_EVERY_MS {
            return Ok(0);
        }
        self.looked.store(before.0, Ordering::Relaxed);
        self.blocking(move |folder| {
            let halves = folder.written_before_now(before, HALF)?;
            halves
                .iter()
                .try_for_each(|name| fs::remove_file(folder.root.join(name)))?;
            Ok(halves.len() as u64)
        })
        .await
    }

    fn written_before_now(&self, before: WallMs, prefix: &str) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for task in fs::read_dir(&*self.root)? {
            let task = task?;
            if !task.file_type()?.is_dir() {
                continue;
            }
            for file in fs::read_dir(task.path())? {
                let file = file?;
                if !file.file_name().to_string_lossy().starts_with(prefix) {
                    continue;
                }
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

    /// Runs file operations on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(Folder) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let folder = self.clone();
        let done = spawn_blocking(move || work(folder)).await;
        let done = done.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        done.map_err(|error| {
            let (place, why) = (self.root.display().to_string(), error.to_string());
            StoreError::Unavailable(say::folder_unusable_now(self.kind.setting, place, why).to_string())
        })
    }
}

/// File compressed as it is written (zstd, with a checksum). Nothing remains if it is dropped unfinished.
pub(crate) struct PackedFile {
    folder: Folder,
    path: PathBuf,
    packer: zstd::stream::write::Encoder<'static, tempfile::NamedTempFile>,
}

impl PackedFile {
    /// Appends text to the compressed stream.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be written.
    pub(crate) async fn add(self, text: String) -> Result<PackedFile, StoreError> {
        let PackedFile {
            folder,
            path,
            mut packer,
        } = self;
        let written = folder.blocking(move |_| packer.write_all(text.as_bytes()).map(|()| packer));
        let packer = written.await?;
        Ok(PackedFile { folder, path, packer })
    }

    /// Syncs the file to disk, then gives it its name.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be written.
    pub(crate) async fn finish(self) -> Result<(), StoreError> {
        let PackedFile { folder, path, packer } = self;
        let finished = folder.blocking(move |folder| {
            let half = packer.finish()?;
            half.as_file().sync_all()?;
            half.persist(&path).map_err(|failed| failed.error)?;
            File::open(path.parent().unwrap_or(&folder.root))?.sync_all()
        });
        finished.await
    }
}

/// Returns the free space of the file system at a path, in bytes.
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
        self.blocking(move |folder| fs::read(folder.root.join(name)))
            .await
    }

    async fn free(&self) -> Option<u64> {
        self.blocking(|folder| free(&folder.root)).await.ok()
    }

    async fn remove(&self, names: Vec<String>) -> Result<(), StoreError> {
        self.blocking(move |folder| folder.remove_now(&names)).await
    }

    async fn written_before(&self, before: WallMs) -> Result<Vec<String>, StoreError> {
        self.blocking(move |folder| folder.written_before_now(before, ""))
            .await
    }
}
