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

/// Silence after which a stream is taken for broken: a node says something every 15 s.
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
    /// Whether to wait before the next attempt.
    must_pause: bool,
}

impl Client {
    /// What happens to these topics (`cluster`, `tasks`, `task:t42`, `node:n1`, separated by commas), at most `hz`
    /// batches a second. It connects with the first [`Events::next`].
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

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamNews {
    /// Something happened.
    Event(Event),
    /// The connection is lost: what was heard grows old. It is taken up again.
    Lost,
    /// It is there again; what happened meanwhile follows.
    Back,
}

impl Events<'_> {
    /// The next event. Not cancel safe while it connects: an attempt that is dropped is begun anew.
    ///
    /// # Errors
    /// When the node refuses, or can't be reached for as long as a request may take.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            if let StreamNews::Event(event) = self.hear().await? {
                return Ok(event);
            }
        }
    }

    /// The next event, or that the connection went or came. Not cancel safe, as [`Events::next`].
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
                        .note(&format!("{error}; again in {} ms", self.retry.as_millis()));
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
        // Silence longer than a request may take is no fault of a stream; longer than its keep-alive is.
        timeout(SILENCE_MAX, open.piece()).await.unwrap_or(Ok(None))
    }

    /// Whether it was connected not long ago.
    fn has_hope(&self) -> bool {
        self.lost
            .is_none_or(|since| since.elapsed() < self.client.timeout)
    }

    /// Gives the connection up; whether it was there until now.
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
