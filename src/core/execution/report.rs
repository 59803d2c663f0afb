//! Results of calls: settled items, items that came back unused, and requests of the handler.

use windrow_words::execution as say;

use crate::execution::items::Items;
use crate::execution::judge::Judge;
use crate::execution::settings::Settings;
use std::time::Duration;

use super::Execution;
use super::types::{Effects, Now, Phase, Reports, RunEnd};
use crate::ids::{Attempt, ItemIndex, Moment};
use crate::invariants::Invariant;
use crate::items::run::IndexRun;
use crate::items::verdict::{Dispatch, Failure, HandlerCommand, Outcome, Settled, Signal};
use crate::items::waiting::{Doing, Place, RetryingItem};
use crate::settings::FailedAttempts;
use crate::shards::PauseReason;
use crate::task::lifecycle::StopReason;

impl Execution {
    pub(super) fn on_reports(&mut self, reports: &mut Reports, now: Now, fx: &mut Effects) {
        if reports.is_empty() {
            return;
        }
        for settled in reports.settled.drain(..) {
            self.on_settled(settled, fx);
        }
        self.judge.on_calls(&mut scope!(self, now, fx), reports);
        self.obey_judge();
        // The round of probes continues with other items.
        self.judge
            .circuit
            .on_returned(std::mem::take(&mut reports.unsent));
        for failed in reports.failed.drain(..) {
            self.on_failed(failed, now, fx);
        }
        self.obey_judge();
        for dispatch in reports.returned.drain(..) {
            self.on_returned(dispatch, now, fx);
        }
        for dispatch in reports.refused.drain(..) {
            let before = self.meters.returned();
            self.on_returned(dispatch, now, fx);
            self.meters.on_refused(self.meters.returned() - before);
        }
        for failed in reports.turned_away.drain(..) {
            self.on_turned_away(failed, now, fx);
        }
        self.obey_judge();
        for signal in reports.signals.drain(..) {
            self.on_signal(signal, now);
        }
        self.on_ends(&mut reports.ends, now);
        self.meters.on_latencies(&mut reports.latencies);
        fx.wake_lanes |= std::mem::take(&mut self.starved);
    }

    #[inline]
    fn on_settled(&mut self, settled: Settled, fx: &mut Effects) {
        let mut rest = Some(settled.run);
        while let Some(run) = rest {
            let retrying = self.items.retrying_items.lowest_in(run);
            let (clean, next) = match retrying {
                None => (Some(run), None),
                Some(index) => {
                    self.settle_retrying(index, settled, fx);
                    let before = IndexRun::new(run.first(), (index.0 - run.first().0) as u32);
                    (
                        before,
                        IndexRun::new(index.plus(1), (run.end().0 - index.0 - 1) as u32),
                    )
                }
            };
            if let Some(clean) = clean {
                self.items.settle_clean(clean, settled, fx);
            }
            rest = next;
        }
    }

    fn settle_retrying(&mut self, index: ItemIndex, settled: Settled, fx: &mut Effects) {
        let expected =
            |t: &RetryingItem| t.doing == Doing::InFlight && t.attempts + 1 == settled.attempt.get();
        if !self.items.retrying_items.get(index).is_some_and(expected) {
            fx.violations.push(Invariant::ReportWasInFlight);
            return;
        }
        if let Some(retrying) = self.items.retrying_items.take(index) {
            self.judge.on_recovered(&retrying);
            self.items.leave_trouble(index, &retrying, fx);
        }
        self.items.solo.on_answered(index);
        self.items.count(settled.outcome, 1);
        self.items.land(1, fx);
        self.items.drafts.on_completed(1);
    }

    fn on_returned(&mut self, dispatch: Dispatch, now: Now, fx: &mut Effects) {
        let mut rest = Some(dispatch.run);
        while let Some(run) = rest.take() {
            let Some(index) = self.items.retrying_items.lowest_in(run) else {
                self.return_fresh(run, dispatch.attempt, fx);
                return;
            };
            if let Some(before) = IndexRun::new(run.first(), (index.0 - run.first().0) as u32) {
                self.return_fresh(before, dispatch.attempt, fx);
            }
            self.return_retrying(index, dispatch.attempt, now, fx);
            rest = IndexRun::new(index.plus(1), (run.end().0 - index.0 - 1) as u32);
        }
    }

    fn return_fresh(&mut self, run: IndexRun, attempt: Attempt, fx: &mut Effects) {
        let open = self.items.window.unsettled(run.first(), run.end(), run.len()) == Some(run);
        if !open || attempt != Attempt::FIRST || run.end() > self.items.high {
            fx.violations.push(Invariant::ReportWasInFlight);
            return;
        }
        self.items.land(run.len(), fx);
        self.take_back(run.len(), 0);
        self.items.again.push_back(run);
        self.items.skips.on_returned();
    }

    fn return_retrying(&mut self, index: ItemIndex, attempt: Attempt, now: Now, fx: &mut Effects) {
        let expected = |t: &RetryingItem| t.doing == Doing::InFlight && t.attempts + 1 == attempt.get();
        if !self.items.retrying_items.get(index).is_some_and(expected) {
            fx.violations.push(Invariant::ReportWasInFlight);
            return;
        }
        if let Some(mut retrying) = self.items.retrying_items.take(index) {
            self.items.land(1, fx);
            self.take_back(1, u64::from(retrying.attempts > 0));
            retrying.doing = Doing::Waiting(now.moment);
            self.items.retrying_items.put(index, retrying);
            self.judge.look_for_marked();
            self.items.skips.on_waits(index);
        }
    }

