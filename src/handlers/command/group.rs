//! Process group of a worker, or of an item's own process: everything it started dies with it.
//!
//! Never waits for a process; the owner reaps the leader.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

/// Process group that is killed when the value is dropped, however the code that holds it ends.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    leader: Pid,
    is_armed: bool,
}

impl ProcessGroup {
    /// Returns the group that `pid` leads, or `None` if the number is no process id.
    pub(crate) fn led_by(pid: u32) -> Option<ProcessGroup> {
        i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .map(|leader| ProcessGroup {
                leader,
                is_armed: true,
            })
    }

    /// Returns the leader's process id.
    pub(crate) fn pid(&self) -> i32 {
        self.leader.as_raw_nonzero().get()
    }

    /// Sends SIGTERM to the whole group.
    pub(crate) fn terminate(&self) {
        self.send(Signal::TERM);
    }

    /// Sends SIGKILL to the whole group.
    pub(crate) fn kill(&self) {
        self.send(Signal::KILL);
    }

    /// Kills what is left of a group whose leader has exited and is not reaped yet, so that the number is still its
    /// own. Leaves alone what it may not kill (a program of another user).
    pub(crate) fn sweep(&self) {
        match kill_process_group(self.leader, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH | Errno::PERM) => {}
            Err(why) => tracing::debug!(pgid = self.pid(), %why, "leftover child processes not killed"),
        }
    }

    /// Makes dropping the value do nothing, once the group is gone and its leader reaped.
    pub(crate) fn disarm(&mut self) {
        self.is_armed = false;
    }

    fn send(&self, signal: Signal) {
        match kill_process_group(self.leader, signal) {
            // An empty group has nothing left to end.
            Ok(()) | Err(Errno::SRCH) => {}
            // The code that waits for the end reports if it doesn't come.
            Err(why) => {
                tracing::debug!(pgid = self.pid(), signal = signal.as_raw(), %why, "signal not delivered to the workers")
            }
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.is_armed {
            self.kill();
        }
    }
}
