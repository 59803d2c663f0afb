//! What clap refuses, with what was probably meant: verbs as other programs have them, and numbers as people write them.
//! The tips have the form of clap's own.

mod flags;
mod misplaced;

use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

use crate::args;
use crate::input::nearest::nearest;

/// Verbs of other programs, and ours of the same meaning: the first one that a noun has is meant.
const MEANT: [(&str, &str); 24] = [
    ("pause suspend", "stop drain"),
    ("resume unpause", "start undrain"),
    ("continue run", "start"),
    ("retry rerun replay", "redrive"),
    ("ls ps", "list"),
    ("rm", "delete remove revoke"),
    ("delete", "remove revoke"),
    ("remove", "delete revoke"),
    ("kill", "cancel stop revoke"),
    ("abort terminate", "cancel stop"),
    ("cancel", "stop revoke"),
    ("status print get describe inspect info", "show"),
    ("business businesses", "biz"),
    ("tasks", "task"),
    ("jobs", "job"),
    ("create", "register add"),
    ("add", "create register"),
    ("new", "create register add"),
    ("update change", "set edit"),
    ("tail", "log"),
    ("errors", "failures"),
    ("history", "revisions"),
    ("disable", "archive drain"),
    ("enable", "unarchive undrain"),
];

/// Verbs that a noun has no equal of, and why: `noun: verbs: why`. The program itself is the noun `windrow`.
const NONE_OF: &str = "\
biz: delete rm remove: a business is not deleted, since its tasks name it; 'windrow biz archive' hides it
biz: stop pause start resume: tasks are stopped and started: 'windrow task stop', 'start'
job: start resume continue unpause: the same 'windrow run' goes on with a job, or 'windrow run --resume NAME'
job: retry rerun redrive: 'windrow run --only-failed' goes over what a job gave up
job: remove forget: 'windrow job rm' deletes what a job keeps; 'windrow run --restart' begins it anew
job: watch explain log tail top: what a job does is shown where it runs; 'windrow job show' says how it stands
node: delete rm remove stop kill: a node ends where it runs, with SIGTERM; 'windrow node drain' hands its tasks over first
cluster: list ls ps nodes: 'windrow node list' lists the nodes
cluster: join add create init: nodes with the same store.url are a cluster: 'windrow help serve'
windrow: status: 'windrow task list' shows the tasks, 'windrow cluster status' the nodes";

/// The reason that a table of `noun: words: why` has for a word.
fn reason(table: &'static str, noun: &str, word: &str) -> Option<&'static str> {
    table.lines().find_map(|line| {
        let mut parts = line.splitn(3, ": ");
        let (of, words, why) = (parts.next()?, parts.next()?, parts.next()?);
        (of == noun && has(words, word)).then_some(why)
    })
}

/// What a table says for a word.
fn same(table: &[(&'static str, &'static str)], word: &str) -> &'static str {
    let found = table.iter().find(|(others, _)| has(others, word));
    found.map_or("", |(_, same)| same)
}

fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// The argument that is a handler's command, and where it stands.
const HANDLER: &str = "worker";
const HANDLER_TIP: &str =
    "the handler's command comes last, behind --: 'windrow run --csv users.csv -- python3 handler.py'";
const TRY_TIP: &str = "say what is called: 'windrow try http://127.0.0.1:9000/windrow', or a command behind --: \
                       'windrow try -- python3 handler.py'";
/// The last of the flags that say which failures are done again.
const ALL: &str = "--all";
const ALL_TIP: &str = "say which failures: '--all', '--unconfirmed', '--code CODE' or '--indexes 5,9-20'; \
                       'windrow task failures TASK' lists their codes";

/// Failures without the job that has them.
const ONLY_FAILED_TIP: &str =
    "say of which job: 'windrow run --resume NAME --only-failed'; 'windrow job list' has the names";

/// What a task's export can be of.
const EXPORT_TIP: &str = "WHAT is failures (items that failed for good) or log (lines of the log)";

