//! Words that stand where no word is expected: what a shell made of a pattern, a text without quotes, a text behind the
//! wrong flag, or a handler without the `--` before it.

use std::path::Path;

use clap::builder::{PossibleValue, Str};
use clap::{Arg, Command, ValueEnum};

use super::{HANDLER, HANDLER_TIP};
use crate::output::shell_word;
use crate::remote::token::RoleWord;

const SHELL_FORM: &str = "the text for sh stands directly behind --each: --shell --each 'wc -c \"$ROW_path\"' ($ROW_column is a column)";

/// What is said of a word that a command doesn't expect. `words` is the command line.
pub(super) fn tip(word: &str, command: &Command, words: &[&str]) -> Option<String> {
    let tip = one_name(word, command, words).or_else(|| of_token(word, command));
    if let Some(tip) = tip.or_else(|| of_log(word, command)) {
        return Some(tip);
    }
    let takes_a_handler = command
        .get_arguments()
        .any(|argument| argument.get_id() == HANDLER);
    if !takes_a_handler {
        return None;
    }
    let at = words.iter().position(|given| *given == word)?;
    let before = words.get(..at)?;
    let after_flag = before
        .iter()
        .rposition(|given| given.starts_with("--") && *given != "--");
    let (flag, values) = match after_flag {
        Some(flag) => (words[flag], &words[flag + 1..]),
        None => ("", words),
    };
    let (flag, begun) = flag
        .split_once('=')
        .map_or((flag, None), |(flag, begun)| (flag, Some(begun)));
    let values: Vec<&str> = begun.into_iter().chain(values.iter().copied()).collect();
    let is_plain = !word.starts_with('-');
    match flag {
        "--each" if is_plain || !values.first().is_some_and(|text| text.contains(' ')) => {
            Some(one_text(word, &values))
        }
        "--glob" if is_plain => Some(expanded(word, &values)),
        "--csv" | "--ndjson" | "--lines" if is_plain && alike(&values) => Some(format!(
            "{flag} takes one file; --glob takes a pattern in quotes, and each file is an item"
        )),
        "--request" if is_plain => {
            Some("quote method and URL together: --request 'POST https://…'".to_owned())
        }
        "--shell" if is_plain => Some(SHELL_FORM.to_owned()),
        _ if is_plain && is_without_text(words) => {
            Some("the command of --each stands directly behind it: --each 'wc -c {path}'".to_owned())
        }
        _ if !is_plain => None,
        _ if words[at..].contains(&"--") => Some(before_handler(word, command, before)),
        _ => Some(HANDLER_TIP.to_owned()),
    }
}

/// What is said of a task's address where lines of all tasks are shown.
fn of_log(word: &str, command: &Command) -> Option<String> {
    let is_log = command.get_name() == "log" && !word.starts_with('-');
    is_log.then(|| {
        let command = format!("windrow log --task {}", shell_word(word));
        format!("the lines of one task, t42 or business/name: '{command}'")
    })
}

/// What is said of a word where a token is made.
fn of_token(word: &str, command: &Command) -> Option<String> {
    let mut flags = command.get_arguments().filter_map(Arg::get_long);
    let makes_one = flags.any(|long| long == "role") && !word.starts_with('-');
    makes_one.then(|| {
        format!(
            "'--name {word}' says who holds the token, and what it allows: {}",
            roles()
        )
    })
}

/// The flag of a token with its words.
pub(super) fn roles() -> String {
    let words = RoleWord::value_variants()
        .iter()
        .filter_map(ValueEnum::to_possible_value);
    let words: Vec<String> = words.map(|word| word.get_name().to_owned()).collect();
    format!("'--role {}'", words.join("|"))
}

/// What is said of a word behind a flag that takes none, or takes it joined only.
fn without_value(command: &Command, before: &[&str]) -> Option<String> {
    let flag = before.last()?.strip_prefix("--")?;
    let argument = command
        .get_arguments()
        .find(|argument| argument.get_long() == Some(flag))?;
    if !argument.get_action().takes_values() {
        return Some(format!("'--{flag}' takes no value"));
    }
    let words = argument.get_possible_values();
    let mut values: Vec<&str> = words.iter().map(PossibleValue::get_name).collect();
    if values.is_empty() {
        values.extend(argument.get_value_names()?.iter().map(Str::as_str));
    }
    argument.is_require_equals_set().then(|| {
        format!(
            "'--{flag}' stands alone, or with = and its value: '--{flag}={}'",
            values.join("|")
        )
    })
}

