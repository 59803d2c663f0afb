//! Times and ids of single requests.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::header::HeaderValue;
use time::OffsetDateTime;
use uuid::Builder;

use windrow_core::ids::WallMs;

/// Precision of the seconds in a timestamp.
#[derive(Clone, Copy)]
pub(super) enum Precision {
    Millis,
    Micros,
}

/// Formats a time as RFC 3339 in UTC; `micros` is in microseconds since the Unix epoch. Each call contains two times,
/// so the digits are put by hand, without `format!`.
pub(super) fn stamp(micros: i64, precision: Precision) -> HeaderValue {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000);
    let time = time.ok().filter(|time| (0..10_000).contains(&time.year()));
    let time = time.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = time.to_calendar_date();
    let (hour, minute, second) = time.to_hms();
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    put(&mut text[..4], year.unsigned_abs());
    let parts = [u8::from(month), day, hour, minute, second];
    for (part, at) in parts.into_iter().zip([5, 8, 11, 14, 17]) {
        put(&mut text[at..at + 2], u32::from(part));
    }
    let len = match precision {
        Precision::Millis => {
            put(&mut text[20..23], u32::from(time.millisecond()));
            text[23] = b'Z';
            24
        }
        Precision::Micros => {
            put(&mut text[20..26], time.microsecond());
            27
        }
    };
    HeaderValue::from_bytes(&text[..len]).expect("digits and signs are printable")
}

/// Writes a number with as many digits as there is room for.
fn put(text: &mut [u8], mut number: u32) {
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Generator of unique ids without a system call for each: a counter under a random keyed hash. They are names, not
/// secrets.
pub(super) struct Ids {
    key: RandomState,
    count: AtomicU64,
}

impl Ids {
    pub(super) fn new() -> Ids {
        Ids {
            key: RandomState::new(),
            count: AtomicU64::new(0),
        }
    }

    /// Returns `b-` and a UUID of version 7.
    pub(super) fn batch(&self, now: WallMs) -> String {
        let [high, low] = self.draw();
        let mut random = [0; 10];
        random[..8].copy_from_slice(&high.to_be_bytes());
        random[8..].copy_from_slice(&low.to_be_bytes()[..2]);
        let millis = u64::try_from(now.0).unwrap_or(0);
        format!(
            "b-{}",
            Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
        )
    }

    fn draw(&self) -> [u64; 2] {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        [0_u8, 1].map(|part| self.key.hash_one((count, part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_to_the_microsecond() {
        assert_eq!(
            stamp(1_794_243_731_500_123, Precision::Micros),
            "2026-11-09T17:02:11.500123Z"
        );
        assert_eq!(
            stamp(1_794_243_731_500_999, Precision::Millis),
            "2026-11-09T17:02:11.500Z"
        );
        assert_eq!(stamp(0, Precision::Micros), "1970-01-01T00:00:00.000000Z");
        assert_eq!(stamp(i64::MAX, Precision::Millis), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn ids_have_their_form_and_differ() {
        let ids = Ids::new();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..10_000 {
            let batch = ids.batch(WallMs(1_794_243_731_500));
            let uuid: uuid::Uuid = batch.strip_prefix("b-").expect("b-").parse().expect("a uuid");
            assert_eq!(uuid.get_version_num(), 7);
            assert!(seen.insert(batch));
        }
    }
}
