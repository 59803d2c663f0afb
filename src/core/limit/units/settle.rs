//! Round of a session on the limits in units of one named limit, with the rows of all live sessions.
//!
//! The caller holds the lock of the limit's row, reads all rows, folds those of sessions that are gone into the ledger
//! ([`entered`]), computes the round ([`settle`]), and writes the returned row and ledger unchanged.

use std::time::Duration;

use super::turn::{turn, whole};
use super::{Dealt, Held, Key, Kind, Ledger, Report, Use};
use crate::limit::allocate::shared;
use crate::limit::demand::Wishes;
use crate::limit::round::{Played, Row, Terms};
use crate::meter::amount::Amount;
use crate::meter::limit::Limit;
use crate::meter::metering::Metering;
use crate::meter::total::is_nearly_used;

/// Bits in which the whole of a pace is counted for its allocation.
const WHOLE_BITS: u32 = 60;
/// Part of what is left of a total that a session is given at a time, as its reciprocal.
const AHEAD_ONE_IN: u128 = 64;
/// Time in which a session pays what it takes over of a debt at once.
const PAYS_IN: Duration = Duration::from_secs(2);

/// Row of a session, ledger and replies after a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// State of the session's row.
    pub row: Vec<Held>,
    /// State that belongs to no live session.
    pub ledger: Vec<Ledger>,
    /// Replies to the session's reports, for the limits that there are.
    pub dealt: Vec<Dealt>,
}

/// Returns the amount in which demand for a pace is counted.
pub fn quantum(whole: Amount) -> Amount {
    Amount((whole.0 >> WHOLE_BITS).max(1))
}

/// Adds the rows of a session that is gone to the ledger: what it may have used counts as unsure, what it owed is owed
/// by the others.
fn fold(ledger: &mut Vec<Ledger>, gone: &[Held]) {
    for row in gone {
        let entry = entry(ledger, &row.key);
        // A row may hold its debt twice for a round, never not at all.
        entry.owed = stored(entry.owed.plus(row.owed).plus(row.inherited.minus(row.applied)));
        if row.key.kind != Kind::Pace {
            entry.spent = stored(entry.spent.plus(row.spent));
            let unknown = row.held.minus(row.used());
            entry.unsure = stored(entry.unsure.plus(row.unsure).plus(unknown));
        }
    }
}

/// Computes a round of a session, with the rows of the other live sessions.
pub fn settle(
    metering: &Metering,
    mut ledger: Vec<Ledger>,
    (own, others): (&[Held], &[&[Held]]),
    reports: &[Report],
    leaves: bool,
) -> Settled {
    let limits = metering.limits.iter();
    let limits: Vec<(Key, &Limit)> = limits
        .filter_map(|limit| Some((Key::of(limit)?, limit)))
        .collect();
    // A limit that was removed keeps its row: it may come back.
    let mut row: Vec<Held> = own
        .iter()
        .filter(|held| is_reported(reports, held))
        .cloned()
        .collect();
    let mut dealt = Vec::new();
    for report in reports {
        let before = find(own, &report.key);
        let rivals: Vec<&Held> = others.iter().filter_map(|rows| find(rows, &report.key)).collect();
        let limit = limits.iter().find(|(key, _)| *key == report.key);
        let limit = limit.map(|(_, limit)| *limit);
        let entry = entry(&mut ledger, &report.key);
        let round = OneRound {
            whole: whole(limit, entry),
            span: match limit {
                Some(Limit::Pace { span, .. }) => Some(*span),
                _ => None,
            },
            base: report.uses.min(before.map_or(Amount::ZERO, |held| held.held)),
            report,
            leaves,
        };
        let (held, reply) = match report.key.kind {
            Kind::Pace => round.pace(before, &rivals, entry),
            Kind::Total | Kind::Allowance => round.total(&rivals, entry),
        };
        row.push(held);
        dealt.extend(limit.map(|_| reply));
    }
    ledger.retain(|entry| !entry.is_empty());
    Settled { row, ledger, dealt }
}

