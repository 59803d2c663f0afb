//! Simulated services: gates that refuse, and a core that takes its time. Times are in seconds.

use std::collections::VecDeque;

use super::rng::Rng;

/// Fate of a call, known as it arrives.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Accepted(f64),
    Failed(f64),
    /// Time of the answer, and the wait that it names.
    Refused(f64, Option<f64>),
    Unavailable(f64),
}

/// Value that changes at certain times.
#[derive(Clone, Debug)]
pub(super) struct Course(pub(super) Vec<(f64, f64)>);

impl Course {
    pub(super) fn flat(value: f64) -> Course {
        Course(vec![(0.0, value)])
    }

    fn at(&self, now: f64) -> f64 {
        let passed = self.0.iter().rev().find(|(from, _)| *from <= now);
        passed.map_or(self.0[0].1, |(_, value)| *value)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum After {
    Silent,
    /// Until a call would be taken, in whole seconds.
    True,
    Always(f64),
}

#[derive(Clone, Debug)]
pub(super) enum Gate {
    Bucket {
        rate: Course,
        burst: f64,
        after: After,
        counts_refused: bool,
    },
    /// So many in each calendar period; headers say what is left.
    Period {
        calls: u64,
        span: f64,
        after: After,
        headers: bool,
    },
    Sliding {
        calls: usize,
        span: f64,
        counts_refused: bool,
    },
    InFlight(u32),
    Stray {
        share: f64,
        after: f64,
    },
    /// Refuses all from a time on until another, once it has taken so many calls: a quota that is used up.
    Used {
        calls: u64,
        from: f64,
        until: f64,
    },
    Outage {
        from: f64,
        to: f64,
    },
}

#[derive(Clone, Debug)]
pub(super) enum Work {
    Even {
        mean: f64,
        sigma: f64,
    },
    /// Short or ten times as long, by chance.
    Mixed(f64),
    /// The same, in blocks of 2000 calls.
    Blocks(f64),
}

#[derive(Clone, Debug)]
pub(super) enum Core {
    /// Servers with one queue, and a time after them that nobody waits in line for.
    Servers { count: Course, after: f64 },
    /// Balancer that sends blindly to backends of so many servers; the first works at half the speed.
    Balancer { backends: usize, servers: usize },
    /// Quadratic above so many in flight.
    Thrash(f64),
    /// Calls slow down by a factor that changes with time.
    Slows { count: Course, factor: Course },
}

#[derive(Clone, Debug)]
pub(super) struct Plant {
    pub(super) gates: Vec<Gate>,
    pub(super) core: Core,
    pub(super) work: Work,
    /// Pauses of the whole service: length and period.
    pub(super) pauses: Option<(f64, f64)>,
    /// Time after which a caller gives up.
    pub(super) timeout: f64,
    pub(super) errors: f64,
}

impl Plant {
    pub(super) fn new(core: Core, work: Work) -> Plant {
        Plant {
            gates: Vec::new(),
            core,
            work,
            pauses: None,
            timeout: f64::INFINITY,
            errors: 0.0,
        }
    }

    pub(super) fn queue(servers: f64, mean: f64, sigma: f64) -> Plant {
        let core = Core::Servers {
            count: Course::flat(servers),
            after: 0.0,
        };
        Plant::new(core, Work::Even { mean, sigma })
    }

    /// Service whose calls take 100 ms and that refuses by a gate.
    pub(super) fn gated(gate: Gate) -> Plant {
        let mut plant = Plant::queue(1e4, 0.1, 0.2);
        plant.gates.push(gate);
        plant
    }

    pub(super) fn bucket(rate: f64, burst: f64, after: After) -> Plant {
        Plant::gated(Gate::Bucket {
            rate: Course::flat(rate),
            burst,
            after,
            counts_refused: false,
        })
    }
}

/// Plant at work.
pub(super) struct Service {
    plant: Plant,
    gates: Vec<State>,
    free: Vec<Vec<f64>>,
    calls: u64,
    pub(super) in_flight: u32,
    phase: f64,
    rng: Rng,
}

#[derive(Default)]
struct State {
    level: f64,
    at: f64,
    count: u64,
    period: f64,
    taken: VecDeque<f64>,
}

impl Service {
    pub(super) fn new(plant: Plant, seed: u64) -> Service {
        let mut rng = Rng::new(seed);
        let gates = plant.gates.iter().map(|gate| State {
            level: if let Gate::Bucket { burst, .. } = gate {
                *burst
            } else {
                0.0
            },
            period: f64::NAN,
            ..State::default()
        });
        let free = match plant.core {
            Core::Balancer { backends, servers } => vec![vec![0.0; servers]; backends],
            _ => vec![Vec::new()],
        };
        Service {
            gates: gates.collect(),
            free,
            calls: 0,
            in_flight: 0,
            phase: rng.unit(),
            rng,
            plant,
        }
    }

    /// Returns the fate of a call that arrives at `now`, and what headers say: calls left, and the reset.
    pub(super) fn call(&mut self, now: f64) -> (Fate, Option<(u64, f64)>) {
        self.in_flight += 1;
        let answered = now + 0.015 + 0.01 * self.rng.unit();
        let mut headers = None;
        for at in 0..self.gates.len() {
            let gate = self.plant.gates[at].clone();
            match self.pass(at, &gate, now, &mut headers) {
                Pass::Taken => {}
                Pass::Refused(wait) => return (Fate::Refused(answered, wait), headers),
                Pass::Unavailable => return (Fate::Unavailable(answered), headers),
            }
        }
        if self.rng.chance(self.plant.errors) {
            return (Fate::Failed(answered), headers);
        }
        let end = self.work(now);
        let gives_up = now + self.plant.timeout;
        (
            if end > gives_up {
                Fate::Failed(gives_up)
            } else {
                Fate::Accepted(end)
            },
            headers,
        )
    }

    fn pass(&mut self, at: usize, gate: &Gate, now: f64, headers: &mut Option<(u64, f64)>) -> Pass {
        let phase = self.phase;
        let state = &mut self.gates[at];
        match *gate {
            Gate::Bucket {
                ref rate,
                burst,
                after,
                counts_refused,
            } => {
                let rate = rate.at(now);
                state.level = (state.level + (now - state.at) * rate).min(burst);
                state.at = now;
                let is_taken = state.level >= 1.0;
                if is_taken || counts_refused {
                    state.level = (state.level - 1.0).max(-burst);
                }
                Pass::of(is_taken, after, (1.0 - state.level) / rate)
            }
            Gate::Period {
                calls,
                span,
                after,
                headers: tells,
            } => {
                let period = (now / span + phase).floor();
                let reset = (period + 1.0 - phase) * span;
                if state.period != period {
                    (state.period, state.count) = (period, 0);
                }
                let is_taken = state.count < calls;
                state.count += u64::from(is_taken);
                if tells {
                    *headers = Some((calls - state.count, reset));
                }
                Pass::of(is_taken, after, reset - now)
            }
            Gate::Sliding {
                calls,
                span,
                counts_refused,
            } => {
                while state.taken.front().is_some_and(|first| *first <= now - span) {
                    state.taken.pop_front();
                }
                let is_taken = state.taken.len() < calls;
                if is_taken || counts_refused {
                    state.taken.push_back(now);
                }
                Pass::of(is_taken, After::Silent, 0.0)
            }
            Gate::InFlight(most) => Pass::of(self.in_flight <= most, After::Silent, 0.0),
            Gate::Stray { share, after } => Pass::of(!self.rng.chance(share), After::Always(after), 0.0),
            Gate::Used { calls, from, until } => {
                state.count += 1;
                let is_used = state.count > calls && (from..until).contains(&now);
                Pass::of(!is_used, After::Silent, 0.0)
            }
            Gate::Outage { from, to } if (from..to).contains(&now) => Pass::Unavailable,
            Gate::Outage { .. } => Pass::Taken,
        }
    }

    fn work(&mut self, now: f64) -> f64 {
        self.calls += 1;
        let rng = &mut self.rng;
        let work = match self.plant.work {
            Work::Even { mean, sigma } => rng.lognormal(mean, sigma),
            Work::Mixed(short) => {
                let mean = if rng.chance(0.5) { short } else { 10.0 * short };
                rng.lognormal(mean, 0.2)
            }
            Work::Blocks(short) => {
                let is_long = self.calls / 2000 % 2 == 1;
                rng.lognormal(if is_long { 10.0 * short } else { short }, 0.2)
            }
        };
        match self.plant.core {
            Core::Servers { ref count, after } => {
                let count = count.at(now) as usize;
                self.serve(0, count, now, work)
                    + if after > 0.0 {
                        self.rng.lognormal(after, 0.2)
                    } else {
                        0.0
                    }
            }
            Core::Slows {
                ref count,
                ref factor,
            } => {
                let (count, factor) = (count.at(now) as usize, factor.at(now));
                self.serve(0, count, now, work * factor)
            }
            Core::Balancer { backends, servers } => {
                let backend = self.rng.below(backends as u64) as usize;
                self.serve(
                    backend,
                    servers,
                    now,
                    if backend == 0 { 2.0 * work } else { work },
                )
            }
            Core::Thrash(knee) => {
                let over = (f64::from(self.in_flight) / knee).max(1.0);
                now + work * over * over
            }
        }
    }

    /// Gives work to the server that is free first, of the first `count`.
    fn serve(&mut self, backend: usize, count: usize, now: f64, work: f64) -> f64 {
        if count >= 1000 {
            return now + work;
        }
        let free = &mut self.free[backend];
        if free.len() < count {
            free.resize(count, now);
        }
        let mut first = 0;
        for at in 1..count {
            if free[at] < free[first] {
                first = at;
            }
        }
        let start = free[first].max(now);
        let end = self
            .plant
            .pauses
            .map_or(start + work, |pauses| paused(start, work, pauses));
        free[first] = end;
        end
    }
}

enum Pass {
    Taken,
    Refused(Option<f64>),
    Unavailable,
}

impl Pass {
    fn of(is_taken: bool, after: After, wait: f64) -> Pass {
        match after {
            _ if is_taken => Pass::Taken,
            After::Silent => Pass::Refused(None),
            After::True => Pass::Refused(Some(wait.ceil().max(1.0))),
            After::Always(wait) => Pass::Refused(Some(wait)),
        }
    }
}

/// Returns the end of work that stands still during pauses, each at the end of its period.
fn paused(start: f64, work: f64, (length, period): (f64, f64)) -> f64 {
    let active = period - length;
    let inside = start % period;
    let done = (start / period).floor() * active + inside.min(active) + work;
    (done / active).floor() * period + done % active
}
