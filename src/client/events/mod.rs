//! `GET /v1/events`: live events. A stream that breaks is resumed where it ended.

mod sse;

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout};

use self::sse::Reader;
use super::Client;
use super::download::Download;
use super::error::ClientError;
use super::request::Request;

/// Silence after which a stream counts as broken; a node sends something every 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// Wait before a stream is resumed, until the node sends another value.
const RETRY_DEFAULT: Duration = Duration::from_secs(2);

/// An event of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Event number; a resumed stream continues after the last one received.
    pub id: String,
    /// `snapshot`, `stats`, `status`, `handler`, `failure`, `log`, `audit`, `node` or `bye`.
    pub event: String,
    /// JSON: `{"topic": …, "data": …}`.
    pub data: String,
}

/// Event stream that survives broken connections.
#[derive(Debug)]
pub struct Events<'a> {
    client: &'a Client,
    path: String,
    open: Option<Download<'a>>,
    reader: Reader,
    retry: Duration,
    /// Time when the connection was lost; `None` while connected.
    lost: Option<Instant>,
    /// Set after a lost connection: wait before the next attempt.
    must_pause: bool,
}

impl Client {
    /// Subscribes to topics (`cluster`, `tasks`, `task:t42`, `node:n1`, separated by commas), with at most `hz`
    /// batches per second. The first [`Events::next`] connects.
    pub fn events(&self, topics: &str, hz: u32) -> Events<'_> {
        let path = Request::get("/v1/events")
            .query("topics", topics)
            .query("hz", hz)
            .path;
        Events {
            client: self,
            path,
            open: None,
            reader: Reader::default(),
            retry: RETRY_DEFAULT,
            lost: None,
            must_pause: false,
        }
    }
}

/// An event or a change of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamNews {
    /// An event of the stream.
    Event(Event),
    /// The connection is lost, so the data received is getting old. Reconnecting is automatic.
    Lost,
    /// The connection is back; missed events follow.
    Back,
}

impl Events<'_> {
    /// Returns the next event. Not cancel safe while connecting: a dropped attempt starts over.
    ///
    /// # Errors
    /// Fails if the node refuses, or can't be reached within the request timeout.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            if let StreamNews::Event(event) = self.hear().await? {
                return Ok(event);
            }
        }
    }

    /// Returns the next event or change of the connection. Not cancel safe, as [`Events::next`].
    ///
    /// # Errors
    /// As [`Events::next`].
    pub async fn hear(&mut self) -> Result<StreamNews, ClientError> {
        loop {
            if let Some(event) = self.reader.event() {
                return Ok(StreamNews::Event(event));
            }
            if let Some(retry) = self.reader.retry() {
                self.retry = retry;
            }
            if std::mem::take(&mut self.must_pause) {
                sleep(self.retry).await;
            }
            let is_news = match self.read().await {
                Ok(Some(bytes)) => {
                    self.reader.push(&bytes).map_err(|why| self.strange(why))?;
                    match self.lost.take() {
                        Some(_) => return Ok(StreamNews::Back),
                        None => false,
                    }
                }
                Ok(None) => self.lose(),
                Err(error) if error.is_passing() && self.has_hope() => {
                    self.client
                        .tap
                        .note(&format!("{error}; reconnecting in {} ms", self.retry.as_millis()));
                    self.lose()
                }
                Err(error) => return Err(error),
            };
            if is_news {
                return Ok(StreamNews::Lost);
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
        let Some(open) = &mut self.open else {
            return Ok(None);
        };
        // A stream may be silent for longer than the request timeout, but not for longer than its keep-alive.
        timeout(SILENCE_MAX, open.piece()).await.unwrap_or(Ok(None))
    }

    /// True while connected, or if the connection was lost less than one request timeout ago.
    fn has_hope(&self) -> bool {
        self.lost
            .is_none_or(|since| since.elapsed() < self.client.timeout)
    }

    /// Drops the connection. True if it was up until now.
    fn lose(&mut self) -> bool {
        self.open = None;
        self.reader.forget_half();
        self.must_pause = true;
        let is_new = self.lost.is_none();
        self.lost.get_or_insert_with(Instant::now);
        is_new
    }

    fn strange(&self, why: String) -> ClientError {
        ClientError::NotWindrow {
            server: self.client.server().to_owned(),
            why,
        }
    }
}
