//! A file pattern, and the walk over the matching files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use rustix::io::Errno;
use walkdir::{DirEntry, WalkDir};

use super::open_error::OpenSourceError;

/// Characters that make a path segment a pattern.
const WILD: [char; 5] = ['*', '?', '[', '{', '\\'];

/// Matching files that are not listed: dangling links, unreadable directories, names that aren't UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Number of skipped files and directories, at least one.
    pub count: u64,
    /// First one that was found.
    pub first: PathBuf,
    /// Reason why that one can't be listed.
    pub why: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warning: skipped {} ({})", self.first.display(), self.why)?;
        match self.count - 1 {
            0 => {}
            1 => write!(f, " and 1 other file")?,
            others => write!(f, " and {others} other files")?,
        }
        f.write_str("; use --strict to fail instead")
    }
}

/// Result of one step of the walk.
pub(super) enum Seen {
    File(Hit),
    Skipped(PathBuf, String),
}

/// A matching file with its size.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hit {
    pub(super) path: String,
    pub(super) bytes: u64,
}

/// Fixed directory where the walk starts, and the pattern to match.
pub(super) struct Pattern {
    root: PathBuf,
    depth_max: usize,
    takes_hidden: bool,
    matcher: GlobMatcher,
}

impl Pattern {
    /// Parses a pattern. `*` and `?` stay within a path segment, `**` crosses segments, `{png,jpg}` are alternatives,
    /// as in shells.
    pub(super) fn parse(text: &str) -> Result<Pattern, String> {
        let start = if text.starts_with('/') { "/" } else { "" };
        let parts: Vec<&str> = text
            .split('/')
            .filter(|part| !matches!(*part, "" | "."))
            .collect();
        let plain = parts.iter().take_while(|part| !part.contains(WILD)).count();
        let plain = plain.min(parts.len().saturating_sub(1));
        let (fixed, rest) = parts.split_at(plain);
        let crosses =
            |part: &&str| part.contains("**") || part.matches('{').count() != part.matches('}').count();
        let matcher = GlobBuilder::new(&format!("{start}{}", parts.join("/")))
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| error.kind().to_string())?;
        let root = PathBuf::from(format!("{start}{}", fixed.join("/")));
        Ok(Pattern {
            root: if root.as_os_str().is_empty() {
                PathBuf::from(".")
            } else {
                root
            },
            depth_max: if rest.iter().any(crosses) {
                usize::MAX
            } else {
                rest.len()
            },
            takes_hidden: rest.iter().any(|part| {
                [".", "{.", ",."]
                    .iter()
                    .any(|dot| part.starts_with(dot) || (dot.len() > 1 && part.contains(dot)))
            }),
            matcher: matcher.compile_matcher(),
        })
    }

    fn goes_into(&self, entry: &DirEntry) -> bool {
        entry.depth() == 0 || self.takes_hidden || !entry.file_name().as_encoded_bytes().starts_with(b".")
    }

    /// Walks the matching files, in no particular order, including those that can't be listed. Links that form a loop
    /// are ignored: everything they lead to is found without them.
    pub(super) fn files(&self) -> impl Iterator<Item = Result<Seen, OpenSourceError>> + '_ {
        let walk = WalkDir::new(&self.root)
            .follow_links(true)
            .max_depth(self.depth_max)
            .into_iter();
        walk.filter_entry(|entry| self.goes_into(entry))
            .filter_map(|entry| match entry {
                Ok(entry) => self.hit(&entry).transpose(),
                Err(error) if error.loop_ancestor().is_some() => None,
                Err(error) => self.unlisted(error).transpose(),
            })
    }

    fn hit(&self, entry: &DirEntry) -> Result<Option<Seen>, OpenSourceError> {
        let path = plain(entry.path());
        if !entry.file_type().is_file() || !self.matcher.is_match(path) {
            return Ok(None);
        }
        let Some(text) = path.to_str() else {
            return Ok(Some(Seen::Skipped(
                path.to_owned(),
                "its name is not UTF-8".to_owned(),
            )));
        };
        match entry.metadata() {
            Ok(metadata) => Ok(Some(Seen::File(Hit {
                path: text.to_owned(),
                bytes: metadata.len(),
            }))),
            Err(error) => self.unlisted(error),
        }
    }

    /// Handles an entry that can't be listed. It is skipped if it matches, or is a directory that may contain
    /// matches. Only a failing disk, or failing at the start directory, ends the walk.
    fn unlisted(&self, error: walkdir::Error) -> Result<Option<Seen>, OpenSourceError> {
        let path = plain(error.path().unwrap_or(&self.root)).to_owned();
        let (depth, error) = (error.depth(), io::Error::from(error));
        if depth == 0 && error.kind() == io::ErrorKind::NotFound {
            return Ok(None);
        }
        if depth == 0 || !leads_nowhere(&error) {
            return Err(OpenSourceError::Unreadable { path, error });
        }
        let is_closed = path.is_dir();
        let why = error.get_ref().map_or_else(
            || error.to_string(),
            |inner| match inner.source() {
                Some(cause) => cause.to_string(),
                None => inner.to_string(),
            },
        );
        Ok((is_closed || self.matcher.is_match(&path)).then_some(Seen::Skipped(path, why)))
    }
}

/// Returns the path as shown in items, without a leading `./`.
fn plain(path: &Path) -> &Path {
    path.strip_prefix("./").unwrap_or(path)
}

/// True for errors of a path that leads to no accessible file, as opposed to a failing disk.
fn leads_nowhere(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|inner| inner.source());
    let code = cause
        .and_then(|cause| cause.downcast_ref::<io::Error>())
        .unwrap_or(error);
    let code = code.raw_os_error().map(Errno::from_raw_os_error);
    [
        Errno::NOENT,
        Errno::LOOP,
        Errno::NOTDIR,
        Errno::NAMETOOLONG,
        Errno::ACCESS,
        Errno::PERM,
    ]
    .into_iter()
    .any(|known| code == Some(known))
}
