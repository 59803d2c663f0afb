//! The arguments of a program that is started once for each item: texts with places for what the item carries.
//!
//! `{column}` is a member of the item's row, `{/a/b}` one by JSON pointer (RFC 6901), `{index}`, `{key}` and `{attempt}` are
//! the item's own, `{}` is the row's only member (the index where there are no rows), `{{` and `}}` are braces.
//!
//! What holds: a template of n arguments gives n arguments, whatever the values are; the text around a place stays; a
//! value never begins an argument with `-` unless that is allowed.

mod fill;
mod recipe;
mod row;
mod shell;

use std::fmt;

pub use self::fill::{ItemFacts, Unfit};
pub use self::recipe::{Filled, Recipe};
pub use self::shell::{SHELL_PREFIX, ShellText};

/// The code of an item that is abandoned unsent, because what it carries doesn't fit the template.
pub const TEMPLATE_VALUE: &str = "TEMPLATE_VALUE";

/// A program and its arguments, with places for what an item carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argv {
    program: String,
    arguments: Vec<Argument>,
    may_begin_with_dash: bool,
}

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Argument(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Place),
}

/// What is put into an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// `{index}`
    Index,
    /// `{key}`
    Key,
    /// `{attempt}`
    Attempt,
    /// `{}`
    Only,
    /// `{column}` or `{/a/b}`: the names on the way.
    Member(Vec<String>),
}

/// A template can't be used at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    /// Nothing to start.
    #[error("it names no program")]
    NoProgram,
    /// The program would depend on the item.
    #[error("the program {0:?} has a place for a value; only its arguments may")]
    ProgramVaries(String),
    /// A brace without its other one.
    #[error("{0:?} has a brace without its other one; a brace that is text is written twice: {{{{ or }}}}")]
    LoneBrace(String),
    /// `{/a~b}`
    #[error("{0:?} is not a JSON pointer (RFC 6901); one looks like /data or /reply/0/result")]
    NotAPointer(String),
    /// No program can be given such an argument.
    #[error("{0:?} has a NUL character")]
    Nul(String),
}

/// A template names what the items don't carry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Mismatch {
    /// What is wrong.
    pub what: String,
    /// What there is instead, for people.
    pub there_is: String,
}

impl Argv {
    /// Reads a program and its arguments.
    ///
    /// # Errors
    /// When there is no program, it has a place for a value, or an argument's braces don't match.
    pub fn parse<S: AsRef<str>>(words: &[S], may_begin_with_dash: bool) -> Result<Argv, TemplateFault> {
        let (program, arguments) = words.split_first().ok_or(TemplateFault::NoProgram)?;
        let program = match Argument::parse(program.as_ref())?.0.as_slice() {
            [] => return Err(TemplateFault::NoProgram),
            [Part::Text(text)] => text.clone(),
            _ => return Err(TemplateFault::ProgramVaries(program.as_ref().to_owned())),
        };
        let arguments = arguments.iter().map(|text| Argument::parse(text.as_ref()));
        Ok(Argv {
            program,
            arguments: arguments.collect::<Result<_, _>>()?,
            may_begin_with_dash,
        })
    }

    /// The program, the same for all items.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The arguments of one item, without the program.
    ///
    /// # Errors
    /// When the item's values don't fit; they are nobody else's fault.
    pub fn fill(&self, item: &ItemFacts<'_>) -> Result<Vec<String>, Unfit> {
        let row = row::Row::of(item.data);
        let filled = self.arguments.iter();
        filled
            .map(|argument| argument.fill(item, &row, self.may_begin_with_dash))
            .collect()
    }

    /// Compares the template with the columns of a source: those of a CSV, or the members of a first row.
    ///
    /// # Errors
    /// When it names a column that isn't among them.
    pub fn check(&self, has_data: bool, columns: &[String]) -> Result<(), Mismatch> {
        let places = self.arguments.iter().flat_map(|argument| &argument.0);
        places
            .filter_map(|part| match part {
                Part::Text(_) => None,
                Part::Value(place) => Some(place),
            })
            .try_for_each(|place| place.check(has_data, columns))
    }
}

impl Place {
    fn parse(text: &str) -> Result<Place, TemplateFault> {
        Ok(match text {
            "" => Place::Only,
            "index" => Place::Index,
            "key" => Place::Key,
            "attempt" => Place::Attempt,
            _ => match text.strip_prefix('/') {
                None => Place::Member(vec![text.to_owned()]),
                Some(rest) => {
                    let names = rest.split('/').map(unescaped).collect::<Option<_>>();
                    Place::Member(names.ok_or_else(|| TemplateFault::NotAPointer(text.to_owned()))?)
                }
            },
        })
    }

    fn check(&self, has_data: bool, columns: &[String]) -> Result<(), Mismatch> {
        let there_is = there_is(has_data, columns);
        match self {
            Place::Only if has_data && columns.len() > 1 => Err(Mismatch {
                what: format!("{{}} is the only member of a row, and here are {}", columns.len()),
                there_is,
            }),
            // Of rows that are no objects nothing is known.
            Place::Member(_) if has_data && columns.is_empty() => Ok(()),
            Place::Member(path) if !columns.contains(&path[0]) => Err(Mismatch {
                what: format!("there is no column for {self}"),
                there_is,
            }),
            _ => Ok(()),
        }
    }
}

/// What may be named instead, for people.
fn there_is(has_data: bool, columns: &[String]) -> String {
    match (has_data, columns) {
        (false, _) => "these items have no data: {index}, {key}, {attempt} or {}".to_owned(),
        (true, columns) => {
            let named: Vec<String> = columns.iter().map(|name| format!("{{{name}}}")).collect();
            format!(
                "one of {}, or {{{{ and }}}} for braces that are text",
                named.join(" ")
            )
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Index => f.write_str("{index}"),
            Place::Key => f.write_str("{key}"),
            Place::Attempt => f.write_str("{attempt}"),
            Place::Only => f.write_str("{}"),
            Place::Member(path) => match path.as_slice() {
                [name] => write!(f, "{{{name}}}"),
                path => {
                    let escaped = |name: &String| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
                    write!(f, "{{{}}}", path.iter().map(escaped).collect::<String>())
                }
            },
        }
    }
}

fn unescaped(token: &str) -> Option<String> {
    let is_escape = |tail: &str| tail.starts_with('0') || tail.starts_with('1');
    let is_fine = token.split('~').skip(1).all(is_escape);
    is_fine.then(|| token.replace("~1", "/").replace("~0", "~"))
}

impl Argument {
    fn parse(text: &str) -> Result<Argument, TemplateFault> {
        if text.contains('\0') {
            return Err(TemplateFault::Nul(text.to_owned()));
        }
        let lone = || TemplateFault::LoneBrace(text.to_owned());
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let end = rest
                .find(['{', '}'])
                .filter(|end| brace == "{" && rest[*end..].starts_with('}'));
            let end = end.ok_or_else(lone)?;
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Value(Place::parse(&rest[..end])?));
            rest = &rest[end + 1..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Argument(parts))
    }
}

#[cfg(test)]
mod tests;
