//! The line of those that wait: who is booked, who is passed over, and who must wait for whom.

use std::collections::HashSet;

use super::{Admission, Ledger, Load, Obstacle, PASSED_OVER_MAX, Refusal, Request};
use crate::ids::{Moment, ShardId};

#[derive(Default)]
struct Pass {
    /// Who did not fit, since the last one that did.
    overtaken: Vec<ShardId>,
    /// Who has been passed over for so long that nobody behind it goes first.
    blocked_by: Option<ShardId>,
}

impl Ledger {
    /// Books whoever fits among all that wait, by priority, then by waiting time. Answers in that order.
    ///
    /// One that doesn't fit now may be overtaken for [`PASSED_OVER_MAX`] from the first time that happens; then
    /// nothing behind it is booked until it fits or no longer waits. One that never fits blocks nobody.
    pub fn admit(&mut self, waiting: &[Request], now: Moment) -> Vec<Admission> {
        let mut line: Vec<&Request> = waiting.iter().collect();
        line.sort_by_key(|request| (-i64::from(request.priority), request.waiting_since, request.shard));
        let present: HashSet<ShardId> = line.iter().map(|request| request.shard).collect();
        self.passed_over_since.retain(|shard, _| present.contains(shard));
        let mut pass = Pass::default();
        let mut answers = Vec::with_capacity(line.len());
        for request in line {
            let outcome = self.admit_one(request, &pass);
            self.note(request.shard, &outcome, &mut pass, now);
            answers.push(Admission {
                shard: request.shard,
                outcome,
            });
        }
        answers
    }

    fn admit_one(&mut self, request: &Request, pass: &Pass) -> Result<Load, Refusal> {
        match pass.blocked_by {
            Some(first) => {
                Err(self.refusal(self.need_of(request.rate), self.free(), Obstacle::Behind(first)))
            }
            None => self.reserve(request),
        }
    }

    fn note(&mut self, shard: ShardId, outcome: &Result<Load, Refusal>, pass: &mut Pass, now: Moment) {
        match outcome.as_ref().err().map(|refusal| refusal.obstacle) {
            None => self.pass_over(pass, now),
            Some(Obstacle::Full) => {
                pass.overtaken.push(shard);
                pass.blocked_by = self.has_waited_enough(shard, now).then_some(shard);
            }
            Some(_) => {}
        }
    }

    /// Somebody was booked: who stands before it in the line was passed over.
    fn pass_over(&mut self, pass: &mut Pass, now: Moment) {
        for shard in pass.overtaken.drain(..) {
            self.passed_over_since.entry(shard).or_insert(now);
        }
    }

    fn has_waited_enough(&self, shard: ShardId, now: Moment) -> bool {
        self.passed_over_since
            .get(&shard)
            .is_some_and(|since| now.since(*since) >= PASSED_OVER_MAX)
    }
}
