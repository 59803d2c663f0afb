//! Whether results can be written where they are wanted, looked at before anything begins.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

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

type Because = Cow<'static, str>;

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
            ("standard output takes the JSON summary".into(), FILE)
        }
        _ if path.as_os_str() == "-" && args.failures_out.as_deref() == Some(path) => {
            ("the failed items go to standard output".into(), FILE)
        }
        Ok(there) if there.is_dir() => ("it is a directory".into(), OWN_FILE),
        _ if path.as_os_str() == "-" => return Ok(()),
        there => {
            let half = partial(path);
            let of_whole = there.ok().and_then(|there| lost(args, path, &there));
            let of_half = || half.metadata().ok().and_then(|there| lost(args, &half, &there));
            let unmakeable = || failures_out::unmakeable(path).map(|why| (why.into(), OWN_FILE));
            match of_whole.or_else(of_half).or_else(unmakeable) {
                Some(because) => because,
                None => return Ok(()),
            }
        }
    };
    let what = format!("results can't be written to {}", path.display());
    Err(Fault::new(Exit::Usage, what, because).hint(hint))
}

/// What would be lost if the file that is there were replaced, and what to try instead.
fn lost(args: &RunArgs, path: &Path, there: &fs::Metadata) -> Option<(Because, &'static str)> {
    if failures_out::is_needed(args, there) {
        return Some(("the run needs that file".into(), OWN_FILE));
    }
    if !there.is_file() {
        return None;
    }
    if args.only_failed && there.len() > 0 && Some(path) == args.results.out.as_deref() {
        let because = "it is there already, and the items that are done again have results of their own";
        return Some((because.into(), ALL_IN_ONE));
    }
    let because = "it is there already, and what it holds are no results";
    failures_out::is_foreign(path, &ROW_BEGINNINGS).then(|| (because.into(), OWN_FILE))
}
