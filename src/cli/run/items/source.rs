//! Items named by a command line: checked before anything is written, then opened with a progress bar.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, interval_at};
use xxhash_rust::xxh3::xxh3_64;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::flags::Items;
use crate::link::contexts::like;
use crate::output::screen::Screen;
use crate::signals::Signals;
use windrow_core::explain::counted;
use windrow_core::ids::{ItemCount, WallMs};
use windrow_core::text::steers;
use windrow_engine::ports::sources::store::SourceStore;
use windrow_node::sources::{
    CsvFormat, Expansion, Format, IndexWatch, Input, OpenSourceError, OpenedSource, Opening, SourceSpec,
    open, read_once,
};

/// Maximum length of the part of a file's name in a job's name. Unit: characters.
const SHOWN_CHARS_MAX: usize = 40;

/// Time after which the user is told that a pipe is read to its end first, and the interval of further messages.
const PIPE_TOLD: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));

/// Returns the source that the flags describe. `total` is used if no file is given.
///
/// # Errors
/// `Usage` if CSV options are given without a CSV.
pub(crate) fn spec(
    items: &Items,
    (glob, strict): (Option<&str>, bool),
    total: u64,
) -> Result<SourceSpec, Fault> {
    // Not clap's `requires`, which is waived because --total excludes --csv.
    if let Some(flag) = items.csv_flags().next().filter(|_| items.csv.is_none()) {
        let because = format!("{flag} applies to CSV");
        return Err(Fault::new(Exit::Usage, "no CSV", because).hint("--csv FILE"));
    }
    if let Some(pattern) = glob {
        return Ok(SourceSpec::File {
            input: Input::Glob {
                pattern: pattern.to_owned(),
                strict,
            },
            format: Format::Ndjson,
        });
    }
    let (path, format) = match (&items.csv, &items.ndjson, &items.lines) {
        (Some(path), ..) => (path, Format::Csv(csv_format(items))),
        (None, Some(path), _) => (path, Format::Ndjson),
        (None, None, Some(path)) if items.null => (path, Format::Nul),
        (None, None, Some(path)) => (path, Format::Lines),
        (None, None, None) => {
            return Ok(SourceSpec::Range {
                total: ItemCount(total),
            });
        }
    };
    let input = if path == "-" {
        Input::Stdin
    } else {
        Input::Path(path.clone())
    };
    Ok(SourceSpec::File { input, format })
}

fn csv_format(items: &Items) -> CsvFormat {
    let usual = CsvFormat::default();
    CsvFormat {
        delimiter: items.delimiter.unwrap_or(usual.delimiter),
        header: !items.no_header,
        quote: usual.quote.filter(|_| !items.no_quote),
        lenient: items.lenient,
    }
}

