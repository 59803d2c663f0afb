//! `GET /v1/events`: what happens, as it happens. A stream that breaks off is taken up again where it ended.

mod sse;

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout};

use self::sse::Reader;
use super::Client;
use super::download::Download;
use super::error::ClientError;
use super::request::Request;

/// Silence after which a stream is taken for broken: a node says something every 15 s. (`ux.md` §2.4.)
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// The wait before a stream is taken up again, until the node names another.
const RETRY_DEFAULT: Duration = Duration::from_secs(2);

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number; the stream goes on after the last one.
    pub id: String,
    /// `snapshot`, `stats`, `status`, `failure`, `log`, `audit`, `node` or `bye`.
    pub event: String,
    /// JSON: `{"topic": …, "data": …}`.
    pub data: String,
}

/// A stream of events that outlives its connections.
#[derive(Debug)]
pub struct Events<'a> {
    client: &'a Client,
    path: String,
    open: Option<Download<'a>>,
    reader: Reader,
    retry: Duration,
    /// Since when there is no connection.
    lost: Option<Instant>,
}

impl Client {
    /// What happens to these topics (`cluster`, `tasks`, `task:t42`, `node:n1`, separated by commas), at most `hz`
    /// batches a second. It connects with the first [`Events::next`].
    pub fn events(&self, topics: &str, hz: u32) -> Events<'_> {
        let path = Request::get("/v1/events").query("topics", topics).query("hz", hz).path;
        Events { client: self, path, open: None, reader: Reader::default(), retry: RETRY_DEFAULT, lost: None }
    }
}

impl Events<'_> {
    /// The next event. Not cancel safe while it connects: an attempt that is dropped is begun anew.
    ///
    /// # Errors
    /// When the node refuses, or can't be reached for as long as a request may take.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            if let Some(event) = self.reader.event() {
                return Ok(event);
            }
            if let Some(retry) = self.reader.retry() {
                self.retry = retry;
            }
            match self.read().await {
                Ok(Some(bytes)) => self.reader.push(&bytes).map_err(|why| self.strange(why))?,
                Ok(None) => self.lose().await,
                Err(error) if error.is_passing() && self.has_hope() => {
                    self.client.tap.note(&format!("{error}; again in {} ms", self.retry.as_millis()));
                    self.lose().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn read(&mut self) -> Result<Option<Bytes>, ClientError> {
        if self.open.is_none() {
            let mut request = Request::get(&self.path).accept("text/event-stream");
            if let Some(last) = self.reader.last_id() {
                request = request.header("last-event-id", last);
            }
            self.open = Some(self.client.download(request).await?);
        }
        let Some(open) = &mut self.open else { return Ok(None) };
        // Silence longer than a request may take is no fault of a stream; longer than its keep-alive is.
        let chunk = timeout(SILENCE_MAX, open.piece()).await.unwrap_or(Ok(None))?;
        if chunk.is_some() {
            self.lost = None;
        }
        Ok(chunk)
    }

    /// Whether it was connected not long ago.
    fn has_hope(&self) -> bool {
        self.lost.is_none_or(|since| since.elapsed() < self.client.timeout)
    }

    async fn lose(&mut self) {
        self.open = None;
        self.reader.forget_half();
        self.lost.get_or_insert_with(Instant::now);
        sleep(self.retry).await;
    }

    fn strange(&self, why: String) -> ClientError {
        ClientError::NotWindrow { server: self.client.server().to_owned(), why }
    }
}
