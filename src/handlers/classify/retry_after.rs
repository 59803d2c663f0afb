//! `Retry-After`: seconds, or a date by the sender's clock.

use std::time::{Duration, UNIX_EPOCH};

use hyper::header::{DATE, HeaderMap, HeaderValue, RETRY_AFTER};

use windrow_core::ids::WallMs;

/// Longest wait taken from the header; a longer one is cut.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// Returns the wait that a response's headers ask for, at most [`RETRY_AFTER_MAX`]. A date is compared with the
/// response's own `Date`, since the server's clock may be wrong, or with `now` if there is none; a date in the past
/// means no wait. Returns `None` if `Retry-After` is absent, or neither whole seconds nor a date (`-1`, `1e9`,
/// `NaN`).
pub fn retry_after(headers: &HeaderMap, now: WallMs) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_or(RETRY_AFTER_MAX, Duration::from_secs)
    } else {
        let sent = headers.get(DATE).and_then(date).unwrap_or(now);
        moment(text)?.since(sent)
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

fn date(value: &HeaderValue) -> Option<WallMs> {
    moment(value.to_str().ok()?.trim())
}

fn moment(date: &str) -> Option<WallMs> {
    let date = httpdate::parse_http_date(date).ok()?;
    let since = date.duration_since(UNIX_EPOCH).ok()?;
    Some(WallMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_understood_and_bounded() {
        let now = WallMs(1_794_000_000_000); // Fri, 06 Nov 2026 21:20:00 GMT
        let seconds = |n| Some(Duration::from_secs(n));
        let table = [
            ("0", seconds(0)),
            ("1", seconds(1)),
            (" 7 ", seconds(7)),
            ("300", seconds(300)),
            ("301", seconds(300)),
            ("99999999999999999999999", seconds(300)),
            ("Fri, 06 Nov 2026 21:20:05 GMT", seconds(5)),
            ("Friday, 06-Nov-26 21:20:05 GMT", seconds(5)),
            ("Fri Nov  6 21:20:05 2026", seconds(5)),
            ("Fri, 06 Nov 2026 21:19:55 GMT", seconds(0)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", seconds(0)),
            ("Fri, 06 Nov 2037 21:20:00 GMT", seconds(300)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1e9", None),
            ("1.5", None),
            ("NaN", None),
            ("soon", None),
        ];
        for (text, wait) in table {
            let value = HeaderValue::from_str(text).expect(text);
            assert_eq!(retry_after(&headers(value), now), wait, "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
        let strange = HeaderValue::from_bytes(b"\xff").expect("a header value");
        assert_eq!(retry_after(&headers(strange), now), None);
    }

    fn headers(retry_after: HeaderValue) -> HeaderMap {
        HeaderMap::from_iter([(RETRY_AFTER, retry_after)])
    }

    #[test]
    fn a_date_is_read_by_the_clock_of_whoever_sent_it() {
        let now = WallMs(1_794_000_000_000); // Fri, 06 Nov 2026 21:20:00 GMT
        let of = |date| {
            let mut headers = headers(HeaderValue::from_static("Fri, 06 Nov 2026 21:15:30 GMT"));
            headers.insert(DATE, HeaderValue::from_static(date));
            retry_after(&headers, now)
        };
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(
            of("Fri, 06 Nov 2026 21:15:00 GMT"),
            seconds(30),
            "its clock is behind"
        );
        assert_eq!(of("Fri, 06 Nov 2026 21:16:00 GMT"), seconds(0), "in its past");
        assert_eq!(of("yesterday"), seconds(0), "only ours is left");
    }
}
