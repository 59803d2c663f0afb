//! CSV: each row becomes a JSON object with string values only, `{"user_id":"u_1",…}`.
//!
//! Fields may be quoted and can then contain delimiters, line ends and doubled quotes. Lines end with LF, CRLF or CR.
//! Empty lines are skipped. Every row must have as many fields as there are columns.
//!
//! RFC 4180 allows no quote inside an unquoted field and no text after a closing quote. Rows with either are refused,
//! because the parser would read on and swallow other rows. Only a lenient format accepts such rows as the parser
//! reads them.

use std::collections::HashSet;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::csv_simple::{Key, ROW_END, SimpleFormat, SimpleRows, write_field};
use super::fault::FaultKind;
use super::json_rows::JsonRows;
use super::pass::ROW_BYTES_MAX;
use super::rows::{Beginning, RowFormat, Split, without_bom};
use super::spec::CsvFormat;

/// Bytes examined for a row including its line end; more than that shows that the row is too long.
const ROW_LOOK_MAX: usize = ROW_BYTES_MAX + 3;
/// Initial buffer for the fields of a row, doubled for rows that need more. A buffer for the longest row would be
/// cleared for each block, which took as long as parsing its rows.
const FIELDS_FIRST: usize = 4096;

/// Bytes needed to interpret the start of a file: a byte order mark, `sep=;` and a line end.
const BEGINNING: usize = 3 + 5 + 2;

/// Row parser based on `csv-core`, the state machine of the `csv` crate, which reports the bytes used by a row.
#[derive(Debug)]
pub(super) struct CsvRows {
    /// `None` until a row needs it: many blocks don't, and building one takes as long as a hundred rows. Boxed,
    /// because it is large and moved for each row.
    reader: Option<Box<Reader>>,
    header: bool,
    keys: Vec<Key>,
    /// Fields of the row just split, contiguous, and their ends. Unused if the row is plain.
    fields: Vec<u8>,
    ends: Vec<usize>,
    count: usize,
    delimiter: u8,
    quote: Option<u8>,
    is_lenient: bool,
    /// True if the row just split has no quote and bypassed the parser.
    is_plain: bool,
    /// True if the block being written needs no JSON escapes; `None` before that is checked.
    is_clean: Option<bool>,
}

impl CsvRows {
    /// Creates a parser for rows with these columns; if empty, `begin` sets them.
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

    /// Resets the parser to the start of a row.
    fn restart(&mut self) {
        self.reader = None;
    }

    /// Returns a parser at the start of a row. Feeding a line end first keeps it from treating a byte order mark,
    /// which may be field text, as the start of a file.
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

    /// Feeds bytes to the parser. Returns the bytes used if the row is complete, otherwise `None`.
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

    /// Returns the length of the first row with its line end, if that comes before any quote. Most files have only
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

    /// Finds the first quote of a row where RFC 4180 allows none. Up to there the parser agrees with the RFC, so a
    /// row without such a quote is read correctly.
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

    /// Returns the length of a first line `sep=;`, with which Excel declares the delimiter.
    fn sep_line(&self, text: &[u8]) -> Result<usize, FaultKind> {
        // Excel accepts it in upper or lower case.
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

    /// Returns the fields of the row just split.
    fn row(&self) -> Result<impl Iterator<Item = &str>, FaultKind> {
        let ends = &self.ends[..self.count];
        let text = &self.fields[..ends.last().copied().unwrap_or(0)];
        let text = std::str::from_utf8(text).map_err(|_| FaultKind::NotUtf8)?;
        let begins = [0].into_iter().chain(ends.iter().copied());
        // Delimiters and quotes are ASCII, so no field starts inside a character.
        Ok(begins.zip(ends).filter_map(|(begin, end)| text.get(begin..*end)))
    }

    /// Returns the column names in the row just split; `c1`, `c2` … without a header.
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
        // Names may be quoted, so the plain path for known columns must not apply.
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
            // The parser ends a row at CR, which would leave the LF to the next row.
            Some(len) if rest[len - 1] == b'\r' && rest.get(len) == Some(&b'\n') => Split::Row(len + 1),
            Some(len) => Split::Row(len),
            None if input.len() == ROW_LOOK_MAX => {
                Split::Fault(self.stray_quote(input).unwrap_or(FaultKind::TooLong))
            }
            None if !eof => {
                self.restart();
                Split::More
            }
            // A line end completes the last row, unless it is inside quotes.
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
        // Checked once per block: later calls get a part of the same block.
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

/// Returns `Some` if the file starts like JSON, with true for an array.
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

/// Counts the line end characters at the start.
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
