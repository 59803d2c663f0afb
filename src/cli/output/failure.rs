//! Failures for scripts: with `-o json` every command prints a single object on standard output, either its outcome
//! or `{"error": …}`.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::screen;

/// Returns true if the command line asks for JSON. It examines the raw words, because an invalid command line may ask
/// for it too.
pub(crate) fn wants_json(words: &[OsString]) -> bool {
    let words: Vec<&str> = words
        .iter()
        .map_while(|word| word.to_str())
        .take_while(|word| *word != "--")
        .collect();
    let is_pair = |pair: &[&str]| matches!(pair, ["-o" | "--output", "json"]);
    words.windows(2).any(is_pair)
        || words
            .iter()
            .any(|word| ["-ojson", "-o=json", "--output=json"].contains(word))
}

/// Prints the failure of a command for scripts if they asked for it and no outcome was printed. Returns the exit
/// code.
pub(crate) fn told(fault: &Fault, wants_json: bool) -> Exit {
    // The reader may be gone; the exit code reports the failure too.
    if wants_json && !screen::has_printed() && screen::print_json(&fault.json()).is_err() {
        tracing::debug!("standard output is closed");
    }
    fault.exit
}

/// Prints clap's answer to a command line that isn't executed: help, or the error in it.
pub(crate) fn of_command_line(error: &clap::Error, wants_json: bool) -> Exit {
    let printed = error.print().and_then(|()| io::stdout().flush());
    if error.use_stderr() {
        // If standard error is closed, the exit code still tells.
        let text = error.render().to_string();
        let because = text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        return told(
            &Fault::new(Exit::Usage, "invalid command line", because),
            wants_json,
        );
    }
    match printed {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let fault = Fault::new(Exit::Failed, "can't print the help", error.to_string());
            screen::print_error(&fault.hint("check standard output").to_string());
            Exit::Failed
        }
        _ => Exit::Ok,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_asked_for_in_each_way_that_a_flag_has_and_not_behind_the_handler() {
        let wants = |text: &str| wants_json(&text.split(' ').map(OsString::from).collect::<Vec<_>>());
        for asked in [
            "w task list -o json",
            "w task list --output=json",
            "w -ojson",
            "w -o=json x",
            "w --output json",
        ] {
            assert!(wants(asked), "{asked}");
        }
        for other in ["w task list", "w -o ndjson", "w run -- jq -o json", "w json -o"] {
            assert!(!wants(other), "{other}");
        }
    }
}
