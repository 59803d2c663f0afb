//! Output files of a run. They never replace a file that the run itself needs, nor anything but a regular file: the
//! new file is renamed over the old one, which would destroy a device or a pipe.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::run::args::RunArgs;

/// Returns the reason why no file may have this name, whatever its content, or `None` if one may.
pub(super) fn unfit(path: &Path) -> Option<&'static str> {
    let Ok(there) = path.metadata() else {
        let is_link = path.is_symlink();
        return is_link.then_some("it is a link to a missing file");
    };
    if there.is_dir() {
        return Some("it is a directory");
    }
    if !there.is_file() {
        return Some("it is not a regular file");
    }
    let is_stdout = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .map(File::from)
        .and_then(|out| out.metadata());
    is_stdout
        .is_ok_and(|out| is_same(&there, &out))
        .then_some("standard output is redirected there")
}

/// Returns the file of the command line that this path refers to: items, configuration, secrets, the handler and its
/// arguments.
pub(super) fn needed<'a>(args: &'a RunArgs, path: &Path) -> Option<&'a Path> {
    let there = path.metadata().ok()?;
    let items = args.items.files().map(Path::new);
    let flags = args.config.iter().chain(args.http.files()).map(PathBuf::as_path);
    items
        .chain(flags)
        .chain(args.request.files())
        .chain(args.worker.iter().map(Path::new))
        .find(|used| used.metadata().is_ok_and(|used| is_same(&there, &used)))
}

fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// True if a file starts with anything but these beginnings: it belongs to somebody else and would be lost.
pub(super) fn is_foreign(path: &Path, beginnings: &[&[u8]]) -> bool {
    let most = beginnings.iter().map(|beginning| beginning.len()).max();
    let mut head = vec![0; most.unwrap_or(0)];
    let Ok(read) = File::open(path).and_then(|mut file| file.read(&mut head)) else {
        return false;
    };
    let is_ours = |beginning: &&[u8]| head[..read].starts_with(beginning);
    read > 0 && !beginnings.iter().any(is_ours)
}

/// Returns the reason why no file can be created there, or `None` if one can.
pub(super) fn unmakeable(path: &Path) -> Option<String> {
    let error = Half::beside(path).err()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Some(match folder {
        Some(folder) if !folder.exists() => "its directory does not exist".to_owned(),
        Some(folder) if !folder.is_dir() => format!("{} is not a directory", folder.display()),
        _ => format!("can't create a file there: {error}"),
    })
}

/// Resolves links, so that a link stays and its target is replaced. All spellings of a path give the same name.
pub(super) fn named(path: &Path) -> PathBuf {
    let in_folder = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    path.canonicalize()
        .ok()
        .or_else(in_folder)
        .unwrap_or_else(|| path.to_owned())
}

/// Incomplete file, removed on drop unless it got its final name.
pub(super) struct Half {
    path: PathBuf,
    whole: PathBuf,
}

impl Half {
    /// Creates the file next to its final name.
    pub(super) fn beside(path: &Path) -> io::Result<(Half, File)> {
        let whole = named(path);
        let mut name = std::ffi::OsString::from(".");
        name.push(whole.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        let path = whole.with_file_name(name);
        let file = File::create(&path)?;
        Ok((Half { path, whole }, file))
    }

    /// Gives the complete file its final name.
    pub(super) fn name(self) -> io::Result<()> {
        fs::rename(&self.path, &self.whole)
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "an incomplete file was left behind");
        }
    }
}
