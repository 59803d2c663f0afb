//! Paged reading of lists.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::args::Paging;
use super::open::Link;
use crate::exit::Exit;
use crate::fault::Fault;
use windrow_client::{Answer, Request};

/// Number of entries in the largest page.
const PAGE_MAX: usize = 500;

/// One page of the API; items stay as written.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// Entries read from a list.
#[derive(Debug)]
pub struct Listed {
    page: Page,
    /// Original body, if the list came in a single page.
    verbatim: Option<Bytes>,
    /// Node's time. Unit: milliseconds since 1970.
    pub now_ms: i64,
}

impl Listed {
    /// Parses the entries.
    ///
    /// # Errors
    /// Fails if they don't have this type, because the node has another version.
    pub fn things<T: DeserializeOwned>(&self) -> Result<Vec<T>, Fault> {
        let things = self.page.items.iter().map(|raw| serde_json::from_str(raw.get()));
        things.collect::<Result<_, _>>().map_err(|error| {
            let fault = Fault::new(Exit::Failed, "can't read the response", error.to_string());
            fault.hint("use a windrow as new as the node: compare with `windrow version`")
        })
    }

    /// True if the list has more entries.
    pub fn has_more(&self) -> bool {
        self.page.next_cursor.is_some()
    }

    /// Returns one API body, whatever the number of pages.
    ///
    /// # Errors
    /// Only an internal error.
    pub fn json(&self) -> Result<String, Fault> {
        match &self.verbatim {
            Some(body) => Ok(String::from_utf8_lossy(body).into_owned()),
            None => serde_json::to_string(&self.page).map_err(|error| Fault::bug(error.to_string())),
        }
    }

    /// Returns one entry per line.
    pub fn ndjson(&self) -> String {
        // The API writes bodies without line breaks, but a proxy might not.
        self.page
            .items
            .iter()
            .map(|item| item.get().replace(['\n', '\r'], " ") + "\n")
            .collect()
    }
}

impl Link<'_> {
    /// Reads as many pages as `paging` asks for, or a list that has only one.
    ///
    /// # Errors
    /// Same as [`Link::send`].
    pub async fn list(&self, request: Request, paging: Option<&Paging>) -> Result<Listed, Fault> {
        let Some(paging) = paging else {
            let answer = self.send(request).await?;
            return self.page(&answer);
        };
        let ask = async |cursor: Option<&str>, have: usize| {
            let left = paging.wanted().map(|wanted| wanted.saturating_sub(have));
            let limit = left.unwrap_or(PAGE_MAX).min(PAGE_MAX);
            let request = request
                .clone()
                .query("limit", limit)
                .query_option("cursor", cursor);
            self.page(&self.send(request).await?)
        };
        let mut found = ask(None, 0).await?;
        while let Some(cursor) = found.page.next_cursor.clone() {
            if paging
                .wanted()
                .is_some_and(|wanted| found.page.items.len() >= wanted)
            {
                break;
            }
            let page = ask(Some(&cursor), found.page.items.len()).await?.page;
            if page.next_cursor.as_ref() == Some(&cursor) {
                let fault = Fault::new(Exit::Failed, "endless list", "a page refers to itself");
                return Err(fault.hint("report it; --limit N reads fewer pages"));
            }
            found.verbatim = None;
            found.page.items.extend(page.items);
            found.page.next_cursor = page.next_cursor;
        }
        Ok(found)
    }

    /// Reads one page from an answer.
    ///
    /// # Errors
    /// Fails if the answer isn't a page.
    pub fn page(&self, answer: &Answer) -> Result<Listed, Fault> {
        Ok(Listed {
            page: answer.read()?,
            verbatim: Some(answer.body.clone()),
            now_ms: self.now_ms(answer),
        })
    }
}
