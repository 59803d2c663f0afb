//! Timestamps in API format: RFC 3339, UTC, milliseconds.

use windrow_core::ids::WallMs;

/// Formats a time as `2026-11-20T17:03:40.222Z`.
pub fn rfc3339(at: WallMs) -> String {
    at.to_rfc3339()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds_and_no_offset_and_end_with_the_year_9999() {
        assert_eq!(rfc3339(WallMs(1_795_194_220_022)), "2026-11-20T17:03:40.022Z");
        assert_eq!(rfc3339(WallMs(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(WallMs(i64::MAX)), "9999-12-31T23:59:59.999Z");
    }
}
