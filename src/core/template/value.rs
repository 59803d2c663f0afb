//! Writing of one value into its place.

use std::borrow::Cow;
use std::fmt::Write as _;
use windrow_words::{Message, request as say};

use serde_json::value::RawValue;

use super::placeholder::{Conversion, Placeholder, Source};
use super::{MASK, Spot, ValueFault, encoded, is_no_header, xml};

/// Returns the fault of a string with a lone surrogate: JSON allows one, but UTF-8 doesn't (RFC 3629, section 3).
pub(super) fn no_text() -> Message {
    say::lone_surrogate(r"\ud800 to \udfff")
}

/// Value before its conversion.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    /// JSON of the item's data or of the task's parameters.
    Json(&'a RawValue),
    Number(u64),
    Text(&'a str),
}

/// Appends a value to `out`, encoded for its place.
pub(super) fn write(
    value: Value<'_>,
    placeholder: &Placeholder,
    spot: Spot,
    out: &mut String,
) -> Result<(), ValueFault> {
    let conversion = placeholder.conversion;
    if spot == Spot::JsonValue {
        return write_json(value, placeholder, out);
    }
    let text = match value {
        Value::Number(number) => Cow::Owned(number.to_string()),
        Value::Text(text) => match conversion {
            None | Some(Conversion::Text) => Cow::Borrowed(text),
            Some(conversion) => Cow::Owned(read(text, conversion, placeholder)?.to_owned()),
        },
        Value::Json(json) => text_of(json, conversion, placeholder)?,
    };
    match spot {
        Spot::Encoded => encoded(&text, out),
        Spot::Plain => out.push_str(&text),
        Spot::Argument if text.contains('\0') => {
            return Err(fault(placeholder, say::has_nul()));
        }
        Spot::Argument => out.push_str(&text),
        Spot::Header => put_without(is_no_header, say::not_in_header, &text, placeholder, out)?,
        Spot::Quoted => {
            let ends = |c| is_no_header(c) || matches!(c, '"' | '\\');
            put_without(ends, say::ends_quotes, &text, placeholder, out)?;
        }
        Spot::Cookie => put_without(is_no_cookie, say::not_in_cookie, &text, placeholder, out)?,
        Spot::Xml => xml::escape(&text, out).map_err(|what| fault(placeholder, what))?,
        Spot::JsonText | Spot::JsonValue => escaped(&text, out),
    }
    Ok(())
}

/// Appends a text, or fails if it has a character with a special meaning in its place.
fn put_without(
    is_wrong: impl Fn(char) -> bool,
    refused: impl Fn(String) -> Message,
    text: &str,
    placeholder: &Placeholder,
    out: &mut String,
) -> Result<(), ValueFault> {
    if let Some(wrong) = text.chars().find(|c| is_wrong(*c)) {
        return Err(fault(placeholder, refused(format!("{wrong:?}"))));
    }
    out.push_str(text);
    Ok(())
}

/// Returns true if no cookie's value may contain the character (RFC 6265, section 4.1.1): separators of cookies, and
/// all but printable ASCII.
fn is_no_cookie(c: char) -> bool {
    !c.is_ascii_graphic() || matches!(c, '"' | ',' | ';' | '\\')
}

/// Writes the mask in place of a secret.
pub(super) fn write_mask(spot: Spot, out: &mut String) {
    match spot {
        Spot::JsonValue => drop(write!(out, "\"{MASK}\"")),
        _ => out.push_str(MASK),
    }
}

fn write_json(value: Value<'_>, placeholder: &Placeholder, out: &mut String) -> Result<(), ValueFault> {
    let conversion = placeholder.conversion;
    match (value, conversion) {
        (Value::Number(number), Some(Conversion::Text)) => drop(write!(out, "\"{number}\"")),
        (Value::Number(number), _) => drop(write!(out, "{number}")),
        (Value::Text(text), None | Some(Conversion::Text)) => quoted(text, out),
        (Value::Text(text), Some(conversion)) => out.push_str(read(text, conversion, placeholder)?),
        (Value::Json(json), None) => out.push_str(json.get()),
        (Value::Json(json), Some(Conversion::Text)) => {
            quoted(&text_of(json, conversion, placeholder)?, out);
        }
        (Value::Json(json), Some(_)) => out.push_str(&text_of(json, conversion, placeholder)?),
    }
    Ok(())
}

/// Returns a JSON value as text, after its conversion.
fn text_of<'a>(
    json: &'a RawValue,
    conversion: Option<Conversion>,
    placeholder: &Placeholder,
) -> Result<Cow<'a, str>, ValueFault> {
    let raw = json.get();
    let refused = |what| Err(fault(placeholder, what));
    let string = |raw| string(raw).ok_or_else(|| fault(placeholder, no_text()));
    match (raw.as_bytes().first(), conversion) {
        (Some(b'"'), None | Some(Conversion::Text)) => string(raw),
        (Some(b'"'), Some(conversion)) => {
            let text = string(raw)?;
            Ok(Cow::Owned(read(&text, conversion, placeholder)?.to_owned()))
        }
        (_, Some(Conversion::Json)) => Ok(Cow::Borrowed(raw)),
        (Some(b'n'), _) => refused(say::is_null()),
        (Some(b'{' | b'['), None) => refused(say::is_composite("{…:json}")),
        (Some(b'{' | b'['), Some(Conversion::Number)) => refused(say::is_no_number()),
        (Some(b't' | b'f'), Some(Conversion::Number)) => refused(say::is_no_number()),
        (Some(b't' | b'f'), Some(Conversion::Boolean)) => Ok(Cow::Borrowed(raw)),
        (_, Some(Conversion::Boolean)) => refused(say::is_no_boolean()),
        _ => Ok(Cow::Borrowed(raw)),
    }
}

