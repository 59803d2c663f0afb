//! `Retry-After`: seconds or a date.

use std::time::{Duration, UNIX_EPOCH};

use hyper::header::HeaderValue;

use windrow_core::ids::WallMs;

/// The longest wait that the header may ask for; a longer one is cut.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// The wait that the header asks for, at most [`RETRY_AFTER_MAX`]; a date in the past is no wait at all. None
/// when it is absent or neither whole seconds nor a date (`-1`, `1e9`, `NaN`).
pub fn retry_after(value: Option<&HeaderValue>, now: WallMs) -> Option<Duration> {
    let text = value?.to_str().ok()?.trim();
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_or(RETRY_AFTER_MAX, Duration::from_secs)
    } else {
        until(text, now)?
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

fn until(date: &str, now: WallMs) -> Option<Duration> {
    let date = httpdate::parse_http_date(date)
        .ok()?
        .duration_since(UNIX_EPOCH)
        .ok()?;
    let date = WallMs(i64::try_from(date.as_millis()).unwrap_or(i64::MAX));
    Some(date.since(now))
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
            assert_eq!(retry_after(Some(&value), now), wait, "{text}");
        }
        assert_eq!(retry_after(None, now), None);
        let strange = HeaderValue::from_bytes(b"\xff").expect("a header value");
        assert_eq!(retry_after(Some(&strange), now), None);
    }
}
