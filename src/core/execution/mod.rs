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

/// Fields of an execution that the judge may read and change.
macro_rules! scope {
    ($self:ident, $now:expr, $fx:expr) => {
        $crate::execution::Scope {
            items: &mut $self.items,
            settings: &$self.settings,
            now: $now,
            fx: $fx,
        }
    };
}

mod canary;
mod control;
mod cut_off;
mod draft;
mod failed;
mod grant;
mod items;
mod judge;
mod part;
mod picture;
mod reach;
mod report;
mod settings;
mod shared;
mod skips;
mod solo;
mod supply;
mod types;

pub use draft::{CheckpointDraft, SIDE_RECORDS_MAX};
pub use part::{part_of, sharding, shared_faults};
pub use picture::progress::{HeadAttempt, Progress};
pub use picture::window::{Cell, Head, WindowPicture};
pub use reach::{REACH_OF_CLAIM, Reach};
pub use shared::Shared;
pub use types::{Command, Effects, Event, Limits, Now, Phase, Reports, Restored, RunEnd, Start, Wait};

use self::settings::Settings;
use super::ids::ItemIndex;
use super::invariants::Invariant;
use super::pace::Pace;
use super::task::ShardRange;
use crate::items::waiting::{Doing, Trouble};

/// The state of one run. See the module.
#[derive(Debug)]
pub struct Execution {
    settings: Settings,
    phase: Phase,
    items: items::Items,
    pace: Pace,
    judge: judge::Judge,
    meters: picture::meters::Meters,

    handler_slots: Option<u32>,
    is_held: bool,
    are_results_full: bool,
    batches: grant::Batches,
    stragglers: grant::Stragglers,
    starved: bool,
    /// Begun after a crash loop: few completions may be unsaved, so that the next crash is near its cause.
    careful: bool,
}

/// Items of a step and what it may change, apart from the judge who asks.
struct Scope<'a> {
    items: &'a mut items::Items,
    settings: &'a Settings,
    now: Now,
    fx: &'a mut Effects,
}

impl Execution {
    /// A run that begins, or goes on from what was saved.
    pub fn new(start: Start, now: Now) -> Execution {
        let settings = Settings::new(start.tuning.clone(), start.shared);
        let (tuning, low) = (&settings.tuning, items::low_of(&start));
        let mut execution = Execution {
            phase: Phase::Running,
            pace: Pace::new(tuning.rate, tuning.burst, tuning.batch.get(), now.moment),
            judge: judge::Judge::new(&start, tuning, now.moment),
            meters: picture::meters::Meters::new(start.restored.counters.settled(), low, now.moment),
            handler_slots: None,
            is_held: false,
            are_results_full: false,
            batches: grant::Batches::new(tuning.batch.get()),
            stragglers: grant::Stragglers::default(),
            starved: false,
            careful: start.stalls >= solo::STALLS_MAX,
            items: items::Items::new(&start, settings.limits.window),
            settings,
        };
        let (saved, items) = (start.restored, &mut execution.items);
        items.counters.excluded = 0;
        items.restore_troubles(saved.retrying, saved.parked, saved.outage.is_some(), now);
        items.exclude(saved.excluded);
        items.canary.set(start.canary, items.range.start);
        if execution.careful {
            items.begin_solo(&execution.settings, now);
        }
        execution
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
            Event::SourceReady(upto) => self.items.source_ready = self.items.source_ready.max(upto),
            Event::HandlerSlots(slots) => self.on_slots(slots),
            Event::Held(is_held) => self.is_held = is_held,
            Event::ResultsFull(is_full) => self.are_results_full = is_full,
            Event::DraftCheckpoint => fx.checkpoint = self.draft(),
            Event::CheckpointStored(no) => self.items.on_checkpoint_stored(no),
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
        self.fail_marked(now, fx);
        self.skip_wanted(fx);
        self.judge_canary();
        self.on_time(now);
        if self.judge.errors.last().is_some() {
            self.judge.judge_patience(&scope!(self, now, fx));
            self.obey_judge();
        }
        self.grant(want, now, fx);
        let low = self.items.window.watermark();
        self.meters.watch_head(low, self.items.high, now.moment);
        fx.checkpoint_due |= self.is_checkpoint_due();
    }

    /// What depends on time alone: the speed meter and the automatic concurrency.
    fn on_time(&mut self, now: Now) {
        let called = self
            .items
            .counters
            .settled()
            .saturating_sub(self.items.skips.passed());
        if self.meters.on_time(called, now.moment) {
            let latencies = self.meters.latencies();
            self.settings
                .limits
                .on_latency(&self.settings.tuning, &self.pace, latencies);
            self.items.window.resize(self.settings.limits.window);
            self.meters.fade();
        }
    }

    /// Lanes are gone with everything they had: nothing is in flight any more, and nothing of it is credited.
    fn on_lanes_lost(&mut self, now: Now) {
        self.tell_cut_off();
        let is_repeat = |t: &Trouble| t.doing == Doing::InFlight && t.attempts > 0;
        let repeats = self.items.troubles.which(is_repeat).len() as u64;
        self.meters.on_returned(self.items.counters.in_flight, repeats);
        self.stall(None, now.moment);
        self.items.troubles.lose_flights(now.moment);
        self.judge.look_for_marked();
        self.items.look_for_skipped();
        self.judge.circuit.on_lost(now.moment);
        self.items.counters.in_flight = 0;
        self.items.again.clear();
        self.items.cursor = self.items.window.watermark();
        self.pace.empty(now.moment);
        self.items.merge_outstanding();
        self.end_what_is_over();
    }

    /// How many items are with the handler.
    pub fn in_flight(&self) -> u64 {
        self.items.counters.in_flight
    }

    /// Checks the cheap invariants; the caller counts what is broken, tests panic.
    pub fn check(&self, fx: &mut Effects) {
        let mut broken = |ok: bool, invariant: Invariant| {
            if !ok {
                fx.violations.push(invariant);
            }
        };
        let counters = self.items.counters;
        let outside = self.items.troubles.outside();
        let low = self.items.window.watermark();
        let accounted = counters.accounted() + self.items.troubles.outside_waiting();
        broken(accounted <= self.items.range.len().0, Invariant::TermsAddUp);
        let passed = low.0 - self.items.range.start.0 + self.items.window.settled_above();
        broken(
            counters.settled() + outside == passed,
            Invariant::CountersMatchWindow,
        );
        broken(!self.items.window.is_settled(low), Invariant::WatermarkIsFirstOpen);
        broken(
            low >= self.items.drafts.watermark(),
            Invariant::WatermarkNeverFalls,
        );
        broken(
            self.items.cursor <= self.items.end.max(low) && low <= self.items.high,
            Invariant::HighWaterInsideWindow,
        );
    }
}
