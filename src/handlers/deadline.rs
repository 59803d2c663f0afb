//! Deadline up to which a call is awaited.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;

use windrow_core::ids::Moment;
use windrow_engine::ports::clock::Clock;

/// Delay of a timer that shows that the process stood still (SIGSTOP, a suspended machine): events in the meantime
/// were not looked at.
const STOOD_STILL: Duration = Duration::from_millis(500);
/// Time for which such events are then still accepted.
const SECOND_LOOK: Duration = Duration::from_millis(100);

/// Deadline of a call, with a second look after the process stood still.
pub(super) struct Deadline<'a> {
    clock: &'a Arc<dyn Clock>,
    at: Moment,
    sleep: Option<BoxFuture<'static, ()>>,
    has_looked: bool,
}

impl<'a> Deadline<'a> {
    pub(super) fn new(clock: &'a Arc<dyn Clock>, at: Moment) -> Deadline<'a> {
        Deadline {
            clock,
            at,
            sleep: None,
            has_looked: false,
        }
    }

    /// Returns the output of `work`, or `None` if the time is over first. Polls once before making a timer, so work
    /// that is done at once pays for none. Cancel safe.
    pub(super) async fn cut_short<F: Future>(&mut self, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        if let Poll::Ready(output) = futures_util::poll!(&mut work) {
            return Some(output);
        }
        loop {
            let sleep = self.sleep.get_or_insert_with(|| self.clock.sleep_until(self.at));
            tokio::select! {
                biased;
                output = &mut work => return Some(output),
                () = sleep => {}
            }
            self.sleep = None;
            if self.is_over() {
                return None;
            }
        }
    }

    /// Does the same, but also returns `None` if nothing has begun `within` this time. Cancel safe.
    pub(super) async fn cut_short_unless_begun<F: Future>(
        &mut self,
        work: F,
        within: Duration,
        has_begun: impl Fn() -> bool,
    ) -> Option<F::Output> {
        let patience = self.clock.sleep_until(self.clock.now().plus(within));
        let begins = async {
            let mut work = pin!(work);
            tokio::select! {
                biased;
                output = &mut work => return Some(output),
                () = patience => {}
            }
            if has_begun() { Some(work.await) } else { None }
        };
        self.cut_short(begins).await.flatten()
    }

    /// Returns true if the time is really over: a clock may wake early for a distant time, and a process may have
    /// slept beyond it.
    fn is_over(&mut self) -> bool {
        let now = self.clock.now();
        if now < self.at {
            return false;
        }
        if self.has_looked || now.since(self.at) < STOOD_STILL {
            return true;
        }
        self.has_looked = true;
        self.at = now.plus(SECOND_LOOK);
        false
    }
}
