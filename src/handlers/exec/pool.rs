//! Threads that each run one process at a time. They are started on demand and live until the handler closes.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::{oneshot, watch};

use super::Shared;
use super::process;
use super::stage::Stage;
use crate::command::answer::Judged;
use windrow_core::ids::{Attempt, ItemIndex};
use windrow_engine::ports::handling::handler::Call;

/// Stack size in bytes: enough for reading a row and starting a process.
const STACK_BYTES: usize = 512 * 1024;

/// Item whose process is to be started.
pub(super) struct Job {
    pub(super) call: Arc<Call>,
    pub(super) index: ItemIndex,
    pub(super) attempt: Attempt,
    pub(super) stage: Arc<Stage>,
    pub(super) judged: oneshot::Sender<Judged>,
}

/// Threads of one handler. Dropping it ends them as soon as their processes are gone.
pub(super) struct Pool {
    common: Arc<Common>,
    threads_max: usize,
}

struct Common {
    shared: Arc<Shared>,
    jobs: Mutex<Jobs>,
    stirred: Condvar,
    /// Number of live threads.
    threads: watch::Sender<usize>,
}

#[derive(Default)]
struct Jobs {
    queue: VecDeque<Job>,
    idle: usize,
    is_closed: bool,
}

impl Pool {
    pub(super) fn new(shared: Arc<Shared>, threads_max: usize) -> Pool {
        let common = Common {
            shared,
            jobs: Mutex::default(),
            stirred: Condvar::new(),
            threads: watch::Sender::new(0),
        };
        Pool {
            common: Arc::new(common),
            threads_max,
        }
    }

    /// Gives the job to a thread.
    ///
    /// # Errors
    /// If there is no thread and none can be started.
    pub(super) fn submit(&self, job: Job) -> io::Result<()> {
        let mut jobs = self.common.lock();
        jobs.queue.push_back(job);
        if jobs.queue.len() <= jobs.idle {
            self.common.stirred.notify_one();
            return Ok(());
        }
        let threads = *self.common.threads.borrow();
        if threads >= self.threads_max {
            return Ok(());
        }
        let common = self.common.clone();
        self.common.threads.send_modify(|threads| *threads += 1);
        let started = thread::Builder::new()
            .name("exec".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || common.tend());
        if let Err(why) = started {
            self.common.threads.send_modify(|threads| *threads -= 1);
            if threads == 0 {
                jobs.queue.pop_back();
                return Err(why);
            }
        }
        Ok(())
    }

    /// Accepts no more jobs, and waits until the threads are gone.
    pub(super) async fn close(&self) {
        self.shut();
        let mut threads = self.common.threads.subscribe();
        // The sender lives as long as the pool.
        let _gone = threads.wait_for(|threads| *threads == 0).await;
    }

    fn shut(&self) {
        self.common.lock().is_closed = true;
        self.common.stirred.notify_all();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shut();
    }
}

impl Common {
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tend(&self) {
        let _counted = Counted(&self.threads);
        let mut record = self.shared.records.record();
        while let Some(job) = self.next() {
            let judged = process::run(&self.shared, &job, &mut record);
            // Nobody may wait for it any more, if the call was dropped.
            drop(job.judged.send(judged));
        }
    }

    fn next(&self) -> Option<Job> {
        let mut jobs = self.lock();
        loop {
            if let Some(job) = jobs.queue.pop_front() {
                return Some(job);
            }
            if jobs.is_closed {
                return None;
            }
            jobs.idle += 1;
            jobs = self.stirred.wait(jobs).unwrap_or_else(PoisonError::into_inner);
            jobs.idle -= 1;
        }
    }
}

/// Count of a live thread, undone however it ends.
struct Counted<'a>(&'a watch::Sender<usize>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|threads| *threads -= 1);
    }
}
