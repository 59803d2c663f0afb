//! Amounts of a unit, exact to 10⁻⁹, and their written form: `5`, `0.5`, `90k`, `1.5M`.

use std::fmt;
use std::iter::Sum;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use windrow_words::meter as say;

/// Parts of a unit that are counted.
pub const PARTS: u128 = 1_000_000_000;
/// Decimal places of a written amount.
const DECIMALS: usize = 9;
/// Suffixes of a written amount, with their powers of ten.
const SUFFIXES: [(&str, usize); 3] = [("", 0), ("k", 3), ("M", 6)];

/// Amount of a unit, in 10⁻⁹ of it. Sums saturate far beyond what calls can cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Amount(pub u128);

impl Amount {
    /// Amount of nothing, with which sums begin.
    pub const ZERO: Amount = Amount(0);
    /// One unit, which is the cost of a call in calls.
    pub const ONE: Amount = Amount(PARTS);
    /// Largest amount that a text or the cost of a call may have: 10¹⁵ units.
    pub const MAX: Amount = Amount(1_000_000_000_000_000 * PARTS);

    /// Creates the amount of so many whole units.
    pub const fn units(units: u64) -> Amount {
        Amount(units as u128 * PARTS)
    }

    /// Returns true if there is nothing.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the sum, saturating.
    #[must_use]
    pub fn plus(self, other: Amount) -> Amount {
        Amount(self.0.saturating_add(other.0))
    }

    /// Returns what is left after `other` is taken away; nothing if it is more.
    #[must_use]
    pub fn minus(self, other: Amount) -> Amount {
        Amount(self.0.saturating_sub(other.0))
    }

    /// Returns `self × by ÷ of`, rounded up, saturating; `self` if `of` is nothing. Exact unless amounts near
    /// [`Amount::MAX`] meet; then the ratio is rounded first.
    #[must_use]
    pub fn scaled(self, by: Amount, of: Amount) -> Amount {
        let (mut by, mut of) = (by.0, of.0);
        if of == 0 {
            return self;
        }
        if (self.0 % of).checked_mul(by).is_none() {
            let wide = u128::BITS - by.max(of).leading_zeros();
            by >>= wide.saturating_sub(64);
            of = (of >> wide.saturating_sub(64)).max(1);
        }
        // Both parts of the sum fit: the rest is less than `of`.
        let rest = (self.0 % of).saturating_mul(by).div_ceil(of);
        Amount((self.0 / of).saturating_mul(by).saturating_add(rest))
    }

    /// Returns the whole part in `step`s, rounded down; `None` for steps of nothing.
    pub fn steps(self, step: Amount) -> Option<u128> {
        self.0.checked_div(step.0)
    }

    /// Parses digits with up to nine decimal places, `_` between digits for readability, and `k` or `M` behind them.
    /// `None` for anything else, and for more than [`Amount::MAX`].
    pub fn parse(text: &str) -> Option<Amount> {
        let (digits, power) = SUFFIXES
            .into_iter()
            .rev()
            .find_map(|(suffix, power)| Some((text.strip_suffix(suffix)?, power)))?;
        let (whole, decimals) = match digits.split_once('.') {
            Some((whole, decimals)) => (whole, Some(decimals)),
            None => (digits, None),
        };
        if !is_number(whole) || !decimals.is_none_or(is_number) {
            return None;
        }
        let decimals = decimals.unwrap_or("").replace('_', "");
        let decimals = decimals.trim_end_matches('0');
        let zeros = (DECIMALS + power).checked_sub(decimals.len())?;
        let digits = format!("{}{decimals}{:0<zeros$}", whole.replace('_', ""), "");
        let amount = digits.parse().ok().map(Amount)?;
        (amount <= Amount::MAX).then_some(amount)
    }

    /// Returns the exact text without a suffix, for programs: `90000`, `0.5`.
    pub fn decimal(self) -> String {
        self.text("", 0)
    }

    fn text(self, suffix: &str, power: usize) -> String {
        let places = DECIMALS + power;
        let digits = format!("{:0>width$}", self.0, width = places + 1);
        let (whole, decimals) = digits.split_at(digits.len() - places);
        match decimals.trim_end_matches('0') {
            "" => format!("{whole}{suffix}"),
            decimals => format!("{whole}.{decimals}{suffix}"),
        }
    }
}

/// Returns true for digits, optionally with `_` between them.
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && !text.ends_with('_')
        && text.chars().all(|c| c.is_ascii_digit() || c == '_')
}

/// Writes the shortest exact text, without a suffix where two are as short.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = SUFFIXES.map(|(suffix, power)| self.text(suffix, power));
        let shortest = texts.iter().min_by_key(|text| text.len());
        f.write_str(shortest.map_or("", String::as_str))
    }
}

