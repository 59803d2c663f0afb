//! The command of a worker: found before anything is started, and given the environment that the protocol names.
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

/// The code of a command that can't be started.
pub const COMMAND_NOT_STARTED: &str = "COMMAND_NOT_STARTED";
/// The variables that `serve` passes on.
const CLEAN_VARIABLES: [&str; 3] = ["PATH", "HOME", "LANG"];
/// Folders of a search path that are shown.
const SHOWN_MAX: usize = 3;

/// What a worker finds in its environment beside the `WINDROW_…` variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Everything of the caller (`run`, `try`), or only `PATH`, `HOME` and `LANG` (`serve`).
    pub inherit: Inherit,
    /// More; wins over what is inherited.
    pub variables: Vec<(OsString, OsString)>,
}

/// What is passed on of this process's own environment, given by value: the adapter never reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// All of it.
    All(Vec<(OsString, OsString)>),
    /// Of it only `PATH`, `HOME` and `LANG`.
    Clean(Vec<(OsString, OsString)>),
}

impl Environment {
    /// Of a command that a node's configuration names.
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

/// A program that exists and may be executed, its arguments and its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: BTreeMap<OsString, OsString>,
}

impl Program {
    /// Looks the command up as a shell would.
    pub(crate) fn find(
        argv: &[OsString],
        given: &Environment,
        run: &RunContext,
    ) -> Result<Program, OpenError> {
        Program::with(argv, given, protocol_variables(run))
    }

    /// The same with variables of its own.
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

    /// Whether the command is there and may be executed.
    pub(crate) fn check(argv: &[OsString], given: &Environment) -> Result<(), OpenError> {
        let name = argv
            .first()
            .filter(|name| !name.is_empty())
            .ok_or_else(no_command)?;
        locate(name, given.base().get(OsStr::new("PATH"))).map(drop)
    }

    /// The command for people.
    pub(crate) fn describe(&self) -> String {
        self.argv
            .iter()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Where commands are looked for, for people.
    pub(crate) fn search_path(&self) -> String {
        self.environment
            .get(OsStr::new("PATH"))
            .map(|path| beginning(&path.to_string_lossy()))
            .unwrap_or_default()
    }
}

/// The first folders of a search path that is long.
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

/// A whole command line that was quoted as one word.
fn unquoted(name: &str) -> Option<String> {
    name.contains(char::is_whitespace)
        .then(|| format!("it as words of their own, not quoted as one: -- {name}"))
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
