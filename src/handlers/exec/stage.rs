//! Progress of an item's process, shared by the call that wants it and the thread that runs it.
//!
//! Signals are sent only under the lock, and only before the thread has announced that it will reap the process: so
//! no signal can reach a process that got the same number later.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::command::group::ProcessGroup;

/// Stage of an item's process, with the right to send it signals.
#[derive(Debug, Default)]
pub(super) struct Stage(Mutex<At>);

#[derive(Debug, Default)]
enum At {
    /// No thread has taken the item yet.
    #[default]
    Waiting,
    Starting,
    /// The flag is true if it was killed.
    Running(ProcessGroup, bool),
    /// The process is not to be started, or to be killed as soon as it is.
    GivenUp,
    Ended,
}

impl Stage {
    /// Records that the process is about to start. Returns false if nobody wants it any more.
    pub(super) fn start(&self) -> bool {
        let mut at = self.lock();
        let is_wanted = matches!(*at, At::Waiting);
        if is_wanted {
            *at = At::Starting;
        }
        is_wanted
    }

    /// Records that the process runs. Kills it if the call was dropped in the meantime.
    pub(super) fn run(&self, group: ProcessGroup) {
        let mut at = self.lock();
        let is_given_up = matches!(*at, At::GivenUp);
        if is_given_up {
            group.kill();
        }
        *at = At::Running(group, is_given_up);
    }

    /// Kills the process. Returns false if none was started.
    pub(super) fn kill(&self) -> bool {
        let mut at = self.lock();
        match &mut *at {
            At::Waiting => {
                *at = At::GivenUp;
                false
            }
            At::Starting => {
                *at = At::GivenUp;
                true
            }
            At::Running(group, is_killed) => {
                group.kill();
                *is_killed = true;
                true
            }
            At::GivenUp | At::Ended => true,
        }
    }

    /// Records that the process has exited and will be reaped: kills what is left of its group, and allows no more
    /// signals. Returns true if it was killed.
    pub(super) fn end(&self) -> bool {
        let was = std::mem::replace(&mut *self.lock(), At::Ended);
        let At::Running(mut group, is_killed) = was else {
            return false;
        };
        group.sweep();
        group.disarm();
        is_killed
    }

    fn lock(&self) -> MutexGuard<'_, At> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
