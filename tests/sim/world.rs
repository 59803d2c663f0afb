//! The event loop: one `Execution`, several simulated lanes, a store in memory, a virtual clock. No threads.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use windrow_core::execution::{
    Cell, CheckpointDraft, Command, Effects, Event, Execution, Now, Phase, Reports, RunEnd, Shared, Start,
    Wait,
};
use windrow_core::ids::{Attempt, ItemCount, ItemIndex, Moment, RunNo, ShardId, TaskId, WallMs};
use windrow_core::items::run::IndexRun;
use windrow_core::items::stretches::Stretches;
use windrow_core::items::verdict::{
    Dispatch, Failed, FailedCall, Failure, FailureClass, HandlerCommand, Outcome, RetryAdvice, Settled,
    SideRecord, Signal,
};
use windrow_core::settings::{OnExhausted, Rate};
use windrow_core::task::lifecycle::StopReason;
use windrow_core::task::{ShardRange, Tuning};

use crate::auditor::{Auditor, Final, Told};
use crate::plan::{Plan, tuning};
use crate::rng::Rng;
use crate::store::{Row, Store};

/// Longer than the longest wait of any plan: whoever is silent for so long hangs.
const SILENCE_MAX: Duration = Duration::from_secs(600);
const EVENTS_MAX: u64 = 400_000;

#[derive(Debug)]
enum What {
    Ask { lane: usize, no: u64 },
    End { lane: usize, index: u64, attempt: u32 },
    Kill,
    Tick { again: bool },
    Store(Box<(CheckpointDraft, Told)>),
    Stored(u64),
    Rows(u64),
    Slots(Option<u32>),
    Fault,
}

#[derive(Default)]
struct Lane {
    reports: Reports,
    /// The number of the question that counts: a newer one replaces it.
    asks: u64,
    ended: bool,
}

/// What happened, for the "sometimes" assertions.
pub(crate) type Seen = BTreeMap<&'static str, u64>;

/// Turns of an item that are never charged, whatever others fare like.
const TURNS_UNCHARGED: u32 = 5;

pub(crate) struct World {
    plan: Plan,
    rng: Rng,
    tuning: Tuning,
    core: Execution,
    fx: Effects,
    lanes: Vec<Lane>,
    events: BTreeMap<(u64, u64), What>,
    order: u64,
    now: u64,
    quiet_since: u64,
    store: Store,
    store_free_at: u64,
    tick_wanted: bool,
    rows_ready: u64,
    auditor: Auditor,
    /// How often each item was turned away.
    turns: BTreeMap<u64, u32>,
    /// Items that people want skipped, from the acknowledgement on.
    wanted: BTreeSet<u64>,
    faults_left: u32,
    crashed: bool,
    run_over: Option<RunEnd>,
    pub(crate) seen: Seen,
}

fn start(plan: &Plan, store: &mut Store, tuning: &Tuning, crashed: bool) -> Start {
    let stalls = store.claim();
    let range = ShardRange {
        start: ItemIndex(plan.start),
        end: ItemIndex(plan.start + plan.total),
    };
    Start {
        shard: ShardId {
            task: TaskId(1),
            no: 0,
        },
        range,
        tuning: tuning.clone(),
        restored: store.restored(),
        has_data: plan.has_data,
        run: RunNo(1),
        canary: store.canary,
        shared: Shared::alone(range),
        first_contact: None,
        supply: None,
        is_service: false,
        metering: windrow_core::meter::metering::Metering::default(),
        stalls: if plan.killer.is_some() {
            stalls
        } else {
            3 * u32::from(crashed && plan.solo_after_crash)
        },
    }
}

impl World {
    pub(crate) fn new(plan: Plan) -> World {
        let mut store = Store::new(plan.start, plan.canary);
        let tuning = plan.tuning.clone();
        let core = Execution::new(start(&plan, &mut store, &tuning, false), at(0));
        let mut world = World {
            rng: Rng(plan.seed ^ 0x5eed),
            core,
            fx: Effects::default(),
            lanes: Vec::new(),
            events: BTreeMap::new(),
            order: 0,
            now: 0,
            quiet_since: 0,
            store,
            store_free_at: 0,
            tick_wanted: false,
            rows_ready: plan.start,
            auditor: Auditor::default(),
            turns: BTreeMap::new(),
            wanted: BTreeSet::new(),
            faults_left: plan.faults,
            crashed: false,
            run_over: None,
            seen: Seen::new(),
            tuning,
            plan,
        };
        world.auditor.begin_at(world.plan.start);
        world.auditor.on_tuning(&world.tuning, 0);
        world.begin_lanes();
        world
    }

