//! The checkpoint's bytes: golden files, a corpus of damage, and a round trip over random sets.
//!
//! The golden files are immutable once released. A new one is written by running the test with `UPDATE=1`; an
//! existing one never is.

use std::collections::BTreeSet;
use std::path::PathBuf;

use proptest::prelude::*;
use windrow_core::checkpoint::{Corrupt, SPAN_MAX, Snapshot, decode, encode};
use windrow_core::ids::{INDEX_MAX, ItemIndex};

/// A set as a person would keep it.
fn words_of(bits: &BTreeSet<u32>) -> Vec<u64> {
    let len = bits.last().map_or(0, |last| last / 64 + 1) as usize;
    let mut words = vec![0; len];
    for bit in bits {
        words[(bit / 64) as usize] |= 1 << (bit % 64);
    }
    words
}

struct Golden {
    name: &'static str,
    watermark: u64,
    bits: BTreeSet<u32>,
    extension: &'static [u8],
}

fn golden() -> Vec<Golden> {
    let one = |name, watermark, bits: BTreeSet<u32>| Golden {
        name,
        watermark,
        bits,
        extension: &[],
    };
    vec![
        one("v1-empty-at-zero", 0, BTreeSet::new()),
        one("v1-empty-at-the-end", INDEX_MAX, BTreeSet::new()),
        one("v1-next-one", 41, BTreeSet::from([0])),
        one(
            "v1-holes",
            1000,
            (0..200).filter(|bit| bit * bit % 7 < 3).collect(),
        ),
        one("v1-stuck-head", 3817, (0..4095).collect()),
        one(
            "v1-stragglers",
            5_000_000_000,
            (0..1024).filter(|bit| bit % 100 != 99).collect(),
        ),
        one("v1-far", 7, BTreeSet::from([SPAN_MAX - 1])),
        Golden {
            name: "v1-extension",
            watermark: 12,
            bits: BTreeSet::from([1, 2, 3]),
            extension: b"later versions write here",
        },
    ]
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/checkpoint")
        .join(format!("{name}.bin"))
}

