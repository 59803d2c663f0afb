//! The concurrency of a business on this node (`limits.concurrency`), shared by the runs of its tasks.
//!
//! Each live run may have its fair share in flight: the limit divided by the runs, rounded down, at least 1 (so that
//! none starves; with more runs than the limit, their number is what is in flight). Shares change at once when a run
//! opens or closes: a run's handler says so by its slots.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle as Runtime;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::ports::handler::{Call, Handler, Reply};

/// The runs of all businesses.
#[derive(Debug, Default)]
pub struct FairShares(Mutex<HashMap<String, Runs>>);

#[derive(Debug, Default)]
struct Runs {
    limit: Option<NonZeroU32>,
    next: u64,
    shares: BTreeMap<u64, watch::Sender<Option<u32>>>,
}

impl Runs {
    fn share(&self) -> Option<u32> {
        let runs = u32::try_from(self.shares.len()).unwrap_or(u32::MAX).max(1);
        self.limit.map(|limit| (limit.get() / runs).max(1))
    }

    fn tell(&self) {
        let share = self.share();
        for sender in self.shares.values() {
            sender.send_if_modified(|told| std::mem::replace(told, share) != share);
        }
    }
}

impl FairShares {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Runs>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wraps the handler of a run. The limit is the business's newest one: it holds for its other runs too.
    pub fn wrap(
        self: &Arc<FairShares>,
        business: &str,
        limit: Option<NonZeroU32>,
        inner: Arc<dyn Handler>,
        work: &Runtime,
    ) -> Arc<dyn Handler> {
        let (seat, mut share) = self.join(business, limit);
        let mut own = inner.slots();
        let (sender, slots) = watch::channel(least(*own.borrow_and_update(), *share.borrow_and_update()));
        let following = work.spawn(async move {
            loop {
                let changed = tokio::select! {
                    changed = own.changed() => changed,
                    changed = share.changed() => changed,
                };
                let now = least(*own.borrow_and_update(), *share.borrow_and_update());
                sender.send_if_modified(|told| std::mem::replace(told, now) != now);
                if changed.is_err() {
                    return;
                }
            }
        });
        let following = Following(following.abort_handle());
        Arc::new(Shared { inner, slots, seat: Mutex::new(Some(seat)), _following: following })
    }

    fn join(
        self: &Arc<FairShares>,
        business: &str,
        limit: Option<NonZeroU32>,
    ) -> (Seat, watch::Receiver<Option<u32>>) {
        let mut all = self.lock();
        let runs = all.entry(business.to_owned()).or_default();
        let (sender, share) = watch::channel(None);
        let number = runs.next;
        runs.next += 1;
        runs.limit = limit;
        runs.shares.insert(number, sender);
        runs.tell();
        (Seat { shares: self.clone(), business: business.to_owned(), number }, share)
    }
}

/// The least of two bounds; none is no bound.
fn least(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// A run's place among those of its business; given back when dropped.
struct Seat {
    shares: Arc<FairShares>,
    business: String,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut all = self.shares.lock();
        let Some(runs) = all.get_mut(&self.business) else { return };
        runs.shares.remove(&self.number);
        if runs.shares.is_empty() {
            all.remove(&self.business);
        } else {
            runs.tell();
        }
    }
}

struct Following(AbortHandle);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A handler whose slots are bounded by its share.
struct Shared {
    inner: Arc<dyn Handler>,
    slots: watch::Receiver<Option<u32>>,
    seat: Mutex<Option<Seat>>,
    _following: Following,
}

impl Handler for Shared {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        self.inner.process(call)
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.slots.clone()
    }

    fn answers_at_once(&self) -> bool {
        self.inner.answers_at_once()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.inner.close().await;
            let seat = self.seat.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(seat);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A handler that only has slots.
    struct Slots(watch::Sender<Option<u32>>);

    impl Handler for Slots {
        fn process<'a>(&'a self, _: Call) -> BoxFuture<'a, Reply> {
            Box::pin(std::future::ready(Reply::AllOk))
        }

        fn slots(&self) -> watch::Receiver<Option<u32>> {
            self.0.subscribe()
        }

        fn close(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    struct Node(Arc<FairShares>);

    impl Node {
        fn open(&self, business: &str, limit: u32, own: Option<u32>) -> (Arc<dyn Handler>, Arc<Slots>) {
            let inner = Arc::new(Slots(watch::Sender::new(own)));
            let handler = self.0.wrap(business, NonZeroU32::new(limit), inner.clone(), &Runtime::current());
            (handler, inner)
        }
    }

    async fn until(handler: &Arc<dyn Handler>, wanted: Option<u32>) {
        let mut slots = handler.slots();
        let wait = slots.wait_for(|slots| *slots == wanted);
        tokio::time::timeout(std::time::Duration::from_secs(10), wait)
            .await
            .expect("in time")
            .expect("alive");
    }

    #[tokio::test]
    async fn runs_of_a_business_share_its_limit_and_get_it_back() {
        let node = Node(Arc::default());
        let (one, _) = node.open("push", 10, None);
        assert_eq!(*one.slots().borrow(), Some(10));
        let (two, _) = node.open("push", 10, None);
        let (three, _) = node.open("push", 10, None);
        let (other, _) = node.open("mail", 7, None);
        for run in [&one, &two, &three] {
            until(run, Some(3)).await;
        }
        assert_eq!(*other.slots().borrow(), Some(7), "another business has its own");
        two.close().await;
        until(&one, Some(5)).await;
        drop(three);
        until(&one, Some(10)).await;
        one.close().await;
        assert!(!node.0.lock().contains_key("push"), "nothing stays of runs that closed");
    }

    #[tokio::test]
    async fn a_share_is_at_least_one_and_never_more_than_the_handler_can_take() {
        let node = Node(Arc::default());
        let runs: Vec<_> = (0..5).map(|_| node.open("push", 2, None)).collect();
        until(&runs[0].0, Some(1)).await;
        let (small, own) = node.open("mail", 8, Some(3));
        assert_eq!(*small.slots().borrow(), Some(3));
        own.0.send_replace(Some(0));
        until(&small, Some(0)).await;
        own.0.send_replace(Some(100));
        until(&small, Some(8)).await;
    }

    #[tokio::test]
    async fn a_new_limit_holds_for_runs_that_are_open() {
        let node = Node(Arc::default());
        let (one, _) = node.open("push", 0, None);
        assert_eq!(*one.slots().borrow(), None, "no limit, no bound");
        let (two, _) = node.open("push", 8, None);
        until(&one, Some(4)).await;
        until(&two, Some(4)).await;
    }
}
