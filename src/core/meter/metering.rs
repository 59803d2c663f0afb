//! Limits in units of a task, and what its calls cost in them, as people write both.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use windrow_words::{Message, meter as say};

use super::expr::{self, Expr, Kind};
use super::limit::Limit;
use super::unit::Unit;

/// Maximum number of units beside the built-in ones.
pub const UNITS_MAX: usize = 4;
/// Maximum number of limits.
pub const LIMITS_MAX: usize = 8;
/// Unit that is looked for in the usual places of answers if nothing says what calls cost in it.
pub const TOKENS: &str = "tokens";

/// Limits in units, with the expressions that say what a call costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metering {
    /// Paces, allowances, totals and amounts at once; no named limits.
    pub limits: Vec<Limit>,
    /// Costs before a call, by unit.
    pub cost: Vec<(Unit, Expr)>,
    /// Costs after a call, by unit.
    pub cost_from: Vec<(Unit, Expr)>,
    /// Prices of other units.
    pub price: Vec<(Unit, Expr)>,
}

/// Texts of a [`Metering`].
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Texts {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cost: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cost_from: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    price: Vec<String>,
}

/// Error for texts that together are no metering.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct MeteringError(pub Message);

impl Metering {
    /// Returns true if nothing is limited or counted.
    pub fn is_empty(&self) -> bool {
        *self == Metering::default()
    }

    /// Parses the texts of limits and expressions, and checks that they fit together.
    ///
    /// # Errors
    /// Quotes the text that is wrong, and says which rule it breaks.
    pub fn parse(
        limits: &[String],
        cost: &[String],
        cost_from: &[String],
        price: &[String],
    ) -> Result<Metering, MeteringError> {
        let limit = |text: &String| {
            text.parse::<Limit>()
                .map_err(|error| MeteringError(error.message()))
        };
        let metering = Metering {
            limits: limits.iter().map(limit).collect::<Result<_, _>>()?,
            cost: expressions(cost, Kind::Estimate)?,
            cost_from: expressions(cost_from, Kind::Actual)?,
            price: expressions(price, Kind::Price)?,
        };
        metering.check()?;
        Ok(metering)
    }

    /// Returns the units that are counted, each once: those of expressions, of limits and of prices, without the
    /// built-in ones.
    pub fn units(&self) -> BTreeSet<&Unit> {
        let limited = self.limits.iter().filter_map(Limit::amount).map(|(_, unit)| unit);
        let named = [&self.cost, &self.cost_from, &self.price];
        let named = named.into_iter().flatten().map(|(unit, _)| unit);
        let priced = self.price.iter().flat_map(|(_, price)| priced(price));
        let all = limited.chain(named).chain(priced);
        all.filter(|unit| !unit.is_built_in()).collect()
    }

    /// Returns the units of all meters in their order: calls and items if a limit or a price names them, units of their
    /// own, prices.
    pub fn meters(&self) -> Vec<Unit> {
        let is_priced = |unit: &Unit| {
            self.price
                .iter()
                .any(|(_, price)| priced(price).any(|of| of == unit))
        };
        let built_in = [Unit::calls(), Unit::items()].into_iter();
        let built_in = built_in.filter(|unit| self.is_limited(unit) || is_priced(unit));
        let (prices, used): (Vec<&Unit>, Vec<&Unit>) =
            self.units().into_iter().partition(|unit| self.is_price(unit));
        built_in.chain(used.into_iter().chain(prices).cloned()).collect()
    }

