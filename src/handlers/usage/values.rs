//! Values of a call that expressions name: its response, its request, the row of an item.

use std::borrow::Cow;

use hyper::header::HeaderMap;

use crate::classify::Pointer;
use windrow_core::meter::expr::Values;
use windrow_core::meter::row::Row;

/// Values of a call, for one of its items if a row is given.
#[derive(Clone, Copy)]
pub(super) struct CallValues<'a> {
    pub(super) request_bytes: u64,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    pub(super) row: Option<&'a Row>,
}

impl Values for CallValues<'_> {
    fn column(&self, name: &str) -> Option<Cow<'_, str>> {
        self.row?.column(name)
    }

    fn request_bytes(&self) -> Option<u64> {
        Some(self.request_bytes)
    }

    fn answer(&self, pointer: &str) -> Option<Cow<'_, str>> {
        member(self.body, pointer)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Returns the text of a JSON document's member: of a string what it says, of anything else its JSON, so that no digit
/// of a number is lost. `None` for null.
pub(super) fn member<'a>(json: &'a [u8], pointer: &str) -> Option<Cow<'a, str>> {
    let part = Pointer::new(pointer).ok()?.find(json).ok()?;
    match part.first()? {
        b'"' => serde_json::from_slice(part).ok().map(Cow::Owned),
        _ if part == b"null" => None,
        _ => std::str::from_utf8(part).ok().map(Cow::Borrowed),
    }
}
