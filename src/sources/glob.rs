//! Files matching a pattern, as items:
//! `{"path":"in/a.png","name":"a.png","stem":"a","ext":"png","dir":"in","bytes":3}`.
//!
//! The list is sorted by the bytes of its paths and built in constant memory: longer lists are sorted in parts, which
//! are kept in unnamed files and merged while the list is read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::glob_walk::{Hit, Pattern, Seen, Skipped};
use super::open_error::OpenSourceError;

/// Size of a part that is sorted in memory, in bytes of paths.
const SORTED_BYTES: usize = 16 * 1024 * 1024;
/// Approximate memory per path in addition to its text, in bytes.
const PATH_COST: usize = 48;

/// Row written for a file.
#[derive(Serialize)]
struct Row<'a> {
    path: &'a str,
    name: &'a str,
    stem: &'a str,
    ext: &'a str,
    dir: &'a str,
    bytes: u64,
}

/// Sorted list, read once as one row per line.
#[derive(Debug)]
pub(super) struct Listing {
    parts: Vec<Part>,
    /// Next file of each part.
    heads: BinaryHeap<Reverse<(Hit, usize)>>,
    line: io::Cursor<Vec<u8>>,
    skipped: Option<Skipped>,
}

/// A sorted part of the list.
#[derive(Debug)]
enum Part {
    Memory(std::vec::IntoIter<Hit>),
    File(BufReader<File>),
}

impl Listing {
    /// Finds and sorts the files. Parts are kept in `dir`; with `strict`, nothing is skipped.
    ///
    /// # Errors
    /// `BadPattern`, `NoMatch`, `Unreadable` if the disk fails, `Unlisted`, `Spool`.
    pub(super) fn of(pattern: &str, dir: &Path, strict: bool) -> Result<Listing, OpenSourceError> {
        let listing = Listing::within(pattern, dir, SORTED_BYTES)?;
        match listing.skipped {
            Some(skipped) if strict => Err(OpenSourceError::Unlisted(skipped)),
            _ => Ok(listing),
        }
    }

    /// Returns the skipped files, or `None` if all were listed.
    pub(super) fn skipped(&self) -> Option<Skipped> {
        self.skipped.clone()
    }

    fn within(pattern: &str, dir: &Path, sorted_bytes: usize) -> Result<Listing, OpenSourceError> {
        let bad = |why| OpenSourceError::BadPattern {
            pattern: pattern.to_owned(),
            why,
        };
        let spool = |error| OpenSourceError::Spool {
            name: pattern.to_owned(),
            path: dir.to_owned(),
            error,
        };
        let parsed = Pattern::parse(pattern).map_err(bad)?;
        let (mut parts, mut hits, mut size) = (Vec::new(), Vec::new(), 0);
        let mut skipped: Option<Skipped> = None;
        for seen in parsed.files() {
            let hit = match seen? {
                Seen::File(hit) => hit,
                Seen::Skipped(first, why) => {
                    skipped = Some(one_more(skipped, first, why));
                    continue;
                }
            };
            size += hit.path.len() + PATH_COST;
            hits.push(hit);
            if size > sorted_bytes {
                hits.sort_unstable();
                parts.push(Part::File(
                    write_part(dir, std::mem::take(&mut hits)).map_err(spool)?,
                ));
                size = 0;
            }
        }
        if hits.is_empty() && parts.is_empty() {
            return Err(match skipped {
                Some(skipped) => OpenSourceError::Unlisted(skipped),
                None => OpenSourceError::NoMatch(pattern.to_owned()),
            });
        }
        hits.sort_unstable();
        parts.push(Part::Memory(hits.into_iter()));
        let mut listing = Listing {
            parts,
            heads: BinaryHeap::new(),
            line: io::Cursor::default(),
            skipped,
        };
        for part in 0..listing.parts.len() {
            listing.pull(part).map_err(spool)?;
        }
        Ok(listing)
    }

    /// Advances a part to its next file.
    fn pull(&mut self, part: usize) -> io::Result<()> {
        let next = match &mut self.parts[part] {
            Part::Memory(hits) => hits.next(),
            Part::File(file) => read_hit(file)?,
        };
        if let Some(hit) = next {
            self.heads.push(Reverse((hit, part)));
        }
        Ok(())
    }
}

