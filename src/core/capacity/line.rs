//! Admission of waiting shards: which are booked, which are backfilled past one that doesn't fit, and which must
//! wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Admission, Booking, Ledger, Load, Obstacle, PASSED_OVER_MAX, Refusal, Request};
use crate::ids::{Moment, ShardId, TaskId};

/// First shard in the line that doesn't fit now. Others may be backfilled past it.
struct Head {
    shard: ShardId,
    /// Time at which it fits; `None` if the known ends of the bookings don't tell.
    start: Option<Start>,
}

/// Time at which enough capacity is free for the head.
struct Start {
    at: Moment,
    /// Capacity left beside the head at that time.
    spare: Load,
}

impl Ledger {
    /// Books all waiting shards that fit, by priority, then by waiting time. Returns the outcomes in that order.
    ///
    /// Past the first one that doesn't fit now, others are booked as long as they don't delay it. If its start
    /// follows from `ends` (the expected end of each running shard), they must have ended by then or fit beside it.
    /// Otherwise they may pass it for [`PASSED_OVER_MAX`] from the first time. A shard that never fits blocks no
    /// other.
    pub fn admit(
        &mut self,
        waiting: &[Request],
        ends: impl FnOnce() -> BTreeMap<ShardId, Moment>,
        now: Moment,
    ) -> Vec<Admission> {
        let mut line: Vec<&Request> = waiting.iter().collect();
        line.sort_by_key(|request| request.rank);
        let present: HashSet<ShardId> = line.iter().map(|request| request.rank.shard).collect();
        self.passed_over_since.retain(|shard, _| present.contains(shard));
        let (mut head, mut holder, mut ends) = (None, None, Some(ends));
        let mut answers = Vec::with_capacity(line.len());
        for request in line {
            let mut outcome = self.admit_one(request, head.as_mut(), now);
            if let Err(refusal) = &mut outcome
                && refusal.obstacle == Obstacle::Full
            {
                let largest = *holder.get_or_insert_with(|| self.largest());
                refusal.holder = largest.filter(|task| *task != request.rank.shard.task);
                if let Some(ends) = ends.take() {
                    head = Some(Head {
                        shard: request.rank.shard,
                        start: self.start_of(refusal.need, &ends(), now),
                    });
                }
            }
            answers.push(Admission {
                shard: request.rank.shard,
                outcome,
            });
        }
        answers
    }

    fn admit_one(
        &mut self,
        request: &Request,
        head: Option<&mut Head>,
        now: Moment,
    ) -> Result<Load, Refusal> {
        let need = self.check(request)?;
        let promised = request.takes.map(|takes| now.plus(takes));
        let passes = head.is_some();
        if let Some(head) = head {
            if !self.may_pass(head, need, promised, now) {
                return Err(self.refusal(need, self.free(), Obstacle::Behind(head.shard)));
            }
            self.passed_over_since.entry(head.shard).or_insert(now);
        }
        self.book(request, need, promised.filter(|_| passes));
        Ok(need)
    }

    fn may_pass(&self, head: &mut Head, need: Load, promised: Option<Moment>, now: Moment) -> bool {
        let Some(start) = &mut head.start else {
            let since = self.passed_over_since.get(&head.shard);
            return since.is_none_or(|since| now.since(*since) < PASSED_OVER_MAX);
        };
        if promised.is_some_and(|end| end <= start.at) {
            return true;
        }
        let fits_beside = need <= start.spare;
        if fits_beside {
            start.spare = start.spare.minus(need);
        }
        fits_beside
    }

    /// Returns the time at which this much is free if all bookings end as expected. A backfilled shard is expected to
    /// end as promised; once that time is over, it lets no further shard pass.
    fn start_of(&self, need: Load, ends: &BTreeMap<ShardId, Moment>, now: Moment) -> Option<Start> {
        let end = |(shard, booking): (&ShardId, &Booking)| {
            let end = booking.promised.or_else(|| ends.get(shard).copied())?;
            Some((end.max(now), booking.load))
        };
        let mut ending: Vec<(Moment, Load)> = self.held.iter().filter_map(end).collect();
        ending.sort_unstable();
        let mut held = self.held_sum;
        for (at, load) in ending {
            held = held.minus(load);
            let free = self.whole().minus(held);
            if free >= need {
                let spare = free.minus(need);
                return Some(Start { at, spare });
            }
        }
        None
    }

    /// Returns the task with the largest booking.
    fn largest(&self) -> Option<TaskId> {
        let mut sums: HashMap<TaskId, Load> = HashMap::new();
        for (shard, booking) in &self.held {
            let sum = sums.entry(shard.task).or_default();
            *sum = sum.plus(booking.load);
        }
        sums.into_iter()
            .max_by_key(|(task, sum)| (*sum, Reverse(*task)))
            .map(|(task, _)| task)
    }
}