    /// Returns the expression of a unit, if there is one.
    pub fn find<'a>(of: &'a [(Unit, Expr)], unit: &Unit) -> Option<&'a Expr> {
        of.iter().find(|(named, _)| named == unit).map(|(_, expr)| expr)
    }

    /// Returns true if a limit holds the unit back, or a unit that has a price made of it.
    pub fn is_limited(&self, unit: &Unit) -> bool {
        let has_limit = |unit: &Unit| {
            let mut amounts = self.limits.iter().filter_map(Limit::amount);
            amounts.any(|(_, of)| of == unit)
        };
        let is_part = |(of, price): &(Unit, Expr)| has_limit(of) && priced(price).any(|part| part == unit);
        has_limit(unit) || self.price.iter().any(is_part)
    }

    /// Returns true if answers are to say what calls cost in the unit; where only an estimate is given, nothing else
    /// is to be known.
    pub fn wants_actual(&self, unit: &Unit) -> bool {
        Metering::find(&self.cost_from, unit).is_some() || Metering::find(&self.cost, unit).is_none()
    }

    /// Returns true if nothing says what calls cost in the unit, and answers have usual places for it.
    pub fn is_usual(&self, unit: &Unit) -> bool {
        let named = [&self.cost, &self.cost_from, &self.price];
        let is_named = named.into_iter().any(|of| Metering::find(of, unit).is_some());
        unit.as_str() == TOKENS && !is_named
    }

    /// Returns true if a price says what the unit costs.
    pub fn is_price(&self, unit: &Unit) -> bool {
        Metering::find(&self.price, unit).is_some()
    }

    fn check(&self) -> Result<(), MeteringError> {
        let fail = |message| Err(MeteringError(message));
        if self.limits.len() > LIMITS_MAX {
            return fail(say::many_limits(LIMITS_MAX as u64));
        }
        if self.units().len() > UNITS_MAX {
            return fail(say::many_units(UNITS_MAX as u64));
        }
        for limit in &self.limits {
            if let Limit::Named(name) = limit {
                return fail(say::named_here(name));
            }
        }
        self.check_twice()?;
        self.check_prices()?;
        Ok(())
    }

    /// Returns a unit of which only the results of a handler could say what a call costs: no text does, and responses have
    /// no usual place for it.
    pub fn unsaid(&self) -> Option<&Unit> {
        let named = [&self.cost, &self.cost_from, &self.price];
        let is_said = |unit: &Unit| {
            let mut named = named.into_iter();
            unit.as_str() == TOKENS || named.any(|of| Metering::find(of, unit).is_some())
        };
        self.units().into_iter().find(|unit| !is_said(unit))
    }

    /// A unit has one pace, one allowance, one total and one amount at once.
    fn check_twice(&self) -> Result<(), MeteringError> {
        let kind = |limit: &Limit| {
            (
                std::mem::discriminant(limit),
                limit.amount().map(|(_, unit)| unit.clone()),
            )
        };
        for (at, limit) in self.limits.iter().enumerate() {
            if self.limits[..at].iter().any(|before| kind(before) == kind(limit)) {
                return Err(MeteringError(say::limited_twice(limit.to_string())));
            }
        }
        Ok(())
    }

    /// A price counts other units, which are counted themselves.
    fn check_prices(&self) -> Result<(), MeteringError> {
        for (unit, price) in &self.price {
            if Metering::find(&self.cost_from, unit)
                .or_else(|| Metering::find(&self.cost, unit))
                .is_some()
            {
                return Err(MeteringError(say::priced_twice(unit.as_str())));
            }
            for of in priced(price) {
                let is_counted = of.as_str() == TOKENS
                    || Metering::find(&self.cost_from, of)
                        .or_else(|| Metering::find(&self.cost, of))
                        .is_some();
                if !is_counted && !of.is_built_in() {
                    return Err(MeteringError(say::price_of_nothing(unit.as_str(), of.as_str())));
                }
            }
        }
        Ok(())
    }

    fn texts(&self) -> Texts {
        let of = |list: &[(Unit, Expr)]| {
            list.iter()
                .map(|(unit, expr)| format!("{unit} = {}", expr.text()))
                .collect()
        };
        Texts {
            limits: self.limits.iter().map(Limit::to_string).collect(),
            cost: of(&self.cost),
            cost_from: of(&self.cost_from),
            price: of(&self.price),
        }
    }
}

/// Returns the units that a price is made of.
fn priced(price: &Expr) -> impl Iterator<Item = &Unit> {
    price.sources().filter_map(|source| match source {
        expr::Source::Meter(unit) => Some(unit),
        _ => None,
    })
}

