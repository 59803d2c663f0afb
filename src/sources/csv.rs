//! CSV: rows become JSON objects whose values are all strings, `{"user_id":"u_1",…}`.
//!
//! Fields may be quoted and then hold delimiters, line ends and doubled quotes. Lines end with LF, CRLF or CR.
//! Lines without any character are skipped. Every row must have as many fields as there are columns.
//!
//! RFC 4180 has no quote inside an unquoted field and no text behind a closing quote. A row with either is refused: the
//! parser would read on, and swallow other rows. Only a lenient format takes such rows as the parser reads them.

use std::collections::HashSet;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::csv_simple::{Key, ROW_END, SimpleFormat, SimpleRows, write_field};
use super::fault::FaultKind;
use super::json_rows::JsonRows;
use super::pass::ROW_BYTES_MAX;
use super::rows::{Beginning, RowFormat, Split, without_bom};
use super::spec::CsvFormat;

/// The most bytes that a row may take with its line end. One more shows that it is too long.
const ROW_LOOK_MAX: usize = ROW_BYTES_MAX + 3;
/// Room for the fields of a row, at first: it doubles for those that need more. Room for the longest would be cleared for
/// each block, which took as long as its rows.
const FIELDS_FIRST: usize = 4096;

/// The bytes with which a beginning is judged: a byte order mark, `sep=;` and a line end.
const BEGINNING: usize = 3 + 5 + 2;

/// Parses rows with `csv-core`, the state machine of the `csv` crate, which tells how many bytes a row took.
#[derive(Debug)]
pub(super) struct CsvRows {
    /// None until a row needs it: many blocks have none, and making it takes as long as a hundred rows. In a box, since it is
    /// large and taken for each row.
    reader: Option<Box<Reader>>,
    header: bool,
    keys: Vec<Key>,
    /// The fields of the row just split, one behind the other, and their ends; of no use where it is plain.
    fields: Vec<u8>,
    ends: Vec<usize>,
    count: usize,
    delimiter: u8,
    quote: Option<u8>,
    is_lenient: bool,
    /// The row just split has no quote, and was not fed to the parser.
    is_plain: bool,
    /// Whether the block being written has nothing that JSON writes in another way; none before it is looked at.
    is_clean: Option<bool>,
}

impl CsvRows {
    /// Rows of these columns; without columns they come from `begin`.
    pub(super) fn new(format: &CsvFormat, columns: &[String]) -> CsvRows {
        CsvRows {
            reader: None,
            header: format.header,
            keys: keys(columns),
            fields: vec![0; FIELDS_FIRST],
            ends: vec![0; 64],
            count: 0,
            delimiter: format.delimiter as u8,
            quote: format.quote.map(|quote| quote as u8),
            is_lenient: format.lenient,
            is_plain: false,
            is_clean: None,
        }
    }

    /// Back to the start of a row.
    fn restart(&mut self) {
        self.reader = None;
    }

    /// A parser at the start of a row. The line end keeps it from taking a byte order mark, which may be the text of a
    /// field, for the start of a file.
    fn reader(&self) -> Box<Reader> {
        let mut builder = ReaderBuilder::new();
        builder.delimiter(self.delimiter);
        match self.quote {
            Some(quote) => builder.quote(quote),
            None => builder.quoting(false),
        };
        let mut reader = Box::new(builder.build());
        reader.read_record(b"\n", &mut [0; 1], &mut [0; 1]);
        reader
    }

