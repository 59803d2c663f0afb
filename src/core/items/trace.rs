//! Trace ids of items (W3C Trace Context): each item has one trace, and each attempt is a span of it. Both are
//! derived from the item's key and the attempt number, so anyone who knows an item can find its trace, and every node
//! derives the same.

use std::fmt;

use crate::ids::{Attempt, ItemIndex, StoreId, TaskId};

/// Length of a `traceparent` header. Unit: bytes.
pub const PARENT_BYTES: usize = 55;

/// Source of the trace ids of one task's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traces {
    task: u64,
}

/// Trace id of an item; shown as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId {
    task: u64,
    item: u64,
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
        }
    }

    /// Returns the trace id of an item, unique within its task.
    pub fn id(self, index: ItemIndex) -> TraceId {
        TraceId {
            task: self.task,
            item: mixed(index.0 ^ self.task),
        }
    }
}

impl TraceId {
    /// Returns the `traceparent` header for an attempt. The sampled flag is off: Windrow stores no spans to which
    /// others could be attached.
    pub fn parent(self, attempt: Attempt) -> [u8; PARENT_BYTES] {
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        let span = mixed(self.item ^ mixed(u64::from(attempt.get()))).max(1);
        for (number, from) in [(self.task, 3), (self.item, 19), (span, 36)] {
            put(&mut text[from..from + 16], number);
        }
        text
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
