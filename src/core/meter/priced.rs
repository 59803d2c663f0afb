//! Costs of one call in all meters of a task, with those that a price makes of others.

use super::amount::Amount;
use super::expr::Values;
use super::metering::Metering;
use super::unit::Unit;

/// Returns the cost of a call of so many items by unit, in the order of [`Metering::meters`], in which `used` is too;
/// `None` where nothing says it.
pub fn priced(metering: &Metering, used: &[Option<Amount>], items: u64) -> Vec<(Unit, Option<Amount>)> {
    let mut costs: Vec<(Unit, Option<Amount>)> = Vec::new();
    for (at, unit) in metering.meters().into_iter().enumerate() {
        let cost = match Metering::find(&metering.price, &unit) {
            Some(price) => price.cost(&Known(&costs)).ok(),
            None if unit.is_calls() => Some(Amount::ONE),
            None if unit.is_built_in() => Some(Amount::units(items)),
            None => used.get(at).copied().flatten(),
        };
        costs.push((unit, cost));
    }
    costs
}

/// Meters that come before a price.
struct Known<'a>(&'a [(Unit, Option<Amount>)]);

impl Values for Known<'_> {
    fn meter(&self, unit: &Unit) -> Option<Amount> {
        self.0.iter().find(|(of, _)| of == unit)?.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_made_of_what_was_read_and_unknown_without_it() {
        let text = r#"{"limits":["5 eur"],"price":["eur = 0.5*{tokens} + 0.25*{calls}"]}"#;
        let metering = serde_json::from_str(text).expect("a metering");
        let texts = |used: &[Option<Amount>]| -> Vec<String> {
            let costs = priced(&metering, used, 1).into_iter();
            costs
                .map(|(unit, cost)| {
                    format!(
                        "{} {unit}",
                        cost.map_or_else(|| "?".to_owned(), |cost| cost.to_string())
                    )
                })
                .collect()
        };
        assert_eq!(
            texts(&[None, Some(Amount::units(4))]),
            ["1 calls", "4 tokens", "2.25 eur"]
        );
        assert_eq!(texts(&[]), ["1 calls", "? tokens", "? eur"]);
    }
}