/// Writes at most [`Amount::MAX`], since no more is read: a sum of absurd costs must not make a checkpoint unreadable.
impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self.min(&Amount::MAX))
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Amount, D::Error> {
        let text = String::deserialize(from)?;
        Amount::parse(&text).ok_or_else(|| serde::de::Error::custom(say::limit_amount("k", "M")))
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Amount>>(amounts: I) -> Amount {
        amounts.fold(Amount::ZERO, Amount::plus)
    }
}

/// Credit of an amount, in 10⁻⁹ of a unit; below zero while something is owed. Saturating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Credit(pub i128);

impl Credit {
    /// Returns the credit with an amount added.
    #[must_use]
    pub fn plus(self, amount: Amount) -> Credit {
        Credit(self.0.saturating_add_unsigned(amount.0))
    }

    /// Returns the credit with an amount taken from it.
    #[must_use]
    pub fn minus(self, amount: Amount) -> Credit {
        Credit(self.0.saturating_sub_unsigned(amount.0))
    }

    /// Returns the credit, but no more than `cap`.
    #[must_use]
    pub fn at_most(self, cap: Amount) -> Credit {
        Credit(self.0.min(i128::try_from(cap.0).unwrap_or(i128::MAX)))
    }

    /// Returns what is there; nothing if something is owed.
    pub fn there(self) -> Amount {
        Amount(u128::try_from(self.0).unwrap_or(0))
    }

    /// Returns what is owed; nothing if something is there.
    pub fn owed(self) -> Amount {
        Amount(if self.0 < 0 { self.0.unsigned_abs() } else { 0 })
    }

    /// Returns what is missing to `amount`.
    pub fn missing_to(self, amount: Amount) -> Amount {
        amount.minus(self.there()).plus(self.owed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sums_beyond_the_largest_amount_read_back_as_the_largest() {
        let text = serde_json::to_string(&Amount(2 * Amount::MAX.0)).expect("written");
        assert_eq!(serde_json::from_str::<Amount>(&text).expect("read"), Amount::MAX);
    }

    #[test]
    fn amounts_are_read_as_people_write_them() {
        for (text, parts) in [
            ("5", 5_000_000_000),
            ("0.5", 500_000_000),
            ("90k", 90_000_000_000_000),
            ("1.5M", 1_500_000_000_000_000),
            ("2_000", 2_000_000_000_000),
            ("0.000000001", 1),
            ("0.000000000001k", 1),
            ("1.500", 1_500_000_000),
        ] {
            assert_eq!(Amount::parse(text), Some(Amount(parts)), "{text}");
        }
        for text in [
            "",
            "k",
            ".5",
            "5.",
            "-1",
            "1e3",
            "5m",
            "5K",
            "5G",
            "1_",
            "_1",
            "1._5",
            "0.0000000001",
            "5 k",
            "1.2.3",
            "1000000001M",
            "٣",
        ] {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_amount_is_written_in_its_shortest_exact_form() {
        for text in [
            "0",
            "5",
            "300",
            "1500",
            "2k",
            "90k",
            "1.5M",
            "0.5",
            "1234567",
            "0.000000001",
        ] {
            assert_eq!(
                Amount::parse(text).map(|amount| amount.to_string()).as_deref(),
                Some(text)
            );
        }
        assert_eq!(
            Amount::parse("1.5M").map(Amount::decimal).as_deref(),
            Some("1500000")
        );
        assert_eq!(
            Amount(u128::MAX).to_string(),
            "340282366920938463463374607431.768211455"
        );
    }

    #[test]
    fn scaling_is_exact_rounded_up_and_survives_the_largest_amounts() {
        let units = Amount::units;
        assert_eq!(units(100).scaled(units(3), units(2)), units(150));
        assert_eq!(Amount(1).scaled(units(1), units(3)), Amount(1));
        assert_eq!(units(7).scaled(units(5), Amount::ZERO), units(7));
        let most = Amount(256 * Amount::MAX.0);
        assert_eq!(Amount::MAX.scaled(most, most), Amount::MAX);
        assert_eq!(
            Amount(u128::MAX).scaled(Amount(u128::MAX), Amount(1)),
            Amount(u128::MAX)
        );
    }

    proptest! {
        #[test]
        fn every_amount_comes_back_from_its_text(parts in 0..=Amount::MAX.0) {
            prop_assert_eq!(Amount::parse(&Amount(parts).to_string()), Some(Amount(parts)));
        }

        #[test]
        fn any_text_is_read_or_refused_without_panic(text in "[0-9._kM-]{0,40}|.*") {
            if let Some(amount) = Amount::parse(&text) {
                prop_assert!(amount <= Amount::MAX);
            }
        }

        #[test]
        fn a_scaled_amount_is_within_a_billionth_of_the_true_one(
            of in 1..=Amount::MAX.0, by in 0..=Amount::MAX.0, amount in 0..=Amount::MAX.0,
        ) {
            let scaled = Amount(amount).scaled(Amount(by), Amount(of)).0 as f64;
            let naive = amount as f64 * (by as f64 / of as f64);
            prop_assert!((scaled - naive).abs() <= 2.0 + naive * 1e-9, "{} {}", scaled, naive);
        }
    }
}