/// Returns the use of the totals and allowances of a limit by all sessions; `gone` are the rows that the ledger doesn't
/// hold yet.
pub fn uses_of(terms: &Terms, rows: &[Row], gone: &[Row]) -> Vec<Use> {
    let mut ledger = entered(terms, rows, gone);
    let of = |(limit, key): (&Limit, Key)| {
        let past = entry(&mut ledger, &key).clone();
        let amount = limit.amount().map_or(Amount::ZERO, |(amount, _)| amount);
        let live: Vec<&Held> = rows.iter().filter_map(|row| find(&row.units, &key)).collect();
        let spent = live.iter().fold(past.spent, |sum, held| sum.plus(held.spent));
        let unsure = live.iter().fold(past.unsure, |sum, held| sum.plus(held.unsure));
        let (spent, unsure) = match &past.turn {
            Some(turn) => turn.of_period(spent, unsure),
            None => (spent, unsure),
        };
        Use {
            limit: limit.to_string(),
            amount,
            spent,
            unsure,
            held: live.iter().map(|held| held.held.minus(held.used())).sum(),
            is_nearly_used: is_nearly_used(spent.plus(unsure), amount),
            next: past.turn.map(|turn| turn.period.end),
        }
    };
    totals(&terms.metering).map(of).collect()
}

/// Returns the totals that a round brought to the share from which people are warned.
pub fn newly_used((terms, rows, gone): (&Terms, &[Row], &[Row]), played: &Played) -> Vec<Use> {
    if totals(&terms.metering).next().is_none() {
        return Vec::new();
    }
    let before = uses_of(terms, rows, gone);
    let after = Terms {
        ledger: played.ledger.clone(),
        ..terms.clone()
    };
    let others = rows.iter().filter(|row| row.session != played.row.session);
    let rows: Vec<Row> = others.chain([&played.row]).cloned().collect();
    let was = |limit: &str| {
        before
            .iter()
            .any(|used| used.limit == limit && used.is_nearly_used)
    };
    let after = uses_of(&after, &rows, &[]).into_iter();
    after
        .filter(|used| used.is_nearly_used && !was(&used.limit))
        .collect()
}

/// Returns the ledger with all that is left of totals, and of allowances in their period, counted as used: a restored
/// database doesn't know what was used since its backup.
pub fn forget(terms: &Terms, rows: &[Row], gone: &[Row]) -> Vec<Ledger> {
    let mut ledger = entered(terms, rows, gone);
    for (limit, key) in totals(&terms.metering) {
        let live = rows.iter().filter_map(|row| find(&row.units, &key));
        let taken: Amount = live.map(Held::takes).sum();
        let entry = entry(&mut ledger, &key);
        let left = whole(Some(limit), entry)
            .minus(entry.spent)
            .minus(entry.unsure)
            .minus(taken);
        entry.unsure = stored(entry.unsure.plus(left));
    }
    ledger
}

/// Returns the ledger with the rows of sessions that are gone, in the periods of now.
pub fn entered(terms: &Terms, rows: &[Row], gone: &[Row]) -> Vec<Ledger> {
    let mut ledger = terms.ledger.clone();
    let all: Vec<&[Held]> = rows.iter().chain(gone).map(|row| row.units.as_slice()).collect();
    turn(&terms.metering, &mut ledger, &all, terms.now);
    gone.iter().for_each(|row| fold(&mut ledger, &row.units));
    ledger
}

/// Returns the totals and allowances of a limit.
fn totals(metering: &Metering) -> impl Iterator<Item = (&Limit, Key)> {
    let keyed = metering
        .limits
        .iter()
        .filter_map(|limit| Some((limit, Key::of(limit)?)));
    keyed.filter(|(_, key)| key.kind != Kind::Pace)
}

/// Round on one limit.
struct OneRound<'a> {
    whole: Amount,
    /// Span of a pace; `None` if the limit was removed.
    span: Option<Duration>,
    /// Bound that the session keeps in any case.
    base: Amount,
    report: &'a Report,
    leaves: bool,
}

