//! Scanner that cuts a template into text and placeholders, by the syntax in the parent module's documentation.

use super::{Place, TemplateFault};
use crate::text::quoted;
use windrow_words::request as say;

/// Part of a template.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Text with its escapes resolved.
    Text(String),
    /// Placeholder, with the text between its braces.
    Slot {
        inside: &'a str,
        /// True inside of a JSON string.
        in_string: bool,
    },
}

/// Returns the texts and placeholders in their order.
pub(super) fn tokens(text: &str, place: Place) -> Result<Vec<Token<'_>>, TemplateFault> {
    let mut cutter = Cutter {
        text,
        at: 0,
        is_json: place == Place::Json,
        has_strings: matches!(place, Place::Json | Place::Header),
        is_argument: place == Place::Argument,
        in_string: false,
        plain: String::new(),
        tokens: Vec::new(),
    };
    while let Some(next) = cutter.text[cutter.at..].chars().next() {
        cutter.step(next)?;
    }
    cutter.flush();
    Ok(cutter.tokens)
}

struct Cutter<'a> {
    text: &'a str,
    at: usize,
    is_json: bool,
    /// True if quotes make strings, in which a backslash escapes.
    has_strings: bool,
    /// True if `{}` is a placeholder.
    is_argument: bool,
    in_string: bool,
    plain: String,
    tokens: Vec<Token<'a>>,
}

impl Cutter<'_> {
    fn step(&mut self, next: char) -> Result<(), TemplateFault> {
        let rest = &self.text[self.at + next.len_utf8()..];
        let is_syntax = self.is_json && !self.in_string;
        match next {
            '\\' if self.has_strings && self.in_string => self.take_escape(rest),
            '"' if self.has_strings => {
                self.in_string = !self.in_string;
                self.keep('"');
            }
            '{' if is_syntax && !rest.starts_with(begins_name) => self.keep('{'),
            '}' if is_syntax => self.keep('}'),
            '{' | '}' if !is_syntax && rest.starts_with(next) => {
                self.keep(next);
                self.at += 1;
            }
            '{' => self.take_slot(rest)?,
            '}' => return Err(self.stray('}')),
            other => self.keep(other),
        }
        Ok(())
    }

    fn keep(&mut self, c: char) {
        self.plain.push(c);
        self.at += c.len_utf8();
    }

    /// Keeps a backslash and the character that it escapes together, so that an escaped quote ends no string. A brace
    /// is never escaped by one.
    fn take_escape(&mut self, rest: &str) {
        self.keep('\\');
        if let Some(escaped) = rest.chars().next().filter(|c| !matches!(c, '{' | '}')) {
            self.keep(escaped);
        }
    }

    fn take_slot<'b>(&mut self, rest: &'b str) -> Result<(), TemplateFault>
    where
        Self: 'b,
    {
        let end = rest
            .find(['{', '}', '"', '\\'])
            .filter(|end| rest[*end..].starts_with('}'));
        let is_empty = self.is_argument && rest.starts_with(['}', ':']);
        if !is_empty && !rest.starts_with(begins_name) {
            return Err(self.stray('{'));
        }
        let end = end.ok_or_else(|| self.unclosed())?;
        let from = self.at + 1;
        self.flush();
        let inside = &self.text[from..from + end];
        if inside.chars().any(char::is_control) {
            return Err(TemplateFault(say::placeholder_control(quoted(inside))));
        }
        let in_string = self.in_string;
        self.tokens.push(Token::Slot { inside, in_string });
        self.at = from + end + 1;
        Ok(())
    }

    fn flush(&mut self) {
        if !self.plain.is_empty() {
            self.tokens.push(Token::Text(std::mem::take(&mut self.plain)));
        }
    }

    /// Quotes the beginning of the rest.
    fn shown(&self) -> String {
        let shown: String = self.text[self.at..].chars().take(20).collect();
        quoted(&shown).to_string()
    }

    fn unclosed(&self) -> TemplateFault {
        TemplateFault(say::unclosed_brace(self.shown(), "{", "{{"))
    }

    fn stray(&self, brace: char) -> TemplateFault {
        let escape = format!("{brace}{brace}");
        TemplateFault(say::stray_brace(
            self.shown(),
            brace.to_string(),
            escape,
            "{name}",
        ))
    }
}

fn begins_name(c: char) -> bool {
    !(c.is_whitespace() || c.is_control() || matches!(c, '"' | '\\' | '{' | '}' | ':'))
}
