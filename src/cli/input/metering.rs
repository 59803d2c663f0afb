//! Flags for limits in units, and for what calls cost in them.

use clap::Args;
use serde_json::Value;

use crate::exit::Exit;
use crate::fault::Fault;
use windrow_core::meter::expr::{self, Kind};
use windrow_core::meter::limit::Limit;
use windrow_core::meter::metering::Metering;

/// Word that removes everything given before by the same flag.
const NONE: &str = "none";

/// Flags for the costs of a call.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Pace and limits")]
pub struct Costs {
    /// Cost of a call before it is sent: 'tokens = {prompt:bytes}/4 + 300'; may be repeated
    #[arg(long, value_name = "UNIT=EXPRESSION", value_parser = estimate, hide_short_help = true)]
    pub cost: Vec<String>,
    /// Cost of a call from its answer: 'tokens = {answer./usage/total_tokens}'; may be repeated
    #[arg(long, value_name = "UNIT=EXPRESSION", value_parser = actual, hide_short_help = true)]
    pub cost_from: Vec<String>,
    /// Price of other units: 'eur = 0.6 * {tokens} / 1M'; may be repeated
    #[arg(long, value_name = "UNIT=EXPRESSION", value_parser = price, hide_short_help = true)]
    pub price: Vec<String>,
}

/// Flags for limits in units, where no named limit can be given.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Pace and limits")]
pub struct UnitLimits {
    /// Limit in units: 300/min, '90k tokens/min', '5 eur', '20 at once'; may be repeated
    #[arg(long = "limit", value_name = "LIMIT", value_parser = in_units)]
    pub limits: Vec<String>,
    /// Flags for the costs of a call.
    #[command(flatten)]
    pub costs: Costs,
}

impl UnitLimits {
    /// True if none of these flags is given.
    pub(crate) fn is_empty(&self) -> bool {
        is_empty(&self.limits, &self.costs)
    }

    /// Returns the metering of a task after these flags; each list that they name replaces the one of `base`.
    ///
    /// # Errors
    /// `Usage` if they don't fit together.
    pub(crate) fn over(&self, base: &Metering) -> Result<Metering, Fault> {
        over(&self.limits, &self.costs, base)
    }
}

/// True if no flag of these is given.
pub(crate) fn is_empty(limits: &[String], costs: &Costs) -> bool {
    [limits, &costs.cost, &costs.cost_from, &costs.price]
        .iter()
        .all(|list| list.is_empty())
}

/// Returns the metering of a task after these flags; each list that they name replaces the one of `base`.
///
/// # Errors
/// `Usage` if they don't fit together.
pub(crate) fn over(limits: &[String], costs: &Costs, base: &Metering) -> Result<Metering, Fault> {
    let base = serde_json::to_value(base).map_err(|error| Fault::bug(error.to_string()))?;
    let list = |name: &str, given: &[String]| match given {
        [] => texts(&base[name]),
        [one] if one == NONE => Vec::new(),
        given => given.to_vec(),
    };
    Metering::parse(
        &list("limits", limits),
        &list("cost", &costs.cost),
        &list("cost_from", &costs.cost_from),
        &list("price", &costs.price),
    )
    .map_err(|error| Fault::new(Exit::Usage, "can't use these limits", error.to_string()))
}

fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// Divides the values of `--limit` into limits in units, which begin with a digit, and names of shared limits.
pub(crate) fn divided(limits: &[String]) -> (Vec<String>, Vec<String>) {
    limits.iter().cloned().partition(|limit| is_in_units(limit))
}

fn is_in_units(text: &str) -> bool {
    text.trim_start().starts_with(|c: char| c.is_ascii_digit())
}

/// Parses a limit in units, or the name of a shared one.
///
/// # Errors
/// The message shows the accepted forms.
pub(crate) fn any_limit(text: &str) -> Result<String, String> {
    if is_in_units(text) {
        return in_units(text);
    }
    // The node knows which names exist.
    Ok(text.to_owned())
}

fn in_units(text: &str) -> Result<String, String> {
    if text == NONE {
        return Ok(text.to_owned());
    }
    match text.parse::<Limit>() {
        Ok(Limit::Named(name)) => Err(format!(
            "`{name}` is the name of a limit that tasks of a node share; this takes an amount, such as 300/min or '5 eur'"
        )),
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn estimate(text: &str) -> Result<String, String> {
    expression(text, Kind::Estimate)
}

fn actual(text: &str) -> Result<String, String> {
    expression(text, Kind::Actual)
}

fn price(text: &str) -> Result<String, String> {
    expression(text, Kind::Price)
}

fn expression(text: &str, kind: Kind) -> Result<String, String> {
    if text == NONE {
        return Ok(text.to_owned());
    }
    let parsed = expr::parse(text, kind).map_err(|error| error.to_string());
    parsed.map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_digit_begins_a_limit_in_units_and_a_letter_a_name() {
        let (units, names) = divided(&texts(&["300/min", "openai", "5 eur"]));
        assert_eq!((units, names), (texts(&["300/min", "5 eur"]), texts(&["openai"])));
        assert!(any_limit("openai").is_ok() && any_limit("20 at once").is_ok());
        assert!(any_limit("20 sheep per hour").is_err());
        assert!(in_units("openai").is_err_and(|why| why.contains("name")));
    }

    #[test]
    fn a_list_that_is_given_replaces_the_one_before_and_the_others_stay() {
        let costs = Costs {
            cost: texts(&["tokens = 3"]),
            ..Costs::default()
        };
        let before = over(&texts(&["200 tokens"]), &costs, &Metering::default()).expect("sound");
        let raised = over(&texts(&["500 tokens"]), &Costs::default(), &before).expect("sound");
        assert_eq!(
            (raised.to_string(), raised.cost.len()),
            ("500 tokens".to_owned(), 1)
        );
        let none = over(&texts(&["none"]), &Costs::default(), &before).expect("sound");
        assert_eq!((none.limits.len(), none.cost.len()), (0, 1));
        let twice = texts(&["5 eur", "6 eur"]);
        let fault = over(&twice, &Costs::default(), &before).expect_err("two of a kind");
        assert_eq!(fault.exit, Exit::Usage);
    }

    #[test]
    fn an_expression_is_refused_at_the_character_that_is_wrong() {
        let why = estimate("tokens = {prompt:bytes}/").expect_err("no value");
        assert!(why.contains("at character 25"), "{why}");
        assert!(estimate("tokens = {answer./n}").is_err(), "not known before");
        assert!(actual("tokens = {answer./n}").is_ok());
    }
}
