//! The way from one node to the shared stores, with everything that goes wrong on it.
//!
//! A request passes twice through the node's own gate (is it alive, is it suspended?) and through the link: it may be
//! lost, be slow on its way there or back, take effect without an answer, take effect long after the caller gave up, or
//! take effect twice. What has been sent takes effect even if its node is dead, or waits no more, by then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use std::sync::Mutex;
use windrow_engine::ports::StoreError;

use crate::clock::NodeClock;
use crate::judge::Judge;
use crate::rng::Rng;

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    Database,
    Leases,
}

/// How a way is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Every request fails at once, without effect.
    Refused,
    /// Nothing arrives, and nobody says so.
    Silent,
    /// Requests arrive, answers don't.
    Deaf,
}

/// How often single requests go wrong. Unit: of a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noise {
    pub(crate) lost: u64,
    pub(crate) unacked: u64,
    pub(crate) late: u64,
    pub(crate) twice: u64,
    /// Both ways take long, but the answer comes: to those who still wait for it.
    pub(crate) slow: u64,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrives,
    Lost,
    /// Takes effect, and nobody hears so.
    Unacked,
    /// Takes effect only after so long.
    Late(Duration),
    /// Takes effect now, and again after so long.
    Twice(Duration),
    /// Takes effect only after so long, and is heard of after so long again.
    Slow(Duration, Duration),
}

#[derive(Debug)]
struct Weather {
    rng: Rng,
    noise: Noise,
    database: Option<Cut>,
    leases: Option<Cut>,
    /// The node dies as soon as a request of this name takes effect.
    trap: Option<&'static str>,
    /// So many requests of this name still have this fate, those that come first before others.
    aimed: Vec<(&'static str, u32, Fate)>,
}

/// See the module. One for each life of a node.
pub(crate) struct Link {
    /// `n2`, and which life of it.
    pub(crate) node: usize,
    pub(crate) life: u32,
    pub(crate) clock: Arc<NodeClock>,
    pub(crate) judge: Arc<Mutex<Judge>>,
    /// How late a request may take effect, at most.
    late_max: Duration,
    dead: AtomicBool,
    weather: Mutex<Weather>,
}

impl Link {
    pub(crate) fn new(
        (node, life): (usize, u32),
        clock: Arc<NodeClock>,
        judge: Arc<Mutex<Judge>>,
        rng: Rng,
        late_max: Duration,
    ) -> Link {
        let weather = Weather {
            rng,
            noise: Noise::default(),
            database: None,
            leases: None,
            trap: None,
            aimed: Vec::new(),
        };
        let (dead, weather) = (AtomicBool::new(false), Mutex::new(weather));
        Link {
            node,
            life,
            clock,
            judge,
            late_max,
            dead,
            weather,
        }
    }

    /// The judge, who sees everything.
    pub(crate) fn judge<T>(&self, tell: impl FnOnce(&mut Judge) -> T) -> T {
        tell(&mut self.judge.lock().expect("the judge does not panic"))
    }

    fn weather<T>(&self, of: impl FnOnce(&mut Weather) -> T) -> T {
        of(&mut self.weather.lock().expect("no panic while held"))
    }

    pub(crate) fn set_noise(&self, noise: Noise) {
        self.weather(|weather| weather.noise = noise);
    }

    pub(crate) fn cut(&self, peer: Peer, cut: Option<Cut>) {
        self.weather(|weather| match peer {
            Peer::Database => weather.database = cut,
            Peer::Leases => weather.leases = cut,
        });
    }

    /// The process is gone in the moment in which a request of this name takes effect.
    pub(crate) fn set_trap(&self, what: &'static str) {
        self.weather(|weather| weather.trap = Some(what));
    }

    /// The next requests of this name, so many of them, have this fate, after those that were aimed at before.
    pub(crate) fn aim(&self, what: &'static str, times: u32, fate: Fate) {
        self.weather(|weather| weather.aimed.push((what, times, fate)));
    }

    /// All is well from now on.
    pub(crate) fn heal(&self) {
        self.weather(|weather| {
            (weather.noise, weather.aimed) = (Noise::default(), Vec::new());
            (weather.database, weather.leases) = (None, None);
        });
    }

    fn aimed(&self, what: &'static str) -> Option<Fate> {
        let fate = self.weather(|weather| {
            let (_, left, fate) = weather
                .aimed
                .iter_mut()
                .find(|(of, left, _)| *of == what && *left > 0)?;
            *left -= 1;
            Some(*fate)
        });
        self.judge(|judge| judge.count(fate.is_some(), "aimed fault"));
        fate
    }

    async fn spring(&self, what: &'static str) {
        if !self.weather(|weather| weather.trap.take_if(|trap| *trap == what).is_some()) {
            return;
        }
        let who = (self.node, self.life);
        self.judge(|judge| judge.on_trap(who, what));
        self.die();
        self.stand_by().await;
    }