impl Read for Listing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.line.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        let Some(Reverse((hit, part))) = self.heads.pop() else {
            return Ok(0);
        };
        self.pull(part)?;
        self.line = io::Cursor::new(line(&hit));
        self.line.read(buffer)
    }
}

/// Counts one more file that can't be listed, and keeps the first as the example.
fn one_more(before: Option<Skipped>, first: PathBuf, why: String) -> Skipped {
    let count = before.as_ref().map_or(0, |skipped| skipped.count) + 1;
    Skipped {
        count,
        ..before.unwrap_or(Skipped { count, first, why })
    }
}

/// Writes a sorted part. NUL ends each path, being the only character that a path can't contain.
fn write_part(dir: &Path, hits: Vec<Hit>) -> io::Result<BufReader<File>> {
    let mut out = BufWriter::new(tempfile::tempfile_in(dir)?);
    for hit in hits {
        out.write_all(hit.path.as_bytes())?;
        out.write_all(&[0])?;
        out.write_all(&hit.bytes.to_le_bytes())?;
    }
    let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(BufReader::new(file))
}

fn read_hit(file: &mut BufReader<File>) -> io::Result<Option<Hit>> {
    let (mut path, mut bytes) = (Vec::new(), [0; 8]);
    if file.read_until(0, &mut path)? == 0 {
        return Ok(None);
    }
    path.pop();
    file.read_exact(&mut bytes)?;
    let path = String::from_utf8(path).map_err(io::Error::other)?;
    Ok(Some(Hit {
        path,
        bytes: u64::from_le_bytes(bytes),
    }))
}

