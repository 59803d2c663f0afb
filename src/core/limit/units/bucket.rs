//! This node's part of the limits in units of one named limit, and the runs that draw from it.
//!
//! A run asks how many calls may leave, at their expected cost ([`Units::leave`]); each call takes its own estimates at
//! its departure ([`Units::take`]), and its cost when it ends ([`Units::end`]). A call takes from all limits or from none.
//! Among runs that want something, the one that used least goes first, measured in the limit's unit.

use std::collections::BTreeMap;
use std::time::Duration;

use super::account::Account;
use super::call::{Departing, Estimates, Leave, Taken};
use super::run::{Run, Use, demand};
use super::{Dealt, Key, Report};
use crate::ids::Moment;
use crate::limit::WEIGHT_MAX;
use crate::limit::local_bucket::SlotNo;
use crate::meter::amount::Amount;
use crate::meter::class::Cost;
use crate::meter::limit::Limit;
use crate::meter::metering::Metering;

/// Maximum lead of a run over others, as a span of the pace.
const AHEAD: Duration = Duration::from_millis(5);
/// Maximum lag that a run may catch up, as a span of the pace.
const BEHIND_MAX: Duration = Duration::from_secs(1);
/// Grace beyond the announced time for a run that wants more.
const LATENESS: Duration = Duration::from_millis(20);
/// Time after which a run that waits for a round asks again.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// Limits in units of one named limit on this node.
#[derive(Clone, Debug, Default)]
pub struct Units {
    accounts: Vec<Account>,
    runs: BTreeMap<SlotNo, Run>,
    reported_at: Moment,
}

impl Units {
    /// Returns true if no limit was ever in force.
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Adds a run with the meters of the limit as it knows them. Of a limit that it is the first to know nothing may be
    /// used before a round.
    pub fn join(&mut self, no: SlotNo, metering: &Metering, weight: u32, now: Moment) {
        for limit in &metering.limits {
            if Key::of(limit).is_some_and(|key| self.account(&key).is_none()) {
                self.accounts.extend(Account::new(limit, now));
            }
        }
        let run = Run {
            meters: metering.meters(),
            expected: Vec::new(),
            weight: u128::from(weight.clamp(1, WEIGHT_MAX)),
            uses: BTreeMap::new(),
            cut_by: None,
            wants_more: true,
        };
        if self.runs.is_empty() {
            self.accounts.iter_mut().for_each(Account::forget_full);
        }
        self.runs.insert(no, run);
    }

    /// Removes a run; what its calls that are out may have cost counts as unsure.
    pub fn leave_run(&mut self, no: SlotNo) {
        let Some(run) = self.runs.remove(&no) else { return };
        for (key, used) in run.uses {
            if let Some(account) = self.accounts.iter_mut().find(|account| account.key == key) {
                account.lose(used.out);
            }
        }
    }

    /// Returns the calls of a run that may leave now.
    pub fn leave(&mut self, no: SlotNo, now: Moment) -> Leave {
        let mut leave = Leave {
            calls: u32::MAX,
            until: None,
        };
        let Some(mut run) = self.runs.remove(&no) else {
            return leave;
        };
        run.cut_by = None;
        for at in 0..self.accounts.len() {
            let Some(meter) = run.meter(&self.accounts[at].key.unit) else {
                continue;
            };
            if self.accounts[at].limit.is_none() {
                continue;
            }
            let (calls, until) = self.leave_of(at, &mut run, meter, now);
            if calls == 0 {
                let until = until.unwrap_or_else(|| now.plus(ASK_AGAIN));
                leave.until = leave.until.max(Some(until));
            }
            if calls < leave.calls {
                leave.calls = calls;
                run.cut_by = Some(self.accounts[at].key.clone());
            }
        }
        self.runs.insert(no, run);
        leave
    }

    fn leave_of(&mut self, at: usize, run: &mut Run, meter: usize, now: Moment) -> (u32, Option<Moment>) {
        let key = self.accounts[at].key.clone();
        let mut used = run.uses.get(&key).copied().unwrap_or_default();
        let mean = run.expected(meter).max(used.asked);
        let mean = mean.min(self.accounts[at].call_max());
        let (calls, until) = self.accounts[at].leave(mean, now);
        if calls == 0 && !self.accounts[at].is_pace() {
            used.waiting = mean.max(Amount(1));
        }
        let allowed = self.allowed(&key, (run, &mut used), mean, now);
        run.uses.insert(key, used);
        (calls.min(allowed), until)
    }

