//! Handlers that are down for an hour, and items that always fail: an outage costs time and never items, and the guilty are
//! found all the same. One core, one lane, a virtual clock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use windrow_core::execution::{Effects, Event, Execution, Reports, Restored, RunEnd, Shared, Start, Wait};
use windrow_core::ids::{ItemIndex, Moment, RunNo, ShardId, TaskId};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::{
    Dispatch, Failed, FailedCall, Failure, FailureClass, Outcome, ParkedItem, RetryAdvice, Settled,
    SideRecord,
};
use windrow_core::settings::{Auto, Rate, RateLimit};
use windrow_core::task::{Canary, ShardRange, Tuning};

use crate::plan::{defaults, n};
use crate::rng::Rng;
use crate::world::at;

const SECOND: u64 = 1_000_000_000;

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing listens, no name, no TLS, a worker that can't start.
    Connect,
    /// 502 and 503.
    Unavailable,
    /// 500.
    Status500,
    /// No answer in time.
    Timeout,
    /// A reset, a worker that dies.
    Reset,
    /// 422.
    Unprocessable,
    /// 404 and the like.
    NotFound,
}

impl Fault {
    fn class(self) -> FailureClass {
        match self {
            Fault::Connect => FailureClass::Unreachable,
            Fault::Unavailable => FailureClass::Unavailable,
            Fault::Status500 | Fault::Timeout | Fault::Reset => FailureClass::Unclear,
            Fault::Unprocessable => FailureClass::Answered,
            Fault::NotFound => FailureClass::Rejected,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Fault::Connect => "CONNECT",
            Fault::Unavailable => "HTTP_503",
            Fault::Status500 => "HTTP_500",
            Fault::Timeout => "TIMEOUT",
            Fault::Reset => "RESET",
            Fault::Unprocessable => "HTTP_422",
            Fault::NotFound => "HTTP_404",
        }
    }
}

/// A task, its handler, and what goes wrong. Times in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) total: u64,
    pub(crate) tuning: Tuning,
    pub(crate) canary: Option<Canary>,
    pub(crate) first_contact: Option<Duration>,
    /// From when to when, and how.
    pub(crate) outage: Option<(u64, u64, Fault)>,
    /// How many of a hundred items always fail, and how.
    pub(crate) bad_percent: u64,
    pub(crate) bad: Vec<Fault>,
    /// So many of a hundred calls fail so, whatever their items.
    pub(crate) shed_percent: u64,
    pub(crate) shed_fault: Fault,
    /// The outage comes and goes: so many seconds each.
    pub(crate) flaps: Option<u64>,
    /// An earlier run called the first so many items, and the bad ones among them failed.
    pub(crate) called_before: u64,
    /// So many of their attempts count, unless it was 503.
    pub(crate) charged_before: u32,
    /// Calls take up to so many milliseconds, each another time; none of them 20 ms.
    pub(crate) jitter_ms: Option<u64>,
    /// The handler succeeded in the task whose failures these items are.
    pub(crate) is_proven: bool,
    /// Bad items stand together instead of anywhere.
    pub(crate) block: Option<(u64, u64)>,
    pub(crate) seed: u64,
}

impl Case {
    pub(crate) fn new(rate: Option<u64>, total: u64) -> Case {
        let rate = rate
            .and_then(Rate::per_second)
            .map_or(RateLimit::Unlimited, RateLimit::Limited);
        let tuning = Tuning {
            rate,
            concurrency: Auto::Fixed(n(64)),
            max_attempts: n(5),
            timeout: Duration::from_secs(10),
            judge_after: Auto::Fixed(Duration::from_secs(600)),
            ..defaults()
        };
        let (canary, first_contact, outage, block) = (None, None, None, None);
        Case {
            total,
            tuning,
            canary,
            first_contact,
            outage,
            bad_percent: 0,
            bad: Vec::new(),
            shed_percent: 0,
            shed_fault: Fault::Unavailable,
            flaps: None,
            called_before: 0,
            charged_before: 0,
            jitter_ms: None,
            is_proven: false,
            block,
            seed: 1,
        }
    }

    pub(crate) fn bad_fault(&self, index: u64) -> Option<Fault> {
        let in_block = self.block.is_some_and(|(from, to)| (from..to).contains(&index));
        let mut rng = Rng(self.seed ^ index.wrapping_mul(0x9e37_79b9));
        let is_bad = in_block || rng.chance(self.bad_percent * 10);
        (is_bad && !self.bad.is_empty()).then(|| self.bad[(index % self.bad.len() as u64) as usize])
    }