/// What is said of a word before a handler that stands where it should: most often a file of items.
fn before_handler(word: &str, command: &Command, before: &[&str]) -> String {
    let packed = [".gz", ".zst"].iter().find_map(|end| word.strip_suffix(end));
    let end = Path::new(packed.unwrap_or(word)).extension();
    let flag = match end.and_then(|end| end.to_str()) {
        Some("csv" | "tsv") => "csv",
        Some("ndjson" | "jsonl") => "ndjson",
        Some("txt" | "list" | "log") => "lines",
        _ => "",
    };
    let mut flags = command.get_arguments().filter_map(Arg::get_long);
    if flags.any(|long| long == flag) {
        return format!("a file of items stands behind its flag: '--{flag} {word}'");
    }
    without_value(command, before).unwrap_or_else(|| {
        format!(
            "'{word}' belongs to no flag: items come from --csv, --ndjson or --lines FILE; words of the handler stand \
             behind --"
        )
    })
}

/// What is said of a task or a schedule whose business and name are two words.
fn one_name(word: &str, command: &Command, words: &[&str]) -> Option<String> {
    let mut known = command
        .get_positionals()
        .map(|argument| argument.get_id().as_str());
    let at = words.iter().rposition(|given| *given == word)?;
    let (verb, business) = (words.get(at.checked_sub(2)?)?, words[at - 1]);
    let is_one = known.any(|name| ["task", "schedule"].contains(&name));
    let are_names = ![business, word].iter().any(|name| name.starts_with('-'));
    (is_one && *verb == command.get_name() && are_names)
        .then(|| format!("business and name are one word: '{business}/{word}'"))
}

/// The words from here to the next flag, which may be `word` itself: what was meant as one.
fn together<'a>(word: &str, values: &[&'a str]) -> Vec<&'a str> {
    let is_meant = |given: &&&str| **given == word || !given.starts_with("--");
    values.iter().take_while(is_meant).copied().collect()
}

fn one_text(word: &str, values: &[&str]) -> String {
    let command = together(word, values).join(" ");
    format!(
        "the command is one text in quotes, '{command}', or words of their own, last: --each -- {command}"
    )
}

/// A pattern without quotes: the shell passes the files that match instead. What it was can be guessed.
fn expanded(word: &str, values: &[&str]) -> String {
    let files = together(word, values);
    let same = |of: fn(&Path) -> Option<&str>| {
        let first = of(Path::new(files.first()?))?;
        files
            .iter()
            .all(|file| of(Path::new(file)) == Some(first))
            .then_some(first)
    };
    let folder = same(|file| file.parent()?.to_str()).filter(|folder| !folder.is_empty());
    let folder = folder.map(|folder| format!("{folder}/")).unwrap_or_default();
    let end = same(|file| file.extension()?.to_str())
        .map(|end| format!(".{end}"))
        .unwrap_or_default();
    format!("the shell put the matching files in the place of the pattern; quote it: --glob '{folder}*{end}'")
}

/// Whether the words are files of one kind.
fn alike(values: &[&str]) -> bool {
    let mut ends = values.iter().take(2).map(|file| Path::new(file).extension());
    let (first, second) = (ends.next().flatten(), ends.next().flatten());
    first.is_some() && first == second
}

