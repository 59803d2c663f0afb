//! Costs of test calls, as a run would count them.

use windrow_core::execution::{Usage, usage};
use windrow_core::meter::amount::Amount;
use windrow_core::meter::expr::{CostFault, Expr};
use windrow_core::meter::metering::Metering;
use windrow_core::meter::priced::priced;
use windrow_core::meter::row::Row;
use windrow_core::meter::unit::Unit;
use windrow_engine::ports::handling::handler::{Call, Handler, Reply};

/// Meters of a trial, with the expressions of its estimates.
pub(super) struct Costs<'a> {
    metering: &'a Metering,
    estimates: Vec<Option<Expr>>,
}

impl<'a> Costs<'a> {
    /// Returns the costs to show; `None` if nothing is counted.
    pub(super) fn of(metering: &'a Metering) -> Option<Costs<'a>> {
        let meters = metering.meters();
        let estimate = |unit| Metering::find(&metering.cost, unit).cloned();
        (!meters.is_empty()).then(|| Costs {
            metering,
            estimates: meters.iter().map(estimate).collect(),
        })
    }

    /// Computes the estimates of a call.
    pub(super) fn before(&self, call: &Call, handler: &dyn Handler) -> Result<Usage, CostFault> {
        let items = call.items.len().max(1) as u64;
        let request = handler.request_bytes(call).map(|bytes| bytes.div_ceil(items));
        let row = |(index, _)| Row::read(call.rows.data(index)).with_request(request);
        let rows: Vec<Row> = call.items.iter().map(row).collect();
        usage(&self.estimates, &rows)
    }

    /// Formats the costs that the reply says beside the estimates: `costs: 21 tokens (estimate 30), 0.0126 eur`.
    pub(super) fn line(&self, before: Result<Usage, CostFault>, reply: &Reply, items: usize) -> String {
        let before = match before {
            Ok(before) => before,
            Err(fault) => return format!("  costs: {fault}"),
        };
        let (used, place) = match reply {
            Reply::Told(told) => (told.used.as_slice(), told.place.as_ref()),
            _ => (&[][..], None),
        };
        let items = items as u64;
        let actual = priced(self.metering, used, items).into_iter();
        let estimates = priced(self.metering, &before, items).into_iter();
        let costs = actual.zip(estimates);
        let costs: Vec<String> = costs
            .map(|((unit, actual), (_, estimate))| cost(&unit, actual, estimate))
            .collect();
        let place = place.map(|(unit, place)| format!("; {unit} read from {place}"));
        format!("  costs: {}{}", costs.join(", "), place.unwrap_or_default())
    }
}

fn cost(unit: &Unit, actual: Option<Amount>, estimate: Option<Amount>) -> String {
    match (actual, estimate) {
        (Some(actual), Some(estimate)) if actual != estimate => {
            format!("{actual} {unit} (estimate {estimate})")
        }
        (Some(actual), _) => format!("{actual} {unit}"),
        (None, Some(estimate)) => format!("{estimate} {unit} (estimate; the response doesn't say it)"),
        (None, None) => format!("{unit} unknown (the response doesn't say it)"),
    }
}