    pub(super) fn take_back(&mut self, items: u32, repeats: u64) {
        self.meters.on_returned(u64::from(items), repeats);
        self.judge
            .circuit
            .on_returned(items.div_ceil(self.settings.tuning.batch.get()));
    }

    fn on_signal(&mut self, signal: Signal, now: Now) {
        match signal {
            Signal::Gone(failure) => {
                let text = format!("{}: {}", failure.code, failure.message);
                self.stop(RunEnd::stopped(StopReason::HandlerGone, text));
            }
            Signal::BackPressure {
                after,
                departed,
                failure,
            } => self.back_off(after, departed, &failure, now),
            Signal::Fenced => self.stop(RunEnd::Fenced),
            Signal::Command(command) => self.on_handler_command(command, now),
        }
    }

    /// Pauses after a call that was turned away, unless the autopilot finds the rate: it sends fewer calls instead.
    pub(super) fn back_off(
        &mut self,
        after: Option<Duration>,
        departed: Moment,
        failure: &Failure,
        now: Now,
    ) {
        self.judge.on_turned_away(failure, now.wall);
        if self.autopilot.finds_rate() {
            return;
        }
        if let Some(until) = self.judge.pauses.on_turned_away(after, departed, now.moment) {
            self.pause(until.since(now.moment), PauseReason::BackPressure, now);
        }
    }

    fn on_handler_command(&mut self, command: HandlerCommand, now: Now) {
        match command {
            HandlerCommand::Stop { reason } => {
                self.stop(RunEnd::stopped(StopReason::Business, reason));
            }
            HandlerCommand::Finish { total } => self.items.finish_task(&self.settings, total),
            HandlerCommand::PauseFor(span) => self.pause(span, PauseReason::Asked, now),
            HandlerCommand::SlowDown { rate, lasting, .. } => self.slow_down(rate, lasting, now),
        }
    }

    /// Ends the run if the judge requested it.
    #[inline]
    pub(super) fn obey_judge(&mut self) {
        if let Some(end) = self.judge.take_end() {
            self.stop(end);
        }
    }

    /// Begins to drain, unless the run is already ending; a fence overrides everything.
    pub(super) fn stop(&mut self, end: RunEnd) {
        match (&self.phase, &end) {
            (Phase::Running, _) => {
                self.phase = Phase::Stopping(end);
                self.pace.halt();
                self.judge.charge_explained_refusals(&mut self.items);
            }
            (Phase::Stopping(_), RunEnd::Fenced) => self.phase = Phase::Stopping(end),
            // A permanent stop outranks an end that would resume automatically.
            (Phase::Stopping(RunEnd::HandedOver | RunEnd::Recovering { .. }), RunEnd::Stopped { .. }) => {
                self.phase = Phase::Stopping(end);
            }
            (Phase::Stopping(_) | Phase::Ended(_), _) => {}
        }
    }
}

impl Judge {
    pub(in crate::execution) fn recover_from_failures(
        &mut self,
        settings: &Settings,
        code: &str,
        message: &str,
    ) {
        let budget = settings.whole.error_budget.failed_attempts;
        let allowed = budget.map_or(0.0, |attempts| attempts.rate().as_per_second());
        let of = match budget {
            Some(FailedAttempts::Most(_)) => say::most_attempts_fail,
            _ => say::too_many_attempts_fail,
        };
        let text = of(allowed, settings.whole.error_window, say::said(code, message));
        self.stop(RunEnd::Recovering {
            reason: "error_budget",
            text: text.to_string(),
        });
    }
}

impl Items {
    /// Settles items that never failed: the fast path.
    #[inline]
    pub(in crate::execution) fn settle_clean(&mut self, run: IndexRun, settled: Settled, fx: &mut Effects) {
        let all_new = settled.attempt == Attempt::FIRST
            && run.end() <= self.high
            && self.window.settle(run) == Ok(run.len());
        if !all_new {
            fx.violations.push(Invariant::ReportWasInFlight);
            return;
        }
        self.count(settled.outcome, run.len());
        self.land(run.len(), fx);
        self.drafts.on_completed(run.len());
    }

    /// Sets the bit of an item that stops retrying, unless it is set already.
    pub(in crate::execution) fn close_place(
        &mut self,
        index: ItemIndex,
        retrying: &RetryingItem,
        fx: &mut Effects,
    ) {
        if retrying.place == Place::Window && self.window.settle(IndexRun::one(index)) != Ok(1) {
            fx.violations.push(Invariant::ReportWasInFlight);
        }
    }

    pub(in crate::execution) fn count(&mut self, outcome: Outcome, items: u32) {
        match outcome {
            Outcome::Succeeded => self.counters.succeeded += u64::from(items),
            Outcome::Skipped => self.counters.skipped += u64::from(items),
        }
    }

    pub(in crate::execution) fn land(&mut self, items: u32, fx: &mut Effects) {
        match self.counters.in_flight.checked_sub(u64::from(items)) {
            Some(left) => self.counters.in_flight = left,
            None => fx.violations.push(Invariant::InFlightBounded),
        }
    }
}
