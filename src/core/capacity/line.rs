//! The line of those that wait: who is booked, who is filled in behind one that doesn't fit, and who must wait for whom.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Admission, Booking, Ledger, Load, Obstacle, PASSED_OVER_MAX, Refusal, Request};
use crate::ids::{Moment, ShardId, TaskId};

/// The first of the line that doesn't fit now. The others may be filled in behind it.
struct Head {
    shard: ShardId,
    /// When it fits, as far as the ends of what is booked are known.
    start: Option<Start>,
}

/// The moment at which enough is free for the head.
struct Start {
    at: Moment,
    /// What is free beside it then.
    spare: Load,
}

impl Ledger {
    /// Books whoever fits among all that wait, by priority, then by waiting time. Answers in that order.
    ///
    /// Behind the first one that doesn't fit now, others are booked as long as its own start is no later for them. Where `ends`
    /// (the expected end of each shard that runs) tells that start, they must have ended by then or fit beside it; where
    /// it isn't known, they may pass it for [`PASSED_OVER_MAX`] from the first time. One that never fits blocks nobody.
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

    /// The moment at which so much is free, if what is booked ends as expected. What was filled in ends when it promised:
    /// once that is over, nobody else passes for it.
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

    /// The task that has booked most.
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
