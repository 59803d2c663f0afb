//! Body formats by content type: the escaping of values in each, and the formats in which it isn't possible.

use super::Place;
use super::request::BodyKind;
use windrow_words::{Message, request as say};

/// Format that a content type names, as far as item values need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Form,
    Xml,
    /// Text without special characters.
    Plain,
    /// Format whose escaping rules aren't known here.
    Other,
}

/// Returns the place of the values in a body.
///
/// # Errors
/// Returns a message if, with this content type, a value could mean more than itself.
pub(super) fn place_of(kind: BodyKind, content_type: Option<&str>, body: &str) -> Result<Place, Message> {
    let shown = format!("{:?}", content_type.unwrap_or_default());
    let format = content_type.map(self::format);
    match (kind, format) {
        (BodyKind::Json, Some(Format::Xml | Format::Form))
        | (BodyKind::Form, Some(Format::Json | Format::Xml)) => Err(say::other_type(shown)),
        (BodyKind::Json, _) => Ok(Place::Json),
        (BodyKind::Form, _) | (BodyKind::Text, Some(Format::Form)) => Ok(Place::Form),
        (BodyKind::Text, Some(Format::Xml)) => Ok(Place::Xml),
        (BodyKind::Text, None) if body.trim_start().starts_with("<?xml") => Ok(Place::Xml),
        (BodyKind::Text, None | Some(Format::Plain)) => Ok(Place::Text),
        (BodyKind::Text, Some(Format::Json)) => Err(say::json_as_text()),
        (BodyKind::Text, Some(Format::Other)) => Err(say::unknown_escapes(shown)),
    }
}

fn format(content_type: &str) -> Format {
    let essence = content_type.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    let is = |name: &str| essence.ends_with(&format!("/{name}")) || essence.ends_with(&format!("+{name}"));
    match essence.as_str() {
        "application/x-www-form-urlencoded" => Format::Form,
        "text/plain" | "application/octet-stream" => Format::Plain,
        _ if is("json") => Format::Json,
        _ if is("xml") => Format::Xml,
        _ => Format::Other,
    }
}