fn read(golden: &Golden) -> Vec<u8> {
    let path = path(golden.name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn bits_of(snapshot: &Snapshot) -> BTreeSet<u32> {
    let bits = (0..snapshot.span).filter(|bit| snapshot.words[(bit / 64) as usize] >> (bit % 64) & 1 == 1);
    bits.collect()
}

#[test]
fn golden_files_are_read_and_written_the_same_for_ever() {
    for golden in golden() {
        let watermark = ItemIndex(golden.watermark);
        let written = encode(watermark, &words_of(&golden.bits), golden.extension);
        if crate::is_update() && !path(golden.name).exists() {
            std::fs::write(path(golden.name), &written).expect("the golden file can be written");
        }
        let kept = read(&golden);
        let snapshot = decode(&kept, watermark).unwrap_or_else(|error| panic!("{}: {error}", golden.name));
        assert_eq!(bits_of(&snapshot), golden.bits, "{}", golden.name);
        assert_eq!(snapshot.extension, golden.extension, "{}", golden.name);
        assert_eq!(written, kept, "{}", golden.name);
    }
}

#[test]
fn a_golden_file_that_nobody_reads_is_noticed() {
    let names: BTreeSet<String> = golden()
        .iter()
        .map(|golden| format!("{}.bin", golden.name))
        .collect();
    let kept = std::fs::read_dir(path("").parent().expect("a folder")).expect("the folder can be read");
    let kept: BTreeSet<String> = kept
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(kept, names);
}

#[test]
fn no_damage_goes_unnoticed() {
    for golden in golden() {
        let bytes = read(&golden);
        let watermark = ItemIndex(golden.watermark);
        for at in 0..bytes.len() {
            for mask in [0x01, 0x10, 0x80, 0xFF] {
                let mut damaged = bytes.clone();
                damaged[at] ^= mask;
                assert!(
                    decode(&damaged, watermark).is_err(),
                    "{}: byte {at} ^ {mask:#04x}",
                    golden.name
                );
            }
            assert!(
                decode(&bytes[..at], watermark).is_err(),
                "{}: cut at {at}",
                golden.name
            );
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(
            decode(&longer, watermark).is_err(),
            "{}: one byte more",
            golden.name
        );
    }
}

/// Wraps a body in a right checksum, so that the rules behind it are reached.
fn sealed(body: &[u8]) -> Vec<u8> {
    [body, &crc32c::crc32c(body).to_le_bytes()].concat()
}

/// Magic, version, encoding, flags, span (one byte or more), watermark 5, then the rest.
fn crafted(head: [u8; 4], span: &[u8], rest: &[u8]) -> Result<Snapshot, Corrupt> {
    decode(
        &sealed(&[&head, span, &5_u64.to_le_bytes(), rest].concat()),
        ItemIndex(5),
    )
}

#[test]
fn each_rule_refuses_what_has_a_right_checksum() {
    let (empty, bitmap, runs) = ([0xB7, 1, 0, 0], [0xB7, 1, 1, 0], [0xB7, 1, 2, 0]);
    assert!(
        crafted(empty, &[0], &[0]).is_ok(),
        "the crafted frame itself is sound"
    );
    assert!(crafted(bitmap, &[3], &[0b101, 0]).is_ok());
    assert!(crafted(runs, &[3], &[1, 2, 0]).is_ok());
    let cases = [
        (crafted([0xB6, 1, 0, 0], &[0], &[0]), Corrupt::Magic(0xB6)),
        (crafted([0xB7, 2, 0, 0], &[0], &[0]), Corrupt::Version(2)),
        (crafted([0xB7, 1, 3, 0], &[0], &[0]), Corrupt::Encoding(3)),
        (crafted([0xB7, 1, 0, 1], &[0], &[0]), Corrupt::Flags(1)),
        (crafted(empty, &[1], &[0]), Corrupt::Span(1)),
        (crafted(bitmap, &[0], &[0]), Corrupt::Span(0)),
        (
            crafted(runs, &[0x81, 0x80, 0x40], &[0]),
            Corrupt::Span(u64::from(SPAN_MAX) + 1),
        ),
        (crafted(empty, &[0x80, 0x00], &[0]), Corrupt::Varint),
        (crafted(bitmap, &[3], &[0b1101, 0]), Corrupt::Bitmap),
        (crafted(bitmap, &[3], &[0b001, 0]), Corrupt::Bitmap),
        (crafted(runs, &[3], &[1, 3, 0]), Corrupt::Runs),
        (crafted(runs, &[3], &[1, 0, 1, 1, 0]), Corrupt::Runs),
        (crafted(runs, &[3], &[3, 0]), Corrupt::Runs),
        (crafted(runs, &[3], &[1, 1, 1, 0]), Corrupt::Runs),
        (crafted(empty, &[0], &[]), Corrupt::Truncated),
        (crafted(empty, &[0], &[4, 1, 2]), Corrupt::Truncated),
        (crafted(empty, &[0], &[0, 9, 9]), Corrupt::Trailing(2)),
        (decode(&[], ItemIndex(5)), Corrupt::Truncated),
        (
            decode(&encode(ItemIndex(4), &[], &[]), ItemIndex(5)),
            Corrupt::Watermark {
                found: 4,
                expected: 5,
            },
        ),
    ];
    for (no, (outcome, expected)) in cases.into_iter().enumerate() {
        assert_eq!(outcome, Err(expected), "case {no}");
    }
}

#[test]
fn a_checkpoint_is_never_larger_than_its_bitmap_and_a_head() {
    for span in [1, 7, 8, 9, 63, 64, 65, 4096, SPAN_MAX] {
        let holes = words_of(&(0..span).filter(|bit| (span - 1 - bit) % 2 == 0).collect());
        let bytes = encode(ItemIndex(INDEX_MAX), &holes, &[]).len();
        assert!(bytes <= 32 + span.div_ceil(8) as usize, "span {span}: {bytes}");
    }
    // One item stuck at the head of a full window: the case that lasts longest must be the cheapest.
    assert!(encode(ItemIndex(0), &[u64::MAX; 1024], &[]).len() < 32);
}

/// Sets as windows leave them: dense, sparse, long runs.
fn any_set() -> impl Strategy<Value = BTreeSet<u32>> {
    prop_oneof![
        prop::collection::btree_set(0..3000_u32, 0..300),
        prop::collection::btree_set(0..SPAN_MAX, 0..20),
        prop::collection::vec((1..500_u32, 1..500_u32), 0..20).prop_map(|runs| {
            let mut at = 0;
            let mut bits = BTreeSet::new();
            for (gap, len) in runs {
                bits.extend(at + gap..at + gap + len);
                at += gap + len;
            }
            bits
        }),
    ]
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        watermark in 0..=INDEX_MAX,
        bits in any_set(),
        zeros in 0..4_usize,
        extension in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let words = words_of(&bits);
        let padded = [words.as_slice(), &vec![0; zeros]].concat();
        let bytes = encode(ItemIndex(watermark), &padded, &extension);
        let snapshot = decode(&bytes, ItemIndex(watermark)).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(&bits_of(&snapshot), &bits);
        prop_assert_eq!(snapshot.len() as usize, bits.len());
        prop_assert_eq!(&snapshot.words, &words);
        prop_assert_eq!(&snapshot.extension, &extension);
        let above = (0..70).filter(|bit| snapshot.contains(ItemIndex(watermark + 1 + bit)));
        prop_assert_eq!(above.count(), bits.range(..70).count());
        prop_assert!(!snapshot.contains(ItemIndex(watermark)));
    }

    #[test]
    fn what_is_open_below_an_index_is_counted_as_if_one_by_one(bits in any_set(), far in 0..300_u64) {
        let watermark = ItemIndex(1_000);
        let bytes = encode(watermark, &words_of(&bits), &[]);
        let snapshot = decode(&bytes, watermark).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let open = (1_000..1_000 + far).filter(|index| !snapshot.contains(ItemIndex(*index)));
        prop_assert_eq!(snapshot.open_below(ItemIndex(1_000 + far)), open.count() as u64);
        prop_assert_eq!(snapshot.open_below(ItemIndex(1_000 - far)), 0);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let [magic, version, encoding, flags, ..] = bytes.as_mut_slice() {
            (*magic, *version, *encoding, *flags) = (0xB7, 1, *encoding % 3, 0);
        }
        // Sealed, so that the body is looked at; whatever is accepted must be what a writer makes of it.
        let watermark = watermark_of(&bytes).unwrap_or_default();
        if let Ok(read) = decode(&sealed(&bytes), watermark) {
            let again = encode(watermark, &read.words, &read.extension);
            prop_assert_eq!(decode(&again, watermark), Ok(read));
        }
    }
}

/// The watermark of a random body whose span takes one byte, so that its check doesn't end every case.
fn watermark_of(bytes: &[u8]) -> Option<ItemIndex> {
    let watermark = bytes.get(5..13)?.try_into().ok()?;
    Some(ItemIndex(u64::from_le_bytes(watermark)))
}
