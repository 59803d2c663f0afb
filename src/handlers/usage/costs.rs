//! Member `costs` of results in Windrow's own protocol: `{"result":"ok","costs":{"tokens":12}}`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::values::member;
use crate::classify::Pointer;
use crate::wire::unmarked;
use windrow_core::execution::Usage;
use windrow_core::meter::amount::Amount;
use windrow_core::meter::expr::{Expr, Kind, Values};
use windrow_core::meter::metering::Metering;
use windrow_core::meter::meterings::Meterings;
use windrow_core::meter::unit::Unit;

/// Units of the member, by meter; `None` for a meter that is counted in another way.
pub(super) struct Costs(Vec<Option<Expr>>);

impl Costs {
    /// Returns the units that results may name; `None` if there is none.
    pub(super) fn of(meterings: &Meterings) -> Option<Costs> {
        let expr = |(metering, is_named, unit): (&Metering, bool, Unit)| {
            // What operators declared of a named limit is no handler's to say.
            let is_declared = is_named && Metering::find(&metering.cost, &unit).is_some();
            let is_told = !unit.is_built_in()
                && !is_declared
                && !metering.is_price(&unit)
                && Metering::find(&metering.cost_from, &unit).is_none();
            let expr = || Expr::parse(&format!("{{answer./{unit}}}"), Kind::Actual).ok();
            is_told.then(expr).flatten()
        };
        let exprs: Vec<Option<Expr>> = meterings.meters().map(expr).collect();
        exprs.iter().any(Option::is_some).then_some(Costs(exprs))
    }

    /// Adds up the costs that a reply names, for the whole call and in each of its results.
    pub(super) fn read(&self, body: &[u8], result: &Pointer) -> Usage {
        let part = result.find(body).unwrap_or_default();
        let Ok(members) = serde_json::from_slice::<CallCosts<'_>>(part) else {
            return Usage::new();
        };
        let results = members.results.into_iter().flatten();
        let each = results.filter_map(|result| result.costs);
        let all: Vec<&RawValue> = members.costs.into_iter().chain(each).collect();
        self.0
            .iter()
            .map(|expr| {
                let expr = expr.as_ref()?;
                let told = all.iter().filter_map(|costs| expr.cost(&Member(costs)).ok());
                told.reduce(Amount::plus)
            })
            .collect()
    }
}

/// Reader of the costs that the lines of workers name.
pub(crate) struct LineCosts(Costs);

impl LineCosts {
    /// Returns the reader of a run; `None` if no line says anything that is counted.
    pub(crate) fn of(meterings: &Meterings) -> Option<LineCosts> {
        Costs::of(meterings).map(LineCosts)
    }

    /// Returns the costs that the result of an item names.
    pub(crate) fn read(&self, line: &[u8]) -> Usage {
        self.0.read(unmarked(line), &Pointer::default())
    }
}

/// Adds up the use of the items of one call; a meter that none of them names stays unknown.
pub(crate) fn sum(of_items: impl Iterator<Item = Usage>) -> Usage {
    of_items.fold(Usage::new(), |mut sum, used| {
        sum.resize(sum.len().max(used.len()), None);
        for (sum, used) in sum.iter_mut().zip(used) {
            *sum = match (*sum, used) {
                (Some(sum), Some(used)) => Some(sum.plus(used)),
                (sum, used) => sum.or(used),
            };
        }
        sum
    })
}

/// Costs of one result as JSON.
struct Member<'a>(&'a RawValue);

impl Values for Member<'_> {
    fn answer(&self, pointer: &str) -> Option<std::borrow::Cow<'_, str>> {
        member(self.0.get().as_bytes(), pointer)
    }
}

#[derive(Deserialize)]
struct CallCosts<'a> {
    #[serde(borrow)]
    costs: Option<&'a RawValue>,
    #[serde(borrow)]
    results: Option<Vec<ResultCosts<'a>>>,
}

#[derive(Deserialize)]
struct ResultCosts<'a> {
    #[serde(borrow)]
    costs: Option<&'a RawValue>,
}
