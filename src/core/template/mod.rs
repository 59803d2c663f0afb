//! Templates of requests: text with placeholders that an item's data fills. Each value is encoded for its place, so
//! that no value can ever mean more than itself.
//!
//! | place | a value becomes |
//! |---|---|
//! | path, query, form | percent-encoded: all but letters, digits and `-._~` |
//! | header | itself; refused with a control character (CR, LF, NUL …), inside of quotes with `"` or `\` |
//! | `cookie` | itself; refused with a character that no cookie's value may have (`;`, a blank, `"` …) |
//! | JSON, outside of quotes | a JSON value: a text is quoted, a number, object … stays what it is |
//! | JSON, inside of quotes | the inside of a JSON string |
//! | XML, in text or a quoted attribute | with `&`, `<`, `>`, quotes and white space as references; elsewhere no placeholder may stand |
//! | plain text | itself |
//! | argument of a program | itself; refused with NUL |
//!
//! **Syntax.** A placeholder is `{name}` or `{name:conversion}`. A name begins with anything but a blank, a quote, a
//! brace, and contains no quote, backslash, brace or control character. In all places but JSON outside of quotes,
//! `{{` and `}}` are one literal brace each, and any other brace outside a placeholder is refused. In JSON outside of
//! quotes, a `{` that is followed by a blank, a quote or `}` is JSON's own, as is every `}`; there is no escape,
//! since JSON needs none there. In an argument, `{}` is the only value of the item's row, or the index if items are
//! only counted.
//!
//! A template is parsed once; filling it is one pass over its pieces. Values that are the same for all items
//! (parameters, secrets) are bound before the first one.

mod item;
mod media;
mod placeholder;
pub mod program;
pub mod request;
mod scan;
mod url;
mod value;
mod xml;

use crate::text::quoted;
use std::collections::BTreeMap;
use windrow_words::{Message, request as say};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::value::RawValue;

pub use item::{Item, Member, Roots};
pub use placeholder::{Conversion, Placeholder, Source};
pub use url::UrlTemplate;

/// Text shown to people in place of a secret.
pub const MASK: &str = "••••";
/// Code of an item whose data can't fill its template.
pub const TEMPLATE_VALUE: &str = "TEMPLATE_VALUE";

/// All characters except the unreserved ones of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Place of a text, which determines how values are written into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Segment of a URL's path.
    Path,
    /// Query of a URL.
    Query,
    /// Value of a header.
    Header,
    /// Value of the header `cookie`.
    Cookie,
    /// Body or value in JSON.
    Json,
    /// Form body: `application/x-www-form-urlencoded`, percent-encoded.
    Form,
    /// Body in XML format.
    Xml,
    /// Text without special characters.
    Text,
    /// Argument of a program.
    Argument,
}

/// Error for a text that is not a valid template.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateFault(pub Message);

/// Reason why an item's data can't fill a template; it names the column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueFault(pub String);

impl From<Message> for ValueFault {
    fn from(what: Message) -> ValueFault {
        ValueFault(what.to_string())
    }
}

/// Values that are the same for all items of a run.
#[derive(Clone, Copy, Debug)]
pub struct Constants<'a> {
    /// Parameters of the task, a JSON object.
    pub params: Option<&'a RawValue>,
    /// Secrets by their names.
    pub secrets: &'a Secrets,
    /// True if secrets are replaced by [`MASK`].
    pub is_masked: bool,
}

/// Secrets by their names. Debug output shows only the names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(pub BTreeMap<String, String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Parsed text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Slot(Slot),
}

/// Placeholder with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slot {
    placeholder: Placeholder,
    spot: Spot,
}

/// Way in which a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    Encoded,
    Header,
    /// Inside of quotes in a header.
    Quoted,
    Cookie,
    Xml,
    Plain,
    Argument,
    JsonValue,
    JsonText,
}

impl Template {
    /// Parses a template; the item members that it names are numbered in `roots`.
    ///
    /// # Errors
    /// Fails if braces are wrong, or if the filled template can't be valid in its place.
    pub fn parse(text: &str, place: Place, roots: &mut Roots) -> Result<Template, TemplateFault> {
        let mut pieces = Vec::new();
        for token in scan::tokens(text, place)? {
            pieces.push(match token {
                scan::Token::Text(text) => Piece::Text(literal(text, place)?),
                scan::Token::Slot { inside, in_string } => {
                    let placeholder = Placeholder::parse(inside, place, roots)?;
                    let spot = spot(place, in_string, &placeholder);
                    Piece::Slot(Slot { placeholder, spot })
                }
            });
        }
        let template = Template { pieces };
        match place {
            Place::Json => template.check_json()?,
            Place::Xml if !template.is_constant() => template.check_xml()?,
            _ => {}
        }
        Ok(template)
    }

