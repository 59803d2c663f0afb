//! References of expressions: `{prompt:bytes}`, `{request:bytes}`, `{answer./usage/total_tokens}`, `{tokens_in}`.

use std::borrow::Cow;
use std::fmt;

use windrow_words::{Message, meter as say};

use super::CostFault;
use super::ratio::Ratio;
use crate::meter::amount::Amount;
use crate::meter::unit::Unit;
use crate::text::quoted;

/// Examples of references, by the kind of the expression.
const BEFORE: &str = "{column:number}, {column:bytes}, {column:chars}, {request:bytes}";
const AFTER: &str = "{answer./usage/total_tokens}, {answer.header.x-cost}, {column:number}, {request:bytes}";

/// Purpose of an expression, which decides what it may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Cost before the call, from its row and request.
    Estimate,
    /// Cost after the call, from its answer too.
    Actual,
    /// Cost as a price of other meters.
    Price,
}

crate::slugs! {
    /// Measure of a column.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Measure {
        /// Length of its text in UTF-8.
        Bytes = "bytes",
        /// Number of its characters.
        Chars = "chars",
        /// Number that the text is.
        Number = "number",
    }
}

/// Source of a value in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Column or member of the row, or a JSON pointer into it.
    Column(String, Measure),
    /// Length of the request's body.
    Request,
    /// JSON pointer into the answer.
    Answer(String),
    /// Header of the answer, in lower case.
    Header(String),
    /// Meter that a price is applied to.
    Meter(Unit),
}

/// Values that an expression can name. Whatever an implementation doesn't have is missing.
pub trait Values {
    /// Returns the text of a column or member of the row; a name that begins with `/` is a JSON pointer.
    fn column(&self, _name: &str) -> Option<Cow<'_, str>> {
        None
    }

    /// Returns the length of the request's body in bytes.
    fn request_bytes(&self) -> Option<u64> {
        None
    }

    /// Returns the text of the answer's member at a JSON pointer.
    fn answer(&self, _pointer: &str) -> Option<Cow<'_, str>> {
        None
    }

    /// Returns the value of the answer's header; the name is in lower case.
    fn header(&self, _name: &str) -> Option<&str> {
        None
    }

    /// Returns the amount of another meter.
    fn meter(&self, _unit: &Unit) -> Option<Amount> {
        None
    }
}

/// Fault of a reference: what, and why.
pub(super) type Fault = (Message, Message);

impl Source {
    /// Parses the text between the braces.
    pub(super) fn parse(inside: &str, kind: Kind) -> Result<Source, Fault> {
        let source = Source::named(inside);
        match (source, kind) {
            (Some(Source::Meter(unit)), Kind::Price) => Ok(Source::Meter(unit)),
            (_, Kind::Price) => Err((no_reference(inside), say::only_meters())),
            (Some(Source::Meter(_)), _) => {
                let example = format!("{{{inside}:number}}");
                Err((no_reference(inside), say::bare_column(example)))
            }
            (Some(Source::Answer(_) | Source::Header(_)), Kind::Estimate) => {
                Err((no_reference(inside), say::not_before()))
            }
            (Some(source), _) => Ok(source),
            (None, Kind::Estimate) => Err((no_reference(inside), say::reference_forms(BEFORE))),
            (None, Kind::Actual) => Err((no_reference(inside), say::reference_forms(AFTER))),
        }
    }

    fn named(inside: &str) -> Option<Source> {
        if let Some(of) = inside.strip_prefix("answer.") {
            let of = of.strip_suffix(":number").unwrap_or(of);
            return match of.strip_prefix("header.") {
                Some(name) => is_header(name).then(|| Source::Header(name.to_ascii_lowercase())),
                None => is_pointer(of).then(|| Source::Answer(of.to_owned())),
            };
        }
        if inside == "request:bytes" {
            return Some(Source::Request);
        }
        match inside.rsplit_once(':') {
            Some((name, measure)) => {
                let fits = !name.is_empty() && (!name.starts_with('/') || is_pointer(name));
                let measure = Measure::parse(measure).filter(|_| fits)?;
                Some(Source::Column(name.to_owned(), measure))
            }
            None => Unit::parse(inside).map(Source::Meter),
        }
    }

    /// Returns the value, or fails if it is missing or no number.
    pub(super) fn value(&self, values: &impl Values) -> Result<Ratio, CostFault> {
        let missing = || CostFault(say::value_missing(self.to_string()));
        match self {
            Source::Column(name, measure) => {
                let text = values.column(name).ok_or_else(missing)?;
                match measure {
                    Measure::Bytes => Ok(Ratio::whole(text.len() as u64)),
                    Measure::Chars => Ok(Ratio::whole(text.chars().count() as u64)),
                    Measure::Number => self.number(&text),
                }
            }
            Source::Request => values.request_bytes().map(Ratio::whole).ok_or_else(missing),
            Source::Answer(pointer) => self.number(&values.answer(pointer).ok_or_else(missing)?),
            Source::Header(name) => self.number(values.header(name).ok_or_else(missing)?),
            Source::Meter(unit) => values.meter(unit).map(Ratio::from).ok_or_else(missing),
        }
    }

    fn number(&self, text: &str) -> Result<Ratio, CostFault> {
        let no_number = || CostFault(say::value_no_number(self.to_string(), quoted(text)));
        Ratio::parse(text.trim()).ok_or_else(no_number)
    }
}

/// Writes the reference with its braces.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Column(name, measure) => write!(f, "{{{name}:{measure}}}"),
            Source::Request => f.write_str("{request:bytes}"),
            Source::Answer(pointer) => write!(f, "{{answer.{pointer}}}"),
            Source::Header(name) => write!(f, "{{answer.header.{name}}}"),
            Source::Meter(unit) => write!(f, "{{{unit}}}"),
        }
    }
}

fn no_reference(inside: &str) -> Message {
    say::no_reference(quoted(inside))
}

/// Returns true for a JSON pointer (RFC 6901) to a part of a document.
fn is_pointer(text: &str) -> bool {
    let is_escape = |tail: &str| tail.starts_with(['0', '1']);
    text.starts_with('/') && text.split('~').skip(1).all(is_escape)
}

/// Returns true for the name of a header (RFC 9110, `token`).
fn is_header(text: &str) -> bool {
    let is_sign = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(is_sign)
}
