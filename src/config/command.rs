//! Command that businesses may name: a worker that is kept running, or a program started for each item.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use super::check::Faults;
use windrow_core::template::program::{Argv, ProgramFault, Recipe, ShellText};

/// Command with exactly one of `cmd`, `each` and `shell`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Command {
    /// Program and arguments of a worker; not a shell line.
    pub cmd: Vec<String>,
    /// Number of workers; 1 by default.
    pub workers: Option<NonZeroU32>,
    /// Program and arguments run for each item, with placeholders such as `{column}`.
    pub each: Vec<String>,
    /// Shell script run for each item, with variables such as `$ROW_column`.
    pub shell: Option<String>,
    /// Maximum number of processes at once; by default one per core.
    pub processes: Option<NonZeroU32>,
    /// True if an item's value may begin an argument with `-`.
    pub allow_dashes: bool,
    /// Exit codes, besides 75, with which a program reports that a dependency is unavailable; treated like a 503.
    pub unavailable_exits: Vec<u8>,
    /// Working directory of item processes; by default the node's.
    pub cwd: Option<PathBuf>,
    /// Environment variables in addition to the node's.
    pub env: BTreeMap<String, String>,
}

impl Command {
    /// Returns the recipe that starts a program for each item, or `None` for a worker.
    ///
    /// # Errors
    /// Fails if its placeholders can't be parsed.
    pub fn recipe(&self) -> Result<Option<Recipe>, ProgramFault> {
        match (&self.shell, self.each.is_empty()) {
            (Some(text), _) => ShellText::parse(text).map(Recipe::Shell).map(Some),
            (None, false) => Argv::parse(&self.each, self.allow_dashes)
                .map(Recipe::Argv)
                .map(Some),
            (None, true) => Ok(None),
        }
    }

    /// Returns the program; for a worker, the first word of its command.
    pub fn program(&self) -> &str {
        match (&self.shell, self.each.first().or_else(|| self.cmd.first())) {
            (Some(_), _) => "sh",
            (None, program) => program.map_or("", String::as_str),
        }
    }

    /// Reports contradicting members; `key` is the key of the command.
    pub(super) fn check(&self, key: &str, faults: &mut Faults) {
        let ways = [!self.cmd.is_empty(), !self.each.is_empty(), self.shell.is_some()];
        let ways = ways.into_iter().filter(|is_there| *is_there).count();
        let has_program = ways > 1 || !self.program().is_empty();
        faults.unless(
            has_program,
            &format!("{key}.cmd"),
            "the program is missing",
            "[\"python3\", \"-u\", \"worker.py\"]",
        );
        faults.unless(
            ways <= 1,
            key,
            "cmd (a worker), each and shell (a process per item) exclude each other",
            "only one of the three",
        );
        if let Err(why) = self.recipe() {
            let name = if self.shell.is_some() { "shell" } else { "each" };
            faults.unless(
                false,
                &format!("{key}.{name}"),
                &why.to_string(),
                "[\"convert\", \"{in}\", \"{out}\"]",
            );
        }
        let is_worker = self.each.is_empty() && self.shell.is_none();
        faults.unless(
            is_worker || self.workers.is_none(),
            &format!("{key}.workers"),
            "without a worker: a process is started for each item",
            "processes = 4, for the number that run at once",
        );
        let has_own = self.processes.is_some()
            || self.allow_dashes
            || !self.unavailable_exits.is_empty()
            || self.cwd.is_some();
        faults.unless(
            !(is_worker && has_own),
            key,
            "processes, allow_dashes, unavailable_exits and cwd only apply to a process per item",
            "each = [\"convert\", \"{in}\", \"{out}\"], or remove them",
        );
    }
}
