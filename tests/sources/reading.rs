//! Rows read block by block equal a naive parse of the whole file; a block that changed gives no row at all.

use std::io::Write;
use std::process::{Command, Stdio};

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use windrow_engine::ports::sources::source::{Source, SourceError};
use windrow_sources::{BlockLimits, CsvFormat, Format, ROW_BYTES_MAX, index_bytes};

use crate::common::{TINY, csv, file_source, index, row, rows, runtime};

/// A table, how it is written, and how it is cut.
#[derive(Clone, Debug)]
struct Table {
    rows: Vec<Vec<String>>,
    format: CsvFormat,
    bytes: Vec<u8>,
    limits: BlockLimits,
}

fn field() -> impl Strategy<Value = String> {
    // Everything that means something to a CSV or to JSON, and text of several bytes per letter.
    let piece = prop::sample::select(vec![
        "a", "", "\"", ",", ";", "\t", "\n", "\r\n", "\r", " ", "'", "\\", "你好", "é", "\u{feff}", "\u{1}",
        "🐟", "|",
    ]);
    vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

fn table() -> impl Strategy<Value = Table> {
    let cells = (1usize..5).prop_flat_map(|width| vec(vec(field(), width), 1..30));
    let shape = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    let delimiter = prop::sample::select(vec![',', ';', '\t', '|']);
    let limits = (1u32..7, 1usize..200).prop_map(|(rows, bytes)| BlockLimits {
        rows,
        bytes,
        far: 100,
    });
    (cells, shape, delimiter, limits).prop_map(
        |(rows, (header, bom, crlf, quotes, tail), delimiter, limits)| {
            let format = CsvFormat {
                delimiter,
                header,
                ..CsvFormat::default()
            };
            let mut writer = csv::WriterBuilder::new();
            writer.delimiter(delimiter as u8);
            if crlf {
                writer.terminator(csv::Terminator::CRLF);
            }
            if quotes {
                writer.quote_style(csv::QuoteStyle::Always);
            }
            let mut writer = writer.from_writer(if bom {
                "\u{feff}".as_bytes().to_vec()
            } else {
                Vec::new()
            });
            if header {
                let names: Vec<String> = (0..rows[0].len()).map(|n| format!("n{n}")).collect();
                writer.write_record(&names).expect("memory can be written");
            }
            for row in &rows {
                writer.write_record(row).expect("memory can be written");
            }
            let mut bytes = writer.into_inner().expect("memory can be written");
            if tail {
                let end = bytes.trim_ascii_end().len();
                // A last line without its end, unless that would cut into a field.
                let only_line_end = if crlf { end + 2 } else { end + 1 };
                if bytes.len() == only_line_end {
                    bytes.truncate(end);
                }
            }
            Table {
                rows,
                format,
                bytes,
                limits,
            }
        },
    )
}

fn expected(table: &Table) -> Vec<Value> {
    let mut names: Vec<String> = (1..=table.rows[0].len()).map(|n| format!("c{n}")).collect();
    let mut reader = csv::ReaderBuilder::new();
    reader.delimiter(table.format.delimiter as u8).has_headers(false);
    let mut records = reader.from_reader(table.bytes.as_slice()).into_records();
    if table.format.header {
        names = records
            .next()
            .expect("it has a header")
            .expect("it is good")
            .iter()
            .map(str::to_owned)
            .collect();
    }
    let row = |record: csv::StringRecord| {
        let fields = names
            .iter()
            .zip(record.iter())
            .map(|(name, field)| (name.clone(), json!(field)));
        Value::Object(fields.collect::<Map<_, _>>())
    };
    records.map(|record| row(record.expect("it is good"))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn csv_rows_equal_those_of_a_naive_parse(table in table(), order in vec(any::<prop::sample::Index>(), 20)) {
        let expected = expected(&table);
        prop_assume!(!expected.is_empty());
        let values: Vec<Vec<&str>> = expected.iter().map(|row| {
            row.as_object().expect("rows are objects").values().map(|v| v.as_str().expect("text")).collect()
        }).collect();
        // The twin itself gives back what was written, byte order mark at the very start aside.
        if table.format.header || !table.rows[0][0].starts_with('\u{feff}') {
            let written: Vec<Vec<&str>> =
                table.rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
            prop_assert_eq!(values, written);
        }
        let dir = tempfile::tempdir().expect("a directory can be made");
        let source = file_source(dir.path(), &table.bytes, &Format::Csv(table.format.clone()), table.limits);
        prop_assert_eq!(source.total().0, expected.len() as u64);
        runtime().block_on(async {
            for at in order {
                let at = at.index(expected.len());
                prop_assert_eq!(&row(&source, at as u64).await.expect("nothing changed"), &expected[at]);
            }
            prop_assert_eq!(rows(&source).await, expected);
            Ok(())
        })?;
    }

    #[test]
    fn lenient_csv_that_no_writer_makes_is_read_as_the_csv_crate_reads_it(
        lines in vec((vec(field(), 2), any::<bool>()), 1..30),
        quote in prop::sample::select(vec![Some('"'), Some('\''), None]),
    ) {
        let line = |(fields, crlf): &(Vec<String>, bool)| {
            format!("{}{}", fields.join(","), if *crlf { "\r\n" } else { "\n" })
        };
        let text: String = lines.iter().map(line).collect();
        let format = CsvFormat { delimiter: ',', header: false, quote, lenient: true };
        let mut reader = csv::ReaderBuilder::new();
        reader.has_headers(false).flexible(true);
        match quote {
            Some(quote) => reader.quote(quote as u8),
            None => reader.quoting(false),
        };
        let records: Vec<Vec<String>> = reader.from_reader(text.as_bytes()).into_records()
            .map(|record| record.expect("it is text").iter().map(str::to_owned).collect())
            .collect();
        // What is ragged or never closed is refused, and a mark at the beginning is no text.
        prop_assume!(!text.starts_with('\u{feff}'));
        let limits = BlockLimits { rows: 50, bytes: 10_000, far: u64::MAX };
        let Ok(indexed) = index(text.as_bytes(), &Format::Csv(format.clone()), limits) else { return Ok(()) };
        prop_assert_eq!(indexed.rows, records.len() as u64);
        let dir = tempfile::tempdir().expect("a directory can be made");
        let source = file_source(dir.path(), text.as_bytes(), &Format::Csv(format), limits);
        let read = runtime().block_on(rows(&source));
        let values = |row: &Value| -> Vec<String> {
            let values = row.as_object().expect("rows are objects").values();
            values.map(|value| value.as_str().expect("text").to_owned()).collect()
        };
        prop_assert_eq!(read.iter().map(values).collect::<Vec<_>>(), records);
    }

    #[test]
    fn ndjson_rows_equal_those_of_a_naive_parse(
        values in vec((any::<i64>(), field(), any::<bool>()), 1..40),
        (crlf, bom, tail, blank) in (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
        (block_rows, bytes) in (1u32..7, 1usize..200),
    ) {
        let values: Vec<Value> = values.into_iter().map(|(number, text, object)| {
            if object { json!({"n": number, text: [1, null]}) } else { json!(text) }
        }).collect();
        let end = if crlf { "\r\n" } else { "\n" };
        let between = if blank { format!("{end} \t{end}{end}") } else { end.to_owned() };
        let mut text = values.iter().map(Value::to_string).collect::<Vec<_>>().join(&between);
        if tail {
            text.push_str(&between);
        }
        if bom {
            text.insert(0, '\u{feff}');
        }
        let limits = BlockLimits { rows: block_rows, bytes, far: 100 };
        let dir = tempfile::tempdir().expect("a directory can be made");
        let source = file_source(dir.path(), text.as_bytes(), &Format::Ndjson, limits);
        runtime().block_on(async {
            prop_assert_eq!(rows(&source).await, values);
            Ok(())
        })?;
    }

    #[test]
    fn blocks_cover_every_byte_and_every_row(table in table()) {
        let indexed = index(&table.bytes, &Format::Csv(table.format.clone()), table.limits);
        let Ok(indexed) = indexed else { return Ok(()) };
        let (mut row, mut byte) = (0, 0);
        while row < indexed.rows {
            let block = indexed.index.locate(windrow_core::ids::ItemIndex(row)).expect("the row is there");
            prop_assert_eq!(block.rows.start, row);
            prop_assert!(block.bytes.start >= byte);
            (row, byte) = (block.rows.end, block.bytes.end);
        }
        prop_assert!(indexed.index.blocks().iter().all(|block| block.offset < table.bytes.len() as u64));
        prop_assert_eq!(indexed.bytes, table.bytes.len() as u64);
    }
}

const PEOPLE: &[u8] = b"id,name\n1,a\n2,b\n3,c\n4,d\n5,e\n6,f\n7,g\n";

/// The outcome of reading a row after the file was edited in place.
fn after_edit(edit: impl FnOnce(&mut Vec<u8>), at: u64) -> Result<Value, SourceError> {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let source = file_source(dir.path(), PEOPLE, &csv(), TINY);
    let mut bytes = PEOPLE.to_vec();
    edit(&mut bytes);
    std::fs::write(dir.path().join("rows"), bytes).expect("the directory is writable");
    runtime().block_on(row(&source, at))
}

#[test]
fn a_byte_changed_anywhere_stops_every_row_of_its_block_and_no_other() {
    // Blocks of three rows: 0..3 with the header, 3..6, 6..7.
    let block_of = |byte: usize| match byte {
        0..20 => 0,
        20..32 => 1,
        _ => 2,
    };
    for byte in 0..PEOPLE.len() {
        for at in 0..7 {
            let read = after_edit(|bytes| bytes[byte] ^= 1, at);
            let hit = block_of(byte) == at / 3;
            assert_eq!(
                matches!(read, Err(SourceError::Changed(_))),
                hit,
                "byte {byte}, row {at}: {read:?}"
            );
            assert_eq!(read.is_ok(), !hit, "byte {byte}, row {at}: {read:?}");
        }
    }
}

#[test]
fn a_truncated_file_serves_whole_blocks_and_refuses_the_others_by_name() {
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(25);
    assert_eq!(after_edit(cut, 2), Ok(json!({"id": "3", "name": "c"})));
    let Err(SourceError::Changed(text)) = after_edit(cut, 3) else {
        panic!("row 3 is gone")
    };
    assert!(
        text.contains("rows 3 to 5") && text.contains("shorter") && text.contains("try:"),
        "{text}"
    );
}

#[test]
fn appended_bytes_leave_the_indexed_rows_valid() {
    let append = |bytes: &mut Vec<u8>| bytes.extend_from_slice(b"8,h\n");
    assert_eq!(after_edit(append, 6), Ok(json!({"id": "7", "name": "g"})));
    let Err(SourceError::BadRow(text)) = after_edit(append, 7) else {
        panic!("row 7 was not indexed")
    };
    assert!(text.contains("7 rows"), "{text}");
}

#[test]
fn an_inserted_row_stops_every_later_block() {
    let insert = |bytes: &mut Vec<u8>| {
        bytes.splice(20..20, b"0,z\n".iter().copied());
    };
    assert_eq!(after_edit(insert, 2), Ok(json!({"id": "3", "name": "c"})));
    assert!(matches!(after_edit(insert, 3), Err(SourceError::Changed(_))));
    assert!(matches!(after_edit(insert, 6), Err(SourceError::Changed(_))));
}

#[test]
fn a_file_replaced_by_renaming_or_deleted_goes_on_serving_what_was_indexed() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let source = file_source(dir.path(), PEOPLE, &csv(), TINY);
    let other = dir.path().join("other");
    std::fs::write(&other, "id,name\n9,z\n").expect("the directory is writable");
    std::fs::rename(&other, dir.path().join("rows")).expect("the directory is writable");
    assert_eq!(
        runtime().block_on(row(&source, 4)),
        Ok(json!({"id": "5", "name": "e"}))
    );
    std::fs::remove_file(dir.path().join("rows")).expect("it is there");
    assert_eq!(
        runtime().block_on(row(&source, 6)),
        Ok(json!({"id": "7", "name": "g"}))
    );
}

#[test]
fn wide_rows_and_rows_of_the_longest_length_pass() {
    let wide = format!(
        "{}\n{}\n",
        (0..3000).map(|n| format!("n{n}")).collect::<Vec<_>>().join(","),
        ",".repeat(2999)
    );
    assert_eq!(
        index(wide.as_bytes(), &csv(), BlockLimits::default())
            .expect("it is good")
            .columns
            .len(),
        3000
    );
    let long = format!("a\n\"{}\"\nb\n", "x\n".repeat(ROW_BYTES_MAX / 2 - 1));
    let dir = tempfile::tempdir().expect("a directory can be made");
    let source = file_source(dir.path(), long.as_bytes(), &csv(), BlockLimits::default());
    let all = runtime().block_on(rows(&source));
    assert_eq!(all[0]["a"].as_str().map(str::len), Some(ROW_BYTES_MAX - 2));
    assert_eq!(all[1], json!({"a": "b"}));
}

/// The rows of each text as Python's strict reader has them; none where it refuses the text.
fn read_by_python(texts: &[String]) -> Vec<Option<Vec<Vec<String>>>> {
    const READER: &str = r#"
import csv, io, json, sys
def read(text):
    try: return [row for row in csv.reader(io.StringIO(text, newline=''), strict=True) if row]
    except csv.Error: return None
print(json.dumps([read(text) for text in json.load(sys.stdin)]))
"#;
    let mut python = Command::new("python3")
        .args(["-c", READER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is installed");
    let mut input = python.stdin.take().expect("it is piped");
    let asked = serde_json::to_vec(texts).expect("texts are JSON");
    input.write_all(&asked).expect("it reads");
    drop(input);
    let output = python.wait_with_output().expect("it ends");
    serde_json::from_slice(&output.stdout).expect("it answers with JSON")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn csv_is_read_as_python_reads_it_strictly_or_refused(
        texts in vec(vec(prop::sample::select(vec!["a", "b", "\"", "\"\"", ",", "\n", "\r\n", " ", "é"]), 1..16), 200),
    ) {
        let texts: Vec<String> = texts.iter().map(|pieces| pieces.concat()).collect();
        let format = Format::Csv(CsvFormat { header: false, ..CsvFormat::default() });
        let dir = tempfile::tempdir().expect("a directory can be made");
        for (text, python) in texts.iter().zip(read_by_python(&texts)) {
            let ours = index(text.as_bytes(), &format, TINY);
            match (ours, python) {
                (Ok(_), None) => prop_assert!(false, "Python refuses {text:?}"),
                (Ok(_), Some(python)) => {
                    let source = file_source(dir.path(), text.as_bytes(), &format, TINY);
                    let named = |row: &Vec<String>| {
                        let members = row.iter().enumerate().map(|(n, text)| (format!("c{}", n + 1), json!(text)));
                        Value::Object(members.collect())
                    };
                    let python: Vec<Value> = python.iter().map(named).collect();
                    prop_assert_eq!(runtime().block_on(rows(&source)), python, "{:?}", text);
                }
                // Python takes a quote inside an unquoted field as text; the RFC doesn't have it.
                (Err(_), Some(python)) => {
                    let has_quote = python.iter().flatten().any(|field| field.contains('"'));
                    let is_ragged = python.iter().any(|row| row.len() != python[0].len());
                    prop_assert!(has_quote || is_ragged || python.is_empty(), "{text:?} is refused");
                }
                (Err(_), None) => {}
            }
        }
    }
}

#[test]
fn unquoted_tables_keep_their_quotes() {
    let format = Format::Csv(CsvFormat {
        quote: None,
        ..CsvFormat::default()
    });
    let dir = tempfile::tempdir().expect("a directory can be made");
    let source = file_source(dir.path(), b"a,b\n\"x,\"y\"\n", &format, TINY);
    assert_eq!(
        runtime().block_on(rows(&source)),
        vec![json!({"a": "\"x", "b": "\"y\""})]
    );
}

/// Endless rows, made as they are read.
struct Stream {
    line: &'static [u8],
    at: u64,
    end: u64,
}

impl Stream {
    fn new(line: &'static [u8], lines: u64) -> Stream {
        Stream {
            line,
            at: 0,
            end: lines * line.len() as u64,
        }
    }
}

impl std::io::Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = buffer
            .len()
            .min(usize::try_from(self.end - self.at).unwrap_or(usize::MAX));
        let mut written = 0;
        while written < len {
            let rest = &self.line[(self.at % self.line.len() as u64) as usize..];
            let take = rest.len().min(len - written);
            buffer[written..written + take].copy_from_slice(&rest[..take]);
            written += take;
            self.at += take as u64;
        }
        Ok(len)
    }
}

#[test]
fn the_pass_holds_a_block_and_a_read_in_memory_however_long_the_file() {
    const LINE: &[u8] = b"{\"user_id\":\"u_00000000\",\"locale\":\"zh-CN\"}\n";
    let held = |lines: u64| {
        let never = std::sync::atomic::AtomicBool::new(false);
        let limits = BlockLimits::default();
        let indexed = index_bytes(
            Stream::new(LINE, lines),
            None,
            &Format::Ndjson,
            limits,
            &mut |_| {},
            &never,
        )
        .expect("the rows are good");
        assert_eq!(indexed.rows, lines);
        indexed.buffered_max
    };
    let bound = 4096 * LINE.len() + 2 * 256 * 1024;
    let held = held(400_000);
    assert!(
        held <= bound,
        "{held} bytes of {} were held at once",
        400_000 * LINE.len()
    );
}
