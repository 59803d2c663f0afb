//! What can't be items is refused with the line and with what to try; nothing is indexed then.

use windrow_sources::{
    BlockLimits, CsvFormat, Fault, FaultKind, Format, IndexError, ROW_BYTES_MAX, index_bytes,
};

use crate::common::{TINY, csv, index};

fn faults(bytes: impl AsRef<[u8]>, format: &Format) -> Vec<(u64, FaultKind)> {
    match index(bytes.as_ref(), format, TINY) {
        Err(IndexError::BadRows { faults, .. }) => faults
            .into_iter()
            .map(|Fault { line, kind }| (line, kind))
            .collect(),
        other => panic!("bad rows expected, not {other:?}"),
    }
}

fn ragged(expected: usize, actual: usize) -> FaultKind {
    FaultKind::Ragged { expected, actual }
}

#[test]
fn ragged_rows_name_their_line_behind_quoted_newlines_and_blank_lines() {
    let text = "a,b\n1,\"x\ny\"\n\n\n2\n3,c\n4,d\n5,e,f\n";
    assert_eq!(faults(text, &csv()), [(6, ragged(2, 1)), (9, ragged(2, 3))]);
    assert_eq!(
        faults(text.replace('\n', "\r\n"), &csv()),
        [(6, ragged(2, 1)), (9, ragged(2, 3))]
    );
}

#[test]
fn bad_text_names_the_line_of_the_byte_in_both_formats() {
    assert_eq!(
        faults(b"a\n1\n2\n3\n4\n\"x\n\xff\"\n", &csv()),
        [(7, FaultKind::NotUtf8)]
    );
    assert_eq!(
        faults(b"1\n\"\xe4\xbd\"\n2\n3\n\"\xff\xff\"\n", &Format::Ndjson),
        [(2, FaultKind::NotUtf8), (5, FaultKind::NotUtf8)]
    );
    assert_eq!(faults(b"a,\xff\n1,2\n", &csv()), [(1, FaultKind::NotUtf8)]);
}

#[test]
fn text_that_is_only_split_into_fields_within_a_letter_is_bad() {
    assert_eq!(faults(b"a,b\n\xe4,\xbd\xa0\n", &csv()), [(2, FaultKind::NotUtf8)]);
}

#[test]
fn lines_that_are_not_one_json_value_are_named() {
    let found = faults("{}\n\n{\"a\":}\n1 2\n\"open\n{}", &Format::Ndjson);
    assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 4, 5]);
    let FaultKind::NotJson(reason, _) = &found[0].1 else {
        panic!("{found:?}")
    };
    assert_eq!(reason, "expected value at column 6");
}

#[test]
fn json_is_not_taken_for_a_table_and_loses_no_first_item() {
    for (text, is_array) in [
        ("{\"a\":1}\n{\"a\":2}\n", false),
        ("[{\"a\":1},{\"a\":2}]\n", true),
        ("\u{feff}[\n  1,\n  2\n]\n", true),
    ] {
        assert_eq!(
            faults(text, &csv()),
            [(1, FaultKind::LikeJson(is_array))],
            "{text}"
        );
    }
    let error = index(b"{\"a\":1}\n{\"a\":2}\n", &csv(), TINY).expect_err("it is NDJSON");
    assert!(error.to_string().contains("looks like NDJSON"), "{error}");
    assert!(error.hint().contains("--ndjson FILE"), "{}", error.hint());
    assert!(
        index(b"[Order ID],{x}\n1,2\n", &csv(), TINY).is_ok(),
        "an odd name is a name"
    );
}

#[test]
fn a_table_that_is_read_as_json_is_told_once() {
    let error = index(b"user_id,name\n1,Ann\n2,Bob\n", &Format::Ndjson, TINY).expect_err("it is CSV");
    let text = error.to_string();
    assert_eq!(text.matches("not a single JSON value").count(), 1, "{text}");
    assert!(text.ends_with("; 2 other lines are not JSON either"), "{text}");
    assert!(error.hint().contains("--csv FILE"), "{}", error.hint());
}

#[test]
fn the_first_ten_faults_are_listed_and_no_more_is_read() {
    let text = "a,b\n".to_owned() + &"x\n".repeat(100_000);
    let mut bytes = 0;
    let error = index_bytes(
        text.as_bytes(),
        None,
        &csv(),
        TINY,
        &mut |progress| bytes = progress.bytes,
        &std::sync::atomic::AtomicBool::new(false),
    );
    let Err(IndexError::BadRows { faults, more: true }) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(faults.len(), 10);
    assert_eq!(
        faults.iter().map(|fault| fault.line).collect::<Vec<_>>(),
        (2..12).collect::<Vec<_>>()
    );
    assert!(bytes <= 256 * 1024);
    let text = error.expect_err("it has faults").to_string();
    assert!(text.starts_with("line 2: 1 field, expected 2; line 3:") && text.ends_with("there may be more"));
}

