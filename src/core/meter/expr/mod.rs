//! Expressions of what a call costs: `{prompt:bytes}/4 + 300`, `4*{answer./usage/completion_tokens}`.
//!
//! One language for estimate, actual and price: references in braces, `+ - * /`, parentheses, `min(…)`, `max(…)`, and
//! numbers with `k` and `M`. An expression is parsed once into a program in postfix order; all of its bounds are checked
//! then, so that running it takes at most [`NODES_MAX`] steps.

mod parse;
mod program;
mod ratio;
mod source;

use windrow_words::{Message, meter as say};

use super::amount::Amount;
use super::unit::Unit;
use program::Step;
pub use source::{Kind, Measure, Source, Values};

/// Maximum length of an expression. Unit: bytes.
pub const BYTES_MAX: usize = 500;
/// Maximum number of numbers, references and operators together.
pub const NODES_MAX: usize = 64;
/// Maximum depth of parentheses and functions.
pub const DEPTH_MAX: usize = 16;
/// Example of a named expression, in its errors.
const NAMED: &str = "tokens = {column:bytes}/4 + 300";

/// Expression that was parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    text: String,
    steps: Vec<Step>,
}

/// Error for a text that is no expression.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", self.message())]
pub struct ExprError {
    /// Position of the fault in the text, in characters from 1 on.
    pub position: usize,
    /// Fault that was found.
    pub what: Message,
    /// Rule that it breaks.
    pub why: Message,
}

/// Error for a cost that can't be computed from a row or an answer; its code is [`COST_VALUE`](super::COST_VALUE).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct CostFault(pub Message);

impl ExprError {
    fn new(text: &str, at: usize, what: Message, why: Message) -> ExprError {
        ExprError {
            position: text[..at].chars().count() + 1,
            what,
            why,
        }
    }

    /// Returns the message for people.
    pub fn message(&self) -> Message {
        say::expression(self.position, self.what.clone(), self.why.clone())
    }
}

impl Expr {
    /// Parses an expression of this kind.
    ///
    /// # Errors
    /// Says where the text is wrong, and which rule it breaks.
    pub fn parse(text: &str, kind: Kind) -> Result<Expr, ExprError> {
        Expr::parse_at(text, 0, kind)
    }

    fn parse_at(text: &str, at: usize, kind: Kind) -> Result<Expr, ExprError> {
        let steps = parse::steps(text, at, kind)?;
        if kind == Kind::Price && !program::is_linear(&steps) {
            return Err(ExprError::new(text, at, say::not_linear(), say::linear_form()));
        }
        Ok(Expr {
            text: text[at..].trim().to_owned(),
            steps,
        })
    }

    /// Returns the text as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Iterates over the sources that it names, in their order.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.steps.iter().filter_map(|step| match step {
            Step::Value(source) => Some(source),
            Step::Number(_) | Step::Op(_) => None,
        })
    }

    /// Returns the cost for these values, rounded up to 10⁻⁹ of a unit.
    ///
    /// # Errors
    /// Fails if a value is missing or no number, for a division by 0, and for a result below 0 or above
    /// [`Amount::MAX`].
    pub fn cost(&self, values: &impl Values) -> Result<Amount, CostFault> {
        let cost = program::run(&self.steps, values)?;
        if cost.is_negative() {
            return Err(CostFault(say::value_negative()));
        }
        cost.amount().ok_or_else(|| CostFault(say::value_too_large()))
    }
}

/// Parses the name of a meter, `=` and an expression: `tokens = {prompt:bytes}/4 + 300`.
///
/// # Errors
/// Says where the text is wrong, and which rule it breaks. A built-in meter has no expression, and a price doesn't
/// depend on itself.
pub fn parse(text: &str, kind: Kind) -> Result<(Unit, Expr), ExprError> {
    let fault = |what, why| ExprError::new(text, text.len() - text.trim_start().len(), what, why);
    let no_name = || fault(say::no_name(), say::name_form(NAMED));
    let (name, _) = text.split_once('=').ok_or_else(no_name)?;
    let unit = Unit::parse(name.trim()).ok_or_else(no_name)?;
    if unit.is_built_in() {
        return Err(fault(say::built_in(unit.as_str()), say::name_form(NAMED)));
    }
    let expr = Expr::parse_at(text, name.len() + 1, kind)?;
    let own = Source::Meter(unit.clone());
    if expr.sources().any(|source| *source == own) {
        return Err(fault(say::own_price(unit.as_str()), say::only_meters()));
    }
    Ok((unit, expr))
}
