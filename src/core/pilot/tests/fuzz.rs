//! Invariants under random reports: whatever a service does, the autopilot neither freezes nor exceeds its bounds.

use std::collections::BTreeSet;
use std::time::Duration;

use super::accept::number;
use super::rng::Rng;
use super::world::settings;
use crate::ids::Moment;
use crate::pilot::{Allowance, Call, Heard, Knobs, Knowledge, Pilot, Settings, Why};

/// Runs and reports a run; `PILOT_FUZZ=400` runs more.
const RUNS_DEFAULT: u64 = 200;
const REPORTS: u64 = 2_000;
/// Longest wait with no call out: a believed instant lies at most a day ahead.
const WAIT_MAX: Duration = Duration::from_secs(86_401);

struct Fuzz {
    rng: Rng,
    pilot: Pilot,
    settings: Settings,
    now: Moment,
    out: Vec<Call>,
    trace: u64,
    seen: BTreeSet<&'static str>,
}

impl Fuzz {
    fn new(seed: u64) -> Fuzz {
        let mut rng = Rng::new(seed);
        let knobs = Knobs {
            in_flight: rng.chance(0.8),
            rate: rng.chance(0.8),
        };
        let most = [0, 1, 2, 7, 64, 300][rng.below(6) as usize];
        let settings = Settings {
            knobs,
            start: rng.below(100) as u32,
            ..settings(most, seed)
        };
        let now = Moment(rng.below(1 << 50));
        Fuzz {
            rng,
            pilot: Pilot::new(settings, now),
            settings,
            now,
            out: Vec::new(),
            trace: 0,
            seen: BTreeSet::new(),
        }
    }

    fn out(&self) -> u32 {
        self.out.len() as u32
    }

    /// Asks once, and checks the answer.
    fn ask(&mut self) -> Allowance {
        let answer = self.pilot.allow(self.now, self.out());
        match answer {
            Allowance::Go => assert!(self.out() < self.settings.most.max(1), "more than allowed"),
            Allowance::Full(why) => assert!(self.out() > 0, "full with none out: {why}"),
            Allowance::Until(until, why) => {
                assert!(until > self.now, "a wait that is over: {why}");
                assert!(
                    self.out() > 0 || until.since(self.now) <= WAIT_MAX,
                    "{why}: {:?}",
                    until.since(self.now)
                );
            }
        }
        if let Allowance::Full(why) | Allowance::Until(_, why) = answer {
            self.seen.insert(why.as_str());
        }
        let picture = self.pilot.picture(self.now);
        assert!((1..=self.settings.most.max(1)).contains(&picture.in_flight));
        assert!(picture.rate.is_none_or(|rate| rate.is_finite() && rate > 0.0));
        assert!((0.0..=1.0).contains(&picture.refused_share) && picture.slower >= 1.0);
        assert!(picture.slope.is_none_or(f64::is_finite));
        self.trace = self.trace.wrapping_mul(31).wrapping_add(match answer {
            Allowance::Go => 1,
            Allowance::Full(why) => 2 + why as u64,
            Allowance::Until(until, _) => until.0,
        });
        answer
    }

    fn depart(&mut self) {
        let call = self.pilot.on_departure(self.now, self.out() + 1);
        self.out.push(call);
    }

    fn end(&mut self, kind: u64) {
        if self.out.is_empty() {
            return;
        }
        let call = self
            .out
            .swap_remove(self.rng.below(u64::from(self.out())) as usize);
        match kind {
            0..=5 => self.pilot.on_accepted(call, self.now),
            6 => self.pilot.on_failed(call, self.now),
            _ => {
                let waits = [0, 1, 60, 3600, u64::MAX];
                let wait = self
                    .rng
                    .chance(0.5)
                    .then(|| Duration::from_secs(waits[self.rng.below(5) as usize]));
                self.pilot.on_refused(call, self.now, wait);
            }
        }
    }