/// Returns the value that a text contains, as JSON.
fn read<'a>(text: &'a str, conversion: Conversion, placeholder: &Placeholder) -> Result<&'a str, ValueFault> {
    let json = || serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get);
    let (read, what) = match conversion {
        Conversion::Text => return Ok(text),
        Conversion::Json => (json(), say::is_no_json()),
        Conversion::Number => {
            let begins = |raw: &&str| raw.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            (json().filter(begins), say::is_no_number())
        }
        Conversion::Boolean => {
            let is = |word: &str| text.trim().eq_ignore_ascii_case(word);
            let read = match (is("true") || is("1"), is("false") || is("0")) {
                (true, _) => Some("true"),
                (_, true) => Some("false"),
                _ => None,
            };
            (read, say::is_no_boolean_text())
        }
    };
    read.ok_or_else(|| fault(placeholder, what))
}

/// Returns the text of a JSON string, or `None` for one with a lone surrogate.
pub(super) fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inside = raw.get(1..raw.len() - 1)?;
    if inside.contains('\\') {
        return serde_json::from_str(raw).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inside))
}

fn quoted(text: &str, out: &mut String) {
    out.push('"');
    escaped(text, out);
    out.push('"');
}

/// Appends the inside of a JSON string.
fn escaped(text: &str, out: &mut String) {
    if text
        .bytes()
        .all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
    {
        return out.push_str(text);
    }
    let json = serde_json::Value::from(text).to_string();
    out.push_str(&json[1..json.len() - 1]);
}

/// Creates a fault. Never shows the values of secrets and of items, because messages are stored.
pub(super) fn fault(placeholder: &Placeholder, what: Message) -> ValueFault {
    let whose = match &placeholder.source {
        Source::Member(member) => say::of_member(format!("{:?}", member.written())),
        Source::Only => say::of_only(),
        Source::Index => say::of_index(),
        Source::Key => say::of_key(),
        Source::Attempt => say::of_attempt(),
        Source::Param(name) => say::of_parameter(format!("{name:?}")),
        Source::Secret(name) => say::of_secret(format!("{name:?}")),
    };
    say::value_is(whose, what).into()
}