#[test]
fn all_faults_of_a_short_file_are_listed_in_the_order_of_their_lines() {
    assert_eq!(
        faults(b"a,b\n1,\xff\n2\n3,c\n4\n", &csv()),
        [(2, FaultKind::NotUtf8), (3, ragged(2, 1)), (5, ragged(2, 1))]
    );
    let error = index(b"a,b\n1\n", &csv(), TINY);
    assert!(
        matches!(error, Err(IndexError::BadRows { more: false, .. })),
        "{error:?}"
    );
}

#[test]
fn a_quote_that_never_closes_names_the_row_it_began_in() {
    assert_eq!(
        faults("a,b\n1,x\n2,\"y\n3,z\n", &csv()),
        [(3, FaultKind::UnclosedQuote)]
    );
    assert_eq!(faults("a,\"b\n", &csv()), [(1, FaultKind::UnclosedQuote)]);
    assert!(
        index(b"a\n\"x\"\"\n\"", &csv(), TINY).is_ok(),
        "doubled quotes close nothing"
    );
}

#[test]
fn quotes_that_rfc_4180_does_not_have_are_refused_with_their_line() {
    let text = FaultKind::QuoteInText { below: 0 };
    let behind = |below| FaultKind::TextBehindQuote { below };
    let swallowed = "id,title\n1,\"open\n2,two\n3,\"closed\n4,four\n";
    assert_eq!(faults(swallowed, &csv()), [(2, behind(2))]);
    assert_eq!(faults("a,b\n1,\"12\" pipe\"\n2,ok\n", &csv()), [(2, behind(0))]);
    assert_eq!(faults("a,b\n1,x\n2,3\" pipe\n", &csv()), [(3, text.clone())]);
    assert_eq!(faults("a,b\"\n1,2\n", &csv()), [(1, text)], "the header too");
    assert_eq!(
        faults("a,b\n1,\"x\"y\",\"\n", &csv()),
        [(2, behind(0))],
        "not the open end"
    );
    let lenient = Format::Csv(CsvFormat {
        lenient: true,
        ..CsvFormat::default()
    });
    assert!(index(swallowed.as_bytes(), &lenient, TINY).is_ok());
    assert!(index(b"a,b\n\"x\"\"\",\"\"\n\"y\r\nz\",\"\"\"\"", &csv(), TINY).is_ok());
}

#[test]
fn the_line_with_which_excel_names_the_delimiter_is_skipped_or_refused() {
    let semicolon = Format::Csv(CsvFormat {
        delimiter: ';',
        ..CsvFormat::default()
    });
    assert_eq!(
        faults("sep=;\r\nid;name\r\n1;a\r\n", &csv()),
        [(1, FaultKind::SepLine(';'))]
    );
    let text = b"\xef\xbb\xbfSep=;\r\nid;name\r\n1;a\r\n";
    let indexed = index(text, &semicolon, TINY).expect("the line is no row");
    assert_eq!(
        (indexed.rows, indexed.columns),
        (1, vec!["id".to_owned(), "name".to_owned()])
    );
    assert!(
        index(b"sep=2;b\n1;2\n", &semicolon, TINY).is_ok(),
        "a name of a column"
    );
}

#[test]
fn rows_that_are_too_long_are_refused_with_their_line() {
    let long = "x".repeat(ROW_BYTES_MAX + 10);
    assert_eq!(
        faults(format!("\"a\"\n\"{long}\"\n1\n"), &Format::Ndjson),
        [(2, FaultKind::TooLong)]
    );
    assert_eq!(
        faults(format!("\"a\"\n\"{long}"), &Format::Ndjson),
        [(2, FaultKind::TooLong)]
    );
    assert_eq!(
        faults(format!("a\n1\n{long}\n1\n"), &csv()),
        [(3, FaultKind::TooLong)]
    );
    assert_eq!(
        faults(format!("a\n1\n\"{}", "x\n".repeat(ROW_BYTES_MAX)), &csv()),
        [(3, FaultKind::TooLong)]
    );
    assert_eq!(
        faults(format!("{long},b\n1,2\n"), &csv()),
        [(1, FaultKind::TooLong)]
    );
}

#[test]
fn blank_lines_do_not_count_for_the_length_of_a_row() {
    let row = "x".repeat(ROW_BYTES_MAX - 1000);
    let blank = "\n".repeat(200_000);
    let indexed = index(
        format!("{blank}a\n{blank}{row}\n{blank}").as_bytes(),
        &csv(),
        BlockLimits::default(),
    );
    assert_eq!(indexed.expect("it is short enough").rows, 1);
}

