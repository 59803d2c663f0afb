//! Number and duration of requests by method, route and status.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use axum::http::Method;

use super::board::OTHER;
use super::families::{HTTP_SERVER_REQUEST_DURATION, HTTP_SERVER_REQUESTS};
use super::text::Page;

/// Bucket bounds of request durations, in seconds.
const BOUNDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.3, 0.5, 1.0, 2.5, 5.0, 30.0,
];

/// Request durations by method, route and status.
#[derive(Debug, Default)]
pub(super) struct Requests(RwLock<HashMap<(&'static str, String, u16), Durations>>);

/// Durations counted by the first bound they don't exceed; the last entry counts those above all bounds.
#[derive(Debug, Default)]
struct Durations {
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Durations {
    fn record(&self, took: Duration) {
        let at = BOUNDS.partition_point(|bound| *bound < took.as_secs_f64());
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Requests {
    /// Counts a completed request.
    pub(super) fn answered(&self, method: &Method, route: &str, status: u16, took: Duration) {
        let labels = (known(method), route.to_owned(), status);
        if let Some(seen) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&labels) {
            return seen.record(took);
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.entry(labels).or_default().record(took);
    }

    pub(super) fn write(&self, page: &mut Page) {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let read: Vec<_> = all
            .iter()
            .map(|((method, route, status), seen)| {
                let mut sum = 0;
                let below = seen.counts.each_ref().map(|count| {
                    sum += count.load(Ordering::Relaxed);
                    sum
                });
                let seconds = seen.nanos.load(Ordering::Relaxed) as f64 / 1e9;
                (*method, route.as_str(), status.to_string(), below, seconds)
            })
            .collect();
        let labels =
            |method: &'static str, route, status| [("method", method), ("route", route), ("status", status)];
        let counts = read
            .iter()
            .map(|(method, route, status, below, _)| (labels(method, route, status), below[BOUNDS.len()]));
        page.all(HTTP_SERVER_REQUESTS, counts);
        page.begin(HTTP_SERVER_REQUEST_DURATION);
        for (method, route, status, below, seconds) in &read {
            let buckets = BOUNDS.into_iter().zip(*below);
            let (labels, count) = (labels(method, route, status), below[BOUNDS.len()]);
            page.histogram(HTTP_SERVER_REQUEST_DURATION, &labels, buckets, count, *seconds);
        }
    }
}

/// Maps a method to a fixed set, as clients can invent methods.
fn known(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN
        .into_iter()
        .find(|known| *known == method.as_str())
        .unwrap_or(OTHER)
}
