//! View of a text after undoing escapes, with the place of each byte in the source.

use std::borrow::Cow;

/// Bytes of a text after undoing some escapes.
pub(super) struct View<'a> {
    bytes: Cow<'a, [u8]>,
    /// Start and end in the source of each byte; `None` for the source itself.
    spans: Option<Vec<(u32, u32)>>,
}

/// Decoder of one kind of escape: returns the bytes meant by an escape at the beginning of the input, and the
/// escape's length. `None` if nothing is escaped.
type Decoder = fn(&[u8]) -> Option<(Vec<u8>, usize)>;

/// First byte of each kind of escape, with its decoder.
const DECODERS: [(u8, Decoder); 3] = [(b'\\', backslash), (b'%', percent), (b'&', entity)];

impl<'a> View<'a> {
    /// Returns the view of the source as it is.
    pub(super) fn of(bytes: &'a [u8]) -> View<'a> {
        View {
            bytes: Cow::Borrowed(bytes),
            spans: None,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the stretch of the source that a stretch of the view stands for, which must not be empty.
    pub(super) fn source_of(&self, from: usize, to: usize) -> (usize, usize) {
        match &self.spans {
            None => (from, to),
            Some(spans) => (spans[from].0 as usize, spans[to - 1].1 as usize),
        }
    }

    /// Returns the views that undo one more kind of escape each, where there is one.
    pub(super) fn decoded(&self) -> impl Iterator<Item = View<'static>> + '_ {
        DECODERS
            .into_iter()
            .filter_map(|(begin, decode)| self.undone(begin, decode))
    }

    fn undone(&self, begin: u8, decode: Decoder) -> Option<View<'static>> {
        memchr::memchr(begin, &self.bytes)?;
        let (mut bytes, mut spans) = (Vec::with_capacity(self.bytes.len()), Vec::new());
        let (mut at, mut is_changed) = (0, false);
        while let Some(byte) = self.bytes.get(at) {
            let escaped = (*byte == begin).then(|| decode(&self.bytes[at..])).flatten();
            is_changed |= escaped.is_some();
            let (meant, len) = match &escaped {
                Some((meant, len)) => (meant.as_slice(), *len),
                None => (std::slice::from_ref(byte), 1),
            };
            let (from, to) = self.source_of(at, at + len);
            spans.extend(meant.iter().map(|_| (place(from), place(to))));
            bytes.extend_from_slice(meant);
            at += len;
        }
        is_changed.then_some(View {
            bytes: Cow::Owned(bytes),
            spans: Some(spans),
        })
    }
}

/// Converts a position; responses are far shorter than the limit.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Widens a stretch to whole characters and whole backslash escapes, without a bare quote at its ends, so that JSON
/// remains JSON.
pub(super) fn whole(bytes: &[u8], mut from: usize, mut to: usize) -> (usize, usize) {
    let is_within = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    while from > 0 && is_within(from) {
        from -= 1;
    }
    while is_within(to) {
        to += 1;
    }
    (from, to) = (escape_around(bytes, from).0, escape_around(bytes, to).1);
    let is_quote = |at: usize| bytes.get(at) == Some(&b'"') && !is_escaped(bytes, at);
    (
        from + usize::from(is_quote(from)),
        to - usize::from(is_quote(to - 1)),
    )
}

/// Returns true if an odd number of backslashes comes before this byte.
fn is_escaped(bytes: &[u8], at: usize) -> bool {
    let backslashes = bytes[..at].iter().rev().take_while(|byte| **byte == b'\\');
    backslashes.count() % 2 == 1
}

/// Returns the escape that contains a position, or the position alone.
fn escape_around(bytes: &[u8], at: usize) -> (usize, usize) {
    // The longest escape is a surrogate pair.
    for begin in at.saturating_sub(11)..at {
        if bytes[begin] != b'\\' || is_escaped(bytes, begin) {
            continue;
        }
        match backslash(&bytes[begin..]) {
            Some((_, len)) if begin + len > at => return (begin, begin + len),
            _ => {}
        }
    }
    (at, at)
}

/// Decodes an escape of a JSON string, or `\xNN` as programs show bytes.
fn backslash(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let meant = match text.get(1)? {
        letter @ (b'"' | b'\\' | b'/' | b'\'') => *letter,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'x' => return Some((vec![u8::try_from(hex(text.get(2..4)?)?).ok()?], 4)),
        b'u' => return unicode(text),
        _ => return None,
    };
    Some((vec![meant], 2))
}

fn unicode(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let unit = |at: usize| hex(text.get(at..at + 4)?);
    let first = unit(2)?;
    let (code, len) = match first {
        0xd800..0xdc00 => {
            let is_pair = text.get(6..8) == Some(br"\u");
            let second = unit(8).filter(|second| is_pair && (0xdc00..0xe000).contains(second))?;
            (0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
        }
        code => (code, 6),
    };
    Some((utf8(code)?, len))
}

fn percent(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let byte = u8::try_from(hex(text.get(1..3)?)?).ok()?;
    Some((vec![byte], 3))
}

/// Decodes an HTML entity: `&amp;`, `&#47;`, `&#x2F;`.
fn entity(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let end = text.iter().take(12).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(&text[1..end]).ok()?;
    let code = match name {
        "amp" => 38,
        "lt" => 60,
        "gt" => 62,
        "quot" => 34,
        "apos" => 39,
        name => {
            let number = name.strip_prefix('#')?;
            match number.strip_prefix(['x', 'X']) {
                Some(digits) => hex(digits.as_bytes())?,
                None => number.parse().ok()?,
            }
        }
    };
    Some((utf8(code)?, end + 1))
}

fn utf8(code: u32) -> Option<Vec<u8>> {
    let letter = char::from_u32(code)?;
    Some(letter.to_string().into_bytes())
}

fn hex(digits: &[u8]) -> Option<u32> {
    let is_hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u32::from_str_radix(text, 16).ok()
}