/// The same error with what was meant, if that can be told. `words` is the command line.
pub(crate) fn advised(error: Error, words: &[OsString]) -> Error {
    match error.kind() {
        ErrorKind::InvalidSubcommand => verb(error, words),
        ErrorKind::UnknownArgument => flags::argument(error, words),
        ErrorKind::MissingRequiredArgument => missing(error, words),
        ErrorKind::ValueValidation => number(error),
        ErrorKind::InvalidValue => value(error),
        ErrorKind::ArgumentConflict => before_verb(error, words),
        _ => error,
    }
}

fn verb(mut error: Error, words: &[OsString]) -> Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let (root, word) = (args::command(), word.clone());
    let (noun, path) = noun(&root, &word, words);
    let mistyped = || {
        let verbs = noun.get_subcommands().map(clap::Command::get_name);
        nearest(&word, verbs)
    };
    if let Some(tip) = equivalent(&word, &root, noun, &path) {
        // What only looks alike would lead astray.
        error.remove(ContextKind::SuggestedSubcommand);
        return tipped(error, tip);
    }
    if let Some(tip) = swapped(&word, noun, &path, words) {
        error.remove(ContextKind::SuggestedSubcommand);
        return tipped(error, tip);
    }
    match mistyped() {
        Some(verb) if error.get(ContextKind::SuggestedSubcommand).is_none() => {
            tipped(error, format!("did you mean '{} {verb}'?", path.join(" ")))
        }
        Some(verb) => {
            // What has more slips in it would only be in the way.
            error.insert(
                ContextKind::SuggestedSubcommand,
                ContextValue::String(verb.to_owned()),
            );
            error
        }
        None => error,
    }
}

/// What is said where a verb stands behind what it is about: `windrow task push create`.
fn swapped(word: &str, noun: &Command, path: &[&str], words: &[OsString]) -> Option<String> {
    let at = words.iter().position(|given| given == word)?;
    let verb = noun.find_subcommand(words.get(at + 1)?)?.get_name();
    let at = path.join(" ");
    (path.len() > 1).then(|| format!("the verb comes first: '{at} {verb} {word}'"))
}

/// A flag of a verb that stands before it, where clap says that both can't be used together.
fn before_verb(error: Error, words: &[OsString]) -> Error {
    let (Some(ContextValue::String(verb)), Some(flags)) = (
        error.get(ContextKind::InvalidSubcommand),
        error.get(ContextKind::PriorArg),
    ) else {
        return error;
    };
    let flags = match flags {
        ContextValue::String(flag) => vec![flag.clone()],
        ContextValue::Strings(flags) => flags.clone(),
        _ => return error,
    };
    let mut root = args::command();
    root.build();
    let (noun, path) = noun(&root, verb, words);
    let has = |flag: &String| {
        let long = flag.split(' ').next()?.strip_prefix("--");
        let mut known = noun.find_subcommand(verb)?.get_arguments();
        known.find(|argument| argument.get_long() == long)
    };
    if !flags.iter().all(|flag| has(flag).is_some()) {
        return error;
    }
    let (flags, at) = (flags.join(" "), path.join(" "));
    let text = format!("'{flags}' goes behind the verb: {at} {verb} … {flags}");
    noun.clone().error(ErrorKind::ArgumentConflict, text)
}

/// One of a few words, with a slip of the finger in it.
fn value(mut error: Error) -> Error {
    let (Some(ContextValue::String(word)), Some(ContextValue::Strings(known))) = (
        error.get(ContextKind::InvalidValue),
        error.get(ContextKind::ValidValue),
    ) else {
        return error;
    };
    let meant = nearest(word, known.iter().map(String::as_str)).map(str::to_owned);
    // (clap's own guess takes zsh for ksh.)
    let is_short = word.chars().count() <= 4;
    match (meant, error.get(ContextKind::SuggestedValue)) {
        (Some(meant), None) => {
            error.insert(ContextKind::SuggestedValue, ContextValue::String(meant));
        }
        (None, Some(_)) if is_short => {
            error.remove(ContextKind::SuggestedValue);
        }
        _ => {}
    }
    error
}

