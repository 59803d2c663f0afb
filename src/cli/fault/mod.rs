//! User-facing errors in three parts: what failed, why, and a remedy. The only module that maps errors to exit codes.

mod client;
mod flags;

pub use client::Names;
pub(crate) use flags::{as_flags, know_command_line};

use std::fmt;

use super::exit::Exit;
use super::process;

use windrow_engine::ports::handling::handler::{BAD_HANDLER, OpenError};
use windrow_engine::ports::{NO_DATABASE, RESTORE_CUT_OFF, STAYED_AWAY, StoreError};
use windrow_node::handlers::COMMAND_NOT_STARTED;
use windrow_node::sources::OpenSourceError;
use windrow_node::{LockError, NotStarted, StartError};

/// Error that ends a command, as the user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Exit code of the process.
    pub exit: Exit,
    /// Summary of the failure, such as `not signed in`.
    pub what: String,
    /// Reasons, each printed on its own line.
    pub because: Vec<String>,
    /// Suggested remedy, printed after `try`.
    pub hint: Option<String>,
}

impl Fault {
    /// Creates a fault with one reason and no hint.
    pub fn new(exit: Exit, what: impl Into<String>, because: impl Into<String>) -> Fault {
        Fault {
            exit,
            what: what.into(),
            because: vec![because.into()],
            hint: None,
        }
    }

    /// Creates the fault for an output format that the command doesn't support.
    pub fn no_form(because: &str, hint: &str) -> Fault {
        Fault::new(Exit::Usage, "unsupported output format", because).hint(hint)
    }

    /// Sets the hint and replaces an earlier one.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }

    /// Replaces flag `usual` by `here` at the start of each reason, for a command that names the flag differently.
    #[must_use]
    pub fn renaming(mut self, usual: &str, here: &str) -> Fault {
        for because in &mut self.because {
            if let Some(rest) = because.strip_prefix(usual).filter(|rest| rest.starts_with(':')) {
                *because = format!("{here}{rest}");
            }
        }
        self
    }

    /// Sets the hint unless the fault has one already.
    #[must_use]
    pub fn or_hint(self, hint: &str) -> Fault {
        if self.hint.is_some() {
            self
        } else {
            self.hint(hint)
        }
    }

    /// Puts "did you mean `name`?" before the present hint, if a name is known.
    #[must_use]
    pub fn meant(mut self, name: Option<&str>) -> Fault {
        if let Some(name) = name {
            let rest = self.hint.map(|hint| format!(" or {hint}")).unwrap_or_default();
            self.hint = Some(format!("did you mean {name}?{rest}"));
        }
        self
    }

    /// Creates the fault for an invalid configuration, one reason for each error in it.
    pub fn of_config(faults: &[windrow_config::Fault]) -> Fault {
        let because = faults.iter().map(windrow_config::Fault::to_string).collect();
        let what = "invalid configuration".to_owned();
        let hint = Some("`windrow config default` prints all keys with their defaults".to_owned());
        Fault {
            exit: Exit::Config,
            what,
            because,
            hint,
        }
    }

    /// Returns the single object that `-o json` prints instead of an outcome.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({ "error": {
            "exit_code": self.exit as u8,
            "what": self.what,
            "because": self.because,
            "try": self.hint,
        }})
    }

    /// Creates the fault for an internal error.
    pub fn bug(because: impl Into<String>) -> Fault {
        Fault::new(Exit::Bug, "this is a bug in windrow", because)
            .hint("report it with the command and the output above; saved progress is safe")
    }
}

/// Returns the system's message for a file error, without the error number.
pub(crate) fn of_file(error: &std::io::Error) -> String {
    use std::io::ErrorKind as K;
    match error.kind() {
        K::NotFound => "the file doesn't exist".to_owned(),
        K::PermissionDenied => "permission denied".to_owned(),
        K::IsADirectory => "it is a directory".to_owned(),
        K::NotADirectory => "a component of the path isn't a directory".to_owned(),
        K::AlreadyExists => "the file exists".to_owned(),
        K::BrokenPipe => "the program at the other end of the pipe has closed it".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_owned()
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        for because in &self.because {
            write!(f, "\n  because {because}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  try  {hint}"),
            None => Ok(()),
        }
    }
}

/// True if a command line starts a node, not a job.
fn is_node(command: &str) -> bool {
    let mut words = command.split_whitespace().skip(1);
    let verb = words.find(|word| !word.starts_with('-'));
    matches!(verb, Some("serve" | "dev"))
}

/// Name of the state directory in messages, where a flag can choose it.
const STATE: &str = "--state directory";

impl Fault {
    /// Creates the fault for a directory that can't be locked. `place` is its name on the command line.
    pub(crate) fn of_lock(error: &LockError, place: &str) -> Fault {
        let (exit, hint) = match error {
            LockError::LockedBy { command, .. } if is_node(command) => {
                (Exit::Conflict, format!("stop that node, or use another {place}"))
            }
            LockError::LockedBy { .. } => (
                Exit::Conflict,
                format!(
                    "`windrow job list` shows a run that uses it, `windrow job stop NAME` stops it; or \
                        use another {place}"
                ),
            ),
            LockError::ReadOnly { .. } => (Exit::Failed, format!("make it writable, or use another {place}")),
            LockError::Unsafe { path, .. } => (
                Exit::Config,
                format!(
                    "take ownership (chown, chmod go-w {}) if you trust its contents; or use another \
                        {place}",
                    path.display()
                ),
            ),
            LockError::NotADirectory { .. } => (Exit::Failed, format!("remove it, or use another {place}")),
            LockError::Io { cause, .. } if cause.kind() == std::io::ErrorKind::StorageFull => (
                Exit::Failed,
                format!("free space on the full disk, or use another {place}; nothing was started"),
            ),
            LockError::Io { .. } => (Exit::Failed, format!("use your own {place} on a local disk")),
        };
        let because = match error {
            LockError::Io { path, cause } if cause.kind() == std::io::ErrorKind::NotFound => {
                format!("the directory {} can't be created", path.display())
            }
            LockError::Io { path, cause } => {
                format!("{} can't be locked: {}", path.display(), of_file(cause))
            }
            other => other.to_string(),
        };
        Fault::new(exit, "can't use the state directory", because).hint(hint)
    }

