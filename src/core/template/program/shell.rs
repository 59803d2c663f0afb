//! Text for a shell: an item's values are passed to it as variables and never become part of the text.
//!
//! `$ROW_name` is the member `name` of the row; characters that are not allowed in a variable's name are replaced by
//! `_`. Only variables that the text names, with `$` or without, are passed on.

use serde_json::value::RawValue;
use windrow_words::request as say;

use super::{ItemFacts, Mismatch, ProgramFault, TemplateFault, ValueFault, there_is};
use crate::template::item::members;
use crate::template::value::{no_text, string};

/// Prefix of the variables that hold an item's values.
pub const SHELL_PREFIX: &str = "ROW_";

/// Text for `sh -c`, and the variables that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellText {
    text: String,
    /// Names of the variables, without their prefix.
    names: Vec<String>,
}

impl ShellText {
    /// Parses a text and finds the variables that it names.
    ///
    /// # Errors
    /// Fails if the text is empty or has a NUL character, which can't be passed to a program.
    pub fn parse(text: &str) -> Result<ShellText, ProgramFault> {
        if text.trim().is_empty() {
            return Err(ProgramFault::NoProgram);
        }
        if text.contains('\0') {
            let why = TemplateFault(say::text_nul());
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

    /// Returns the text, the same for all items.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the variables of one item, with their prefix.
    ///
    /// # Errors
    /// Fails if the item lacks one of them, or if a value can't be passed to a program.
    pub fn variables(&self, item: &ItemFacts<'_>) -> Result<Vec<(String, String)>, ValueFault> {
        let members: Vec<_> = item.data.into_iter().flat_map(members).collect();
        let valued = |name: &String| {
            let value = value(name, &members)?;
            Ok((format!("{SHELL_PREFIX}{name}"), value))
        };
        self.names.iter().map(valued).collect()
    }

    /// Checks the text against the columns of a source.
    ///
    /// # Errors
    /// Fails if it names a variable that no column has, or contains a `{column}`, which a shell would take for its
    /// own text.
    pub fn check(&self, has_data: bool, columns: &[String]) -> Result<(), Mismatch> {
        let all: Vec<String> = columns
            .iter()
            .map(|column| format!("\"${SHELL_PREFIX}{}\"", safe(column)))
            .collect();
        let there_is = || match all.as_slice() {
            [] => there_is(has_data, columns),
            all => say::among_variables(all.join(" ")).to_string(),
        };
        if let Some(column) = columns
            .iter()
            .find(|column| self.text.contains(&format!("{{{column}}}")))
        {
            let is_braced = self.text.contains(&format!("${{{column}}}"));
            if !is_braced {
                let what = say::not_in_shell(format!("{{{column}}}")).to_string();
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
                what: say::no_column(format!("${SHELL_PREFIX}{name}")).to_string(),
                there_is: there_is(),
            }),
        }
    }
}

/// Returns the name in a word `ROW_name`. A `$` before it isn't required: `$((ROW_n * 2))`, `${#ROW_text}` and a
/// program that reads its environment use it without one, and would silently find nothing there.
fn named(before: &str, word: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name: String = word
        .chars()
        .skip(SHELL_PREFIX.len())
        .take_while(|c| is_part(*c))
        .collect();
    (!before.ends_with(is_part) && !name.is_empty()).then_some(name)
}

/// Converts a column's name to a part of a variable's name.
pub(super) fn safe(column: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    column.chars().map(fits).collect()
}

fn value(name: &str, members: &[(String, &RawValue)]) -> Result<String, ValueFault> {
    let whose = || say::of_variable(format!("${SHELL_PREFIX}{name}"));
    let fault = |what| ValueFault::from(say::value_is(whose(), what));
    let mut found = members.iter().filter(|(column, _)| safe(column) == name);
    let (_, json) = found.next().ok_or_else(|| fault(say::is_missing()))?;
    if found.next().is_some() {
        return Err(fault(say::is_ambiguous()));
    }
    let value = match json.get().as_bytes().first() {
        Some(b'n') => return Err(fault(say::is_null())),
        Some(b'"') => string(json.get()).ok_or_else(|| fault(no_text()))?.into_owned(),
        _ => json.get().to_owned(),
    };
    if value.contains('\0') {
        return Err(fault(say::has_nul()));
    }
    Ok(value)
}
