//! The surroundings of a command: the environment and standard error.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use crate::fault::Fault;
use crate::link::here::Here;
use crate::output::screen::Screen;
use windrow_client::EnvironmentProxies;
use windrow_config::Config;

/// What every command is given of the world around the process.
pub struct Shell {
    /// The environment, for the configuration.
    pub(crate) env: Vec<(String, String)>,
    /// The environment, for workers.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Whether a flag wants colours; none where the environment and the terminal decide.
    pub(crate) colors: Option<bool>,
    /// Standard error.
    pub(crate) screen: Arc<Screen>,
    /// The job of this machine that is asked instead of a server.
    pub(crate) here: Option<Here>,
}

impl Shell {
    /// The same for verbs of tasks that are about a job of this machine.
    pub(crate) fn on(&self, here: Here) -> Shell {
        Shell {
            env: self.env.clone(),
            environment: self.environment.clone(),
            colors: self.colors,
            screen: self.screen.clone(),
            here: Some(here),
        }
    }

    /// Who runs this, for the audit.
    pub(crate) fn user(&self) -> String {
        self.known_user().unwrap_or("unknown").to_owned()
    }

    /// Who runs this, where the environment tells: in containers it often doesn't.
    pub(crate) fn known_user(&self) -> Option<&str> {
        self.var("USER").or_else(|| self.var("LOGNAME"))
    }

    /// The proxies of the environment.
    pub(crate) fn proxies(&self) -> EnvironmentProxies {
        EnvironmentProxies::read(|name| self.var(name))
    }

    /// A variable of the environment; an empty one isn't there.
    pub(crate) fn var(&self, wanted: &str) -> Option<&str> {
        let found = self.env.iter().find(|(name, _)| name == wanted);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// The configuration of a file and the environment.
    ///
    /// # Errors
    /// Every fault of the configuration.
    pub(crate) fn config(&self, file: Option<&Path>) -> Result<Config, Fault> {
        windrow_config::load(file, self.env.iter().cloned()).map_err(|faults| Fault::of_config(&faults))
    }
}
