//! Shared capacity with a bound per caller, for connections, bodies, uploads and streams.
//!
//! A caller that has used up its share is refused, so that something is left for the others. Nothing waits here.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::http::problem::{Problem, Slug};

/// Reason why no capacity is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The caller has used up its own share.
    Share,
    /// All capacity is in use.
    All,
}

impl Full {
    /// Returns the problem to report; `what` names the resource in the plural.
    pub(crate) fn problem(self, what: &str) -> Problem {
        match self {
            Full::Share => Problem::new(
                Slug::TooManyRequests,
                format!("you have used up your share of the node's {what}"),
            ),
            Full::All => Problem::new(Slug::Overloaded, format!("the node's {what} are all in use")),
        }
    }
}

/// Capacity that is shared out by caller.
#[derive(Debug)]
pub(crate) struct Shares<K> {
    most: u64,
    share: u64,
    taken: Mutex<Sum<K>>,
}

#[derive(Debug)]
struct Sum<K> {
    all: u64,
    of: HashMap<K, u64>,
}

impl<K: Clone + Eq + Hash> Shares<K> {
    /// Creates a capacity of `most` in total, of which each caller may hold `share`.
    pub(crate) fn new(most: u64, share: u64) -> Arc<Shares<K>> {
        Arc::new(Shares {
            most,
            share,
            taken: Mutex::new(Sum {
                all: 0,
                of: HashMap::new(),
            }),
        })
    }

    /// Takes an amount that is returned when the value is dropped. With `unbounded`, the caller may take all that is
    /// left.
    ///
    /// # Errors
    /// If the amount isn't available; nothing is taken then.
    pub(crate) fn take(self: &Arc<Self>, who: K, amount: u64, unbounded: bool) -> Result<Share<K>, Full> {
        let share = if unbounded { self.most } else { self.share };
        let mut taken = Share {
            from: self.clone(),
            who,
            amount: 0,
            share,
        };
        taken.more(amount).map(|()| taken)
    }

    /// Returns the amount in use.
    pub(crate) fn taken(&self) -> u64 {
        self.lock().all
    }

    fn lock(&self) -> MutexGuard<'_, Sum<K>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Amount held by a caller, returned on drop.
#[derive(Debug)]
pub(crate) struct Share<K: Clone + Eq + Hash> {
    from: Arc<Shares<K>>,
    who: K,
    amount: u64,
    share: u64,
}

impl<K: Clone + Eq + Hash> Share<K> {
    /// Takes more.
    ///
    /// # Errors
    /// If the amount isn't available; the amount held before stays.
    pub(crate) fn more(&mut self, amount: u64) -> Result<(), Full> {
        let mut sum = self.from.lock();
        let own = sum.of.get(&self.who).copied().unwrap_or(0).saturating_add(amount);
        let all = sum.all.saturating_add(amount);
        match (own > self.share, all > self.from.most) {
            (true, _) => Err(Full::Share),
            (false, true) => Err(Full::All),
            (false, false) => {
                sum.all = all;
                sum.of.insert(self.who.clone(), own);
                self.amount += amount;
                Ok(())
            }
        }
    }
}

impl<K: Clone + Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut sum = self.from.lock();
        sum.all -= self.amount;
        let left = sum.of.get(&self.who).map_or(0, |own| own - self.amount);
        // Remove callers that hold nothing: names come from outside, so the table would grow forever.
        if left == 0 {
            sum.of.remove(&self.who);
        } else {
            sum.of.insert(self.who.clone(), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_has_more_than_a_share_and_all_not_more_than_there_is() {
        let shares = Shares::new(10, 4);
        let mut ann = shares.take("ann", 3, false).expect("free");
        assert_eq!(ann.more(2), Err(Full::Share));
        assert_eq!(ann.more(1), Ok(()));
        assert_eq!(shares.take("ann", 1, false).expect_err("her share"), Full::Share);
        let bob = shares.take("bob", 4, false).expect("his share");
        assert_eq!(shares.take("cat", 3, false).expect_err("two are left"), Full::All);
        assert_eq!(shares.taken(), 8);
        drop(bob);
        let proxy = shares.take("proxy", 6, true).expect("all that is left");
        drop((ann, proxy));
        assert_eq!(shares.taken(), 0);
        assert!(shares.lock().of.is_empty(), "nobody is remembered");
        assert!(shares.take("bob", 4, false).is_ok());
    }
}
