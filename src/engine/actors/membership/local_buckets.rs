//! Local buckets: this node's shares of shared limits, and the slots of the runs that draw from them.
//!
//! A local bucket belongs to one session and depends on its validity in the database alone: once that has run out
//! nothing is sent, even if a lease would carry the run. `allocator` fills the buckets; lanes draw from them inside
//! their exchange.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;

use crate::actors::membership::session::Life;
use crate::actors::runtime::lock;
use crate::ports::clock::Clock;
use crate::ports::ownership::gate::SessionTrust;
use crate::ports::sources::provision::LimitOf;
use windrow_core::execution::SharedEnd;
use windrow_core::ids::{Moment, SessionId};
use windrow_core::limit::demand::Demand;
use windrow_core::limit::local_bucket::{LocalBucket, Reserved, SlotNo, Used};
use windrow_core::limit::units::bucket::Units;
use windrow_core::limit::units::call::{Departing, Estimates, Taken};
use windrow_core::limit::units::{Dealt, Report};
use windrow_core::limit::{Part, nanos};
use windrow_core::meter::amount::Amount;
use windrow_core::meter::metering::Metering;
use windrow_core::pace::STALE_AFTER;
use windrow_core::settings::RateLimit;

/// Interval for checking the session's validity again after it has run out.
const TRUST_RECHECK: Duration = Duration::from_millis(50);

/// All local buckets of a node.
#[derive(Clone, Default)]
pub struct LocalBuckets(Arc<Shelf>);

#[derive(Default)]
struct Shelf {
    local_buckets: Mutex<BTreeMap<(SessionId, String), Arc<SharedPot>>>,
    hurry: Notify,
    /// Use of limits in units by local buckets that were removed: it belongs to their sessions.
    used: Mutex<BTreeMap<(SessionId, String), Units>>,
    /// Number of the last round; outlives a crash of the session's actor, as the session does.
    rounds: AtomicU64,
}

/// Local bucket, the session it depends on, and the lanes to wake.
pub(crate) struct SharedPot {
    pub(crate) name: String,
    trust: Arc<SessionTrust>,
    /// Set while anything is limited. Every exchange reads it, so that a limit that limits nothing costs a branch.
    is_limited: AtomicBool,
    filled: Mutex<Filled>,
}

struct Filled {
    local_bucket: LocalBucket,
    wakes: BTreeMap<SlotNo, Arc<Notify>>,
    was_trusted: bool,
    demand: Demand,
    demand_at: Moment,
    /// Set when the demand is out of date: a run came or went, or wanted items when none did before.
    is_stale: bool,
}

/// Settings of a run that matter under shared limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks {
    pub(crate) rate: RateLimit,
    pub(crate) batch: u32,
    pub(crate) weight: u32,
}

/// Shortest span over which demand is measured.
const DEMAND_SPAN: Duration = Duration::from_millis(500);

impl LocalBuckets {
    /// Adds a run, which counts against a limit from now on.
    pub(crate) fn join(
        &self,
        (life, limit): (&Life, &LimitOf),
        asks: Asks,
        clock: &Arc<dyn Clock>,
        wake: Arc<Notify>,
    ) -> LimitSlot {
        let now = clock.now();
        let mut local_buckets = self.shelf();
        let key = (life.id, limit.name.clone());
        let local_bucket = local_buckets
            .entry(key)
            .or_insert_with_key(|key| {
                let used = lock(&self.0.used).remove(key).unwrap_or_default();
                Arc::new(SharedPot::new(limit, life, used, now))
            })
            .clone();
        let no = local_bucket.lock().join(asks, limit.metering.as_ref(), wake, now);
        drop(local_buckets);
        self.hurry();
        LimitSlot {
            local_buckets: self.clone(),
            session: life.id,
            local_bucket,
            no,
            clock: clock.clone(),
        }
    }

    /// Requests an allocation now, for a change that shouldn't wait for the next one.
    pub(crate) fn hurry(&self) {
        self.0.hurry.notify_one();
    }

    pub(crate) async fn hurried(&self) {
        self.0.hurry.notified().await;
    }

