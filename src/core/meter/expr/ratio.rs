//! Rational numbers of expressions.
//!
//! Rational, because a price is applied to sums and must give what the prices of the calls add up to: a binary fraction
//! of 53 bits rounds `0.15 / 1M` and every sum of it, this never does. Numerator and denominator have 127 bits. Only
//! where a result doesn't fit them, its operands are rounded to 10⁻⁹ first, the part of a unit that is counted; so a
//! chain of divisions by values of rows loses digits that nobody counts, instead of failing its item.

use crate::meter::amount::{Amount, PARTS};

/// Longest text that is read as a number. Unit: bytes.
const TEXT_BYTES_MAX: usize = 64;
/// Largest power of ten in a number's text.
const POWER_MAX: u32 = 36;
const GRID: i128 = PARTS as i128;

/// Rational number in lowest terms; the denominator is above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ratio {
    top: i128,
    bottom: i128,
}

impl Ratio {
    const ZERO: Ratio = Ratio { top: 0, bottom: 1 };

    /// Returns the whole number.
    pub(super) fn whole(number: u64) -> Ratio {
        Ratio {
            top: number.into(),
            bottom: 1,
        }
    }

    /// Creates `top / bottom`; `None` if `bottom` is 0 or a part has no opposite.
    pub(super) fn new(top: i128, bottom: i128) -> Option<Ratio> {
        if bottom == 0 || top == i128::MIN || bottom == i128::MIN {
            return None;
        }
        let common = common(top, bottom) * bottom.signum();
        Some(Ratio {
            top: top / common,
            bottom: bottom / common,
        })
    }

    /// Parses a decimal number with an optional exponent, as in JSON; `None` if the text is none, or too long.
    pub(super) fn parse(text: &str) -> Option<Ratio> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (sign, number) = number
            .strip_prefix('-')
            .map_or((1, number), |number| (-1, number));
        let (whole, decimals) = match number.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (number, ""),
        };
        let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(decimals) {
            return None;
        }
        let decimals = decimals.trim_end_matches('0');
        let top: i128 = format!("{whole}{decimals}").parse().ok()?;
        let power = exponent
            .parse::<i32>()
            .ok()?
            .checked_sub(i32::try_from(decimals.len()).ok()?)?;
        let scale = 10_i128
            .checked_pow(power.unsigned_abs())
            .filter(|_| power.unsigned_abs() <= POWER_MAX);
        match (top, scale) {
            (0, _) => Some(Ratio::ZERO),
            (top, scale) if power >= 0 => Ratio::new(sign * top.checked_mul(scale?)?, 1),
            (top, scale) => Ratio::new(sign * top, scale?),
        }
    }

    /// Returns the amount, rounded up to 10⁻⁹; `None` below 0 and above [`Amount::MAX`].
    pub(super) fn amount(self) -> Option<Amount> {
        let (parts, rest) = self.parts()?;
        let parts = parts.checked_add(i128::from(rest))?;
        let amount = Amount(u128::try_from(parts).ok()?);
        (amount <= Amount::MAX).then_some(amount)
    }

    /// Returns true below 0.
    pub(super) fn is_negative(self) -> bool {
        self.top < 0
    }

    /// Returns true for 0.
    pub(super) fn is_zero(self) -> bool {
        self.top == 0
    }

    /// Returns the sum; `None` if it is too large.
    pub(super) fn plus(self, other: Ratio) -> Option<Ratio> {
        self.fitting(other, |a, b| {
            let common = common(a.bottom, b.bottom);
            let left = a.top.checked_mul(b.bottom / common)?;
            let right = b.top.checked_mul(a.bottom / common)?;
            Ratio::new(
                left.checked_add(right)?,
                (a.bottom / common).checked_mul(b.bottom)?,
            )
        })
    }

    /// Returns the difference; `None` if it is too large.
    pub(super) fn minus(self, other: Ratio) -> Option<Ratio> {
        self.plus(Ratio {
            top: -other.top,
            ..other
        })
    }

    /// Returns the product; `None` if it is too large.
    pub(super) fn times(self, other: Ratio) -> Option<Ratio> {
        self.fitting(other, |a, b| {
            let (left, right) = (common(a.top, b.bottom), common(b.top, a.bottom));
            let top = (a.top / left).checked_mul(b.top / right)?;
            Ratio::new(top, (a.bottom / right).checked_mul(b.bottom / left)?)
        })
    }

    /// Returns the quotient; `None` if it is too large, or the divisor is 0.
    pub(super) fn over(self, other: Ratio) -> Option<Ratio> {
        self.times(Ratio::new(other.bottom, other.top)?)
    }

    /// Returns the smaller of two numbers; `None` if their difference is too large.
    pub(super) fn least(self, other: Ratio) -> Option<Ratio> {
        let is_less = self.minus(other)?.is_negative();
        Some(if is_less { self } else { other })
    }

    /// Returns the larger of two numbers; `None` if their difference is too large.
    pub(super) fn most(self, other: Ratio) -> Option<Ratio> {
        let is_less = self.minus(other)?.is_negative();
        Some(if is_less { other } else { self })
    }

    /// Applies an operation; where its result doesn't fit, to the numbers rounded to 10⁻⁹.
    fn fitting(self, other: Ratio, of: impl Fn(Ratio, Ratio) -> Option<Ratio>) -> Option<Ratio> {
        of(self, other).or_else(|| of(self.rounded()?, other.rounded()?))
    }

    fn rounded(self) -> Option<Ratio> {
        Ratio::new(self.parts()?.0, GRID)
    }

    /// Returns the whole parts of 10⁻⁹, rounded down, and true if there is a rest.
    fn parts(self) -> Option<(i128, bool)> {
        let (whole, rest) = (self.top.div_euclid(self.bottom), self.top.rem_euclid(self.bottom));
        let (below, is_exact) = match rest.checked_mul(GRID) {
            Some(scaled) => (scaled / self.bottom, scaled % self.bottom == 0),
            // A denominator this large has digits to spare.
            None => ((rest / (self.bottom / GRID)).min(GRID - 1), false),
        };
        Some((whole.checked_mul(GRID)?.checked_add(below)?, !is_exact))
    }
}