    /// Creates the fault for an unusable database. `place` is the name of its directory on the command line.
    pub(crate) fn of_store(error: &StoreError, place: &str) -> Fault {
        let (exit, hint) = match error {
            StoreError::NewerSchema(_) => (
                Exit::Config,
                format!("use the newer windrow, or choose another {place}"),
            ),
            StoreError::OlderSchema => (
                Exit::Config,
                "run `windrow db migrate --config FILE` once for all nodes".to_owned(),
            ),
            StoreError::Refused(text) if text.contains(NO_DATABASE) => {
                let name = text.rsplit(NO_DATABASE).next().unwrap_or_default();
                let hint = format!(
                    "run CREATE DATABASE {name} there, for the user of store.url; or set another \
                        database in store.url"
                );
                (Exit::Failed, hint)
            }
            StoreError::Unavailable(text) | StoreError::Refused(text)
                if text.starts_with("can't connect") || text.starts_with(STAYED_AWAY) =>
            {
                let hint = "check that the server runs, and check store.url and store.password_file";
                (Exit::Failed, hint.to_owned())
            }
            error if error.text().contains(RESTORE_CUT_OFF) => {
                let hint = "run `windrow db restore FILE --replace` with the same backup; the previous \
                    files are next to it, as .before-…";
                (Exit::Conflict, hint.to_owned())
            }
            error if error.is_damaged() => {
                let hint = "keep the file, it is damaged or not a database; restore the last backup \
                    (`windrow db backup` makes one)";
                (Exit::Failed, hint.to_owned())
            }
            StoreError::Unavailable(_) | StoreError::Refused(_) => {
                let limits = process::limits_text().map(|limits| format!(", and the limits: {limits}"));
                let limits = limits.unwrap_or_default();
                let hint = format!(
                    "check the disk's free space and permissions{limits}; then run it again; no saved \
                        data is lost"
                );
                (Exit::Failed, hint)
            }
        };
        Fault::new(exit, "can't use the database", error.to_string()).hint(hint)
    }

    /// Creates the fault for a node that can't start. `place` is the name of its directory on the command line.
    pub(crate) fn of_start(error: &StartError, place: &str) -> Fault {
        match error {
            StartError::Store(error) | StartError::Tree(NotStarted::Store(error)) => {
                Fault::of_store(error, place)
            }
            StartError::Tree(error @ NotStarted::NameTaken(_)) => {
                Fault::new(Exit::Conflict, "can't start the node", error.to_string())
                    .hint("set a unique node.id, or stop the other node")
            }
            StartError::Tree(error @ NotStarted::Actors(_)) => Fault::bug(error.to_string()),
        }
    }
}

impl From<LockError> for Fault {
    fn from(error: LockError) -> Fault {
        Fault::of_lock(&error, STATE)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::of_store(&error, STATE)
    }
}

impl From<StartError> for Fault {
    fn from(error: StartError) -> Fault {
        Fault::of_start(&error, STATE)
    }
}

impl From<OpenSourceError> for Fault {
    fn from(error: OpenSourceError) -> Fault {
        match error {
            OpenSourceError::Store(error) => error.into(),
            OpenSourceError::Spool { .. } => {
                Fault::new(Exit::Failed, error.what(), error.because()).hint(error.hint())
            }
            _ => Fault::new(Exit::Rejected, error.what(), error.because()).hint(error.hint()),
        }
    }
}

impl From<OpenError> for Fault {
    fn from(error: OpenError) -> Fault {
        let hint = match &*error.failure.code {
            COMMAND_NOT_STARTED => "check the spelling, or give the program's path",
            _ => "correct the value; `windrow help run` has examples",
        };
        let hint = error.hint.as_deref().unwrap_or(hint);
        let exit = match &*error.failure.code {
            BAD_HANDLER => Exit::Usage,
            _ => Exit::Rejected,
        };
        Fault::new(exit, "can't use the handler", error.failure.message).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_fault_names_the_flag_that_was_typed() {
        let because = "--key-column: the items have no column a";
        let fault = super::Fault::new(super::Exit::Rejected, "no", because);
        let told = fault.renaming("--key-column", "--data").because;
        assert_eq!(told, ["--data: the items have no column a"]);
    }

    use super::*;

    #[test]
    fn a_fault_has_three_parts() {
        let fault = Fault::new(Exit::Rejected, "no", "command not found: x").hint("./x");
        assert_eq!(
            fault.to_string(),
            "error: no\n  because command not found: x\n  try  ./x"
        );
    }

    #[test]
    fn every_fault_of_a_configuration_has_its_line() {
        let env = [
            ("WINDROW_NODE__IDD", "x"),
            ("WINDROW_TASK_DEFAULTS__RATE", "fast"),
        ];
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let faults = windrow_config::load(None, env).expect_err("two faults");
        let fault = Fault::of_config(&faults);
        assert_eq!((fault.because.len(), fault.exit), (2, Exit::Config));
    }
}
