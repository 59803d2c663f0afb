//! A node of a program of your own: what `windrow serve` is, with handlers in the same process.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use windrow_config::{AuthMode, Config, process_env, process_env_os};
use windrow_handlers::rust::{InProcess, ItemHandler, OwnedItem};
use windrow_node::serve::{Pages, Serve, ServeOptions};

use crate::Error;
use crate::builder::{FOLDER_DEFAULT, Threads};
use crate::job::{Cause, closure, factory};

/// How a node is made. It has the configuration's defaults where nothing else is said.
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

    /// A configuration as `windrow serve` reads it, variables `WINDROW_…` included: for a database server, TLS, limits.
    pub fn config(mut self, file: impl AsRef<Path>) -> NodeBuilder {
        self.config = Some(file.as_ref().to_owned());
        self
    }

    /// Where its API listens, `"127.0.0.1:7700"`; port 0 takes a free one.
    pub fn listen(mut self, address: impl Into<String>) -> NodeBuilder {
        self.listen = Some(address.into());
        self
    }

    /// Asks nobody for a token. Only for a node that listens to its own machine.
    pub fn without_sign_in(mut self) -> NodeBuilder {
        self.is_open = true;
        self
    }

    /// A closure that is called for each item of the businesses whose `command` is this name; `Err` and a panic are failed
    /// attempts.
    pub fn handler<F, Fut, E>(self, name: impl Into<String>, work: F) -> NodeBuilder
    where
        F: Fn(OwnedItem) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send,
        E: Into<Cause>,
    {
        self.handler_of(name, closure(work))
    }

    /// The same with a handler that gets many items at once, and may say more of each than whether it succeeded.
    pub fn handler_of(mut self, name: impl Into<String>, handler: impl ItemHandler) -> NodeBuilder {
        self.handlers.insert(name.into(), factory(handler));
        self
    }

    /// Starts the node, on threads of its own. Tasks that ran when it ended go on.
    ///
    /// # Errors
    /// When the configuration has faults, or what it names can't be had.
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
            let unread =
                || Error::Setting(format!("{listen} is no address and port, such as 127.0.0.1:7700"));
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

/// A node that serves. [Close](Node::close) it at the end: what is dropped instead is cut off, which costs nothing but
/// repeats.
pub struct Node {
    serve: Serve,
    /// The last, so that it is dropped after what runs on it.
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
    /// Where its API is.
    pub fn url(&self) -> String {
        self.serve.url()
    }

    /// The file with the first administrator's token; none where nobody is asked for one.
    pub fn token_file(&self) -> Option<&Path> {
        self.serve.bootstrap_file()
    }

    /// Ends when the node has ended without being asked.
    pub async fn failed(&self) {
        self.serve.failed().await;
    }

    /// Ends: calls under way end first, then progress is saved and the folder is free for others.
    pub async fn close(self) {
        self.serve.drain().await;
    }
}
