//! Written form of a limit: `300/min`, `90k tokens/min`, `500 eur/month`, `5 eur`, `20 at once`, or the name of one.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use windrow_words::{Message, meter as say};

use super::amount::Amount;
use super::period::{Calendar, Period};
use super::unit::Unit;
use crate::business::is_slug;
use crate::settings::text::{TextError, parse_span, span_text};
use crate::zone::Zone;

/// Shortest and longest span of a pace; longer ones are calendar periods.
const SPAN_MIN: Duration = Duration::from_millis(1);
const SPAN_MAX: Duration = Duration::from_secs(60);
/// Spellings of the two spans that have a word.
const SPANS: [(&[&str], Duration); 2] = [
    (&["s", "sec", "second"], Duration::from_secs(1)),
    (&["min", "m", "minute"], Duration::from_secs(60)),
];
/// Words behind an amount of what may be out together.
const AT_ONCE: &str = "at once";

/// Limit of what the calls of a task, or of all that share it, may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Amount per span, spent evenly.
    Pace {
        /// Amount that a span allows.
        amount: Amount,
        /// Unit of the amount.
        unit: Unit,
        /// Span, at most a minute.
        span: Duration,
    },
    /// Amount of each calendar period, spent as fast as everything else allows.
    Allowance {
        /// Amount that a period allows.
        amount: Amount,
        /// Unit of the amount.
        unit: Unit,
        /// Calendar period in which the amount may be spent.
        period: Period,
        /// Zone of its calendar; `None` for UTC.
        zone: Option<Zone>,
    },
    /// Amount in all, after which the task stops.
    Total {
        /// Amount that may be spent.
        amount: Amount,
        /// Unit of the amount.
        unit: Unit,
    },
    /// Amount that may be out or awaited at any time.
    AtOnce {
        /// Amount that may be out.
        amount: Amount,
        /// Unit of the amount.
        unit: Unit,
    },
    /// Limit that an operator declared under this name.
    Named(String),
}

impl Limit {
    /// Returns the amount and its unit; `None` for a limit that is declared elsewhere.
    pub fn amount(&self) -> Option<(Amount, &Unit)> {
        match self {
            Limit::Pace { amount, unit, .. }
            | Limit::Allowance { amount, unit, .. }
            | Limit::Total { amount, unit }
            | Limit::AtOnce { amount, unit } => Some((*amount, unit)),
            Limit::Named(_) => None,
        }
    }

    /// Returns the calendar of an allowance.
    pub fn calendar(&self) -> Option<Calendar> {
        match self {
            Limit::Allowance { period, zone, .. } => Some(Calendar {
                period: *period,
                zone: zone.unwrap_or_default(),
            }),
            _ => None,
        }
    }

    /// Returns true if a call of this cost can never be sent under the limit: it fails as
    /// [`COST_TOO_LARGE`](super::COST_TOO_LARGE).
    pub fn is_too_large(&self, cost: Amount) -> bool {
        self.amount().is_some_and(|(amount, _)| cost > amount)
    }
}

impl FromStr for Limit {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Limit, TextError> {
        read(text.trim()).map_err(|expected| TextError {
            text: text.to_owned(),
            expected,
            examples: say::LIMIT_EXAMPLES,
            meant: meant(text.trim()),
        })
    }
}

/// Guesses the lower-case form of a text, since people write `EUR` and `/Min`; `M` stays.
fn meant(text: &str) -> Option<String> {
    let (amount, rest) = text.split_at(amount_bytes(text));
    let lower = format!("{amount}{}", rest.to_ascii_lowercase());
    (lower != text && read(&lower).is_ok()).then_some(lower)
}

/// Reads a limit; the error says what was expected.
fn read(text: &str) -> Result<Limit, Message> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return named(text);
    }
    if let Some(head) = text.strip_suffix(AT_ONCE) {
        let (amount, unit) = measured(head)?;
        return Ok(Limit::AtOnce { amount, unit });
    }
    let Some((head, tail)) = text.split_once('/') else {
        let (amount, unit) = measured(text)?;
        return Ok(Limit::Total { amount, unit });
    };
    let (amount, unit) = measured(head)?;
    let tail = tail.trim();
    let (span, zone) = tail.split_once(char::is_whitespace).unwrap_or((tail, ""));
    let zone = Some(zone.trim()).filter(|zone| !zone.is_empty());
    if let Some(period) = Period::read(span) {
        let zone = zone.map(parse_zone).transpose()?;
        return Ok(Limit::Allowance {
            amount,
            unit,
            period,
            zone,
        });
    }
    match (pace_span(span), zone) {
        (Some(span), None) => Ok(Limit::Pace { amount, unit, span }),
        (Some(_), Some(_)) => Err(say::limit_zone()),
        (None, _) => Err(say::limit_span()),
    }
}