    /// Returns the number of the next round.
    pub(crate) fn next_round(&self) -> u64 {
        self.0.rounds.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn of(&self, session: SessionId) -> Vec<Arc<SharedPot>> {
        let local_buckets = self.shelf();
        local_buckets
            .iter()
            .filter(|((owner, _), _)| *owner == session)
            .map(|(_, local_bucket)| local_bucket.clone())
            .collect()
    }

    /// Removes a local bucket that no run draws from.
    pub(crate) fn remove_empty(&self, session: SessionId, name: &str) {
        let mut local_buckets = self.shelf();
        let key = (session, name.to_owned());
        let Some(local_bucket) = local_buckets.get(&key).cloned() else {
            return;
        };
        let filled = local_bucket.lock();
        if !filled.local_bucket.is_empty() {
            return;
        }
        if !filled.local_bucket.units.is_empty() && !local_bucket.trust.is_fenced() {
            let mut used = lock(&self.0.used);
            used.retain(|(owner, _), _| *owner == session);
            used.insert(key.clone(), filled.local_bucket.units.clone());
        }
        local_buckets.remove(&key);
    }

    fn shelf(&self) -> MutexGuard<'_, BTreeMap<(SessionId, String), Arc<SharedPot>>> {
        lock(&self.0.local_buckets)
    }
}

impl SharedPot {
    fn new(limit: &LimitOf, life: &Life, used: Units, now: Moment) -> SharedPot {
        let part = if limit.is_limited {
            Part::NONE
        } else {
            Part::UNBOUNDED
        };
        let mut local_bucket = LocalBucket::new(part, STALE_AFTER, now);
        local_bucket.units = used;
        let filled = Filled {
            local_bucket,
            wakes: BTreeMap::new(),
            was_trusted: true,
            demand: Demand::default(),
            demand_at: now,
            is_stale: true,
        };
        SharedPot {
            name: limit.name.clone(),
            trust: life.trust.clone(),
            is_limited: AtomicBool::new(limit.is_limited),
            filled: Mutex::new(filled),
        }
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited.load(Ordering::Acquire)
    }

    /// Sets the share to use from now on, and whether anything is limited.
    pub(crate) fn apply(&self, part: Part, is_limited: bool, now: Moment) {
        let mut filled = self.lock();
        let is_change = filled.local_bucket.part() != part;
        filled.local_bucket.apply(part, now);
        self.is_limited.store(is_limited, Ordering::Release);
        if is_change {
            filled.wakes.values().for_each(|wake| wake.notify_waiters());
        }
    }

    /// Reports use and demand of limits in units; from then on no more than that may be used.
    pub(crate) fn report(&self, leaves: bool, now: Moment) -> Vec<Report> {
        self.lock().local_bucket.units.report(leaves, now)
    }

    /// Applies what a round dealt of limits in units; `bound` is what may be used of each reply.
    pub(crate) fn apply_units(
        &self,
        (metering, dealt): (&Metering, &[Dealt]),
        bound: impl Fn(&Units, &Dealt) -> Amount,
        now: Moment,
    ) {
        let mut filled = self.lock();
        let units = &mut filled.local_bucket.units;
        units.set_limits(metering, now);
        let before = units.clone();
        if units.apply(dealt, |reply| bound(&before, reply), now) {
            filled.wakes.values().for_each(|wake| wake.notify_waiters());
        }
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&LocalBucket) -> T) -> T {
        look(&self.lock().local_bucket)
    }

    /// Returns the demand of the runs, measured again if it is stale or older than `DEMAND_SPAN`.
    pub(crate) fn demand(&self, now: Moment) -> Demand {
        let filled = &mut *self.lock();
        if filled.is_stale || now.since(filled.demand_at) >= DEMAND_SPAN {
            filled.demand = filled.local_bucket.collect(now);
            (filled.demand_at, filled.is_stale) = (now, false);
        }
        filled.demand.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Filled> {
        lock(&self.filled)
    }
}

impl Filled {
    fn join(&mut self, asks: Asks, metering: Option<&Metering>, wake: Arc<Notify>, now: Moment) -> SlotNo {
        let no = self.local_bucket.join(own_rate(asks.rate), asks.batch, now);
        self.local_bucket.weigh(no, asks.weight);
        if let Some(metering) = metering {
            self.local_bucket.units.join(no, metering, asks.weight, now);
        }
        self.wakes.insert(no, wake);
        self.is_stale = true;
        no
    }