fn line(hit: &Hit) -> Vec<u8> {
    let (dir, name) = match hit.path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((dir, name)) => (dir, name),
        None => (".", hit.path.as_str()),
    };
    let path = Path::new(name);
    let text = |part: Option<&std::ffi::OsStr>| part.and_then(|part| part.to_str().map(str::to_owned));
    let (stem, ext) = (
        text(path.file_stem()).unwrap_or_default(),
        text(path.extension()).unwrap_or_default(),
    );
    let row = Row {
        path: &hit.path,
        name,
        stem: &stem,
        ext: &ext,
        dir,
        bytes: hit.bytes,
    };
    let mut line = serde_json::to_vec(&row).expect("texts and numbers are JSON");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    fn place(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory can be made");
        for file in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            std::fs::write(path, "xyz").expect("written");
        }
        dir
    }

    /// The paths that match below a place, without the place.
    fn listed(dir: &Path, pattern: &str, sorted_bytes: usize) -> Vec<String> {
        let place = dir.display().to_string();
        let mut text = String::new();
        match Listing::within(&format!("{place}/{pattern}"), dir, sorted_bytes) {
            Ok(mut listing) => listing.read_to_string(&mut text).expect("it can be read"),
            Err(OpenSourceError::NoMatch(_)) => 0,
            Err(error) => panic!("{error}"),
        };
        let path = |line: &str| {
            let row: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
            let path = row["path"].as_str().expect("it is text").to_owned();
            path[place.len() + 1..].to_owned()
        };
        text.lines().map(path).collect()
    }

    #[test]
    fn patterns_match_as_in_shells() {
        let dir = place(&[
            "in/a.png",
            "in/b.jpg",
            "in/.hidden.png",
            "in/deep/c.png",
            "in/.git/d.png",
            "e.png",
        ]);
        let found = |pattern| listed(dir.path(), pattern, SORTED_BYTES);
        assert_eq!(found("in/*.png"), ["in/a.png"]);
        assert_eq!(found("in/*.{png,jpg}"), ["in/a.png", "in/b.jpg"]);
        assert_eq!(found("in/**/*.png"), ["in/a.png", "in/deep/c.png"]);
        assert_eq!(found("**/*.png"), ["e.png", "in/a.png", "in/deep/c.png"]);
        assert_eq!(found("./in//?.png"), ["in/a.png"]);
        assert_eq!(found("in/.*.png"), ["in/.hidden.png"]);
        assert_eq!(found("in/a.png"), ["in/a.png"], "a file without a wildcard");
        assert_eq!(found("in/[!a].jpg"), ["in/b.jpg"]);
        assert_eq!(found("in/*"), ["in/a.png", "in/b.jpg"], "no directories");
        assert_eq!(found("{in/deep,in}/*.png"), ["in/a.png", "in/deep/c.png"]);
        assert_eq!(found("out/*"), [""; 0]);
        assert!(matches!(
            Listing::of("in/{a", dir.path(), false),
            Err(OpenSourceError::BadPattern { .. })
        ));
    }

    #[test]
    fn links_to_files_are_files_and_those_that_lead_nowhere_or_back_are_none() {
        let dir = place(&["in/a.png"]);
        let link =
            |to: &str, name: &str| std::os::unix::fs::symlink(to, dir.path().join(name)).expect("made");
        link("a.png", "in/b.png");
        link("gone.png", "in/c.png");
        link("..", "in/up");
        assert_eq!(
            listed(dir.path(), "in/*.png", SORTED_BYTES),
            ["in/a.png", "in/b.png"]
        );
        assert_eq!(
            listed(dir.path(), "in/**/*.png", SORTED_BYTES),
            ["in/a.png", "in/b.png"]
        );
    }

    #[test]
    fn what_can_not_be_listed_is_skipped_and_counted_or_refused() {
        use std::os::unix::ffi::OsStrExt;
        let dir = place(&["in/a.png", "in/file"]);
        let link =
            |to: &str, name: &str| std::os::unix::fs::symlink(to, dir.path().join(name)).expect("made");
        link("self.png", "in/self.png");
        link("file/x", "in/through.png");
        link(&"n".repeat(300), "in/long.png");
        link("gone", "in/gone.png");
        link("gone", "in/other.txt");
        let odd = std::ffi::OsStr::from_bytes(b"in/\xe9.png");
        std::fs::write(dir.path().join(odd), "x").expect("written");
        let pattern = format!("{}/in/*.png", dir.path().display());
        assert_eq!(listed(dir.path(), "in/*.png", SORTED_BYTES), ["in/a.png"]);
        let listing = Listing::of(&pattern, dir.path(), false).expect("one is there");
        assert_eq!(
            listing.skipped().map(|skipped| skipped.count),
            Some(5),
            "not the text"
        );
        let refused = Listing::of(&pattern, dir.path(), true).expect_err("it is strict");
        assert!(matches!(refused, OpenSourceError::Unlisted(_)), "{refused}");
        std::fs::remove_file(dir.path().join("in/a.png")).expect("removed");
        let none = Listing::of(&pattern, dir.path(), false).expect_err("none is left");
        assert!(!none.is_nothing(), "{none}");
    }

    #[test]
    fn a_row_has_the_parts_of_its_path() {
        let row = |path: &str| {
            let line = line(&Hit {
                path: path.to_owned(),
                bytes: 3,
            });
            String::from_utf8(line).expect("it is text")
        };
        let text =
            r#"{"path":"in/a.tar.gz","name":"a.tar.gz","stem":"a.tar","ext":"gz","dir":"in","bytes":3}"#;
        assert_eq!(row("in/a.tar.gz"), format!("{text}\n"));
        let text = r#"{"path":"Makefile","name":"Makefile","stem":"Makefile","ext":"","dir":".","bytes":3}"#;
        assert_eq!(row("Makefile"), format!("{text}\n"));
        assert!(row("/x").contains(r#""name":"x","stem":"x","ext":"","dir":"/""#));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn what_is_sorted_in_parts_is_sorted_as_a_whole(
            names in btree_set("[a-c\n \"-]{1,6}", 1..40), sorted_bytes in 0usize..400,
        ) {
            let files: Vec<String> = names.iter().map(|name| format!("in/x{name}")).collect();
            let dir = place(&files.iter().map(String::as_str).collect::<Vec<_>>());
            let mut naive = files;
            naive.sort();
            prop_assert_eq!(listed(dir.path(), "in/*", sorted_bytes), naive);
        }
    }
}
