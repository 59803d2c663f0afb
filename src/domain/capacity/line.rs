//! The line of those that wait: who is booked, who is passed over, and who must wait for whom.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Admission, Ledger, Load, Obstacle, PASSED_OVER_MAX, Refusal, Request};
use crate::domain::ids::{Moment, ShardId};

/// One queue of the line: the whole of it, or that of one business.
#[derive(Default)]
struct Queue {
    /// Who did not fit, since the last one that did.
    overtaken: Vec<ShardId>,
    /// Who has been passed over for so long that nobody behind it goes first.
    blocked_by: Option<ShardId>,
}

/// One pass over the line.
#[derive(Default)]
struct Pass {
    all: Queue,
    businesses: HashMap<Arc<str>, Queue>,
}

impl Pass {
    fn blocked_by(&self, request: &Request) -> Option<ShardId> {
        let own = self.businesses.get(&request.business).and_then(|queue| queue.blocked_by);
        self.all.blocked_by.or(own)
    }
}

impl Ledger {
    /// Books whoever fits among all that wait, by priority, then by waiting time. Answers in that order.
    ///
    /// One that doesn't fit now may be overtaken for [`PASSED_OVER_MAX`] from the first time that happens; then
    /// nothing behind it is booked until it fits or no longer waits. One that waits for its business holds back only
    /// tasks of that business. One that never fits blocks nobody.
    pub fn admit(&mut self, waiting: &[Request], now: Moment) -> Vec<Admission> {
        let mut line: Vec<&Request> = waiting.iter().collect();
        line.sort_by_key(|request| (-i64::from(request.priority), request.waiting_since, request.shard));
        let present: HashSet<ShardId> = line.iter().map(|request| request.shard).collect();
        self.passed_over_since.retain(|shard, _| present.contains(shard));
        let mut pass = Pass::default();
        let mut answers = Vec::with_capacity(line.len());
        for request in line {
            let outcome = self.admit_one(request, &pass);
            self.note(request, &outcome, &mut pass, now);
            answers.push(Admission { shard: request.shard, outcome });
        }
        answers
    }

    fn admit_one(&mut self, request: &Request, pass: &Pass) -> Result<Load, Refusal> {
        match pass.blocked_by(request) {
            Some(first) => {
                Err(self.refusal(self.need_of(request.rate), self.free(), Obstacle::Behind(first)))
            }
            None => self.reserve(request),
        }
    }

    fn note(&mut self, request: &Request, outcome: &Result<Load, Refusal>, pass: &mut Pass, now: Moment) {
        let obstacle = outcome.as_ref().err().map(|refusal| refusal.obstacle);
        let queue = match obstacle {
            None => return self.pass_over(request, pass, now),
            Some(Obstacle::Full) => &mut pass.all,
            Some(Obstacle::BusinessFull) => pass.businesses.entry(request.business.clone()).or_default(),
            Some(_) => return,
        };
        queue.overtaken.push(request.shard);
        queue.blocked_by = self.has_waited_enough(request.shard, now).then_some(request.shard);
    }

    /// Somebody was booked: who stands before it in the line, or in its business's, was passed over.
    fn pass_over(&mut self, request: &Request, pass: &mut Pass, now: Moment) {
        let own = pass.businesses.get_mut(&request.business).map(|queue| &mut queue.overtaken);
        for shard in pass.all.overtaken.drain(..).chain(own.into_iter().flat_map(|own| own.drain(..))) {
            self.passed_over_since.entry(shard).or_insert(now);
        }
    }

    fn has_waited_enough(&self, shard: ShardId, now: Moment) -> bool {
        self.passed_over_since.get(&shard).is_some_and(|since| now.since(*since) >= PASSED_OVER_MAX)
    }
}
