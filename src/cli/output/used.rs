//! Use of a task's meters, in a few words.

use std::collections::BTreeMap;

use windrow_core::execution::{AllowancePicture, MeterPicture};
use windrow_core::ids::WallMs;
use windrow_core::meter::amount::Amount;
use windrow_core::meter::unit::Unit;
use windrow_words::{amount, share};

/// Formats the use of all meters: `1.2M tokens (of 2M), 0.71 eur; unsure 3.1k tokens`. `None` without meters. From where
/// people are warned on, the share of the total is part of it: `(91 % of 2M)`. An allowance shows the use in the period in
/// force: `5.3k calls (300 of 2k/day)`.
pub(crate) fn used(costs: &[MeterPicture]) -> Option<String> {
    if costs.is_empty() {
        return None;
    }
    let known = costs
        .iter()
        .map(|meter| of_unit(meter.actual, meter) + &of_total(meter) + &of_allowance(meter));
    let unsure = costs.iter().filter(|meter| !meter.unsure.is_zero());
    let unsure: Vec<String> = unsure.map(|meter| of_unit(meter.unsure, meter)).collect();
    let unsure = match unsure.as_slice() {
        [] => String::new(),
        some => format!("; unsure {}", some.join(", ")),
    };
    Some(format!("{}{unsure}", known.collect::<Vec<_>>().join(", ")))
}

/// Formats the use for what the API shows.
pub(crate) fn used_of(costs: Option<&BTreeMap<String, api::TaskCost>>) -> Option<String> {
    used(&read(costs))
}

/// Returns true if so much of a total is used that people are warned.
pub(crate) fn is_nearly_used(costs: Option<&BTreeMap<String, api::TaskCost>>) -> bool {
    costs.is_some_and(|costs| costs.values().any(|cost| cost.nearly_used))
}

/// Reads the use that the API shows; units and amounts that this program can't read are left out.
fn read(costs: Option<&BTreeMap<String, api::TaskCost>>) -> Vec<MeterPicture> {
    let of = |(unit, cost): (&String, &api::TaskCost)| {
        Some(MeterPicture {
            unit: Unit::parse(unit)?,
            actual: Amount::parse(&cost.actual)?,
            unsure: Amount::parse(&cost.unsure)?,
            out: Amount::parse(&cost.out)?,
            total: cost.total.as_deref().and_then(Amount::parse),
            is_nearly_used: cost.nearly_used,
            allowance: cost.allowance.as_ref().and_then(allowance),
            is_sparse: cost.sparse,
        })
    };
    costs.into_iter().flatten().filter_map(of).collect()
}

fn allowance(of: &api::TaskAllowance) -> Option<AllowancePicture> {
    Some(AllowancePicture {
        limit: of.limit.clone(),
        amount: Amount::parse(&of.amount)?,
        used: Amount::parse(&of.used)?,
        next: WallMs::from_rfc3339(&of.next).ok()?,
        is_used_up: of.used_up,
    })
}

/// Rounds an amount of the API; one that this program can't read is returned unchanged.
pub(crate) fn rounded(text: &str) -> String {
    Amount::parse(text).map_or_else(|| text.to_owned(), |parsed| amount(parsed.0))
}

fn of_unit(used: Amount, meter: &MeterPicture) -> String {
    format!("{} {}", amount(used.0), meter.unit)
}

fn of_total(meter: &MeterPicture) -> String {
    match meter.total {
        Some(total) if meter.is_nearly_used && !total.is_zero() => {
            format!(" ({} of {total})", share(meter.used().0 as f64 / total.0 as f64))
        }
        Some(total) => format!(" (of {total})"),
        None => String::new(),
    }
}

fn of_allowance(meter: &MeterPicture) -> String {
    let of = |allowance: &AllowancePicture| format!(" ({} of {})", amount(allowance.used.0), allowance.limit);
    meter.allowance.as_ref().map(of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(actual: &str, unsure: &str, total: Option<&str>) -> api::TaskCost {
        api::TaskCost {
            actual: actual.to_owned(),
            unsure: unsure.to_owned(),
            out: "0".to_owned(),
            total: total.map(str::to_owned),
            nearly_used: false,
            allowance: None,
            sparse: false,
        }
    }

    #[test]
    fn a_line_says_what_is_used_of_which_total_and_what_is_unsure() {
        let mut costs = BTreeMap::from([
            ("eur".to_owned(), cost("0.714", "0", None)),
            ("tokens".to_owned(), cost("1200000", "3100", Some("2000000"))),
        ]);
        assert_eq!(
            used_of(Some(&costs)).as_deref(),
            Some("0.714 eur, 1.2M tokens (of 2M); unsure 3.1k tokens")
        );
        let nearly = api::TaskCost {
            nearly_used: true,
            ..cost("1820000", "0", Some("2000000"))
        };
        costs.insert("tokens".to_owned(), nearly);
        assert_eq!(
            used_of(Some(&costs)).as_deref(),
            Some("0.714 eur, 1.82M tokens (91 % of 2M)")
        );
        assert!(is_nearly_used(Some(&costs)));
        let day = api::TaskAllowance {
            limit: "2k/day".to_owned(),
            amount: "2000".to_owned(),
            used: "300".to_owned(),
            next: "2026-11-30T00:00:00.000Z".to_owned(),
            used_up: false,
        };
        let calls = api::TaskCost {
            allowance: Some(day),
            ..cost("5300", "0", None)
        };
        let calls = BTreeMap::from([("calls".to_owned(), calls)]);
        assert_eq!(
            used_of(Some(&calls)).as_deref(),
            Some("5.3k calls (300 of 2k/day)")
        );
        costs.insert("later".to_owned(), cost("1e3", "0", None));
        assert_eq!(
            read(Some(&costs)).len(),
            2,
            "no amount that this program can read"
        );
        assert_eq!((used_of(None), used(&[])), (None, None));
    }
}
