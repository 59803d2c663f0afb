//! Confirmation questions, asked only at a terminal, never of a script.

use std::io::{self, BufRead, IsTerminal, Write};

use super::open::Link;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::shell::Shell;

/// Risk of an action that needs confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// Costs time or work, but can be undone.
    Ordinary,
    /// Can't be undone: cancel, delete. Only `--yes` answers for the user, CI doesn't.
    Final,
}

/// Treatment of a question, derived from flags and terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Go on without asking, since `--yes` or CI has answered.
    Go,
    /// Ask the person at the terminal.
    Ask,
    /// Fail: there is no terminal to ask at.
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

impl Link<'_> {
    /// Asks for confirmation at the terminal, unless `--yes` or CI has answered.
    ///
    /// # Errors
    /// `Usage` without a terminal, `Interrupted` if the user says no.
    pub fn confirm(&self, danger: Danger, question: &str) -> Result<(), Fault> {
        confirm(danger, self.remote.yes, self.shell, question)
    }

    /// Asks the user to type `word` before an action that can't be undone.
    ///
    /// # Errors
    /// `Usage` without a terminal, `Interrupted` if the user types something else.
    pub fn confirm_word(&self, question: &str, word: &str) -> Result<(), Fault> {
        match way(Danger::Final, self.remote.yes, self.is_ci(), is_terminal()) {
            Way::Go => Ok(()),
            Way::Refuse => Err(nobody(question)),
            Way::Ask if ask(&format!("{question} Type {word} to continue:"))?.trim() == word => Ok(()),
            Way::Ask => {
                Err(refused(format!("the answer wasn't {word}")).hint(format!("type {word}, or use --yes")))
            }
        }
    }

    /// Asks for one of the letters until the user types one. Returns `None` without a terminal.
    ///
    /// # Errors
    /// Fails if the terminal can't be read or was closed; `Interrupted` on Ctrl-C.
    pub async fn choose(&self, question: &str, letters: &[char]) -> Result<Option<char>, Fault> {
        if self.is_ci() || !is_terminal() {
            return Ok(None);
        }
        let gone = |because: &str| {
            Fault::new(Exit::Interrupted, "no answer", because)
                .hint("a script must confirm in advance; nothing has changed")
        };
        loop {
            let question = question.to_owned();
            // On a blocking thread: once a listener for Ctrl-C exists, Ctrl-C no longer ends a read.
            let asked = tokio::task::spawn_blocking(move || ask(&question));
            let line = tokio::select! {
                line = asked => line.map_err(|error| Fault::bug(error.to_string()))??,
                _ = tokio::signal::ctrl_c() => return Err(gone("interrupted")),
            };
            if line.is_empty() {
                return Err(gone("the terminal was closed"));
            }
            let letter = line.trim().to_lowercase().chars().next();
            if let Some(letter) = letter.filter(|letter| letters.contains(letter)) {
                return Ok(Some(letter));
            }
        }
    }

    fn is_ci(&self) -> bool {
        is_ci(self.shell)
    }
}

/// Asks for confirmation at the terminal, unless `yes` or CI has answered.
///
/// # Errors
/// Same as [`Link::confirm`].
pub(crate) fn confirm(danger: Danger, yes: bool, shell: &Shell, question: &str) -> Result<(), Fault> {
    match way(danger, yes, is_ci(shell), is_terminal()) {
        Way::Go => Ok(()),
        Way::Refuse => Err(nobody(question)),
        Way::Ask if is_yes(&ask(&format!("{question} [y/N]"))?) => Ok(()),
        Way::Ask => Err(refused("the answer was no").hint("answer y, or use --yes")),
    }
}

fn is_ci(shell: &Shell) -> bool {
    shell.var("CI").is_some()
}

fn refused(because: impl Into<String>) -> Fault {
    Fault::new(Exit::Interrupted, "not confirmed; nothing has changed", because)
}

fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn nobody(question: &str) -> Fault {
    let what = format!("confirmation required: {question}");
    Fault::new(Exit::Usage, what, "there is no terminal to ask on").hint("add --yes")
}

fn ask(question: &str) -> Result<String, Fault> {
    let unread =
        |error: io::Error| Fault::new(Exit::Failed, "can't read the answer", error.to_string()).hint("--yes");
    let mut stderr = io::stderr();
    write!(stderr, "{question} ")
        .and_then(|()| stderr.flush())
        .map_err(unread)?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(unread)?;
    Ok(line)
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
