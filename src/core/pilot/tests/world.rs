//! Discrete-event simulation: runs with autopilots, or with a fixed number in flight, at one service.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::plant::{Fate, Plant, Service};
use crate::ids::Moment;
use crate::pilot::{Allowance, Call, Heard, Knobs, Knowledge, Pilot, START_IN_FLIGHT, Settings, Why};

/// Consecutive unavailable answers that open the circuit, and the time between its probes.
const OPENS_AFTER: u32 = 10;
const PROBE_EVERY: f64 = 1.0;
/// Longest time without a call out, unless the service named an instant that is believed.
const IDLE_MAX: f64 = 61.0;

/// Case to simulate.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) plant: Plant,
    /// Times at which runs join.
    pub(super) joins: Vec<f64>,
    pub(super) most: u32,
    /// Time from which is measured, and the end.
    pub(super) warm: f64,
    pub(super) end: f64,
    /// Fixed number in flight in place of an autopilot.
    pub(super) fixed: Option<u32>,
    /// Added to each seed.
    pub(super) seed: u64,
    /// Parts of the runs if they talk.
    pub(super) parts: Vec<f64>,
    /// Time at which the first run ends.
    pub(super) first_ends: f64,
}

impl Case {
    pub(super) fn new(plant: Plant, warm: f64, end: f64) -> Case {
        Case {
            plant,
            joins: vec![0.0],
            most: 256,
            warm,
            end,
            fixed: None,
            seed: 0,
            parts: Vec::new(),
            first_ends: f64::INFINITY,
        }
    }

    pub(super) fn joined(mut self, joins: &[f64]) -> Case {
        self.joins = joins.to_vec();
        self
    }

    /// Lets runs of one task talk, each with a part of its rate.
    pub(super) fn talking(mut self, parts: &[f64]) -> Case {
        self.parts = parts.to_vec();
        self
    }
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) accepted: u64,
    pub(super) refused: u64,
    pub(super) refused_before: u64,
    pub(super) failed: u64,
    /// Times of the accepted calls, after the warm-up.
    pub(super) latencies: Vec<f32>,
    pub(super) by_run: Vec<u64>,
    /// Accepted calls and the sum of their times, by second of their end.
    pub(super) seconds: Vec<(u32, f64)>,
    /// Times of all departures, as a hash.
    pub(super) trace: u64,
    pub(super) span: f64,
}

impl Outcome {
    pub(super) fn goodput(&self) -> f64 {
        self.accepted as f64 / self.span
    }

    pub(super) fn refused_share(&self) -> f64 {
        self.refused as f64 / (self.accepted + self.refused + self.failed).max(1) as f64
    }

    pub(super) fn p95(&self) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_by(f32::total_cmp);
        f64::from(sorted.get(sorted.len() * 95 / 100).copied().unwrap_or_default())
    }

    pub(super) fn jain(&self) -> f64 {
        let sum: f64 = self.by_run.iter().map(|calls| *calls as f64).sum();
        let squares: f64 = self.by_run.iter().map(|calls| (*calls as f64).powi(2)).sum();
        sum * sum / (squares * self.by_run.len() as f64).max(1.0)
    }
}

