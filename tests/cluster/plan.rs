//! What happens in a scenario, all of it from its seed.

use std::num::NonZeroU32;
use std::time::Duration;

use windrow_config::Config;
use windrow_core::settings::{Auto, Backoff, Burst, OnExhausted, Rate, RateLimit, Results};
use windrow_core::task::Tuning;

use crate::business::Manners;
use crate::link::{Cut, Fate, Noise, Peer};
use crate::rng::Rng;

/// The end of the time in which things go wrong. Unit: milliseconds of the world.
pub(crate) const HEALED_AT: u64 = 15_000;
/// Nothing that lasts begins after this.
const LAST_FAULT: u64 = 11_000;

#[derive(Clone, Debug)]
pub(crate) enum Order {
    Start,
    Stop,
    StopNow,
    Cancel,
    Finish(u64),
    Pace(u64),
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Crash(usize),
    Boot(usize),
    /// Suspends a node for so long.
    Freeze(usize, Duration),
    Cut(usize, Peer, Option<Cut>),
    /// For all nodes at once: the store itself is down.
    CutAll(Peer, Option<Cut>),
    Noise(usize, Noise),
    WipeLeases,
    /// Kills a node as soon as a request of this name takes effect.
    Trap(usize, &'static str),
    /// So many requests of this name have this fate.
    Aim(usize, &'static str, u32, Fate),
    /// Hints are lost, or no more.
    CutHints(bool),
    Drain(usize),
    /// Cuts the node that runs a task then, until they rejoin.
    Isolate(usize, Isolation),
    Rejoin,
    /// Of the node that runs a task then, one more heartbeat and renewal is answered, after so long, and then none.
    Faint(usize, Duration),
    /// People want a node to stand by, or no more.
    Desired(usize, bool),
    /// People want the shards of a task, or one of them, on this node.
    Move(usize, Option<u32>, usize),
    /// To the task of this number, from 0.
    Order(usize, Order),
}

/// How the node that runs a task loses the database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Isolation {
    pub(crate) cut: Cut,
    /// By how much so many of its next renewals are late.
    pub(crate) late: Option<Duration>,
    pub(crate) renewals: u32,
    /// The others don't horizon the leases meanwhile.
    pub(crate) blinds: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct TaskPlan {
    pub(crate) total: u64,
    pub(crate) shards: u32,
    pub(crate) tuning: Tuning,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) nodes: usize,
    /// How long a silent node is believed, by node.
    pub(crate) ttl: Vec<Duration>,
    /// How fast the nodes' clocks run. Unit: parts per million.
    pub(crate) ppm: Vec<i64>,
    pub(crate) has_leases: bool,
    /// Where leases can't be reached a shard may be taken over without, after a longer silence.
    pub(crate) goes_without: bool,
    pub(crate) has_hints: bool,
    /// What each node may run. Unit: items per second.
    pub(crate) capacity: Option<u64>,
    pub(crate) heartbeat: Duration,
    pub(crate) scan: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) tasks: Vec<TaskPlan>,
    pub(crate) manners: Manners,
    pub(crate) late_max: Duration,
    /// By time. Unit: milliseconds of the world.
    pub(crate) steps: Vec<(u64, Step)>,
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn number(number: u64) -> NonZeroU32 {
    u32::try_from(number)
        .ok()
        .and_then(NonZeroU32::new)
        .expect("a small positive number")
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Plan {
        let mut rng = Rng(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5eed);
        let nodes = rng.pick(&[3, 3, 3, 4, 5]);
        let has_leases = rng.chance(HAS_LEASES);
        let ttl = millis(rng.pick(&[2000, 2500, 3000]));
        let mixed = !has_leases && rng.chance(250);
        let ttl = (0..nodes)
            .map(|_| {
                if mixed {
                    millis(rng.between(1500, 4000))
                } else {
                    ttl
                }
            })
            .collect();
        let ppm = (0..nodes)
            .map(|_| rng.between(0, 20_000) as i64 - 10_000)
            .collect();
        let tasks = (0..rng.pick(&[1, 1, 1, 2, 2, 3]))
            .map(|_| TaskPlan::of(&mut rng))
            .collect::<Vec<_>>();
        let mut plan = Plan {
            seed,
            nodes,
            ttl,
            ppm,
            has_leases,
            goes_without: has_leases && rng.chance(250),
            has_hints: rng.chance(500),
            capacity: rng.chance(250).then(|| rng.between(RATE_MAX, 2 * RATE_MAX)),
            heartbeat: millis(rng.between(400, 700)),
            scan: millis(rng.between(400, 1000)),
            drain_timeout: millis(rng.between(500, 5000)),
            manners: manners(&mut rng),
            late_max: millis(rng.between(1000, 8000)),
            tasks,
            steps: Vec::new(),
        };
        // Every other scenario keeps what items come to.
        if seed.is_multiple_of(2) {
            plan.tasks
                .iter_mut()
                .for_each(|task| task.tuning.results = Results::Keep);
        }
        plan.faults(&mut rng);
        plan.orders(&mut rng);
        plan.steps.sort_by_key(|(at, _)| *at);
        plan
    }

    fn at(&mut self, at: u64, step: Step) {
        self.steps.push((at, step));
    }

    fn faults(&mut self, rng: &mut Rng) {
        for node in 0..self.nodes {
            if rng.chance(600) {
                let (noise, from) = (noise(rng), rng.between(0, 4000));
                self.at(from, Step::Noise(node, noise));
                self.at(
                    from + rng.between(2000, 9_000),
                    Step::Noise(node, Noise::default()),
                );
            }
        }
        for _ in 0..rng.between(0, 5) {
            self.fault(rng);
        }
        match rng.between(0, 99) {
            0..25 if self.has_leases => self.one_witness(rng),
            25..40 => self.slow_look(rng),
            40..60 => {
                let task = rng.between(0, self.tasks.len() as u64 - 1) as usize;
                self.at(
                    rng.between(1500, 8000),
                    Step::Faint(task, millis(rng.between(200, 600))),
                );
            }
            _ => {}
        }
    }

    /// Whoever runs a task reaches the leases and not the database, for longer than others believe it, while its
    /// renewals are late and people want something.
    fn one_witness(&mut self, rng: &mut Rng) {
        let (task, at) = (
            rng.between(0, self.tasks.len() as u64 - 1) as usize,
            rng.between(1800, 4000),
        );
        let cut = rng.pick(&[Cut::Refused, Cut::Silent]);
        let late = rng.chance(700).then(|| millis(rng.between(1500, 5000)));
        let blinds = self.goes_without && rng.chance(600);
        self.at(
            at,
            Step::Isolate(
                task,
                Isolation {
                    cut,
                    late,
                    renewals: rng.between(1, 4) as u32,
                    blinds,
                },
            ),
        );
        self.at(at + rng.between(5000, 9000), Step::Rejoin);
        if rng.chance(600) {
            self.at(at + rng.between(0, 2500), Step::Order(task, Order::Stop));
        }
        if rng.chance(200) {
            self.at(at + rng.between(1500, 5000), Step::WipeLeases);
        }
    }

    /// The others see the sessions as they were long ago, and whoever runs a task is cut off meanwhile.
    fn slow_look(&mut self, rng: &mut Rng) {
        let (task, at) = (
            rng.between(0, self.tasks.len() as u64 - 1) as usize,
            rng.between(1500, 4000),
        );
        let there = rng.between(1200, 3500);
        for node in 0..self.nodes {
            let fate = Fate::Slow(millis(there), millis(rng.between(1, 300)));
            self.at(
                at + rng.between(0, 500),
                Step::Aim(node, "list", rng.between(1, 2) as u32, fate),
            );
        }
        let isolation = Isolation {
            cut: Cut::Refused,
            late: None,
            renewals: 0,
            blinds: false,
        };
        let from = at + rng.between(800, there + 500);
        self.at(from, Step::Isolate(task, isolation));
        self.at(from + rng.between(2000, 4000), Step::Rejoin);
    }

    fn fault(&mut self, rng: &mut Rng) {
        let at = rng.between(800, LAST_FAULT);
        let (node, lasting) = (
            rng.between(0, self.nodes as u64 - 1) as usize,
            rng.between(300, 4000),
        );
        let peer = if self.has_leases {
            rng.pick(&[Peer::Database, Peer::Leases])
        } else {
            Peer::Database
        };
        let cut = rng.pick(&[Cut::Refused, Cut::Silent, Cut::Deaf]);
        match rng.between(0, 99) {
            0..8 => {
                let what = rng.pick(&["claim", "close", "checkpoint", "fence", "disown"]);
                self.at(at.min(6000), Step::Trap(node, what));
                self.at(at.max(8000) + lasting / 2, Step::Boot(node));
            }
            8..22 => {
                self.at(at, Step::Crash(node));
                self.at(at + lasting / 2, Step::Boot(node));
            }
            22..42 => self.at(at, Step::Freeze(node, millis(lasting.min(HEALED_AT - at - 1)))),
            42..50 => {
                let (what, fate) = (rng.pick(&AIMED), aimed(rng));
                self.at(
                    at.min(6000),
                    Step::Aim(node, what, rng.between(1, 6) as u32, fate),
                );
            }
            50..75 => {
                self.at(at, Step::Cut(node, peer, Some(cut)));
                self.at(at + lasting, Step::Cut(node, peer, None));
            }
            75..82 => {
                let lasting = lasting / 2;
                self.at(at, Step::CutAll(peer, Some(cut)));
                self.at(at + lasting, Step::CutAll(peer, None));
            }
            82..88 => {
                self.at(at, Step::Drain(node));
                self.at(at + lasting + 1000, Step::Boot(node));
            }
            88..93 => {
                self.at(at, Step::Desired(node, true));
                self.at(at + lasting, Step::Desired(node, false));
            }
            _ if self.has_leases => self.at(at, Step::WipeLeases),
            _ => self.at(at, Step::Freeze(node, millis(lasting.min(HEALED_AT - at - 1)))),
        }
    }

    fn orders(&mut self, rng: &mut Rng) {
        if self.has_hints && rng.chance(400) {
            let at = rng.between(0, LAST_FAULT);
            self.at(at, Step::CutHints(true));
            self.at(at + 3000, Step::CutHints(false));
        }
        for task in 0..self.tasks.len() {
            let from = rng.between(100, 1500);
            self.at(from, Step::Order(task, Order::Start));
            self.moves(task, rng);
            if rng.chance(150) {
                self.storm(task, rng);
            }
            if rng.chance(300) {
                let stop = if rng.chance(600) {
                    Order::Stop
                } else {
                    Order::StopNow
                };
                let at = rng.between(2000, LAST_FAULT);
                self.at(at, Step::Order(task, stop));
                if rng.chance(700) {
                    // Refused as long as it is still stopping: then it stays stopped.
                    self.at(at + rng.between(100, 6000), Step::Order(task, Order::Start));
                }
            }
            if rng.chance(60) {
                self.at(rng.between(2000, LAST_FAULT), Step::Order(task, Order::Cancel));
            }
            if rng.chance(100) {
                let end = rng.between(1, self.tasks[task].total);
                self.at(
                    rng.between(2000, LAST_FAULT),
                    Step::Order(task, Order::Finish(end)),
                );
            }
            if rng.chance(300) {
                // A raise has to be booked first; that is the façade's part.
                let rate = rng.between(4, if self.capacity.is_some() { 5 } else { RATE_MAX });
                self.at(
                    rng.between(2000, LAST_FAULT),
                    Step::Order(task, Order::Pace(rate)),
                );
            }
        }
    }
}

impl Plan {
    fn moves(&mut self, task: usize, rng: &mut Rng) {
        for _ in 0..rng.pick(&[0, 0, 0, 1, 3]) {
            let (at, to) = (
                rng.between(1500, LAST_FAULT),
                rng.between(0, self.nodes as u64 - 1) as usize,
            );
            self.at(at, Step::Move(task, rng.pick(&[None, Some(0), Some(1)]), to));
        }
    }

