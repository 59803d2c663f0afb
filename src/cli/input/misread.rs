//! Clearer versions of clap errors whose own suggestions mislead: flags of other programs, a handler without the `--`
//! before it, and number errors, where the standard library names Rust types.
//!
//! Don't add more: give a likely synonym an alias, or leave it to clap.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};

use crate::args;

/// Flags of xargs, parallel, curl, k6 and others, with our equivalents. The first equivalent that the command has is
/// suggested.
const FOREIGN: [(&str, &str); 11] = [
    ("retries retry max-retries attempts tries", "max-attempts"),
    (
        "jobs j p parallel parallelism max-procs threads workers max-concurrency vus",
        "concurrency",
    ),
    ("rps qps rate-limit throttle", "rate"),
    ("timeout max-time", "call-timeout request-timeout"),
    ("max-errors max-failures", "error-budget"),
    ("input file", "csv"),
    ("jsonl", "ndjson"),
    ("text txt", "lines"),
    ("count items iterations n", "total"),
    ("format", "output"),
    ("port addr bind listen", "listen port"),
];

/// Argument that holds the handler's command.
const HANDLER: &str = "worker";
const HANDLER_TIP: &str =
    "put the handler's command last, after --: 'windrow run --csv users.csv -- python3 handler.py'";
const GLOB_TIP: &str = "the shell expanded the pattern; quote it: --glob '*.txt'";
const EACH_TIP: &str = "give the command as one quoted text, --each 'wc -c {path}', or as words at the \
    end: --each -- wc -c {path}";

/// Adds a suggestion to an error if the intended input can be guessed. `words` is the command line.
pub(crate) fn advised(error: Error, words: &[OsString]) -> Error {
    match error.kind() {
        ErrorKind::UnknownArgument => unknown(error, words),
        ErrorKind::MissingRequiredArgument => missing(error),
        ErrorKind::ValueValidation => number(error),
        _ => error,
    }
}

/// Handles a flag or word that the command doesn't accept.
fn unknown(mut error: Error, words: &[OsString]) -> Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let (root, word) = (args::command(), word.clone());
    let command = words.iter().skip(1).try_fold(&root, |command, word| {
        command.find_subcommand(word).ok_or(command)
    });
    let command = command.unwrap_or_else(|command| command);
    let tip = word.strip_prefix('-').and_then(|flag| foreign(flag, command));
    let tip = tip.or_else(|| misplaced(&word, command, words).map(str::to_owned));
    match tip {
        Some(tip) => {
            error.remove(ContextKind::SuggestedArg);
            tipped(error, tip)
        }
        None => without_as_a_value(error),
    }
}

/// Returns our equivalent of another program's flag.
fn foreign(flag: &str, command: &Command) -> Option<String> {
    let flag = flag
        .trim_start_matches('-')
        .split('=')
        .next()?
        .to_ascii_lowercase();
    let same = FOREIGN
        .iter()
        .filter(|(others, _)| others.split(' ').any(|other| other == flag));
    let mut same = same.flat_map(|(_, same)| same.split(' '));
    let is_known = |flag: &&str| {
        command
            .get_arguments()
            .filter_map(Arg::get_long)
            .any(|long| long == *flag)
    };
    same.find(is_known).map(|flag| format!("use '--{flag}'"))
}

/// Returns a tip for an unexpected word of a command that takes a handler.
fn misplaced(word: &str, command: &Command, words: &[OsString]) -> Option<&'static str> {
    command
        .get_arguments()
        .find(|argument| argument.get_id() == HANDLER)?;
    let at = words.iter().position(|given| given == word)?;
    let mut before = words[..at].iter().rev().filter_map(|given| given.to_str());
    let flag = before.find(|given| given.starts_with("--"));
    match flag.unwrap_or_default().split('=').next()? {
        "--each" => Some(EACH_TIP),
        _ if word.starts_with('-') => None,
        "--glob" => Some(GLOB_TIP),
        _ => Some(HANDLER_TIP),
    }
}

/// Handles a job without a handler: clap's usage doesn't show where the handler goes.
fn missing(error: Error) -> Error {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let lacks = |part: &str| missing.iter().any(|argument| argument.contains(part));
    match lacks("COMMAND") && !lacks("--cmd") && !lacks("--each") {
        true => tipped(error, HANDLER_TIP),
        false => error,
    }
}

