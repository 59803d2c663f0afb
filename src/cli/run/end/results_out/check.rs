//! Whether results can be written where they are wanted, looked at before anything begins.

use std::fs;
use std::path::{Path, PathBuf};

use super::sink::partial;
use crate::args::RunArgs;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::run::end::failures_out;

/// How files of results begin: NDJSON, CSV.
const ROW_BEGINNINGS: [&[u8]; 2] = [b"{\"index\":", b"index,key"];
/// What to try instead.
const FILE: &str = "name a file of its own in a directory that exists";
const OWN_FILE: &str = "name a file of its own in a directory that exists, or - for standard output";
const ALL_IN_ONE: &str = "go without --results-out, or name another file; afterwards the same command without --only-failed \
                          writes what all items came to into this one, those that were done again among them";

/// The flags that make no sense together are refused before anything begins.
///
/// # Errors
/// `Usage` when nothing can be written there.
pub(in crate::run) fn check(args: &RunArgs) -> Result<(), Fault> {
    let Some(path) = &args.results.out else {
        return Ok(());
    };
    let (because, hint) = match path.metadata() {
        _ if path.as_os_str() == "-" && args.output == crate::args::Output::Json => {
            ("standard output takes the JSON summary", FILE)
        }
        _ if path.as_os_str() == "-" && args.failures_out.as_deref() == Some(path) => {
            ("the failed items go to standard output", FILE)
        }
        Ok(there) if there.is_dir() => ("it is a directory", OWN_FILE),
        _ if path.as_os_str() == "-" => return Ok(()),
        _ if !folder(path).is_dir() => ("its directory does not exist", OWN_FILE),
        there => {
            let half = partial(path);
            let of_whole = there.ok().and_then(|there| lost(args, path, &there));
            let of_half = || half.metadata().ok().and_then(|there| lost(args, &half, &there));
            match of_whole.or_else(of_half) {
                Some(lost) => lost,
                None => return Ok(()),
            }
        }
    };
    let what = format!("results can't be written to {}", path.display());
    Err(Fault::new(Exit::Usage, what, because).hint(hint))
}

/// What would be lost if the file that is there were replaced, and what to try instead.
fn lost(args: &RunArgs, path: &Path, there: &fs::Metadata) -> Option<(&'static str, &'static str)> {
    if failures_out::is_needed(args, there) {
        return Some(("the run needs that file", OWN_FILE));
    }
    if !there.is_file() {
        return None;
    }
    if args.only_failed && there.len() > 0 && Some(path) == args.results.out.as_deref() {
        let because = "it is there already, and the items that are done again have results of their own";
        return Some((because, ALL_IN_ONE));
    }
    let because = "it is there already, and what it holds are no results";
    failures_out::is_foreign(path, &ROW_BEGINNINGS).then_some((because, OWN_FILE))
}

fn folder(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
