//! Lines of text are items to the character; a naive split of the whole text agrees, wherever the text is cut.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use windrow_sources::{BlockLimits, FaultKind, Format, IndexError};

use crate::common::{TINY, file_source, index, rows, runtime};

/// Every line with at least one character, without its end.
fn naive(text: &str) -> Vec<Value> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .filter(|line| !line.is_empty())
        .map(|line| json!({"line": line}))
        .collect()
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "\n",
        "\r\n",
        "\r",
        " ",
        "\t",
        "\"",
        "\\",
        "{\"x\":1}",
        "你好",
        "\u{1}",
        "\u{feff}",
        "🐟",
        "http://x/?a=1,2",
    ]);
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

#[test]
fn texts_that_a_nul_ends_hold_any_other_character() {
    let text = "a\nb\r\0\0\u{feff}c\0 \0d";
    let expected: Vec<Value> = ["a\nb\r", "\u{feff}c", " ", "d"]
        .map(|text| json!({"line": text}))
        .into();
    let indexed = index(text.as_bytes(), &Format::Nul, TINY).expect("it has rows");
    assert_eq!(indexed.rows, 4);
    let dir = tempfile::tempdir().expect("a directory can be made");
    let source = file_source(dir.path(), text.as_bytes(), &Format::Nul, TINY);
    assert_eq!(runtime().block_on(rows(&source)), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn lines_read_by_blocks_are_those_of_a_naive_split(
        text in text(), rows_max in 1u32..5, bytes in 1usize..50,
    ) {
        let limits = BlockLimits { rows: rows_max, bytes, far: 20 };
        let expected = naive(&text);
        match index(text.as_bytes(), &Format::Lines, limits) {
            Ok(indexed) => {
                prop_assert_eq!(indexed.rows, expected.len() as u64);
                let dir = tempfile::tempdir().expect("a directory can be made");
                let source = file_source(dir.path(), text.as_bytes(), &Format::Lines, limits);
                prop_assert_eq!(runtime().block_on(rows(&source)), expected);
            }
            Err(IndexError::NoRows { header: false }) => prop_assert!(expected.is_empty()),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

#[test]
fn a_text_cut_at_every_byte_has_the_lines_of_its_part() {
    let text = "\u{feff}one\r\n\n two \n\"three\"\tx\r\r\nfour";
    for end in (1..=text.len()).filter(|end| text.is_char_boundary(*end)) {
        let part = &text[..end];
        let dir = tempfile::tempdir().expect("a directory can be made");
        match naive(part) {
            none if none.is_empty() => {
                let error = index(part.as_bytes(), &Format::Lines, TINY).expect_err("there is no line");
                assert!(matches!(error, IndexError::NoRows { header: false }), "{error}");
            }
            some => {
                let source = file_source(dir.path(), part.as_bytes(), &Format::Lines, TINY);
                assert_eq!(runtime().block_on(rows(&source)), some, "{part:?}");
            }
        }
    }
}

#[test]
fn a_line_that_is_no_text_is_named() {
    let error = index(b"a\n\nb\xff\nc\n\xe4\xbd", &Format::Lines, TINY).expect_err("two lines are bad");
    let IndexError::BadRows { faults, .. } = &error else {
        panic!("{error}")
    };
    let found: Vec<_> = faults
        .iter()
        .map(|fault| (fault.line, fault.kind.clone()))
        .collect();
    assert_eq!(found, [(3, FaultKind::NotUtf8), (5, FaultKind::NotUtf8)]);
    assert!(error.hint().contains("iconv"), "{}", error.hint());
}
