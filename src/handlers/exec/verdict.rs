//! Meaning of a process's end for its item: the table of `docs/handlers.md`.

use std::borrow::Cow;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::io::Errno;
use serde_json::value::RawValue;

use super::pipes::Stdout;
use crate::command::answer::Judged;
use crate::command::program::Program;
use crate::command::stderr::Tail;
use crate::command::{COMMAND_NOT_STARTED, TIMEOUT};
use crate::wire::{DEPTH_MAX, is_deeper_than, output_of, unmarked};
use windrow_core::items::output::Output;
use windrow_core::items::verdict::{Failure, Outcome, RetryAdvice};
use windrow_engine::ports::handling::handler::ItemVerdict;

/// Code of an item whose values are too long for any program's arguments and environment (`E2BIG`).
pub const ARGUMENTS_TOO_LONG: &str = "ARGUMENTS_TOO_LONG";
/// Code of a process for which this machine has no room now: too many processes or open files, or no memory.
pub const NOT_STARTED_NOW: &str = "NOT_STARTED_NOW";

/// `EX_DATAERR` of sysexits(3): the item is wrong, and stays so.
const EXIT_DATA: i32 = 65;
/// `EX_TEMPFAIL` of sysexits(3): something the program needs is not available now.
const EXIT_TEMPORARY: i32 = 75;
/// Exit codes of shells for a program that they can't execute or can't find.
const EXIT_NOT_EXECUTABLE: i32 = 126;
const EXIT_NOT_FOUND: i32 = 127;
/// Space for stderr in a failure's message, in bytes; the output has more.
const STDERR_BYTES_MAX: usize = 800;

/// Interprets the end of a process; `unavailable` are exit codes for something needed that is not available now.
pub(super) fn judge(
    status: ExitStatus,
    stdout: &Stdout,
    tail: &Tail,
    program: &Program,
    unavailable: &[u8],
) -> Judged {
    match status.code() {
        Some(0) => Judged::Said(success(stdout)),
        Some(code) if code == EXIT_TEMPORARY || unavailable.iter().any(|one| i32::from(*one) == code) => {
            Judged::Unavailable(exited(code, " (reported as temporary)", tail))
        }
        Some(EXIT_DATA) => Judged::Said(ItemVerdict::Failed {
            failure: exited(EXIT_DATA, "", tail),
            advice: RetryAdvice::Fail,
        }),
        Some(EXIT_NOT_EXECUTABLE) => Judged::Rejected(exited(
            EXIT_NOT_EXECUTABLE,
            " (found, but not executable; try chmod +x)",
            tail,
        )),
        Some(EXIT_NOT_FOUND) => {
            let hint = format!(" (command not found in PATH={})", program.search_path());
            Judged::Rejected(exited(EXIT_NOT_FOUND, &hint, tail))
        }
        Some(code) => Judged::Exited(exited(code, "", tail)),
        None => Judged::Lost(killed(status.signal().unwrap_or_default(), tail)),
    }
}

fn exited(code: i32, hint: &str, tail: &Tail) -> Failure {
    let message = format!(
        "exited with code {code}{hint}; {}",
        tail.describe(STDERR_BYTES_MAX)
    );
    with_lines(format!("EXIT_{code}"), &message, tail)
}