    /// Returns the calls of this mean that a run may take without getting ahead of one that wants something too.
    fn allowed(&self, key: &Key, (run, used): (&Run, &mut Use), mean: Amount, now: Moment) -> u32 {
        let account = self.account(key).filter(|account| account.is_pace());
        let uses = self.runs.values().filter_map(|rival| rival.uses.get(key));
        let served = uses
            .filter(|rival| rival.hungry_until > now)
            .map(|rival| rival.served);
        let span = served.fold(None, |span: Option<(u128, u128)>, served| {
            let (least, most) = span.unwrap_or((served, served));
            Some((least.min(served), most.max(served)))
        });
        let (Some((least, most)), Some(account)) = (span, account) else {
            return u32::MAX;
        };
        let behind = run.weighed(account.earned_in(BEHIND_MAX).max(mean));
        let floor = match used.hungry_until > now {
            true => most.saturating_sub(behind),
            false => least,
        };
        used.served = used.served.max(floor);
        let ahead = run.weighed(account.earned_in(AHEAD).max(mean)).max(1);
        let room = least.saturating_add(ahead).saturating_sub(used.served);
        match room.checked_div(run.weighed(mean)) {
            _ if room == 0 => 0,
            Some(calls) => u32::try_from(calls.max(1)).unwrap_or(u32::MAX),
            None => u32::MAX,
        }
    }

    /// Takes the estimates of a call that is about to depart, from all limits or from none. They are lowered to what was
    /// taken.
    pub fn take(&mut self, no: SlotNo, mut call: Departing<'_>, now: Moment) -> Taken {
        let Some(mut run) = self.runs.remove(&no) else {
            return Taken::No(false);
        };
        let taken = self.take_of(&mut run, &mut call, now);
        self.runs.insert(no, run);
        taken
    }

    fn take_of(&mut self, run: &mut Run, call: &mut Departing<'_>, now: Moment) -> Taken {
        for account in &self.accounts {
            let Some(meter) = run.meter(&account.key.unit) else {
                continue;
            };
            if call.own(meter) > account.call_max() {
                return Taken::TooLarge(text(account.limit.as_ref()));
            }
            // Others that cost too much must not keep a call back that may cost less.
            call.lower(meter, account.call_max());
        }
        let estimates = call.estimates();
        for account in &mut self.accounts {
            let Some(meter) = run.meter(&account.key.unit) else {
                continue;
            };
            let amount = account.counted(estimates.at(meter));
            if account.fits(amount, now) {
                continue;
            }
            if !account.is_pace() {
                let used = run.uses.entry(account.key.clone()).or_default();
                used.asked = amount.max(Amount(1));
            }
            run.wants_more = true;
            run.cut_by = Some(account.key.clone());
            return Taken::No(!account.is_pace());
        }
        let mut is_due = false;
        for account in &mut self.accounts {
            let Some(meter) = run.meter(&account.key.unit) else {
                continue;
            };
            let (pace, total) = estimates.at(meter);
            is_due |= account.take((pace, total), now);
            let amount = account.counted((pace, total));
            let served = run.weighed(amount);
            let used = run.uses.entry(account.key.clone()).or_default();
            used.served = used.served.saturating_add(served);
            used.taken = used.taken.plus(amount);
            used.out = used.out.plus(total);
            (used.waiting, used.asked) = (Amount::ZERO, Amount::ZERO);
        }
        Taken::Yes(is_due)
    }

    /// Undoes [`Units::take`] for a call that another limit kept from departing.
    pub fn give(&mut self, no: SlotNo, estimates: Estimates<'_>, now: Moment) {
        self.settle_call(no, estimates, |account, estimates, _| {
            account.give(estimates, now)
        });
        let Some(run) = self.runs.get_mut(&no) else { return };
        for account in &self.accounts {
            let Some(meter) = run.meter(&account.key.unit) else {
                continue;
            };
            let amount = account.counted(estimates.at(meter));
            let served = run.weighed(amount);
            let used = run.uses.entry(account.key.clone()).or_default();
            used.served = used.served.saturating_sub(served);
            used.taken = used.taken.minus(amount);
        }
    }

