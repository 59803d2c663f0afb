//! Flags that a command doesn't have: those of other programs, slips of the finger, negative numbers.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Command, Error};

use super::{misplaced, noun, reason, same, tipped};
use crate::args;
use crate::input::nearest::nearest;

/// Flags of other programs, and ours of the same meaning; the first that a command has is meant. Behind it may stand a
/// value of it.
const FLAGS: [(&str, &str); 14] = [
    ("retries retry max-retries attempts tries", "max-attempts"),
    (
        "jobs j parallel parallelism threads workers max-concurrency",
        "concurrency",
    ),
    ("rps qps rate-limit throttle", "rate"),
    ("max-errors max-failures", "error-budget"),
    ("input file", "csv"),
    ("jsonl", "ndjson"),
    ("text txt", "lines"),
    ("count items", "total"),
    ("call-timeout", "timeout"),
    ("port addr bind", "listen"),
    ("listen", "port"),
    ("data", "data-dir"),
    ("json", "output json"),
    ("format", "output"),
];

/// Flags that a command has no equal of, and why: `command: flags: why`.
const NO_FLAG: &str = "\
windrow run: start-at at deadline: a run starts at once; a node starts tasks when it is time: 'windrow task create \
--start-at'
windrow run: cron schedule every: a run starts at once; a node makes tasks again and again: 'windrow schedule create'
windrow run: limit limits: a run has its own --rate and --concurrency; limits that tasks share are of nodes: 'windrow help \
limit'
windrow run: dry-run: 'windrow try' asks the handler without doing anything
windrow schedule create: csv ndjson lines file: each fire reads its items anew, so a file of this machine can't be \
their source: give --url URL, which the node fetches, --items or --total
windrow task append: csv lines input file items total: lines of JSON are appended, an item each: 'windrow task append TASK \
--ndjson FILE', or --ndjson - behind a pipe
windrow try: total count: 'windrow try' calls chosen items: '--items 0..5', with '--data JSON' for what they carry
windrow task set: start-at: 'windrow task start --start-at' says when a task starts";

/// A flag with a slip of the finger in it or of another program, a negative number, or a word in a wrong place. What clap finds similar, and its advice to pass a flag as a value, would lead astray.
pub(super) fn argument(mut error: Error, words: &[OsString]) -> Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let (mut root, word) = (args::command(), word.clone());
    root.build();
    let (command, path) = noun(&root, &word, words);
    let texts: Vec<&str> = words.iter().filter_map(|given| given.to_str()).collect();
    let similar = match error.remove(ContextKind::SuggestedArg) {
        Some(ContextValue::String(similar)) => Some(similar),
        _ => None,
    };
    let tip = flag_tip(&word, command, &path.join(" "), similar.as_deref())
        .or_else(|| negative(&word, &texts))
        .or_else(|| misplaced::tip(&word, command, &texts))
        .or_else(|| dashed(&word, command, &texts));
    if similar.is_some() {
        // It shows the flag that was found similar.
        error.insert(
            ContextKind::Usage,
            ContextValue::StyledStr(command.clone().render_usage()),
        );
    }
    match tip {
        Some(tip) => tipped(error, tip),
        None => without_as_a_value(error),
    }
}

/// The flag that was meant.
fn flag_tip(word: &str, command: &Command, path: &str, similar: Option<&str>) -> Option<String> {
    let given = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    let given = given.split('=').next().unwrap_or_default();
    // All of ours are small letters.
    let given = given.to_ascii_lowercase();
    let given = given.as_str();
    if let Some(why) = reason(NO_FLAG, path, given) {
        return Some(why.to_owned());
    }
    let same = same(&FLAGS, given);
    let flag = same.split(' ').next().unwrap_or_default();
    if command
        .get_arguments()
        .any(|argument| argument.get_long() == Some(flag))
    {
        return Some(format!("use '--{same}'"));
    }
    if !word.starts_with("--") {
        return None;
    }
    let flags = || command.get_arguments().filter_map(clap::Arg::get_long);
    let begun = || similar?.strip_prefix("--").filter(|flag| flag.starts_with(given));
    nearest(given, flags())
        .or_else(begun)
        .or_else(|| flags().find(|flag| is_one_letter_off(given, flag)))
        .map(|flag| format!("did you mean '--{flag}'?"))
}

/// Whether a short flag has one other letter, and not its first: `--rats` is no word of its own, as a verb might be.
fn is_one_letter_off(given: &str, flag: &str) -> bool {
    given.len() >= 3
        && given.len() == flag.len()
        && given.chars().next() == flag.chars().next()
        && strsim::osa_distance(given, flag) == 1
}

