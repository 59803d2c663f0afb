//! Handling of Ctrl-C, SIGTERM, SIGHUP and SIGUSR1. To a job, SIGHUP means that its terminal was closed; to a node,
//! that its configuration has changed.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Request made by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessSignal {
    /// Stop the process: Ctrl-C, SIGTERM, or a closed terminal (SIGHUP).
    Stop,
    /// Print the actor tree (SIGUSR1).
    Tree,
    /// Reload the configuration: SIGHUP to a node.
    Reload,
}

/// Signals of this process, caught from the creation of this value.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Listener for SIGHUP. `None` under `nohup`, since the job is to outlive its terminal.
    hang_up: Option<Signal>,
    tree: Signal,
    /// Request that SIGHUP stands for.
    hang_up_means: ProcessSignal,
}

impl Signals {
    /// Catches the signals for a job.
    ///
    /// # Errors
    /// Fails if the system refuses.
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

    /// Catches the signals for a node: SIGHUP reloads, even under `nohup`.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub(super) fn catch_for_a_node() -> io::Result<Signals> {
        let hang_up = Some(signal(SignalKind::hangup())?);
        Ok(Signals {
            hang_up,
            hang_up_means: ProcessSignal::Reload,
            ..Signals::catch()?
        })
    }

    /// Returns the next signal. Cancel safe.
    pub(super) async fn next(&mut self) -> ProcessSignal {
        tokio::select! {
            _ = self.interrupt.recv() => ProcessSignal::Stop,
            _ = self.terminate.recv() => ProcessSignal::Stop,
            () = hung_up(&mut self.hang_up) => self.hang_up_means,
            _ = self.tree.recv() => ProcessSignal::Tree,
        }
    }

    /// Waits for the next request to stop. Cancel safe.
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

/// True if the parent process wants SIGHUP ignored; catching it would undo that.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_ignored(&status, SignalKind::hangup())
}

/// True if the mask in `status`, the text of `/proc/self/status`, ignores the signal. The lowest bit of the mask is
/// signal 1.
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