fn killed(signal: i32, tail: &Tail) -> Failure {
    let name = match signal {
        6 => " (SIGABRT)",
        9 => " (SIGKILL; out of memory?)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    };
    let message = format!(
        "was killed by signal {signal}{name}; {}",
        tail.describe(STDERR_BYTES_MAX)
    );
    with_lines(format!("SIGNAL_{signal}"), &message, tail)
}

fn with_lines(code: impl Into<Cow<'static, str>>, message: &str, tail: &Tail) -> Failure {
    let mut failure = Failure::new(code, message);
    failure.output = tail.to_json();
    failure
}

/// Returns the failure of a process that did not end in time, with its last words if they arrived.
pub(super) fn timeout(timeout: Duration, tail: Option<&Tail>) -> Failure {
    let span = humantime::format_duration(timeout);
    let Some(tail) = tail else {
        return Failure::new(TIMEOUT, format!("did not end within {span} and was killed"));
    };
    let message = format!(
        "did not end within {span} and was killed; {}",
        tail.describe(STDERR_BYTES_MAX)
    );
    with_lines(TIMEOUT, &message, tail)
}

/// Returns the failure of a process that ended in an unknown way.
pub(super) fn unknown(why: &io::Error) -> Failure {
    Failure::new("EXIT_UNKNOWN", format!("ended with an unknown status ({why})"))
}

/// Returns the outcome for a machine without room for another process, which is no item's fault.
pub(super) fn no_room(why: &io::Error) -> Judged {
    let message = format!("can't start another process now: {why}; try a lower concurrency");
    Judged::Unreached(Failure::new(NOT_STARTED_NOW, message))
}

/// Returns the outcome of a process that could not be started.
pub(super) fn not_started(why: &io::Error, program: &Program) -> Judged {
    let hint = match why.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::TOOBIG) => {
            let message = format!(
                "{} can't take this item as arguments: {why}; read the row from stdin instead",
                program.describe()
            );
            return Judged::Said(ItemVerdict::Failed {
                failure: Failure::new(ARGUMENTS_TOO_LONG, message),
                advice: RetryAdvice::Fail,
            });
        }
        Some(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => return no_room(why),
        Some(Errno::NOEXEC) => "; does the script start with a line such as #!/bin/sh?",
        Some(Errno::NOENT) => "; was it removed, or is the interpreter in its first line missing?",
        Some(Errno::ACCESS) => "; try chmod +x",
        _ => "",
    };
    let message = format!("{} can't be started: {why}{hint}", program.describe());
    Judged::Rejected(Failure::new(COMMAND_NOT_STARTED, message))
}

/// Returns a success with the printed output: JSON if stdout is one JSON value, otherwise its text without the last
/// newline, or its bytes.
fn success(stdout: &Stdout) -> ItemVerdict {
    if stdout.bytes == 0 {
        return ItemVerdict::Settled(Outcome::Succeeded);
    }
    if !stdout.is_whole() {
        return ItemVerdict::SucceededWith(Output::TooLarge(stdout.bytes));
    }
    let printed = stdout.kept.as_slice();
    let json = serde_json::from_slice::<&RawValue>(unmarked(printed));
    let output = match json {
        Ok(json) if !is_deeper_than(json.get(), DEPTH_MAX) => Output::of_json(json.get()),
        _ => {
            let line = printed.strip_suffix(b"\n").unwrap_or(printed);
            output_of(line.strip_suffix(b"\r").unwrap_or(line))
        }
    };
    ItemVerdict::SucceededWith(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(printed: &[u8]) -> Option<String> {
        let stdout = Stdout {
            kept: printed.to_vec(),
            bytes: printed.len(),
        };
        match success(&stdout) {
            ItemVerdict::SucceededWith(Output::Json(json)) => Some(json.into()),
            _ => None,
        }
    }

    #[test]
    fn what_is_printed_is_json_or_text() {
        assert_eq!(output(b""), None);
        assert_eq!(output(b"{\"a\": 1}\n").as_deref(), Some(r#"{"a":1}"#));
        assert_eq!(output(b" 42 \n").as_deref(), Some("42"));
        assert_eq!(output(b"007\n").as_deref(), Some(r#""007""#));
        assert_eq!(output(b"1\n2\n").as_deref(), Some(r#""1\n2""#));
        assert_eq!(output(b"two\n\n").as_deref(), Some(r#""two\n""#));
        assert_eq!(output(b"\n").as_deref(), Some(r#""""#));
        assert_eq!(output(b"\xff\n").as_deref(), Some(r#"{"base64":"/w=="}"#));
        assert_eq!(
            output(b"\xef\xbb\xbf{\"a\":1}\r\n").as_deref(),
            Some(r#"{"a":1}"#)
        );
    }

    #[test]
    fn more_than_is_kept_is_measured() {
        let stdout = Stdout {
            kept: vec![b'x'; 10],
            bytes: 300_000,
        };
        assert_eq!(
            success(&stdout),
            ItemVerdict::SucceededWith(Output::TooLarge(300_000))
        );
    }
}
