//! Bytes of programs and APIs as text: invalid UTF-8 is never changed silently.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use windrow_core::items::output::Output;

/// Byte order mark that some programs put before UTF-8 (RFC 3629, section 6); not part of the text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Strips the byte order mark from the beginning of bytes.
pub(crate) fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK).unwrap_or(bytes)
}

/// Names the byte order mark at the beginning of bytes, for people.
pub(crate) fn mark_of(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xef, 0xbb, 0xbf, ..] => Some("a byte order mark (EF BB BF)"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("a byte order mark of UTF-16"),
        _ => None,
    }
}

/// Converts bytes to text for people; a byte that is not UTF-8 becomes `\xNN`.
pub(crate) fn shown(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02X}"));
        }
    }
    Cow::Owned(text)
}

/// Converts bytes to an output: a text, or base64 if they are not one, so that they can be recovered.
pub(crate) fn output_of(bytes: &[u8]) -> Output {
    match std::str::from_utf8(bytes) {
        Ok(text) => Output::of_text(text),
        Err(_) => Output::of_json(&format!("{{\"base64\":\"{}\"}}", STANDARD.encode(bytes))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_stay_apart() {
        assert_eq!(shown(b"caf\xe9\xe9!"), "caf\\xE9\\xE9!");
        assert_eq!(shown("café".as_bytes()), "café");
        assert_eq!(output_of(b"ok"), Output::of_json("\"ok\""));
        assert_eq!(output_of(b"caf\xe9"), Output::of_json(r#"{"base64":"Y2Fm6Q=="}"#));
        assert_ne!(output_of(b"caf\xe9"), output_of(b"caf\xe8"));
    }
}
