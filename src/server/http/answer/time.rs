//! Times as the API writes them: RFC 3339, UTC, milliseconds.

use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use windrow_core::ids::WallMs;

const FORMAT: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

/// `2026-11-20T17:03:40.222Z`; the bare number for a time that no calendar has.
pub fn rfc3339(at: WallMs) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.0) * 1_000_000);
    time.ok()
        .and_then(|time| time.format(FORMAT).ok())
        .unwrap_or_else(|| at.0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds_and_no_offset() {
        assert_eq!(rfc3339(WallMs(1_795_194_220_022)), "2026-11-20T17:03:40.022Z");
        assert_eq!(rfc3339(WallMs(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(WallMs(i64::MAX)), i64::MAX.to_string());
    }
}
