//! Use of the meters of a run as people see it, and the limit that holds its calls back.

use serde::{Deserialize, Serialize};

use super::Charges;
use super::account::Meter;
use super::budget::Budget;
use super::saved::{MeterSaved, Saved};
use crate::ids::WallMs;
use crate::meter::amount::Amount;
use crate::meter::metering::{HeldBy, Metering};
use crate::meter::unit::Unit;
use crate::zone;

/// Use of a meter so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeterPicture {
    /// Unit of the amounts.
    pub unit: Unit,
    /// Use that is certain.
    pub actual: Amount,
    /// Use that calls may have had.
    pub unsure: Amount,
    /// Estimates of the calls that are out.
    pub out: Amount,
    /// Total of the unit, if one is limited.
    pub total: Option<Amount>,
    /// True if so much of the total is used that people are warned.
    pub is_nearly_used: bool,
    /// Allowance of the unit, if there is one.
    #[serde(default)]
    pub allowance: Option<AllowancePicture>,
    /// True if more than 1 % of the successful answers don't say the use.
    #[serde(default)]
    pub is_sparse: bool,
}

/// Use of an allowance in the period in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowancePicture {
    /// Limit as people write it.
    pub limit: String,
    /// Amount that a period allows.
    pub amount: Amount,
    /// Use in the period, certain or not.
    pub used: Amount,
    /// Time at which the next period begins.
    pub next: WallMs,
    /// True if nothing more is sent in this period.
    pub is_used_up: bool,
}

impl AllowancePicture {
    pub(super) fn of(budget: &Budget) -> Option<AllowancePicture> {
        let limit = budget.limit.as_ref()?;
        let (amount, _) = limit.amount()?;
        let (_, next) = budget.next_period()?;
        let counts = budget.counts();
        Some(AllowancePicture {
            limit: limit.to_string(),
            amount,
            used: counts.spent().plus(counts.unsure()),
            next,
            is_used_up: budget.is_closed(),
        })
    }
}

impl MeterPicture {
    /// Returns the use that counts: what is certain, and what calls may have had.
    pub fn used(&self) -> Amount {
        self.actual.plus(self.unsure)
    }

    /// Merges the use of the shards of a task, by unit, in the order in which units come.
    pub fn sum(parts: impl IntoIterator<Item = MeterPicture>) -> Vec<MeterPicture> {
        let mut sums: Vec<MeterPicture> = Vec::new();
        for part in parts {
            match sums.iter_mut().find(|sum| sum.unit == part.unit) {
                Some(sum) => sum.add(&part),
                None => sums.push(part),
            }
        }
        sums
    }

    fn add(&mut self, part: &MeterPicture) {
        self.actual = self.actual.plus(part.actual);
        self.unsure = self.unsure.plus(part.unsure);
        self.out = self.out.plus(part.out);
        self.total = self.total.max(part.total);
        self.is_nearly_used |= part.is_nearly_used;
        self.is_sparse |= part.is_sparse;
        if self.allowance.is_none() {
            self.allowance.clone_from(&part.allowance);
        }
    }
}

/// Meter or account that allowed the fewest calls, by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Meter whose total holds no more calls.
    Total(usize),
    /// Meter whose cost isn't known yet.
    Learning(usize),
    /// Meter whose allowance holds no more calls in this period, or not before a checkpoint.
    Allowance(usize),
    Account(usize),
    /// Meter of which the service says too little is left.
    Window(usize),
}

impl Charges {
    /// Returns the use so far, for people.
    pub(in crate::execution) fn picture(&self) -> Vec<MeterPicture> {
        self.own().iter().map(Meter::picture).collect()
    }

    /// Returns, once, a unit of which so many answers don't say the use that people are to be alerted.
    pub(in crate::execution) fn alert(&mut self) -> Option<Unit> {
        let sparse = self
            .meters
            .iter()
            .find(|meter| meter.is_sparse() && !self.has_alerted);
        let unit = sparse.map(|meter| meter.unit.clone());
        self.has_alerted |= unit.is_some();
        unit
    }

    /// Returns the limit that allowed the fewest calls when they were last asked for.
    pub(in crate::execution) fn held_by(&self) -> Option<HeldBy> {
        Some(match self.held? {
            Held::Total(at) => HeldBy::Limit(self.meters.get(at)?.total.limit.as_ref()?.to_string()),
            Held::Allowance(at) => {
                let budget = self.meters.get(at)?.allowance.as_ref()?;
                let limit = budget.limit.as_ref()?.to_string();
                match budget.next_period().filter(|_| budget.is_closed()) {
                    Some((calendar, next)) => HeldBy::Allowance {
                        limit,
                        next: zone::shown(next, calendar.zone),
                    },
                    None => HeldBy::Limit(limit),
                }
            }
            Held::Window(at) => HeldBy::Headers(self.meters.get(at)?.unit.clone()),
            Held::Learning(at) => HeldBy::Learning(self.meters.get(at)?.unit.clone()),
            Held::Account(at) => HeldBy::Limit(self.accounts.get(at)?.text().to_owned()),
        })
    }
}