/// Where a negative number was given to a flag. (clap takes it for a flag of its own.)
fn negative(word: &str, words: &[&str]) -> Option<String> {
    word.strip_prefix('-')
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?;
    let at = words.iter().position(|given| given.starts_with(word))?;
    let flag = words
        .get(at.checked_sub(1)?)
        .filter(|before| before.starts_with("--"))?;
    Some(format!("'{flag}' takes nothing below zero"))
}

/// Where a value begins with a dash. (clap takes it for a flag.)
fn dashed(word: &str, command: &Command, words: &[&str]) -> Option<String> {
    let at = words
        .iter()
        .position(|given| given.starts_with(word) && given.starts_with('-'))?;
    let flag = words.get(at.checked_sub(1)?)?.strip_prefix("--")?;
    let mut flags = command.get_arguments();
    let takes_one = flags.any(|one| one.get_long() == Some(flag) && one.get_action().takes_values());
    takes_one.then(|| {
        format!(
            "a value that begins with - is joined with =: '--{flag}={}'",
            words[at]
        )
    })
}

fn without_as_a_value(mut error: Error) -> Error {
    if let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) {
        let rest: Vec<StyledStr> = tips
            .into_iter()
            .filter(|tip| !tip.to_string().contains("as a value"))
            .collect();
        if !rest.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(rest));
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = args::command()
            .try_get_matches_from(&words)
            .expect_err("it is refused");
        super::super::advised(error, &words).to_string()
    }

    #[test]
    fn flags_of_other_programs_lead_to_those_of_this_one() {
        for (line, tip) in [
            (
                "windrow run --retries 3 --total 3 -- true",
                "tip: use '--max-attempts'",
            ),
            ("windrow run -j4 --total 3 -- true", "tip: use '--concurrency'"),
            ("windrow run --input u.csv -- true", "tip: use '--csv'"),
            ("windrow task list --json", "tip: use '--output json'"),
            (
                "windrow run --conc 5 --total 3 -- true",
                "tip: did you mean '--concurrency'?",
            ),
            (
                "windrow run --rats 5/s --total 3 -- true",
                "tip: did you mean '--rate'?",
            ),
            (
                "windrow run --Rate 5/s --total 3 -- true",
                "tip: did you mean '--rate'?",
            ),
            (
                "windrow task create push --TOTAL=3",
                "tip: did you mean '--total'?",
            ),
            (
                "windrow run --start-at 5pm --total 3 -- true",
                "tip: a run starts at once",
            ),
            (
                "windrow run --limit x --total 3 -- true",
                "tip: a run has its own --rate",
            ),
            (
                "windrow task append t1 --csv more.csv",
                "tip: lines of JSON are appended, an item each: 'windrow task append TASK --ndjson FILE'",
            ),
            (
                "windrow try --total 5 -- cat",
                "tip: 'windrow try' calls chosen items: '--items 0..5'",
            ),
            (
                "windrow task set t1 --start-at 5pm",
                "tip: 'windrow task start --start-at'",
            ),
            ("windrow serve --port 80", "tip: use '--listen'"),
            (
                "windrow run --rate -5/s --total 3 -- true",
                "tip: '--rate' takes nothing below zero",
            ),
            (
                "windrow run --total -5 -- true",
                "tip: '--total' takes nothing below zero",
            ),
        ] {
            let said = said(line);
            assert!(said.contains(tip), "{line}: {said}");
            assert!(
                !said.contains("similar") && !said.contains("as a value"),
                "{line}: {said}"
            );
            assert!(
                !said.contains("run --restart") && !said.contains("--straggler"),
                "{line}: {said}"
            );
        }
        for (line, tip) in [
            (
                "windrow run --name -nightly --total 3 -- true",
                "'--name=-nightly'",
            ),
            ("windrow task list --label --x", "'--label=--x'"),
        ] {
            let said = said(line);
            assert!(
                said.contains("joined with =") && said.contains(tip),
                "{line}: {said}"
            );
        }
        assert!(
            !said("windrow task start --foo").contains("tip"),
            "nothing is made up"
        );
    }

    #[test]
    fn a_flag_that_is_named_is_there() {
        let root = args::command();
        let commands: Vec<&Command> = root
            .get_subcommands()
            .flat_map(|one| std::iter::once(one).chain(one.get_subcommands()))
            .collect();
        let is_there = |flag: &str| {
            commands
                .iter()
                .any(|command| command.get_arguments().any(|one| one.get_long() == Some(flag)))
        };
        for (_, flag) in FLAGS {
            assert!(is_there(flag.split(' ').next().unwrap_or_default()), "{flag}");
        }
    }
}