impl From<Amount> for Ratio {
    fn from(amount: Amount) -> Ratio {
        let parts = i128::try_from(amount.0).unwrap_or(i128::MAX);
        Ratio::new(parts, GRID).unwrap_or(Ratio::ZERO)
    }
}

/// Returns the greatest common divisor, at least 1.
fn common(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i128::try_from(a).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ratio(top: i128, bottom: i128) -> Ratio {
        Ratio::new(top, bottom).expect("a number")
    }

    #[test]
    fn decimal_numbers_are_exact() {
        for (text, top, bottom) in [
            ("12", 12, 1),
            ("-0.5", -1, 2),
            ("0.15", 3, 20),
            ("1.2e3", 1200, 1),
            ("25E-1", 5, 2),
            ("1e+2", 100, 1),
            (
                "0.10000000000000000555",
                10_000_000_000_000_000_555,
                100_000_000_000_000_000_000,
            ),
            ("0e99", 0, 1),
        ] {
            assert_eq!(Ratio::parse(text), Some(ratio(top, bottom)), "{text}");
        }
        for text in [
            "", "-", ".5", "5.", "1e", "1e99", "NaN", "inf", "0x10", "1,5", " 1", "--1", "+1", "null",
            "1e1e1",
        ] {
            assert_eq!(Ratio::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_amount_is_rounded_up_and_never_below_nothing() {
        assert_eq!(ratio(1, 3).amount(), Some(Amount(333_333_334)));
        assert_eq!(ratio(5, 2).amount(), Some(Amount(2_500_000_000)));
        assert_eq!(ratio(-1, 3).amount(), None);
        assert_eq!(ratio(1_000_000_000_000_001, 1).amount(), None);
        assert_eq!(ratio(1, i128::MAX).amount(), Some(Amount(1)));
    }

    #[test]
    fn a_sum_whose_denominator_does_not_fit_is_rounded_to_what_is_counted() {
        let (a, b) = (ratio(1, 10_i128.pow(30) + 57), ratio(1, 10_i128.pow(30) + 61));
        assert_eq!(a.plus(b), Some(Ratio::whole(0)));
        assert_eq!(ratio(i128::MAX, 1).times(ratio(2, 1)), None);
        assert_eq!(ratio(1, 1).over(Ratio::whole(0)), None);
    }

    proptest! {
        #[test]
        fn arithmetic_never_panics_and_keeps_lowest_terms(a: i128, b: i128, c: i128, d: i128) {
            let (Some(x), Some(y)) = (Ratio::new(a, b), Ratio::new(c, d)) else { return Ok(()) };
            for result in [x.plus(y), x.minus(y), x.times(y), x.over(y), x.least(y), x.most(y)].into_iter().flatten() {
                prop_assert!(result.bottom > 0 && common(result.top, result.bottom) == 1);
            }
            prop_assert!(x.amount().is_none_or(|amount| amount <= Amount::MAX));
        }

        #[test]
        fn any_text_is_a_number_or_not(text in "-?[0-9]{0,40}\\.?[0-9]{0,40}([eE][+-]?[0-9]{1,3})?|.*") {
            if let (Some(ratio), Ok(float)) = (Ratio::parse(&text), text.parse::<f64>()) {
                let value = ratio.top as f64 / ratio.bottom as f64;
                prop_assert!((value - float).abs() <= float.abs() * 1e-12, "{} {}", value, float);
            }
        }
    }
}