/// Checks that the source exists, so that a mistyped path leaves nothing behind.
///
/// # Errors
/// `Rejected` if it can't be read.
pub(crate) fn look(spec: &SourceSpec) -> Result<(), Fault> {
    let SourceSpec::File {
        input: Input::Path(path),
        ..
    } = spec
    else {
        return Ok(());
    };
    let (path_text, path) = (path, PathBuf::from(path));
    let seen = path.metadata().and_then(|seen| {
        // Opening a pipe would wait for its writer and consume data.
        if read_once(&path) {
            Ok(true)
        } else if seen.is_file() {
            std::fs::File::open(&path).map(|_| true)
        } else {
            Ok(false)
        }
    });
    let error = match seen {
        Ok(true) => return Ok(()),
        Ok(false) => OpenSourceError::NotAFile(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => OpenSourceError::NotFound(path),
        Err(error) => OpenSourceError::Unreadable { path, error },
    };
    let beside = if let OpenSourceError::NotFound(path) = &error {
        beside(path)
    } else {
        None
    };
    let is_url = path_text.starts_with("http://") || path_text.starts_with("https://");
    let fault = Fault::from(error);
    Err(match is_url {
        true => fault.hint(format!(
            "pipe it: curl -fsS {path_text} | windrow run --csv - … (or --ndjson -, --lines -)"
        )),
        false => fault.meant(beside.as_deref()),
    })
}

/// Returns the file in the same directory whose name is most similar to that of a missing one.
pub(crate) fn beside(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let place = path.parent().filter(|place| !place.as_os_str().is_empty());
    let listed = std::fs::read_dir(place.unwrap_or_else(|| Path::new("."))).ok()?;
    let files = listed.flatten().filter(|entry| entry.path().is_file());
    let names: Vec<String> = files
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let meant = like(name, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
    Some(path.with_file_name(meant).display().to_string())
}

/// Returns the source's identity as far as it is known before reading; `None` for a pipe, which is identified by its
/// content.
pub(crate) fn early_name(spec: &SourceSpec) -> Option<String> {
    match spec {
        spec if is_read_once(spec) => None,
        SourceSpec::File {
            input: Input::Path(path),
            format,
        } => Some(file_name(Path::new(path), format)),
        SourceSpec::File {
            input: Input::Glob { pattern, .. },
            ..
        } => Some(glob_name(pattern)),
        other => Some(opened_name(other)),
    }
}

/// True for standard input and for paths that give their bytes only once.
pub(crate) fn is_read_once(spec: &SourceSpec) -> bool {
    match spec {
        SourceSpec::File {
            input: Input::Stdin, ..
        } => true,
        SourceSpec::File {
            input: Input::Path(path),
            ..
        } => read_once(Path::new(path)),
        _ => false,
    }
}

/// Returns the job's name for an opened source: the same source always gives the same name.
pub(crate) fn opened_name(spec: &SourceSpec) -> String {
    match spec {
        SourceSpec::Range { total } => format!("total-{}", total.0),
        SourceSpec::Inline { .. } | SourceSpec::Redrive(_) | SourceSpec::Appended => {
            format!("{}-{:016x}", spec.kind(), xxh3_64(spec.to_text().as_bytes()))
        }
        SourceSpec::File {
            input: Input::Spooled(name),
            ..
        } => name.clone(),
        SourceSpec::File {
            input: Input::Glob { pattern, .. },
            ..
        } => glob_name(pattern),
        SourceSpec::File {
            input: Input::Upload(id),
            format,
        } => format!("{}-{id}", format.kind()),
        SourceSpec::File {
            input: Input::Path(path),
            format,
        } => file_name(Path::new(path), format),
        SourceSpec::File {
            input: Input::Stdin,
            format,
        } => format!("stdin.{}", format.kind()),
    }
}

/// Derives a name from the pattern and its directory, not from the files, which may come and go.
fn glob_name(pattern: &str) -> String {
    let whole = std::path::absolute(pattern).unwrap_or_else(|_| pattern.into());
    let hash = xxh3_64(whole.as_os_str().as_encoded_bytes());
    let shown: String = pattern
        .chars()
        .filter(|c| !steers(*c))
        .take(SHOWN_CHARS_MAX)
        .collect();
    format!("glob-{shown}-{hash:016x}")
}

/// Derives a name from the canonical path. The file's own name is included only for readability.
fn file_name(path: &Path, format: &Format) -> String {
    let canonical = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let last = canonical
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let shown: String = last
        .chars()
        .filter(|c| !steers(*c))
        .take(SHOWN_CHARS_MAX)
        .collect();
    let hash = xxh3_64(canonical.as_os_str().as_encoded_bytes());
    format!("{}-{shown}-{hash:016x}", format.kind())
}

/// Result of opening a source that can be used.
pub(crate) enum Opened {
    /// Source with at least one item.
    Items(Box<OpenedSource>),
    /// Source without items, with the reason.
    Nothing(OpenSourceError),
}

/// Opens the source and shows the progress of indexing.
///
/// # Errors
/// `Rejected` if its rows can't be items, `Interrupted` on Ctrl-C; in both cases nothing is stored.
pub(crate) async fn open_shown(
    spec: &SourceSpec,
    store: &dyn SourceStore,
    spool: &Path,
    now: WallMs,
    screen: &Screen,
    signals: &mut Signals,
) -> Result<Opened, Fault> {
    let bar = screen.indexing();
    let (shown, rows) = (bar.clone(), Arc::new(AtomicU64::new(0)));
    let read = rows.clone();
    let watch = IndexWatch {
        progress: Arc::new(move |progress| {
            read.store(progress.rows, Ordering::Relaxed);
            shown.show(progress);
        }),
        ..Default::default()
    };
    let cancel = watch.cancel.clone();
    let opening = Opening {
        store,
        spool,
        watch,
        reuse: true,
        expansion: Expansion::default(),
        now,
    };
    tracing::info!(source = %spec.to_text(), "counting items");
    let outcome = tokio::select! {
        opened = open(spec, &opening) => match opened {
            Ok(opened) => Ok(Opened::Items(Box::new(opened))),
            Err(error) if error.is_nothing() => Ok(Opened::Nothing(error)),
            Err(error) => Err(error.into()),
        },
        _ = signals.stop() => {
            cancel.store(true, Ordering::Relaxed);
            Err(interrupted())
        }
        never = tell_of_pipe(spec, &rows, screen) => match never {},
    };
    bar.clear();
    outcome
}

/// Reports repeatedly how much of a pipe was read, since its writer may be waiting for the first item. Never returns.
async fn tell_of_pipe(spec: &SourceSpec, rows: &AtomicU64, screen: &Screen) -> Infallible {
    let name = match spec {
        SourceSpec::File {
            input: Input::Path(path),
            ..
        } if is_read_once(spec) => path,
        spec if is_read_once(spec) => "standard input",
        _ => return std::future::pending().await,
    };
    let mut looks = interval_at(Instant::now() + PIPE_TOLD.0, PIPE_TOLD.1);
    loop {
        looks.tick().await;
        let so_far = match rows.load(Ordering::Relaxed) {
            // Rows are counted block by block.
            0 => String::new(),
            rows => format!(": {} so far", counted(rows, "row")),
        };
        screen.say(&format!("reading {name}{so_far}; processing starts at its end"));
    }
}

fn interrupted() -> Fault {
    Fault::new(
        Exit::Interrupted,
        "interrupted before the start",
        "the items were still being counted",
    )
    .hint("run it again; nothing was stored")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_file_has_the_same_name_however_it_is_reached() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("users.csv");
        std::fs::write(&file, "a\n1\n").expect("written");
        let format = Format::Csv(CsvFormat::default());
        let roundabout = place.path().join(".").join("users.csv");
        assert_eq!(file_name(&file, &format), file_name(&roundabout, &format));
        assert_ne!(file_name(&file, &format), file_name(&file, &Format::Ndjson));
    }

    #[test]
    fn a_directory_and_nothing_are_refused_before_anything_is_made() {
        let place = tempfile::tempdir().expect("a directory");
        for path in [place.path().to_owned(), place.path().join("none.csv")] {
            let input = Input::Path(path.display().to_string());
            let fault = look(&SourceSpec::File {
                input,
                format: Format::Ndjson,
            })
            .expect_err("no file");
            assert_eq!(fault.exit, Exit::Rejected);
        }
    }
}
