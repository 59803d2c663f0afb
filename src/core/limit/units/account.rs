//! Part of one limit in units on this node.

use std::time::Duration;

use super::{Dealt, Key, Kind, Report, call_max};
use crate::ids::Moment;
use crate::limit::demand::Wishes;
use crate::meter::amount::Amount;
use crate::meter::class::Cost;
use crate::meter::limit::Limit;
use crate::meter::owing::Owing;

/// Span of a pace that may be spent at once, as for a task.
const BURST: Duration = Duration::from_millis(100);
/// Smallest burst of a pace of calls or items, over all nodes.
const BURST_CALLS: Amount = Amount::units(4);
/// Smallest room that a call needs.
const LEAST: Amount = Amount(1);
/// Time after which what nobody uses of a total goes back.
const IDLE: Duration = Duration::from_secs(10);

/// Part of one limit, with what the calls of this node used.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) key: Key,
    /// Limit as it is now; `None` if it was removed.
    pub(super) limit: Option<Limit>,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Pace {
        bucket: Owing,
        part: Amount,
        applied: Amount,
    },
    Total(Block),
}

/// Block of a total: a bound on what this session uses in all.
#[derive(Clone, Copy, Debug)]
struct Block {
    bound: Amount,
    spent: Amount,
    unsure: Amount,
    out: Amount,
    /// Time of the last departure.
    used_at: Moment,
    /// Bound at which more is asked for before the usual round.
    due_at: Amount,
    /// Cost from which on no call fits, as the last round said.
    full_from: Option<Amount>,
}

impl Block {
    fn reserved(&self) -> Amount {
        self.spent.plus(self.unsure).plus(self.out)
    }

    fn room(&self) -> Amount {
        self.bound.minus(self.reserved())
    }
}

impl Account {
    /// Creates the account of a limit, of which nothing may be used yet.
    pub(super) fn new(limit: &Limit, now: Moment) -> Option<Account> {
        let key = Key::of(limit)?;
        let state = match limit {
            Limit::Pace { span, .. } => State::Pace {
                bucket: Owing::new(Amount::ZERO, *span, LEAST, now),
                part: Amount::ZERO,
                applied: Amount::ZERO,
            },
            _ => State::Total(Block {
                bound: Amount::ZERO,
                spent: Amount::ZERO,
                unsure: Amount::ZERO,
                out: Amount::ZERO,
                used_at: now,
                due_at: Amount::ZERO,
                full_from: None,
            }),
        };
        Some(Account {
            key,
            limit: Some(limit.clone()),
            state,
        })
    }

    /// Returns the whole amount of the limit.
    pub(super) fn whole(&self) -> Amount {
        let amount = self.limit.as_ref().and_then(Limit::amount);
        amount.map_or(Amount::ZERO, |(amount, _)| amount)
    }

    /// Converts an amount that was used in a span to one of the limit's span.
    pub(super) fn per_span(&self, used: Amount, span: Duration) -> Amount {
        match &self.limit {
            Some(Limit::Pace { span: of, .. }) => {
                used.scaled(Amount(of.as_nanos()), Amount(span.as_nanos().max(1)))
            }
            _ => used,
        }
    }

    /// Returns the amount that the pace earns in a span, rounded up.
    pub(super) fn earned_in(&self, earning: Duration) -> Amount {
        match (&self.limit, &self.state) {
            (Some(Limit::Pace { span, .. }), State::Pace { part, .. }) => {
                part.scaled(Amount(earning.as_nanos()), Amount(span.as_nanos().max(1)))
            }
            _ => Amount::ZERO,
        }
    }

    /// Returns true if the account counts in a pace.
    pub(super) fn is_pace(&self) -> bool {
        self.key.kind == Kind::Pace
    }

    /// Returns which of the estimates counts here.
    pub(super) fn counted(&self, (pace, total): (Amount, Amount)) -> Amount {
        if self.is_pace() { pace } else { total }
    }

    /// Returns the calls of this mean that may leave now, and the time at which more may, if time alone does it.
    pub(super) fn leave(&mut self, mean: Amount, now: Moment) -> (u32, Option<Moment>) {
        match &mut self.state {
            State::Pace { bucket, .. } => {
                let calls = bucket.reserve(u32::MAX, mean, now);
                bucket.release(calls, mean);
                (calls, (calls == 0).then(|| bucket.next_at(mean)).flatten())
            }
            State::Total(block) => {
                let calls = block.room().steps(mean.max(LEAST)).unwrap_or(0);
                (u32::try_from(calls).unwrap_or(u32::MAX), None)
            }
        }
    }

    /// Returns the most that one call may cost.
    pub(super) fn call_max(&self) -> Amount {
        self.limit.as_ref().map_or(Amount::MAX, call_max)
    }

    /// Returns true if a call with this estimate may depart now.
    pub(super) fn fits(&mut self, estimate: Amount, now: Moment) -> bool {
        if self.limit.is_none() {
            return true;
        }
        match &mut self.state {
            State::Pace { bucket, .. } => bucket.reserve(1, Amount::ZERO, now) > 0,
            State::Total(block) => block.room() >= estimate.max(LEAST),
        }
    }

