//! The last items of a task: their time is bounded, whatever they fail with.
//!
//! Nothing is left but items that failed, and none is to come, so nothing may ever show whether the handler fails for them
//! alone. They are tried for `judge_after`, from when only they were left or from the last answer. Then those of which nobody
//! said what they are fail as they stand, unconfirmed; a redrive calls them again. An outage that began while others were
//! left is borne as any other.

use crate::execution::items::Items;
use crate::execution::judge::Judge;
use crate::execution::settings::Settings;
use std::time::Duration;

use crate::execution::types::{Effects, Now};
use crate::ids::{ItemIndex, Moment};
use crate::items::verdict::FailureClass;
use crate::items::waiting::{Doing, Trouble};
use crate::settings::Auto;

/// The last items are tried for as long as the run took before only they were left, within these bounds.
const AUTO_SPAN: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(600));

/// The last items are told after so long: most of them are over by then.
const TOLD_AFTER: Duration = Duration::from_secs(15);
/// Answers make that longer, up to so many times.
const ANSWERED_FACTOR: u32 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// When only items that failed were left.
    since: Option<Moment>,
    /// When something was answered last, once only they were left.
    answered: Moment,
    /// Their time is over.
    is_over: bool,
}

impl Tail {
    /// The handler answers: those that are left are tried for longer.
    pub(super) fn on_answered(&mut self, now: Moment) {
        self.answered = now;
    }

    /// When their time is over.
    fn end(&self, since: Moment, span: Duration) -> Moment {
        let longest = since.plus(span.saturating_mul(ANSWERED_FACTOR));
        since.max(self.answered).plus(span).min(longest)
    }

    /// Only items that failed are left.
    pub(super) fn is_on(&self) -> bool {
        self.since.is_some()
    }
}

impl Judge {
    /// Looks whether only items that failed are left, and whether their time is over; says when it will be.
    pub(in crate::execution) fn judge_tail(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        now: Now,
        fx: &mut Effects,
    ) -> Option<Moment> {
        let is_bare = items.cursor >= items.end && items.again.is_empty() && !items.supply.is_open();
        // It is down for shards that have more to call for, too: that is an outage, and none of the last items.
        let is_down_elsewhere = settings.shared.all_down && !settings.shared.share.is_all();
        if !is_bare || is_down_elsewhere || items.troubles.is_empty() || !items.has_succeeded() {
            self.tail = Tail::default();
            return None;
        }
        if self.tail.since.is_none() && !self.circuit.is_closed() {
            return None;
        }
        let since = *self.tail.since.get_or_insert(now.moment);
        let end = self.tail.end(since, self.judge_after(settings));
        if now.moment < end {
            return Some(end);
        }
        if !self.tail.is_over {
            self.tail.is_over = true;
            self.circuit.give_up_waiting(now.moment);
            self.give_up_tail(items, settings, now, fx);
        }
        None
    }

    /// An attempt without a verdict counts now, whatever explains it.
    pub(in crate::execution) fn is_tail_over(&self) -> bool {
        self.tail.is_over
    }

    /// Time until the last items are given up, once that is worth a word.
    pub(in crate::execution) fn tail_left(&self, settings: &Settings, now: Now) -> Option<Duration> {
        let (since, span) = (self.tail.since?, self.judge_after(settings));
        let is_told = now.moment.since(since) >= TOLD_AFTER.min(span / 2);
        is_told.then(|| self.tail.end(since, span).since(now.moment))
    }

    /// Time for which items are tried that nothing can be compared with.
    pub(in crate::execution) fn judge_after(&self, settings: &Settings) -> Duration {
        match (settings.whole.judge_after, self.tail.since) {
            (Auto::Fixed(span), _) => span,
            (Auto::Auto, Some(since)) => since.since(self.began).clamp(AUTO_SPAN.0, AUTO_SPAN.1),
            (Auto::Auto, None) => AUTO_SPAN.1,
        }
    }

    /// Items that wait after an attempt without a verdict; one that waits after a verdict has its next attempt.
    pub(in crate::execution) fn give_up_tail(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        now: Now,
        fx: &mut Effects,
    ) {
        let is_open = |t: &Trouble| {
            let is_without_verdict =
                t.held.is_some() || t.uncharged > 0 || t.last == Some(FailureClass::Unclear);
            t.doing != Doing::InFlight && is_without_verdict
        };
        for index in items.troubles.which(is_open) {
            if let Some(trouble) = items.troubles.take(index) {
                self.end_open(items, settings, index, trouble, now, fx);
            }
        }
    }

    /// The time of an item is over whose last attempt brought no verdict: it is given up once it had as many as any other. Until
    /// then it is called without a longer wait, and no longer than an answer might have made it.
    pub(in crate::execution) fn end_open(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        index: ItemIndex,
        trouble: Trouble,
        now: Now,
        fx: &mut Effects,
    ) {
        let made = trouble.attempts.max(trouble.charged + trouble.uncharged);
        let longest = self.judge_after(settings).saturating_mul(ANSWERED_FACTOR + 1);
        let since = self.tail.since.unwrap_or(now.moment);
        if made >= settings.tuning.max_attempts.get() || now.moment.since(since) >= longest {
            return self.give_up_open(items, settings, index, trouble, now, fx);
        }
        items.wait_for_retry(settings, index, trouble, settings.tuning.backoff.first, now);
    }

    /// Gives the item up, unconfirmed unless others were answered after each of its attempts.
    pub(in crate::execution) fn give_up_open(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        index: ItemIndex,
        mut trouble: Trouble,
        now: Now,
        fx: &mut Effects,
    ) {
        let answered = self.circuit.answered();
        let is_confirmed = trouble.uncharged == 0 && trouble.doubts.iter().all(|at| *at <= answered);
        trouble.is_unconfirmed = !is_confirmed;
        self.exhaust(items, settings, index, trouble, now, fx);
    }
}