    fn leave(&mut self, no: SlotNo) {
        self.local_bucket.leave(no);
        self.wakes.remove(&no);
        self.is_stale = true;
    }

    /// True if the session is valid. If it wasn't, earned credit is void.
    fn is_trusted(&mut self, until: Moment, now: Moment) -> bool {
        let is_trusted = now < until;
        if !is_trusted || !self.was_trusted {
            self.local_bucket.void(now);
        }
        self.was_trusted = is_trusted;
        is_trusted
    }
}

fn own_rate(rate: RateLimit) -> Option<u64> {
    rate.most().map(nanos)
}

/// Slot of a run in a local bucket; given back when dropped.
pub(crate) struct LimitSlot {
    local_buckets: LocalBuckets,
    session: SessionId,
    local_bucket: Arc<SharedPot>,
    no: SlotNo,
    clock: Arc<dyn Clock>,
}

impl LimitSlot {
    pub(crate) fn key(&self) -> &str {
        &self.local_bucket.name
    }

    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.local_bucket.is_limited.load(Ordering::Relaxed)
    }

    /// Reserves up to `want` items. The caller must settle the reservation.
    pub(crate) fn reserve(&self, want: u32, now: Moment) -> Reserved {
        let mut filled = self.local_bucket.lock();
        if !filled.is_trusted(self.local_bucket.trust.until(), now) {
            return Reserved {
                items: 0,
                ask_at: Some(now.plus(TRUST_RECHECK)),
                by_slots: false,
            };
        }
        filled.local_bucket.reserve(self.no, want, now)
    }

    /// Settles a reservation, and wakes the run that comes next.
    pub(crate) fn settle(&self, reserved: Reserved, used: Used, now: Moment) {
        let filled = &mut *self.local_bucket.lock();
        let next = filled.local_bucket.settle(self.no, reserved, used, now);
        next.and_then(|no| filled.wakes.get(&no))
            .iter()
            .for_each(|wake| wake.notify_waiters());
        if used.wants_more && filled.demand.is_idle() && !filled.is_stale {
            filled.is_stale = true;
            self.local_buckets.hurry();
        }
    }

    /// Applies the run's changed settings to its slot.
    pub(crate) fn tune(&self, rate: RateLimit, batch: u32) {
        self.local_bucket
            .lock()
            .local_bucket
            .tune(self.no, own_rate(rate), batch, self.clock.now());
    }

    /// Takes the estimates of a call that is about to be sent, lowered to what is taken.
    pub(crate) fn take(&self, call: Departing<'_>, now: Moment) -> Taken {
        let mut filled = self.local_bucket.lock();
        if !filled.is_trusted(self.local_bucket.trust.until(), now) {
            return Taken::No(false);
        }
        let taken = filled.local_bucket.units.take(self.no, call, now);
        drop(filled);
        if matches!(taken, Taken::Yes(true) | Taken::No(true)) {
            self.local_buckets.hurry();
        }
        taken
    }

    /// Gives back the estimates of a call that wasn't sent.
    pub(crate) fn give(&self, estimates: Estimates<'_>, now: Moment) {
        self.local_bucket
            .lock()
            .local_bucket
            .units
            .give(self.no, estimates, now);
    }

    /// Settles a call that ended.
    pub(crate) fn end(&self, end: &SharedEnd, now: Moment) {
        let units = &mut self.local_bucket.lock().local_bucket.units;
        units.end(self.no, end.estimates(), (&end.costs, &end.expected), now);
    }

    /// Returns the limit in units that holds the run back.
    pub(crate) fn held_by(&self) -> Option<String> {
        self.local_bucket
            .look(|local_bucket| local_bucket.units.held_by(self.no))
    }

    /// Returns the total that holds no further call of the run.
    pub(crate) fn used_up(&self) -> Option<String> {
        self.local_bucket
            .look(|local_bucket| local_bucket.units.used_up(self.no))
    }
}

impl Drop for LimitSlot {
    fn drop(&mut self) {
        self.local_bucket.lock().leave(self.no);
        if self.local_bucket.trust.is_fenced() {
            self.local_buckets
                .remove_empty(self.session, &self.local_bucket.name);
        }
        self.local_buckets.hurry();
    }
}