    /// Somebody can't decide.
    fn storm(&mut self, task: usize, rng: &mut Rng) {
        let mut at = rng.between(1500, LAST_FAULT - 2000);
        for _ in 0..rng.between(2, 6) {
            self.at(
                at,
                Step::Order(
                    task,
                    if rng.chance(700) {
                        Order::Stop
                    } else {
                        Order::StopNow
                    },
                ),
            );
            at += rng.between(5, 700);
            self.at(at, Step::Order(task, Order::Start));
            at += rng.between(5, 700);
        }
    }
}

/// Scenarios with a lease store. Unit: of a thousand.
const HAS_LEASES: u64 = 500;
/// The highest rate of a task. Unit: items per second.
const RATE_MAX: u64 = 16;

impl TaskPlan {
    fn of(rng: &mut Rng) -> TaskPlan {
        let mut tuning = Config::default().task_defaults.tuning;
        let shards = rng.pick(&[1, 1, 1, 2, 3]);
        let rate = rng.between(4, RATE_MAX);
        tuning.rate = RateLimit::Limited(Rate::per_second(rate).expect("not zero"));
        // Settings that several shards can share.
        tuning.batch = number(if shards > 1 { 1 } else { rng.pick(&[1, 1, 1, 3]) });
        tuning.burst = Burst::Items(number(8));
        tuning.concurrency = Auto::Fixed(number(if shards > 1 { 8 } else { rng.pick(&[1, 4, 16]) }));
        tuning.max_concurrency = number(16);
        tuning.max_attempts = number(rng.between(2, 6));
        tuning.timeout = millis(rng.between(400, 1500));
        tuning.backoff.first = millis(rng.between(50, 400));
        tuning.backoff = Backoff {
            max: millis(2000),
            ..tuning.backoff
        };
        tuning.park_after = millis(rng.pick(&[100, 1000, 60_000]));
        tuning.on_exhausted = OnExhausted::Fail;
        tuning.checkpoint_interval = millis(rng.pick(&[200, 500, 1000]));
        if rng.chance(300) {
            tuning.unsaved_max = Auto::Fixed(number(rng.between(4, RATE_MAX)));
        }
        // So many that it takes most of the time in which things go wrong; some are done before.
        let total = rate * rng.between(2, 14);
        TaskPlan {
            total: total.max(10),
            shards: shards as u32,
            tuning,
        }
    }
}

/// Requests in the middle of which something goes wrong.
const AIMED: [&str; 10] = [
    "claim",
    "claim",
    "close",
    "checkpoint",
    "fence",
    "beat",
    "list",
    "acquire",
    "renew",
    "disown",
];

fn aimed(rng: &mut Rng) -> Fate {
    let span = |rng: &mut Rng| millis(rng.between(300, 4000));
    match rng.between(0, 3) {
        0 => Fate::Late(span(rng)),
        1 => Fate::Slow(span(rng), millis(rng.between(1, 1500))),
        2 => Fate::Slow(Duration::ZERO, span(rng)),
        _ => Fate::Unacked,
    }
}

fn noise(rng: &mut Rng) -> Noise {
    let mut part = |most: u64| if rng.chance(600) { rng.between(1, most) } else { 0 };
    Noise {
        lost: part(120),
        unacked: part(150),
        late: part(60),
        twice: part(80),
        slow: part(80),
    }
}

fn manners(rng: &mut Rng) -> Manners {
    Manners {
        latency_ms: rng.between(2, 60),
        slow: rng.between(0, 40),
        hangs: rng.between(0, 15),
        fails: rng.between(0, 80),
        gives_up: rng.between(0, 20),
        skips: rng.between(0, 50),
        refusals: if rng.chance(300) { 2 } else { 0 },
        panics: u32::from(rng.chance(150)),
    }
}
