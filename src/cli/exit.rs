//! The exit codes, once: a contract with scripts (`windrow help exit-codes`).

use std::process::ExitCode;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All is well.
    Ok = 0,
    /// Failed in a way that has no code of its own.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// There is no such thing, asked for or named.
    NotFound = 3,
    /// It clashes with what is there: state, capacity, a locked state directory.
    Conflict = 4,
    /// Not signed in, or not allowed.
    NotAllowed = 5,
    /// The server can't be reached; safe to try again.
    Unreachable = 6,
    /// Refused: unusable input, or the business said no.
    Rejected = 7,
    /// The task finished with failures.
    WithFailures = 8,
    /// The task stopped or was cancelled before it finished.
    Stopped = 9,
    /// Waited long enough; the task still goes on.
    TimedOut = 10,
    /// The handler breaks the contract.
    BadHandler = 11,
    /// A mistake of windrow.
    Bug = 70,
    /// The configuration is invalid, or the database is newer than the program.
    Config = 78,
    /// Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// Every code with its meaning, in the order of the documentation.
    pub const ALL: [(Exit, &str); 15] = [
        (Exit::Ok, "ok"),
        (Exit::Failed, "failed in a way that has no code of its own"),
        (Exit::Usage, "the command line is wrong"),
        (
            Exit::NotFound,
            "there is no such thing: what was asked for, or what was named for it",
        ),
        (
            Exit::Conflict,
            "conflict: state, capacity, or a state directory that another process holds; run: finished already, with another handler or --if-finished error",
        ),
        (Exit::NotAllowed, "not signed in, or not allowed"),
        (
            Exit::Unreachable,
            "the server can't be reached (safe to try again)",
        ),
        (
            Exit::Rejected,
            "rejected: unusable input, a handler that was never reached or never understood, or the business said no",
        ),
        (
            Exit::WithFailures,
            "run, wait, watch: finished with failures; 0 once --only-failed, or a redrive, has made all of them good; redrive --wait: of the redrive's own items",
        ),
        (
            Exit::Stopped,
            "run, wait, watch: stopped or cancelled before finishing; run: also Ctrl-C, SIGTERM or SIGHUP, drained: the same command resumes",
        ),
        (Exit::TimedOut, "wait: waited long enough; the task still goes on"),
        (Exit::BadHandler, "try: the handler breaks the contract"),
        (Exit::Bug, "a bug in windrow; please report it"),
        (
            Exit::Config,
            "invalid configuration (every fault is listed), or a database of a newer windrow",
        ),
        (
            Exit::Interrupted,
            "Ctrl-C before anything began; wait, watch: the task goes on; run: second Ctrl-C, calls in flight were cut off",
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
