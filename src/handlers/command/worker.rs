//! Supervisor of one worker: starts it, and restarts it with growing pauses when it dies.
//!
//! Never looks at lines or items, which belong to `life`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Settings;
use super::handshake::WorkerKind;
use super::leftovers::Leftovers;
use super::life::Life;
use super::pool::{End, Pool};
use super::program::Program;
use crate::usage::LineCosts;
use windrow_core::items::trace::Traces;
use windrow_core::items::verdict::Failure;
use windrow_engine::ports::handling::handler::RunContext;

/// Pause before restarting a worker that did nothing in its last life; doubles up to [`RESTART_PAUSE_MAX`].
const RESTART_PAUSE_MIN: Duration = Duration::from_millis(100);
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(10);

/// State shared by all workers of a handler.
pub(super) struct Shared {
    pub(super) settings: Arc<Settings>,
    pub(super) run: Arc<RunContext>,
    pub(super) program: Program,
    pub(super) traces: Traces,
    /// Beginning of the keys of its items.
    pub(super) key_head: String,
    pub(super) pool: Pool,
    pub(super) leftovers: Arc<Leftovers>,
    pub(super) kind: Mutex<WorkerKind>,
    /// Reader of the costs that results name; `None` if nothing is counted.
    pub(super) costs: Option<LineCosts>,
}

impl Shared {
    /// Returns the kind of the workers, as far as known.
    pub(super) fn kind(&self) -> WorkerKind {
        *self.kind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the kind of the workers, which a life has shown.
    pub(super) fn learn(&self, kind: WorkerKind) {
        *self.kind.lock().unwrap_or_else(PoisonError::into_inner) = kind;
    }
}

/// Keeps a worker running until the pool closes and the worker with all its children is gone. Dropping the future
/// kills them.
pub(super) async fn supervise(shared: Arc<Shared>, worker: usize) {
    let mut closing = shared.pool.closing();
    let mut futile_lives = 0_u32;
    while !*closing.borrow_and_update() {
        let (end, was_useful) = match Life::begin(&shared, worker) {
            Ok(life) => Box::pin(life.live()).await,
            Err(why) => (End::Crashed(why), false),
        };
        report(worker, &end);
        let pause = pause(&end, was_useful, &mut futile_lives);
        shared.pool.ended(worker, &end);
        let clock = &shared.settings.clock;
        tokio::select! {
            // The pool outlives its supervisors, so the channel is never closed.
            _ = closing.wait_for(|closing| *closing) => {}
            () = clock.sleep_until(clock.now().plus(pause)) => {}
        }
    }
}

fn pause(end: &End, was_useful: bool, futile_lives: &mut u32) -> Duration {
    *futile_lives = if was_useful {
        0
    } else {
        futile_lives.saturating_add(1)
    };
    match end {
        End::Crashed(_) => {
            let doublings = futile_lives.saturating_sub(1).min(16);
            RESTART_PAUSE_MIN
                .saturating_mul(1 << doublings)
                .min(RESTART_PAUSE_MAX)
        }
        // We ended it after patience, or it left as it may: no reason to wait, unless it did nothing.
        End::Ended(_) | End::Left if was_useful => Duration::ZERO,
        End::Ended(_) | End::Left => RESTART_PAUSE_MIN,
    }
}

fn report(worker: usize, end: &End) {
    // People count workers from 1.
    let worker = worker + 1;
    match end {
        End::Left => tracing::debug!(worker, "worker exited"),
        End::Ended(Failure { message, .. }) => tracing::warn!(worker, "{message}"),
        // The items that it fails tell whoever follows the job.
        End::Crashed(Failure { message, .. }) => tracing::info!(worker, "{message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_limit_and_begin_anew_after_a_useful_life() {
        let crash = End::Crashed(Failure::new("WORKER_CRASH", "x"));
        let mut lives = 0;
        let pauses: Vec<u128> = (0..9)
            .map(|_| pause(&crash, false, &mut lives).as_millis())
            .collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(pause(&crash, true, &mut lives).as_millis(), 100);
    }
}
