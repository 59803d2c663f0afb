//! Ctrl-C, SIGTERM, SIGHUP and SIGUSR1. To a job, SIGHUP means that its terminal was closed; to a node, that its
//! configuration was changed.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What somebody outside asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessSignal {
    /// Ctrl-C, SIGTERM, or the terminal was closed (SIGHUP).
    Stop,
    /// SIGUSR1: print the tree of actors.
    Tree,
    /// SIGHUP to a node: read the configuration anew.
    Reload,
}

/// The signals of this process, caught from the moment it is made.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None under `nohup`: the job is to outlive its terminal.
    hang_up: Option<Signal>,
    tree: Signal,
    /// What SIGHUP means.
    hang_up_means: ProcessSignal,
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
            hang_up: (!ignores_hang_up())
                .then(|| signal(SignalKind::hangup()))
                .transpose()?,
            tree: signal(SignalKind::user_defined1())?,
            hang_up_means: ProcessSignal::Stop,
        })
    }

    /// Catches them for a node: SIGHUP reloads, also under `nohup`.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn catch_for_a_node() -> io::Result<Signals> {
        let hang_up = Some(signal(SignalKind::hangup())?);
        Ok(Signals {
            hang_up,
            hang_up_means: ProcessSignal::Reload,
            ..Signals::catch()?
        })
    }

    /// The next one. Cancel safe.
    pub(super) async fn next(&mut self) -> ProcessSignal {
        tokio::select! {
            _ = self.interrupt.recv() => ProcessSignal::Stop,
            _ = self.terminate.recv() => ProcessSignal::Stop,
            () = hung_up(&mut self.hang_up) => self.hang_up_means,
            _ = self.tree.recv() => ProcessSignal::Tree,
        }
    }

    /// The next that asks to stop. Cancel safe.
    pub(super) async fn stop(&mut self) {
        while self.next().await != ProcessSignal::Stop {}
    }
}

async fn hung_up(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Whether whoever started this process wants SIGHUP to be ignored; catching it would undo that.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_ignored(&status, SignalKind::hangup())
}

/// `status` is the text of `/proc/self/status`; the lowest bit of its mask is signal 1.
fn is_ignored(status: &str, kind: SignalKind) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_tells_which_signals_are_ignored() {
        let status = "SigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, SignalKind::hangup()));
        assert!(!is_ignored(status, SignalKind::interrupt()));
        assert!(!is_ignored("", SignalKind::hangup()));
    }
}
