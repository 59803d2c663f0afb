//! How far an item's process is, shared by the call that wants it and the thread that tends it.
//!
//! Signals are sent under the lock only, and only before the thread has said that it is going to reap the process: so no
//! signal can reach a process that got the same number later.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::command::group::ProcessGroup;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Stage(Mutex<At>);

#[derive(Debug, Default)]
enum At {
    /// No thread has taken it, or its process is being started.
    #[default]
    Waiting,
    Starting,
    /// The flag says whether it was killed.
    Running(ProcessGroup, bool),
    /// Not to be started, or to be killed as soon as it is.
    GivenUp,
    Ended,
}

impl Stage {
    /// Before the process is started; false when nobody wants it any more.
    pub(super) fn start(&self) -> bool {
        let mut at = self.lock();
        let is_wanted = matches!(*at, At::Waiting);
        if is_wanted {
            *at = At::Starting;
        }
        is_wanted
    }

    /// The process is there. One that was given up meanwhile is killed.
    pub(super) fn run(&self, group: ProcessGroup) {
        let mut at = self.lock();
        let is_given_up = matches!(*at, At::GivenUp);
        if is_given_up {
            group.kill();
        }
        *at = At::Running(group, is_given_up);
    }

    /// Ends the process; false when none was started.
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

    /// The process has exited and is going to be reaped: what is left of its group is ended, and nobody sends it signals any
    /// more. Says whether it was killed.
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
