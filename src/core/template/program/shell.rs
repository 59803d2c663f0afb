//! A text for a shell: what an item carries is passed to it as variables and never becomes part of the text.
//!
//! `$ROW_name` is the member `name` of the row; characters that no variable's name has are `_` there. Only variables that
//! the text names, with `$` or without, are passed on.

use serde_json::value::RawValue;

use super::{ItemFacts, Mismatch, ProgramFault, TemplateFault, ValueFault, there_is};
use crate::template::item::members;
use crate::template::value::{NO_TEXT, string};

/// What the names of variables with an item's values begin with.
pub const SHELL_PREFIX: &str = "ROW_";

/// A text for `sh -c`, and the variables that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellText {
    text: String,
    /// Without their prefix.
    names: Vec<String>,
}

impl ShellText {
    /// Looks for the variables that the text names.
    ///
    /// # Errors
    /// When the text is empty or no program can be given it.
    pub fn parse(text: &str) -> Result<ShellText, ProgramFault> {
        if text.trim().is_empty() {
            return Err(ProgramFault::NoProgram);
        }
        if text.contains('\0') {
            let why = TemplateFault("it has a NUL character, and no program can be given one".to_owned());
            return Err(ProgramFault::Argument(text.to_owned(), why));
        }
        let words = text.match_indices(SHELL_PREFIX).map(|(at, _)| text.split_at(at));
        let mut names: Vec<String> = words.filter_map(|(before, word)| named(before, word)).collect();
        names.sort_unstable();
        names.dedup();
        Ok(ShellText {
            text: text.to_owned(),
            names,
        })
    }

    /// The text, the same for all items.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The variables of one item, with their prefix.
    ///
    /// # Errors
    /// When the item lacks one of them, or no program can be given it.
    pub fn variables(&self, item: &ItemFacts<'_>) -> Result<Vec<(String, String)>, ValueFault> {
        let members: Vec<_> = item.data.into_iter().flat_map(members).collect();
        let valued = |name: &String| {
            let value = value(name, &members)?;
            Ok((format!("{SHELL_PREFIX}{name}"), value))
        };
        self.names.iter().map(valued).collect()
    }

    /// Compares the text with the columns of a source.
    ///
    /// # Errors
    /// When it names a variable that no column has, or has a `{column}`, which a shell would take for its own text.
    pub fn check(&self, has_data: bool, columns: &[String]) -> Result<(), Mismatch> {
        let all: Vec<String> = columns
            .iter()
            .map(|column| format!("\"${SHELL_PREFIX}{}\"", safe(column)))
            .collect();
        let there_is = || match all.as_slice() {
            [] => there_is(has_data, columns),
            all => format!("one of {}", all.join(" ")),
        };
        if let Some(column) = columns
            .iter()
            .find(|column| self.text.contains(&format!("{{{column}}}")))
        {
            let is_braced = self.text.contains(&format!("${{{column}}}"));
            if !is_braced {
                let what =
                    format!("{{{column}}} is no place in a text for a shell: values are variables there");
                let there_is = format!("\"${SHELL_PREFIX}{}\"", safe(column));
                return Err(Mismatch { what, there_is });
            }
        }
        if has_data && columns.is_empty() {
            return Ok(());
        }
        let has = |name: &&String| !columns.iter().any(|column| safe(column) == **name);
        match self.names.iter().find(has) {
            None => Ok(()),
            Some(name) => Err(Mismatch {
                what: format!("there is no column for ${SHELL_PREFIX}{name}"),
                there_is: there_is(),
            }),
        }
    }
}

/// The name in a word `ROW_name`. A `$` need not stand before it: `$((ROW_n * 2))`, `${#ROW_text}` and a program's own
/// look at its environment name it too, and would find nothing there without a word.
fn named(before: &str, word: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name: String = word
        .chars()
        .skip(SHELL_PREFIX.len())
        .take_while(|c| is_part(*c))
        .collect();
    (!before.ends_with(is_part) && !name.is_empty()).then_some(name)
}

/// A column's name as part of a variable's.
pub(super) fn safe(column: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    column.chars().map(fits).collect()
}

fn value(name: &str, members: &[(String, &RawValue)]) -> Result<String, ValueFault> {
    let fault = |what: &str| ValueFault(format!("${SHELL_PREFIX}{name} {what}"));
    let mut found = members.iter().filter(|(column, _)| safe(column) == name);
    let (_, json) = found
        .next()
        .ok_or_else(|| fault("is missing in this item's data"))?;
    if found.next().is_some() {
        return Err(fault("is the name of several columns"));
    }
    let value = match json.get().as_bytes().first() {
        Some(b'n') => return Err(fault("is null")),
        Some(b'"') => string(json.get()).ok_or_else(|| fault(NO_TEXT))?.into_owned(),
        _ => json.get().to_owned(),
    };
    if value.contains('\0') {
        return Err(fault("has a NUL character, and no program can be given one"));
    }
    Ok(value)
}
