//! Limits in units as they were understood, in one line.

use windrow_core::meter::limit::Limit;
use windrow_core::meter::metering::Metering;

/// Formats the limits: `300 calls/min evenly, 90k tokens/min evenly, 5 eur in all`. `None` without any.
pub(crate) fn limits(metering: &Metering) -> Option<String> {
    let limits: Vec<String> = metering.limits.iter().map(limit).collect();
    (!limits.is_empty()).then(|| limits.join(", "))
}

/// Formats the limits, and the costs in parentheses. `None` if nothing is limited or counted.
pub(crate) fn metering(metering: &Metering) -> Option<String> {
    let costs = [&metering.cost, &metering.cost_from, &metering.price];
    let costs: Vec<String> = costs
        .into_iter()
        .flatten()
        .map(|(unit, expr)| format!("{unit} = {}", expr.text()))
        .collect();
    let costs = (!costs.is_empty()).then(|| costs.join("; "));
    match (limits(metering), costs) {
        (Some(limits), Some(costs)) => Some(format!("{limits} ({costs})")),
        (limits, costs) => limits.or(costs),
    }
}

fn limit(limit: &Limit) -> String {
    let text = limit.to_string();
    match limit {
        Limit::Pace { amount, unit, .. } => {
            let span = text.rsplit('/').next().unwrap_or_default();
            format!("{amount} {unit}/{span} evenly")
        }
        Limit::Total { amount, unit } => format!("{amount} {unit} in all"),
        Limit::AtOnce { amount, unit } => format!("{amount} {unit} at once"),
        Limit::Allowance {
            amount,
            unit,
            period,
            zone,
        } => format!("{amount} {unit}/{period} ({})", zone.unwrap_or_default().name()),
        Limit::Named(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_says_how_it_was_understood() {
        let text = r#"{"limits":["300/min","90k tokens/10s","5 eur","20 at once","2000/day","9 eur/month Europe/Berlin"],"cost":["tokens = 3"],"price":["eur = 0.6*{tokens}/1M"]}"#;
        let told: Metering = serde_json::from_str(text).expect("it is sound");
        let limits = "300 calls/min evenly, 90k tokens/10s evenly, 5 eur in all, 20 calls at once, \
            2k calls/day (UTC), 9 eur/month (Europe/Berlin)";
        assert_eq!(super::limits(&told).as_deref(), Some(limits));
        let whole = format!("{limits} (tokens = 3; eur = 0.6*{{tokens}}/1M)");
        assert_eq!(metering(&told), Some(whole));
        assert_eq!(metering(&Metering::default()), None);
    }
}
