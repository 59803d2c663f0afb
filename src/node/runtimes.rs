//! Runtimes beside the one that runs the actors.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::SystemClock;
use windrow_engine::ports::clock::Clock;

/// Divisor of the shutdown time that gives each runtime's guaranteed minimum.
const LEAST_PART: u32 = 10;

/// Tokio runtimes for work, requests, vital I/O and calls.
pub struct Runtimes {
    work: Runtime,
    front: Runtime,
    vital: Runtime,
    calls: Vec<Runtime>,
    call_threads: CallThreads,
    /// Number of lanes of an unpaced in-process run: one per work thread.
    lanes: usize,
}

/// Threads for runs that call others and wait, each thread with its own runtime. A run keeps its lane, connections
/// and workers on one of them. With several threads, each response would have to wake the next thread, which took a
/// third of a small call's time (`docs/decisions/0051-calls-drive-their-connections.md`).
#[derive(Clone)]
pub struct CallThreads {
    threads: Arc<[Handle]>,
    next: Arc<AtomicUsize>,
}

impl CallThreads {
    /// Creates a set of threads that are used in rotation.
    pub fn new(threads: Vec<Handle>) -> CallThreads {
        assert!(!threads.is_empty(), "calls need a thread");
        CallThreads {
            threads: threads.into(),
            next: Arc::default(),
        }
    }

    /// Returns the thread for the next run.
    pub fn next(&self) -> Handle {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        self.threads[turn % self.threads.len()].clone()
    }
}

impl Runtimes {
    /// Creates runtimes with one thread per core for work and for calls, half as many for the API server, and one for
    /// vital I/O.
    ///
    /// # Errors
    /// Fails if threads can't be started.
    pub fn new() -> std::io::Result<Runtimes> {
        Runtimes::with_lanes(available_parallelism().map_or(1, NonZeroUsize::get))
    }

    /// Same as `new`, with a given number of threads for work and for calls.
    ///
    /// # Errors
    /// Fails if threads can't be started.
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

    /// Returns the runtime of in-process handlers and readers.
    pub fn work(&self) -> &Handle {
        self.work.handle()
    }

    /// Returns the threads for runs that call others.
    pub fn calls(&self) -> &CallThreads {
        &self.call_threads
    }

    /// Returns the runtime that serves requests, kept apart so that they don't take time from the lanes.
    pub fn front(&self) -> &Handle {
        self.front.handle()
    }

    /// Returns the runtime of heartbeats and leases.
    pub(crate) fn vital(&self) -> &Handle {
        self.vital.handle()
    }

    /// Returns the number of lanes of an unpaced in-process run.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// Shuts all runtimes down, dropping every task and thereby every worker process. Waits up to `patience` in
    /// total, plus a moment for each: a pending name lookup keeps its thread until the resolver returns.
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