fn named(text: &str) -> Result<Limit, Message> {
    if is_slug(text) {
        Ok(Limit::Named(text.to_owned()))
    } else {
        Err(say::limit())
    }
}

/// Reads an amount above 0 and a unit; without a unit it counts calls.
fn measured(text: &str) -> Result<(Amount, Unit), Message> {
    let (amount, rest) = text.trim().split_at(amount_bytes(text.trim()));
    let amount = Amount::parse(amount).filter(|amount| !amount.is_zero());
    let amount = amount.ok_or_else(|| say::limit_amount("k", "M"))?;
    match rest.trim() {
        "" => Ok((amount, Unit::calls())),
        unit if rest.starts_with(char::is_whitespace) => {
            let unit = Unit::parse(unit).ok_or_else(say::limit_unit)?;
            Ok((amount, unit))
        }
        _ => Err(say::limit_amount("k", "M")),
    }
}

/// Returns the length of the amount at the beginning of a text, with its suffix.
fn amount_bytes(text: &str) -> usize {
    let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '.' | '_');
    let digits = text.find(|c| !is_digit(c)).unwrap_or(text.len());
    digits + usize::from(text[digits..].starts_with(['k', 'M']))
}

fn parse_zone(text: &str) -> Result<Zone, Message> {
    text.parse().map_err(|_| say::limit_no_zone())
}

fn pace_span(text: &str) -> Option<Duration> {
    let word = SPANS.iter().find(|(words, _)| words.contains(&text));
    let span = word.map(|(_, span)| *span).or_else(|| parse_span(text).ok());
    span.filter(|span| (SPAN_MIN..=SPAN_MAX).contains(span))
}

