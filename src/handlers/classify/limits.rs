//! Limits that the headers of a response describe, by its sender's clock.

use std::time::Duration;

use hyper::header::{DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};

use windrow_core::business::LimitsFrom;
use windrow_core::ids::WallMs;
use windrow_core::pilot::headers::{Limits, http_date, may_matter, read};

/// Longest wait taken from a response; a longer one is cut.
pub const WAIT_MAX: Duration = Duration::from_secs(300);
/// Longest wait taken from a response that asks for fewer calls; the run decides how long it pauses.
pub const PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Returns the limits that a response's headers describe; if they are off, only the wait in `Retry-After`. Times are
/// compared with the response's own `Date`, since the server's clock may be wrong, or with `now` if there is none.
pub fn limits(headers: &HeaderMap, from: LimitsFrom, now: WallMs) -> Limits {
    match from {
        LimitsFrom::Auto => {
            let known = headers.iter().filter(|(name, _)| may_matter(name.as_str()));
            of(known, headers, now)
        }
        LimitsFrom::Off => {
            let waits = headers.get_all(RETRY_AFTER).into_iter();
            of(waits.map(|value| (&RETRY_AFTER, value)), headers, now)
        }
    }
}

fn of<'a>(
    found: impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)>,
    headers: &HeaderMap,
    now: WallMs,
) -> Limits {
    let mut found = found
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()))
        .peekable();
    match found.peek() {
        Some(_) => read(found, sent(headers).unwrap_or(now)),
        None => Limits::default(),
    }
}

fn sent(headers: &HeaderMap) -> Option<WallMs> {
    http_date(headers.get(DATE)?.to_str().ok()?)
}

/// Returns the wait of a failed item or call, at most [`WAIT_MAX`]; a time in the past is no wait.
pub fn wait(limits: &Limits) -> Option<Duration> {
    limits.retry_after.map(|wait| wait.min(WAIT_MAX))
}

/// Returns the pause of a response that asks for fewer calls, at most [`PAUSE_MAX`].
pub fn pause(limits: &Limits) -> Option<Duration> {
    limits.retry_after.map(|wait| wait.min(PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallMs = WallMs(1_794_000_000_000); // Fri, 06 Nov 2026 21:20:00 GMT

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.insert(*name, HeaderValue::from_static(value));
        }
        map
    }

    fn waits(value: HeaderValue) -> (Option<u64>, Option<u64>) {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, value)]);
        let [off, auto] = [LimitsFrom::Off, LimitsFrom::Auto].map(|from| limits(&headers, from, NOW));
        assert_eq!(off, auto);
        let seconds = |wait: Option<Duration>| wait.map(|wait| wait.as_secs());
        (seconds(wait(&off)), seconds(pause(&off)))
    }

    #[test]
    fn waits_are_cut_to_five_minutes_and_pauses_to_a_day() {
        let (most, day) = (WAIT_MAX.as_secs(), PAUSE_MAX.as_secs());
        for (text, wait, pause) in [
            ("0", 0, 0),
            ("7", 7, 7),
            ("300", 300, 300),
            ("301", most, 301),
            ("86401", most, day),
            ("99999999999999999999999", most, day),
            ("Fri, 06 Nov 2026 21:20:05 GMT", 5, 5),
            ("Friday, 06-Nov-26 21:20:05 GMT", 5, 5),
            ("Fri Nov  6 21:20:05 2026", 5, 5),
            ("Fri, 06 Nov 2026 21:19:55 GMT", 0, 0),
            ("Fri, 06 Nov 2037 21:20:00 GMT", most, day),
        ] {
            let found = waits(HeaderValue::from_static(text));
            assert_eq!(found, (Some(wait), Some(pause)), "{text}");
        }
        for text in ["", "-1", "+1", "1e9", "NaN", "soon"] {
            assert_eq!(waits(HeaderValue::from_static(text)), (None, None), "{text}");
        }
        assert_eq!(
            waits(HeaderValue::from_bytes(b"\xff").expect("a header value")),
            (None, None)
        );
        assert_eq!(
            limits(&HeaderMap::new(), LimitsFrom::Auto, NOW),
            Limits::default()
        );
    }

    #[test]
    fn a_date_is_read_by_the_clock_of_whoever_sent_it() {
        for (date, seconds, why) in [
            ("Fri, 06 Nov 2026 21:15:00 GMT", 30, "its clock is behind"),
            ("Fri, 06 Nov 2026 21:16:00 GMT", 0, "in its past"),
            ("yesterday", 0, "only ours is left"),
        ] {
            let headers = headers(&[("retry-after", "Fri, 06 Nov 2026 21:15:30 GMT"), ("date", date)]);
            for from in [LimitsFrom::Off, LimitsFrom::Auto] {
                let wait = limits(&headers, from, NOW).retry_after;
                assert_eq!(wait, Some(Duration::from_secs(seconds)), "{why}");
            }
        }
    }

    #[test]
    fn windows_are_read_only_if_they_are_on() {
        let headers = headers(&[
            ("content-type", "text/plain"),
            ("x-ratelimit-remaining", "3"),
            ("x-ratelimit-reset", "1794000009"),
            ("retry-after-ms", "1250"),
            ("date", "Fri, 06 Nov 2026 21:20:05 GMT"),
        ]);
        let on = limits(&headers, LimitsFrom::Auto, NOW);
        assert_eq!(on.windows.len(), 1);
        assert_eq!(
            (on.windows[0].left, on.windows[0].reset),
            (3, Some(Duration::from_secs(4)))
        );
        assert_eq!(on.retry_after, Some(Duration::from_millis(1250)));
        assert_eq!(limits(&headers, LimitsFrom::Off, NOW), Limits::default());
    }
}
