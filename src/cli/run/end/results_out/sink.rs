//! Target of result rows: standard output or an incomplete file, with the rows it already has.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::run::end::out_file;
use windrow_core::ids::ItemIndex;
use windrow_server::http::answer::result_rows::Rows;
use windrow_server::service::results::Keys;

/// Target of result rows.
pub(super) enum Sink {
    Stdout,
    /// Incomplete file, and its final name.
    File(File, PathBuf),
}

impl Sink {
    pub(super) fn put(&mut self, rows: &[u8]) -> io::Result<()> {
        match self {
            Sink::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(rows)?;
                out.flush()
            }
            Sink::File(file, _) => file.write_all(rows),
        }
    }

    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Sink::Stdout => Ok(()),
            Sink::File(file, path) => {
                file.sync_all()?;
                fs::rename(partial(&path), path)
            }
        }
    }
}

pub(super) fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

/// Opened target, with the rows it already has.
pub(super) struct Opened {
    pub(super) sink: Sink,
    /// Index after which writing continues.
    pub(super) after: Option<ItemIndex>,
    /// Number of rows that are already there.
    pub(super) rows: u64,
}

/// Opens the target. Existing rows stay if the same job may continue after them.
pub(super) fn open(path: &Path, (rows, goes_on): (&Rows, bool), after: Option<u64>) -> io::Result<Opened> {
    if path.as_os_str() == "-" {
        let mut sink = Sink::Stdout;
        if after.is_none() {
            sink.put(&rows.header())?;
        }
        return Ok(Opened {
            sink,
            after: after.map(ItemIndex),
            rows: 0,
        });
    }
    let path = out_file::named(path);
    let mut options = OpenOptions::new();
    let mut file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(partial(&path))?;
    // CSV cells may contain line breaks, so a row cut off by a crash can't be recognized: write everything again.
    let found = match goes_on {
        true => found(&file, &rows.keys)?,
        false => Found::default(),
    };
    file.set_len(found.bytes)?;
    file.seek(SeekFrom::Start(found.bytes))?;
    if found.last.is_none() {
        file.write_all(&rows.header())?;
    }
    Ok(Opened {
        sink: Sink::File(file, path),
        after: found.last.max(after.map(ItemIndex)),
        rows: found.rows,
    })
}

/// Length above which a line isn't one of our rows; also bounds the read of an endless line. Unit: bytes.
const LINE_MAX: u64 = 16 << 20;

/// Complete rows of the same job in a file; empty if it has any other line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    bytes: u64,
    rows: u64,
    last: Option<ItemIndex>,
}

fn found(file: &File, keys: &Keys) -> io::Result<Found> {
    let mut found = Found::default();
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let bytes = reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
        if bytes == 0 || line.last() != Some(&b'\n') {
            return Ok(found);
        }
        let Some(index) = index_of(&line, keys) else {
            return Ok(Found::default());
        };
        found = Found {
            bytes: found.bytes + bytes as u64,
            rows: found.rows + 1,
            last: Some(index),
        };
    }
}

/// Returns the index of a row, or `None` if it isn't of this job.
fn index_of(line: &[u8], keys: &Keys) -> Option<ItemIndex> {
    #[derive(serde::Deserialize)]
    struct Row<'a> {
        index: u64,
        key: &'a str,
    }
    let row: Row<'_> = serde_json::from_slice(line).ok()?;
    let index = ItemIndex(row.index);
    (row.key == keys.store.item_key(keys.task, index)).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::ids::{StoreId, TaskId};

    fn keys() -> Keys {
        Keys {
            store: StoreId("s1".to_owned()),
            task: TaskId(4),
        }
    }

    #[test]
    fn what_never_ends_is_no_file_of_rows() {
        let endless = File::open("/dev/zero").expect("Linux");
        assert_eq!(
            found(&endless, &keys()).expect("it can be read"),
            Found::default()
        );
    }

    fn found_in(text: &str) -> Found {
        let mut file = tempfile::tempfile().expect("a file can be made");
        file.write_all(text.as_bytes()).expect("it can be written");
        file.rewind().expect("it can be read");
        found(&file, &keys()).expect("it can be read")
    }

    #[test]
    fn a_partial_file_goes_on_behind_its_last_whole_row() {
        let one = "{\"index\":3,\"key\":\"s1-t4-3\",\"output\":{}}\n";
        let two = "{\"index\":7,\"key\":\"s1-t4-7\",\"output\":\"a\"}\n";
        let both = format!("{one}{two}");
        let at = |bytes: usize, rows, last| Found {
            bytes: bytes as u64,
            rows,
            last: Some(ItemIndex(last)),
        };
        assert_eq!(found_in(&both), at(both.len(), 2, 7));
        for cut in one.len()..both.len() {
            assert_eq!(found_in(&both[..cut]), at(one.len(), 1, 3), "cut at {cut}");
        }
        assert_eq!(found_in(&one[..9]), Found::default());
        assert_eq!(found_in(""), Found::default());
    }

    #[test]
    fn a_file_of_another_job_is_begun_anew() {
        let other = "{\"index\":3,\"key\":\"s1-t5-3\",\"output\":{}}\n";
        assert_eq!(found_in(other), Found::default());
        assert_eq!(found_in("something else\n"), Found::default());
    }
}
