//! Other shards of the task: what a run knows of them, and what it has to tell them.
//!
//! Anything that the handler says about the task, not about an item, holds for every shard: it is written with the
//! next checkpoint, and the others read it with their control within a second.

use windrow_words::{Message, execution as say};

use crate::execution::items::Items;
use crate::execution::judge::Judge;
use crate::execution::settings::Settings;
use std::time::Duration;

use super::part::part_of;
use super::types::{Now, RunEnd};
use super::{Execution, Limits};
use crate::ids::{ItemCount, ItemIndex, Moment};
use crate::settings::Rate;
use crate::shards::{Directives, Pause, PauseReason, Share, Slow};
use crate::task::lifecycle::StopReason;
use crate::task::{ShardRange, Tuning};

/// State of the rest of the task, as a run knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Share of the task's rate.
    pub share: Share,
    /// Items of the whole task, without those left out at the head.
    pub items: ItemCount,
    /// Failed items of other shards, as far as they are saved.
    pub failed_elsewhere: u64,
    /// True if the handler is down for every other shard that isn't done.
    pub all_down: bool,
}

impl Shared {
    /// Creates the state for the only shard of a task.
    pub fn alone(range: ShardRange) -> Shared {
        Shared {
            share: Share::ALL,
            items: range.len(),
            failed_elsewhere: 0,
            all_down: true,
        }
    }
}

impl Execution {
    /// Handles a change in the rest of the task: shards were done, or items failed.
    pub(super) fn on_shared(&mut self, shared: Shared, now: Now) {
        let before = std::mem::replace(&mut self.settings.shared, shared);
        if before.share != shared.share {
            self.retune(now);
        }
        if shared.failed_elsewhere > before.failed_elsewhere {
            self.judge
                .judge_failed(&mut self.items, &self.settings, say::last_elsewhere());
            self.obey_judge();
        }
    }

    /// Applies changed settings of the task.
    pub(super) fn tune(&mut self, tuning: Tuning, now: Now) {
        self.settings.whole = tuning;
        self.retune(now);
    }

    fn retune(&mut self, now: Now) {
        let tuning = part_of(&self.settings.whole, self.settings.shared.share);
        self.pace
            .set(tuning.rate, tuning.burst, tuning.batch.get(), now.moment);
        self.judge.budget.set(tuning.error_budget, tuning.error_window);
        self.settings.limits = Limits::of(&tuning);
        self.settings.tuning = tuning;
        let (pace, latencies) = (&self.pace, self.meters.latencies());
        self.settings
            .limits
            .on_latency(&self.settings.tuning, pace, latencies);
        self.items.window.resize(self.settings.limits.window);
        self.steer(now);
    }

    /// Applies a pause or slow-down that another shard was asked for.
    pub(super) fn on_heard(&mut self, pause: Option<Pause>, slow: Option<Slow>, now: Now) {
        if let Some(pause) = pause {
            self.pace
                .pause_until(moment(pause.until.since(now.wall), now), now.moment);
        }
        if let Some(slow) = slow {
            let until = moment(slow.until.since(now.wall), now);
            self.pace
                .slow_down(self.settings.shared.share.of_rate(slow.rate), until, now.moment);
        }
    }

    pub(super) fn pause(&mut self, span: Duration, reason: PauseReason, now: Now) {
        self.pace.pause_until(now.moment.plus(span), now.moment);
        let pause = Pause {
            until: now.wall.plus(span),
            reason,
        };
        self.items.tell(
            &self.settings,
            Directives {
                pause: Some(pause),
                ..Directives::default()
            },
        );
    }

    pub(super) fn slow_down(&mut self, rate: Rate, lasting: Duration, now: Now) {
        self.pace.slow_down(
            self.settings.shared.share.of_rate(rate),
            now.moment.plus(lasting),
            now.moment,
        );
        let slow = Slow {
            rate,
            until: now.wall.plus(lasting),
        };
        self.items.tell(
            &self.settings,
            Directives {
                slow: Some(slow),
                ..Directives::default()
            },
        );
    }
}

impl Judge {
    /// Stops the task if all shards together have more failed items than allowed.
    pub(in crate::execution) fn judge_failed(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        the_last: Message,
    ) {
        let failed = items.failed_of_task(settings);
        if self.budget.is_failed_exceeded(failed, settings.shared.items) {
            let text = say::too_many_items_fail(failed, the_last).to_string();
            self.stop(RunEnd::stopped(StopReason::ErrorBudget, text));
        }
    }
}

impl Items {
    /// Finishes the task, because the business wants no more than `total` items; `None` ends it after those already
    /// sent.
    pub(in crate::execution) fn finish_task(&mut self, settings: &Settings, total: Option<ItemCount>) {
        self.finish(total.map_or(self.high, |total| ItemIndex(total.0)));
        let finish = ItemIndex(total.map_or(0, |total| total.0));
        self.tell(
            settings,
            Directives {
                finish: Some(finish),
                ..Directives::default()
            },
        );
    }

    pub(in crate::execution) fn tell(&mut self, settings: &Settings, news: Directives) {
        if !settings.shared.share.is_all() {
            self.drafts.tell(news);
        }
    }

    pub(in crate::execution) fn failed_of_task(&self, settings: &Settings) -> u64 {
        self.counters.failed + settings.shared.failed_elsewhere
    }
}

fn moment(wait: Duration, now: Now) -> Moment {
    now.moment.plus(wait)
}
