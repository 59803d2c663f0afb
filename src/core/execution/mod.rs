//! The core of a run: window, pace, retries, budget and progress composed into one state machine.
//!
//! `step(event, now, &mut effects)`: facts come in (what calls came to, commands, acknowledgements), decisions go out
//! (what to dispatch, when to ask again, what to save). One event may carry a batch of facts, effects speak in index
//! runs, and the caller reuses the buffers, so that a step costs nanoseconds per item. Same inputs, same outputs.
//!
//! `report` and `failed` take in what calls came to; `judge` owns what they say of the handler, and what leaves while it may
//! be down; `grant` decides what leaves, `reach` how far before the store knows, `draft` owns what no checkpoint holds yet,
//! `control` obeys commands, `picture` tells people, `solo` finds the item that kills the node, `canary` holds all but the
//! first items back, `part` shares the settings, `shared` knows of the other shards, `supply` of items that are added, `skips` of those that people want skipped. Each component's fields are its own;
//! `Execution::step` composes them. Invariants: `invariants`.

mod canary;
mod control;
mod cut_off;
mod draft;
mod failed;
mod grant;
mod judge;
mod part;
mod picture;
mod reach;
mod report;
mod shared;
mod skips;
mod solo;
mod supply;
mod types;

use std::collections::VecDeque;

pub use draft::{CheckpointDraft, SIDE_RECORDS_MAX};
pub use part::{part_of, sharding, shared_faults};
pub use picture::progress::{HeadAttempt, Progress};
pub use picture::window::{Cell, Head, WindowPicture};
pub use reach::{REACH_OF_CLAIM, Reach};
pub use shared::Shared;
pub use types::{Command, Effects, Event, Limits, Now, Phase, Reports, Restored, RunEnd, Start, Wait};

use super::ids::{ItemIndex, RunNo, ShardId};
use super::invariants::Invariant;
use super::pace::Pace;
use super::task::{Canary, ShardRange, Tuning};
use crate::items::counters::Counters;
use crate::items::error_budget::Meter;
use crate::items::run::IndexRun;
use crate::items::waiting::{Doing, Trouble, Troubles};
use crate::items::window::Window;

/// The state of one run. See the module.
#[derive(Debug)]
pub struct Execution {
    shard: ShardId,
    run: RunNo,
    range: ShardRange,
    /// One past the last index that will ever be dispatched: `range.end` unless the task was finished early.
    end: ItemIndex,
    /// The task's settings.
    whole: Tuning,
    /// What this shard makes of them.
    tuning: Tuning,
    shared: Shared,
    limits: Limits,
    phase: Phase,

    window: Window,
    /// Where the search for fresh items goes on.
    cursor: ItemIndex,
    /// One past the highest index ever dispatched.
    high: ItemIndex,
    ahead: reach::Ahead,
    /// Fresh items that came back without having left.
    again: VecDeque<IndexRun>,
    troubles: Troubles,
    /// What due parked items may leave first, less than one. Unit: a quarter of an item.
    parked_quarters: u64,
    counters: Counters,
    skips: skips::Skips,

    pace: Pace,
    budget: Meter,
    circuit: judge::circuit::Circuit,
    errors: judge::errors::Errors,
    judge: judge::Judge,
    turned_away: judge::turned_away::TurnedAway,
    drafts: draft::Drafts,
    solo: solo::Solo,
    canary: canary::CanaryHold,
    meters: picture::meters::Meters,

    supply: supply::Stock,
    source_ready: ItemIndex,
    handler_slots: Option<u32>,
    is_held: bool,
    are_results_full: bool,
    batches: grant::Batches,
    stragglers: grant::Stragglers,
    starved: bool,
    /// Begun after a crash loop: few completions may be unsaved, so that the next crash is near its cause.
    careful: bool,
}

impl Execution {
    /// A run that begins, or goes on from what was saved.
    pub fn new(start: Start, now: Now) -> Execution {
        let range = supply::known(start.range, start.supply);
        let tuning = part_of(&start.tuning, start.shared.share);
        let (limits, low) = (Limits::of(&tuning), start.restored.low_water.max(range.start));
        let mut execution = Execution {
            shard: start.shard,
            run: start.run,
            range,
            end: range.end,
            phase: Phase::Running,
            window: Window::restore(low, limits.window, &start.restored.above),
            cursor: low,
            high: start.restored.high_water.max(low),
            ahead: reach::Ahead::new(&start.restored, low),
            again: VecDeque::new(),
            troubles: Troubles::default(),
            parked_quarters: 0,
            counters: start.restored.counters,
            skips: skips::Skips::new(start.restored.counters.skipped),
            pace: Pace::new(tuning.rate, tuning.burst, tuning.batch.get(), now.moment),
            budget: Meter::new(tuning.error_budget, tuning.error_window),
            circuit: judge::circuit::Circuit::of(start.shard, start.restored.outage, now.moment),
            errors: judge::errors::Errors::default(),
            judge: judge::Judge::new(&start, now.moment),
            turned_away: judge::turned_away::TurnedAway::default(),
            drafts: draft::Drafts::new(low),
            solo: solo::Solo::default(),
            canary: canary::CanaryHold::default(),
            meters: picture::meters::Meters::new(start.restored.counters.settled(), low, now.moment),
            supply: supply::Stock::of(start.supply),
            source_ready: if start.has_data { low } else { range.end },
            handler_slots: None,
            is_held: false,
            are_results_full: false,
            batches: grant::Batches::new(tuning.batch.get(), start.restored.outage.is_some()),
            stragglers: grant::Stragglers::default(),
            starved: false,
            careful: start.stalls >= solo::STALLS_MAX,
            whole: start.tuning,
            tuning,
            shared: start.shared,
            limits,
        };
        execution.resume(start.restored, start.canary, now);
        execution
    }