    fn step(&mut self, refusing: u64) {
        match self.rng.below(20) {
            0..=8 => {
                if self.ask() == Allowance::Go {
                    self.depart();
                }
            }
            9..=15 => {
                let kind = self.rng.below(7 + refusing);
                self.end(kind);
            }
            16 => {
                let scale =
                    [1_000_000, 100_000_000, 10_000_000_000, 4_000_000_000_000][self.rng.below(4) as usize];
                self.now = Moment(self.now.0 + self.rng.below(scale));
            }
            17 => self.now = Moment(self.now.0 + self.rng.below(50_000_000)),
            18 => self.rare(),
            // The clock stands still, and once in a while a moment is asked for twice.
            _ => drop(self.ask()),
        }
    }

    fn rare(&mut self) {
        match self.rng.below(10) {
            0 => self.pilot.on_circuit_open(self.now),
            1..=3 => self
                .pilot
                .on_circuit_closed(self.now, Duration::from_secs(self.rng.below(100))),
            4 => {
                let (known, age) = (
                    self.pilot.knowledge(),
                    Duration::from_secs(self.rng.below(100_000)),
                );
                self.pilot = Pilot::restore(self.settings, &known, age, self.now);
                self.out.clear();
            }
            5 | 6 => self.hear(),
            _ => {
                if let Some(call) = self.out.first() {
                    let left = [0, 1, 5, u64::MAX][self.rng.below(4) as usize];
                    let reset =
                        [0, self.now.0 + self.rng.below(1 << 40), u64::MAX][self.rng.below(3) as usize];
                    self.pilot.on_window(*call, self.now, left, Moment(reset));
                }
            }
        }
    }

    /// News of other runs, some of them nonsense.
    fn hear(&mut self) {
        let numbers = [f64::NAN, -1.0, 0.0, 1e-9, 0.3, 1.0, 40.0, 1e300, f64::INFINITY];
        let number = |rng: &mut Rng| numbers[rng.below(9) as usize];
        let known = Knowledge {
            in_flight: number(&mut self.rng),
            base: Some(number(&mut self.rng)),
            ..self.pilot.knowledge()
        };
        let heard = Heard {
            part: number(&mut self.rng),
            in_flight: [0, 1, 50, u32::MAX][self.rng.below(4) as usize],
            rate: self.rng.chance(0.5).then(|| number(&mut self.rng)),
            leader: self.rng.chance(0.5).then_some(known),
        };
        self.pilot.on_heard(&heard, self.now);
    }

    /// Ends all calls; then time alone leads to the next.
    fn leads_on(&mut self) {
        while !self.out.is_empty() {
            self.end(7);
        }
        let mut waits = 0;
        while let Allowance::Until(until, _) = self.ask() {
            self.now = until;
            waits += 1;
            assert!(waits < 10, "frozen: {:?}", self.pilot.picture(self.now));
        }
    }
}

fn fuzz(seed: u64) -> (u64, BTreeSet<&'static str>) {
    let mut fuzz = Fuzz::new(seed);
    for report in 0..REPORTS {
        fuzz.step(seed % 4 * 3);
        if report % 500 == 499 {
            fuzz.leads_on();
        }
    }
    (fuzz.trace, fuzz.seen)
}

#[test]
fn bounds_hold_and_nothing_freezes_whatever_is_reported() {
    let mut seen = BTreeSet::new();
    for seed in 0..number("PILOT_FUZZ", RUNS_DEFAULT) {
        let (trace, of_this) = fuzz(seed);
        assert_eq!(
            trace,
            fuzz(seed).0,
            "seed {seed}: the same reports, another decision"
        );
        seen.extend(of_this);
    }
    // Otherwise the fuzz proves less than it seems to.
    assert_eq!(seen.len(), Why::ALL.len(), "{seen:?}");
}

#[test]
fn refused_calls_are_no_samples_of_latency() {
    let start = Moment(1_000_000_000);
    let mut pilot = Pilot::new(settings(64, 1), start);
    for number in 0..100 {
        let now = start.plus(Duration::from_secs(number));
        let call = pilot.on_departure(now, 1);
        pilot.on_refused(call, now.plus(Duration::from_millis(5)), None);
    }
    assert_eq!(pilot.picture(start).latency, None);
}