    /// Feeds bytes to the parser and says how many it took until the row was complete; none when it isn't.
    fn feed(&mut self, input: &[u8], written: &mut usize) -> Option<usize> {
        let mut read = 0;
        let mut reader = self.reader.take().unwrap_or_else(|| self.reader());
        let row = loop {
            let (output, ends) = (&mut self.fields[*written..], &mut self.ends[self.count..]);
            let (result, nin, nout, nend) = reader.read_record(&input[read..], output, ends);
            read += nin;
            *written += nout;
            self.count += nend;
            match result {
                ReadRecordResult::Record => break Some(read),
                ReadRecordResult::InputEmpty | ReadRecordResult::End => break None,
                ReadRecordResult::OutputFull => self.fields.resize(self.fields.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
            }
        };
        self.reader = Some(reader);
        row
    }

    /// The length of the row at the beginning with its line end, if that comes before any quote. Most files have only
    /// such rows, and are indexed in two thirds of the time without the state machine (`cargo bench --bench source`).
    fn split_plain(&mut self, input: &[u8]) -> Option<usize> {
        let end = memchr::memchr3(b'\n', b'\r', self.quote.unwrap_or(b'\n'), input)?;
        if Some(input[end]) == self.quote {
            return None;
        }
        self.is_plain = true;
        self.count = memchr::memchr_iter(self.delimiter, &input[..end]).count() + 1;
        Some(end + 1)
    }

    /// The first quote of a row that RFC 4180 doesn't have there. Up to it the parser reads as the RFC does, so that a row
    /// without one is what it seems.
    fn stray_quote(&self, row: &[u8]) -> Option<FaultKind> {
        let quote = self.quote.filter(|_| !self.is_lenient)?;
        let mut quotes = memchr::memchr_iter(quote, row).peekable();
        while let Some(open) = quotes.next() {
            let below = |at: usize| memchr::memchr_iter(b'\n', &row[..at]).count();
            if open > 0 && row[open - 1] != self.delimiter {
                return Some(FaultKind::QuoteInText { below: below(open) });
            }
            let close = loop {
                let close = quotes.next()?;
                if quotes.next_if_eq(&(close + 1)).is_none() {
                    break close;
                }
            };
            match row.get(close + 1) {
                None | Some(b'\n' | b'\r') => return None,
                Some(next) if *next == self.delimiter => {}
                Some(_) => return Some(FaultKind::TextBehindQuote { below: below(close) }),
            }
        }
        None
    }

    fn check_count(&self) -> Result<(), FaultKind> {
        if self.count == self.keys.len() {
            return Ok(());
        }
        Err(FaultKind::Ragged {
            expected: self.keys.len(),
            actual: self.count,
        })
    }

    /// The length of a first line `sep=;`, with which Excel names the delimiter.
    fn sep_line(&self, text: &[u8]) -> Result<usize, FaultKind> {
        // As Excel has it, in letters of any size.
        let Some((word, [named, rest @ ..])) = text.split_at_checked(b"sep=".len()) else {
            return Ok(0);
        };
        match line_ends(rest) {
            0 => Ok(0),
            _ if !word.eq_ignore_ascii_case(b"sep=") => Ok(0),
            _ if *named != self.delimiter => Err(FaultKind::SepLine(char::from(*named))),
            len => Ok(b"sep=;".len() + len),
        }
    }

    /// The fields of the row just split.
    fn row(&self) -> Result<impl Iterator<Item = &str>, FaultKind> {
        let ends = &self.ends[..self.count];
        let text = &self.fields[..ends.last().copied().unwrap_or(0)];
        let text = std::str::from_utf8(text).map_err(|_| FaultKind::NotUtf8)?;
        let begins = [0].into_iter().chain(ends.iter().copied());
        // Delimiters and quotes are ASCII, so that no field begins within a character.
        Ok(begins.zip(ends).filter_map(|(begin, end)| text.get(begin..*end)))
    }

    /// The names in the row just split; without a header `c1`, `c2` …
    fn columns(&self) -> Result<Vec<String>, Vec<FaultKind>> {
        if !self.header {
            return Ok((1..=self.count).map(|number| format!("c{number}")).collect());
        }
        let names: Vec<String> = self
            .row()
            .map_err(|fault| vec![fault])?
            .map(str::to_owned)
            .collect();
        let mut seen = HashSet::new();
        let twice = names.iter().filter(|name| !seen.insert(name.as_str()));
        let twice: Vec<FaultKind> = twice
            .map(|name| FaultKind::DuplicateColumn(name.clone()))
            .collect();
        if twice.is_empty() { Ok(names) } else { Err(twice) }
    }
}

impl RowFormat for CsvRows {
    fn begin(&mut self, rest: &[u8], eof: bool) -> Beginning {
        if rest.len() < BEGINNING && !eof {
            return Beginning::More;
        }
        let (text, mark) = without_bom(rest);
        let sep = match self.sep_line(text) {
            Ok(len) => mark + len,
            Err(fault) => return Beginning::Faults(vec![fault]),
        };
        let before = sep + line_ends(&rest[sep..]);
        // The names may be quoted, whatever they are known to be.
        self.keys.clear();
        let row = match self.split(&rest[before..], eof) {
            Split::Row(len) => len,
            Split::Blank(_) if eof => {
                return Beginning::Read {
                    len: rest.len(),
                    columns: Vec::new(),
                };
            }
            Split::Blank(_) | Split::More => return Beginning::More,
            Split::Fault(kind) => return Beginning::Faults(vec![kind]),
        };
        if let Some(is_array) = json_like(&rest[before..]).filter(|_| self.header) {
            return Beginning::Faults(vec![FaultKind::LikeJson(is_array)]);
        }
        if let Some(fault) = self.stray_quote(&rest[before..before + row]) {
            return Beginning::Faults(vec![fault]);
        }
        let columns = match self.columns() {
            Ok(columns) => columns,
            Err(faults) => return Beginning::Faults(faults),
        };
        self.keys = keys(&columns);
        let len = if self.header { before + row } else { before };
        self.restart();
        Beginning::Read { len, columns }
    }