    fn resume(&mut self, restored: Restored, canary: Option<Canary>, now: Now) {
        self.counters.excluded = 0;
        self.restore_troubles(restored.retrying, restored.parked, now);
        self.exclude(restored.excluded);
        self.canary.set(canary, self.range.start);
        self.begin_solo(now);
    }

    /// Takes one event in and appends the decisions to `fx`, which the caller cleared.
    pub fn step(&mut self, event: Event<'_>, now: Now, fx: &mut Effects) {
        // Whatever comes from outside the lanes may let something leave; a report says so itself.
        let may_free = !matches!(
            event,
            Event::Exchange { .. } | Event::DraftCheckpoint | Event::Held(_) | Event::ResultsFull(_)
        );
        let checks = matches!(event, Event::DraftCheckpoint);
        match event {
            Event::Exchange { reports, want } => self.on_exchange(reports, want, now, fx),
            Event::Command(command) => self.on_command(command, now),
            Event::SourceReady(upto) => self.source_ready = self.source_ready.max(upto),
            Event::HandlerSlots(slots) => self.on_slots(slots),
            Event::Held(is_held) => self.is_held = is_held,
            Event::ResultsFull(is_full) => self.are_results_full = is_full,
            Event::DraftCheckpoint => fx.checkpoint = self.draft(),
            Event::CheckpointStored(no) => self.on_checkpoint_stored(no),
            Event::LanesLost => self.on_lanes_lost(now),
        }
        fx.wake_lanes |= may_free && std::mem::take(&mut self.starved);
        // In production once per checkpoint: it walks the window.
        if cfg!(debug_assertions) || checks {
            self.check(fx);
        }
    }

    fn on_exchange(&mut self, reports: &mut Reports, want: u32, now: Now, fx: &mut Effects) {
        self.skip_wanted(fx);
        self.on_reports(reports, now, fx);
        self.give_up_decided(fx);
        self.skip_wanted(fx);
        self.judge_canary();
        self.on_time(now);
        if self.errors.last().is_some() {
            self.judge_patience(now);
        }
        self.grant(want, now, fx);
        let low = self.window.low_water();
        self.meters.watch_head(low, self.high, now.moment);
        fx.checkpoint_due |= self.is_checkpoint_due();
    }

    /// What depends on time alone: the speed meter and the automatic concurrency.
    fn on_time(&mut self, now: Now) {
        let called = self.counters.settled().saturating_sub(self.skips.passed());
        if self.meters.on_time(called, now.moment) {
            let latencies = self.meters.latencies();
            self.limits.on_latency(&self.tuning, &self.pace, latencies);
            self.window.resize(self.limits.window);
            self.meters.fade();
        }
    }

    /// Lanes are gone with everything they had: nothing is in flight any more, and nothing of it is credited.
    fn on_lanes_lost(&mut self, now: Now) {
        self.tell_cut_off();
        let is_repeat = |t: &Trouble| t.doing == Doing::InFlight && t.attempts > 0;
        let repeats = self.troubles.which(is_repeat).len() as u64;
        self.meters.on_returned(self.counters.in_flight, repeats);
        self.stall(None, now.moment);
        self.troubles.lose_flights(now.moment);
        self.look_for_given_up();
        self.look_for_skipped();
        self.circuit.on_lost(now.moment);
        self.counters.in_flight = 0;
        self.again.clear();
        self.cursor = self.window.low_water();
        self.pace.empty(now.moment);
        self.merge_outstanding();
        self.end_what_is_over();
    }

    /// How many items are with the handler.
    pub fn in_flight(&self) -> u64 {
        self.counters.in_flight
    }

    /// Checks the cheap invariants; the caller counts what is broken, tests panic.
    pub fn check(&self, fx: &mut Effects) {
        let mut broken = |ok: bool, invariant: Invariant| {
            if !ok {
                fx.violations.push(invariant);
            }
        };
        let counters = self.counters;
        let outside = self.troubles.outside();
        let low = self.window.low_water();
        let accounted = counters.accounted() + self.troubles.outside_waiting();
        broken(accounted <= self.range.len().0, Invariant::TermsAddUp);
        let passed = low.0 - self.range.start.0 + self.window.settled_above();
        broken(
            counters.settled() + outside == passed,
            Invariant::CountersMatchWindow,
        );
        broken(!self.window.is_settled(low), Invariant::LowWaterIsFirstOpen);
        broken(low >= self.drafts.low_water(), Invariant::LowWaterNeverFalls);
        broken(
            self.cursor <= self.end.max(low) && low <= self.high,
            Invariant::HighWaterInsideWindow,
        );
    }
}