impl Saved {
    /// Returns the use from which the next run goes on: what the last one may have spent since counts as unsure.
    pub fn picture(&self, metering: &Metering) -> Vec<MeterPicture> {
        let wall = |meter: &MeterSaved| meter.allowance.as_ref().map(|saved| saved.period.start);
        // By the time of the stored period, which is in force until a run sees a later one.
        let wall = self.0.iter().filter_map(wall).max().unwrap_or_default();
        let mut pictures: Vec<MeterPicture> = Meter::all(metering, self, wall)
            .iter()
            .map(Meter::picture)
            .collect();
        for picture in &mut pictures {
            let saved = self.of(&picture.unit).and_then(|saved| saved.allowance.as_ref());
            picture.allowance = picture.allowance.take().filter(|_| saved.is_some());
        }
        pictures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::charges::Departure;
    use crate::execution::types::{Now, Restored};
    use crate::ids::Moment;
    use crate::meter::class::End;

    const NOW: Now = at(1_000_000_000);
    /// Time at which the buckets of paces are full.
    const LATER: Now = at(5_000_000_000);

    const fn at(moment: u64) -> Now {
        Now {
            moment: Moment(moment),
            wall: WallMs(0),
        }
    }

    fn metering(limits: &[&str], cost: &[&str]) -> Metering {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Metering::parse(&texts(limits), &texts(cost), &[], &[]).expect("a metering")
    }

    fn limit(text: &str) -> Option<HeldBy> {
        Some(HeldBy::Limit(text.to_owned()))
    }

    fn tokens(spent: u64, unsure: u64, may_spend: u64) -> Saved {
        Saved(vec![MeterSaved {
            unit: "tokens".to_owned(),
            spent: Amount::units(spent),
            unsure: Amount::units(unsure),
            may_spend: Amount::units(may_spend),
            ..MeterSaved::default()
        }])
    }

    #[test]
    fn saved_use_is_shown_as_the_next_run_counts_it() {
        let metering = metering(&["100 tokens", "9/min"], &["tokens = 1"]);
        let pictures = tokens(70, 5, 7).picture(&metering);
        let used = pictures.iter().map(|meter| {
            let amounts = [meter.actual, meter.unsure, meter.used()].map(|amount| amount.to_string());
            (meter.unit.as_str(), amounts, meter.is_nearly_used)
        });
        let texts = |texts: [&str; 3]| texts.map(str::to_owned);
        assert_eq!(
            used.collect::<Vec<_>>(),
            [
                ("calls", texts(["0", "0", "0"]), false),
                ("tokens", texts(["70", "12", "82"]), true),
            ]
        );
        assert_eq!(pictures[1].total, Some(Amount::units(100)));
    }

    #[test]
    fn a_run_that_ended_in_order_leaves_nothing_unsure_but_the_calls_that_are_out() {
        let metering = metering(&["6400 calls"], &[]);
        let mut charges = Charges::new(&metering, &Restored::default(), NOW);
        assert_eq!(
            charges.draft(1, false).0[0].may_spend,
            Amount::units(100),
            "a death counts it"
        );
        charges.on_stored(1);
        let (departure, answered) = charges.depart(Vec::new(), 1, NOW);
        assert_eq!(departure, Departure::Go);
        assert_eq!(
            charges.depart(Vec::new(), 1, NOW).0,
            Departure::Go,
            "it is cut off"
        );
        charges.end(&answered, End::Succeeded, &Vec::new(), true, NOW.moment);
        let saved = charges.draft(2, true);
        assert_eq!(charges.depart(Vec::new(), 1, NOW).0, Departure::Back);
        charges.on_stored(2);
        assert_eq!(
            charges.depart(Vec::new(), 1, NOW).0,
            Departure::Back,
            "nothing departs after it"
        );
        let calls = &saved.picture(&metering)[0];
        assert_eq!((calls.actual, calls.unsure), (Amount::ONE, Amount::ONE));
    }

    #[test]
    fn the_use_of_shards_adds_up_by_unit() {
        let metering = metering(&["100 tokens"], &["tokens = 1"]);
        let one = tokens(10, 1, 0).picture(&metering);
        let other = tokens(80, 2, 0).picture(&metering);
        let sums = MeterPicture::sum(one.into_iter().chain(other));
        assert_eq!(sums.len(), 1);
        assert_eq!(sums[0].used(), Amount::units(93));
        assert!(sums[0].is_nearly_used, "one of them is");
        assert_eq!(sums[0].total, Some(Amount::units(100)));
    }

    #[test]
    fn the_limit_that_allows_the_fewest_calls_holds() {
        let metering = metering(&["6000 calls/min", "2 at once"], &[]);
        let mut charges = Charges::new(&metering, &Restored::default(), NOW);
        assert_eq!(charges.held_by(), None, "nothing was asked for");
        assert_eq!(charges.leave(NOW).calls, 0, "the bucket is empty");
        assert_eq!(charges.held_by(), limit("6k/min"));
        assert_eq!(charges.leave(LATER).calls, 2);
        assert_eq!(charges.held_by(), limit("2 at once"));
        while charges.leave(LATER).calls > 0 {
            let (departure, charge) = charges.depart(Vec::new(), 1, LATER);
            assert_eq!(departure, Departure::Go);
            charges.end(&charge, End::Succeeded, &Vec::new(), true, LATER.moment);
        }
        assert_eq!(charges.held_by(), limit("6k/min"));
    }

    #[test]
    fn a_call_that_goes_back_is_held_by_the_limit_that_sent_it_back() {
        let metering = metering(&["10 tokens at once"], &["tokens = {t:number}"]);
        let mut charges = Charges::new(&metering, &Restored::default(), NOW);
        let seven = || vec![Some(Amount::units(7))];
        assert_eq!(charges.depart(seven(), 1, NOW).0, Departure::Go);
        assert_eq!(charges.depart(seven(), 1, NOW).0, Departure::Back);
        assert_eq!(charges.held_by(), limit("10 tokens at once"));
    }

    #[test]
    fn few_calls_are_out_until_answers_say_what_they_cost() {
        let metering = metering(&["90k tokens/min"], &[]);
        let mut charges = Charges::new(&metering, &Restored::default(), NOW);
        charges.leave(LATER);
        let unit = Unit::parse("tokens").expect("a unit");
        assert_eq!(charges.held_by(), Some(HeldBy::Learning(unit)));
    }
}