    /// Checks that placeholders are only where a value can be escaped.
    fn check_xml(&self) -> Result<(), TemplateFault> {
        let mut reader = xml::Reader::default();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => reader.read(text),
                Piece::Slot(_) => reader.check_slot()?,
            }
        }
        reader.check_end()
    }

    /// Iterates over the placeholders of the template.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Slot(slot) => Some(&slot.placeholder),
        })
    }

    /// Returns true if the text is the same for all items.
    pub fn is_constant(&self) -> bool {
        self.placeholders().next().is_none()
    }

    /// Returns the text without the placeholders.
    pub(super) fn text(&self) -> String {
        let texts = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Slot(_) => None,
        });
        texts.collect()
    }

    /// Returns the first placeholder if the template begins with it.
    pub(super) fn leading(&self) -> Option<&Placeholder> {
        match self.pieces.first() {
            Some(Piece::Slot(slot)) => Some(&slot.placeholder),
            _ => None,
        }
    }

    /// Returns the template with the constant values written in.
    ///
    /// # Errors
    /// Fails if a parameter or a secret is missing, or doesn't fit its place.
    pub fn bind(&self, constants: Constants<'_>) -> Result<Template, ValueFault> {
        let mut pieces: Vec<Piece> = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            let bound = match piece {
                Piece::Slot(slot) => slot.bound(constants)?,
                Piece::Text(text) => Some(text.clone()),
            };
            match (bound, pieces.last_mut()) {
                (None, _) => pieces.push(piece.clone()),
                (Some(text), Some(Piece::Text(before))) => before.push_str(&text),
                (Some(text), _) => pieces.push(Piece::Text(text)),
            }
        }
        Ok(Template { pieces })
    }

    /// Appends the text for an item to `out`.
    ///
    /// # Errors
    /// Fails if the item's data can't fill the template; `out` then holds a part of it.
    pub fn render(&self, item: &Item<'_>, out: &mut String) -> Result<(), ValueFault> {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Slot(slot) => slot.render(item, out)?,
            }
        }
        Ok(())
    }

    /// Checks that the text is JSON with any values filled in. `null` fits wherever a value does and nowhere else;
    /// `x` fits in any string.
    fn check_json(&self) -> Result<(), TemplateFault> {
        let mut sample = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => sample.push_str(text),
                Piece::Slot(slot) if slot.spot == Spot::JsonText => sample.push('x'),
                Piece::Slot(_) => sample.push_str("null"),
            }
        }
        match serde_json::from_str::<serde::de::IgnoredAny>(&sample) {
            Ok(_) => Ok(()),
            Err(why) => Err(TemplateFault(say::not_json_filled(
                why.to_string(),
                r#"{"qty": {qty:number}}"#,
                r#"{"note": "to {name}"}"#,
            ))),
        }
    }
}

impl Slot {
    /// Returns the text of a value that is the same for all items; `None` for others.
    fn bound(&self, constants: Constants<'_>) -> Result<Option<String>, ValueFault> {
        let (mut out, placeholder) = (String::new(), &self.placeholder);
        match &placeholder.source {
            Source::Param(name) => {
                let found = constants.params.and_then(|params| item::member(params, name));
                let found = found.ok_or_else(|| say::no_parameter(quoted(name)))?;
                value::write(value::Value::Json(found), placeholder, self.spot, &mut out)?;
            }
            Source::Secret(name) => {
                let secret = constants.secrets.0.get(name);
                let secret = secret.ok_or_else(|| say::no_secret(quoted(name)))?;
                if constants.is_masked {
                    value::write_mask(self.spot, &mut out);
                } else {
                    value::write(value::Value::Text(secret), placeholder, self.spot, &mut out)?;
                }
            }
            Source::Member(_) | Source::Only | Source::Index | Source::Key | Source::Attempt => {
                return Ok(None);
            }
        }
        Ok(Some(out))
    }

    fn render(&self, item: &Item<'_>, out: &mut String) -> Result<(), ValueFault> {
        let placeholder = &self.placeholder;
        let value = match &placeholder.source {
            Source::Member(member) => value::Value::Json(item.member(member)?),
            Source::Only => item
                .only()?
                .map_or(value::Value::Number(item.index), value::Value::Json),
            Source::Index => value::Value::Number(item.index),
            Source::Attempt => value::Value::Number(u64::from(item.attempt)),
            Source::Key => value::Value::Text(item.key),
            Source::Param(name) | Source::Secret(name) => {
                return Err(say::not_bound(quoted(name)).into());
            }
        };
        value::write(value, placeholder, self.spot, out)
    }
}

fn spot(place: Place, in_string: bool, placeholder: &Placeholder) -> Spot {
    match place {
        Place::Path | Place::Query | Place::Form => Spot::Encoded,
        // The caller decides on the content of a secret: it may be all cookies, as a browser shows them.
        Place::Header | Place::Cookie if matches!(placeholder.source, Source::Secret(_)) => Spot::Header,
        Place::Cookie => Spot::Cookie,
        Place::Header if in_string => Spot::Quoted,
        Place::Header => Spot::Header,
        Place::Xml => Spot::Xml,
        Place::Text => Spot::Plain,
        Place::Argument => Spot::Argument,
        Place::Json if in_string => Spot::JsonText,
        Place::Json => Spot::JsonValue,
    }
}

/// Checks and encodes the text between placeholders for its place.
fn literal(text: String, place: Place) -> Result<String, TemplateFault> {
    match place {
        Place::Path | Place::Query | Place::Form => url::literal(&text),
        Place::Header | Place::Cookie if text.chars().any(is_no_header) => {
            Err(TemplateFault(say::header_control()))
        }
        Place::Argument if text.contains('\0') => Err(TemplateFault(say::text_nul())),
        _ => Ok(text),
    }
}

/// Returns true if no header may contain the character: control characters except the tab.
fn is_no_header(c: char) -> bool {
    c.is_ascii_control() && c != '\t'
}

/// Encodes a value so that it means only itself in a URL or a form.
fn encoded(text: &str, out: &mut String) {
    out.extend(utf8_percent_encode(text, ENCODED));
}

/// Encodes a text as a template writes it into a URL.
pub fn url_encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Returns the first text that looks like a placeholder in a URL that is called unchanged. Literal braces are written
/// `%7B` and `%7D`.
pub fn unfilled(url: &str) -> Option<&str> {
    let rest = &url[url.find('{')?..];
    rest.find('}').map(|end| &rest[..=end])
}

#[cfg(test)]
mod tests;
