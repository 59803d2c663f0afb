//! `response_pointer`: JSON pointer (RFC 6901) to the result within a business's usual envelope.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::wire::unmarked;

/// JSON pointer; an empty one means the whole body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pointer {
    tokens: Vec<String>,
}

/// Error for a text that is not a JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a JSON pointer (RFC 6901), such as /data or /reply/0/result")]
pub struct NotAPointer(pub String);

impl Pointer {
    /// Parses a JSON pointer.
    ///
    /// # Errors
    /// Unless the text is empty or begins with `/`, with `~` only in `~0` and `~1`.
    pub fn new(text: &str) -> Result<Pointer, NotAPointer> {
        if text.is_empty() {
            return Ok(Pointer::default());
        }
        let rest = text
            .strip_prefix('/')
            .ok_or_else(|| NotAPointer(text.to_owned()))?;
        let tokens = rest
            .split('/')
            .map(|token| unescape(token).ok_or_else(|| NotAPointer(text.to_owned())));
        Ok(Pointer {
            tokens: tokens.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the part of the body at the pointer, without a byte order mark.
    ///
    /// # Errors
    /// A reason, if the body is not JSON or has no such part.
    pub fn find<'a>(&self, body: &'a [u8]) -> Result<&'a [u8], String> {
        let body = unmarked(body);
        if self.tokens.is_empty() {
            return Ok(body);
        }
        let mut part: &RawValue = serde_json::from_slice(body).map_err(|why| why.to_string())?;
        for (depth, token) in self.tokens.iter().enumerate() {
            part = child(part, token).ok_or_else(|| self.missing(depth))?;
        }
        Ok(part.get().as_bytes())
    }

    fn missing(&self, depth: usize) -> String {
        let path: String = self.tokens[..=depth]
            .iter()
            .map(|token| format!("/{token}"))
            .collect();
        format!("it has no {path}, where the result should be")
    }
}

fn unescape(token: &str) -> Option<String> {
    let is_escape = |tail: &str| tail.starts_with('0') || tail.starts_with('1');
    let fine = token.split('~').skip(1).all(is_escape);
    fine.then(|| token.replace("~1", "/").replace("~0", "~"))
}

fn child<'a>(part: &'a RawValue, token: &str) -> Option<&'a RawValue> {
    if part.get().starts_with('[') {
        let is_number =
            token == "0" || (!token.starts_with('0') && token.bytes().all(|b| b.is_ascii_digit()));
        let at: usize = token.parse().ok().filter(|_| is_number)?;
        return serde_json::from_str::<Vec<&RawValue>>(part.get())
            .ok()?
            .get(at)
            .copied();
    }
    serde_json::from_str::<HashMap<String, &RawValue>>(part.get())
        .ok()?
        .get(token)
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document and answers of RFC 6901, section 5.
    #[test]
    fn the_examples_of_the_rfc_hold() {
        let body =
            br#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
        let table = [
            ("/foo", r#"["bar","baz"]"#),
            ("/foo/0", r#""bar""#),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ];
        for (text, part) in table {
            let found = Pointer::new(text).expect(text).find(body);
            assert_eq!(
                found.map(|found| String::from_utf8_lossy(found).into_owned()),
                Ok(part.to_owned())
            );
        }
        assert_eq!(Pointer::new("").expect("whole").find(body), Ok(&body[..]));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let body = br#"{"data":{"list":[1]}}"#;
        for (text, named) in [
            ("/x", "/x"),
            ("/data/y/z", "/data/y"),
            ("/data/list/1", "/data/list/1"),
            ("/data/list/00", "00"),
        ] {
            let why = Pointer::new(text).expect(text).find(body).expect_err(text);
            assert!(why.contains(&format!("{named}, where")), "{why}");
        }
        assert!(Pointer::new("/data").expect("fine").find(b"<html>").is_err());
    }

    #[test]
    fn bad_pointers_are_refused() {
        for bad in ["data", "data/x", "/a~2", "/a~"] {
            assert!(Pointer::new(bad).is_err(), "{bad}");
        }
    }
}
