//! Description of a task's source, as stored with the task and given by people.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use super::spec_json::RawSpec;
use windrow_core::ids::ItemCount;
use windrow_engine::ports::sources::resolver::RedriveSpec;
use windrow_engine::ports::sources::uploads::UploadId;

/// Description of a source: `{"kind":"range","total":10}`, `{"kind":"inline","items":[…]}`,
/// `{"kind":"csv","path":"users.csv","format":{"delimiter":";"}}`, `{"kind":"ndjson","path":"-"}`,
/// `{"kind":"ndjson","upload":7}`,
/// `{"kind":"redrive","origin":42,"groups":[{"code":"TIMEOUT","first":0,"count":17}]}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "RawSpec", into = "RawSpec")]
pub enum SourceSpec {
    /// Numbers only, without data.
    Range {
        /// Number of items in the range.
        total: ItemCount,
    },
    /// Inline list, kept as it was written.
    Inline {
        /// Items as a JSON array.
        items: Box<RawValue>,
    },
    /// Rows of a file.
    File {
        /// Origin of the bytes.
        input: Input,
        /// Format of the rows.
        format: Format,
    },
    /// Failures of another task.
    Redrive(RedriveSpec),
    /// Items appended to the task itself.
    Appended,
}

/// Origin of a file source's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Standard input, written `-`. Never stored: after spooling it is `Spooled`.
    Stdin,
    /// Path of a local file.
    Path(String),
    /// Local files that match a pattern, listed as NDJSON. Never stored: after listing it is `Spooled`.
    Glob {
        /// Pattern in shell syntax.
        pattern: String,
        /// True to refuse files that can't be listed, instead of skipping them.
        strict: bool,
    },
    /// Piped input or a file list, now a file in the spool directory named after the checksum of its content.
    Spooled(String),
    /// Upload received by the API server.
    Upload(UploadId),
}

/// Format of the rows in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values and similar formats.
    Csv(CsvFormat),
    /// One JSON value per line.
    Ndjson,
    /// One string per line.
    Lines,
    /// Strings terminated by NUL, as `find -print0` writes them.
    Nul,
}

/// Options of a CSV.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CsvFormat {
    /// Delimiter between fields; one ASCII character.
    pub delimiter: char,
    /// True if the first row holds the column names; without it they are `c1`, `c2` …
    pub header: bool,
    /// Quote around fields; `None` reads quotes as text.
    pub quote: Option<char>,
    /// True to accept rows with quotes that RFC 4180 doesn't allow, as the parser reads them: fields may change, rows
    /// may be swallowed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lenient: bool,
}

impl Default for CsvFormat {
    /// Returns the format of RFC 4180, with a header.
    fn default() -> CsvFormat {
        CsvFormat {
            delimiter: ',',
            header: true,
            quote: Some('"'),
            lenient: false,
        }
    }
}

impl Format {
    /// Returns `csv`, `ndjson`, `lines` or `nul`.
    pub fn kind(&self) -> &'static str {
        match self {
            Format::Csv(_) => "csv",
            Format::Ndjson => "ndjson",
            Format::Lines => "lines",
            Format::Nul => "nul",
        }
    }

    /// Returns the options as JSON text; equal options give equal text.
    pub fn to_text(&self) -> String {
        match self {
            Format::Csv(csv) => serde_json::to_string(csv).expect("characters and flags are JSON"),
            Format::Ndjson => r#"{"ndjson":true}"#.to_owned(),
            Format::Lines => r#"{"lines":true}"#.to_owned(),
            Format::Nul => r#"{"nul":true}"#.to_owned(),
        }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// Names the invalid option.
    pub fn check(&self) -> Result<(), String> {
        let Format::Csv(csv) = self else { return Ok(()) };
        let usable = |c: char| c.is_ascii() && !matches!(c, '\n' | '\r' | '\0');
        if !usable(csv.delimiter) {
            return Err(format!("{:?} can't be the delimiter", csv.delimiter));
        }
        match csv.quote {
            Some(quote) if !usable(quote) => Err(format!("{quote:?} can't be the quote")),
            Some(quote) if quote == csv.delimiter => {
                Err(format!("{quote:?} can't be both delimiter and quote"))
            }
            _ => Ok(()),
        }
    }
}