impl OneRound<'_> {
    fn pace(&self, before: Option<&Held>, rivals: &[&Held], ledger: &mut Ledger) -> (Held, Dealt) {
        let taken: Amount = rivals.iter().map(|rival| rival.held).sum();
        let target = match self.leaves {
            true => Amount::ZERO,
            false => self.part(rivals),
        };
        let free = self.whole.minus(taken).minus(self.base);
        let held = self.base.plus(target.minus(self.base).min(free));
        let inherited = before.map_or(Amount::ZERO, |held| held.inherited);
        let owes = self.report.owed.plus(inherited.minus(self.report.applied));
        // No more at a time than it pays in two seconds, so that all pay, in proportion to their parts. Nobody pays for
        // a limit that was removed: the debt waits for when it comes back.
        let in_time =
            |span: Duration| held.scaled(Amount(PAYS_IN.as_nanos()), Amount(span.as_nanos().max(1)));
        let pays = self.span.map_or(Amount::ZERO, in_time);
        let takes_over = pays.minus(owes).min(ledger.owed);
        ledger.owed = ledger.owed.minus(takes_over);
        let inherited = inherited.plus(takes_over);
        self.settled(held, target, inherited, None)
    }

    /// Returns its max-min fair part of a pace.
    fn part(&self, rivals: &[&Held]) -> Amount {
        let quantum = quantum(self.whole);
        let own = std::iter::once(&self.report.wishes);
        let wishes: Vec<&Wishes> = own.chain(rivals.iter().map(|rival| &rival.wishes)).collect();
        let whole = u64::try_from(self.whole.0 / quantum.0).unwrap_or(u64::MAX);
        let part = shared(whole, &wishes).first().copied().unwrap_or(0);
        Amount(u128::from(part).saturating_mul(quantum.0))
    }

    fn total(&self, rivals: &[&Held], ledger: &Ledger) -> (Held, Dealt) {
        let report = self.report;
        let used = report.spent.plus(report.unsure);
        let reserved = used.plus(report.out);
        let taken: Amount = rivals.iter().map(|rival| rival.takes()).sum();
        let rest = self.whole.minus(ledger.spent).minus(ledger.unsure).minus(taken);
        let free = rest.minus(self.base.max(used));
        let pool = rest.minus(reserved);
        let needed = reserved.plus(report.least);
        let target = reserved.plus(ahead(pool, report.least));
        let mut held = self.base.plus(target.minus(self.base).min(free));
        let is_in_vain = !report.least.is_zero() && held.min(target) < needed;
        if is_in_vain {
            // A bound that holds no call is worth more to others.
            held = self.base;
        }
        let idle: Amount = rivals.iter().map(|rival| rival.held.minus(rival.used())).sum();
        // An allowance goes on with its next period.
        let is_over = is_in_vain && report.key.kind == Kind::Total;
        let is_full = is_over && idle.is_zero() && report.out.is_zero();
        let target = if is_in_vain { reserved } else { target };
        self.settled(held, target, Amount::ZERO, is_full.then_some(report.least))
    }

    fn settled(
        &self,
        held: Amount,
        target: Amount,
        inherited: Amount,
        full_from: Option<Amount>,
    ) -> (Held, Dealt) {
        let report = self.report;
        let row = Held {
            key: report.key.clone(),
            held: stored(held),
            spent: stored(report.spent),
            unsure: stored(report.unsure),
            owed: stored(report.owed),
            inherited: stored(inherited),
            applied: stored(report.applied),
            wishes: report.wishes.clone(),
        };
        let dealt = Dealt {
            key: report.key.clone(),
            held: row.held,
            target,
            inherited: row.inherited,
            full_from,
        };
        (row, dealt)
    }
}

/// Returns what a session may use beyond what it has reserved: a part of what is left, or two calls, but no more than
/// half; a single call may take all.
fn ahead(pool: Amount, least: Amount) -> Amount {
    if least.is_zero() {
        return Amount::ZERO;
    }
    let wanted = Amount(pool.0 / AHEAD_ONE_IN).max(least.plus(least));
    wanted.min(Amount(pool.0 / 2).max(least)).min(pool)
}

fn is_reported(reports: &[Report], held: &Held) -> bool {
    !reports.iter().any(|report| report.key == held.key)
}

fn find<'a>(rows: &'a [Held], key: &Key) -> Option<&'a Held> {
    rows.iter().find(|held| held.key == *key)
}

pub(super) fn entry<'a>(ledger: &'a mut Vec<Ledger>, key: &Key) -> &'a mut Ledger {
    let at = ledger.iter().position(|entry| entry.key == *key);
    let at = at.unwrap_or_else(|| {
        ledger.push(Ledger {
            key: key.clone(),
            spent: Amount::ZERO,
            unsure: Amount::ZERO,
            owed: Amount::ZERO,
            turn: None,
        });
        ledger.len() - 1
    });
    &mut ledger[at]
}

/// Returns the amount as it is stored: texts of amounts end at [`Amount::MAX`].
fn stored(amount: Amount) -> Amount {
    amount.min(Amount::MAX)
}
