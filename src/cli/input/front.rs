//! Reordering of the command line before clap parses it: server flags may come before the command, and `--json` means
//! `-o json`.

use std::ffi::OsString;

use clap::{Arg, Args, Command};

use super::flags::Colors;
use crate::link::Remote;

/// Moves server and output flags from before a verb to after it, and reads `--json` as `--output=json` if the command
/// has no `--json` of its own. Everything else is left to clap.
pub(crate) fn arranged(mut words: Vec<OsString>, program: &Command) -> Vec<OsString> {
    let shared = Colors::augment_args(Remote::augment_args(Command::new("shared")));
    let (mut command, mut at, mut moved) = (program, 1, Vec::new());
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        if let Some(verb) = command.find_subcommand(word) {
            (command, at) = (verb, at + 1);
            // Flags after the last verb are in the right place.
            if verb.get_subcommands().next().is_none() {
                break;
            }
        } else if word == "--json" && !has(command, "json") {
            moved.push(words.remove(at));
        } else if let Some(flag) = shared.get_arguments().find(|flag| is_named(flag, word)) {
            let has_next = flag.get_action().takes_values() && !flag.is_require_equals_set();
            let is_whole = word.contains('=') || !word.starts_with("--") && word.len() > 2;
            let end = at + 1 + usize::from(has_next && !is_whole);
            moved.extend(words.drain(at..end.min(words.len())));
        } else {
            break;
        }
    }
    drop(words.splice(at..at, moved));
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    if has(command, "output") && !has(command, "json") {
        for word in words[..end].iter_mut().filter(|word| *word == "--json") {
            *word = "--output=json".into();
        }
    }
    words
}

fn has(command: &Command, long: &str) -> bool {
    command.get_arguments().any(|flag| flag.get_long() == Some(long))
}

/// True if a word is this flag: `--server`, `--server=URL`, `-o`, `-ojson`.
fn is_named(flag: &Arg, word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => {
            let long = long.split('=').next();
            flag.get_long() == long
                || flag
                    .get_all_aliases()
                    .unwrap_or_default()
                    .iter()
                    .any(|alias| Some(*alias) == long)
        }
        None => {
            word.strip_prefix('-').and_then(|short| short.chars().next()) == flag.get_short()
                && flag.get_short().is_some()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_server_may_stand_before_the_command() {
        let arranged = |line: &str| {
            let words = arranged(
                line.split(' ').map(OsString::from).collect(),
                &crate::args::command(),
            );
            words.join(std::ffi::OsStr::new(" ")).into_string().expect("text")
        };
        for (typed, read) in [
            ("w --server http://a task list", "w task list --server http://a"),
            (
                "w --server=http://a task ls -o json",
                "w task ls --server=http://a -o json",
            ),
            (
                "w -ojson --context a task show t1",
                "w task show -ojson --context a t1",
            ),
            (
                "w --color=never -o json task --server b list --all",
                "w task list --color=never -o json --server b --all",
            ),
            ("w task --server b", "w task --server b"),
            ("w -v run --total 3 -- x --json", "w run -v --total 3 -- x --json"),
            ("w task list --json", "w task list --output=json"),
            ("w --json task list", "w task list --output=json"),
            ("w run --json {} -- x", "w run --json {} -- x"),
            ("w biz register push --json {}", "w biz register push --json {}"),
            ("w --frob task list", "w --frob task list"),
            ("w --server", "w --server"),
        ] {
            assert_eq!(arranged(typed), read);
        }
    }
}