/// A job without its handler, whose place clap's usage doesn't show; a redrive that doesn't say of what.
fn missing(error: Error, words: &[OsString]) -> Error {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let is_missing = |part: &str| missing.iter().any(|argument| argument.contains(part));
    let mut flags = words.iter().take_while(|word| *word != "--");
    if is_missing("--resume") && flags.any(|word| word == "--only-failed") {
        tipped(error, ONLY_FAILED_TIP)
    } else if is_missing("--cmd") {
        tipped(error, TRY_TIP)
    } else if is_missing("COMMAND") && !is_missing("--each") {
        tipped(error, HANDLER_TIP)
    } else if is_missing("--role") {
        tipped(
            error,
            format!("say what the token allows: {}", misplaced::roles()),
        )
    } else if missing.iter().any(|argument| argument == "<WHAT>") {
        tipped(error, EXPORT_TIP)
    } else if is_missing(ALL) {
        tipped(error, ALL_TIP)
    } else {
        error
    }
}

fn tipped(mut error: Error, tip: impl Into<String>) -> Error {
    let tip = StyledStr::from(tip.into());
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    error
}

/// The command that stands before a word, with its path.
fn noun<'a>(root: &'a Command, word: &str, words: &[OsString]) -> (&'a Command, Vec<&'a str>) {
    let (mut noun, mut path) = (root, vec!["windrow"]);
    for given in words
        .iter()
        .skip(1)
        .filter_map(|given| given.to_str())
        .take_while(|given| *given != word)
    {
        if let Some(found) = noun.find_subcommand(given) {
            noun = found;
            path.push(found.get_name());
        }
    }
    (noun, path)
}

/// What is said instead of a verb that isn't there.
fn equivalent(word: &str, root: &Command, noun: &Command, path: &[&str]) -> Option<String> {
    if let Some(why) = reason(NONE_OF, noun.get_name(), word) {
        return Some(why.to_owned());
    }
    let same = same(&MEANT, word).split_whitespace();
    let of = |noun: &Command| {
        let mut meant = std::iter::once(word).chain(same.clone());
        let verb = meant.find_map(|verb| noun.find_subcommand(verb))?;
        Some(verb.get_name().to_owned())
    };
    let at = path.join(" ");
    if let Some(verb) = of(noun) {
        return Some(format!("use '{at} {verb}'"));
    }
    if path.len() > 1 {
        return None;
    }
    // Most verbs are of tasks, some also of what 'windrow run' does.
    let [task, job] = ["task", "job"].map(|noun| of(root.find_subcommand(noun)?));
    let job = job
        .map(|verb| format!("; for a 'windrow run' use '{at} job {verb}'"))
        .unwrap_or_default();
    task.map(|verb| format!("use '{at} task {verb}'{job}"))
}

/// The standard library's words for numbers name types.
fn number(error: Error) -> Error {
    let Some(wrong) = error
        .source()
        .and_then(|source| source.downcast_ref::<ParseIntError>())
    else {
        return error;
    };
    let (Some(ContextValue::String(text)), Some(argument)) = (
        error.get(ContextKind::InvalidValue),
        error.get(ContextKind::InvalidArg),
    ) else {
        return error;
    };
    let tip = match (wrong.kind(), plain(text)) {
        (IntErrorKind::Zero, _) => "it must be at least 1".to_owned(),
        (IntErrorKind::PosOverflow, _) => "it is too large".to_owned(),
        (_, Some(0)) => "it must be a whole number, at least 1".to_owned(),
        (_, Some(number)) => format!("it must be a whole number in digits: {number}"),
        _ => "it must be a whole number, such as 1000".to_owned(),
    };
    let mut told = Error::new(ErrorKind::ValueValidation).with_cmd(&args::command());
    told.insert(ContextKind::InvalidArg, argument.clone());
    told.insert(ContextKind::InvalidValue, ContextValue::String(text.clone()));
    told.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![StyledStr::from(tip)]),
    );
    told
}

