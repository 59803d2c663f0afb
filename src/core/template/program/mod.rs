//! Program that is started once for each item: its arguments as templates, or a text for a shell.
//!
//! Invariants: a template of n arguments gives n arguments, whatever the values are; the text around a placeholder is
//! unchanged; no value can make an argument begin with `-` unless that is allowed.

mod recipe;
mod shell;

pub use self::recipe::{Filled, Recipe};
pub use self::shell::{SHELL_PREFIX, ShellText};
use super::placeholder::Source;
use super::value::fault;
use super::{Item, Member, Place, Roots, Template, TemplateFault, ValueFault};
use crate::ids::{Attempt, ItemIndex};
use windrow_words::{Message, request as say};

/// Program and its arguments, with placeholders for the item's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argv {
    program: String,
    arguments: Vec<Template>,
    roots: Roots,
    may_begin_with_dash: bool,
}

/// Data for one attempt of one item.
#[derive(Clone, Copy, Debug)]
pub struct ItemFacts<'a> {
    /// Index of the item.
    pub index: ItemIndex,
    /// Key of the item, the same for every attempt and run.
    pub key: &'a str,
    /// Number of this attempt.
    pub attempt: Attempt,
    /// Row of the item as JSON; `None` if items are only counted.
    pub data: Option<&'a str>,
}

/// Reason why a program can't be started for any item.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProgramFault {
    /// The program name is missing or empty.
    #[error("{}", say::no_program())]
    NoProgram,
    /// The program name has a placeholder, so it would depend on the item.
    #[error("{}", say::program_varies(format!("{:?}", .0)))]
    ProgramVaries(String),
    /// An argument is not a valid template.
    #[error("{}", say::wrong_argument(format!("{:?}", .0), .1.0.clone()))]
    Argument(String, TemplateFault),
}

/// Error for a template that names values which the items don't have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Mismatch {
    /// Description of the fault.
    pub what: String,
    /// Names that exist instead, for people.
    pub there_is: String,
}

impl Argv {
    /// Parses a program and its arguments.
    ///
    /// # Errors
    /// Fails if there is no program, it has a placeholder, or an argument is not a valid template.
    pub fn parse<S: AsRef<str>>(words: &[S], may_begin_with_dash: bool) -> Result<Argv, ProgramFault> {
        let (program, arguments) = words.split_first().ok_or(ProgramFault::NoProgram)?;
        let mut roots = Roots::default();
        let mut parsed = |text: &str| {
            let wrong = |why| ProgramFault::Argument(text.to_owned(), why);
            Template::parse(text, Place::Argument, &mut roots).map_err(wrong)
        };
        let name = parsed(program.as_ref())?;
        if !name.is_constant() {
            return Err(ProgramFault::ProgramVaries(program.as_ref().to_owned()));
        }
        let arguments = arguments.iter().map(|text| parsed(text.as_ref()));
        let arguments = arguments.collect::<Result<_, _>>()?;
        let program = name.text();
        if program.is_empty() {
            return Err(ProgramFault::NoProgram);
        }
        Ok(Argv {
            program,
            arguments,
            roots,
            may_begin_with_dash,
        })
    }

    /// Returns the program, the same for all items.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Returns the arguments of one item, without the program.
    ///
    /// # Errors
    /// Fails if the item's values don't fit; the fault is in the item alone.
    pub fn fill(&self, item: &ItemFacts<'_>) -> Result<Vec<String>, ValueFault> {
        let item = Item::new(&self.roots, item.data, item.index.0, item.key, item.attempt.get());
        self.arguments
            .iter()
            .map(|argument| self.argument(argument, &item))
            .collect()
    }

    fn argument(&self, argument: &Template, item: &Item<'_>) -> Result<String, ValueFault> {
        let mut text = String::new();
        argument.render(item, &mut text)?;
        match argument.leading() {
            Some(leading) if !self.may_begin_with_dash && text.starts_with('-') => {
                Err(fault(leading, say::is_option("./ or --", "--name={column}")))
            }
            _ => Ok(text),
        }
    }

    /// Checks the template against the columns of a source: those of a CSV, or the members of a first row.
    ///
    /// # Errors
    /// Fails if it names a column that isn't among them.
    pub fn check(&self, has_data: bool, columns: &[String]) -> Result<(), Mismatch> {
        let mismatch = |what: Message| Mismatch {
            what: what.to_string(),
            there_is: there_is(has_data, columns),
        };
        let mut placeholders = self.arguments.iter().flat_map(Template::placeholders);
        let wants_only = placeholders.any(|one| one.source == Source::Only);
        if wants_only && has_data && columns.len() > 1 {
            return Err(mismatch(say::not_only_column("{}", columns.len())));
        }
        // The columns of rows that aren't objects are unknown.
        if has_data && columns.is_empty() {
            return Ok(());
        }
        let names = self.roots.names();
        let written = self.arguments.iter().flat_map(Template::placeholders);
        let missing = written
            .filter_map(|one| match &one.source {
                Source::Member(member) => Some(member),
                _ => None,
            })
            .find(|member| !columns.contains(&names[member.root()]));
        let Some(missing) = missing.map(Member::written) else {
            return Ok(());
        };
        let fault = mismatch(say::no_column(format!("{{{missing}}}")));
        Err(match of_parallel(missing, columns) {
            Some(there_is) => Mismatch {
                there_is: there_is.to_string(),
                ..fault
            },
            None => fault,
        })
    }
}

/// Returns the replacement for a placeholder of GNU parallel, for people.
fn of_parallel(written: &str, columns: &[String]) -> Option<Message> {
    let column = columns.first().map_or("column", String::as_str);
    let value = format!("{SHELL_PREFIX}{}", shell::safe(column));
    Some(match written {
        "#" => say::from_zero("{index}"),
        "." => say::in_shell("--shell", format!("\"${{{value}%.*}}\"")),
        "/" => say::in_shell("--shell", format!("\"${{{value}##*/}}\"")),
        "//" => say::in_shell("--shell", format!("\"$(dirname \"${value}\")\"")),
        "/." => say::in_shell("--shell", format!("\"$(basename \"${{{value}%.*}}\")\"")),
        number if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            say::named_columns(format!("{{{column}}}"))
        }
        _ => return None,
    })
}

/// Returns the names that may be used instead, for people.
fn there_is(has_data: bool, columns: &[String]) -> String {
    if !has_data {
        return say::without_data("{index}, {key}, {attempt} or {}").to_string();
    }
    let named: Vec<String> = columns.iter().map(|name| format!("{{{name}}}")).collect();
    say::among_columns(named.join(" "), "{{", "}}").to_string()
}

#[cfg(test)]
mod tests;
