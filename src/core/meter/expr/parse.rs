//! Parser of expressions: one pass by precedence that writes the program in postfix order.

use windrow_words::{Message, meter as say};

use super::program::{Op, Step};
use super::ratio::Ratio;
use super::source::{Kind, Source};
use super::{BYTES_MAX, DEPTH_MAX, ExprError, NODES_MAX};
use crate::meter::amount::Amount;
use crate::meter::unit::Unit;
use crate::text::quoted;

/// Examples of values, by the kind of the expression.
const VALUES: &str = "300, {column:number}";
const VALUES_OF_PRICES: &str = "0.15, {tokens}";

/// Parser with the program that it has written so far.
struct Parser<'a> {
    text: &'a str,
    at: usize,
    kind: Kind,
    depth: usize,
    steps: Vec<Step>,
}

/// Parses an expression that begins at this byte of the text and ends with it.
pub(super) fn steps(text: &str, at: usize, kind: Kind) -> Result<Vec<Step>, ExprError> {
    let mut parser = Parser {
        text,
        at,
        kind,
        depth: 0,
        steps: Vec::new(),
    };
    if text.len() > BYTES_MAX {
        return Err(parser.fault(say::too_long(), say::bytes_most(BYTES_MAX)));
    }
    parser.sum()?;
    match parser.peek() {
        None => Ok(parser.steps),
        Some(_) => Err(parser.unexpected(say::wants_operator("+ - * /"))),
    }
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Result<(), ExprError> {
        self.product()?;
        while let Some(op) = self.take_operator([('+', Op::Plus), ('-', Op::Minus)]) {
            self.product()?;
            self.push(Step::Op(op))?;
        }
        Ok(())
    }

    fn product(&mut self) -> Result<(), ExprError> {
        self.value()?;
        while let Some(op) = self.take_operator([('*', Op::Times), ('/', Op::Over)]) {
            self.value()?;
            self.push(Step::Op(op))?;
        }
        Ok(())
    }

    fn value(&mut self) -> Result<(), ExprError> {
        match self.peek() {
            Some('(') => self.nested(Parser::sum),
            Some('{') => self.reference(),
            Some(c) if c.is_ascii_digit() => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.word(),
            Some('-' | '+') => Err(self.unexpected(say::no_negative("0 - 5"))),
            _ => Err(self.unexpected(self.wants_value())),
        }
    }

    /// Parses what stands in parentheses, of which the first is the next character.
    fn nested(&mut self, inside: fn(&mut Self) -> Result<(), ExprError>) -> Result<(), ExprError> {
        if self.depth == DEPTH_MAX {
            return Err(self.fault(say::too_deep(), say::depth_most(DEPTH_MAX)));
        }
        self.depth += 1;
        self.at += 1;
        inside(self)?;
        if self.peek() != Some(')') {
            return Err(self.unexpected(say::wants_close()));
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    fn reference(&mut self) -> Result<(), ExprError> {
        let rest = &self.text[self.at + 1..];
        let end = rest.find(['{', '}']).filter(|end| rest[*end..].starts_with('}'));
        let end = end.ok_or_else(|| self.fault(say::unclosed(), say::wants_brace("}")))?;
        let source = Source::parse(&rest[..end], self.kind);
        let source = source.map_err(|(what, why)| self.fault(what, why))?;
        self.push(Step::Value(source))?;
        self.at += end + 2;
        Ok(())
    }

    fn number(&mut self) -> Result<(), ExprError> {
        let word = self.word_here(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        let number = Amount::parse(word)
            .map(Ratio::from)
            .ok_or_else(|| self.fault(say::no_number(quoted(word)), say::number_form("0.15, 90k, 1.5M")))?;
        self.push(Step::Number(number))?;
        self.at += word.len();
        Ok(())
    }

    /// Parses a function, or in a price the bare name of a meter.
    fn word(&mut self) -> Result<(), ExprError> {
        let word = self.word_here(|c| c.is_ascii_alphanumeric() || c == '_');
        let function = match word {
            "min" => Some(Parser::least as fn(&mut Self) -> _),
            "max" => Some(Parser::most as fn(&mut Self) -> _),
            _ => None,
        };
        if let Some(function) = function {
            self.at += word.len();
            if self.peek() != Some('(') {
                return Err(self.unexpected(say::wants_open(word)));
            }
            return self.nested(function);
        }
        if self.kind != Kind::Price {
            let example = format!("{{{word}:number}}");
            return Err(self.fault(say::unexpected(quoted(word)), say::bare_column(example)));
        }
        let unit = Unit::parse(word)
            .ok_or_else(|| self.fault(say::no_reference(quoted(word)), say::only_meters()))?;
        self.push(Step::Value(Source::Meter(unit)))?;
        self.at += word.len();
        Ok(())
    }

    fn least(&mut self) -> Result<(), ExprError> {
        self.arguments("min", Op::Least)
    }

    fn most(&mut self) -> Result<(), ExprError> {
        self.arguments("max", Op::Most)
    }

    fn arguments(&mut self, function: &'static str, op: Op) -> Result<(), ExprError> {
        self.sum()?;
        if self.peek() != Some(',') {
            return Err(self.unexpected(say::wants_comma(function)));
        }
        while self.peek() == Some(',') {
            self.at += 1;
            self.sum()?;
            self.push(Step::Op(op))?;
        }
        Ok(())
    }

    fn push(&mut self, step: Step) -> Result<(), ExprError> {
        if self.steps.len() == NODES_MAX {
            return Err(self.fault(say::too_many_nodes(), say::nodes_most(NODES_MAX)));
        }
        self.steps.push(step);
        Ok(())
    }

    /// Returns the next character that is no white space, and moves to it.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at = self.text.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take_operator(&mut self, of: [(char, Op); 2]) -> Option<Op> {
        let next = self.peek()?;
        let (sign, op) = of.into_iter().find(|(sign, _)| *sign == next)?;
        self.at += sign.len_utf8();
        Some(op)
    }

    /// Returns the characters from here on that make a word.
    fn word_here(&self, is_part: fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
    }

    fn wants_value(&self) -> Message {
        say::wants_value(if self.kind == Kind::Price {
            VALUES_OF_PRICES
        } else {
            VALUES
        })
    }

    /// Faults the next character, or the end of the text.
    fn unexpected(&self, why: Message) -> ExprError {
        let what = match self.text[self.at..].chars().next() {
            Some(next) => say::unexpected(quoted(&next.to_string())),
            None => say::ends(),
        };
        self.fault(what, why)
    }

    fn fault(&self, what: Message, why: Message) -> ExprError {
        ExprError::new(self.text, self.at, what, why)
    }
}