/// Writes the canonical text, which reads as the same limit.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((amount, unit)) = self.amount() else {
            return match self {
                Limit::Named(name) => f.write_str(name),
                _ => Ok(()),
            };
        };
        write!(f, "{amount}")?;
        // A bare number is short for calls only where a span or `at once` shows that it is a limit.
        if !unit.is_calls() || matches!(self, Limit::Total { .. }) {
            write!(f, " {unit}")?;
        }
        match self {
            Limit::Pace { span, .. } => match SPANS.iter().find(|(_, known)| known == span) {
                Some((words, _)) => write!(f, "/{}", words[0]),
                None => write!(f, "/{}", span_text(*span)),
            },
            Limit::Allowance { period, zone, .. } => {
                write!(f, "/{period}")?;
                zone.map_or(Ok(()), |zone| write!(f, " {}", zone.name()))
            }
            Limit::AtOnce { .. } => write!(f, " {AT_ONCE}"),
            Limit::Total { .. } | Limit::Named(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        text.parse::<Limit>()
            .map_or_else(|error| error.to_string(), |limit| limit.to_string())
    }

    #[test]
    fn each_form_of_the_table_is_the_limit_that_it_says() {
        let units = Amount::units;
        let unit = |name| Unit::parse(name).expect("a unit");
        let minute = Duration::from_secs(60);
        let cases = [
            (
                "300/min",
                Limit::Pace {
                    amount: units(300),
                    unit: unit("calls"),
                    span: minute,
                },
            ),
            (
                "90k tokens/min",
                Limit::Pace {
                    amount: units(90_000),
                    unit: unit("tokens"),
                    span: minute,
                },
            ),
            (
                "300 calls/s",
                Limit::Pace {
                    amount: units(300),
                    unit: unit("calls"),
                    span: Duration::from_secs(1),
                },
            ),
            (
                "7 items / 250ms",
                Limit::Pace {
                    amount: units(7),
                    unit: unit("items"),
                    span: Duration::from_millis(250),
                },
            ),
            (
                "2000/day America/Los_Angeles",
                Limit::Allowance {
                    amount: units(2000),
                    unit: unit("calls"),
                    period: Period::Day,
                    zone: Some(Zone::America__Los_Angeles),
                },
            ),
            (
                "500 eur/month",
                Limit::Allowance {
                    amount: units(500),
                    unit: unit("eur"),
                    period: Period::Month,
                    zone: None,
                },
            ),
            (
                "5 eur",
                Limit::Total {
                    amount: units(5),
                    unit: unit("eur"),
                },
            ),
            (
                "2M tokens",
                Limit::Total {
                    amount: units(2_000_000),
                    unit: unit("tokens"),
                },
            ),
            (
                "100",
                Limit::Total {
                    amount: units(100),
                    unit: unit("calls"),
                },
            ),
            (
                "20 at once",
                Limit::AtOnce {
                    amount: units(20),
                    unit: unit("calls"),
                },
            ),
            (
                "2M tokens at once",
                Limit::AtOnce {
                    amount: units(2_000_000),
                    unit: unit("tokens"),
                },
            ),
            ("openai", Limit::Named("openai".to_owned())),
        ];
        for (text, limit) in cases {
            assert_eq!(text.parse(), Ok(limit), "{text}");
        }
    }

    #[test]
    fn one_text_stands_for_all_spellings_of_a_limit() {
        for (text, canonical) in [
            ("300 calls/60s", "300/min"),
            ("300/m", "300/min"),
            (" 300 call / minute ", "300/min"),
            ("10/5s", "10/5s"),
            ("5/h", "5/hour"),
            ("2000/day  UTC", "2k/day UTC"),
            ("100", "100 calls"),
            ("0.5 eur", "0.5 eur"),
            ("20 calls at once", "20 at once"),
        ] {
            assert_eq!(shown(text), canonical, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_limit_is_refused_with_its_reason() {
        for (text, code) in [
            ("", "meter.limit"),
            ("-5/min", "meter.limit"),
            ("Open AI", "meter.limit"),
            ("0/min", "meter.limit_amount"),
            ("5m tokens", "meter.limit_amount"),
            ("300calls/s", "meter.limit_amount"),
            ("90 k tokens", "meter.limit_unit"),
            ("300/", "meter.limit_span"),
            ("300/2min", "meter.limit_span"),
            ("300/90s", "meter.limit_span"),
            ("300/year", "meter.limit_span"),
            ("300/2day", "meter.limit_span"),
            ("300/1ns", "meter.limit_span"),
            ("300/min UTC", "meter.limit_zone"),
            ("300/day Mars/Olympus", "meter.limit_no_zone"),
        ] {
            let error = text.parse::<Limit>().expect_err(text);
            assert_eq!(error.expected.code(), code, "{text}");
            assert!(error.to_string().contains("examples: "), "{error}");
        }
        let error = "5 EUR/Month".parse::<Limit>().expect_err("units are lower case");
        assert_eq!(error.meant.as_deref(), Some("5 eur/month"));
    }

    #[test]
    fn a_call_above_the_whole_amount_never_fits() {
        let limit: Limit = "90k tokens/min".parse().expect("a limit");
        assert!(!limit.is_too_large(Amount::units(90_000)));
        assert!(limit.is_too_large(Amount(Amount::units(90_000).0 + 1)));
        assert!(!Limit::Named("openai".to_owned()).is_too_large(Amount::MAX));
    }

    fn any_limit() -> impl Strategy<Value = Limit> {
        let amount = prop_oneof![
            1..=Amount::MAX.0,
            (1..10_000_u128).prop_map(|n| n * 1_000_000_000)
        ]
        .prop_map(Amount);
        let unit = prop_oneof![
            Just("calls"),
            Just("items"),
            Just("tokens"),
            Just("eur"),
            Just("x_1")
        ]
        .prop_map(|name| Unit::parse(name).expect("a unit"));
        let span = prop_oneof![(1..=60_000_u64).prop_map(Duration::from_millis), Just(SPAN_MAX)];
        let period = (0..4_usize).prop_map(|at| Period::ALL[at]);
        let zone = prop_oneof![
            Just(None),
            Just(Some(Zone::UTC)),
            Just(Some(Zone::Europe__Berlin))
        ];
        (amount, unit, span, period, zone, 0..5).prop_map(|(amount, unit, span, period, zone, kind)| {
            match kind {
                0 => Limit::Pace { amount, unit, span },
                1 => Limit::Allowance {
                    amount,
                    unit,
                    period,
                    zone,
                },
                2 => Limit::Total { amount, unit },
                3 => Limit::AtOnce { amount, unit },
                _ => Limit::Named("open-ai".to_owned()),
            }
        })
    }

    proptest! {
        #[test]
        fn every_limit_comes_back_from_its_text(limit in any_limit()) {
            prop_assert_eq!(limit.to_string().parse(), Ok(limit));
        }

        #[test]
        fn any_text_is_a_limit_or_refused_and_a_limit_has_one_text(
            text in "[0-9]{1,3}[kM.]?[0-9]? ?(calls|tokens|EUR|at|)[ /]{0,2}(min|2min|day|at once|)( UTC)?|.*"
        ) {
            if let Ok(limit) = text.parse::<Limit>() {
                let canonical = limit.to_string();
                prop_assert_eq!(canonical.parse::<Limit>().map(|limit| limit.to_string()), Ok(canonical));
            }
        }
    }
}
