//! A node embedded in your program: what `windrow serve` runs, with handlers in the same process.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use windrow_config::{AuthMode, Config, process_env, process_env_os};
use windrow_handlers::answer::Answer;
use windrow_handlers::rust::{Cause, InProcess, ItemHandler, OwnedItem, handler_fn};
use windrow_node::serve::{Pages, Serve, ServeOptions};

use crate::Error;
use crate::builder::{FOLDER_DEFAULT, Threads};
use crate::job::factory;

/// Builder for an embedded node. Settings not given have their configuration defaults.
#[must_use]
pub struct NodeBuilder {
    folder: Option<PathBuf>,
    config: Option<PathBuf>,
    listen: Option<String>,
    is_open: bool,
    handlers: InProcess,
}

impl fmt::Debug for NodeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeBuilder")
            .field("handlers", &self.handlers.keys())
            .finish_non_exhaustive()
    }
}

impl NodeBuilder {
    pub(crate) fn of(folder: Option<PathBuf>) -> NodeBuilder {
        NodeBuilder {
            folder,
            config: None,
            listen: None,
            is_open: false,
            handlers: InProcess::new(),
        }
    }

    /// Loads a configuration file as `windrow serve` does, including `WINDROW_…` variables: for a database server,
    /// TLS, limits.
    pub fn config(mut self, file: impl AsRef<Path>) -> NodeBuilder {
        self.config = Some(file.as_ref().to_owned());
        self
    }

    /// Sets the address of the API, e.g. `"127.0.0.1:7700"`; port 0 picks a free one.
    pub fn listen(mut self, address: impl Into<String>) -> NodeBuilder {
        self.listen = Some(address.into());
        self
    }

    /// Turns authentication off. Only for a node that listens on loopback.
    pub fn without_sign_in(mut self) -> NodeBuilder {
        self.is_open = true;
        self
    }

    /// Adds a closure that is called for each item of businesses with this name as their `command`; `Err` and panics
    /// are failed attempts.
    pub fn handler<F, Fut, T, E>(self, name: impl Into<String>, work: F) -> NodeBuilder
    where
        F: Fn(OwnedItem) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send,
        T: Into<Answer>,
        E: Into<Cause>,
    {
        self.handler_of(name, handler_fn(work))
    }

    /// Adds a handler that gets many items at once, and can return more than success or failure for each.
    pub fn handler_of(mut self, name: impl Into<String>, handler: impl ItemHandler) -> NodeBuilder {
        self.handlers.insert(name.into(), factory(handler));
        self
    }

    /// Starts the node on its own threads. Tasks that were running when it last ended are resumed.
    ///
    /// # Errors
    /// Fails if the configuration has faults, or a resource that it names is unavailable.
    pub async fn serve(self) -> Result<Node, Error> {
        let config = self.configuration()?;
        let threads = Threads::new()?;
        let options = ServeOptions {
            config,
            environment: process_env_os(),
            in_process: self.handlers,
            runtimes: threads.runtimes()?,
            log: None,
            pages: Pages::default(),
            begins_anew: false,
        };
        let serve = threads.run(Serve::start(options)).await??;
        Ok(Node {
            serve,
            _threads: threads,
        })
    }

    fn configuration(&self) -> Result<Config, Error> {
        let said = |faults: Vec<windrow_config::Fault>| {
            Error::Config(faults.iter().map(ToString::to_string).collect())
        };
        let mut config = match &self.config {
            Some(file) => windrow_config::load(Some(file), process_env()).map_err(said)?,
            None => Config::default(),
        };
        match (&self.folder, &self.config) {
            (Some(folder), _) => config.node.data_dir.clone_from(folder),
            (None, None) => config.node.data_dir = FOLDER_DEFAULT.into(),
            (None, Some(_)) => {}
        }
        if let Some(listen) = &self.listen {
            let unread = || {
                Error::Setting(format!(
                    "{listen} is not an address and port, such as 127.0.0.1:7700"
                ))
            };
            config.http.listen = listen.parse::<SocketAddr>().map_err(|_| unread())?;
        }
        if self.is_open {
            config.auth.mode = AuthMode::Off;
        }
        let faults = windrow_node::serve::faults(&config);
        if faults.is_empty() {
            Ok(config)
        } else {
            Err(said(faults))
        }
    }
}

/// A serving node. [Close](Node::close) it at the end; dropping it cuts calls off, which costs nothing but repeats.
pub struct Node {
    serve: Serve,
    /// Last field, so that it is dropped after everything that runs on it.
    _threads: Threads,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("url", &self.url())
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Returns the URL of the API.
    pub fn url(&self) -> String {
        self.serve.url()
    }

    /// Returns the file with the first administrator's token; `None` if authentication is off.
    pub fn token_file(&self) -> Option<&Path> {
        self.serve.bootstrap_file()
    }

    /// Completes when the node has ended unexpectedly.
    pub async fn failed(&self) {
        self.serve.failed().await;
    }

    /// Finishes the calls in flight, saves the progress, and releases the folder.
    pub async fn close(self) {
        self.serve.drain().await;
    }
}