    /// Runs the scenario to its end and judges it.
    pub(crate) fn run(mut self) -> Seen {
        for _ in 0..EVENTS_MAX {
            if self.run_over.is_some() && self.close_run() {
                self.judge_the_end();
                return self.seen;
            }
            let ((time, _), what) = self.events.pop_first().expect("a tick always waits");
            self.now = self.now.max(time);
            self.on(what);
            let silent = Duration::from_nanos(self.now - self.quiet_since);
            assert!(
                silent < SILENCE_MAX,
                "nothing moves: {:#?}",
                self.core.progress(at(self.now))
            );
        }
        panic!(
            "no end after {EVENTS_MAX} events: {:#?}",
            self.core.progress(at(self.now))
        );
    }

    fn end(&self) -> u64 {
        self.plan.start + self.plan.total
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn after(&mut self, wait: Duration, what: What) {
        let time = self.now + wait.as_nanos() as u64;
        self.order += 1;
        self.events.insert((time, self.order), what);
    }

    fn begin_lanes(&mut self) {
        self.lanes = (0..self.plan.lanes).map(|_| Lane::default()).collect();
        (0..self.plan.lanes).for_each(|lane| self.ask(lane, Duration::ZERO));
        self.after(self.tuning.checkpoint_interval, What::Tick { again: true });
        if self.plan.has_data {
            self.after(Duration::ZERO, What::Rows(self.rows_ready));
        }
        if self.faults_left > 0 {
            let wait = self
                .plan
                .fault_every
                .mul_f64(self.rng.between(1, 20) as f64 / 10.0);
            self.after(wait, What::Fault);
        }
    }

    fn ask(&mut self, lane: usize, wait: Duration) {
        self.lanes[lane].asks += 1;
        let no = self.lanes[lane].asks;
        self.after(wait, What::Ask { lane, no });
    }

    fn on(&mut self, what: What) {
        match what {
            What::Ask { lane, no } if no == self.lanes[lane].asks => self.exchange(lane),
            What::Ask { .. } => {}
            What::End { lane, index, attempt } => self.on_call_end(lane, index, attempt),
            What::Kill => self.crash("killed by an item"),
            What::Tick { again } => self.tick(again),
            What::Store(stored) => {
                let (draft, told) = *stored;
                self.store_draft(&draft, &told);
                let wait = self.rng.micros(0, self.plan.store_delay_max_us);
                self.after(wait, What::Stored(draft.no));
                if let Some(end) = draft.end {
                    self.run_over = Some(end);
                }
            }
            What::Stored(no) => self.step(Event::CheckpointStored(no)),
            What::Rows(upto) => self.read_rows(upto),
            What::Slots(slots) => self.step(Event::HandlerSlots(slots)),
            What::Fault => self.fault(),
        }
    }

    /// One step, what every step entails, and its judgement.
    fn step(&mut self, event: Event<'_>) {
        let is_exchange = matches!(event, Event::Exchange { .. });
        let is_over = matches!(self.core.progress(at(self.now)).phase, Phase::Ended(_));
        self.fx.clear();
        self.core.step(event, at(self.now), &mut self.fx);
        if is_exchange && !is_over && !self.wanted.is_empty() {
            self.see_skipped();
        }
        self.after_step();
    }

    /// What people want skipped is settled as that once it isn't with the handler and its turn has come.
    fn see_skipped(&mut self) {
        let low = self.core.watermark().0;
        let cells = self
            .core
            .window_picture(NonZeroU32::MAX, Moment(self.now))
            .cells(&[]);
        let is_passed = |index: u64| match index.checked_sub(low) {
            None => true,
            Some(at) => cells.get(at as usize) == Some(&Cell::Settled),
        };
        let (finals, out) = (&self.auditor.finals, &self.auditor.in_flight);
        let open = |index: &&u64| finals.get(**index).is_none() && !out.contains_key(index);
        let wanted = self.wanted.iter().filter(open).copied();
        let skipped: Vec<u64> = wanted.filter(|index| is_passed(*index)).collect();
        for index in skipped {
            self.auditor.on_final(index, Final::Skipped);
            self.quiet_since = self.now;
            self.saw(match self.crashed {
                true => "skipped by people after a crash",
                false => "skipped by people",
            });
        }
    }

    fn after_step(&mut self) {
        self.take_dispatches();
        let progress = self.core.progress(at(self.now));
        self.see_a_found_killer(progress.counters.failed);
        self.auditor.on_step(&self.fx, &progress);
        if let Some(reason) = progress.stall {
            self.saw(reason.as_str());
        }
        if self.fx.wake_lanes {
            for lane in (0..self.lanes.len())
                .filter(|lane| !self.lanes[*lane].ended)
                .collect::<Vec<_>>()
            {
                self.ask(lane, Duration::ZERO);
            }
        }
        if self.fx.checkpoint_due && !self.tick_wanted {
            self.tick_wanted = true;
            self.after(Duration::from_micros(10), What::Tick { again: false });
        }
    }

    /// The only item that may end without an answer is the one that kills the node.
    fn see_a_found_killer(&mut self, failed: u64) {
        let known = self.auditor.count(Final::Failed);
        if let Some(killer) = self.plan.killer.filter(|_| failed == known + 1) {
            self.auditor.on_final(killer, Final::Failed);
            self.quiet_since = self.now;
            self.saw("killer failed");
        }
    }

    fn take_dispatches(&mut self) {
        let end = self.core.end().0;
        for dispatch in &self.fx.dispatch {
            for index in dispatch.run.iter() {
                let attempt = dispatch.attempt.get();
                assert!(
                    !self.wanted.contains(&index.0),
                    "item {} is called although it is to be skipped",
                    index.0
                );
                self.auditor.on_canary(index.0, self.plan.start, &self.store);
                self.auditor
                    .on_dispatch(index.0, attempt, self.tuning.ordered, end);
            }
        }
    }

    fn exchange(&mut self, lane: usize) {
        if self.lanes[lane].ended {
            return;
        }
        let gate_shut = self.rng.chance(10);
        let want = if gate_shut {
            0
        } else {
            self.rng.pick(&[1, 2, 16, 64, 300])
        };
        let want = if gate_shut {
            0
        } else {
            want.max(self.tuning.batch.get())
        };
        if want == 0 {
            self.saw("gate shut");
        }
        let mut reports = std::mem::take(&mut self.lanes[lane].reports);
        self.hear(&reports);
        self.step(Event::Exchange {
            reports: &mut reports,
            want,
        });
        assert!(reports.is_empty(), "reports are taken in whole");
        self.lanes[lane].reports = reports;
        self.depart(lane);
        if !self.fx.dispatch.is_empty() || gate_shut {
            return self.ask(lane, Duration::from_micros(if gate_shut { 700 } else { 1 }));
        }
        match self.fx.wait {
            Wait::Now => panic!("asked again at once for nothing"),
            Wait::Until(then) => {
                assert!(then.0 > self.now, "told to ask again in the past");
                self.ask(lane, Duration::from_nanos(then.0 - self.now));
            }
            Wait::Completion => {}
            Wait::Ended => {
                self.lanes[lane].ended = true;
                self.after(Duration::ZERO, What::Tick { again: false });
            }
        }
    }

    /// What the core is about to be told.
    fn hear(&mut self, reports: &Reports) {
        for settled in &reports.settled {
            let how = if settled.outcome == Outcome::Skipped {
                Final::Skipped
            } else {
                Final::Succeeded
            };
            for index in settled.run.iter() {
                self.auditor.on_answer(index.0);
                self.auditor.on_final(index.0, how);
            }
        }
        for failed in &reports.failed {
            let (index, attempt) = (failed.index.0, failed.attempt.get());
            self.auditor.on_answer(index);
            if self.wanted.contains(&index) {
                self.saw("failed, skipped");
                continue;
            }
            if failed.class != FailureClass::Unreachable {
                self.auditor.attempts.insert(index, attempt);
            }
            if failed.class != FailureClass::Answered {
                continue;
            }
            let charged = self.auditor.charged.entry(index).or_default();
            *charged += 1;
            let exhausted = *charged >= self.tuning.max_attempts.get();
            let fails = self.tuning.on_exhausted == OnExhausted::Fail;
            if failed.advice == RetryAdvice::Fail || exhausted && fails {
                self.auditor.on_final(index, Final::Failed);
            }
        }
        let back = reports.returned.iter().chain(&reports.refused);
        let back = back.flat_map(|dispatch| dispatch.run.iter());
        for index in back.chain(reports.turned_away.iter().map(|failed| failed.index)) {
            self.auditor
                .in_flight
                .remove(&index.0)
                .expect("only what is in flight comes back");
        }
    }

    /// Calls leave up to 2 ms after their grant when paced; some come back without having left.
    fn depart(&mut self, lane: usize) {
        let granted: Vec<Dispatch> = self.fx.dispatch.clone();
        for Dispatch { run, attempt } in granted {
            for index in run.iter() {
                if self.rng.chance(self.plan.returns) {
                    let dispatch = Dispatch {
                        run: IndexRun::one(index),
                        attempt,
                    };
                    self.lanes[lane].reports.returned.push(dispatch);
                    self.saw("returned");
                    continue;
                }
                self.quiet_since = self.now;
                let delay = if self.fx.paced {
                    self.rng.micros(0, 2000)
                } else {
                    Duration::ZERO
                };
                self.auditor.on_departure(self.now + delay.as_nanos() as u64);
                let most = if self.rng.chance(self.plan.hangs) {
                    8_000_000
                } else {
                    self.plan.latency_max_us
                };
                let took = self.rng.micros(0, most);
                self.lanes[lane].reports.latencies.record(took, 1);
                let what = match self.plan.killer {
                    Some(killer) if killer == index.0 => What::Kill,
                    _ => What::End {
                        lane,
                        index: index.0,
                        attempt: attempt.get(),
                    },
                };
                self.after(delay + took, what);
            }
        }
    }

    fn on_call_end(&mut self, lane: usize, index: u64, attempt: u32) {
        self.quiet_since = self.now;
        let (run, attempt) = (IndexRun::one(ItemIndex(index)), Attempt::new(attempt));
        let hopeless = Rng(self.plan.seed ^ index << 20).chance(self.plan.hopeless);
        let refused = self.rng.chance(self.plan.refuses_429);
        let (gives_up, fails) = (
            self.rng.chance(self.plan.gives_up),
            self.rng.chance(self.plan.fails),
        );
        let after = self.rng.chance(500).then(|| self.rng.micros(0, 3_000_000));
        let outcome = if self.rng.chance(self.plan.skips) {
            Outcome::Skipped
        } else {
            Outcome::Succeeded
        };
        // What never counts would never end for an item that always fails. (`mixes` has what may count.)
        let class = match self.rng.between(0, 9) {
            _ if hopeless => FailureClass::Answered,
            0..=5 => FailureClass::Answered,
            _ => FailureClass::Unreachable,
        };
        let command = self.rng.chance(self.plan.commands).then(|| self.command());
        let reports = &mut self.lanes[lane].reports;
        if refused {
            let turns = self.turns.entry(index).or_default();
            let after = after.map(|wait| wait / 10);
            // One more turn, and its attempts might count: `scenarios` has those stories.
            if *turns < TURNS_UNCHARGED {
                *turns += 1;
                reports.turned_away.push(Failed {
                    index: ItemIndex(index),
                    attempt,
                    failure: Failure::new("HTTP_429", "not now"),
                    advice: RetryAdvice::Retry { after },
                    class: FailureClass::Answered,
                    call_items: 1,
                    departed: Moment(self.now),
                    took: Duration::from_millis(7),
                });
            } else {
                reports.refused.push(Dispatch { run, attempt });
                reports.signals.push(Signal::BackPressure {
                    after,
                    departed: Moment(self.now),
                    failure: Failure::new("HTTP_429", "not now"),
                });
            }
        } else if hopeless || gives_up || fails {
            let advice = if gives_up {
                RetryAdvice::Fail
            } else {
                RetryAdvice::Retry { after }
            };
            let failure = Failure::new("E_SIM", "it failed");
            let class = if gives_up { FailureClass::Answered } else { class };
            let (index, departed, took) = (ItemIndex(index), Moment(self.now), Duration::from_millis(7));
            if class == FailureClass::Answered {
                reports.answered.add(departed);
            } else {
                let before = std::mem::take(&mut reports.answered);
                let failure = failure.clone();
                reports.calls.push(FailedCall {
                    before,
                    class,
                    index,
                    items: 1,
                    departed,
                    failure,
                    after,
                });
            }
            reports.failed.push(Failed {
                index,
                attempt,
                failure,
                advice,
                class,
                call_items: 1,
                departed,
                took,
            });
        } else {
            reports.settle(Settled {
                run,
                attempt,
                outcome,
            });
            reports.answered.add(Moment(self.now));
        }
        reports.signals.extend(command.map(Signal::Command));
        let wait = self.rng.micros(0, 50);
        self.ask(lane, wait);
    }

    fn command(&mut self) -> HandlerCommand {
        match self.rng.between(0, 9) {
            0 => HandlerCommand::Stop {
                reason: "enough for today".into(),
            },
            1 => HandlerCommand::Finish {
                total: self
                    .rng
                    .chance(500)
                    .then(|| ItemCount(self.rng.between(0, self.end()))),
            },
            2..=5 => HandlerCommand::PauseFor(self.rng.micros(0, 300_000)),
            _ => HandlerCommand::SlowDown {
                rate: Rate::per_second(self.rng.between(1, 100)).expect("valid"),
                lasting: self.rng.micros(0, 2_000_000),
                reason: "busy".into(),
            },
        }
    }

    fn read_rows(&mut self, upto: u64) {
        self.rows_ready = upto;
        self.step(Event::SourceReady(ItemIndex(upto)));
        if upto < self.end() {
            let wait = self.rng.micros(0, 20_000);
            let more = self.rng.between(1, 60);
            self.after(wait, What::Rows((upto + more).min(self.end())));
        }
    }

    fn tick(&mut self, again: bool) {
        self.tick_wanted = false;
        self.step(Event::DraftCheckpoint);
        if let Some(draft) = self.fx.checkpoint.take() {
            self.auditor.on_draft(&draft, self.plan.start);
            let told = self.auditor.told();
            // Drafts are stored in the order in which they were made.
            let delay = self.rng.micros(0, self.plan.store_delay_max_us).as_nanos() as u64;
            self.store_free_at = self.store_free_at.max(self.now + delay) + 1;
            let wait = Duration::from_nanos(self.store_free_at - self.now);
            self.after(wait, What::Store(Box::new((draft, told))));
        }
        if again {
            self.after(self.tuning.checkpoint_interval, What::Tick { again });
        }
    }

    fn store_draft(&mut self, draft: &CheckpointDraft, told: &Told) {
        let old = self.store.clone();
        self.store.apply(draft);
        if old.canary.is_some() && draft.canary_passed {
            self.auditor.check_canary_done(self.plan.start, &old);
            self.saw("canary passed");
        }
        self.auditor
            .on_stored(&old, &self.store, told, (self.plan.start, self.end()));
        for record in &draft.side {
            match record {
                SideRecord::Parked { retrying, .. } if retrying.failure.is_none() => {
                    self.saw("evicted in flight")
                }
                SideRecord::Parked { .. } => self.saw("parked"),
                SideRecord::Retrying(_) => self.saw("retrying"),
                SideRecord::Failed(_) => self.saw("failed"),
                SideRecord::Cleared(_) => self.saw("cleared"),
            }
        }
        let settled = draft.counters.settled();
        self.saw(if draft.watermark.0 - self.plan.start < settled {
            "bits above watermark"
        } else {
            "checkpoint"
        });
    }

    fn fault(&mut self) {
        self.faults_left -= 1;
        if self.faults_left > 0 {
            let wait = self
                .plan
                .fault_every
                .mul_f64(self.rng.between(1, 20) as f64 / 10.0);
            self.after(wait, What::Fault);
        }
        let may_crash = self.plan.killer.is_none() && !(self.crashed && self.plan.solo_after_crash);
        match self.rng.between(0, 9) {
            0..=2 if may_crash => self.crash("crash"),
            3 | 4 => self.lose_lanes(),
            5 => self.stop(StopReason::Operator),
            6 => self.step(Event::Command(Command::Stop(RunEnd::HandedOver))),
            7 => self.shut_slots(),
            8 if self.rng.chance(200) => {
                let end = self.rng.between(self.plan.start, self.end());
                self.step(Event::Command(Command::Finish(ItemIndex(end))));
                self.saw("finish");
            }
            9 if self.rng.chance(700) => self.skip_some(),
            _ => self.tune(),
        }
    }

    /// People name items that are to be skipped; the store knows it before the run does, and for good.
    fn skip_some(&mut self) {
        if self.plan.total == 0 {
            return;
        }
        let first = self.plan.start + self.rng.between(0, self.plan.total - 1);
        let len = self.rng.pick(&[1, 1, 3, 40, 400]);
        self.wanted.extend(first..(first + len).min(self.end()));
        self.tell_skips();
    }

    fn tell_skips(&mut self) {
        let named: Vec<String> = self.wanted.iter().map(u64::to_string).collect();
        if !named.is_empty() {
            let wanted = Stretches::parse(&named.join(",")).expect("a set");
            self.step(Event::Command(Command::Skip(wanted)));
        }
    }

    fn stop(&mut self, reason: StopReason) {
        let text = "asked for".to_owned();
        self.step(Event::Command(Command::Stop(RunEnd::stopped(reason, text))));
    }

    fn shut_slots(&mut self) {
        let slots = self.rng.between(0, 4) as u32;
        self.step(Event::HandlerSlots(Some(slots)));
        let wait = self.rng.micros(0, 200_000);
        self.after(wait, What::Slots(None));
    }

    fn tune(&mut self) {
        let old = self.tuning.clone();
        let mut new = tuning(&mut self.rng, old.ordered);
        new.max_attempts = old.max_attempts;
        (new.error_budget, new.on_exhausted) = (old.error_budget, old.on_exhausted);
        if self.rng.chance(500) {
            (new.rate, new.burst) = (old.rate, old.burst);
        }
        self.tuning = new;
        self.auditor.on_tuning(&self.tuning, self.now);
        self.step(Event::Command(Command::Tune(Box::new(self.tuning.clone()))));
        self.saw("tune");
    }

    /// The executor dies: its calls are gone, the core stays; the draft on its way may be gone as well.
    fn lose_lanes(&mut self) {
        let drops_draft = self.rng.chance(500);
        let mut dropped = 0;
        self.events.retain(|_, what| {
            let drops = matches!(
                what,
                What::Ask { .. } | What::End { .. } | What::Kill | What::Fault | What::Rows(_)
            ) || matches!(what, What::Tick { .. })
                || drops_draft && matches!(what, What::Store(_));
            dropped += u32::from(drops && matches!(what, What::Store(_)));
            !drops
        });
        if dropped > 0 {
            self.saw("draft lost, merged");
        }
        if self.core.ending().is_some() {
            self.saw("lanes lost while stopping");
        }
        self.tick_wanted = false;
        self.auditor.in_flight.clear();
        self.step(Event::LanesLost);
        self.saw("lanes lost");
        self.begin_lanes();
    }

    /// The node dies. What was on its way to the store arrives in part: the first so many drafts.
    fn crash(&mut self, why: &'static str) {
        self.saw(why);
        let progress = self.core.progress(at(self.now));
        let events = std::mem::take(&mut self.events);
        let outstanding: Vec<(CheckpointDraft, Told)> = events
            .into_values()
            .filter_map(|what| match what {
                What::Store(stored) => Some(*stored),
                _ => None,
            })
            .collect();
        if !outstanding.is_empty() {
            self.saw("crash with outstanding draft");
        }
        for (draft, told) in outstanding {
            if self.rng.chance(500) {
                break;
            }
            self.store_draft(&draft, &told);
        }
        let unsaved = self
            .auditor
            .finals
            .indexes()
            .filter(|index| !self.store.is_settled(*index) && !self.is_skipped_by_people(*index))
            .count();
        assert!(
            unsaved as u64 <= progress.unsaved,
            "{unsaved} lost, {} unsaved",
            progress.unsaved
        );
        self.crashed = true;
        self.auditor.allowance += 1;
        self.begin_run();
    }

    fn begin_run(&mut self) {
        self.events.clear();
        (self.tick_wanted, self.store_free_at, self.run_over) = (false, 0, None);
        self.auditor.on_run(&self.store, self.plan.start, self.end());
        self.auditor.on_tuning(&self.tuning, self.now);
        let start = start(&self.plan, &mut self.store, &self.tuning, self.crashed);
        if start.stalls >= 3 {
            self.saw("single file");
        }
        self.core = Execution::new(start, at(self.now));
        self.rows_ready = self.store.low;
        self.tell_skips();
        self.begin_lanes();
    }

    /// Such an item is never called for a crash: whoever goes on skips it, too.
    fn is_skipped_by_people(&self, index: u64) -> bool {
        self.wanted.contains(&index) && self.auditor.finals.get(index) == Some(Final::Skipped)
    }

    /// The last draft of a run is stored: says whether the task is done, else goes on with it.
    fn close_run(&mut self) -> bool {
        assert!(
            self.auditor.in_flight.is_empty(),
            "a run ended with calls in flight"
        );
        let all_saved = self
            .auditor
            .finals
            .indexes()
            .all(|index| self.store.is_settled(index));
        assert!(all_saved, "a stop forgot what was settled");
        if matches!(self.run_over, Some(RunEnd::Stopped { .. }))
            && self.tuning.on_exhausted == OnExhausted::Stop
        {
            // Whoever starts the task again grants another attempt to what was exhausted before or while it stopped.
            self.auditor.allowance += 1;
        }
        match self.run_over.clone() {
            Some(RunEnd::Done) => return true,
            Some(RunEnd::Stopped {
                reason: StopReason::ItemExhausted,
                ..
            }) => {
                self.saw("stopped: item exhausted");
                if self.rng.chance(300) {
                    self.tuning.on_exhausted = OnExhausted::Fail;
                }
            }
            Some(RunEnd::Stopped {
                reason: StopReason::ErrorBudget,
                ..
            }) => {
                self.tuning.error_budget.failed = None;
                self.saw("stopped: error budget");
            }
            Some(RunEnd::Stopped {
                reason: StopReason::CanaryDone,
                ..
            }) => {
                self.auditor.check_canary_done(self.plan.start, &self.store);
                self.store.canary = None;
                self.saw("stopped: canary done");
            }
            Some(RunEnd::Recovering { .. }) => {
                self.tuning.error_budget.failed_attempts = None;
                self.saw("recovering");
            }
            Some(_) => self.saw("stopped and resumed"),
            None => unreachable!("only called with an end"),
        }
        self.begin_run();
        false
    }

    fn judge_the_end(&mut self) {
        self.auditor.check_pace();
        let end = self
            .store
            .finish_at
            .map_or_else(|| self.end(), |end| end.0.min(self.end()));
        assert_eq!(self.store.low, end, "watermark at the end");
        let left_out = self.auditor.delivered.last().filter(|highest| **highest >= end);
        assert_eq!(left_out, None, "it was delivered, and is left out");
        if end < self.end() {
            self.saw("finished early");
        }
        for index in self.plan.start..end {
            let killer = self.plan.killer == Some(index);
            assert!(
                killer || self.auditor.delivered.contains(&index) || self.is_skipped_by_people(index),
                "item {index} was never delivered"
            );
            assert!(
                self.auditor.finals.get(index).is_some(),
                "item {index} never settled"
            );
        }
        assert_eq!(
            self.auditor.finals.indexes().count() as u64,
            end - self.plan.start,
            "settled, of all"
        );
        assert_eq!(
            self.store.counters.settled(),
            end - self.plan.start,
            "settled, as stored"
        );
        let code = |row: &Row| {
            row.retrying()
                .failure
                .as_ref()
                .map(|failure| failure.code.to_string())
        };
        let killer = self.plan.killer.filter(|killer| *killer < end);
        if let Some(killer) = killer.filter(|killer| !self.is_skipped_by_people(*killer)) {
            let row = self.store.rows.get(&killer).expect("the killer's row");
            assert_eq!(code(row).as_deref(), Some("NODE_CRASH"));
        }
        for (index, row) in &self.store.rows {
            assert!(matches!(row, Row::Failed(_)), "row of {index} is left over");
            let crashed = code(row).as_deref() == Some("NODE_CRASH");
            assert_eq!(
                crashed,
                self.plan.killer == Some(*index),
                "item {index} is blamed"
            );
        }
    }
}

pub(crate) fn at(nanos: u64) -> Now {
    let wall = WallMs(1_700_000_000_000 + (nanos / 1_000_000) as i64);
    Now {
        moment: Moment(nanos),
        wall,
    }
}