    /// What an earlier run saved.
    fn restored(&self, range: ShardRange) -> Restored {
        let mut saved = Restored::fresh(range);
        saved.is_proven = self.is_proven;
        let failed: Vec<u64> = (0..self.called_before)
            .filter(|index| self.bad_fault(*index).is_some())
            .collect();
        let parked = failed.iter().map(|index| {
            let fault = self.bad_fault(*index);
            let is_absent = fault == Some(Fault::Unavailable);
            ParkedItem {
                index: ItemIndex(*index),
                attempts: self.charged_before.max(1),
                charged: if is_absent { 0 } else { self.charged_before },
                failure: fault.map(|fault| Failure::new(fault.code(), "before")),
                at: at(0).wall,
                due_at: at(0).wall,
                history: Vec::new(),
            }
        });
        saved.parked = parked.collect();
        (saved.watermark, saved.high_water) = (ItemIndex(self.called_before), ItemIndex(self.called_before));
        saved.counters.succeeded = self.called_before - failed.len() as u64;
        saved
    }

    fn fault(&self, index: u64, now: u64) -> Option<Fault> {
        let is_flap = self.flaps.is_none_or(|span| now / SECOND / span % 2 == 1);
        let down = self
            .outage
            .filter(|(from, to, _)| is_flap && (from * SECOND..to * SECOND).contains(&now));
        let mut rng = Rng(self.seed ^ index.wrapping_mul(0x9e37_79b9) ^ now.wrapping_mul(0xd1b5_4a32));
        let is_shed = rng.chance(self.shed_percent * 10);
        down.map(|(_, _, fault)| fault)
            .or_else(|| is_shed.then_some(self.shed_fault))
            .or_else(|| self.bad_fault(index))
    }
}

#[derive(Debug)]
enum What {
    Ask(u64),
    End(Vec<Dispatch>, u64),
    Save,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) end: Option<RunEnd>,
    pub(crate) over_at: u64,
    /// Code of each failed item.
    pub(crate) failed: BTreeMap<u64, String>,
    /// Those that nothing was compared with.
    pub(crate) unconfirmed: BTreeSet<u64>,
    pub(crate) succeeded: u64,
    /// Departures of calls, in seconds and fractions.
    pub(crate) calls: Vec<f64>,
    pub(crate) outages_seen: u32,
    /// Calls for each item.
    pub(crate) calls_of: BTreeMap<u64, u32>,
}

impl Story {
    /// The largest number of calls for one item.
    pub(crate) fn calls_of_one(&self) -> u32 {
        self.calls_of.values().copied().max().unwrap_or(0)
    }
}

struct Play {
    case: Case,
    core: Execution,
    fx: Effects,
    reports: Reports,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    what: BTreeMap<u64, What>,
    order: u64,
    asks: u64,
    now: u64,
    was_down: bool,
    story: Story,
}

pub(crate) fn play(case: Case) -> Story {
    let range = ShardRange {
        start: ItemIndex(0),
        end: ItemIndex(case.total),
    };
    let start = Start {
        shard: ShardId {
            task: TaskId(1),
            no: 0,
        },
        range,
        tuning: case.tuning.clone(),
        restored: case.restored(range),
        has_data: false,
        stalls: 0,
        run: RunNo(1),
        canary: case.canary,
        shared: Shared::alone(range),
        first_contact: case.first_contact,
        supply: None,
        is_service: false,
        metering: windrow_core::meter::metering::Metering::default(),
    };
    let mut play = Play {
        core: Execution::new(start, at(0)),
        case,
        fx: Effects::default(),
        reports: Reports::default(),
        events: BinaryHeap::new(),
        what: BTreeMap::new(),
        order: 0,
        asks: 0,
        now: 0,
        was_down: false,
        story: Story::default(),
    };
    play.after(0, What::Ask(0));
    play.after(SECOND, What::Save);
    play.run();
    play.story
}

impl Play {
    fn after(&mut self, nanos: u64, what: What) {
        self.order += 1;
        self.events.push(Reverse((self.now + nanos, self.order)));
        self.what.insert(self.order, what);
    }

    fn run(&mut self) {
        while let Some(Reverse((time, no))) = self.events.pop() {
            self.now = self.now.max(time);
            assert!(
                self.now < 40 * 3600 * SECOND,
                "no end: {:#?}",
                self.core.progress(at(self.now))
            );
            match self.what.remove(&no).expect("each event has something to it") {
                What::Ask(ask) if ask == self.asks => {
                    if self.ask() {
                        return;
                    }
                }
                What::Ask(_) => {}
                What::End(items, departed) => {
                    self.end_call(&items, departed);
                    if self.ask() {
                        return;
                    }
                }
                What::Save => self.save(),
            }
        }
    }

    /// Exchanges until nothing leaves any more; says whether the run is over.
    fn ask(&mut self) -> bool {
        loop {
            self.fx.clear();
            let event = Event::Exchange {
                reports: &mut self.reports,
                want: self.case.tuning.batch.get().max(64),
            };
            self.core.step(event, at(self.now), &mut self.fx);
            assert!(self.fx.violations.is_empty(), "{:?}", self.fx.violations);
            self.look();
            if self.fx.wait == Wait::Ended {
                return self.over();
            }
            let granted = std::mem::take(&mut self.fx.dispatch);
            if granted.is_empty() {
                break;
            }
            self.depart(&granted);
        }
        self.asks += 1;
        if let Wait::Until(moment) = self.fx.wait {
            let wait = moment.0.saturating_sub(self.now).max(1_000);
            self.after(wait, What::Ask(self.asks));
        }
        false
    }

