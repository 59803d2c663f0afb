//! Exchange of a run that is under several limits at once: it may send what the tightest of them gives.
//!
//! The run reserves from each in rotation, and asks each for no more than those before it gave, but for at least one
//! item. The limit that gave least is the one that *cuts*; of those that gave nothing, the one that will have
//! something latest. Only that limit is told that the run wants more. The others see the run as satisfied; otherwise
//! they would allocate it a share that it can't use.

use super::local_bucket::{Reserved, Used};
use crate::ids::Moment;

/// Combined reservation of a run under up to `LIMITS` limits.
#[derive(Clone, Debug)]
pub struct Joint<const LIMITS: usize> {
    each: [Option<Reserved>; LIMITS],
    items: u32,
    ask_at: Option<Moment>,
    cut_by: Option<usize>,
}

impl<const LIMITS: usize> Joint<LIMITS> {
    /// Starts the exchange of a run that wants to send up to `want` items.
    pub fn new(want: u32) -> Joint<LIMITS> {
        Joint {
            each: [None; LIMITS],
            items: want,
            ask_at: None,
            cut_by: None,
        }
    }

    /// Returns the number of items that may be sent, by the limits asked so far.
    pub fn items(&self) -> u32 {
        self.items
    }

    /// Returns the number to ask the next limit for: at least one even if nothing may be sent, since that limit may
    /// be the one to wait for.
    pub fn asks(&self) -> u32 {
        if self.cut_by.is_some() {
            self.items.max(1)
        } else {
            self.items
        }
    }

    /// Records the reservation of the limit at index `at`.
    pub fn take(&mut self, at: usize, reserved: Reserved) {
        self.each[at] = Some(reserved);
        let is_later = self.cut_by.is_some() && reserved.items == 0 && reserved.ask_at > self.ask_at;
        if reserved.items < self.items || is_later {
            (self.items, self.ask_at, self.cut_by) = (reserved.items, reserved.ask_at, Some(at));
        }
    }

    /// Returns the limit that keeps the run from having all that it wanted; `None` if none does.
    pub fn cut_by(&self) -> Option<usize> {
        self.cut_by
    }

    /// Returns when to ask again for more; `None` if nothing was cut.
    pub fn ask_at(&self) -> Option<Moment> {
        self.ask_at
    }

