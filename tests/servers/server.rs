//! What all servers have: a process, a port that stays, a directory, and a way to end and come back.

use super::process::{Dir, Process};

type Launch = Box<dyn Fn(&Dir, u16) -> Process + Send + Sync>;

/// A running server, whatever it serves.
pub struct Server {
    process: Process,
    port: u16,
    dir: Dir,
    /// The signal that ends it in order.
    ends_by: &'static str,
    launch: Launch,
}

impl Server {
    /// `launch` starts its process and returns when it answers: now, and at every restart.
    pub fn start(
        dir: Dir,
        port: u16,
        ends_by: &'static str,
        launch: impl Fn(&Dir, u16) -> Process + Send + Sync + 'static,
    ) -> Server {
        let process = launch(&dir, port);
        Server {
            process,
            port,
            dir,
            ends_by,
            launch: Box::new(launch),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where its data is.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Sends a signal (`STOP`, `CONT`) to all its processes.
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Kills it as a power cut would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Ends it in order and returns its directory.
    pub fn ended(mut self) -> Dir {
        self.process.terminate(self.ends_by);
        self.dir
    }

    /// Starts it again on the same port with what it keeps.
    pub fn restart(&mut self) {
        if self.process.is_alive() {
            self.process.terminate(self.ends_by);
        }
        self.process = (self.launch)(&self.dir, self.port);
    }
}

/// A server of one kind can all that its part can.
macro_rules! is_a {
    ($kind:ident, $part:ident: $whole:ident) => {
        impl std::ops::Deref for $kind {
            type Target = $whole;

            fn deref(&self) -> &$whole {
                &self.$part
            }
        }

        impl std::ops::DerefMut for $kind {
            fn deref_mut(&mut self) -> &mut $whole {
                &mut self.$part
            }
        }
    };
}

pub(super) use is_a;
