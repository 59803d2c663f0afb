//! Position of placeholders in XML. Values are written only into text and into quoted attribute values: anywhere else
//! a value could change the markup, or nothing could be escaped.

use super::TemplateFault;
use windrow_words::{Message, request as say};

/// Start of a section in which nothing can be escaped, after its `<`.
const COMMENT: &str = "!--";
const CDATA: &str = "![CDATA[";

/// Reader of a template's fixed text that tracks the position after each part.
#[derive(Debug, Default)]
pub(super) struct Reader {
    at: At,
    /// True after an `&` whose `;` has not come.
    in_reference: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Text,
    /// After `<`, with the characters since then, as long as a comment or CDATA may begin.
    Opening(String),
    /// Between the name of an element and its `>`.
    Tag,
    /// In the value of an attribute, up to this quote.
    Value(char),
    /// In a section with this end, with its last characters.
    Verbatim { end: &'static str, tail: String },
    /// In `<!DOCTYPE …>`, with the depth of its brackets.
    Declaration(u32),
}

impl Reader {
    /// Reads the next part of the fixed text.
    pub(super) fn read(&mut self, text: &str) {
        for c in text.chars() {
            self.step(c);
        }
    }

    fn step(&mut self, c: char) {
        self.in_reference = match c {
            '&' => true,
            _ => self.in_reference && (c.is_alphanumeric() || "#_.:-".contains(c)),
        };
        self.at = match std::mem::take(&mut self.at) {
            At::Text if c == '<' => At::Opening(String::new()),
            At::Text => At::Text,
            At::Opening(begun) => opened(begun, c),
            At::Tag => in_tag(c),
            At::Value(quote) if c == quote => At::Tag,
            At::Value(quote) => At::Value(quote),
            At::Verbatim { end, mut tail } => {
                tail.push(c);
                match tail.ends_with(end) {
                    true => At::Text,
                    false => At::Verbatim {
                        end,
                        tail: last_of(&tail),
                    },
                }
            }
            At::Declaration(depth) => match c {
                '[' => At::Declaration(depth + 1),
                ']' => At::Declaration(depth.saturating_sub(1)),
                '>' if depth == 0 => At::Text,
                _ => At::Declaration(depth),
            },
        };
    }

    /// Refuses a placeholder where no value can be escaped.
    pub(super) fn check_slot(&self) -> Result<(), TemplateFault> {
        let place = match &self.at {
            _ if self.in_reference => say::in_reference(),
            At::Text | At::Value(_) => return Ok(()),
            At::Opening(_) | At::Tag => say::in_tag(),
            At::Verbatim { end: "-->", .. } => say::in_comment(),
            At::Verbatim { end: "]]>", .. } => say::in_cdata(),
            At::Verbatim { .. } => say::in_instruction(),
            At::Declaration(_) => say::in_declaration(),
        };
        Err(TemplateFault(say::slot_in_xml(place)))
    }

    /// Refuses a template that doesn't end in plain text.
    pub(super) fn check_end(&self) -> Result<(), TemplateFault> {
        match self.at {
            At::Text => Ok(()),
            _ => Err(TemplateFault(say::open_xml())),
        }
    }
}

fn opened(mut begun: String, c: char) -> At {
    begun.push(c);
    let verbatim = |end| At::Verbatim {
        end,
        tail: String::new(),
    };
    match begun.as_str() {
        COMMENT => verbatim("-->"),
        CDATA => verbatim("]]>"),
        "?" => verbatim("?>"),
        one if COMMENT.starts_with(one) || CDATA.starts_with(one) => At::Opening(begun),
        one if one.starts_with('!') => At::Declaration(0),
        _ => in_tag(c),
    }
}

fn in_tag(c: char) -> At {
    match c {
        '>' => At::Text,
        '"' | '\'' => At::Value(c),
        _ => At::Tag,
    }
}

/// Returns the last two characters, enough to recognize an end of three.
fn last_of(tail: &str) -> String {
    let skipped = tail.chars().count().saturating_sub(2);
    tail.chars().skip(skipped).collect()
}

/// Escapes a value so that it means only itself, in text and in attributes. White space is escaped because an
/// attribute would turn it into blanks.
pub(super) fn escape(text: &str, out: &mut String) -> Result<(), Message> {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                return Err(say::not_in_xml(format!("{c:?}")));
            }
            c => out.push(c),
        }
    }
    Ok(())
}