fn expressions(texts: &[String], kind: Kind) -> Result<Vec<(Unit, Expr)>, MeteringError> {
    let mut found: Vec<(Unit, Expr)> = Vec::new();
    for text in texts {
        let (unit, expr) = expr::parse(text, kind).map_err(|error| MeteringError(error.message()))?;
        if Metering::find(&found, &unit).is_some() {
            return Err(MeteringError(say::given_twice(unit.as_str())));
        }
        found.push((unit, expr));
    }
    Ok(found)
}

impl fmt::Display for Metering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits: Vec<String> = self.limits.iter().map(Limit::to_string).collect();
        f.write_str(&limits.join(", "))
    }
}

impl Serialize for Metering {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.texts().serialize(to)
    }
}

impl<'de> Deserialize<'de> for Metering {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Metering, D::Error> {
        let texts = Texts::deserialize(from)?;
        Metering::parse(&texts.limits, &texts.cost, &texts.cost_from, &texts.price)
            .map_err(serde::de::Error::custom)
    }
}

/// Reason for which limits in units hold calls back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldBy {
    /// Limit that allows no more calls, as people write it.
    Limit(String),
    /// Allowance that is used up, and the beginning of its next period by the clocks of its zone.
    Allowance {
        /// Limit as people write it.
        limit: String,
        /// Time with its zone.
        next: String,
    },
    /// Unit of which the service has too little left, as the headers of its answers say.
    Headers(Unit),
    /// Unit whose cost the first answers have yet to say; until then few calls are out.
    Learning(Unit),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metering(json: &str) -> Result<Metering, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_reads_back() {
        let text = r#"{"limits":["300/min","90k tokens/s","5 eur","20 at once"],"cost":["tokens = {prompt:bytes}/4 + 300"],"cost_from":["tokens = {answer./usage/total_tokens}"],"price":["eur = 0.6*{tokens}/1M"]}"#;
        let read = metering(text).expect("it is sound");
        assert_eq!(serde_json::to_string(&read).expect("it can be written"), text);
        assert_eq!(read.units().len(), 2);
        assert!(metering("{}").is_ok_and(|none| none.is_empty()));
    }

    #[test]
    fn a_unit_that_no_text_says_is_left_to_the_results_of_a_handler() {
        let unsaid = |text| metering(text).expect("it is sound").unsaid().map(Unit::to_string);
        assert_eq!(
            unsaid(r#"{"limits":["5 eur","9 tokens"]}"#).as_deref(),
            Some("eur")
        );
        assert_eq!(unsaid(r#"{"limits":["5 eur"],"cost":["eur = 1"]}"#), None);
    }

    #[test]
    fn a_price_counts_the_units_that_it_is_made_of() {
        let text = r#"{"limits":["5 eur"],"price":["eur = 0.6*{tokens}/1M + 0.01*{calls}"]}"#;
        let metering = metering(text).expect("it is sound");
        let units: Vec<String> = metering.meters().iter().map(Unit::to_string).collect();
        assert_eq!(units, ["calls", "tokens", "eur"]);
        for unit in metering.meters() {
            assert!(metering.is_limited(&unit), "{unit}");
            assert_eq!(metering.is_usual(&unit), unit.as_str() == TOKENS, "{unit}");
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused_with_the_rule_that_it_breaks() {
        for (text, word) in [
            (r#"{"limits":["openai"]}"#, "openai"),
            (r#"{"limits":["2000/day","100/hour"]}"#, "100/hour"),
            (r#"{"limits":["1 a","1 b","1 c","1 d","1 e"]}"#, "4"),
            (r#"{"cost":["tokens = 1","tokens = 2"]}"#, "tokens"),
            (r#"{"price":["eur = {sheep}"]}"#, "sheep"),
            (r#"{"cost":["eur = 1"],"price":["eur = {tokens}"]}"#, "eur"),
            (r#"{"limit":["1/s"]}"#, "limit"),
        ] {
            let error = metering(text).expect_err(text);
            assert!(error.contains(word), "{error}");
        }
        assert!(
            metering(r#"{"limits":["90k tokens/min"]}"#).is_ok(),
            "its usual places are known"
        );
    }
}
