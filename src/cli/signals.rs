//! Ctrl-C, SIGTERM and SIGUSR1.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What somebody outside asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Ctrl-C or SIGTERM.
    Stop,
    /// SIGUSR1: print the tree of actors.
    Tree,
}

/// The signals of this process, caught from the moment it is made.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    tree: Signal,
}

impl Signals {
    /// Catches them.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn catch() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            tree: signal(SignalKind::user_defined1())?,
        })
    }

    /// The next one. Cancel safe.
    pub(super) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.tree.recv() => Asked::Tree,
        }
    }

    /// The next Ctrl-C or SIGTERM. Cancel safe.
    pub(super) async fn stop(&mut self) {
        while self.next().await != Asked::Stop {}
    }
}
