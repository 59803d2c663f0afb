//! Command of a worker: found before anything is started, and given the environment that the protocol names.
//!
//! Never starts anything.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use windrow_config::Command;
use windrow_core::items::verdict::Failure;
use windrow_engine::ports::handling::handler::{OpenError, RunContext};

/// Code of a command that can't be started.
pub const COMMAND_NOT_STARTED: &str = "COMMAND_NOT_STARTED";
/// Variables that `serve` passes on.
const CLEAN_VARIABLES: [&str; 3] = ["PATH", "HOME", "LANG"];
/// Maximum number of folders shown of a search path.
const SHOWN_MAX: usize = 3;

/// Environment of a worker, without the `WINDROW_…` variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Everything of the caller (`run`, `try`), or only `PATH`, `HOME` and `LANG` (`serve`).
    pub inherit: Inherit,
    /// Additional variables, which override inherited ones.
    pub variables: Vec<(OsString, OsString)>,
}

/// Part of this process's own environment that is passed on, given by value: the adapter never reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// All of these variables.
    All(Vec<(OsString, OsString)>),
    /// Only `PATH`, `HOME` and `LANG` of these variables.
    Clean(Vec<(OsString, OsString)>),
}

impl Environment {
    /// Builds the environment of a command that a node's configuration names.
    pub fn of(command: &Command, given: &[(OsString, OsString)]) -> Environment {
        let variables = command
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        Environment {
            inherit: Inherit::Clean(given.to_vec()),
            variables: variables.collect(),
        }
    }

    fn base(&self) -> BTreeMap<OsString, OsString> {
        let passes = |name: &OsStr| CLEAN_VARIABLES.iter().any(|kept| name == *kept);
        let mut base: BTreeMap<OsString, OsString> = match &self.inherit {
            Inherit::All(all) => all.iter().cloned().collect(),
            Inherit::Clean(all) => all.iter().filter(|(name, _)| passes(name)).cloned().collect(),
        };
        base.extend(self.variables.iter().cloned());
        base
    }
}

/// Program that exists and may be executed, with its arguments and its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: BTreeMap<OsString, OsString>,
}

impl Program {
    /// Looks up the command as a shell would, with the protocol's variables.
    pub(crate) fn find(
        argv: &[OsString],
        given: &Environment,
        run: &RunContext,
    ) -> Result<Program, OpenError> {
        Program::with(argv, given, protocol_variables(run))
    }

    /// Looks up the command as a shell would, with the caller's own variables.
    pub(crate) fn with(
        argv: &[OsString],
        given: &Environment,
        own: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Program, OpenError> {
        let name = argv
            .first()
            .filter(|name| !name.is_empty())
            .ok_or_else(no_command)?;
        let mut environment = given.base();
        let path = locate(name, environment.get(OsStr::new("PATH")))?;
        environment.extend(own);
        Ok(Program {
            path,
            argv: argv.to_vec(),
            environment,
        })
    }

    /// Checks that the command exists and may be executed.
    pub(crate) fn check(argv: &[OsString], given: &Environment) -> Result<(), OpenError> {
        let name = argv
            .first()
            .filter(|name| !name.is_empty())
            .ok_or_else(no_command)?;
        locate(name, given.base().get(OsStr::new("PATH"))).map(drop)
    }

    /// Formats the command line for people.
    pub(crate) fn describe(&self) -> String {
        self.argv
            .iter()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Formats the search path of commands for people.
    pub(crate) fn search_path(&self) -> String {
        self.environment
            .get(OsStr::new("PATH"))
            .map(|path| beginning(&path.to_string_lossy()))
            .unwrap_or_default()
    }
}

/// Shortens a long search path to its first folders.
fn beginning(search_path: &str) -> String {
    let folders: Vec<&str> = search_path.split(':').collect();
    match folders.len().saturating_sub(SHOWN_MAX) {
        0 => search_path.to_owned(),
        more => format!("{}:… ({more} more)", folders[..SHOWN_MAX].join(":")),
    }
}

fn protocol_variables(run: &RunContext) -> impl Iterator<Item = (OsString, OsString)> + use<> {
    let variables = [
        ("WINDROW_TASK", run.shard.task.to_string()),
        ("WINDROW_SHARD", run.shard.no.to_string()),
        ("WINDROW_RUN", run.run.0.to_string()),
        ("WINDROW_EPOCH", run.epoch.0.to_string()),
        ("WINDROW_BUSINESS", run.business.clone()),
        ("WINDROW_MODE", run.mode.as_str().to_owned()),
    ];
    variables
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
}

fn locate(name: &OsStr, search_path: Option<&OsString>) -> Result<PathBuf, OpenError> {
    if name.as_bytes().contains(&b'/') {
        return checked(Path::new(name));
    }
    let search_path = search_path.cloned().unwrap_or_default();
    let found: Vec<PathBuf> = std::env::split_paths(&search_path)
        .map(|dir| dir.join(name))
        .filter(|file| file.is_file())
        .collect();
    let runnable = found.iter().find(|file| is_executable(file));
    match (runnable, found.first()) {
        (Some(file), _) => Ok(file.clone()),
        (None, Some(file)) => Err(not_executable(file)),
        (None, None) => Err(not_found(name, &search_path)),
    }
}

fn checked(file: &Path) -> Result<PathBuf, OpenError> {
    if file.is_dir() {
        return Err(refusal(format!(
            "{} is a directory, not a command; name the program in it",
            file.display()
        )));
    }
    if !file.exists() {
        let hint = unquoted(&file.to_string_lossy());
        let why = format!("command not found: {} does not exist", file.display());
        return Err(OpenError { hint, ..refusal(why) });
    }
    if is_executable(file) {
        Ok(file.to_owned())
    } else {
        Err(not_executable(file))
    }
}

fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, Access::EXEC_OK).is_ok()
}

fn no_command() -> OpenError {
    OpenError {
        hint: Some("-- python3 -u handler.py".to_owned()),
        ..refusal("no command was given".to_owned())
    }
}

fn not_found(name: &OsStr, search_path: &OsStr) -> OpenError {
    let name = name.to_string_lossy();
    let hint = if Path::new(&*name).is_file() {
        Some(format!("./{name}"))
    } else {
        unquoted(&name)
    };
    OpenError {
        hint,
        ..refusal(format!(
            "command not found in PATH={}: {name}",
            beginning(&search_path.to_string_lossy())
        ))
    }
}

/// Suggests a fix if a whole command line was quoted as one word.
fn unquoted(name: &str) -> Option<String> {
    name.contains(char::is_whitespace)
        .then(|| format!("the command as separate words, not quoted as one: -- {name}"))
}

fn not_executable(file: &Path) -> OpenError {
    let file = file.display();
    let hint = Some(format!("chmod +x {file}, or name its interpreter"));
    OpenError {
        hint,
        ..refusal(format!("permission denied: {file} is not executable"))
    }
}

fn refusal(message: String) -> OpenError {
    Failure::new(COMMAND_NOT_STARTED, message).into()
}