    /// Settles a call that ended, with its costs and the cost to expect of the next one, by meter.
    pub fn end(
        &mut self,
        no: SlotNo,
        estimates: Estimates<'_>,
        (costs, expected): (&[Cost], &[Amount]),
        now: Moment,
    ) {
        self.settle_call(no, estimates, |account, estimates, meter| {
            let cost = costs.get(meter).copied().unwrap_or(Cost::FREE);
            account.end(estimates, cost, now);
        });
        if let Some(run) = self.runs.get_mut(&no) {
            run.expected = expected.to_vec();
        }
    }

    fn settle_call(
        &mut self,
        no: SlotNo,
        estimates: Estimates<'_>,
        mut settle: impl FnMut(&mut Account, (Amount, Amount), usize),
    ) {
        let Some(run) = self.runs.get_mut(&no) else { return };
        for account in &mut self.accounts {
            let Some(meter) = run.meter(&account.key.unit) else {
                continue;
            };
            settle(account, estimates.at(meter), meter);
            let used = run.uses.entry(account.key.clone()).or_default();
            used.out = used.out.minus(estimates.at(meter).1);
        }
    }

    /// Notes whether a run wants more after an exchange, and until when it asks again.
    pub fn see(&mut self, no: SlotNo, wants_more: bool, ask_at: Option<Moment>, now: Moment) {
        let Some(run) = self.runs.get_mut(&no) else { return };
        run.wants_more = wants_more;
        let cut_by = run.cut_by.clone().filter(|_| wants_more);
        for (key, used) in &mut run.uses {
            if cut_by.as_ref() == Some(key) {
                used.cut += 1;
                used.hungry_until = ask_at.unwrap_or(now).max(now).plus(LATENESS);
            } else {
                used.content += 1;
                used.hungry_until = Moment(0);
            }
            if !wants_more {
                used.waiting = Amount::ZERO;
            }
        }
    }

    /// Returns the limit that holds a run back, as people write it.
    pub fn held_by(&self, no: SlotNo) -> Option<String> {
        let key = self.runs.get(&no)?.cut_by.as_ref()?;
        Some(text(self.account(key)?.limit.as_ref()))
    }

    /// Returns the total that holds no further call of a run, whatever the others give back.
    pub fn used_up(&self, no: SlotNo) -> Option<String> {
        let run = self.runs.get(&no)?;
        let used = run.uses.get(run.cut_by.as_ref()?)?;
        let account = self.account(run.cut_by.as_ref()?)?;
        let is_full = !used.needs().is_zero() && account.is_full(used.needs());
        is_full.then(|| text(account.limit.as_ref()))
    }

    /// Reports use and demand of all limits for a round; from then on no more than the report says may be used.
    pub fn report(&mut self, leaves: bool, now: Moment) -> Vec<Report> {
        let span = now.since(self.reported_at);
        self.reported_at = now;
        let runs = &mut self.runs;
        let report = |account: &mut Account| {
            let (wishes, least) = demand(account, runs, span, now);
            account.report(wishes, least, leaves, now)
        };
        self.accounts.iter_mut().map(report).collect()
    }

    /// Sets the limits as they are now.
    pub fn set_limits(&mut self, metering: &Metering, now: Moment) {
        for account in &mut self.accounts {
            let is_same = |limit: &&Limit| Key::of(limit).is_some_and(|key| key == account.key);
            account.limit = metering.limits.iter().find(is_same).cloned();
        }
        for limit in &metering.limits {
            if Key::of(limit).is_some_and(|key| self.account(&key).is_none()) {
                self.accounts.extend(Account::new(limit, now));
            }
        }
    }

    /// Applies what a round dealt; `bound` is what may be used of each reply. Returns true if more may be used than before.
    pub fn apply(&mut self, dealt: &[Dealt], bound: impl Fn(&Dealt) -> Amount, now: Moment) -> bool {
        let mut grows = false;
        for reply in dealt {
            if let Some(account) = self.accounts.iter_mut().find(|account| account.key == reply.key) {
                grows |= account.apply(reply, bound(reply), now);
            }
        }
        grows
    }

    /// Returns the bound in force of a limit.
    pub fn bound(&self, key: &Key) -> Amount {
        self.account(key).map_or(Amount::ZERO, Account::bound)
    }

    /// Drops what was earned, because lease validity was lost.
    pub fn void(&mut self, now: Moment) {
        self.accounts.iter_mut().for_each(|account| account.void(now));
    }

    fn account(&self, key: &Key) -> Option<&Account> {
        self.accounts.iter().find(|account| account.key == *key)
    }
}

fn text(limit: Option<&Limit>) -> String {
    limit.map(Limit::to_string).unwrap_or_default()
}
