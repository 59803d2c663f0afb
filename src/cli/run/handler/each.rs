//! Implementation of `--each`, one process per item: flags, checked before anything starts.

use std::ffi::OsString;
use std::num::NonZeroU32;

use clap::Args;

use super::{check_program, check_unused, shell_syntax};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::flags::HttpArgs;
use crate::run::items::first_row;
use windrow_core::settings::{Auto, Results};
use windrow_core::template::program::{Argv, ProgramFault, Recipe, ShellText};
use windrow_node::handlers::{HandlerChoice, cores};
use windrow_node::sources::OpenedSource;

/// Summary of faults about `--each`.
const WHAT: &str = "can't use --each";

/// Prefix of variables that only a shell would expand.
const SHELL_VARIABLE: &str = "$ROW_";

/// Note printed once if nobody keeps the output of the programs.
const DISCARDED: &str = "the output of the programs is discarded: --results-out FILE keeps one result \
    per item (for an existing job: with --restart)";

/// Argument group that provides `--each`: the flag, or a job that has it. Each command defines its members.
pub(crate) const WITH_PROGRAM: &str = "program";

/// Flags for one process per item.
#[derive(Debug, Args)]
#[command(next_help_heading = "Handler")]
pub struct EachArgs {
    /// Program to start for each item; {column}, {index}, {key} and {} in its arguments are replaced
    #[arg(long, value_name = "COMMAND", num_args = 0..=1, default_missing_value = "", conflicts_with = "request")]
    pub each: Option<String>,
    /// Run the text of --each with sh, where a column is the variable "$ROW_column"
    #[arg(long, requires = "each")]
    pub shell: bool,
    /// Let values of --each start an argument with -; programs may take them for options
    #[arg(long, requires = WITH_PROGRAM)]
    pub allow_dashes: bool,
    /// Exit codes of --each, besides 75, that mean a dependency is down and cost no attempt; for curl: 6,7,28
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=255), requires = WITH_PROGRAM)]
    pub unavailable_exit: Vec<u8>,
}

/// Other flags that affect `--each`.
pub(crate) struct Beside<'a> {
    /// Words after `--` on the command line.
    pub(crate) words: &'a [OsString],
    /// Flags that only apply to URLs.
    pub(crate) http: &'a HttpArgs,
    /// Number of items per call.
    pub(crate) batch: NonZeroU32,
    /// Maximum items in flight.
    pub(crate) concurrency: Auto<NonZeroU32>,
}

impl EachArgs {
    /// Returns the handler that the flags describe, or `None` without `--each`.
    ///
    /// # Errors
    /// Fails if there is no program, if its placeholders are invalid, or if other flags contradict.
    pub(crate) fn wanted(&self, beside: &Beside<'_>) -> Result<Option<HandlerChoice<'static>>, Fault> {
        let Some(text) = &self.each else { return Ok(None) };
        check_unused(beside.http)?;
        if beside.batch.get() > 1 {
            let because = format!("--batch {} puts several items into one call", beside.batch);
            return Err(
                Fault::new(Exit::Usage, "--each starts one process for each item", because)
                    .hint("omit --batch; --concurrency N sets the number of parallel processes"),
            );
        }
        let recipe = self.recipe(text, beside.words)?;
        let processes = match beside.concurrency {
            Auto::Fixed(_) => None,
            Auto::Auto => Some(cores()),
        };
        let unavailable_exits = self.unavailable_exit.clone();
        Ok(Some(HandlerChoice::Exec {
            recipe,
            processes,
            unavailable_exits,
        }))
    }

    /// Returns the note for the start of a job, since `xargs` and GNU parallel would show what programs print.
    pub(in crate::run) fn note(&self, results: Results) -> Option<&'static str> {
        (self.each.is_some() && results == Results::Off).then_some(DISCARDED)
    }

    /// Checks the flags against the columns of the items, before the first item is dispatched.
    ///
    /// # Errors
    /// Fails if they name a column that doesn't exist.
    pub(in crate::run) async fn check_columns(
        &self,
        words: &[OsString],
        opened: &OpenedSource,
    ) -> Result<(), Fault> {
        let Some(text) = &self.each else { return Ok(()) };
        let columns = match opened.source.columns() {
            [] => first_row::keys(opened).await,
            columns => columns.to_vec(),
        };
        self.check_against(text, words, opened.source.has_data(), &columns)
    }

    fn check_against(
        &self,
        text: &str,
        words: &[OsString],
        has_data: bool,
        columns: &[String],
    ) -> Result<(), Fault> {
        let checked = self.recipe(text, words)?.check(has_data, columns);
        checked.map_err(|why| {
            let hint = first_row::doubt("", columns).unwrap_or(why.there_is);
            Fault::new(Exit::Usage, WHAT, why.what).hint(hint)
        })
    }