struct Run {
    pilot: Pilot,
    fixed: Option<u32>,
    in_flight: u32,
    wake: u64,
    unavailable: u32,
    /// Time of the opening, while the circuit isn't closed, and of the next probe.
    open: Option<(f64, f64)>,
    /// News with their times, and the calls in flight that the run allows.
    news: Vec<(f64, Knowledge, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct End {
    call: Option<Call>,
    sent: f64,
    fate: Fate,
    headers: Option<(u64, f64)>,
}

struct World {
    case: Case,
    service: Service,
    runs: Vec<Run>,
    events: BinaryHeap<Reverse<(u64, u64, u32, u32)>>,
    ends: Vec<Option<End>>,
    free: Vec<u32>,
    order: u64,
    out: Outcome,
}

const WAKE: u32 = u32::MAX;
const TALK: u32 = u32::MAX - 1;
/// Time between news of a run, the time until another run reads them, and their age at which the run is gone.
const NEWS_EVERY: f64 = 1.0;
const NEWS_LATE: f64 = 1.0;
const NEWS_OLD: f64 = 5.0;

pub(super) fn run(case: &Case, seed: u64) -> Outcome {
    let seed = seed + case.seed;
    let service = Service::new(case.plant.clone(), seed);
    let runs = case.joins.iter().zip(1..).map(|(joins, number)| Run {
        pilot: Pilot::new(settings(case.most, seed * 1000 + number), at(*joins)),
        fixed: case.fixed,
        in_flight: 0,
        wake: at(*joins).0,
        unavailable: 0,
        open: None,
        news: Vec::new(),
    });
    let out = Outcome {
        by_run: vec![0; case.joins.len()],
        seconds: vec![(0, 0.0); case.end as usize + 1],
        span: case.end - case.warm,
        ..Outcome::default()
    };
    let mut world = World {
        runs: runs.collect(),
        service,
        events: BinaryHeap::new(),
        ends: Vec::new(),
        free: Vec::new(),
        order: 0,
        out,
        case: case.clone(),
    };
    for run in 0..case.joins.len() {
        world.push(case.joins[run], run as u32, WAKE);
        if !case.parts.is_empty() {
            world.push(case.joins[run] + 0.37 * run as f64 + 0.1, run as u32, TALK);
        }
    }
    world.go()
}

pub(super) fn settings(most: u32, seed: u64) -> Settings {
    let knobs = Knobs {
        in_flight: true,
        rate: true,
    };
    Settings {
        most,
        start: START_IN_FLIGHT,
        knobs,
        seed,
    }
}

fn at(seconds: f64) -> Moment {
    Moment((seconds * 1e9) as u64)
}

impl World {
    fn push(&mut self, time: f64, run: u32, what: u32) {
        self.order += 1;
        self.events.push(Reverse((at(time).0, self.order, run, what)));
    }

    fn go(mut self) -> Outcome {
        while let Some(Reverse((time, _, run, what))) = self.events.pop() {
            let now = time as f64 / 1e9;
            if now >= self.case.end {
                break;
            }
            if what == TALK {
                self.talk(run as usize, now);
            } else if what == WAKE {
                if time != self.runs[run as usize].wake {
                    continue;
                }
                self.runs[run as usize].wake = u64::MAX;
            } else if let Some(end) = self.ends[what as usize].take() {
                self.free.push(what);
                self.end(run as usize, Moment(time), now, end);
            }
            self.pump(run, Moment(time), now);
        }
        self.out
    }

    /// Publishes news of a run and reads those of the others.
    fn talk(&mut self, number: usize, now: f64) {
        if self.has_ended(number, now) {
            return;
        }
        let parts = &self.case.parts;
        let news = self.runs.iter().zip(parts).enumerate();
        let news = news.filter_map(|(run, (of, part))| of.heard(now).map(|news| (run, *part, news)));
        let others: Vec<_> = news.filter(|(run, ..)| *run != number).collect();
        let rate: Option<f64> = others.iter().map(|(.., (known, _))| known.rate).sum();
        let heard = Heard {
            part: parts[number] / (parts[number] + others.iter().map(|(_, part, _)| part).sum::<f64>()),
            in_flight: others.iter().map(|(.., (_, in_flight))| in_flight).sum(),
            rate: rate.filter(|_| !others.is_empty()),
            leader: others
                .first()
                .filter(|(run, ..)| *run < number)
                .map(|(.., (known, _))| *known),
        };
        let run = &mut self.runs[number];
        run.pilot.on_heard(&heard, at(now));
        run.news
            .push((now, run.pilot.knowledge(), run.pilot.in_flight_max()));
        self.push(now + NEWS_EVERY, number as u32, TALK);
    }

    fn has_ended(&self, run: usize, now: f64) -> bool {
        run == 0 && now >= self.case.first_ends
    }

    fn pump(&mut self, number: u32, moment: Moment, now: f64) {
        loop {
            if self.has_ended(number as usize, now) {
                return;
            }
            let run = &mut self.runs[number as usize];
            if let Some((_, probe)) = run.open {
                if run.in_flight > 0 {
                    return;
                }
                if moment < at(probe) {
                    run.wake = at(probe).0;
                    return self.push(probe, number, WAKE);
                }
            } else if let Some(fixed) = run.fixed {
                if run.in_flight >= fixed {
                    return;
                }
            } else {
                match run.pilot.allow(moment, run.in_flight) {
                    Allowance::Go => {
                        assert!(run.in_flight < self.case.most, "more than {} out", self.case.most)
                    }
                    Allowance::Full(why) => {
                        assert!(run.in_flight > 0, "full with none out: {why}");
                        return;
                    }
                    Allowance::Until(until, why) => return self.wait(number, moment, until, why),
                }
            }
            self.depart(number, moment, now);
        }
    }

    fn wait(&mut self, number: u32, moment: Moment, until: Moment, why: Why) {
        let run = &mut self.runs[number as usize];
        assert!(until > moment, "a wait that is over: {why}");
        let wait = until.since(moment).as_secs_f64();
        let is_short = wait <= IDLE_MAX || why == Why::WindowUsed || why == Why::RefusedAboveRate;
        assert!(run.in_flight > 0 || is_short, "nothing out for {wait} s: {why}");
        if until.0 != run.wake {
            run.wake = until.0;
            self.order += 1;
            self.events.push(Reverse((until.0, self.order, number, WAKE)));
        }
    }

    fn depart(&mut self, number: u32, moment: Moment, now: f64) {
        let run = &mut self.runs[number as usize];
        run.in_flight += 1;
        let call = run
            .fixed
            .is_none()
            .then(|| run.pilot.on_departure(moment, run.in_flight));
        let (fate, headers) = self.service.call(now);
        let ends = match fate {
            Fate::Accepted(ends) | Fate::Failed(ends) | Fate::Unavailable(ends) | Fate::Refused(ends, _) => {
                ends
            }
        };
        let end = Some(End {
            call,
            sent: now,
            fate,
            headers,
        });
        let slot = self.free.pop().unwrap_or_else(|| {
            self.ends.push(None);
            self.ends.len() as u32 - 1
        });
        self.ends[slot as usize] = end;
        self.out.trace = (self.out.trace ^ moment.0).wrapping_mul(0x0100_0000_01b3);
        self.push(ends, number, slot);
    }

    fn end(&mut self, number: usize, moment: Moment, now: f64, end: End) {
        self.service.in_flight -= 1;
        let is_warm = now >= self.case.warm;
        let run = &mut self.runs[number];
        run.in_flight -= 1;
        if let (Some(call), Some((left, reset))) = (end.call, end.headers) {
            // Rounded up, as a service says it.
            run.pilot.on_window(call, moment, left, at(reset + 1e-6));
        }
        match end.fate {
            Fate::Refused(_, after) => {
                self.out.refused += u64::from(is_warm);
                self.out.refused_before += u64::from(!is_warm);
                if let Some(call) = end.call {
                    run.pilot
                        .on_refused(call, moment, after.map(Duration::from_secs_f64));
                }
            }
            Fate::Failed(_) => {
                self.out.failed += u64::from(is_warm);
                if let Some(call) = end.call {
                    run.pilot.on_failed(call, moment);
                }
            }
            Fate::Unavailable(_) => run.unavailable(end.call, moment, now),
            Fate::Accepted(_) => {
                run.accepted(end.call, moment, now);
                self.count(number, now, end.sent, is_warm);
            }
        }
    }

    fn count(&mut self, number: usize, now: f64, sent: f64, is_warm: bool) {
        let second = &mut self.out.seconds[now as usize];
        second.0 += 1;
        second.1 += now - sent;
        if is_warm {
            self.out.accepted += 1;
            self.out.by_run[number] += 1;
            self.out.latencies.push((now - sent) as f32);
        }
    }
}

impl Run {
    /// Returns the last news that others have read, and the calls in flight in them.
    fn heard(&self, now: f64) -> Option<(Knowledge, u32)> {
        let read = self.news.iter().rev().find(|(at, ..)| *at <= now - NEWS_LATE)?;
        (read.0 > now - NEWS_OLD).then_some((read.1, read.2))
    }

    fn unavailable(&mut self, call: Option<Call>, moment: Moment, now: f64) {
        self.unavailable += 1;
        if let Some(call) = call {
            self.pilot.on_failed(call, moment);
        }
        if let Some((_, probe)) = &mut self.open {
            *probe = now + PROBE_EVERY;
        } else if self.unavailable >= OPENS_AFTER {
            self.open = Some((now, now + PROBE_EVERY));
            self.pilot.on_circuit_open(moment);
        }
    }

    fn accepted(&mut self, call: Option<Call>, moment: Moment, now: f64) {
        self.unavailable = 0;
        if let Some(call) = call {
            self.pilot.on_accepted(call, moment);
        }
        if let Some((opened, _)) = self.open.take() {
            self.pilot
                .on_circuit_closed(moment, Duration::from_secs_f64(now - opened));
        }
    }
}
