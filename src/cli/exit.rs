//! Exit codes, a contract with scripts (`windrow help exit-codes`). Defined only here.

use std::process::ExitCode;

/// Exit status of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success; nothing failed or was refused.
    Ok = 0,
    /// Failure without a more specific code.
    Failed = 1,
    /// Invalid command line, reported by clap or by a command.
    Usage = 2,
    /// The object asked for, or one named in the request, doesn't exist.
    NotFound = 3,
    /// Conflict with the present state, with capacity, or with a locked state directory.
    Conflict = 4,
    /// Missing sign-in or missing permission.
    NotAllowed = 5,
    /// Unreachable server; safe to try again.
    Unreachable = 6,
    /// Rejected: unusable input, or a refusal by the business.
    Rejected = 7,
    /// The task finished, but some items failed.
    WithFailures = 8,
    /// The task was stopped or cancelled before it finished.
    Stopped = 9,
    /// The wait timed out; the task is still running.
    TimedOut = 10,
    /// The handler violates the contract.
    BadHandler = 11,
    /// Internal error: a bug in windrow.
    Bug = 70,
    /// Invalid configuration, or a database newer than the program.
    Config = 78,
    /// Interrupted by Ctrl-C; 128 plus the number of SIGINT.
    Interrupted = 130,
}

impl Exit {
    /// Every code with its meaning, in the order of the documentation.
    pub const ALL: [(Exit, &str); 15] = [
        (Exit::Ok, "ok"),
        (Exit::Failed, "any failure without a code of its own"),
        (Exit::Usage, "invalid command line"),
        (
            Exit::NotFound,
            "not found: the object, or one named in the request",
        ),
        (
            Exit::Conflict,
            "conflict: state, capacity, or a state directory in use by another process; run: already \
                finished with another handler, or --if-finished error",
        ),
        (Exit::NotAllowed, "not signed in, or not allowed"),
        (
            Exit::Unreachable,
            "the server can't be reached (safe to try again)",
        ),
        (
            Exit::Rejected,
            "rejected: invalid input, a handler that was never reached or understood, or a refusal by \
                the business",
        ),
        (
            Exit::WithFailures,
            "run, wait, watch: finished with failures; 0 once --only-failed or a redrive has recovered \
                all of them; redrive --wait: failures of the redrive itself",
        ),
        (
            Exit::Stopped,
            "run, wait, watch: stopped or cancelled before the end; run: also drained after Ctrl-C, \
                SIGTERM or SIGHUP: the same command resumes",
        ),
        (Exit::TimedOut, "wait: timed out; the task continues"),
        (Exit::BadHandler, "try: the handler violates the contract"),
        (Exit::Bug, "a bug in windrow; please report it"),
        (
            Exit::Config,
            "invalid configuration (every error is listed), or a database of a newer windrow",
        ),
        (
            Exit::Interrupted,
            "Ctrl-C before the start; wait, watch: the task continues; run: second Ctrl-C, calls in \
                flight were aborted",
        ),
    ];
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_that_scripts_rely_on() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|(exit, _)| *exit as u8).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 70, 78, 130]);
    }
}