    /// Takes the estimates of a call that departs; returns true if a total should ask for more.
    pub(super) fn take(&mut self, (pace, total): (Amount, Amount), now: Moment) -> bool {
        match &mut self.state {
            State::Pace { bucket, .. } => {
                let has_credit = bucket.take(Amount::ZERO, pace, now);
                debug_assert!(
                    has_credit || self.limit.is_none(),
                    "`fits` was asked at the same moment"
                );
                false
            }
            State::Total(block) => {
                block.out = block.out.plus(total);
                block.used_at = now;
                block.reserved() >= block.due_at
            }
        }
    }

    /// Gives back what a call took that didn't depart after all.
    pub(super) fn give(&mut self, (pace, total): (Amount, Amount), now: Moment) {
        match &mut self.state {
            State::Pace { bucket, .. } => bucket.give(pace, now),
            State::Total(block) => block.out = block.out.minus(total),
        }
    }

    /// Settles a call with its estimates. A single answer counts for no more than [`call_max`].
    pub(super) fn end(&mut self, (pace, total): (Amount, Amount), cost: Cost, now: Moment) {
        let most = self.call_max();
        match &mut self.state {
            State::Pace { bucket, .. } => bucket.true_up(pace, cost.amount().min(most.max(pace)), now),
            State::Total(block) => {
                block.out = block.out.minus(total);
                let most = most.max(total);
                match cost {
                    Cost::Known(amount) => block.spent = block.spent.plus(amount.min(most)),
                    Cost::Unsure(amount) => block.unsure = block.unsure.plus(amount.min(most)),
                }
            }
        }
    }

    /// Forgets that no call fitted: the run that was told so is gone.
    pub(super) fn forget_full(&mut self) {
        if let State::Total(block) = &mut self.state {
            block.full_from = None;
        }
    }

    /// Counts what was out of a run that is gone: nobody knows the end of its calls.
    pub(super) fn lose(&mut self, out: Amount) {
        if let State::Total(block) = &mut self.state {
            block.out = block.out.minus(out);
            block.unsure = block.unsure.plus(out);
        }
    }

    /// Drops what was earned until `now`; what is owed stays.
    pub(super) fn void(&mut self, now: Moment) {
        if let State::Pace { bucket, .. } = &mut self.state {
            bucket.void(now);
        }
    }

    /// Returns true if no call of this cost fits any more, and none is out that could make room.
    pub(super) fn is_full(&self, cost: Amount) -> bool {
        match &self.state {
            State::Pace { .. } => false,
            State::Total(block) => {
                let is_full = block.full_from.is_some_and(|from| cost.max(LEAST) >= from);
                is_full && block.out.is_zero() && block.room() < cost.max(LEAST)
            }
        }
    }

    /// Reports use and demand; from then on the bound of a total is no more than it says. `least` is the cost of the
    /// cheapest call that waits.
    pub(super) fn report(
        &mut self,
        wishes: Wishes,
        least: Option<Amount>,
        leaves: bool,
        now: Moment,
    ) -> Report {
        if leaves {
            self.forget_full();
        }
        let mut report = Report {
            key: self.key.clone(),
            uses: Amount::ZERO,
            spent: Amount::ZERO,
            unsure: Amount::ZERO,
            out: Amount::ZERO,
            owed: Amount::ZERO,
            applied: Amount::ZERO,
            wishes,
            least: Amount::ZERO,
        };
        match &mut self.state {
            State::Pace {
                bucket,
                part,
                applied,
            } => {
                if leaves {
                    *part = Amount::ZERO;
                    bucket.set(Amount::ZERO, Duration::from_secs(1), LEAST, now);
                }
                (report.uses, report.applied, report.owed) = (*part, *applied, bucket.debt());
            }
            State::Total(block) => {
                let is_idle = leaves || (least.is_none() && now.since(block.used_at) >= IDLE);
                if is_idle {
                    block.bound = block.bound.min(block.reserved());
                } else {
                    report.least = least.unwrap_or(LEAST).max(LEAST);
                }
                (report.uses, report.out) = (block.bound, block.out);
                (report.spent, report.unsure) = (block.spent, block.unsure);
            }
        }
        report
    }

    /// Applies what a round dealt. Returns true if more may be used than before.
    pub(super) fn apply(&mut self, dealt: &Dealt, bound: Amount, now: Moment) -> bool {
        let whole = self.whole();
        match (&mut self.state, &self.limit) {
            (
                State::Pace {
                    bucket,
                    part,
                    applied,
                },
                Some(Limit::Pace { amount, span, unit }),
            ) => {
                let grows = bound > *part;
                let of_span = amount.scaled(Amount(BURST.as_nanos()), Amount(span.as_nanos().max(1)));
                let burst = match unit.is_built_in() {
                    true => of_span.max(BURST_CALLS),
                    false => of_span,
                };
                bucket.set(bound, *span, burst.scaled(bound, whole.max(LEAST)), now);
                bucket.inherit(dealt.inherited.minus(*applied));
                (*part, *applied) = (bound, dealt.inherited.max(*applied));
                grows
            }
            (State::Total(block), _) => {
                let grows = bound > block.bound || dealt.full_from != block.full_from;
                block.bound = bound;
                let reserved = block.reserved();
                block.due_at = reserved.plus(Amount(bound.minus(reserved).0 / 2)).max(LEAST);
                block.full_from = dealt.full_from;
                grows
            }
            _ => false,
        }
    }

    /// Returns the bound in force.
    pub(super) fn bound(&self) -> Amount {
        match &self.state {
            State::Pace { part, .. } => *part,
            State::Total(block) => block.bound,
        }
    }
}
