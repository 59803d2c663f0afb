//! Environment of a command: variables and standard error.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use crate::fault::Fault;
use crate::link::here::Here;
use crate::output::screen::Screen;
use windrow_client::EnvironmentProxies;
use windrow_config::Config;

/// Access to the process's environment, passed to every command.
pub struct Shell {
    /// Environment variables as text, for the configuration.
    pub(crate) env: Vec<(String, String)>,
    /// Environment variables as raw strings, passed on to workers.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Colours wanted by a flag; `None` lets the environment and the terminal decide.
    pub(crate) colors: Option<bool>,
    /// Writer to standard error.
    pub(crate) screen: Arc<Screen>,
    /// Job of this machine to which requests go instead of a server.
    pub(crate) here: Option<Here>,
}

impl Shell {
    /// Returns a shell for verbs of tasks applied to a job of this machine.
    pub(crate) fn on(&self, here: Here) -> Shell {
        Shell {
            env: self.env.clone(),
            environment: self.environment.clone(),
            colors: self.colors,
            screen: self.screen.clone(),
            here: Some(here),
        }
    }

    /// Returns the user's name for the audit log.
    pub(crate) fn user(&self) -> String {
        self.known_user().unwrap_or("unknown").to_owned()
    }

    /// Returns the user's name if the environment has it, which in containers it often doesn't.
    pub(crate) fn known_user(&self) -> Option<&str> {
        self.var("USER").or_else(|| self.var("LOGNAME"))
    }

    /// Returns the proxies set in the environment.
    pub(crate) fn proxies(&self) -> EnvironmentProxies {
        EnvironmentProxies::read(|name| self.var(name))
    }

    /// Returns an environment variable. An empty one counts as missing.
    pub(crate) fn var(&self, wanted: &str) -> Option<&str> {
        let found = self.env.iter().find(|(name, _)| name == wanted);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// Loads the configuration from a file and the environment.
    ///
    /// # Errors
    /// Returns every error in the configuration.
    pub(crate) fn config(&self, file: Option<&Path>) -> Result<Config, Fault> {
        windrow_config::load(file, self.env.iter().cloned()).map_err(|faults| Fault::of_config(&faults))
    }
}
