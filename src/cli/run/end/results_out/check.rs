//! Check before the start that results can be written to their target.

use std::borrow::Cow;
use std::path::Path;

use super::sink::partial;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::run::args::{Output, RunArgs};
use crate::run::end::out_file;

/// Beginnings of result files: NDJSON, CSV.
const ROW_BEGINNINGS: [&[u8]; 2] = [b"{\"index\":", b"index,key"];
/// Suggestion for a target that can't be used.
const FILE: &str = "name a separate file in an existing directory";
const OWN_FILE: &str = "name a separate file in an existing directory, or - for standard output";
const ALL_IN_ONE: &str = "omit --results-out, then run the original command again, which writes all results \
    into this file; or name another file";

type Because = Cow<'static, str>;

/// Refuses contradicting flags before anything starts.
///
/// # Errors
/// `Usage` if nothing can be written to the target.
pub(in crate::run) fn check(args: &RunArgs) -> Result<(), Fault> {
    let Some(path) = &args.results.out else {
        return Ok(());
    };
    let refused = match path.as_os_str() == "-" {
        true => of_stdout(args),
        false => of_file(args, path),
    };
    let Some((because, hint)) = refused else {
        return Ok(());
    };
    let what = format!("can't write results to {}", path.display());
    Err(Fault::new(Exit::Usage, what, because).hint(hint))
}

/// Returns the reason why results can't go to standard output.
fn of_stdout(args: &RunArgs) -> Option<(Because, &'static str)> {
    if args.output == Output::Json {
        return Some(("standard output has the JSON summary".into(), FILE));
    }
    let is_taken = args.failures_out.as_deref() == Some(Path::new("-"));
    is_taken.then(|| ("standard output has the failed items".into(), FILE))
}

/// Returns the reason why results can't go to a file.
fn of_file(args: &RunArgs, path: &Path) -> Option<(Because, &'static str)> {
    let half = partial(&out_file::named(path));
    let unfit = |path: &Path| out_file::unfit(path).map(|why| (why.into(), OWN_FILE));
    if let Some(refused) = unfit(path).or_else(|| unfit(&half)) {
        return Some(refused);
    }
    let failures = args.failures_out.as_deref().map(out_file::named);
    if failures.is_some_and(|failures| failures == out_file::named(path) || failures == half) {
        return Some(("the failed items go to that file".into(), OWN_FILE));
    }
    lost(args, path)
        .or_else(|| lost(args, &half))
        .or_else(|| out_file::unmakeable(path).map(|why| (why.into(), OWN_FILE)))
}

/// Returns the reason why an existing file must not be replaced, and an alternative.
fn lost(args: &RunArgs, path: &Path) -> Option<(Because, &'static str)> {
    let there = path.metadata().ok()?;
    if out_file::needed(args, path).is_some() {
        return Some(("the run needs that file".into(), OWN_FILE));
    }
    if args.only_failed && there.len() > 0 && Some(path) == args.results.out.as_deref() {
        let because = "the file exists, and this run has only the results of the retried items";
        return Some((because.into(), ALL_IN_ONE));
    }
    let because = "the file exists and is not a results file";
    out_file::is_foreign(path, &ROW_BEGINNINGS).then(|| (because.into(), OWN_FILE))
}
