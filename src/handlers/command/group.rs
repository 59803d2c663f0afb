//! The process group of a worker, or of an item's own process: everything it started dies with it.
//!
//! Never waits for a process; reaping the leader is the owner's business.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

/// A process group that is killed when the value is dropped, whatever ends the code that holds it.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    leader: Pid,
    is_armed: bool,
}

impl ProcessGroup {
    /// The group that `pid` leads; none for a number that is no process id.
    pub(crate) fn led_by(pid: u32) -> Option<ProcessGroup> {
        i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .map(|leader| ProcessGroup {
                leader,
                is_armed: true,
            })
    }

    /// The leader's process id.
    pub(crate) fn pid(&self) -> i32 {
        self.leader.as_raw_nonzero().get()
    }

    /// Asks all to end.
    pub(crate) fn terminate(&self) {
        self.send(Signal::TERM);
    }

    /// Ends all, at once.
    pub(crate) fn kill(&self) {
        self.send(Signal::KILL);
    }

    /// Ends what is left of a group whose leader has exited and isn't reaped yet, so that its number is still its own.
    /// What may not be ended (a program of another user) is left alone.
    pub(crate) fn sweep(&self) {
        match kill_process_group(self.leader, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH | Errno::PERM) => {}
            Err(why) => tracing::debug!(pgid = self.pid(), %why, "what a process left could not be ended"),
        }
    }

    /// The group is gone and its leader reaped; dropping the value does nothing any more.
    pub(crate) fn disarm(&mut self) {
        self.is_armed = false;
    }

    fn send(&self, signal: Signal) {
        match kill_process_group(self.leader, signal) {
            // An empty group has nothing left to end.
            Ok(()) | Err(Errno::SRCH) => {}
            // Whoever waits for the end tells people that it doesn't come.
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
