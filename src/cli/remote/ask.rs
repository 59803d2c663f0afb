//! Questions before something is done: to a person at a terminal, never to a script.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::cli::exit::Exit;
use crate::cli::fault::Fault;

/// What is at stake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// It costs time or work, but can be undone.
    Ordinary,
    /// It can't be undone: cancel, delete. Only `--yes` itself answers for a person.
    Final,
}

/// How a question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It is answered already.
    Go,
    /// By a person.
    Ask,
    /// By nobody: there is no person.
    Refuse,
}

fn way(danger: Danger, yes: bool, is_ci: bool, is_terminal: bool) -> Way {
    match danger {
        _ if yes => Way::Go,
        Danger::Ordinary if is_ci => Way::Go,
        _ if is_terminal && !is_ci => Way::Ask,
        _ => Way::Refuse,
    }
}

/// Asks, unless it is answered already.
///
/// # Errors
/// `Usage` where nobody can be asked, `Interrupted` when the person says no.
pub(super) fn confirm(danger: Danger, question: &str, yes: bool, is_ci: bool) -> Result<(), Fault> {
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    match way(danger, yes, is_ci, is_terminal) {
        Way::Go => Ok(()),
        Way::Refuse => {
            Err(Fault::new(Exit::Usage, "that needs a yes", format!("{question} Nobody can be asked here"))
                .hint("--yes, if it is meant"))
        }
        Way::Ask => ask(question),
    }
}

fn ask(question: &str) -> Result<(), Fault> {
    let unread = |error: io::Error| {
        Fault::new(Exit::Failed, "the answer can't be read", error.to_string()).hint("--yes")
    };
    let mut stderr = io::stderr();
    write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush()).map_err(unread)?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(unread)?;
    if is_yes(&line) {
        return Ok(());
    }
    Err(Fault::new(Exit::Interrupted, "nothing was done", "the answer was no")
        .hint("y, or --yes, if it is meant"))
}

fn is_yes(line: &str) -> bool {
    ["y", "yes"].contains(&line.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_never_asked_and_ci_destroys_nothing_unasked() {
        for (danger, yes, is_ci, is_terminal, expected) in [
            (Danger::Final, true, false, false, Way::Go),
            (Danger::Final, false, true, true, Way::Refuse),
            (Danger::Final, false, false, false, Way::Refuse),
            (Danger::Final, false, false, true, Way::Ask),
            (Danger::Ordinary, false, true, false, Way::Go),
            (Danger::Ordinary, false, false, false, Way::Refuse),
            (Danger::Ordinary, false, false, true, Way::Ask),
        ] {
            assert_eq!(
                way(danger, yes, is_ci, is_terminal),
                expected,
                "{danger:?} {yes} {is_ci} {is_terminal}"
            );
        }
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        assert!(is_yes("y\n") && is_yes(" YES "));
        assert!(!is_yes("") && !is_yes("n") && !is_yes("yep"));
    }
}
