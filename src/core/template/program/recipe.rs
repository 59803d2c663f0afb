//! Recipe to start a program for an item: by its arguments, or by a shell.

use super::{Argv, ItemFacts, Mismatch, ShellText, ValueFault};

/// Shell that runs a text.
const SHELL: &str = "sh";

/// Way to start a program for an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// Program and its arguments; no shell is involved.
    Argv(Argv),
    /// Text that a shell runs.
    Shell(ShellText),
}

/// Arguments and variables for one item's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// Arguments, without the program.
    pub arguments: Vec<String>,
    /// Variables in addition to those that every process has.
    pub variables: Vec<(String, String)>,
}

impl Recipe {
    /// Returns the program, the same for all items.
    pub fn program(&self) -> &str {
        match self {
            Recipe::Argv(argv) => argv.program(),
            Recipe::Shell(_) => SHELL,
        }
    }

    /// Returns the arguments and variables for one item's process.
    ///
    /// # Errors
    /// Fails if the item's values don't fit; the fault is in the item alone.
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

    /// Checks it against the columns of a source: those of a CSV, or the members of a first row.
    ///
    /// # Errors
    /// Fails if it names a value that isn't among them.
    pub fn check(&self, has_data: bool, columns: &[String]) -> Result<(), Mismatch> {
        match self {
            Recipe::Argv(argv) => argv.check(has_data, columns),
            Recipe::Shell(shell) => shell.check(has_data, columns),
        }
    }
}
