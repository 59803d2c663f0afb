//! State of the handler as shown to people.

use std::time::Duration;

use super::Judge;
use crate::execution::Execution;
use crate::execution::items::Items;
use crate::execution::settings::Settings;
use crate::execution::types::Now;
use crate::ids::{ItemIndex, WallMs};
use crate::items::verdict::{HandlerState, Paused};

/// Maximum number of held items that are named to people.
const HELD_NAMED: usize = 3;
/// Time after which tried items are shown: most of them are over by then.
const TOLD_AFTER: Duration = Duration::from_secs(15);

/// Last call that was turned away since the last verdict.
#[derive(Clone, Debug)]
pub(super) struct TurnedAwayWith {
    pub(super) said: String,
    /// Time of the first one.
    pub(super) since: WallMs,
    /// Set once that is so long ago that it is an outage, for other shards and for the run after this one.
    pub(super) is_outage: bool,
}

impl Execution {
    /// Returns the state of the handler.
    pub fn handler(&self, now: Now) -> HandlerState {
        let next_probe = self.judge.circuit.next_probe();
        let (tried, judged_in) = self.judge.tried(&self.items, &self.settings, now);
        let named = tried.len();
        HandlerState {
            contacted: self.judge.contacted,
            outage: self.judge.circuit.outage(),
            next_probe_in: next_probe.map(|next| next.since(now.moment)),
            error: self.judge.errors.recent(),
            held: named as u64,
            held_items: tried.into_iter().take(HELD_NAMED).collect(),
            held_tries: Judge::tries_left(&self.items, &self.settings, named),
            judged_in,
            unjudged: self.judge.unjudged(&self.items, &self.settings),
            paused: self.pace.paused(now.moment).map(|until| Paused {
                left: until.since(now.moment),
                said: self.judge.turned_away_with.as_ref().map(|with| with.said.clone()),
            }),
        }
    }
}

impl Judge {
    /// Returns the items that are tried without others to compare them with, or that wait for a witness, and the time
    /// until they are judged without one.
    pub(super) fn tried(
        &self,
        items: &Items,
        settings: &Settings,
        now: Now,
    ) -> (Vec<ItemIndex>, Option<Duration>) {
        let held = || items.retrying_items.held().collect();
        let Some(trial) = self.alone.trial() else {
            return (held(), None);
        };
        let span = self.span_of(settings, items.has_succeeded());
        let judged_in = span.map(|span| trial.end(span).since(now.moment));
        let told_after = span.map_or(TOLD_AFTER, |span| TOLD_AFTER.min(span / 2));
        match (trial.is_tail, now.moment.since(trial.since) >= told_after) {
            (true, true) => (items.retrying_items.which(|_| true), judged_in),
            (true, false) => (held(), None),
            (false, _) => (held(), judged_in),
        }
    }

    /// Returns the calls that the least called held item has left before it is judged; 0 if not all tried items are
    /// held.
    pub(super) fn tries_left(items: &Items, settings: &Settings, tried: usize) -> u32 {
        if items.retrying_items.held().count() < tried {
            return 0;
        }
        let calls = |index| {
            items
                .retrying_items
                .get(index)?
                .suspicion
                .held
                .map(|(_, calls)| calls)
        };
        let least = items.retrying_items.held().filter_map(calls).min();
        least.map_or(0, |calls| {
            settings.tuning.max_attempts.get().saturating_sub(calls)
        })
    }

    /// Returns the number of items left that brought 502 or 503 each time, where only a person can say that they are
    /// at fault.
    pub(super) fn unjudged(&self, items: &Items, settings: &Settings) -> u64 {
        let is_down = !self.circuit.is_closed() && items.has_succeeded();
        match is_down && !items.is_fresh_left() && !self.alone.is_on() {
            true => self.absent(items, settings) as u64,
            false => 0,
        }
    }
}