impl SourceSpec {
    /// Returns the description as JSON text, as it is stored.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a source's description is JSON")
    }

    /// Parses a description.
    ///
    /// # Errors
    /// Description of the fault.
    pub fn parse(text: &str) -> Result<SourceSpec, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Returns `range`, `inline`, `csv`, `ndjson`, `lines`, `redrive` or `appended`.
    pub fn kind(&self) -> &'static str {
        match self {
            SourceSpec::Range { .. } => "range",
            SourceSpec::Inline { .. } => "inline",
            SourceSpec::File { format, .. } => format.kind(),
            SourceSpec::Redrive(_) => "redrive",
            SourceSpec::Appended => "appended",
        }
    }

    /// Returns a fingerprint of the items: equal for the same items, wherever they are read from.
    pub fn meaning(&self, checksum: u64, total: ItemCount) -> u64 {
        let format = match self {
            SourceSpec::File { format, .. } => format.to_text(),
            SourceSpec::Redrive(_) => self.to_text(),
            SourceSpec::Range { .. } | SourceSpec::Inline { .. } | SourceSpec::Appended => String::new(),
        };
        xxh3_64(format!("{}\n{format}\n{checksum:016x}\n{}", self.kind(), total.0).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_read_back_as_they_are_written() {
        for text in [
            r#"{"kind":"range","total":10}"#,
            r#"{"kind":"inline","items":[1,{"b":1,"a":123456789012345678901234567890}]}"#,
            r#"{"kind":"csv","path":"u.csv","format":{"delimiter":";","header":false,"quote":null}}"#,
            r#"{"kind":"csv","path":"u.csv","format":{"delimiter":",","header":true,"quote":"\"","lenient":true}}"#,
            r#"{"kind":"ndjson","path":"-"}"#,
            r#"{"kind":"ndjson","spooled":"stdin-00.ndjson"}"#,
            r#"{"kind":"ndjson","upload":7}"#,
            r#"{"kind":"lines","path":"urls.txt"}"#,
            r#"{"kind":"nul","path":"-"}"#,
            r#"{"kind":"redrive","origin":42,"keys_of":40,"groups":[{"code":"BUSY","first":0,"count":3}]}"#,
            r#"{"kind":"redrive","origin":42,"indexes":[[5,1],[9,12]]}"#,
            r#"{"kind":"redrive","origin":42,"indexes":[[5,1]],"replay":true}"#,
            r#"{"kind":"appended"}"#,
        ] {
            assert_eq!(
                SourceSpec::parse(text).map(|spec| spec.to_text()),
                Ok(text.to_owned())
            );
        }
    }

    #[test]
    fn descriptions_of_no_source_are_refused() {
        for text in [
            r#"{"kind":"range"}"#,
            r#"{"kind":"range","total":1,"path":"u"}"#,
            r#"{"kind":"csv"}"#,
            r#"{"kind":"csv","path":"a","spooled":"stdin-1"}"#,
            r#"{"kind":"ndjson","spooled":"../x"}"#,
            r#"{"kind":"ndjson","spooled":"stdin-/../x"}"#,
            r#"{"kind":"xlsx","path":"u"}"#,
            r#"{"kind":"csv","path":"u","sheet":1}"#,
            r#"{"kind":"ndjson","path":"u","format":{}}"#,
            r#"{"kind":"lines","path":"u","format":{}}"#,
            r#"{"kind":"ndjson","upload":7,"path":"u"}"#,
            r#"{"kind":"redrive","origin":42}"#,
            r#"{"kind":"redrive","groups":[]}"#,
            r#"{"kind":"redrive","origin":42,"indexes":[[5,0]]}"#,
            r#"{"kind":"range","total":1,"origin":42}"#,
            r#"{"kind":"appended","total":1}"#,
        ] {
            assert!(SourceSpec::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn meaning_changes_with_kind_format_checksum_and_total() {
        let spec = |text: &str| SourceSpec::parse(text).expect("it is a description");
        let csv = spec(r#"{"kind":"csv","path":"u"}"#);
        let base = csv.meaning(1, ItemCount(2));
        assert_eq!(
            base,
            spec(r#"{"kind":"csv","path":"elsewhere"}"#).meaning(1, ItemCount(2))
        );
        assert_ne!(base, csv.meaning(2, ItemCount(2)));
        assert_ne!(base, csv.meaning(1, ItemCount(3)));
        assert_ne!(
            base,
            spec(r#"{"kind":"csv","path":"u","format":{"header":false}}"#).meaning(1, ItemCount(2))
        );
        assert_ne!(
            base,
            spec(r#"{"kind":"ndjson","path":"u"}"#).meaning(1, ItemCount(2))
        );
        assert_ne!(
            spec(r#"{"kind":"lines","path":"u"}"#).meaning(1, ItemCount(2)),
            spec(r#"{"kind":"ndjson","path":"u"}"#).meaning(1, ItemCount(2))
        );
    }
}