    /// Checks the flags against the first row, if only that is known; `None` for items that are only counted.
    ///
    /// # Errors
    /// Same as [`EachArgs::check_columns`].
    pub(crate) fn check_row(&self, words: &[OsString], row: Option<&str>) -> Result<(), Fault> {
        let Some(text) = &self.each else { return Ok(()) };
        let columns = row.map(first_row::keys_of).unwrap_or_default();
        self.check_against(text, words, row.is_some(), &columns)
    }

    fn recipe(&self, text: &str, words: &[OsString]) -> Result<Recipe, Fault> {
        let recipe = match (self.shell, text.is_empty(), words.is_empty()) {
            (_, false, false) => {
                let because = "it has a text, and words follow -- too";
                return Err(usage(
                    because,
                    "use one of them: --each 'COMMAND…', or --each -- COMMAND…",
                ));
            }
            (_, true, true) => {
                let because = "it names no program";
                return Err(usage(
                    because,
                    "--each 'gzip -k {file}', or --each -- gzip -k {file}",
                ));
            }
            (true, true, _) => {
                let because = "--shell needs one text";
                return Err(usage(because, "--shell --each 'sort \"$ROW_in\" > \"$ROW_out\"'"));
            }
            (true, false, _) => ShellText::parse(text).map(Recipe::Shell),
            (false, true, _) => {
                check_program(words)?;
                let words = words.iter().map(|word| word.to_str());
                let words: Option<Vec<&str>> = words.collect();
                let Some(words) = words else {
                    let because = "an argument is not UTF-8";
                    return Err(usage(because, "pass it as a column, or inside a script"));
                };
                Argv::parse(&words, self.allow_dashes).map(Recipe::Argv)
            }
            (false, false, _) => {
                let words = split(text)?;
                Argv::parse(&words, self.allow_dashes).map(Recipe::Argv)
            }
        };
        recipe.map_err(|why| usage(&why.to_string(), hint(&why)))
    }
}

fn usage(because: &str, hint: &str) -> Fault {
    Fault::new(Exit::Usage, WHAT, because).hint(hint)
}

/// Splits a command into words as a shell would. Refuses syntax that only a shell understands.
fn split(text: &str) -> Result<Vec<String>, Fault> {
    let Some(words) = shlex::split(text) else {
        let because = "it has an unclosed quote or ends with \\";
        return Err(usage(because, "give separate words: --each -- COMMAND…"));
    };
    if let Some(word) = words.iter().find(|word| word.contains(SHELL_VARIABLE)) {
        let because = format!("{word} would not be expanded: there is no shell");
        let hint = "use {column} for a value; or --shell before --each, where $ROW_column is one";
        return Err(usage(&because, hint));
    }
    match shell_syntax::found(text) {
        None => Ok(words),
        Some(word) => {
            let because = format!("{word} would be taken literally: there is no shell");
            let hint = "--shell --each 'sort \"$ROW_in\" > \"$ROW_out\"'; to pass it literally, quote \
                it as '…' or use --each -- COMMAND…";
            Err(usage(&because, hint))
        }
    }
}

/// Returns the hint for an invalid template.
fn hint(why: &ProgramFault) -> &'static str {
    match why {
        ProgramFault::NoProgram => "--each 'gzip -k {file}'",
        ProgramFault::ProgramVaries(_) => "--shell --each '\"$ROW_program\" …', if intended",
        ProgramFault::Argument(..) => "use {column} for a value, {{ and }} for braces",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(text: &str, shell: bool) -> EachArgs {
        EachArgs {
            each: Some(text.to_owned()),
            shell,
            allow_dashes: false,
            unavailable_exit: Vec::new(),
        }
    }

    #[test]
    fn a_text_is_split_into_words_and_words_are_taken_as_they_are() {
        let from_text = each("sort -o {out} 'a b' {in}", false).recipe("sort -o {out} 'a b' {in}", &[]);
        let words = ["sort", "-o", "{out}", "a b", "{in}"].map(OsString::from);
        let from_words = each("", false).recipe("", &words);
        assert_eq!(from_text.expect("sound"), from_words.expect("sound"));
    }

    #[test]
    fn what_can_not_be_started_is_told_with_something_to_try() {
        let words = ["true".into()];
        let flag = ["--shell".into(), "wc".into()];
        let cases: [(&str, bool, &[OsString], &str); 9] = [
            ("", false, &[], "names no program"),
            ("", true, &words, "needs one text"),
            ("true", false, &words, "words follow --"),
            ("", false, &flag, "--shell is in the program's place"),
            ("echo 'x", false, &[], "an unclosed quote"),
            ("echo {x", false, &[], "unclosed {"),
            ("{x} y", false, &[], "has a placeholder"),
            ("cat {x} 2>/dev/null", false, &[], "there is no shell"),
            ("echo \"$ROW_x\"", false, &[], "would not be expanded"),
        ];
        for (text, shell, words, because) in cases {
            let fault = each(text, shell).recipe(text, words).expect_err("refused");
            assert!(fault.because[0].contains(because), "{fault:?}");
            assert!(fault.exit == Exit::Usage && fault.hint.is_some(), "{fault:?}");
        }
    }
}