/// Adds a tip to an error in clap's own format.
fn tipped(mut error: Error, tip: impl Into<String>) -> Error {
    let tip = StyledStr::from(tip.into());
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    error
}

/// Removes clap's advice to pass a flag after `--`: a handler's command begins there.
fn without_as_a_value(mut error: Error) -> Error {
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().contains("as a value"));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    error
}

/// Rewrites an integer error, since the standard library's text names Rust types.
fn number(error: Error) -> Error {
    let source = error.source();
    let Some(wrong) = source.and_then(|source| source.downcast_ref::<ParseIntError>()) else {
        return error;
    };
    let (Some(text), Some(argument)) = (
        error.get(ContextKind::InvalidValue),
        error.get(ContextKind::InvalidArg),
    ) else {
        return error;
    };
    let tip = match wrong.kind() {
        IntErrorKind::Zero => "must be at least 1",
        IntErrorKind::PosOverflow => "is too large",
        _ => "must be a whole number, such as 1000",
    };
    let mut told = Error::new(ErrorKind::ValueValidation).with_cmd(&args::command());
    told.insert(ContextKind::InvalidArg, argument.clone());
    told.insert(ContextKind::InvalidValue, text.clone());
    tipped(told, tip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = args::command()
            .try_get_matches_from(&words)
            .expect_err("it is refused");
        advised(error, &words).to_string()
    }

    #[test]
    fn flags_of_other_programs_lead_to_those_of_this_one() {
        for (line, flag) in [
            ("windrow run --retries 3 --total 3 -- true", "--max-attempts"),
            ("windrow run -j4 --total 3 -- true", "--concurrency"),
            ("windrow run --total 3 --timeout 5s -- true", "--call-timeout"),
            ("windrow run --input u.csv -- true", "--csv"),
            ("windrow task list --timeout 5s", "--request-timeout"),
            ("windrow serve --port 80", "--listen"),
        ] {
            let said = said(line);
            let tip = format!("tip: use '{flag}'");
            assert!(said.contains(&tip), "{line}: {said}");
            assert!(
                !said.contains("similar") && !said.contains("as a value"),
                "{line}: {said}"
            );
        }
        for line in [
            "windrow run --rate -5/s --total 3 -- true",
            "windrow task start --foo",
        ] {
            assert!(!said(line).contains("tip"), "nothing is made up: {line}");
        }
    }

    #[test]
    fn a_flag_that_is_named_is_there() {
        fn is_there(command: &Command, flag: &str) -> bool {
            command.get_arguments().any(|one| one.get_long() == Some(flag))
                || command.get_subcommands().any(|verb| is_there(verb, flag))
        }
        for flag in FOREIGN.iter().flat_map(|(_, same)| same.split(' ')) {
            assert!(is_there(&args::command(), flag), "{flag}");
        }
    }

    #[test]
    fn a_handler_is_told_its_place() {
        for (line, tip) in [
            (
                "windrow run --csv u.csv python3 handler.py",
                "handler's command last, after --",
            ),
            (
                "windrow run python3 --csv u.csv",
                "handler's command last, after --",
            ),
            ("windrow try --csv u.csv python3 handler.py", "after --"),
            ("windrow run --total 3", "handler's command last, after --"),
            ("windrow run --glob in/1.txt in/2.txt --each x", "quote it"),
            ("windrow run --total 3 --each wc -c {path}", "one quoted text"),
        ] {
            let said = said(line);
            assert!(said.contains("tip: ") && said.contains(tip), "{line}: {said}");
        }
        let said = said("windrow run --total 3 --allow-dashes -- true");
        assert!(
            said.contains("--resume <NAME>") && !said.contains("tip:"),
            "{said}"
        );
    }

    #[test]
    fn numbers_are_refused_in_words() {
        for (line, tip) in [
            ("windrow task create push --total 3 --batch 0", "at least 1"),
            ("windrow run --total 1k -- ./worker", "a whole number, such as"),
            ("windrow limit set vendor-x --concurrency 0", "at least 1"),
            (
                "windrow run --total 99999999999999999999999 -- ./worker",
                "too large",
            ),
        ] {
            let said = said(line);
            assert!(
                said.contains("invalid value") && said.contains(tip),
                "{line}: {said}"
            );
            assert!(
                !said.contains("zero for non-zero") && !said.contains("invalid digit"),
                "{line}: {said}"
            );
        }
    }
}
