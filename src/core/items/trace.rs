//! Trace ids of items (W3C Trace Context): each item has one trace, and each attempt is a span of it. Both are
//! derived from the item's key and the attempt number, so anyone who knows an item can find its trace, and every node
//! derives the same.

use std::fmt;

use crate::ids::{Attempt, ItemIndex, StoreId, TaskId};

/// Length of a `traceparent` header. Unit: bytes.
pub const PARENT_BYTES: usize = 55;

/// Share of the traces whose spans are recorded. Unit: parts per million.
///
/// The last half of the trace id decides, as in OpenTelemetry's `TraceIdRatioBased`, so that services with the same share
/// keep the same traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Parts per million, at most 1,000,000.
    pub ppm: u32,
}

/// Source of the trace ids of one task's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traces {
    task: u64,
    sampling: Sampling,
}

/// Trace id of an item; shown as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId {
    task: u64,
    item: u64,
    is_sampled: bool,
}

impl Traces {
    /// Derives the traces from the head that all item keys of this task share.
    pub fn of(store: &StoreId, task: TaskId) -> Traces {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in store.item_key_head(task).bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Traces {
            task: mixed(hash).max(1),
            sampling: Sampling::default(),
        }
    }

    /// Marks a share of the traces as recorded.
    #[must_use]
    pub fn sampled(self, sampling: Sampling) -> Traces {
        Traces { sampling, ..self }
    }

    /// Returns the trace id of an item, unique within its task.
    pub fn id(self, index: ItemIndex) -> TraceId {
        let item = mixed(index.0 ^ self.task);
        TraceId {
            task: self.task,
            item,
            is_sampled: self.sampling.has(item),
        }
    }

    /// Returns the trace of a shard's runs, which no item has: indexes are smaller.
    pub fn runs(self, shard: u32) -> TraceId {
        let item = mixed(!u64::from(shard) ^ self.task);
        TraceId {
            task: self.task,
            item,
            is_sampled: self.sampling.ppm > 0,
        }
    }
}

impl Sampling {
    fn has(self, item: u64) -> bool {
        u128::from(item >> 1) * 1_000_000 < u128::from(self.ppm) << 63
    }
}

impl TraceId {
    /// Returns the `traceparent` header for an attempt. The sampled flag is on if Windrow sends the attempt's span to a
    /// collector, so that others can be attached to it.
    pub fn parent(self, attempt: Attempt) -> [u8; PARENT_BYTES] {
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        let span = self.span(u64::from(attempt.get()));
        for (number, from) in [(self.task, 3), (self.item, 19), (span, 36)] {
            put(&mut text[from..from + 16], number);
        }
        text[PARENT_BYTES - 1] += u8::from(self.is_sampled);
        text
    }

    /// Returns the id of a span: of an attempt, or of a run among those of its shard.
    pub fn span(self, number: u64) -> u64 {
        mixed(self.item ^ mixed(number)).max(1)
    }

    /// True if spans of the trace are recorded.
    pub fn is_sampled(self) -> bool {
        self.is_sampled
    }

    /// Returns the id as a number.
    pub fn number(self) -> u128 {
        u128::from(self.task) << 64 | u128::from(self.item)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.task, self.item)
    }
}

/// Maps numbers one-to-one so that neighbours are spread over the whole range (SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Writes 16 hexadecimal digits without `write!`, since every call needs them.
fn put(text: &mut [u8], number: u64) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (at, digit) in text.iter_mut().enumerate() {
        *digit = DIGITS[(number >> (60 - 4 * at) & 15) as usize];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn parent(store: &str, task: i64, index: u64, attempt: u32) -> String {
        let traces = Traces::of(&StoreId(store.to_owned()), TaskId(task));
        let header = traces.id(ItemIndex(index)).parent(Attempt::new(attempt));
        String::from_utf8(header.to_vec()).expect("digits")
    }

    #[test]
    fn a_trace_follows_from_the_item_and_a_span_from_the_attempt() {
        let first = parent("k7f3q2", 1, 5, 1);
        assert_eq!(first, parent("k7f3q2", 1, 5, 1));
        let (trace, again) = (&first[..36], parent("k7f3q2", 1, 5, 2));
        assert!(
            again.starts_with(trace) && again != first && again.ends_with("-00"),
            "{again}"
        );
        let id = Traces::of(&StoreId("k7f3q2".to_owned()), TaskId(1)).id(ItemIndex(5));
        assert_eq!(trace, format!("00-{id}-"));
        for other in [
            ("k7f3q2", 1, 6),
            ("k7f3q2", 2, 5),
            ("k7f3q3", 1, 5),
            ("k7f3q2", 11, 5),
        ] {
            assert_ne!(&parent(other.0, other.1, other.2, 1)[..36], trace);
        }
    }

    #[test]
    fn a_share_of_the_traces_is_sampled_whatever_the_attempt() {
        let traces = Traces::of(&StoreId("k7f3q2".to_owned()), TaskId(1));
        let sampled = |ppm| {
            let traces = traces.sampled(Sampling { ppm });
            (0..10_000)
                .filter(|index| traces.id(ItemIndex(*index)).is_sampled())
                .count()
        };
        assert_eq!((sampled(0), sampled(1_000_000)), (0, 10_000));
        assert!((900..1100).contains(&sampled(100_000)), "{}", sampled(100_000));
        let id = traces.sampled(Sampling { ppm: 1_000_000 }).id(ItemIndex(5));
        for attempt in [1, 2] {
            assert!(id.parent(Attempt::new(attempt)).ends_with(b"-01"));
        }
        assert_eq!(format!("{:032x}", id.number()), id.to_string());
    }

    #[test]
    fn headers_have_their_form_and_differ() {
        let all: HashSet<String> = (0..1000)
            .flat_map(|index| [1, 2, 3].map(|attempt| parent("k7f3q2", 1, index, attempt)))
            .collect();
        assert_eq!(all.len(), 3000);
        for header in all {
            let lengths: Vec<usize> = header.split('-').map(str::len).collect();
            assert_eq!(lengths, [2, 32, 16, 2], "{header}");
            assert!(!header.contains("-0000000000000000"), "{header}");
        }
    }
}
