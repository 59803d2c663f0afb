//! The runtimes beside the one that the actors run on.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::SystemClock;
use windrow_engine::ports::clock::Clock;

/// Which part of the time that all have at the end each of them has in any case.
const LEAST_PART: u32 = 10;

/// See the module.
pub struct Runtimes {
    work: Runtime,
    front: Runtime,
    vital: Runtime,
    calls: Vec<Runtime>,
    call_threads: CallThreads,
    /// Lanes of an unpaced in-process run: one per thread of work.
    lanes: usize,
}

/// The threads of runs that call others and wait for them, each thread a runtime of its own. A run has one of them for its
/// lane, its connections and its workers: between threads, each answer would have to wake the next one, which took a third of
/// a small call's time (`docs/decisions/0051-calls-drive-their-connections.md`).
#[derive(Clone)]
pub struct CallThreads {
    threads: Arc<[Handle]>,
    next: Arc<AtomicUsize>,
}

impl CallThreads {
    /// These threads, in turn.
    pub fn new(threads: Vec<Handle>) -> CallThreads {
        assert!(!threads.is_empty(), "calls need a thread");
        CallThreads {
            threads: threads.into(),
            next: Arc::default(),
        }
    }

    /// The thread for another run.
    pub fn next(&self) -> Handle {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        self.threads[turn % self.threads.len()].clone()
    }
}

impl Runtimes {
    /// Work and calls on as many threads as there are cores, the façade on half of them, vital I/O on one of its own.
    ///
    /// # Errors
    /// When threads can't be started.
    pub fn new() -> std::io::Result<Runtimes> {
        Runtimes::with_lanes(available_parallelism().map_or(1, NonZeroUsize::get))
    }

    /// The same, with work and calls on so many threads.
    ///
    /// # Errors
    /// When threads can't be started.
    pub fn with_lanes(lanes: usize) -> std::io::Result<Runtimes> {
        let build = |name: &str, threads: usize| {
            Builder::new_multi_thread()
                .worker_threads(threads)
                .thread_name(name)
                .enable_all()
                .build()
        };
        let calls = (0..lanes).map(|_| build("windrow-calls", 1));
        let calls = calls.collect::<std::io::Result<Vec<Runtime>>>()?;
        Ok(Runtimes {
            work: build("windrow-work", lanes)?,
            front: build("windrow-front", lanes.div_ceil(2))?,
            vital: build("windrow-vital", 1)?,
            call_threads: CallThreads::new(calls.iter().map(|one| one.handle().clone()).collect()),
            calls,
            lanes,
        })
    }

    /// Where handlers in this process and readers run.
    pub fn work(&self) -> &Handle {
        self.work.handle()
    }

    /// Where runs call others.
    pub fn calls(&self) -> &CallThreads {
        &self.call_threads
    }

    /// Where requests are answered: what callers ask for takes no turn of a lane's.
    pub fn front(&self) -> &Handle {
        self.front.handle()
    }

    /// Where heartbeats and leases are kept up.
    pub(crate) fn vital(&self) -> &Handle {
        self.vital.handle()
    }

    /// Lanes of a run in this process that no rate slows down.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// Ends them: drops every task on them, and with it every worker process. Waits at most this long for all, but for a
    /// moment that each of them has: a name that isn't resolved yet keeps a thread for as long as the resolver takes.
    pub fn shut_down(self, patience: Duration) {
        let clock = SystemClock::new();
        let end = clock.now().plus(patience);
        let first = [self.front, self.work].into_iter();
        for one in first.chain(self.calls).chain([self.vital]) {
            let left = end.since(clock.now());
            one.shutdown_timeout(left.max(patience / LEAST_PART));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_are_stuck_are_waited_for_together_and_not_one_after_the_other() {
        let runtimes = Runtimes::with_lanes(2).expect("threads");
        let calls = [runtimes.calls().next(), runtimes.calls().next()];
        let (done, stuck) = std::sync::mpsc::channel::<()>();
        let stuck = Arc::new(std::sync::Mutex::new(stuck));
        let others = [runtimes.front(), runtimes.work(), runtimes.vital()].map(Handle::clone);
        for one in calls.iter().chain(&others) {
            let stuck = stuck.clone();
            one.spawn_blocking(move || stuck.lock().map(|stuck| stuck.recv()).is_ok());
        }
        let clock = SystemClock::new();
        let begun = clock.now();
        runtimes.shut_down(Duration::from_secs(1));
        let took = clock.now().since(begun);
        drop(done);
        assert!(took < Duration::from_secs(3), "{took:?}");
    }
}