/// `1k`, `1.5m`, `1_000`, `1,000`, `1 000`, `5.0` as digits.
fn plain(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, factor) = match lower.strip_suffix(['k', 'm', 'g']) {
        Some(digits) if lower.ends_with('k') => (digits, 1e3),
        Some(digits) if lower.ends_with('m') => (digits, 1e6),
        Some(digits) => (digits, 1e9),
        None => (lower.as_str(), 1.0),
    };
    let digits = digits.replace(['_', ',', ' ', '\''], "");
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number = digits.parse::<f64>().ok().filter(|_| is_number)? * factor;
    // Above that a float has gaps.
    ((number - number.round()).abs() < 1e-6 && number < 9e15).then_some(number.round() as u64)
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
    fn flags_that_stand_before_the_verb_are_told_where_they_go() {
        let said_of = said("windrow task --server http://a.example failures t1");
        assert!(
            said_of.contains("'--server <URL>' goes behind the verb: windrow task failures … --server <URL>"),
            "{said_of}"
        );
        let said_of = said("windrow task --status running failures t1");
        assert!(said_of.contains("cannot be used with"), "{said_of}");
    }

    #[test]
    fn what_a_handler_is_missing_from_is_told_with_an_example_of_that_command() {
        let said_of = said("windrow try");
        assert!(
            said_of.contains("windrow try -") && !said_of.contains("windrow run"),
            "{said_of}"
        );
        let said_of = said("windrow run --total 3");
        assert!(
            said_of.contains("tip: the handler's command comes last"),
            "{said_of}"
        );
        let said_of = said("windrow run --total 3 --allow-dashes -- true");
        assert!(
            said_of.contains("--resume <NAME>") && !said_of.contains("tip:"),
            "{said_of}"
        );
    }

    #[test]
    fn verbs_of_other_programs_lead_to_those_of_this_one() {
        for (line, tip) in [
            ("windrow job pause x", "tip: use 'windrow job stop'"),
            ("windrow task pause t1", "tip: use 'windrow task stop'"),
            ("windrow task resume t1", "tip: use 'windrow task start'"),
            ("windrow task retry t1", "tip: use 'windrow task redrive'"),
            ("windrow task ls", "tip: use 'windrow task list'"),
            ("windrow task rm t1", "tip: use 'windrow task delete'"),
            ("windrow task kill t1", "tip: use 'windrow task cancel'"),
            ("windrow task status t1", "tip: use 'windrow task show'"),
            ("windrow biz delete push", "tip: a business is not deleted"),
            ("windrow biz create push", "tip: use 'windrow biz register'"),
            ("windrow ctx rm a", "tip: use 'windrow ctx remove'"),
            ("windrow token delete 1", "tip: use 'windrow token revoke'"),
            ("windrow job resume x", "windrow run --resume NAME"),
            ("windrow pause t1", "tip: use 'windrow task stop'"),
            (
                "windrow ls",
                "tip: use 'windrow task list'; for a 'windrow run' use 'windrow job list'",
            ),
            ("windrow stop t1", "for a 'windrow run' use 'windrow job stop'"),
            ("windrow businesses", "tip: use 'windrow biz'"),
            ("windrow config print", "tip: use 'windrow config show'"),
            ("windrow job watch x", "'windrow job show' says how it stands"),
            ("windrow status", "windrow cluster status"),
        ] {
            let said = said(line);
            assert!(
                said.contains("unrecognized subcommand") && said.contains(tip),
                "{line}: {said}"
            );
        }
        assert!(
            said("windrow task lisst").contains("similar"),
            "clap's own tips stay"
        );
        let near = said("windrow task lst");
        assert!(
            near.contains("'list'") && !near.contains("'stop'"),
            "only the nearest: {near}"
        );
        for (line, tip) in [
            ("windrow task list -o cvs", "'csv'"),
            ("windrow task list -o jsno", "'json'"),
        ] {
            assert!(
                said(line).contains(&format!("a similar value exists: {tip}")),
                "{line}: {}",
                said(line)
            );
        }
        assert!(
            !said("windrow task frobnicate").contains("tip: here"),
            "nothing is made up"
        );
    }

    #[test]
    fn slips_of_the_finger_are_seen() {
        for (line, tip) in [
            ("windrow rnu --total 3", "did you mean 'windrow run'?"),
            ("windrow run --cvs u.csv -- true", "did you mean '--csv'?"),
            ("windrow run --csv u.csv --rat 5/s -- true", "--rate"),
            ("windrow run --csv u.csv python3 handler.py", "behind --"),
            ("windrow run --csv u.csv", "behind --"),
            ("windrow try --csv u.csv python3 handler.py", "behind --"),
            ("windrow task redrive t1", "'--all', '--unconfirmed'"),
        ] {
            let said = said(line);
            assert!(said.contains("tip: ") && said.contains(tip), "{line}: {said}");
        }
    }

    #[test]
    fn another_short_word_is_no_slip() {
        assert_eq!(nearest("nope", ["node", "task"].into_iter()), None);
        assert_eq!(nearest("ndoe", ["node", "task"].into_iter()), Some("node"));
        assert_eq!(nearest("tas", ["node", "task"].into_iter()), Some("task"));
        let said = said("windrow completions ksh");
        assert!(!said.contains("a similar value"), "{said}");
    }

    #[test]
    fn a_verb_that_is_named_is_there() {
        let root = args::command();
        let nouns = || std::iter::once(&root).chain(root.get_subcommands());
        for verb in MEANT.iter().flat_map(|(_, same)| same.split(' ')) {
            assert!(nouns().any(|noun| noun.find_subcommand(verb).is_some()), "{verb}");
        }
    }

    #[test]
    fn numbers_are_refused_in_words_and_with_their_digits() {
        for (line, tip) in [
            (
                "windrow task create push --total 3 --batch 0",
                "tip: it must be at least 1",
            ),
            ("windrow run --total 1k -- ./worker", "in digits: 1000"),
            ("windrow run --total 1_000 -- ./worker", "in digits: 1000"),
            ("windrow run --total 1.5M -- ./worker", "in digits: 1500000"),
            (
                "windrow run --total many -- ./worker",
                "tip: it must be a whole number, such as 1000",
            ),
            (
                "windrow task create push --total 3 --parked-max 2k",
                "in digits: 2000",
            ),
            (
                "windrow limit set vendor-x --concurrency 0",
                "tip: it must be at least 1",
            ),
            (
                "windrow run --total 99999999999999999999999 -- ./worker",
                "tip: it is too large",
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

    #[test]
    fn a_verb_behind_what_it_is_about_is_told_its_place() {
        let told = said("windrow task push create --total 5");
        assert!(
            told.contains("tip: the verb comes first: 'windrow task create push'"),
            "{told}"
        );
        let told = said("windrow job nightly show");
        assert!(told.contains("'windrow job show nightly'"), "{told}");
        assert!(
            !said("windrow push create").contains("comes first"),
            "which noun isn't known"
        );
    }

    #[test]
    fn failures_without_their_job_are_told_how_it_is_named() {
        for line in ["windrow run --only-failed", "windrow run --only-failed -- cat"] {
            let told = said(line);
            assert!(
                told.contains("tip: say of which job: 'windrow run --resume NAME --only-failed'"),
                "{told}"
            );
        }
        assert!(!said("windrow run -- cat --only-failed").contains("of which job"));
    }
}