    fn split(&mut self, rest: &[u8], eof: bool) -> Split {
        let blank = line_ends(rest);
        if blank > 0 || rest.is_empty() {
            return Split::Blank(blank);
        }
        let (input, mut written) = (&rest[..rest.len().min(ROW_LOOK_MAX)], 0);
        let plain = if self.keys.is_empty() {
            None
        } else {
            self.split_plain(input)
        };
        let fed = plain.or_else(|| {
            (self.count, self.is_plain) = (0, false);
            self.feed(input, &mut written)
        });
        match fed {
            // The parser ends a row at CR and would leave the LF to the next.
            Some(len) if rest[len - 1] == b'\r' && rest.get(len) == Some(&b'\n') => Split::Row(len + 1),
            Some(len) => Split::Row(len),
            None if input.len() == ROW_LOOK_MAX => {
                Split::Fault(self.stray_quote(input).unwrap_or(FaultKind::TooLong))
            }
            None if !eof => {
                self.restart();
                Split::More
            }
            // A line end completes the last row, unless it stands inside quotes.
            None if self.feed(b"\n", &mut written).is_some() => Split::Row(rest.len()),
            None => Split::Fault(self.stray_quote(rest).unwrap_or(FaultKind::UnclosedQuote)),
        }
    }

    fn check(&self, row: &[u8]) -> Result<(), FaultKind> {
        if !self.is_plain
            && let Some(fault) = self.stray_quote(row)
        {
            return Err(fault);
        }
        self.check_count()
    }

    fn write(&mut self, row: &[u8], rows: &mut JsonRows) -> Result<(), FaultKind> {
        self.check_count()?;
        if self.is_plain {
            let mut written = 0;
            (self.count, self.is_plain) = (0, false);
            let fed = self.feed(row, &mut written);
            fed.or_else(|| self.feed(b"\n", &mut written));
        }
        let mut start = 0;
        for (key, &end) in self.keys.iter().zip(&self.ends[..self.count]) {
            rows.push(key.text());
            write_field(&self.fields[start..end], rows)?;
            start = end;
        }
        rows.push(ROW_END);
        Ok(())
    }

    fn write_ahead(&mut self, block: &[u8], rows: &mut JsonRows) -> Result<usize, FaultKind> {
        let format = SimpleFormat {
            delimiter: self.delimiter,
            quote: self.quote,
        };
        // Looked for once a block: what comes after the first call is a part of it.
        let is_clean = *self.is_clean.get_or_insert_with(|| format.is_clean(block));
        let simple = SimpleRows {
            format,
            keys: &self.keys,
            block,
            is_clean,
        };
        simple.write(rows)
    }

    fn overhead(&self) -> usize {
        self.keys.iter().map(|key| key.text().len()).sum::<usize>() + ROW_END.len()
    }
}

/// Whether a file begins as JSON does, and then whether with an array.
fn json_like(text: &[u8]) -> Option<bool> {
    let rest = text.trim_ascii_start();
    let (first, rest) = rest.split_first()?;
    let next = rest.trim_ascii_start().first();
    match (first, next) {
        (b'{', Some(b'"' | b'}')) => Some(false),
        (b'[', None | Some(b'{' | b'[' | b']' | b'"')) => Some(true),
        (b'[', _) if rest.starts_with(b"\n") || rest.starts_with(b"\r") => Some(true),
        _ => None,
    }
}

/// How many characters of line ends come first.
fn line_ends(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| matches!(byte, b'\n' | b'\r'))
        .count()
}

fn keys(columns: &[String]) -> Vec<Key> {
    let key = |(number, name): (usize, &String)| Key::new(number, name);
    columns.iter().enumerate().map(key).collect()
}
