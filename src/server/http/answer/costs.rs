//! Use of the meters of a task.

use std::collections::BTreeMap;

use super::Of;
use windrow_core::execution::{AllowancePicture, MeterPicture};
use windrow_core::meter::amount::Amount;

/// Converts the use of all meters, by unit; `None` if there is none.
pub fn show_costs(costs: &[MeterPicture]) -> Option<BTreeMap<String, api::TaskCost>> {
    let costs = costs
        .iter()
        .map(|meter| (meter.unit.to_string(), api::TaskCost::of(meter)));
    let costs: BTreeMap<String, api::TaskCost> = costs.collect();
    (!costs.is_empty()).then_some(costs)
}

impl Of<&MeterPicture> for api::TaskCost {
    fn of(meter: &MeterPicture) -> Self {
        api::TaskCost {
            actual: meter.actual.decimal(),
            unsure: meter.unsure.decimal(),
            out: meter.out.decimal(),
            total: meter.total.map(Amount::decimal),
            nearly_used: meter.is_nearly_used,
            allowance: meter.allowance.as_ref().map(api::TaskAllowance::of),
        }
    }
}

impl Of<&AllowancePicture> for api::TaskAllowance {
    fn of(allowance: &AllowancePicture) -> Self {
        api::TaskAllowance {
            limit: allowance.limit.clone(),
            amount: allowance.amount.decimal(),
            used: allowance.used.decimal(),
            next: allowance.next.to_rfc3339(),
            used_up: allowance.is_used_up,
        }
    }
}