#[test]
fn values_nested_deeply_do_not_exhaust_the_stack() {
    let deep = format!("{}{}\n", "[".repeat(400_000), "]".repeat(400_000));
    assert_eq!(
        index(deep.as_bytes(), &Format::Ndjson, TINY)
            .expect("it is JSON")
            .rows,
        1
    );
    assert_eq!(faults("[".repeat(400_000), &Format::Ndjson).len(), 1);
}

#[test]
fn lines_with_nuls_are_refused_with_what_to_use() {
    assert_eq!(faults("a\nb\0c\0", &Format::Lines), [(2, FaultKind::Nul)]);
    let error = index(b"a\0b\0", &Format::Lines, TINY).expect_err("it is no text");
    assert!(error.hint().contains("--glob"), "{}", error.hint());
}

#[test]
fn repeated_column_names_are_all_named() {
    let twice = |name: &str| (1, FaultKind::DuplicateColumn(name.to_owned()));
    assert_eq!(faults("a,b,a,b,c\n1,2,3,4,5\n", &csv()), [twice("a"), twice("b")]);
    let no_header = Format::Csv(CsvFormat {
        header: false,
        ..CsvFormat::default()
    });
    assert_eq!(
        index(b"a,a\n", &no_header, TINY).expect("it is data").columns,
        ["c1", "c2"]
    );
}

#[test]
fn files_without_rows_say_so() {
    let no_header = Format::Csv(CsvFormat {
        header: false,
        ..CsvFormat::default()
    });
    for empty in ["", "\n", "\u{feff}", "\u{feff}\r\n\n", "\n\n\n"] {
        let error = index(empty.as_bytes(), &csv(), TINY);
        assert!(matches!(error, Err(IndexError::NoHeader)), "{empty:?}: {error:?}");
        for format in [no_header.clone(), Format::Ndjson, Format::Lines] {
            let error = index(empty.as_bytes(), &format, TINY);
            assert!(
                matches!(error, Err(IndexError::NoRows { header: false })),
                "{empty:?}: {error:?}"
            );
        }
    }
    for only_header in ["a,b", "a,b\n", "\u{feff}a,b\r\n\r\n"] {
        let error = index(only_header.as_bytes(), &csv(), TINY).expect_err("it has no rows");
        assert!(
            matches!(error, IndexError::NoRows { header: true }),
            "{only_header:?}: {error:?}"
        );
        assert!(error.hint().contains("--no-header"), "{}", error.hint());
    }
}

#[test]
fn many_blank_lines_are_no_row() {
    let text = format!("a\n{}1\n{}", "\n".repeat(3 << 20), "\r\n".repeat(1 << 20));
    let indexed = index(text.as_bytes(), &csv(), BlockLimits::default()).expect("there is a row");
    assert_eq!((indexed.rows, indexed.bytes), (1, text.len() as u64));
    assert!(indexed.buffered_max < 4 << 20, "{}", indexed.buffered_max);
}

#[test]
fn files_of_other_kinds_are_recognised() {
    for (bytes, kind) in [
        (&b"\xff\xfea\0,\0b\0"[..], "UTF-16"),
        (&b"\x1f\x8b\x08\0\0"[..], "gzip"),
        (&b"PK\x03\x04\x14"[..], "spreadsheet"),
        (&b"PAR1\x15"[..], "Parquet"),
    ] {
        let error = index(bytes, &csv(), TINY).expect_err("it is not text");
        assert!(
            matches!(error, IndexError::NotText(found) if found.contains(kind)),
            "{error:?}"
        );
    }
}

#[test]
fn unusable_delimiters_and_quotes_are_refused() {
    for (delimiter, quote) in [
        ('，', Some('"')),
        ('\n', None),
        ('"', Some('"')),
        (',', Some('\r')),
        (',', Some('“')),
    ] {
        let format = Format::Csv(CsvFormat {
            delimiter,
            quote,
            ..CsvFormat::default()
        });
        assert!(
            matches!(index(b"a\n1\n", &format, TINY), Err(IndexError::BadFormat(_))),
            "{format:?}"
        );
    }
}

#[test]
fn a_cancelled_pass_ends_without_an_index() {
    let cancel = std::sync::atomic::AtomicBool::new(true);
    let error = index_bytes(&b"1\n"[..], None, &Format::Ndjson, TINY, &mut |_| {}, &cancel);
    assert!(matches!(error, Err(IndexError::Cancelled)), "{error:?}");
}