#[test]
fn idle_time_is_no_evidence() {
    let mut now = Moment(1_000_000_000);
    let mut pilots = [Pilot::new(settings(64, 1), now), Pilot::new(settings(64, 1), now)];
    for (which, pilot) in pilots.iter_mut().enumerate() {
        now = Moment(1_000_000_000);
        for number in 0..50 {
            // A person is asked for an hour: the second one is idle once.
            if which == 1 && number == 20 {
                now = now.plus(Duration::from_secs(3600));
            }
            while let Allowance::Until(until, _) = pilot.allow(now, 0) {
                now = until;
            }
            let call = pilot.on_departure(now, 1);
            now = now.plus(Duration::from_millis(10));
            // Refused at the 30th to 33rd call.
            if (30..34).contains(&number) {
                pilot.on_refused(call, now, None);
            } else {
                pilot.on_accepted(call, now);
            }
        }
    }
    let rates = pilots.map(|pilot| pilot.picture(Moment(0)).rate.expect("calls were refused"));
    assert!((rates[0] / rates[1] - 1.0).abs() < 0.01, "{rates:?}");
}

#[test]
fn circuit_goes_on_with_half_and_keeps_the_rate() {
    let start = Moment(1_000_000_000);
    let known = crate::pilot::Knowledge {
        in_flight: 40.0,
        rate: Some(9.0),
        top: Some(9.2),
        base: Some(-3.0),
        refused_above: None,
    };
    let mut pilot = Pilot::restore(settings(64, 1), &known, Duration::ZERO, start);
    let early = pilot.on_departure(start, 1);
    pilot.on_circuit_open(start);
    pilot.on_refused(early, start, None);
    let probe = pilot.on_departure(start.plus(Duration::from_secs(5)), 1);
    pilot.on_circuit_closed(start.plus(Duration::from_secs(6)), Duration::from_secs(6));
    pilot.on_refused(probe, start.plus(Duration::from_secs(6)), None);
    let picture = pilot.picture(start);
    assert_eq!(
        (picture.in_flight, picture.rate, picture.scouting),
        (20, Some(9.0), None)
    );
    assert_eq!(picture.refused_share, 0.0);
}

#[test]
fn knowledge_fades_and_nonsense_is_dropped() {
    let now = Moment(1_000_000_000);
    let pilot = Pilot::new(settings(256, 1), now);
    let mut known = pilot.knowledge();
    let text = serde_json::to_string(&known).expect("it is plain");
    assert_eq!(text, r#"{"in_flight":4.0}"#);
    assert_eq!(
        serde_json::from_str::<crate::pilot::Knowledge>(&text).expect("it was written"),
        known
    );
    known.in_flight = 128.0;
    let in_flight = |known: &_, hours: u64| {
        let age = Duration::from_secs(hours * 3600);
        Pilot::restore(settings(256, 1), known, age, now).in_flight_max()
    };
    assert_eq!(
        [0, 1, 2, 9, 30].map(|hours| in_flight(&known, hours)),
        [128, 64, 32, 4, 4]
    );
    for (in_flight_, rate) in [
        (f64::NAN, f64::NAN),
        (f64::INFINITY, -1.0),
        (-7.0, 0.0),
        (1e300, 1e300),
    ] {
        (known.in_flight, known.rate) = (in_flight_, Some(rate));
        let pilot = Pilot::restore(settings(256, 1), &known, Duration::ZERO, now);
        assert!((1..=256).contains(&pilot.in_flight_max()) && pilot.picture(now).rate.is_none());
    }
}

#[test]
fn window_holds_until_its_reset_and_not_longer() {
    let now = Moment(1_000_000_000);
    let reset = now.plus(Duration::from_secs(30));
    let mut pilot = Pilot::new(settings(64, 1), now);
    let first = pilot.on_departure(now, 1);
    let second = pilot.on_departure(now, 2);
    pilot.on_window(second, now, 1, reset);
    // An answer that was sent earlier says nothing new.
    pilot.on_window(first, now, 50, reset);
    assert_eq!(pilot.allow(now, 2), Allowance::Go);
    pilot.on_departure(now, 3);
    let held = pilot.allow(now, 3);
    assert!(matches!(held, Allowance::Until(_, Why::WindowUsed)), "{held:?}");
    assert_eq!(pilot.allow(reset, 3), Allowance::Go);
}