/// Whether `--each` is followed by a flag instead of a text, and no words of their own come behind `--`.
fn is_without_text(words: &[&str]) -> bool {
    let each = words.iter().position(|word| *word == "--each");
    let next = each.and_then(|each| words.get(each + 1));
    next.is_some_and(|next| next.starts_with("--") && *next != "--") && !words.contains(&"--")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use crate::args;

    fn said(words: &[&str]) -> String {
        said_of(&[&["run"], words].concat())
    }

    fn said_of(words: &[&str]) -> String {
        let words = std::iter::once(&"windrow").chain(words);
        let words: Vec<OsString> = words.map(OsString::from).collect();
        let error = args::command()
            .try_get_matches_from(&words)
            .expect_err("it is refused");
        super::super::advised(error, &words).to_string()
    }

    #[test]
    fn business_and_name_are_one_word() {
        for words in [
            ["schedule", "show", "push", "nightly"],
            ["task", "watch", "push", "nightly"],
        ] {
            let said = said_of(&words);
            assert!(
                said.contains("tip: business and name are one word: 'push/nightly'"),
                "{said}"
            );
        }
        let said = said_of(&["task", "append", "mail/b", "--lines", "orders.csv"]);
        assert!(!said.contains("one word"), "{said}");
        let said = said_of(&["schedule", "show", "--quiet", "push", "nightly"]);
        assert!(
            !said.contains("one word"),
            "what stands where isn't known: {said}"
        );
    }

    #[test]
    fn the_log_of_a_task_is_told_its_flag() {
        let said = said_of(&["log", "push/first"]);
        assert!(said.contains("'windrow log --task push/first'"), "{said}");
    }

    #[test]
    fn a_token_without_its_role_is_told_which_there_are() {
        let roles = "--role viewer|operator|admin|business|reader";
        let said = said_of(&["token", "create"]);
        assert!(said.contains(roles), "{said}");
        let said = said_of(&["token", "create", "me"]);
        assert!(said.contains("'--name me'") && said.contains(roles), "{said}");
    }

    #[test]
    fn a_pattern_that_the_shell_replaced_is_told_and_guessed() {
        for (words, pattern) in [
            (
                &["--glob", "in/1.txt", "in/2.txt", "--each", "wc {path}"][..],
                "--glob 'in/*.txt'",
            ),
            (&["--glob=in/1.txt", "in/2.txt", "--", "wc"], "--glob 'in/*.txt'"),
            (&["--glob", "a.png", "b.jpg", "--", "wc"], "--glob '*'"),
            (&["--glob", "/x/a", "/x/b", "--", "wc"], "--glob '/x/*'"),
        ] {
            let said = said(words);
            assert!(
                said.contains("quote it") && said.contains(pattern),
                "{words:?}: {said}"
            );
            assert!(!said.contains("behind --"), "{words:?}: {said}");
        }
    }

    #[test]
    fn a_text_in_the_wrong_place_is_told_its_place() {
        for (words, tip) in [
            (
                &["--total", "3", "--each", "--shell", "wc -c {path}"][..],
                "--shell --each 'wc -c",
            ),
            (
                &["--total", "3", "--shell", "wc -c {path}"],
                "--shell --each 'wc -c",
            ),
            (
                &["--total", "3", "--each", "wc", "-c", "{path}"],
                "one text in quotes, 'wc -c {path}'",
            ),
            (
                &["--total", "3", "--each", "wc", "{path}", "--rate", "5/s"],
                "last: --each -- wc {path}",
            ),
            (
                &["--total", "3", "--each", "curl", "--compressed", "{}"],
                "in quotes, 'curl --compressed {}'",
            ),
            (
                &["--total", "3", "--each", "--rate", "5/s", "wc {path}"],
                "directly behind it: --each '",
            ),
            (
                &["--total", "3", "--request", "POST", "https://x.example"],
                "--request 'POST https://",
            ),
            (&["--csv", "a.csv", "b.csv", "--", "true"], "--csv takes one file"),
            (
                &["--csv", "u.csv", "python3", "handler.py"],
                "comes last, behind --",
            ),
            (&["python3", "--csv", "u.csv"], "comes last, behind --"),
            (&["rows.csv", "--", "cat"], "'--csv rows.csv'"),
            (&["rows.jsonl.gz", "--", "cat"], "'--ndjson rows.jsonl.gz'"),
            (&["urls.txt", "--", "cat"], "'--lines urls.txt'"),
            (&["rows", "--", "cat"], "'rows' belongs to no flag"),
            (
                &["--total", "3", "--control", "maybe", "--", "cat"],
                "with = and its value: '--control=on|off'",
            ),
            (
                &["--total", "3", "--ordered", "yes", "--", "cat"],
                "with = and its value: '--ordered=BOOL'",
            ),
        ] {
            let said = said(words);
            assert!(said.contains("tip: ") && said.contains(tip), "{words:?}: {said}");
        }
    }
}
