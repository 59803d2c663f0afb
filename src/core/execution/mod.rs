//! Core of a run: composes window, pace, retries, budget and progress into one state machine.
//!
//! `step(event, now, &mut effects)`: facts come in (results of calls, commands, acknowledgements), decisions go out
//! (items to dispatch, the time to ask again, checkpoints to save). One event may carry a batch of facts, effects
//! consist of index runs, and the caller reuses the buffers, so a step costs nanoseconds per item. Same inputs, same
//! outputs.
//!
//! `report` and `failed` process the results of calls; `judge` owns what they mean for the handler, and the dispatch
//! while it may be down; `grant` decides what is sent, `horizon` how far ahead of the store, `draft` owns the changes
//! that no checkpoint holds yet, `control` executes commands, `picture` is the view for people, `solo` finds the item
//! that crashes the node, `canary` holds back all but the first items, `part` shares the settings, `shared` tracks
//! the other shards, `supply` the items that are added, `skips` those that people want skipped, `autopilot` holds calls
//! back that the service would refuse, `charges` those that a limit in units doesn't allow; `tickets` are the calls
//! that both account for. Each component owns
//! its fields; `Execution::step` composes them. Invariants: `invariants`.

/// Borrows the fields of an execution that the judge may read and change.
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

mod autopilot;
mod canary;
mod charges;
mod control;
mod cut_off;
mod draft;
mod extension;
mod failed;
mod grant;
mod horizon;
mod items;
mod judge;
mod limits;
mod part;
mod picture;
mod report;
mod settings;
mod shared;
mod skips;
mod solo;
mod supply;
mod tickets;
mod types;

pub use autopilot::Found;
pub use charges::{
    AllowancePicture, AllowanceSaved, Departure, HeldBy, MeterPicture, MeterSaved, Purse,
    Saved as MetersSaved, SharedEnd, Usage, usage,
};
pub use draft::{CheckpointDraft, SIDE_RECORDS_MAX};
pub use extension::Extension;
pub use horizon::{HORIZON_OF_CLAIM, Horizon};
pub use limits::Limits;
pub use part::{part_of, sharding, shared_faults};
pub use picture::progress::{HeadAttempt, Progress};
pub use picture::window::{Cell, Head, WindowPicture};
pub use shared::Shared;
pub use tickets::CallEnd;
pub use types::{Command, Effects, Event, Now, Phase, Reports, Restored, RunEnd, Start, Wait};

use self::settings::Settings;
use super::ids::{ItemIndex, Moment};
use super::invariants::Invariant;
use super::pace::Pace;
use super::task::ShardRange;
use crate::items::waiting::{Doing, RetryingItem};

/// State machine of one run.
#[derive(Debug)]
pub struct Execution {
    settings: Settings,
    phase: Phase,
    items: items::Items,
    pace: Pace,
    judge: judge::Judge,
    autopilot: autopilot::Autopilot,
    charges: charges::Charges,
    /// Time until which limits in units let nothing be sent.
    charged_until: Option<Moment>,
    tickets: tickets::Tickets,
    meters: picture::meters::Meters,

    handler_slots: Option<u32>,
    is_held: bool,
    are_results_full: bool,
    batches: grant::Batches,
    stragglers: grant::Stragglers,
    starved: bool,
    /// Set if the run began after a crash loop: few completions may be unsaved, so that the next crash is near its
    /// cause.
    careful: bool,
}

/// Fields of an execution, other than the judge, that the judge may read and change in a step.
struct Scope<'a> {
    items: &'a mut items::Items,
    settings: &'a Settings,
    now: Now,
    fx: &'a mut Effects,
}

impl Execution {
    /// Starts a run, or resumes one from its saved state.
    pub fn new(start: Start, now: Now) -> Execution {
        let settings = Settings::new(start.tuning.clone(), start.shared);
        let (tuning, low) = (&settings.tuning, items::low_of(&start));
        let mut execution = Execution {
            phase: Phase::Running,
            pace: Pace::new(tuning.rate, tuning.burst, tuning.batch.get(), now.moment),
            judge: judge::Judge::new(&start, tuning, now.moment),
            autopilot: autopilot::Autopilot::new(&start),
            charges: charges::Charges::new(&start.metering, &start.restored, now),
            tickets: tickets::Tickets::default(),
            charged_until: None,
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
        items.restore_retrying(saved.retrying, saved.parked, saved.outage.is_some(), now);
        items.exclude(saved.excluded);
        items.canary.set(start.canary, items.range.start);
        if execution.careful {
            items.begin_solo(&execution.settings, now);
        }
        execution.steer(now);
        execution
    }

    /// Processes one event and appends the decisions to `fx`, which the caller has cleared.
    pub fn step(&mut self, event: Event<'_>, now: Now, fx: &mut Effects) {
        // Any event from outside the lanes may allow more to be sent; reports say so themselves.
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
            Event::CheckpointStored(no) => {
                self.items.on_checkpoint_stored(no);
                self.charges.on_stored(no);
            }
            Event::LanesLost => self.on_lanes_lost(now),
        }
        fx.wake_lanes |= may_free && std::mem::take(&mut self.starved);
        // In production only once per checkpoint, because it walks the window.
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
        }
        self.judge.judge_refusals(&scope!(self, now, fx));
        self.obey_judge();
        self.grant(want, now, fx);
        let low = self.items.window.watermark();
        self.meters.watch_head(low, self.items.high, now.moment);
        fx.checkpoint_due |= self.is_checkpoint_due();
    }

    /// Updates what depends on time alone: the speed meter and the automatic concurrency.
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
            self.steer(now);
            self.meters.fade();
        }
    }

    /// Handles the loss of the lanes with everything they had: nothing is in flight any more, and nothing of it is
    /// credited.
    fn on_lanes_lost(&mut self, now: Now) {
        self.tell_cut_off();
        let is_repeat = |t: &RetryingItem| t.doing == Doing::InFlight && t.attempts > 0;
        let repeats = self.items.retrying_items.which(is_repeat).len() as u64;
        self.meters.on_returned(self.items.counters.in_flight, repeats);
        self.stall(None, now.moment);
        self.items.retrying_items.lose_flights(now.moment);
        self.judge.look_for_marked();
        self.items.look_for_skipped();
        self.judge.circuit.on_lost(now.moment);
        self.lose_tickets(now.moment);
        self.items.counters.in_flight = 0;
        self.items.again.clear();
        self.items.cursor = self.items.window.watermark();
        self.pace.empty(now.moment);
        self.items.merge_outstanding();
        self.end_what_is_over();
    }

    /// Returns the number of items with the handler.
    pub fn in_flight(&self) -> u64 {
        self.items.counters.in_flight
    }

    /// Checks the cheap invariants; the caller counts violations, tests panic.
    pub fn check(&self, fx: &mut Effects) {
        let mut broken = |ok: bool, invariant: Invariant| {
            if !ok {
                fx.violations.push(invariant);
            }
        };
        let counters = self.items.counters;
        let outside = self.items.retrying_items.outside();
        let low = self.items.window.watermark();
        let accounted = counters.accounted() + self.items.retrying_items.outside_waiting();
        broken(accounted <= self.items.range.len().0, Invariant::TermsAddUp);
        let passed = low.0 - self.items.range.start.0 + self.items.window.settled_above();
        broken(
            counters.settled() + outside == passed,
            Invariant::CountersMatchWindow,
        );
        broken(
            !self.items.window.is_settled(low),
            Invariant::WatermarkIsFirstOpen,
        );
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
