//! Discrete-event simulation: runs with autopilots, or with a fixed number in flight, at one service.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::plant::{Fate, Plant, Service};
use crate::ids::Moment;
use crate::pilot::{Allowance, Call, Knobs, Pilot, START_IN_FLIGHT, Settings, Why};

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
        }
    }

    pub(super) fn joined(mut self, joins: &[f64]) -> Case {
        self.joins = joins.to_vec();
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
            if what == WAKE {
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

    fn pump(&mut self, number: u32, moment: Moment, now: f64) {
        loop {
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
