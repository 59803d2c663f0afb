//! What the façade knows of the process around it: whether it ends, and since when it is there.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::dashboard::pages::Pages;
use super::events::hub::Hub;
use super::metrics::meter::Meter;
use crate::http::guard::measure;
use crate::http::guard::shares::Shares;
use crate::service::Service;
use crate::telemetry::{Filter, LogControl};
use windrow_config::Config;
use windrow_core::ids::{Moment, WallMs};

/// Streams of the node; one caller may have a quarter.
const STREAMS_MAX: u64 = 256;
/// Readers of the node that wait for a publication; one caller may have a quarter.
const WAITERS_MAX: u64 = 1024;

/// State that every handler of a request is given.
#[derive(Clone)]
pub struct App {
    /// The verbs.
    pub service: Arc<Service>,
    /// The process around it.
    pub front: Arc<Front>,
}

/// The process as its façade sees it: shared by every request, changed by whoever runs the process.
pub struct Front {
    /// The node's name, as it is in paths of actors and of `/v1/nodes`.
    pub node: String,
    /// When the process began to serve.
    pub since: Moment,
    /// The files of the dashboard.
    pub(super) pages: Pages,
    pub(super) hub: Hub,
    pub(super) meter: Meter,
    /// Bytes of bodies, by caller.
    pub(super) bodies: Arc<Shares<String>>,
    /// Uploads that arrive, by caller.
    pub(super) uploads: Arc<Shares<String>>,
    /// Streams of events, by caller.
    pub(super) streams: Arc<Shares<String>>,
    /// Who waits for a publication, by caller.
    pub(super) waiters: Arc<Shares<String>>,
    ending: watch::Sender<bool>,
    drained: AtomicBool,
    /// The file with the first administrator's token.
    token_file: Option<PathBuf>,
    log: Option<LogControl>,
    /// The log's filter, once it was changed.
    log_filter: Mutex<Option<String>>,
}

impl Front {
    /// A façade that serves from now on.
    pub fn new(node: impl Into<String>, since: Moment, now: WallMs, config: &Config) -> Front {
        // Ids of events grow through restarts: a node tells fewer than a thousand in a millisecond.
        let hub = Hub::new(now.0.unsigned_abs().saturating_mul(1000));
        let uploads = u64::from(config.http.max_uploads.get());
        Front {
            node: node.into(),
            since,
            pages: Pages::default(),
            hub,
            meter: Meter::default(),
            bodies: measure::memory(config),
            uploads: Shares::new(uploads, uploads.div_ceil(4)),
            streams: Shares::new(STREAMS_MAX, STREAMS_MAX / 4),
            waiters: Shares::new(WAITERS_MAX, WAITERS_MAX / 4),
            ending: watch::Sender::new(false),
            drained: AtomicBool::new(false),
            token_file: None,
            log: None,
            log_filter: Mutex::new(None),
        }
    }

    /// The same with the log of this process.
    #[must_use]
    pub fn with_log(self, log: Option<LogControl>) -> Front {
        Front { log, ..self }
    }

    /// The same with other files of the dashboard.
    #[must_use]
    pub fn with_pages(self, pages: Pages) -> Front {
        Front { pages, ..self }
    }

    /// The same, and it knows in which file the first administrator's token is.
    #[must_use]
    pub fn with_token_file(self, file: Option<&Path>) -> Front {
        // A relative one means nothing to who stands elsewhere.
        let token_file = file.and_then(|file| std::path::absolute(file).ok());
        Front { token_file, ..self }
    }

    pub(super) fn token_file(&self) -> Option<&Path> {
        self.token_file.as_deref()
    }

    /// Reads a filter of the log.
    ///
    /// # Errors
    /// A sentence when it is none, or the log is not ours to change.
    pub(super) fn check_log(&self, filter: &str) -> Result<Filter, String> {
        if self.log.is_none() {
            return Err("the log of this process can't be changed".to_owned());
        }
        filter.parse::<Filter>().map_err(|error| error.to_string())
    }

    /// Changes which lines the log has.
    pub(super) fn set_log(&self, text: &str, filter: Filter) {
        if self.log.as_ref().is_some_and(|log| log.change(filter)) {
            *self.log_filter.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
        }
    }

    /// Changes which lines the log has.
    ///
    /// # Errors
    /// A sentence when the filter can't be read; nothing is changed then.
    pub fn change_log(&self, text: &str) -> Result<(), String> {
        self.check_log(text).map(|filter| self.set_log(text, filter))
    }

    /// The log's filter, if it was changed.
    pub(super) fn log_filter(&self) -> Option<String> {
        let filter = self.log_filter.lock();
        filter.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `serving`, `drained` or `draining`.
    pub fn state(&self) -> &'static str {
        match (self.is_ending(), self.is_drained()) {
            (true, _) => "draining",
            (false, true) => "drained",
            (false, false) => "serving",
        }
    }

    /// From now on changes are refused, streams say goodbye, and the node isn't ready.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Ends everything that works beside requests.
    pub fn close(&self) {
        self.hub.close();
    }

    /// Whether the process ends.
    pub fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Waits until the process ends. Cancel safe.
    pub async fn ended(&self) {
        let mut ending = self.ending.subscribe();
        if ending.wait_for(|ending| *ending).await.is_err() {
            // The sender is ours, so this can't be; a stream that never hears of the end would hold it up.
            tracing::error!("the end of the process can't be heard of");
        }
    }

    /// Remembers that an administrator drained the node, or took that back.
    pub(super) fn set_drained(&self, drained: bool) {
        self.drained.store(drained, Ordering::Release);
    }

    /// Whether an administrator drained the node: it takes no tasks, and goes on to serve.
    pub fn is_drained(&self) -> bool {
        self.drained.load(Ordering::Acquire)
    }
}
