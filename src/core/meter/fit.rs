//! Comparison of a task's limits with its first items, before any of them is called.

use super::amount::Amount;
use super::expr::{CostFault, Expr, Source, Values};
use super::limit::Limit;
use super::metering::Metering;
use super::unit::Unit;

/// Reason why none of some calls can be sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Misfit {
    /// Each of them costs more than a limit ever allows.
    TooLarge {
        /// Limit that is too low.
        limit: Limit,
        /// Smallest cost among them, in the limit's unit.
        least: Amount,
    },
    /// The cost of none of them can be computed.
    NoValue {
        /// Unit of the cost.
        unit: Unit,
        /// Reason for the first of them.
        fault: CostFault,
    },
}

/// Returns the reason why none of these calls of one item each can be sent.
pub fn misfit<V: Values>(metering: &Metering, calls: &[V]) -> Option<Misfit> {
    if calls.is_empty() {
        return None;
    }
    no_value(metering, calls).or_else(|| too_large(metering, calls))
}

fn no_value<V: Values>(metering: &Metering, calls: &[V]) -> Option<Misfit> {
    // A request is known only when it is made.
    let is_of_row = |cost: &Expr| !cost.sources().any(|source| *source == Source::Request);
    let costs = metering.cost.iter().filter(|(_, cost)| is_of_row(cost));
    costs.into_iter().find_map(|(unit, cost)| {
        let mut faults = calls.iter().map(|call| cost.cost(call).err());
        let first = faults.next().flatten()?;
        faults.all(|fault| fault.is_some()).then(|| Misfit::NoValue {
            unit: unit.clone(),
            fault: first,
        })
    })
}

fn too_large<V: Values>(metering: &Metering, calls: &[V]) -> Option<Misfit> {
    metering.limits.iter().find_map(|limit| {
        let (_, unit) = limit.amount()?;
        let costs = calls.iter().map(|call| Call { metering, call }.cost(unit));
        let least = costs.collect::<Option<Vec<Amount>>>()?.into_iter().min()?;
        limit.is_too_large(least).then(|| Misfit::TooLarge {
            limit: limit.clone(),
            least,
        })
    })
}

/// Call whose meters are the values of a price.
struct Call<'a, V> {
    metering: &'a Metering,
    call: &'a V,
}

impl<V: Values> Call<'_, V> {
    /// Returns the cost before the call; `None` if nothing says it.
    fn cost(&self, unit: &Unit) -> Option<Amount> {
        if unit.is_built_in() {
            return Some(Amount::ONE);
        }
        match Metering::find(&self.metering.price, unit) {
            Some(price) => price.cost(self).ok(),
            None => Metering::find(&self.metering.cost, unit)?.cost(self.call).ok(),
        }
    }
}

impl<V: Values> Values for Call<'_, V> {
    fn meter(&self, unit: &Unit) -> Option<Amount> {
        self.cost(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::Row;
    use super::*;

    fn found(metering: &str, rows: &[&str]) -> Option<String> {
        let metering: Metering = serde_json::from_str(metering).expect("it is sound");
        let rows: Vec<Row> = rows.iter().map(|row| Row::read(Some(row))).collect();
        misfit(&metering, &rows).map(|misfit| match misfit {
            Misfit::TooLarge { limit, least } => format!("{least} > {limit}"),
            Misfit::NoValue { unit, fault } => format!("{unit}: {fault}"),
        })
    }

    #[test]
    fn limits_that_no_call_fits_are_named_with_the_smallest_cost() {
        let tokens = r#"{"limits":["100 tokens"],"cost":["tokens = {n:number}"]}"#;
        assert_eq!(
            found(tokens, &[r#"{"n":300}"#, r#"{"n":200}"#]).as_deref(),
            Some("200 > 100 tokens")
        );
        assert_eq!(found(tokens, &[r#"{"n":300}"#, r#"{"n":100}"#]), None, "one fits");
        assert_eq!(found(tokens, &[]), None);
        let money = r#"{"limits":["1 eur"],"cost":["tokens = {n:number}"],"price":["eur = 0.5*{tokens}"]}"#;
        assert_eq!(found(money, &[r#"{"n":3}"#]).as_deref(), Some("1.5 > 1 eur"));
        assert_eq!(found(money, &[r#"{"n":2}"#]), None);
    }

    #[test]
    fn costs_that_no_row_has_the_values_of_are_named() {
        let tokens = r#"{"cost":["tokens = {n:number}"]}"#;
        let named = found(tokens, &[r#"{"m":1}"#, "{}"]).expect("no row has it");
        assert!(named.starts_with("tokens: ") && named.contains('n'), "{named}");
        assert_eq!(found(tokens, &[r#"{"m":1}"#, r#"{"n":1}"#]), None);
    }

    #[test]
    fn costs_that_only_a_request_says_fit() {
        let of = r#"{"limits":["1 tokens"],"cost":["tokens = {request:bytes} + {n:number}"]}"#;
        assert_eq!(found(of, &[r#"{"n":9}"#, "{}"]), None);
    }

    #[test]
    fn costs_that_only_answers_say_fit() {
        let from = r#"{"limits":["1 tokens"],"cost_from":["tokens = {answer./n}"]}"#;
        assert_eq!(found(from, &["{}"]), None);
    }
}
