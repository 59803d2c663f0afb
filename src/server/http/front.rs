//! API server's view of its process: start time, shutdown, drain state and shared limits.

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

/// Event streams per node; a single caller may hold a quarter.
const STREAMS_MAX: u64 = 256;
/// Clients per node that wait for a publication; a single caller may hold a quarter.
const WAITERS_MAX: u64 = 1024;

/// State passed to every request handler.
#[derive(Clone)]
pub struct App {
    /// Operations behind the API.
    pub service: Arc<Service>,
    /// Process that serves the API.
    pub front: Arc<Front>,
}

/// Process as seen by its API server. Shared by all requests; changed by whoever runs the process.
pub struct Front {
    /// Node name, as in paths of actors and of `/v1/nodes`.
    pub node: String,
    /// Time at which the process started serving.
    pub since: Moment,
    /// Files of the dashboard.
    pub(super) pages: Pages,
    pub(super) hub: Hub,
    pub(super) meter: Meter,
    /// Memory for bodies, in bytes, shared out by caller.
    pub(super) bodies: Arc<Shares<String>>,
    /// Running uploads, shared out by caller.
    pub(super) uploads: Arc<Shares<String>>,
    /// Open event streams, shared out by caller.
    pub(super) streams: Arc<Shares<String>>,
    /// Clients waiting for a publication, shared out by caller.
    pub(super) waiters: Arc<Shares<String>>,
    ending: watch::Sender<bool>,
    drained: AtomicBool,
    /// File with the first administrator's token.
    token_file: Option<PathBuf>,
    log: Option<LogControl>,
    /// Log filter; `None` until it is changed.
    log_filter: Mutex<Option<String>>,
}

impl Front {
    /// Creates the state of an API server that starts now.
    pub fn new(node: impl Into<String>, since: Moment, now: WallMs, config: &Config) -> Front {
        // Event ids must increase across restarts; a node sends fewer than 1,000 events per millisecond.
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

    /// Sets the control of this process's log.
    #[must_use]
    pub fn with_log(self, log: Option<LogControl>) -> Front {
        Front { log, ..self }
    }

    /// Replaces the files of the dashboard.
    #[must_use]
    pub fn with_pages(self, pages: Pages) -> Front {
        Front { pages, ..self }
    }

    /// Sets the file with the first administrator's token.
    #[must_use]
    pub fn with_token_file(self, file: Option<&Path>) -> Front {
        // Readers may have another working directory, so a relative path would mean nothing to them.
        let token_file = file.and_then(|file| std::path::absolute(file).ok());
        Front { token_file, ..self }
    }

    pub(super) fn token_file(&self) -> Option<&Path> {
        self.token_file.as_deref()
    }

    /// Parses a log filter.
    ///
    /// # Errors
    /// A sentence if the filter is invalid or this process's log can't be changed.
    pub(super) fn check_log(&self, filter: &str) -> Result<Filter, String> {
        if self.log.is_none() {
            return Err("the log filter of this process can't be changed".to_owned());
        }
        filter.parse::<Filter>().map_err(|error| error.to_string())
    }

    /// Applies a log filter that was checked before.
    pub(super) fn set_log(&self, text: &str, filter: Filter) {
        if self.log.as_ref().is_some_and(|log| log.change(filter)) {
            *self.log_filter.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
        }
    }

    /// Parses and applies a log filter.
    ///
    /// # Errors
    /// A sentence if the filter can't be applied; nothing is changed then.
    pub fn change_log(&self, text: &str) -> Result<(), String> {
        self.check_log(text).map(|filter| self.set_log(text, filter))
    }

    /// Returns the log filter, `None` if it was never changed.
    pub(super) fn log_filter(&self) -> Option<String> {
        let filter = self.log_filter.lock();
        filter.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns `serving`, `drained` or `draining`.
    pub fn state(&self) -> &'static str {
        match (self.is_ending(), self.is_drained()) {
            (true, _) => "draining",
            (false, true) => "drained",
            (false, false) => "serving",
        }
    }

    /// Begins the shutdown: changes are refused, streams say goodbye, and the node is no longer ready.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Stops all background work of the API server.
    pub fn close(&self) {
        self.hub.close();
    }

    /// Returns true once the shutdown has begun.
    pub fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Waits until the shutdown begins. Cancel safe.
    pub async fn ended(&self) {
        let mut ending = self.ending.subscribe();
        if ending.wait_for(|ending| *ending).await.is_err() {
            // Impossible, because we hold the sender. Report it: a stream that misses the shutdown would delay it.
            tracing::error!("end of the process can't be observed");
        }
    }

    /// Records that an administrator drained or undrained the node.
    pub(super) fn set_drained(&self, drained: bool) {
        self.drained.store(drained, Ordering::Release);
    }

    /// Returns true if an administrator drained the node: it accepts no tasks but still serves requests.
    pub fn is_drained(&self) -> bool {
        self.drained.load(Ordering::Acquire)
    }
}