    /// Returns the reservation of the limit at index `at` and the use to report to it, or `None` if it wasn't asked.
    pub fn settled(&self, at: usize, used: Used) -> Option<(Reserved, Used)> {
        let wants_more = used.wants_more && self.cut_by == Some(at);
        self.each[at].map(|reserved| (reserved, Used { wants_more, ..used }))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limit::local_bucket::{LocalBucket, SlotNo};
    use crate::limit::{Amount, NANOS_PER_ITEM, Part};

    fn at(millis: u64) -> Moment {
        Moment(millis * 1_000_000)
    }

    fn gave(items: u32, ask_at: u64) -> Reserved {
        Reserved {
            items,
            ask_at: Some(at(ask_at)),
            by_slots: false,
        }
    }

    #[test]
    fn the_least_limit_cuts_and_it_alone_hears_that_more_was_wanted() {
        let mut joint = Joint::<3>::new(10);
        joint.take(0, gave(8, 5));
        assert_eq!((joint.items(), joint.cut_by()), (8, Some(0)));
        joint.take(1, gave(3, 70));
        joint.take(
            2,
            Reserved {
                ask_at: None,
                ..gave(3, 0)
            },
        );
        assert_eq!(
            (joint.items(), joint.cut_by(), joint.ask_at()),
            (3, Some(1), Some(at(70)))
        );
        let used = Used {
            left: 2,
            wants_more: true,
            in_flight: 9,
        };
        let told: Vec<(u32, bool)> = (0..3)
            .filter_map(|limit| joint.settled(limit, used))
            .map(|(reserved, used)| (reserved.items, used.wants_more))
            .collect();
        assert_eq!(
            told,
            [(8, false), (3, true), (3, false)],
            "each gets back what it gave and what was left"
        );
        let in_flight = joint.settled(2, used).map(|(_, used)| used.in_flight);
        assert_eq!(in_flight, Some(9), "calls in flight count everywhere");
        assert_eq!(
            Joint::<1>::new(1).settled(0, used),
            None,
            "who wasn't asked has nothing to hear"
        );
    }

    #[test]
    fn of_limits_that_give_nothing_the_one_that_has_something_last_cuts() {
        let mut joint = Joint::<3>::new(10);
        joint.take(0, gave(0, 5));
        assert_eq!(joint.asks(), 1, "the next one may be what is waited for");
        joint.take(1, gave(0, 70));
        joint.take(
            2,
            Reserved {
                ask_at: None,
                ..gave(1, 0)
            },
        );
        assert_eq!(
            (joint.items(), joint.cut_by(), joint.ask_at()),
            (0, Some(1), Some(at(70)))
        );
        let mut shut = Joint::<1>::new(0);
        assert_eq!(shut.asks(), 0, "who wants nothing asks for nothing");
        shut.take(
            0,
            Reserved {
                ask_at: None,
                ..gave(0, 0)
            },
        );
        assert_eq!(shut.cut_by(), None);
    }

    #[test]
    fn a_run_that_got_all_it_asked_for_or_wants_no_more_is_held_by_nobody() {
        let mut joint = Joint::<2>::new(4);
        joint.take(
            0,
            Reserved {
                ask_at: None,
                ..gave(4, 0)
            },
        );
        joint.take(
            1,
            Reserved {
                ask_at: None,
                ..gave(4, 0)
            },
        );
        let wants = Used {
            left: 4,
            wants_more: true,
            in_flight: 4,
        };
        assert_eq!((joint.cut_by(), joint.ask_at()), (None, None));
        let is_held = |joint: &Joint<2>, used| {
            (0..2)
                .filter_map(|limit| joint.settled(limit, used))
                .any(|(_, used)| used.wants_more)
        };
        assert!(!is_held(&joint, wants));
        joint.take(1, gave(1, 9));
        let content = Used {
            wants_more: false,
            ..wants
        };
        assert!(is_held(&joint, wants) && !is_held(&joint, content));
    }

    /// A part of a rate in items per second, with room for ten at once.
    fn local_bucket(rate: u64) -> LocalBucket {
        let part = Part {
            rate: Amount::of(rate * NANOS_PER_ITEM),
            burst: Amount::of(10),
            slots: Amount::UNBOUNDED,
        };
        LocalBucket::new(part, Duration::from_millis(2), at(0))
    }

    /// Each millisecond every run asks for one item under all its limits; says how many each sent in two seconds.
    fn play(local_buckets: &mut [LocalBucket], runs: &[&[(usize, SlotNo)]]) -> Vec<u32> {
        let mut sent = vec![0; runs.len()];
        for now in (0..2000).map(at) {
            for (run, slots) in runs.iter().enumerate() {
                let mut joint = Joint::<2>::new(1);
                for (place, (local_bucket, no)) in slots.iter().enumerate() {
                    joint.take(
                        place,
                        local_buckets[*local_bucket].reserve(*no, joint.asks(), now),
                    );
                }
                sent[run] += joint.items();
                let used = Used {
                    left: joint.items(),
                    wants_more: joint.items() == 0,
                    in_flight: 0,
                };
                for (place, (local_bucket, no)) in slots.iter().enumerate() {
                    let (reserved, used) = joint.settled(place, used).expect("it was asked");
                    local_buckets[*local_bucket].settle(*no, reserved, used, now);
                }
            }
        }
        sent
    }

    #[test]
    fn a_run_under_two_limits_obeys_the_lower_one_and_leaves_the_rest_of_the_other_to_others() {
        let mut local_buckets = [local_bucket(300), local_bucket(50)];
        let both = [
            (0, local_buckets[0].join(None, 1, at(0))),
            (1, local_buckets[1].join(None, 1, at(0))),
        ];
        let alone = [(0, local_buckets[0].join(None, 1, at(0)))];
        local_buckets
            .iter_mut()
            .for_each(|local_bucket| drop(local_bucket.collect(at(0))));
        let sent = play(&mut local_buckets, &[&both, &alone]);
        assert!((90..=112).contains(&sent[0]), "50/s for two seconds: {sent:?}");
        assert!(
            (470..=512).contains(&sent[1]),
            "what the first doesn't use of 300/s: {sent:?}"
        );
        let wishes = local_buckets
            .each_mut()
            .map(|local_bucket| local_bucket.collect(at(2000)).rates);
        let of = |wishes: &crate::limit::demand::Wishes, rate: u64| wishes.up_to(rate * NANOS_PER_ITEM);
        // Of the wide limit the first run wants little more than the 50/s that it can use, of the narrow one all.
        assert!(
            (1000..1080).contains(&(of(&wishes[0], 100) / NANOS_PER_ITEM)),
            "{wishes:?}"
        );
        assert_eq!(of(&wishes[1], 100) / NANOS_PER_ITEM, 1000, "{wishes:?}");
    }
}
