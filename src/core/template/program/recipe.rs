//! How a program is started for an item: by its arguments, or by a shell.

use super::{Argv, ItemFacts, Mismatch, ShellText, ValueFault};

/// What runs a text.
const SHELL: &str = "sh";

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// A program and its arguments; no shell is involved.
    Argv(Argv),
    /// A text for a shell.
    Shell(ShellText),
}

/// What one item's process is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// The arguments, without the program.
    pub arguments: Vec<String>,
    /// Variables beside those that every process has.
    pub variables: Vec<(String, String)>,
}

impl Recipe {
    /// The program, the same for all items.
    pub fn program(&self) -> &str {
        match self {
            Recipe::Argv(argv) => argv.program(),
            Recipe::Shell(_) => SHELL,
        }
    }

    /// What one item's process is started with.
    ///
    /// # Errors
    /// When the item's values don't fit; they are nobody else's fault.
    pub fn fill(&self, item: &ItemFacts<'_>) -> Result<Filled, ValueFault> {
        match self {
            Recipe::Argv(argv) => Ok(Filled {
                arguments: argv.fill(item)?,
                variables: Vec::new(),
            }),
            Recipe::Shell(shell) => Ok(Filled {
                arguments: vec!["-c".to_owned(), shell.text().to_owned()],
                variables: shell.variables(item)?,
            }),
        }
    }

    /// Compares it with the columns of a source: those of a CSV, or the members of a first row.
    ///
    /// # Errors
    /// When it names what isn't among them.
    pub fn check(&self, has_data: bool, columns: &[String]) -> Result<(), Mismatch> {
        match self {
            Recipe::Argv(argv) => argv.check(has_data, columns),
            Recipe::Shell(shell) => shell.check(has_data, columns),
        }
    }
}
