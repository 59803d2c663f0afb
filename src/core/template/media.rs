//! Body formats by content type: the escaping of values in each, and the formats in which it isn't possible.

use super::Place;
use super::request::BodyKind;

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
/// Returns a sentence for people if, with this content type, a value could mean more than itself.
pub(super) fn place_of(kind: BodyKind, content_type: Option<&str>, body: &str) -> Result<Place, String> {
    let format = content_type.map(format);
    match (kind, format) {
        (BodyKind::Json, Some(Format::Xml | Format::Form))
        | (BodyKind::Form, Some(Format::Json | Format::Xml)) => Err(format!(
            "it is not what content-type {:?} says; change one of them",
            content_type.unwrap_or_default()
        )),
        (BodyKind::Json, _) => Ok(Place::Json),
        (BodyKind::Form, _) | (BodyKind::Text, Some(Format::Form)) => Ok(Place::Form),
        (BodyKind::Text, Some(Format::Xml)) => Ok(Place::Xml),
        (BodyKind::Text, None) if body.trim_start().starts_with("<?xml") => Ok(Place::Xml),
        (BodyKind::Text, None | Some(Format::Plain)) => Ok(Place::Text),
        (BodyKind::Text, Some(Format::Json)) => Err(
            "content-type says that it is JSON: give it as `json`, so that values are written as JSON"
                .to_owned(),
        ),
        (BodyKind::Text, Some(Format::Other)) => Err(format!(
            "windrow doesn't know how a value is escaped in {:?}, so it could mean more than itself; bodies with values are \
             JSON, a form, XML or text/plain, and a program (--each, a worker) can send any other",
            content_type.unwrap_or_default()
        )),
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