    fn look(&mut self) {
        let is_down = self.core.progress(at(self.now)).handler.outage.is_some();
        self.story.outages_seen += u32::from(is_down && !self.was_down);
        self.was_down = is_down;
    }

    fn depart(&mut self, granted: &[Dispatch]) {
        let batch = self.fx.call_items.max(1) as usize;
        let items: Vec<Dispatch> = granted
            .iter()
            .flat_map(|d| {
                d.run.iter().map(|index| Dispatch {
                    run: IndexRun::one(index),
                    attempt: d.attempt,
                })
            })
            .collect();
        for call in items.chunks(batch) {
            self.story.calls.push(self.now as f64 / SECOND as f64);
            for item in call {
                *self.story.calls_of.entry(item.run.first().0).or_default() += 1;
            }
            let fault = call
                .iter()
                .find_map(|d| self.case.fault(d.run.first().0, self.now));
            let took = if fault == Some(Fault::Timeout) {
                self.case.tuning.timeout.as_nanos() as u64
            } else {
                self.took(call[0].run.first().0)
            };
            self.after(took, What::End(call.to_vec(), self.now));
        }
    }

    /// Time that a call takes which nothing holds up.
    fn took(&self, index: u64) -> u64 {
        let mut rng = Rng(self.case.seed ^ index.wrapping_mul(0x51ed_270b) ^ self.now);
        self.case
            .jitter_ms
            .map_or(SECOND / 50, |most| rng.between(1, most) * SECOND / 1000)
    }

    fn end_call(&mut self, items: &[Dispatch], departed: u64) {
        let first = items[0].run.first();
        let is_whole = |fault: &Fault| fault.class() != FailureClass::Answered;
        let faults = items.iter().map(|d| self.case.fault(d.run.first().0, departed));
        let moment = Moment(departed);
        let Some(fault) = faults.flatten().find(is_whole) else {
            self.reports.answered.add(moment);
            return items.iter().for_each(|item| self.end_item(item, departed));
        };
        let failure = Failure::new(fault.code(), "it failed");
        for item in items {
            self.fail(
                (item, items.len()),
                &failure,
                fault.class(),
                RetryAdvice::Retry { after: None },
                departed,
            );
        }
        let before = std::mem::take(&mut self.reports.answered);
        let class = fault.class();
        self.reports.calls.push(FailedCall {
            before,
            class,
            index: first,
            items: items.len() as u32,
            departed: moment,
            failure,
            after: None,
        });
    }

    fn end_item(&mut self, item: &Dispatch, departed: u64) {
        let index = item.run.first();
        if let Some(fault) = self.case.fault(index.0, departed) {
            let failure = Failure::new(fault.code(), "no");
            return self.fail(
                (item, 1),
                &failure,
                FailureClass::Answered,
                RetryAdvice::Fail,
                departed,
            );
        }
        self.reports.settle(Settled {
            run: item.run,
            attempt: item.attempt,
            outcome: Outcome::Succeeded,
        });
    }

    fn fail(
        &mut self,
        (item, call_items): (&Dispatch, usize),
        failure: &Failure,
        class: FailureClass,
        advice: RetryAdvice,
        departed: u64,
    ) {
        let call_items = call_items as u32;
        let (index, attempt, failure) = (item.run.first(), item.attempt, failure.clone());
        let (departed, took) = (Moment(departed), Duration::from_nanos(self.now - departed));
        self.reports.failed.push(Failed {
            index,
            attempt,
            failure,
            advice,
            class,
            call_items,
            departed,
            took,
        });
    }

    fn save(&mut self) {
        let mut fx = Effects::default();
        self.core.step(Event::DraftCheckpoint, at(self.now), &mut fx);
        if let Some(draft) = fx.checkpoint.take() {
            for record in draft.side {
                if let SideRecord::Failed(retrying) = record {
                    if retrying.is_unconfirmed {
                        self.story.unconfirmed.insert(retrying.index.0);
                    }
                    let code = retrying.failure.map(|failure| failure.code.into_owned());
                    self.story
                        .failed
                        .insert(retrying.index.0, code.unwrap_or_default());
                }
            }
            self.core
                .step(Event::CheckpointStored(draft.no), at(self.now), &mut fx);
        }
        self.after(SECOND, What::Save);
    }

    fn over(&mut self) -> bool {
        self.save();
        self.story.end = self.core.ending().cloned();
        self.story.succeeded = self.core.progress(at(self.now)).counters.succeeded;
        self.story.over_at = self.now / SECOND;
        true
    }
}