    /// Nothing leaves the node any more.
    pub(crate) fn die(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// A random span, for what isn't the link's business.
    pub(crate) fn random(&self, low: Duration, high: Duration) -> Duration {
        let (low, high) = (low.as_micros() as u64, high.as_micros() as u64);
        self.weather(|weather| weather.rng.micros(low, high.max(low)))
    }

    pub(crate) fn chance(&self, per_mille: u64) -> bool {
        self.weather(|weather| weather.rng.chance(per_mille))
    }

    /// Ends when the node may act: never if it is dead, not while it is suspended.
    pub(crate) async fn stand_by(&self) {
        while let Some(wait) = self.clock.frozen_for() {
            tokio::time::sleep(wait).await;
        }
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits, as a part of the node: time in which it is suspended counts, but it hears of the end only afterwards.
    pub(crate) async fn wait(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
        self.stand_by().await;
    }

    fn fate(&self) -> Fate {
        let late_max = self.late_max.as_micros() as u64;
        self.weather(|weather| {
            let noise = weather.noise;
            let (roll, late) = (weather.rng.between(0, 999), weather.rng.micros(20_000, late_max));
            let marks = [noise.lost, noise.unacked, noise.late, noise.twice, noise.slow];
            let mut sum = 0;
            let at = marks.iter().position(|mark| {
                sum += mark;
                roll < sum
            });
            match at {
                None => Fate::Arrives,
                Some(0) => Fate::Lost,
                Some(1) => Fate::Unacked,
                Some(2) => Fate::Late(late),
                Some(3) => Fate::Twice(late),
                // Spans that a caller with a time limit may just wait for, and longer ones.
                Some(_) => {
                    let there = weather.rng.pick(&[0, 0, 500_000, late_max / 2]);
                    let back = weather.rng.pick(&[300_000, 800_000, late_max / 2]);
                    Fate::Slow(weather.rng.micros(0, there), weather.rng.micros(20_000, back))
                }
            }
        })
    }

    fn cut_of(&self, peer: Peer) -> Option<Cut> {
        self.weather(|weather| match peer {
            Peer::Database => weather.database,
            Peer::Leases => weather.leases,
        })
    }

    /// How long a caller waits for an answer that doesn't come: drivers have a time limit of their own.
    async fn no_answer<T, E: From<StoreError>>(&self, what: &str) -> Result<T, E> {
        let quick = self.chance(400);
        let (low, high) = if quick { (1, 20) } else { (300, 2500) };
        let wait = self.random(Duration::from_millis(low), Duration::from_millis(high));
        self.wait(wait).await;
        Err(StoreError::Unavailable(format!("{what}: no answer")).into())
    }

    /// One request: `effect` is what happens at the other end, in one moment.
    pub(crate) async fn call<T, E, F, Fut>(&self, peer: Peer, what: &'static str, effect: F) -> Result<T, E>
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.stand_by().await;
        let latency = self.random(Duration::ZERO, Duration::from_millis(4));
        if latency > Duration::from_millis(1) {
            self.wait(latency).await;
        }
        let fate = self.aimed(what).unwrap_or_else(|| self.fate());
        let cut = self.cut_of(peer);
        if fate != Fate::Arrives || cut.is_some() {
            let who = (self.node, self.life);
            self.judge(|judge| judge.note(|| format!("n{}.{} {what}: {fate:?} {cut:?}", who.0, who.1)));
        }
        match cut {
            Some(Cut::Refused) => return Err(StoreError::Unavailable(format!("{what}: refused")).into()),
            Some(Cut::Silent) => return self.no_answer(what).await,
            _ => {}
        }
        let answer = match fate {
            Fate::Lost => return self.no_answer(what).await,
            Fate::Late(after) => {
                later(after, effect);
                return self.no_answer(what).await;
            }
            Fate::Twice(after) => {
                let answer = effect().await;
                later(after, effect);
                answer
            }
            Fate::Slow(there, back) => slowly(there, effect, back).await,
            Fate::Arrives | Fate::Unacked => effect().await,
        };
        self.spring(what).await;
        self.judge(|judge| judge.count(matches!(fate, Fate::Slow(..)), "slow answer"));
        if fate == Fate::Unacked || cut.is_some() || self.cut_of(peer).is_some() {
            return self.no_answer(what).await;
        }
        if latency > Duration::from_millis(2) {
            self.wait(latency).await;
        }
        self.stand_by().await;
        answer
    }
}

/// Takes effect later, whatever has become of who asked for it.
fn later<T, E, F, Fut>(after: Duration, effect: F)
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        // Nobody hears the answer; the judge has seen what it did.
        drop(effect().await);
    });
}

/// Takes effect after the way there and answers after the way back. Whoever waits no more changes nothing about that.
async fn slowly<T, E, F, Fut>(there: Duration, effect: F, back: Duration) -> Result<T, E>
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    let under_way = tokio::spawn(async move {
        tokio::time::sleep(there).await;
        let answer = effect().await;
        tokio::time::sleep(back).await;
        answer
    });
    under_way.await.expect("stores do not panic")
}
