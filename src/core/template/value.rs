//! Writing of one value into its place.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::value::RawValue;

use super::placeholder::{Conversion, Placeholder, Source};
use super::{MASK, Spot, ValueFault, encoded, is_no_header, xml};

/// Fault of a string with a lone surrogate: JSON allows one, but UTF-8 doesn't (RFC 3629, section 3).
pub(super) const NO_TEXT: &str = "has a lone surrogate (\\ud800 to \\udfff), which no text can have";

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
            let what = "has a NUL character, and no program can be given one";
            return Err(fault(placeholder, what));
        }
        Spot::Argument => out.push_str(&text),
        Spot::Header => put_without(is_no_header, "no header may have", &text, placeholder, out)?,
        Spot::Quoted => {
            let ends = |c| is_no_header(c) || matches!(c, '"' | '\\');
            put_without(
                ends,
                "would end or escape the quotes around it",
                &text,
                placeholder,
                out,
            )?;
        }
        Spot::Cookie => put_without(
            is_no_cookie,
            "no cookie's value may have",
            &text,
            placeholder,
            out,
        )?,
        Spot::Xml => xml::escape(&text, out).map_err(|ValueFault(what)| fault(placeholder, &what))?,
        Spot::JsonText | Spot::JsonValue => escaped(&text, out),
    }
    Ok(())
}

/// Appends a text, or fails if it has a character with a special meaning in its place.
fn put_without(
    is_wrong: impl Fn(char) -> bool,
    which: &str,
    text: &str,
    placeholder: &Placeholder,
    out: &mut String,
) -> Result<(), ValueFault> {
    if let Some(wrong) = text.chars().find(|c| is_wrong(*c)) {
        return Err(fault(
            placeholder,
            &format!("has the character {wrong:?}, which {which}"),
        ));
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
    let refused = |what: &str| Err(fault(placeholder, what));
    let string = |raw| string(raw).ok_or_else(|| fault(placeholder, NO_TEXT));
    match (raw.as_bytes().first(), conversion) {
        (Some(b'"'), None | Some(Conversion::Text)) => string(raw),
        (Some(b'"'), Some(conversion)) => {
            let text = string(raw)?;
            Ok(Cow::Owned(read(&text, conversion, placeholder)?.to_owned()))
        }
        (_, Some(Conversion::Json)) => Ok(Cow::Borrowed(raw)),
        (Some(b'n'), _) => refused("is null"),
        (Some(b'{' | b'['), None) => refused("is an object or a list; {…:json} writes its JSON"),
        (Some(b'{' | b'['), Some(Conversion::Number)) => refused("is no number"),
        (Some(b't' | b'f'), Some(Conversion::Number)) => refused("is no number"),
        (Some(b't' | b'f'), Some(Conversion::Boolean)) => Ok(Cow::Borrowed(raw)),
        (_, Some(Conversion::Boolean)) => refused("is neither true nor false"),
        _ => Ok(Cow::Borrowed(raw)),
    }
}

/// Returns the value that a text contains, as JSON.
fn read<'a>(text: &'a str, conversion: Conversion, placeholder: &Placeholder) -> Result<&'a str, ValueFault> {
    let json = || serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get);
    let (read, what) = match conversion {
        Conversion::Text => (Some(text), ""),
        Conversion::Json => (json(), "is no JSON"),
        Conversion::Number => {
            let begins = |raw: &&str| raw.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            (json().filter(begins), "is no number")
        }
        Conversion::Boolean => {
            let is = |word: &str| text.trim().eq_ignore_ascii_case(word);
            let read = match (is("true") || is("1"), is("false") || is("0")) {
                (true, _) => Some("true"),
                (_, true) => Some("false"),
                _ => None,
            };
            (read, "is neither true nor false, 1 nor 0")
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
pub(super) fn fault(placeholder: &Placeholder, what: &str) -> ValueFault {
    let whose = match &placeholder.source {
        Source::Member(member) => format!("{:?} of this item's data", member.written()),
        Source::Only => "the only value of this item's data".to_owned(),
        Source::Index => "the index".to_owned(),
        Source::Key => "the key".to_owned(),
        Source::Attempt => "the attempt".to_owned(),
        Source::Param(name) => format!("the parameter {name:?}"),
        Source::Secret(name) => format!("the secret {name:?}"),
    };
    ValueFault(format!("{whose} {what}"))
}
